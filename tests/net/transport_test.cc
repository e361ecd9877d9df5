// The same conversation over everything that carries one: memory, unix sockets, those with shared memory beside them, TCP with TLS, TCP
// with frames in the clear.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>

#include "base/condition.h"
#include "data_frame.h"
#include "net/endpoint.h"
#include "net/memory_channel.h"
#include "net/socket_channel.h"
#include "net/tcp_socket.h"
#include "scratch.h"
#include "wire/messages.h"

namespace dtg {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr const char* kSelf = "/job:ps/replica:0/task:0";
constexpr const char* kPeer = "/job:worker/replica:0/task:3";

// One end: keeps what it hears; other threads wait for it.
class End final : public Channel::Sink {
 public:
  Result<Channel::Landing> begin(const wire::Prefix& prefix, std::string_view) override {
    landed_.assign(prefix.payload_bytes, '?');
    return Channel::Landing{landed_.data(), this};
  }
  Status receive(const wire::Prefix& prefix, std::string_view) override {
    const std::lock_guard lock(mutex_);
    kinds_.push_back(prefix.kind);
    payloads_.push_back(prefix.payload_bytes > 0 ? std::move(landed_) : std::string());
    changed_.notify_all();
    if (throws) throw std::bad_alloc();
    if (echo) channel->send(wire::make_frame(wire::Heartbeat{1}));
    return {};
  }
  void closed(const Status& reason) override {
    const std::lock_guard lock(mutex_);
    reason_ = reason;
    if (drops) channel = nullptr;
    changed_.notify_all();
  }
  bool wait_frames(size_t count) {
    return wait([&] { return kinds_.size() >= count; });
  }
  Status wait_closed() {
    wait([&] { return !reason_.ok(); });
    const std::lock_guard lock(mutex_);
    return reason_;
  }
  std::vector<wire::Kind> kinds() {
    const std::lock_guard lock(mutex_);
    return kinds_;
  }
  bool heard(wire::Kind kind) { return std::ranges::count(kinds(), kind) > 0; }
  std::vector<std::string> payloads() {
    const std::lock_guard lock(mutex_);
    return payloads_;
  }
  Ref<Channel> channel;
  bool echo = false;
  bool throws = false;
  bool drops = false;

 private:
  template <class Fn>
  bool wait(Fn&& what) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), what);
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string landed_;
  std::vector<wire::Kind> kinds_;
  std::vector<std::string> payloads_;
  Status reason_;
};

enum class Kind { memory, unix_socket, shared, tls, clear };

// Connects and waits for it.
Result<Ref<Channel>> connect_now(UvLoop& loop, const Address& address, const Credentials& credentials, int64_t timeout_ns) {
  Condition told;
  std::optional<Result<Ref<Channel>>> channel;
  std::unique_ptr<Dialling> dialling;
  loop.call([&] {
    dialling = std::make_unique<Dialling>(loop);
    dialling->connect(address, credentials, {}, Deadline::after(system_clock(), timeout_ns),
                      [&](Result<Ref<Channel>> made) { told.change([&] { channel = std::move(made); }); });
  });
  EXPECT_TRUE(told.wait(system_clock(), Deadline::after(system_clock(), timeout_ns + kSecond), [&] { return channel.has_value(); }));
  loop.call([&] { dialling = nullptr; });
  return channel ? std::move(*channel) : Result<Ref<Channel>>(internal_error("nobody told"));
}

class Endpoints : public ::testing::Test {
 protected:
  Endpoints() {
    ::chmod(scratch_.path().c_str(), 0700);
    loop_ = UvLoop::start(system_clock()).take();
    options_.runtime_dir = scratch_.path();
  }
  ~Endpoints() override {
    loop_->call([&] {
      listener_ = nullptr;
      for (End* end : {&here_, &there_}) {
        if (end->channel) end->channel->close();
        end->channel = nullptr;
      }
      for (const Ref<Channel>& channel : all_) channel->close();
      all_.clear();
    });
  }

