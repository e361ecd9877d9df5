// A connection that is lost again and again while a plan is made: as long as the task keeps its state, whoever waits for the run and
// whoever does not both get there in the end. Between session and server stands a relay, which cuts a conversation as a part is registered.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "graph/build.h"
#include "process.h"
#include "scratch.h"
#include "seconds.h"
#include "session/async_run.h"

namespace dtg {
namespace {

// One conversation at a time, from one socket address to another.
class Relay {
 public:
  Relay(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)), listener_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    const sockaddr_un address = address_of(from_);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    thread_ = std::thread([this] { work(); });
  }
  ~Relay() {
    ends_ = true;
    thread_.join();
    ::close(listener_);
  }
  // So many of the conversations in which a graph is sent are cut from now on.
  void cut(int count) { cuts_ = count; }
  int left() const { return cuts_; }

 private:
  static sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    return address;
  }
  void work() {
    while (!ends_) {
      pollfd comes{listener_, POLLIN, 0};
      if (::poll(&comes, 1, 20) <= 0) continue;
      const int near = ::accept(listener_, nullptr, nullptr), far = ::socket(AF_UNIX, SOCK_STREAM, 0);
      const sockaddr_un address = address_of(to_);
      if (::connect(far, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) talk(near, far);
      ::close(near);
      ::close(far);
    }
  }
  // Until either end is done, or it is cut.
  void talk(int near, int far) {
    while (!ends_) {
      pollfd both[] = {{near, POLLIN, 0}, {far, POLLIN, 0}};
      if (::poll(both, 2, 20) < 0) return;
      for (int i = 0; i < 2; ++i) {
        if (both[i].revents == 0) continue;
        const ssize_t got = ::recv(both[i].fd, buffer_.data(), buffer_.size(), 0);
        if (got <= 0) return;
        // Nothing else that a session without feeds says is as long.
        if (i == 0 && got >= 400 && cuts_ > 0) {
          --cuts_;
          return;
        }
        if (::send(i == 0 ? far : near, buffer_.data(), static_cast<size_t>(got), MSG_NOSIGNAL) != got) return;
      }
    }
  }

  const std::string from_, to_;
  const int listener_;
  std::array<char, 1 << 16> buffer_;
  std::atomic<int> cuts_{0};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

// A session with a variable on the parameter server, and what is done to it. No session: it did not connect.
struct Client {
  Ref<Session> session;
  NodeId set = kNoNode, add = kNoNode;
  Value read;

  explicit Client(const std::string& target) {
    const Ref<Runtime> runtime = Runtime::create({.compute_threads = 2}).take();
    const Ref<Graph> graph = Graph::create(&runtime->ops()).take();
    Build b(*graph);
    graph->push_device("/job:ps/task:0");
    const Value v = b.op("VarHandleOp", {}, {{"dtype", DType::f32}, {"shape", Shape()}, {"shared_name", std::string("v")}});
    set = b.node("AssignVariableOp", std::vector<Value>{v, b.scalar(DType::f32, 1)});
    add = b.node("AssignAddVariableOp", std::vector<Value>{v, b.scalar(DType::f32, 2)});
    read = b.op("ReadVariableOp", {v}, {{"dtype", DType::f32}});
    EXPECT_TRUE(graph->pop_device().ok() && b.ok()) << b.status().message();
    Session::Options options;
    options.connect_timeout_ns = 20 * kSecond;
    auto connected = Session::connect(runtime, target, graph, options);
    EXPECT_TRUE(connected.ok()) << connected.status().message();
    if (connected.ok()) session = connected.take();
  }
};

TEST(PlanningLoss, ATaskThatKeepsItsStateIsMetAsOftenAsItTakes) {
  constexpr int kCuts = 12;
  Scratch scratch;
  ::chmod(scratch.path().c_str(), 0700);
  ServerProcess server("ps=unix:" + scratch / "ps", "ps", 0, scratch / "state");
  Relay relay(scratch / "relay", scratch / "ps");
  const Client client("unix:" + scratch / "relay");
  ASSERT_TRUE(client.session);
  const Ref<Session> session = client.session;
  const NodeId set = client.set, add = client.add;
  const Value read = client.read;

  relay.cut(kCuts);
  std::vector<Tensor> none, got(1);
  const Status waited =
      session->run({.feeds = {}, .feed_tensors = {}, .fetches = {}, .targets = {&set, 1}, .timeout_ns = 60 * kSecond}, none);
  EXPECT_TRUE(waited.ok()) << waited.message();
  EXPECT_EQ(relay.left(), 0);

  relay.cut(kCuts);
  const Ref<CompletionQueue> queue = CompletionQueue::create().take();
  const auto run =
      session->run_async({.feeds = {}, .feed_tensors = {}, .fetches = {}, .targets = {&add, 1}, .timeout_ns = 60 * kSecond}, queue, 0);
  ASSERT_TRUE(run.ok()) << run.status().message();
  CompletionQueue::Event event;
  ASSERT_EQ(queue->next({&event, 1}, system_clock(), Deadline::after(system_clock(), 90 * kSecond)), 1u);
  EXPECT_TRUE(event.status.ok()) << event.status.message();
  EXPECT_EQ(relay.left(), 0);

  // One that rests is cancelled at once.
  relay.cut(1'000'000);
  const auto cancelled = session->run_async(
      {.feeds = {}, .feed_tensors = {}, .fetches = {}, .targets = std::array{set, add}, .timeout_ns = 60 * kSecond}, queue, 1);
  ASSERT_TRUE(cancelled.ok()) << cancelled.status().message();
  while (relay.left() > 1'000'000 - 8) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  cancelled.value()->cancel();
  ASSERT_EQ(queue->next({&event, 1}, system_clock(), Deadline::after(system_clock(), 10 * kSecond)), 1u);
  EXPECT_EQ(event.status.code(), Code::cancelled) << event.status.message();

  relay.cut(0);
  const Status last =
      session->run({.feeds = {}, .feed_tensors = {}, .fetches = {&read, 1}, .targets = {}, .timeout_ns = 60 * kSecond}, got);
  ASSERT_TRUE(last.ok()) << last.message();
  EXPECT_EQ(got[0].values<float>()[0], 3);
  EXPECT_TRUE(session->close(10 * kSecond).ok());
}

// Runs are planned one behind the other; a task that is gone is not looked for by each of them anew.
TEST(PlanningLoss, ManyRunsLookForALostTaskTogether) {
  constexpr int kRuns = 16;  // a second each, one behind the other
  Scratch scratch;
  ::chmod(scratch.path().c_str(), 0700);
  auto server = std::make_unique<ServerProcess>("ps=unix:" + scratch / "ps", "ps", 0);
  const Client client("unix:" + scratch / "ps");
  ASSERT_TRUE(client.session);
  const Ref<Session> session = client.session;
  const NodeId set = client.set;
  const Value read = client.read;
  std::vector<Tensor> none;
  ASSERT_TRUE(session->run({.feeds = {}, .feed_tensors = {}, .fetches = {}, .targets = {&set, 1}, .timeout_ns = 60 * kSecond}, none).ok());
  server->kill();
  const Ref<CompletionQueue> queue = CompletionQueue::create().take();
  std::vector<Ref<AsyncRun>> runs;
  const int64_t began = system_clock().monotonic_ns();
  for (int i = 0; i < kRuns; ++i) {
    auto run =
        session->run_async({.feeds = {}, .feed_tensors = {}, .fetches = {&read, 1}, .targets = {}, .timeout_ns = 60 * kSecond}, queue, 0);
    ASSERT_TRUE(run.ok()) << run.status().message();
    runs.push_back(run.take());
  }
  for (int i = 0; i < kRuns; ++i) {
    CompletionQueue::Event event;
    ASSERT_EQ(queue->next({&event, 1}, system_clock(), Deadline::after(system_clock(), 90 * kSecond)), 1u);
    EXPECT_EQ(event.status.code(), Code::unavailable) << event.status.message();
  }
  EXPECT_LT(system_clock().monotonic_ns() - began, (kRuns - 4) * kSecond);
  EXPECT_TRUE(session->close(10 * kSecond).ok());
}

}  // namespace
}  // namespace dtg
