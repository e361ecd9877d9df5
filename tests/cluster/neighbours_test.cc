// Two tasks that exchange values themselves: over each kind of channel, where they cannot reach each other, and when one of
// them goes away at any moment.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <random>
#include <thread>
#include <type_traits>

#include "cluster/server.h"
#include "graph/build.h"
#include "net/job_key.h"
#include "process.h"
#include "scratch.h"
#include "seconds.h"
#include "session/session.h"

namespace dtg {
namespace {

constexpr int32_t kCount = 500'000;

// A free port; nobody else is likely to ask for one at this address.
std::string loopback_address() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  socklen_t size = sizeof at;
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(0x7f000000u | (static_cast<uint32_t>(std::random_device{}()) & 0x7fffffu) | 0x10000u);
  ::bind(socket, reinterpret_cast<const sockaddr*>(&at), size);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size);
  ::close(socket);
  char text[32] = {};
  ::inet_ntop(AF_INET, &at.sin_addr, text, sizeof text);
  return std::string(text) + ":" + std::to_string(ntohs(at.sin_port));
}

// A step that sends the 2 MB of w from task 0 to task 1, where v += w, and 2 MB of zeros back, where they are added to w.
struct Exchange {
  Ref<Graph> graph;
  NodeId assign = 0, step = 0;
  Value w, v;  // read

  explicit Exchange(Runtime& runtime) : graph(Graph::create(&runtime.ops()).take()), b(*graph) {
    const Value w_handle = variable(0, "w"), v_handle = variable(1, "v");
    const NodeId both[] = {fill(0, w_handle, 1), fill(1, v_handle, 2)};
    assign = b.node("NoOp", {}, {}, "assign", both);
    w = on(0, [&] { return b.op("ReadVariableOp", {w_handle}, {{"dtype", DType::f32}}); });
    v = on(1, [&] { return b.op("ReadVariableOp", {v_handle}, {{"dtype", DType::f32}}); });
    const Value back = on(1, [&] { return b.mul(w, b.scalar(DType::f32, 0)); });
    const NodeId ends[] = {add(1, v_handle, w), add(0, w_handle, back)};
    step = b.node("NoOp", {}, {}, "step", ends);
    EXPECT_TRUE(b.ok()) << b.status().message();
  }

 private:
  template <class Make>
  std::invoke_result_t<Make> on(int task, const Make& make) {
    graph->push_device("/job:ps/task:" + std::to_string(task));
    const auto made = make();
    EXPECT_TRUE(graph->pop_device().ok());
    return made;
  }
  Value variable(int task, const char* name) {
    const auto make = [&] {
      return b.op("VarHandleOp", {},
                  {{"dtype", DType::f32}, {"shape", PartialShape(Shape::of({kCount}))}, {"shared_name", std::string(name)}});
    };
    return on(task, make);
  }
  NodeId fill(int task, Value handle, float value) {
    const std::array<int32_t, 1> dims = {kCount};
    const Value shape = b.constant(Tensor::of<int32_t>(Shape::of({1}), std::span<const int32_t>(dims)).take());
    return on(task, [&] {
      return b.node("AssignVariableOp", std::vector<Value>{handle, b.op("Fill", {shape, b.scalar(DType::f32, value)}, {})});
    });
  }
  NodeId add(int task, Value handle, Value delta) {
    return on(task, [&] { return b.node("AssignAddVariableOp", std::vector<Value>{handle, delta}); });
  }
  Build b;
};