  Status serve(const char* address, EndpointLimits limits = {}) {
    DTG_ASSIGN(const Address where, Address::parse(address));
    DTG_ASSIGN(const Credentials credentials, credentials_for(where, options_, kSelf, ""));
    DTG_ASSIGN(listener_, listen(*loop_, where, credentials, limits, [this](Ref<Channel> channel) {
                 {
                   const std::lock_guard lock(mutex_);
                   there_.channel = channel;
                   all_.push_back(channel);
                   ++accepted_;
                 }
                 channel->open(&there_);
                 changed_.notify_all();
               }));
    return {};
  }
  Status connect(const SecurityOptions& options, const std::string& self = kPeer, const std::string& peer = kSelf) {
    DTG_ASSIGN(const Credentials credentials, credentials_for(listener_->address(), options, self, peer));
    DTG_ASSIGN(here_.channel, connect_now(*loop_, listener_->address(), credentials, 5 * kSecond));
    loop_->call([&] { here_.channel->open(&here_); });
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(5), [&] { return accepted_ > 0; })) return unavailable("nobody was accepted");
    return {};
  }

  Scratch scratch_;
  SecurityOptions options_;
  std::unique_ptr<UvLoop> loop_;
  std::unique_ptr<Listener> listener_;
  End here_, there_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Ref<Channel>> all_;
  std::atomic<int> accepted_{0};
};

class Transport : public Endpoints, public ::testing::WithParamInterface<Kind> {
 protected:
  void SetUp() override {
    if (GetParam() == Kind::memory) {
      loop_->call([&] {
        std::tie(here_.channel, there_.channel) = memory_channels(*loop_, {});
        here_.channel->open(&here_);
        there_.channel->open(&there_);
      });
      return;
    }
    options_.security = GetParam() == Kind::clear ? Security::clear_frames : Security::tls;
    const std::string path = "unix:" + scratch_ / "socket";
    const Status served = serve(GetParam() <= Kind::shared ? path.c_str() : "127.0.0.1:0");
    ASSERT_TRUE(served.ok()) << served.message();
    const Status connected = connect(options_);
    ASSERT_TRUE(connected.ok()) << connected.message();
  }
  void trust() {
    loop_->call([&] {
      for (End* end : {&here_, &there_}) {
        end->channel->trust();
        if (GetParam() != Kind::unix_socket) end->channel->share_memory(budget_);
        EXPECT_EQ(end->channel->shares_memory(), GetParam() == Kind::shared);
      }
    });
  }
  // What of the payloads went through shared memory, and what of that memory is there now.
  uint64_t shared_bytes() {
    uint64_t bytes = 0;
    loop_->call([&] { bytes = here_.channel->shared_bytes() + there_.channel->shared_bytes(); });
    return bytes;
  }
  MemoryBudget budget_{int64_t{1} << 30};
  static std::string pattern(size_t bytes, uint32_t seed) {
    std::string text(bytes, '\0');
    for (char& c : text) c = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
    return text;
  }
};

TEST_P(Transport, SaysWhatProtectsIt) {
  // A word in each direction, so that both ends are through with their greeting.
  here_.channel->send(wire::make_frame(wire::Heartbeat{1}));
  there_.channel->send(wire::make_frame(wire::Heartbeat{1}));
  ASSERT_TRUE(here_.wait_frames(1) && there_.wait_frames(1));
  const char* const expected[] = {"memory", "uid", "uid", "tls1.3", "clear"};
  loop_->call([&] {
    for (End* end : {&here_, &there_}) EXPECT_STREQ(end->channel->security(), expected[static_cast<int>(GetParam())]);
    const bool proven = GetParam() == Kind::tls || GetParam() == Kind::clear;
    EXPECT_EQ(there_.channel->authenticated_peer(), proven ? std::optional<std::string>(kPeer) : std::nullopt);
    EXPECT_EQ(here_.channel->authenticated_peer(), proven ? std::optional<std::string>(kSelf) : std::nullopt);
  });
}

TEST_P(Transport, FramesOfAllSizesArriveInOrder) {
  trust();
  std::vector<std::string> sent;
  for (size_t bytes : {1, 100, 16383, 16384, 16385, 65536, 1000000, 1 << 20}) sent.push_back(pattern(bytes, static_cast<uint32_t>(bytes)));
  for (int round = 0; round < 3; ++round) {
    for (const std::string& payload : sent) {
      here_.channel->send(data_frame(payload));
      there_.channel->send(data_frame(payload));
    }
  }
  for (End* end : {&here_, &there_}) {
    ASSERT_TRUE(end->wait_frames(3 * sent.size()));
    const auto heard = end->payloads();
    for (size_t i = 0; i < heard.size(); ++i) EXPECT_TRUE(heard[i] == sent[i % sent.size()]) << i;
  }
}

