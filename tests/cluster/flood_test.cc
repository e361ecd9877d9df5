// Crowds at a TCP door that never prove who they are, and one session that does: it gets in, soon, and runs.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <deque>
#include <thread>

#include "cluster/server.h"
#include "graph/build.h"
#include "net/job_key.h"
#include "net/tls.h"
#include "process.h"
#include "scratch.h"
#include "seconds.h"
#include "session/session.h"

namespace dtg {
namespace {

// The undefined-behaviour sanitizer, which comes with the address sanitizer (tests themselves have that alone), finds out whether an
// object can be read by handing it to a pipe. A process that may have no more descriptors has none, and then takes every object whose type
// it has not met before for no object, such as the alarm of the acceptor's pause.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CHECKS_TYPES_BY_PIPES 1
#endif
#endif
#if defined(CHECKS_TYPES_BY_PIPES)
constexpr bool kNeedsPipes = true;
#else
constexpr bool kNeedsPipes = false;
#endif

// Connections to that port of this machine, that say nothing yet.
class Crowd {
 public:
  explicit Crowd(uint16_t port) {
    address_.sin_family = AF_INET;
    address_.sin_port = htons(port);
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  ~Crowd() { shrink(0); }
  void grow(size_t size) {
    while (sockets_.size() < size) sockets_.push_back(connect());
  }
  void shrink(size_t size) {
    for (; sockets_.size() > size; sockets_.pop_front()) ::close(sockets_.front());
  }
  // A byte from each; who has been sent away comes again.
  void say(char byte) {
    for (int& socket : sockets_) {
      if (::send(socket, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 || errno == EAGAIN || errno == ENOTCONN) continue;
      ::close(socket);
      socket = connect();
      ++sent_away;
    }
  }
  // Who has been sent away comes again, and nobody says anything.
  void come_again() {
    for (int& socket : sockets_) {
      char byte;
      if (::recv(socket, &byte, 1, MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == ENOTCONN)) continue;
      ::close(socket);
      socket = connect();
      ++sent_away;
    }
  }
  size_t sent_away = 0;

 private:
  int connect() const {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)!::connect(socket, reinterpret_cast<const sockaddr*>(&address_), sizeof address_);
    return socket;
  }
  sockaddr_in address_{};
  std::deque<int> sockets_;
};

// One who comes for work: a session whose steps the server computes.
class Customer {
 public:
  Customer(Ref<Runtime> runtime, const SecurityOptions& security) : runtime_(std::move(runtime)) { options_.security = security; }
  Status connect(const std::string& target) {
    DTG_ASSIGN(Ref<Graph> graph, Graph::create(&runtime_->ops()));
    Build b(*graph);
    graph->push_device("/job:ps/task:0");
    two_ = b.op("Placeholder", {}, {{"dtype", DType::f32}, {"shape", Shape()}});
    four_ = b.mul(two_, two_);
    DTG_TRY(graph->pop_device());
    options_.connect_timeout_ns = 20 * kSecond;
    DTG_ASSIGN(session_, Session::connect(runtime_, target, graph, options_));
    return {};
  }
  Status step() {
    const float two = 2;
    DTG_ASSIGN(const Tensor tensor, Tensor::of<float>(Shape(), {&two, 1}));
    const Tensor* const fed = &tensor;
    std::vector<Tensor> out(1);
    DTG_TRY(session_->run({{&two_, 1}, {&fed, 1}, {&four_, 1}, {}, 0}, out));
    return out[0].as<float>()[0] == 4 ? Status() : data_loss("it cannot multiply");
  }
  Status leave() { return session_->close(kSecond); }

 private:
  const Ref<Runtime> runtime_;
  Session::Options options_;
  Value two_, four_;
  Ref<Session> session_;
};

// For a crowd: as many descriptors as this process may have, until it goes.
class ManyDescriptors {
 public:
  ManyDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit all{before_.rlim_max, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &all);
  }
  ~ManyDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  size_t count() const { return static_cast<size_t>(before_.rlim_max); }

