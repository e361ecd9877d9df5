// Registering parts: what several ask for at once is prepared once, whoever asked first, however that one ends; nobody waits longer
// than his time, and none has more under way than he may. A gate in the clock stops a preparation in its middle.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "asked_part.h"
#include "cluster/server.h"
#include "graph/build.h"
#include "peer.h"
#include "scratch.h"
#include "seconds.h"
#include "session/runtime.h"
#include "wire/graph_codec.h"

namespace dtg {
namespace {

// The real time, which the test can put forward; and who looks at it next can be made to stand still with his eyes on it.
class GateClock final : public Clock {
 public:
  int64_t monotonic_ns() const override {
    if (shut_.exchange(false)) {
      gate_.change([&] { stands_ = true; });
      gate_.wait(system_clock(), Deadline::never(), [&] { return !stands_; });
    }
    return system_clock().monotonic_ns() + ahead_ns_.load();
  }
  double wall_seconds() const override { return system_clock().wall_seconds(); }
  void wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, int64_t until_ns) const override {
    system_clock().wait(changed, lock, until_ns);
  }
  void shut() { shut_ = true; }
  bool somebody_stands() {
    return gate_.wait(system_clock(), Deadline::after(system_clock(), 20 * kSecond), [&] { return stands_; });
  }
  void open(int64_t ahead_ns = 0) {
    ahead_ns_ += ahead_ns;
    gate_.change([&] { stands_ = false; });
  }

 private:
  mutable std::atomic<bool> shut_{false};
  std::atomic<int64_t> ahead_ns_{0};
  mutable Condition gate_;  // guards stands_
  mutable bool stands_ = false;
};

class Register : public ::testing::Test {
 protected:
  Register() {
    ::chmod(scratch_.path().c_str(), 0700);
    // Two threads of its own: one may stand at the gate.
    runtime_ = Runtime::create({.compute_threads = 3}).take();
    Host host = runtime_->host().take();
    host.seams.clock = &clock_;
    Server::Options options;
    options.cluster = ClusterSpec::parse("ps=unix:" + path_).take();
    auto server = Server::start(host, options, runtime_);
    EXPECT_TRUE(server.ok()) << server.status().message();
    server_ = server.take();
  }
  ~Register() override { clock_.open(); }

  // The bytes of a graph that reads a variable, or destroys it, and their last node.
  struct Part {
    std::string bytes;
    uint32_t target = 0;
  };
  Part part(const std::string& variable, bool destroys = false) {
    auto graph = Graph::create(&runtime_->ops()).take();
    Build b(*graph);
    const Value handle = b.op("VarHandleOp", {}, {{"dtype", DType::f32}, {"shape", Shape()}, {"shared_name", variable}});
    const Value inputs[] = {handle};
    const NodeId target = destroys ? b.node("DestroyResourceOp", inputs) : b.op("ReadVariableOp", {handle}, {{"dtype", DType::f32}}).node();
    EXPECT_TRUE(b.ok()) << b.status().message();
    return {encode_graph(*graph).take(), target};
  }
  Ref<AskedPart> ask(const Part& part, Party party = Party::chief, int64_t left_ns = 1000 * kSecond) {
    auto asked = make_ref<AskedPart>(task(), part.bytes, std::vector<uint32_t>{part.target},
                                     make_ref<Rights>(party, "somebody", task().name()), Deadline::after(system_clock(), left_ns));
    asked->submit();
    return asked;
  }
  // The first is in the middle of it, the second has asked for the same, and the thread that it came on is free again.
  std::pair<Ref<AskedPart>, Ref<AskedPart>> two(const Part& part, Party first = Party::chief, Party second = Party::chief) {
    clock_.shut();
    auto maker = ask(part, first);
    EXPECT_TRUE(clock_.somebody_stands());
    auto other = ask(part, second);
    expect_thread_is_free();
    EXPECT_FALSE(maker->is_told());
    EXPECT_FALSE(other->is_told());
    return {maker, other};
  }
  void expect_thread_is_free() {
    const auto result = ask(part("free" + std::to_string(++made_)))->wait();
    EXPECT_TRUE(result.ok()) << result.status().message();
  }
  // Preparations of what the test is about.
  uint64_t preparations() { return task().preparations() - made_; }