TEST_P(Transport, ManySmallWords) {
  trust();
  loop_->call([&] { there_.echo = true; });
  for (int i = 0; i < 2000; ++i) here_.channel->send(wire::make_frame(wire::Heartbeat{static_cast<uint64_t>(i)}));
  EXPECT_TRUE(there_.wait_frames(2000));
  EXPECT_TRUE(here_.wait_frames(2000));
}

TEST_P(Transport, MuchBothWaysAtOnce) {
  trust();
  const std::string payload = pattern(1 << 20, 7);
  for (int i = 0; i < 48; ++i) {
    here_.channel->send(data_frame(payload));
    there_.channel->send(data_frame(payload));
  }
  for (End* end : {&here_, &there_}) {
    ASSERT_TRUE(end->wait_frames(48));
    for (const std::string& heard : end->payloads()) EXPECT_TRUE(heard == payload);
  }
  // The first of them only may have gone through the socket, and nothing that lay in a slot is kept.
  if (GetParam() == Kind::shared) EXPECT_GT(shared_bytes(), payload.size());
  else EXPECT_EQ(shared_bytes(), 0u);
  loop_->call([&] {
    for (int i = 0; i < 2; ++i) {
      for (End* end : {&here_, &there_}) end->channel->tidy();
    }
  });
  here_.channel->send(wire::make_frame(wire::Heartbeat{1}));
  there_.channel->send(wire::make_frame(wire::Heartbeat{1}));
  ASSERT_TRUE(here_.wait_frames(49) && there_.wait_frames(49));
  EXPECT_EQ(budget_.used(), 0);
}

TEST_P(Transport, MemoryIsGivenBackAtOnce) {
  trust();
  const std::string original = pattern(1 << 20, 3);
  std::string payload = original;
  std::atomic<int> taken{0};
  int owner = 0;
  for (int i = 0; i < 64; ++i) {
    auto frame = data_frame(payload, &owner);
    frame->taken = [&] { ++taken; };
    here_.channel->send(std::move(frame));
  }
  loop_->call([&] { here_.channel->let_go(&owner); });
  EXPECT_EQ(taken, 64);
  std::ranges::fill(payload, 'z');
  here_.channel->send(wire::make_frame(wire::Goodbye{}));
  // Whatever has left is whole and as it was, and the conversation goes on behind it.
  for (size_t count = 1; count <= 65; ++count) {
    ASSERT_TRUE(there_.wait_frames(count));
    if (there_.heard(wire::Kind::goodbye)) break;
  }
  for (const std::string& heard : there_.payloads()) EXPECT_TRUE(heard.empty() || heard == original);
}

TEST_P(Transport, TheEndIsSeen) {
  here_.channel->send(wire::make_frame(wire::Heartbeat{1}));
  ASSERT_TRUE(there_.wait_frames(1));
  loop_->call([&] {
    here_.channel->send(wire::make_frame(wire::Goodbye{}));
    here_.channel->push();
    here_.channel->close();
  });
  EXPECT_EQ(there_.wait_closed().code(), Code::unavailable);
  EXPECT_EQ(there_.kinds(), (std::vector{wire::Kind::heartbeat, wire::Kind::goodbye}));
}

TEST_P(Transport, NoMemoryEndsTheConversationOnly) {
  trust();
  loop_->call([&] { there_.throws = true; });
  std::string payload(1000, 'p');
  std::atomic<int> taken{0};
  auto frame = data_frame(payload);
  frame->taken = [&] { ++taken; };
  here_.channel->send(std::move(frame));
  EXPECT_EQ(there_.wait_closed().code(), Code::resource_exhausted) << there_.wait_closed().message();
  EXPECT_EQ(here_.wait_closed().code(), Code::unavailable);
  EXPECT_EQ(taken, 1);
  // What is queued for it is given back although giving it back throws too.
  loop_->call([&] {
    for (int i = 0; i < 2; ++i) {
      auto late = data_frame(payload);
      late->taken = [&] {
        ++taken;
        throw std::bad_alloc();
      };
      here_.channel->send(std::move(late));
    }
  });
  EXPECT_TRUE(loop_->call([] {}));
  EXPECT_GE(taken, 2);
}

TEST_P(Transport, StrangersMaySayLittle) {
  for (int i = 0; i < 1000; ++i) here_.channel->send(wire::make_frame(wire::Heartbeat{1}));
  EXPECT_EQ(there_.wait_closed().code(), Code::resource_exhausted);
  EXPECT_LE(there_.kinds().size() * wire::make_frame(wire::Heartbeat{1}).size(), wire::Limits().pre_auth_bytes);
}

