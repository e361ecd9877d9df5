// Crowds at a TCP door that never prove who they are, and one session that does: it gets in, soon, and runs.
#include <gtest/gtest.h>
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
#include "process.h"
#include "scratch.h"
#include "session/session.h"

namespace dtg {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

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

// What a session does there; how long it took.
class Customer {
 public:
  explicit Customer(const SecurityOptions& security) { options_.security = security; }
  Status serve(const std::string& target, int64_t* took_ns) {
    const int64_t began = system_clock().monotonic_ns();
    DTG_ASSIGN(Ref<Graph> graph, Graph::create(&runtime_->ops()));
    Build b(*graph);
    graph->push_device("/job:ps/task:0");
    const Value two = b.op("Identity", {b.scalar(DType::f32, 2)});
    const Value fetches[] = {b.mul(two, two)};
    DTG_TRY(graph->pop_device());
    options_.connect_timeout_ns = 20 * kSecond;
    DTG_ASSIGN(const Ref<Session> session, Session::connect(runtime_, target, graph, options_));
    std::vector<Tensor> out(1);
    DTG_TRY(session->run({{}, {}, fetches, {}, 0}, out));
    *took_ns = system_clock().monotonic_ns() - began;
    return out[0].as<float>()[0] == 4 ? session->close(kSecond) : data_loss("it cannot multiply");
  }

 private:
  Ref<Runtime> runtime_ = Runtime::create({.compute_threads = 2}).take();
  Session::Options options_;
};

class Flood : public ::testing::Test {
 protected:
  Flood() {
    ::chmod(scratch_.path().c_str(), 0700);
    security_.key_file = scratch_ / "job.key";
    EXPECT_TRUE(keygen(security_.key_file).ok());
  }
  // Soon, also where the test's own crowd takes most of two CPUs: alone it takes some 20 ms.
  void expect_service(const std::string& target) {
    int64_t took_ns = 0;
    const Status status = Customer(security_).serve(target, &took_ns);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_LT(took_ns, 3 * kSecond);
    slowest_ns_ = std::max(slowest_ns_, took_ns);
  }
  void tell() const { printf("slowest session: %.0f ms\n", static_cast<double>(slowest_ns_) * 1e-6); }

  Scratch scratch_;
  SecurityOptions security_;
  int64_t slowest_ns_ = 0;
};

TEST_F(Flood, SlowCrowdAndBursts) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit raised{std::min<rlim_t>(limit.rlim_max, 8192), limit.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &raised);
  if (raised.rlim_cur < 8192) GTEST_SKIP() << "too few descriptors for the crowd";
  {
    const auto runtime = Runtime::create({.compute_threads = 2}).take();
    Server::Options options;
    options.cluster = ClusterSpec::parse("ps=127.0.0.1:0").take();
    options.security = security_;
    auto started = Server::start(runtime->host().take(), options, runtime);
    ASSERT_TRUE(started.ok()) << started.status().message();
    const auto server = started.take();
    const uint16_t port = Address::parse(server->target()).take().port;
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
  ::setrlimit(RLIMIT_NOFILE, &limit);
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
  server.allow_descriptors(4);
  crowd.say(3);
  const int64_t before_ns = server.worked_ns();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_LT(server.worked_ns() - before_ns, kSecond / 4);
  server.allow_descriptors(64);
  expect_service(target);
  EXPECT_EQ(server.end(), 0);
}

}  // namespace
}  // namespace dtg
