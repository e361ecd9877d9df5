// Sessions that connect anew, tasks that answer nobody, and ends that keep different times: what was begun over an old connection
// has no effect beside what takes its place, and nobody waits longer than was asked.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "cluster/server.h"
#include "graph/build.h"
#include "peer.h"
#include "scratch.h"
#include "seconds.h"
#include "session/async_run.h"
#include "wire/graph_codec.h"

namespace dtg {
namespace {

constexpr const char* kPs = "/job:ps/replica:0/task:0/device:CPU:0";

int64_t now() { return system_clock().monotonic_ns(); }

// Accepts nobody, and yet whoever connects is connected.
class DeafListener {
 public:
  explicit DeafListener(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(socket_, 64), 0);
  }
  ~DeafListener() { ::close(socket_); }

 private:
  const int socket_;
};

class Anew : public ::testing::Test {
 protected:
  Anew() {
    ::chmod(scratch_.path().c_str(), 0700);
    there_ = Runtime::create({.compute_threads = 2}).take();
    here_ = Runtime::create({.compute_threads = 2}).take();
  }
  void serve(Timing timing = {}, const std::string& more = "") {
    Server::Options options;
    options.cluster = ClusterSpec::parse("ps=unix:" + path_ + more).take();
    options.job = "ps";
    options.timing = timing;
    auto server = Server::start(there_->host().take(), options, there_);
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = server.take();
  }
  void connect(Session::Options options = {}) {
    graph_ = Graph::create(&here_->ops()).take();
    build_.emplace(*graph_);
    auto session = Session::connect(here_, "unix:" + path_, graph_, options);
    ASSERT_TRUE(session.ok()) << session.status().message();
    session_ = session.take();
  }
  static Value variable(Build& b) {
    return b.op("VarHandleOp", {}, {{"dtype", DType::f32}, {"shape", Shape()}, {"shared_name", std::string("v")}});
  }
  static Value queue(Build& b) {
    return b.op("FIFOQueueV2", {}, {{"component_types", std::vector<DType>{DType::f32}}, {"shared_name", std::string("q")}});
  }
  float fetch(Value value) {
    std::vector<Tensor> out(1);
    const Status status = session_->run({{}, {}, {&value, 1}, {}, 10 * kSecond}, out);
    EXPECT_TRUE(status.ok()) << status.message();
    return !status.ok() ? -1 : out[0].dtype() == DType::i32 ? static_cast<float>(out[0].as<int32_t>()[0]) : out[0].as<float>()[0];
  }
  Status run(NodeId target, int64_t timeout_ns = 10 * kSecond) { return session_->run({{}, {}, {}, {&target, 1}, timeout_ns}, {}); }
  // The server ends, and the session has heard of it: what it begins from now on dials anew.
  void end_service(NodeId target) {
    ASSERT_TRUE(server_->stop(kSecond).ok());
    const Status gone = run(target, kSecond / 10);
    ASSERT_TRUE(gone.code() == Code::unavailable || gone.code() == Code::deadline_exceeded) << gone.message();
  }

  Scratch scratch_;
  const std::string path_ = scratch_ / "ps";
  Ref<Runtime> there_, here_;
  Ref<Server> server_;
  Ref<Graph> graph_;
  std::optional<Build> build_;
  Ref<Session> session_;
};

// A run that waits in a queue must not go on beside the one that its session begins over its next connection.
TEST_F(Anew, WhatTheOldConnectionBeganIsOverFirst) {
  serve();
  connect();
  Build& b = *build_;
  graph_->push_device(kPs);
  const Value v = variable(b), q = queue(b);
  const NodeId init = b.op("AssignVariableOp", {v, b.scalar(DType::f32, 0)}).node();
  const NodeId put = b.op("QueueEnqueueV2", {q, b.scalar(DType::f32, 1)}).node();
  const Value read = b.op("ReadVariableOp", {v}, {{"dtype", DType::f32}}), size = b.op("QueueSizeV2", {q});
  ASSERT_TRUE(run(init).ok());
  ASSERT_EQ(fetch(size), 0);

  auto graph = Graph::create(&here_->ops()).take();
  Build part(*graph);
  graph->push_device(kPs);
  const Value taken = part.op("QueueDequeueV2", {queue(part)}, {{"component_types", std::vector<DType>{DType::f32}}});
  const NodeId add = part.op("AssignAddVariableOp", {variable(part), taken}).node();
  ASSERT_TRUE(part.ok()) << part.status().message();
  const std::string bytes = encode_graph(*graph).take();
  const std::string hello = wire::make_frame(wire::Hello{.session = 77}, 1);

  Peer before(path_);
  before.say(hello);
  ASSERT_TRUE(before.hear<wire::HelloReply>().status.ok());
  before.say(wire::make_head(wire::Kind::register_part, 7, wire::encode(wire::RegisterPart{.targets = {add}}), bytes.size()) + bytes);
  const auto registered = before.hear<wire::RegisterReply>();
  ASSERT_TRUE(registered.status.ok()) << registered.status.message();
  for (uint64_t k = 1; k <= 20; ++k) {
    before.say(wire::make_frame(wire::RunPart{.part = registered.part, .sequence = k, .deadline_left_ns = 60 * kSecond}));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));