class NeighboursTest : public ::testing::Test {
 protected:
  NeighboursTest() : seed_(std::random_device{}()), random_(seed_) {
    std::printf("seed %u\n", seed_);
    ::chmod(scratch_.path().c_str(), 0700);
  }
  ~NeighboursTest() override {
    session_ = nullptr;
    for (Ref<Server>& server : servers_) server = nullptr;
  }
  std::string at(const char* name) const { return "unix:" + (scratch_ / name); }
  std::string cluster() const { return "ps=" + at("ps0") + "," + at("ps1"); }
  // A task in this process.
  Status serve(const std::string& cluster, int task) {
    Server::Options options;
    DTG_ASSIGN(options.cluster, ClusterSpec::parse(cluster));
    options.job = "ps";
    options.task = task;
    options.security = security_;
    runtimes_.push_back(Runtime::create({.compute_threads = 1}).take());
    DTG_ASSIGN(const Host host, runtimes_.back()->host());
    DTG_ASSIGN(Ref<Server> server, Server::start(host, std::move(options), runtimes_.back()));
    servers_.push_back(std::move(server));
    return {};
  }
  Status connect(const std::string& target) {
    session_ = nullptr;
    Session::Options options;
    options.connect_timeout_ns = 20 * kSecond;
    options.security = security_;
    DTG_ASSIGN(session_, Session::connect(runtime_, target, exchange_.graph, options));
    return {};
  }
  Status run(NodeId target, int64_t timeout_ns = 20 * kSecond) {
    std::vector<Tensor> none;
    return session_->run({{}, {}, {}, {&target, 1}, timeout_ns}, none);
  }
  void expect_steps(int count) {
    const Status assigned = run(exchange_.assign);
    ASSERT_TRUE(assigned.ok()) << assigned.message();
    for (int i = 0; i < count; ++i) {
      const Status status = run(exchange_.step);
      ASSERT_TRUE(status.ok()) << status.message();
    }
    std::vector<Tensor> out(2);
    const Value fetches[] = {exchange_.w, exchange_.v};
    const Status status = session_->run({{}, {}, fetches, {}, 20 * kSecond}, out);
    ASSERT_TRUE(status.ok()) << status.message();
    for (int i = 0; i < kCount; i += 4999) {
      ASSERT_EQ(out[0].as<float>()[i], 1) << i;
      ASSERT_EQ(out[1].as<float>()[i], static_cast<float>(2 + count)) << i;
    }
  }
  // Links between tasks, over all of them.
  int links() {
    const std::string text = session_->inspect_cluster(5 * kSecond).take();
    int count = 0;
    for (size_t at = 0; (at = text.find("values for session", at)) != text.npos; ++at) ++count;
    return count;
  }
  // Steps until one fails: in time, and not with less than is known.
  Status step_until_it_fails(int64_t timeout_ns) {
    for (;;) {
      const int64_t began = system_clock().monotonic_ns();
      const Status status = run(exchange_.step, timeout_ns);
      EXPECT_LT(system_clock().monotonic_ns() - began, timeout_ns + 3 * kSecond) << "seed " << seed_ << ": " << status.message();
      if (!status.ok()) return status;
    }
  }
  void pause() { std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution<int>(0, 20'000)(random_))); }

  const unsigned seed_;
  std::mt19937 random_;
  Scratch scratch_;
  SecurityOptions security_;
  Ref<Runtime> runtime_ = Runtime::create({.compute_threads = 2}).take();
  Exchange exchange_{*runtime_};
  std::vector<Ref<Runtime>> runtimes_;
  std::vector<Ref<Server>> servers_;
  Ref<Session> session_;
};

TEST_F(NeighboursTest, ValuesGoStraightOverUnixSockets) {
  for (int task = 0; task < 2; ++task) ASSERT_TRUE(serve(cluster(), task).ok());
  ASSERT_TRUE(connect(at("ps0")).ok());
  expect_steps(20);
  EXPECT_EQ(links(), 2);
  // A session's links end with it.
  ASSERT_TRUE(session_->close(5 * kSecond).ok());
  ASSERT_TRUE(connect(at("ps1")).ok());
  for (const int64_t until = system_clock().monotonic_ns() + 10 * kSecond; links() > 0 && system_clock().monotonic_ns() < until;) pause();
  EXPECT_EQ(links(), 0);
  expect_steps(3);
  EXPECT_EQ(links(), 2);
}

TEST_F(NeighboursTest, ValuesGoStraightOverTcp) {
  for (const Security security : {Security::tls, Security::clear_frames}) {
    const std::string key = scratch_ / ("job.key" + std::to_string(static_cast<int>(security)));
    ASSERT_TRUE(keygen(key).ok());
    security_ = {.key_file = key, .security = security, .runtime_dir = scratch_.path()};
    const std::string first = loopback_address(), second = loopback_address();
    for (int task = 0; task < 2; ++task) {
      const Status status = serve("ps=" + first + "," + second, task);
      ASSERT_TRUE(status.ok()) << status.message();
    }
    const Status connected = connect(first);
    ASSERT_TRUE(connected.ok()) << connected.message();
    expect_steps(10);
    EXPECT_EQ(links(), 2);
  }
}

// In a sparse cluster tasks need not know of each other.
TEST_F(NeighboursTest, TasksThatCannotReachEachOtherUseTheSession) {
  ASSERT_TRUE(serve(cluster(), 0).ok());
  ASSERT_TRUE(serve(R"({"ps": {"1": ")" + at("ps1") + R"("}})", 1).ok());
  ASSERT_TRUE(connect(at("ps0")).ok());
  expect_steps(10);
  EXPECT_EQ(links(), 0);
}

// Two sessions at once, and runs of one session at once, keep apart what is theirs.
TEST_F(NeighboursTest, ManyStepsAtOnce) {
  for (int task = 0; task < 2; ++task) ASSERT_TRUE(serve(cluster(), task).ok());
  ASSERT_TRUE(connect(at("ps0")).ok());
  ASSERT_TRUE(run(exchange_.assign).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      auto runtime = Runtime::create({.compute_threads = 1}).take();
      const Exchange own(*runtime);
      Ref<Session> session = session_;
      if (t % 2) session = Session::connect(runtime, at("ps1"), own.graph, {}).take();
      const NodeId target = t % 2 ? own.step : exchange_.step;
      for (int i = 0; i < 25; ++i) {
        std::vector<Tensor> none;
        const Status status = session->run({{}, {}, {}, {&target, 1}, 20 * kSecond}, none);
        ASSERT_TRUE(status.ok()) << status.message();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Tensor> out(1);
  ASSERT_TRUE(session_->run({{}, {}, {&exchange_.v, 1}, {}, 20 * kSecond}, out).ok());
  EXPECT_EQ(out[0].as<float>()[0], 102);
  EXPECT_GE(links(), 2);
}

TEST_F(NeighboursTest, OneOfThemDiesAtAnyMoment) {
  for (int i = 0; i < 8; ++i) {
    auto first = std::make_unique<ServerProcess>(cluster(), "ps", 0), second = std::make_unique<ServerProcess>(cluster(), "ps", 1);
    const Status connected = connect(at("ps0"));
    ASSERT_TRUE(connected.ok()) << connected.message();
    ASSERT_TRUE(run(exchange_.assign).ok());
    std::unique_ptr<ServerProcess>& victim = i % 2 ? first : second;
    std::thread killer([&] {
      pause();
      victim->signal(SIGKILL);
    });
    const Status status = step_until_it_fails(5 * kSecond);
    killer.join();
    EXPECT_TRUE(status.code() == Code::unavailable || status.code() == Code::aborted) << "seed " << seed_ << ": " << status.message();
    EXPECT_NE(status.message().find(i % 2 ? "task:0" : "task:1"), std::string::npos) << "seed " << seed_ << ": " << status.message();
    // It comes back with nothing, and both talk to each other again.
    victim->kill();
    victim = std::make_unique<ServerProcess>(cluster(), "ps", i % 2 ? 0 : 1);
    // The other task may have told of the death before the session's own connection did, and then that its state is gone is news.
    Status again = run(exchange_.assign);
    for (int k = 0; k < 2 && (again.code() == Code::unavailable || again.code() == Code::aborted); ++k) again = run(exchange_.assign);
    ASSERT_TRUE(again.ok()) << "seed " << seed_ << ": " << again.message();
    expect_steps(2);
  }
}

TEST_F(NeighboursTest, OneOfThemStopsAtAnyMoment) {
  for (int i = 0; i < 6; ++i) {
    ServerProcess first(cluster(), "ps", 0), second(cluster(), "ps", 1);
    ASSERT_TRUE(connect(at("ps0")).ok());
    ASSERT_TRUE(run(exchange_.assign).ok());
    ServerProcess& victim = i % 2 ? first : second;
    std::thread stopper([&] {
      pause();
      victim.stop();
    });
    const Status status = step_until_it_fails(400 * kMillisecond);
    stopper.join();
    EXPECT_EQ(status.code(), Code::deadline_exceeded) << "seed " << seed_ << ": " << status.message();
    victim.signal(SIGCONT);
    expect_steps(2);
  }
}

}  // namespace
}  // namespace dtg