INSTANTIATE_TEST_SUITE_P(Carriers, Transport, ::testing::Values(Kind::memory, Kind::unix_socket, Kind::shared, Kind::tls, Kind::clear),
                         [](const auto& kind) {
                           return std::string(std::array{"memory", "unix", "shared", "tls", "clear"}[static_cast<size_t>(kind.param)]);
                         });

// What waits to be sent breaks the conversation while a step lets go of it, and the step's end is that of the channel. (ASan watches.)
TEST_F(Endpoints, LettingGoMayBeTheEnd) {
  const std::string path = "unix:" + scratch_ / "socket";
  ASSERT_TRUE(serve(path.c_str()).ok());
  ASSERT_TRUE(connect(options_).ok());
  here_.drops = true;
  loop_->call([&] {
    there_.channel->close();
    auto frame = std::make_unique<OutFrame>();
    frame->head = wire::make_frame(wire::Heartbeat{1});
    Channel& channel = *here_.channel;
    channel.queue(std::move(frame));
    channel.let_go(this);
  });
  EXPECT_EQ(here_.wait_closed().code(), Code::unavailable);
  EXPECT_FALSE(here_.channel);
}

TEST_F(Endpoints, OneEndClear) {
  ASSERT_TRUE(serve("127.0.0.1:0").ok());
  options_.security = Security::clear_frames;
  ASSERT_TRUE(connect(options_).ok());
  for (End* end : {&here_, &there_}) {
    const Status reason = end->wait_closed();
    EXPECT_EQ(reason.code(), Code::failed_precondition) << reason.message();
    EXPECT_NE(reason.message().find("set security to clear_frames at both ends"), std::string::npos) << reason.message();
  }
}

TEST_F(Endpoints, WrongKeyAndWrongName) {
  ASSERT_TRUE(serve("127.0.0.1:0").ok());
  SecurityOptions other = options_;
  other.key_file = scratch_ / "other.key";
  ASSERT_TRUE(keygen(other.key_file).ok());
  ASSERT_TRUE(connect(other).ok());
  EXPECT_EQ(here_.wait_closed().code(), Code::unauthenticated) << here_.wait_closed().message();
  EXPECT_NE(here_.wait_closed().message().find("key_file"), std::string::npos) << here_.wait_closed().message();
  EXPECT_EQ(there_.wait_closed().code(), Code::unauthenticated);
  EXPECT_TRUE(there_.kinds().empty());
}

TEST_F(Endpoints, NothingBeyondThisMachineWithoutAKey) {
  const Status refused = serve("0.0.0.0:0");
  EXPECT_EQ(refused.code(), Code::failed_precondition);
  EXPECT_NE(refused.message().find("dtg keygen job.key"), std::string::npos) << refused.message();
  // Nor by a name that leads out: with this user's own key only loopback numbers are bound.
  Credentials local = credentials_for(Address::parse("127.0.0.1:0").take(), options_, kSelf, "").take();
  const auto bound = listen(*loop_, Address::parse("0.0.0.0:0").take(), local, {}, [](Ref<Channel>) {});
  EXPECT_EQ(bound.status().code(), Code::failed_precondition) << bound.status().message();
  const auto connected = connect_now(*loop_, Address::parse("192.0.2.1:9").take(), local, kSecond);
  EXPECT_EQ(connected.status().code(), Code::failed_precondition) << connected.status().message();
}

// Whoever tries again and again to reach a task that is down is once given the task's own port as his, and reaches himself.
TEST_F(Endpoints, ASocketThatMeetsItselfLeavesThePortFree) {
  SocketAddress number;
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&number.storage);
  v4->sin_family = AF_INET;
  v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  number.size = sizeof *v4;
  {
    const Descriptor self(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(self.get(), number.get(), number.size), 0);
    ASSERT_EQ(::getsockname(self.get(), reinterpret_cast<sockaddr*>(&number.storage), &number.size), 0);
    ASSERT_EQ(::connect(self.get(), number.get(), number.size), 0);
    EXPECT_TRUE(met_itself(self.get(), number));
  }
  Address address = Address::parse("127.0.0.1:" + std::to_string(number.port())).take();
  const auto listens = listen_tcp(&address, true, system_clock(), Deadline::after(system_clock(), 10 * kSecond));
  EXPECT_TRUE(listens.ok()) << listens.status().message();
}