  Peer after(path_);
  after.say(hello);
  ASSERT_TRUE(after.hear<wire::HelloReply>().status.ok());
  // Nobody takes what is put now.
  ASSERT_TRUE(run(put).ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(fetch(size), 1);
  EXPECT_EQ(fetch(read), 0);
  EXPECT_TRUE(before.is_closed_within(1000));
}

// To ask twice for one run is an offence, not a second run.
TEST_F(Anew, AStepIsAskedForOnce) {
  serve();
  connect();
  auto graph = Graph::create(&here_->ops()).take();
  Build part(*graph);
  graph->push_device(kPs);
  const NodeId taken = part.op("QueueDequeueV2", {queue(part)}, {{"component_types", std::vector<DType>{DType::f32}}}).node();
  const std::string bytes = encode_graph(*graph).take();
  for (int round = 0; round < 50; ++round) {
    Peer peer(path_);
    peer.say(wire::make_frame(wire::Hello{.session = 5}, 1));
    ASSERT_TRUE(peer.hear<wire::HelloReply>().status.ok());
    peer.say(wire::make_head(wire::Kind::register_part, 7, wire::encode(wire::RegisterPart{.targets = {taken}}), bytes.size()) + bytes);
    const auto registered = peer.hear<wire::RegisterReply>();
    ASSERT_TRUE(registered.status.ok()) << registered.status.message();
    const std::string ask = wire::make_frame(wire::RunPart{.part = registered.part, .sequence = 3, .deadline_left_ns = 2'000'000});
    peer.say(ask);
    std::this_thread::sleep_for(std::chrono::microseconds(round * 100));  // around its deadline
    peer.say(ask);
  }
  Peer peer(path_);
  peer.say(wire::make_frame(wire::Hello{.session = 5}, 1));
  EXPECT_TRUE(peer.hear<wire::HelloReply>().status.ok());
}

TEST_F(Anew, EndsWithDifferentTimesAgree) {
  // The session by itself would be heard of once a second; a busy machine may keep it from that for half of one.
  serve({.heartbeat_ns = 100'000'000, .dead_ns = 900'000'000});
  connect();
  Build& b = *build_;
  graph_->push_device(kPs);
  const Value v = variable(b);
  ASSERT_TRUE(run(b.op("AssignVariableOp", {v, b.scalar(DType::f32, 4)}).node()).ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(2'500));
  // Still the connection that has the part.
  const std::string state = server_->inspect().take();
  EXPECT_NE(state.find("\"parts\":1"), std::string::npos) << state;
}

// A plan that needs a task which does not answer keeps nobody waiting: neither the caller, nor a thread, nor other plans.
TEST_F(Anew, AsynchronousRunsReturnAtOnce) {
  serve();
  connect();
  Build& b = *build_;
  graph_->push_device(kPs);
  const Value v = variable(b);
  const NodeId assign = b.op("AssignVariableOp", {v, b.scalar(DType::f32, 4)}).node();
  ASSERT_TRUE(run(assign).ok());
  end_service(assign);
  const DeafListener deaf(path_);
  auto events = CompletionQueue::create().take();
  std::vector<Ref<AsyncRun>> runs;
  const int64_t began = now();
  for (int i = 0; i < 20; ++i) {
    const Value fetches[] = {b.op("ReadVariableOp", {v}, {{"dtype", DType::f32}})};
    auto started = session_->run_async({{}, {}, fetches, {}, 4 * kSecond}, events, static_cast<uint64_t>(i));
    ASSERT_TRUE(started.ok()) << started.status().message();
    runs.push_back(started.take());
  }
  EXPECT_LT(now() - began, kSecond * 39 / 10);  // on a busy machine; one that waited would take its four seconds
  runs[19]->cancel();
  CompletionQueue::Event event;
  ASSERT_EQ(events->next({&event, 1}, system_clock(), Deadline::after(system_clock(), 2 * kSecond)), 1u);
  EXPECT_EQ(event.tag, 19u);
  EXPECT_EQ(event.status.code(), Code::cancelled);
  for (int i = 0; i < 19; ++i) {
    ASSERT_EQ(events->next({&event, 1}, system_clock(), Deadline::after(system_clock(), 8 * kSecond)), 1u);
    // One plan after the other looks a second for the task; those that do not get their turn run out of time.
    const Code code = event.status.code();
    EXPECT_TRUE(code == Code::unavailable || code == Code::deadline_exceeded) << event.status.message();
  }
  EXPECT_LT(now() - began, 12 * kSecond);
  const int64_t asked = now();
  EXPECT_TRUE(session_->inspect_cluster(kSecond / 2).ok());  // which tells what is wrong with whom
  EXPECT_LT(now() - asked, 4 * kSecond);
}

// The end of the session is the end of plans in the making.
TEST_F(Anew, ClosingEndsPlansInTheMaking) {
  serve();
  connect();
  Build& b = *build_;
  graph_->push_device(kPs);
  const Value v = variable(b);
  const NodeId assign = b.op("AssignVariableOp", {v, b.scalar(DType::f32, 4)}).node();
  ASSERT_TRUE(run(assign).ok());
  end_service(assign);
  const DeafListener deaf(path_);
  auto events = CompletionQueue::create().take();
  for (int i = 0; i < 20; ++i) {
    const Value fetches[] = {b.op("ReadVariableOp", {v}, {{"dtype", DType::f32}})};
    ASSERT_TRUE(session_->run_async({{}, {}, fetches, {}, 60 * kSecond}, events, 1).ok());
  }
  const int64_t began = now();
  ASSERT_TRUE(session_->close(10 * kSecond).ok());
  EXPECT_LT(now() - began, 5 * kSecond);
  CompletionQueue::Event event;
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(events->next({&event, 1}, system_clock(), Deadline::after(system_clock(), kSecond)), 1u);
    EXPECT_EQ(event.status.code(), Code::cancelled) << event.status.message();
  }
}

// A neighbour that answers nobody takes no thread from the others.
TEST_F(Anew, ADeafNeighbourKeepsNobodyWaiting) {
  there_ = Runtime::create({.compute_threads = 1}).take();
  const std::string deaf_path = scratch_ / "deaf";
  const DeafListener deaf(deaf_path);
  serve({}, ";worker=unix:" + deaf_path);
  // A session sees only who is there; the part of a peer sends to the other one.
  auto graph = Graph::create(&here_->ops()).take();
  Build part(*graph);
  graph->push_device(kPs);
  const Value sent = part.op("ReadVariableOp", {variable(part)}, {{"dtype", DType::f32}});
  const NodeId send = part.op("_Send", {sent}, {{"edge", int64_t{1}}, {"peer", std::string("/job:worker/replica:0/task:0")}}).node();
  ASSERT_TRUE(part.ok()) << part.status().message();
  const std::string bytes = encode_graph(*graph).take();
  auto plain_graph = Graph::create(&here_->ops()).take();
  Build plain(*plain_graph);
  plain_graph->push_device(kPs);
  const NodeId asked = plain.op("VarIsInitializedOp", {variable(plain)}).node();
  const std::string plain_bytes = encode_graph(*plain_graph).take();

  Peer other(path_), peer(path_);
  other.say(wire::make_frame(wire::Hello{.session = 8}, 1));
  peer.say(wire::make_frame(wire::Hello{.session = 7}, 1));
  ASSERT_TRUE(other.hear<wire::HelloReply>().status.ok());
  ASSERT_TRUE(peer.hear<wire::HelloReply>().status.ok());
  const int64_t began = now();
  for (uint32_t call = 1; call <= 4; ++call)
    peer.say(wire::make_head(wire::Kind::register_part, call, wire::encode(wire::RegisterPart{.targets = {send}}), bytes.size()) + bytes);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  other.say(wire::make_head(wire::Kind::register_part, 7, wire::encode(wire::RegisterPart{.targets = {asked}}), plain_bytes.size()) +
            plain_bytes);
  const auto registered = other.hear<wire::RegisterReply>();
  ASSERT_TRUE(registered.status.ok()) << registered.status.message();
  for (uint64_t k = 1; k <= 50; ++k) {
    other.say(wire::make_frame(wire::RunPart{.part = registered.part, .sequence = k, .deadline_left_ns = kSecond}));
    const auto reply = other.hear<wire::RunReply>();
    ASSERT_TRUE(reply.status.ok()) << reply.status.message();
  }
  EXPECT_LT(now() - began, 2 * kSecond);
  // The neighbour is given up in time, too.
  const auto answer = peer.hear<wire::RegisterReply>();
  EXPECT_EQ(answer.unreachable, std::vector<std::string>{"/job:worker/replica:0/task:0"}) << answer.status.message();
  EXPECT_LT(now() - began, 6 * kSecond);
}

}  // namespace
}  // namespace dtg