  std::unique_ptr<Peer> session(uint64_t number) {
    auto peer = std::make_unique<Peer>(path_);
    peer->say(wire::make_frame(wire::Hello{.session = number}, 1));
    EXPECT_TRUE(peer->hear<wire::HelloReply>().status.ok());
    return peer;
  }
  static std::string request(const Part& part, int64_t left_ns = 20 * kSecond) {
    const wire::RegisterPart request{.targets = {part.target}, .deadline_left_ns = left_ns};
    return wire::make_head(wire::Kind::register_part, 7, wire::encode(request), part.bytes.size()) + part.bytes;
  }
  // The server has heard all that the session said before.
  static void expect_heard(Peer& peer) {
    peer.say(wire::make_frame(wire::Inspect{}, 8));
    EXPECT_TRUE(peer.hear<wire::InspectReply>().status.ok());
  }
  static Status answer(Peer& peer) { return peer.hear<wire::RegisterReply>().status; }
  dtg::Task& task() { return server_->task(); }

  GateClock clock_;
  Scratch scratch_;
  const std::string path_ = scratch_ / "ps";
  Ref<Runtime> runtime_;
  Ref<Server> server_;
  uint64_t made_ = 0;
};

TEST_F(Register, WhoAsksForTheSameWaitsForIt) {
  const auto [maker, other] = two(part("v"));
  EXPECT_EQ(preparations(), 1u);
  clock_.open();
  const auto made = maker->wait(), got = other->wait();
  ASSERT_TRUE(made.ok()) << made.status().message();
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(made.value().get(), got.value().get());
  EXPECT_EQ(ask(part("v"))->wait().take().get(), made.value().get());
  EXPECT_EQ(preparations(), 1u);
}

TEST_F(Register, WhoseTimeIsOverFailsAlone) {
  clock_.shut();
  const auto maker = ask(part("v"), Party::chief, kSecond);
  ASSERT_TRUE(clock_.somebody_stands());
  const auto other = ask(part("v"));
  expect_thread_is_free();
  clock_.open(2 * kSecond);
  EXPECT_EQ(maker->wait().status().code(), Code::deadline_exceeded);
  const auto got = other->wait();
  EXPECT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(preparations(), 2u);
}

TEST_F(Register, WhoMayNotFailsAlone) {
  const auto [maker, other] = two(part("v", true), Party::worker, Party::chief);
  clock_.open();
  EXPECT_EQ(maker->wait().status().code(), Code::permission_denied);
  EXPECT_TRUE(other->wait().ok());
  // And the other way round.
  const auto [chief, worker] = two(part("w", true), Party::chief, Party::worker);
  clock_.open();
  EXPECT_TRUE(chief->wait().ok());
  EXPECT_EQ(worker->wait().status().code(), Code::permission_denied);
  EXPECT_EQ(preparations(), 3u);
}

TEST_F(Register, WhatIsNoPartIsNoneForAll) {
  Part broken = part("v");
  broken.bytes.resize(broken.bytes.size() / 2);
  const auto [maker, other] = two(broken);
  clock_.open();
  EXPECT_EQ(maker->wait().status().code(), Code::data_loss);
  EXPECT_EQ(other->wait().status().code(), Code::data_loss);
  EXPECT_EQ(preparations(), 1u);
}

TEST_F(Register, WhoHasGivenUpIsNotServed) {
  const auto [maker, other] = two(part("v"));
  maker->give_up();  // too late for itself, and nothing to the other
  clock_.open();
  EXPECT_TRUE(other->wait().ok());
  EXPECT_EQ(preparations(), 1u);
  auto gone =
      make_ref<AskedPart>(task(), part("w").bytes, std::vector<uint32_t>{0}, make_ref<Rights>(Party::chief, "somebody", task().name()));
  gone->give_up();
  gone->submit();
  EXPECT_EQ(gone->wait().status().code(), Code::cancelled);
  EXPECT_EQ(preparations(), 1u);
  EXPECT_EQ(maker->times(), 1);
  EXPECT_EQ(gone->times(), 1);
}

// Eight workers start at once, and the one that came first dies while its part is being prepared.
TEST_F(Register, EightSessionsAtOnce) {
  const Part shared = part("v");
  std::vector<std::unique_ptr<Peer>> sessions;
  for (uint64_t i = 1; i <= 8; ++i) sessions.push_back(session(i));
  clock_.shut();
  sessions[0]->say(request(shared));
  ASSERT_TRUE(clock_.somebody_stands());
  for (const auto& peer : sessions) {
    if (peer != sessions[0]) peer->say(request(shared));
    expect_heard(*peer);
  }
  expect_thread_is_free();
  sessions.erase(sessions.begin());
  while (server_->inspect().take().find("session 1\"") != std::string::npos) ::usleep(1000);
  EXPECT_EQ(preparations(), 1u);
  clock_.open();
  for (const auto& peer : sessions) {
    const Status status = answer(*peer);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  EXPECT_EQ(preparations(), 1u);
  // It is kept as long as anybody has it.
  const auto late = session(9);
  late->say(request(shared));
  EXPECT_TRUE(answer(*late).ok());
  EXPECT_EQ(preparations(), 1u);
}

// The answer comes in time although the preparation stands, to the one whose it is and to the one who waits for it.
TEST_F(Register, NobodyWaitsLongerThanHisTime) {
  const auto patient = session(1), first = session(2), second = session(3);
  clock_.shut();
  first->say(request(part("v"), kSecond / 10));
  ASSERT_TRUE(clock_.somebody_stands());
  second->say(request(part("v"), kSecond / 5));
  patient->say(request(part("v")));
  EXPECT_EQ(answer(*first).code(), Code::deadline_exceeded);
  EXPECT_EQ(answer(*second).code(), Code::deadline_exceeded);
  expect_heard(*patient);
  expect_thread_is_free();
  clock_.open();
  const Status status = answer(*patient);
  EXPECT_TRUE(status.ok()) << status.message();
  // They are told once, and may ask again.
  for (Peer* const peer : {first.get(), second.get()}) {
    peer->say(request(part("w")));
    const auto reply = peer->hear<wire::RegisterReply>();
    EXPECT_TRUE(reply.status.ok()) << reply.status.message();
    EXPECT_EQ(reply.part, 1u);
  }
}

// What is ready when the server has stopped is kept by nobody: it would keep the task, and the task it.
TEST_F(Register, NothingIsKeptOfAServerThatStopped) {
  Host host = runtime_->host().take();
  const int64_t before = host.seams.budget->used();
  clock_.shut();
  auto maker = ask(part("v"));
  ASSERT_TRUE(clock_.somebody_stands());
  ASSERT_TRUE(server_->stop(kSecond).ok());
  clock_.open();
  EXPECT_TRUE(maker->wait().ok());
  EXPECT_GT(host.seams.budget->used(), before);
  maker = nullptr;
  server_ = nullptr;
  // The thread of the pool lets go of it in its time.
  const Deadline patience = Deadline::after(system_clock(), 20 * kSecond);
  while (host.seams.budget->used() > before && !patience.passed(system_clock())) ::usleep(1000);
  EXPECT_EQ(host.seams.budget->used(), before);
}

TEST_F(Register, SixtyFourAtATime) {
  const auto greedy = session(1), other = session(2);
  const Part wanted = part("v");
  clock_.shut();
  greedy->say(request(wanted));
  ASSERT_TRUE(clock_.somebody_stands());
  for (int i = 1; i < 70; ++i) greedy->say(request(wanted));
  for (int i = 0; i < 6; ++i) {
    const Status status = answer(*greedy);
    EXPECT_EQ(status.code(), Code::resource_exhausted);
    EXPECT_NE(status.message().find("64 parts of this session"), std::string::npos) << status.message();
  }
  other->say(request(part("w")));
  EXPECT_TRUE(answer(*other).ok());
  clock_.open();
  for (int i = 0; i < 64; ++i) {
    const Status status = answer(*greedy);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  greedy->say(request(wanted));
  EXPECT_TRUE(answer(*greedy).ok());
  EXPECT_EQ(preparations(), 2u);
}

}  // namespace
}  // namespace dtg