TEST_F(Endpoints, ListensExactlyThere) {
  ASSERT_TRUE(serve("127.0.0.5:0").ok());
  const uint16_t port = listener_->address().port;
  EXPECT_NE(port, 0);
  EXPECT_EQ(listener_->address().text(), "127.0.0.5:" + std::to_string(port));
  const auto knock = [&](const std::string& host) {
    const Address address = Address::parse(host + ":" + std::to_string(port)).take();
    const Credentials credentials = credentials_for(address, options_, "", "").take();
    return connect_now(*loop_, address, credentials, kSecond).status().code();
  };
  EXPECT_EQ(knock("127.0.0.1"), Code::unavailable);
  EXPECT_EQ(knock("127.0.0.5"), Code::ok);
  const auto again =
      listen(*loop_, listener_->address(), credentials_for(listener_->address(), options_, kSelf, "").take(), {}, [](Ref<Channel>) {});
  EXPECT_EQ(again.status().code(), Code::already_exists) << again.status().message();
}

// Peers that only connect: plain TCP that says nothing, says something else, or comes in numbers.
class Strangers : public Endpoints {
 protected:
  Descriptor come(std::string_view words = {}) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(listener_->address().port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    Descriptor stranger(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(stranger.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    if (!words.empty()) (void)!::send(stranger.get(), words.data(), words.size(), MSG_NOSIGNAL);
    return stranger;
  }
  // What it hears before it is closed; "open" when it is not.
  static std::string hear(const Descriptor& stranger, int patience_ms) {
    pollfd news{stranger.get(), POLLIN, 0};
    if (::poll(&news, 1, patience_ms) == 0) return "open";
    std::string heard(100, '\0');
    const ssize_t got = ::recv(stranger.get(), heard.data(), heard.size(), 0);
    heard.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    return heard;
  }
  // A record of TLS of that length.
  static std::string record(size_t bytes) {
    return std::string("\x16\x03\x01", 3) + static_cast<char>(bytes >> 8) + static_cast<char>(bytes & 255) + std::string(bytes, 'x');
  }
};

TEST_F(Strangers, TheLatestStay) {
  EndpointLimits limits;
  limits.accept.unknown_per_host = 4;
  ASSERT_TRUE(serve("127.0.0.1:0", limits).ok());
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 12; ++i) strangers.push_back(come(i % 2 == 0 ? "" : "\x16"));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(hear(strangers[static_cast<size_t>(i)], 5000), "") << i;
  for (int i = 8; i < 12; ++i) EXPECT_EQ(hear(strangers[static_cast<size_t>(i)], 50), "open") << i;
  // Whoever proves itself finds the door open, and none of them has become a channel.
  const Status connected = connect(options_);
  ASSERT_TRUE(connected.ok()) << connected.message();
  there_.channel->send(wire::make_frame(wire::Heartbeat{1}));
  EXPECT_TRUE(here_.wait_frames(1));
  EXPECT_EQ(accepted_, 1);
}

TEST_F(Strangers, WhoSpeaksSomethingElseHearsNothing) {
  EndpointLimits limits;
  limits.accept.first_word_ns = kSecond / 5;
  ASSERT_TRUE(serve("127.0.0.1:0", limits).ok());
  // A browser, too long a beginning, one that never ends, and a silent one.
  for (const std::string& words :
       {std::string("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"), record(5000), record(300).substr(0, 200), {}}) {
    EXPECT_EQ(hear(come(words), 5000), "") << words.size();
  }
  EXPECT_EQ(accepted_, 0);
  // A record that is none of TLS gets as far as TLS, which has an alert for it.
  EXPECT_LE(hear(come(record(300)), 5000).size(), 7u);
  EXPECT_EQ(accepted_, 1);
}

// A first word that comes byte by byte is whole in the end.
TEST_F(Strangers, SlowlyIsNotNever) {
  ASSERT_TRUE(serve("127.0.0.1:0").ok());
  const Descriptor slow = come();
  const std::string words = record(40);
  for (char byte : words) {
    ::usleep(2000);
    EXPECT_EQ(accepted_, 0);
    ASSERT_EQ(::send(slow.get(), &byte, 1, MSG_NOSIGNAL), 1);
  }
  EXPECT_LE(hear(slow, 5000).size(), 7u);
  EXPECT_EQ(accepted_, 1);
}

}  // namespace
}  // namespace dtg