 private:
  rlimit before_{};
};

class Flood : public ::testing::Test {
 protected:
  Flood() {
    ::chmod(scratch_.path().c_str(), 0700);
    security_.key_file = scratch_ / "job.key";
    EXPECT_TRUE(keygen(security_.key_file).ok());
  }
  // Soon, also where others take most of two CPUs: alone it takes some 20 ms.
  void expect_service(const std::string& target) {
    const int64_t began_ns = system_clock().monotonic_ns();
    Customer customer(runtime_, security_);
    Status status = customer.connect(target);
    if (status.ok()) status = customer.step();
    const int64_t took_ns = system_clock().monotonic_ns() - began_ns;
    if (status.ok()) status = customer.leave();
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_LT(took_ns, 10 * kSecond);
    slowest_ns_ = std::max(slowest_ns_, took_ns);
  }
  void tell() const { printf("slowest session: %.0f ms\n", static_cast<double>(slowest_ns_) * 1e-6); }

  // One for all customers. libuv closes its descriptors unseen by the thread sanitizer, which would take a crowd that gets the same
  // numbers afterwards for one that meddles with them.
  const Ref<Runtime> runtime_ = Runtime::create({.compute_threads = 2}).take();
  Scratch scratch_;
  SecurityOptions security_;
  int64_t slowest_ns_ = 0;
};

TEST_F(Flood, SlowCrowdAndBursts) {
  const ManyDescriptors descriptors;
  if (descriptors.count() < 8192) GTEST_SKIP() << "too few descriptors for the crowd";
  {
    const auto runtime = Runtime::create({.compute_threads = 2}).take();
    Server::Options options;
    options.cluster = ClusterSpec::parse("ps=127.0.0.1:0").take();
    options.security = security_;
    auto started = Server::start(runtime->host().take(), options, runtime);
    ASSERT_TRUE(started.ok()) << started.status().message();
    const auto server = started.take();
    const uint16_t port = Address::parse(server->target()).take().port;
    expect_service(server->target());
    std::atomic<bool> over{false};
    std::atomic<size_t> came{0};
    std::thread slow([&] {
      Crowd crowd(port);
      crowd.grow(2000);
      // The beginning of a record of TLS of 3840 bytes that comes in an hour.
      const std::string words("\x16\x03\x01\x0f\x00", 5);
      for (size_t second = 0; !over; ++second) {
        crowd.say(second < words.size() ? words[second] : 'x');
        for (int i = 0; i < 10 && !over; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
      came += 2000 + crowd.sent_away;
    });
    std::thread bursts([&] {
      while (!over) {
        Crowd crowd(port);
        for (size_t size = 0; size < 2000 && !over; size += 100) {
          crowd.grow(size);
          crowd.say(22);
          came += 100;
          std::this_thread::sleep_for(std::chrono::milliseconds(40));
        }
      }
    });
    for (int i = 0; i < 20; ++i) {
      expect_service(server->target());
      std::this_thread::sleep_for(std::chrono::milliseconds(150));
    }
    over = true;
    slow.join();
    bursts.join();
    EXPECT_GT(came, 4000u);
    printf("strangers: %zu\n", came.load());
    tell();
    expect_service(server->target());
  }
}

// A port that was free a moment ago.
uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ::close(socket);
  return ntohs(address.sin_port);
}

// Ten thousand that connect and say nothing, and come again when they are sent away: who is there goes on, and who comes gets in.
TEST_F(Flood, TenThousandSilent) {
  const ManyDescriptors descriptors;
  const size_t size = std::min<size_t>(10'000, descriptors.count() - std::min<size_t>(descriptors.count(), 300));
  if (size < 500) GTEST_SKIP() << "too few descriptors for the crowd";
  const uint16_t port = free_port();
  const std::string target = "127.0.0.1:" + std::to_string(port);
  OtherProcess server({"--serve", "ps=" + target, "ps", "0", security_.key_file});
  Customer resident(runtime_, security_);
  ASSERT_TRUE(resident.connect(target).ok());
  std::atomic<bool> over{false};
  std::atomic<size_t> present{0};
  std::atomic<int> rounds{0};
  std::thread crowding([&] {
    Crowd crowd(port);
    for (size_t now = 100; now <= size && !over; now += 100) crowd.grow(now), present = now;
    for (; !over; ++rounds) {
      // All of whom the server keeps 64: the others are away, and come back.
      crowd.come_again();
      for (int i = 0; i < 10 && !over; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  int64_t slowest_step_ns = 0;
  int steps = 0;
  const auto step = [&] {
    const int64_t began_ns = system_clock().monotonic_ns();
    const Status status = resident.step();
    EXPECT_TRUE(status.ok()) << status.message();
    slowest_step_ns = std::max(slowest_step_ns, system_clock().monotonic_ns() - began_ns);
    ++steps;
    return status.ok();
  };
  const Deadline patience = Deadline::after(system_clock(), 60 * kSecond);
  while (present < size && !patience.passed(system_clock()) && step()) {
  }
  EXPECT_EQ(present, size);
  while (rounds < 4 && !patience.passed(system_clock()) && step()) {
    expect_service(target);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  over = true;
  crowding.join();
  EXPECT_LT(slowest_step_ns, 5 * kSecond);
  printf("strangers: %zu; %d steps, the slowest of %.0f ms\n", size, steps, static_cast<double>(slowest_step_ns) * 1e-6);
  tell();
  EXPECT_TRUE(resident.leave().ok());
  EXPECT_EQ(server.end(), 0);
}

// An address of this machine that is not loopback; empty: it has none.
std::string own_address() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return {};
  char text[INET_ADDRSTRLEN] = {};
  for (const ifaddrs* at = all; at; at = at->ifa_next) {
    if (!at->ifa_addr || at->ifa_addr->sa_family != AF_INET || (at->ifa_flags & IFF_LOOPBACK) != 0) continue;
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr, text, sizeof text);
  }
  ::freeifaddrs(all);
  return text;
}

// What a client says first, whole and in form, that has another job's key.
std::string foreign_first_word(const std::string& target) {
  Credentials credentials;
  credentials.key = JobKey::random(system_random()).take();
  auto session = TlsSession::make(TlsSession::Side::client, credentials, target).take();
  EXPECT_FALSE(session->greet().take());
  return {session->out.data(), session->out.size()};
}

// One host says whole first words, as fast as it can, that come to nothing. It uses up its own accepts; from another address of the
// machine sessions come as always.
TEST_F(Flood, FirstWordsThatComeToNothing) {
  const std::string address = own_address();
  if (address.empty()) GTEST_SKIP() << "this machine has no address but loopback";
  const uint16_t port = free_port();
  const std::string target = address + ":" + std::to_string(port);
  OtherProcess server({"--serve", "ps=" + target, "ps", "0", security_.key_file});
  expect_service(target);  // when it has come up
  slowest_ns_ = 0;
  std::atomic<bool> over{false};
  std::atomic<int> answered{0}, refused{0};
  std::thread storm([&] {
    const std::string words = foreign_first_word(target);
    while (!over) {
      sockaddr_in here{}, there{};
      here.sin_family = there.sin_family = AF_INET;
      here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      there.sin_port = htons(port);
      ::inet_pton(AF_INET, address.c_str(), &there.sin_addr);
      const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      char alert[16];
      if (::bind(socket, reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0 &&
          ::connect(socket, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0 &&
          ::send(socket, words.data(), words.size(), MSG_NOSIGNAL) > 0)
        ++(::recv(socket, alert, sizeof alert, 0) > 0 ? answered : refused);
      ::close(socket);
    }
  });
  for (int i = 0; i < 20; ++i) {
    expect_service(target);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  over = true;
  storm.join();
  printf("first words: %d answered with an alert, %d not at all\n", answered.load(), refused.load());
  EXPECT_GT(answered, 200);
  EXPECT_GT(refused, 200);
  tell();
  EXPECT_EQ(server.end(), 0);
}

TEST_F(Flood, FewDescriptors) {
  const uint16_t port = free_port();
  const std::string target = "127.0.0.1:" + std::to_string(port);
  OtherProcess server({"--serve", "ps=" + target, "ps", "0", security_.key_file});
  expect_service(target);  // when it has come up
  slowest_ns_ = 0;
  server.allow_descriptors(64);
  Crowd crowd(port);
  crowd.grow(500);
  for (int i = 0; i < 5; ++i) {
    crowd.say(22);
    expect_service(target);
  }
  tell();
  // Not even the reserve: what the process has open is all it may have. It waits, without working for it.
  if (!kNeedsPipes) {
    server.allow_descriptors(4);
    crowd.say(3);
    const int64_t before_ns = server.worked_ns();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    EXPECT_LT(server.worked_ns() - before_ns, kSecond / 4);
    server.allow_descriptors(64);
    expect_service(target);
  }
  EXPECT_EQ(server.end(), 0);
}

}  // namespace
}  // namespace dtg
