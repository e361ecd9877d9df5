// Sessions of a task: a server in this process is shared without a socket, another one is reached over one; values pass
// between two others; repeated runs; what only the chief may do.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cluster/server.h"
#include "graph/build.h"
#include "process.h"
#include "scratch.h"
#include "seconds.h"
#include "session/async_run.h"
#include "tensor/text.h"

namespace dtg {
namespace {

// One worker's program: its own server, graph and session, as between-graph replication has it.
struct Member {
  Ref<Runtime> runtime;
  Ref<Graph> graph;
  Ref<Server> server;
  Ref<Session> session;
  std::unique_ptr<Build> build;

  Member()
      : runtime(Runtime::create({.compute_threads = 2}).take()), graph(Graph::create(&runtime->ops()).take()), build(new Build(*graph)) {}
  ~Member() {
    session = nullptr;
    server = nullptr;
  }
  Status serve(const std::string& cluster, const std::string& job, int task, std::vector<std::string> filters = {}) {
    Server::Options options;
    DTG_ASSIGN(options.cluster, ClusterSpec::parse(cluster));
    options.job = job;
    options.task = task;
    options.filters = std::move(filters);
    DTG_ASSIGN(const Host host, runtime->host());
    DTG_ASSIGN(server, Server::start(host, std::move(options), runtime));
    return {};
  }
  Status connect(const std::string& target) {
    Session::Options options;
    options.connect_timeout_ns = 20 * kSecond;
    DTG_ASSIGN(session, Session::connect(runtime, target, graph, options));
    return {};
  }
  Value on(const std::string& device, const std::function<Value()>& make) {
    graph->push_device(device);
    const Value value = make();
    EXPECT_TRUE(graph->pop_device().ok());
    return value;
  }
  Value variable(const std::string& device, const char* name) {
    return on(device, [&] {
      return build->op("VarHandleOp", {}, {{"dtype", DType::f32}, {"shape", PartialShape::scalar()}, {"shared_name", name}});
    });
  }
  NodeId node(const char* op, std::vector<Value> inputs) { return build->node(op, inputs); }
  Value read(Value handle) { return build->op("ReadVariableOp", {handle}, {{"dtype", DType::f32}}); }
  Status run(std::vector<NodeId> targets, std::vector<Value> fetches = {}, std::vector<Tensor>* out = nullptr) {
    EXPECT_TRUE(build->ok()) << build->status().message();
    std::vector<Tensor> unused;
    if (!out) out = &unused;
    out->assign(fetches.size(), Tensor());
    return session->run({{}, {}, fetches, targets, 20 * kSecond}, *out);
  }
  float fetch(Value value) {
    std::vector<Tensor> out;
    const Status status = run({}, {value}, &out);
    EXPECT_TRUE(status.ok()) << status.message();
    return status.ok() ? *out[0].as<float>() : -1;
  }
};

class Home : public ::testing::Test {
 protected:
  Home() { ::chmod(scratch_.path().c_str(), 0700); }
  std::string at(const std::string& name) const { return "unix:" + (scratch_ / name); }
  std::string cluster() const { return "ps=" + at("ps0") + "," + at("ps1") + ";worker=" + at("w0") + "," + at("w1"); }
  Scratch scratch_;
};

TEST_F(Home, AServerOfThisProcessIsSharedWithoutASocket) {
  Member member;
  ASSERT_TRUE(member.serve("worker=" + at("w0"), "worker", 0).ok());
  ASSERT_TRUE(member.connect(member.server->target()).ok());
  ASSERT_EQ(member.session->devices().size(), 1u);
  EXPECT_EQ(member.session->devices()[0].text, "/job:worker/replica:0/task:0/device:CPU:0");
  const Value w = member.variable("", "w");
  ASSERT_TRUE(member.run({member.node("AssignVariableOp", {w, member.build->scalar(DType::f32, 3)})}).ok());
  EXPECT_EQ(member.fetch(member.read(w)), 3);
  // The variable belongs to the task, so another session finds it, and a second graph, too.
  ASSERT_TRUE(member.connect(member.server->target()).ok());
  EXPECT_EQ(member.fetch(member.read(w)), 3);
  auto status = member.server->inspect();
  ASSERT_TRUE(status.ok());
  EXPECT_NE(status.value().find("\"sessions\":[]"), std::string::npos) << status.value();
  EXPECT_NE(status.value().find("\"count\":1"), std::string::npos) << status.value();
}

// The program is told, in the run that waits and in those that come; the session closes as ever.
TEST_F(Home, AServerThatStopsTakesItsSessionsAlong) {
  Member alone;
  ASSERT_TRUE(alone.serve("worker=" + at("w0"), "worker", 0).ok());
  ASSERT_TRUE(alone.connect(alone.server->target()).ok());
  const Value queue =
      alone.build->op("FIFOQueueV2", {}, {{"component_types", std::vector<DType>{DType::f32}}, {"shared_name", std::string("q")}});
  const Value blocked = alone.build->op("QueueDequeueV2", {queue}, {{"component_types", std::vector<DType>{DType::f32}}});
  const Value one = alone.build->scalar(DType::f32, 1);
  EXPECT_EQ(alone.fetch(one), 1);
  const NodeId target = blocked.node();
  auto events = CompletionQueue::create().take();
  auto run = alone.session->run_async({{}, {}, {}, {&target, 1}, 20 * kSecond}, events, 1);
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_TRUE(alone.server->stop(kSecond).ok());
  CompletionQueue::Event event;
  ASSERT_EQ(events->next({&event, 1}, alone.runtime->clock(), Deadline::after(alone.runtime->clock(), 20 * kSecond)), 1u);
  EXPECT_EQ(event.status.code(), Code::unavailable) << event.status.message();
  const Status late = alone.run({}, {one});
  EXPECT_EQ(late.code(), Code::unavailable) << late.message();
  EXPECT_NE(late.message().find("was stopped"), std::string::npos) << late.message();
  EXPECT_TRUE(alone.session->close(kSecond).ok());
}

// Fed here, changed there, joined with constants on both sides; short ones, and more than one frame holds. Tables live where they were put.
TEST_F(Home, StringsAndTablesOfAnotherTask) {
  ServerProcess ps(cluster(), "ps", 0);
  Member a;
  ASSERT_TRUE(a.serve(cluster(), "worker", 0, {"/job:ps/task:0"}).ok());
  ASSERT_TRUE(a.connect(a.server->target()).ok());
  Build& b = *a.build;
  const std::vector<Text> marks = {std::string_view("!")};
  const Value mark = b.constant(make_texts(Shape::of({1}), marks).take());
  const Value words = b.op("Placeholder", {}, {{"dtype", DType::string}, {"shape", PartialShape::vector(-1)}});
  const Value there = a.on("/job:ps", [&] {
    return b.op("StringJoin", {b.op("StringUpper", {words}), b.op("GatherV2", {mark, b.integer(0), b.integer(0)})});
  });
  const Value table = a.on("/job:ps", [&] {
    return b.op("MutableHashTableV2", {}, {{"key_dtype", DType::string}, {"value_dtype", DType::i64}, {"shared_name", "words"}});
  });
  const Value found = b.op("LookupTableFindV2", {table, there, b.integer(-1, DType::i64)});
  const NodeId insert =
      b.node("LookupTableInsertV2",
             std::vector<Value>{
                 table, there,
                 b.op("Range", {b.integer(0, DType::i64), b.op("Size", {words}, {{"out_type", DType::i64}}), b.integer(1, DType::i64)})});
  ASSERT_TRUE(b.ok()) << b.status().message();
  for (const size_t size : {size_t{0}, size_t{3}, size_t{3} << 20}) {
    const std::string large(size, 'q');
    const std::vector<Text> list = {std::string_view("a"), std::string_view(large), std::string_view("b\0c", 3)};
    const Tensor fed = make_texts(Shape::of({3}), list).take();
    const Tensor* const feed = &fed;
    std::vector<Tensor> got(2);
    const Value fetches[] = {there, found};
    Status status = a.session->run({{&words, 1}, {&feed, 1}, {}, {&insert, 1}, 20 * kSecond}, {});
    ASSERT_TRUE(status.ok()) << status.message();
    status = a.session->run({{&words, 1}, {&feed, 1}, fetches, {}, 20 * kSecond}, got);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(texts_of(got[0])[0].view(), "A!");
    EXPECT_EQ(texts_of(got[0])[1].view(), std::string(size, 'Q') + "!");
    EXPECT_EQ(texts_of(got[0])[2].view(), std::string_view("B\0C!", 4));
    EXPECT_EQ(got[1].int_at(2), 2);
  }
}

TEST_F(Home, WorkersMeetAtAParameterServer) {
  ServerProcess ps(cluster(), "ps", 0);
  Member a, b;
  ASSERT_TRUE(a.serve(cluster(), "worker", 0, {"/job:ps/task:0"}).ok());
  ASSERT_TRUE(b.serve(cluster(), "worker", 1, {"/job:ps/task:0"}).ok());
  ASSERT_TRUE(a.connect(a.server->target()).ok());
  const Status second = b.connect(b.server->target());
  ASSERT_TRUE(second.ok()) << second.message();
  ASSERT_EQ(b.session->devices().size(), 2u);
  EXPECT_EQ(b.session->devices()[0].text, "/job:worker/replica:0/task:1/device:CPU:0");
  const Value wa = a.variable("/job:ps", "w"), wb = b.variable("/job:ps", "w");
  ASSERT_TRUE(a.run({a.node("AssignVariableOp", {wa, a.build->scalar(DType::f32, 1)})}).ok());
  EXPECT_EQ(b.fetch(b.build->add(b.read(wb), b.build->scalar(DType::f32, 1))), 2);
  ASSERT_TRUE(b.run({b.node("AssignAddVariableOp", {wb, b.build->scalar(DType::f32, 5)})}).ok());
  EXPECT_EQ(a.fetch(a.read(wa)), 6);
  // The first worker is the chief; the other may not replace what has a value.
  const Status refused = b.run({b.node("AssignVariableOp", {wb, b.build->scalar(DType::f32, 9)})});
  EXPECT_EQ(refused.code(), Code::permission_denied) << refused.message();
  EXPECT_EQ(a.fetch(a.read(wa)), 6);
  EXPECT_EQ(b.session->reset({}).code(), Code::permission_denied);
  EXPECT_EQ(b.session->end_job_now(kSecond).code(), Code::permission_denied);
  const Value fresh = b.variable("/job:ps", "of worker 1");
  EXPECT_TRUE(b.run({b.node("AssignVariableOp", {fresh, b.build->scalar(DType::f32, 9)})}).ok());
  EXPECT_TRUE(a.session->end_job_now(5 * kSecond).ok());
  EXPECT_EQ(ps.end(), 0);
  // Whoever comes late is told at once that there is nothing to wait for.
  const Status late = b.run({b.node("AssignAddVariableOp", {fresh, b.build->scalar(DType::f32, 1)})});
  EXPECT_EQ(late.code(), Code::cancelled) << late.message();
}

// Questions that need nothing of what a task held reach it in its next life at once; that its state is gone is told to the next run.
TEST_F(Home, TheEndReachesATaskThatWasStartedAnew) {
  auto ps = std::make_unique<ServerProcess>(cluster(), "ps", 0);
  Member chief;
  ASSERT_TRUE(chief.serve(cluster(), "worker", 0, {"/job:ps/task:0"}).ok());
  ASSERT_TRUE(chief.connect(chief.server->target()).ok());
  const NodeId assign = chief.node("AssignVariableOp", {chief.variable("/job:ps", "w"), chief.build->scalar(DType::f32, 4)});
  ASSERT_TRUE(chief.run({assign}).ok());
  ps->kill();
  ps = std::make_unique<ServerProcess>(cluster(), "ps", 0);
  const auto told = chief.session->inspect_cluster(20 * kSecond);
  ASSERT_TRUE(told.ok()) << told.status().message();
  EXPECT_EQ(told.value().find("\"error\""), std::string::npos) << told.value();
  const auto outcome = chief.session->outcome(1, 20 * kSecond);
  EXPECT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(chief.run({assign}).code(), Code::aborted) << "told to who needs the state";
  EXPECT_TRUE(chief.run({assign}).ok());
  ps->kill();
  ps = std::make_unique<ServerProcess>(cluster(), "ps", 0);
  const Status ended = chief.session->end_job_now(20 * kSecond);
  EXPECT_TRUE(ended.ok()) << ended.message();
  EXPECT_EQ(ps->end(), 0);
}

TEST_F(Home, ValuesPassBetweenTwoOtherTasks) {
  ServerProcess first(cluster(), "ps", 0), second(cluster(), "ps", 1);
  Member member;
  ASSERT_TRUE(member.serve(cluster(), "worker", 0, {"/job:ps"}).ok());
  ASSERT_TRUE(member.connect(member.server->target()).ok());
  Build& b = *member.build;
  const Value w = member.variable("/job:ps/task:0", "w"), v = member.variable("/job:ps/task:1", "v");
  ASSERT_TRUE(member
                  .run({member.node("AssignVariableOp", {w, b.scalar(DType::f32, 2)}),
                        member.node("AssignVariableOp", {v, b.scalar(DType::f32, 0)})})
                  .ok());
  // v += w * w computed on the second task from a value of the first; then w reads back what v became.
  const Value squared = member.on("/job:ps/task:1", [&] {
    const Value now = member.read(w);
    return b.mul(now, now);
  });
  const NodeId added = member.node("AssignAddVariableOp", {v, squared});
  member.graph->push_controls({&added, 1});
  const NodeId back = member.node(
      "AssignAddVariableOp", {w, member.on("/job:ps/task:0", [&] { return b.add(b.scalar(DType::f32, 1), b.scalar(DType::f32, 0)); })});
  ASSERT_TRUE(member.graph->pop_controls().ok());
  for (int i = 0; i < 20; ++i) {
    const Status status = member.run({added, back});
    ASSERT_TRUE(status.ok()) << status.message();
  }
  float expected = 0;
  for (int i = 0; i < 20; ++i) expected += static_cast<float>((2 + i) * (2 + i));
  EXPECT_EQ(member.fetch(member.read(v)), expected);
  EXPECT_EQ(member.fetch(member.read(w)), 22);
}

TEST_F(Home, RepeatedRunsServeTheOthersUntilTheyAreCancelled) {
  ServerProcess ps(cluster(), "ps", 0);
  Member member;
  ASSERT_TRUE(member.serve(cluster(), "worker", 0, {"/job:ps/task:0"}).ok());
  ASSERT_TRUE(member.connect(member.server->target()).ok());
  Build& b = *member.build;
  const auto queue = [&](const char* name) {
    return member.on("/job:ps", [&] {
      return b.op("FIFOQueueV2", {},
                  {{"component_types", std::vector<DType>{DType::f32}},
                   {"shapes", std::vector<PartialShape>{PartialShape::scalar()}},
                   {"shared_name", std::string(name)}});
    });
  };
  const Value in = queue("in"), out = queue("out");
  const Value w = member.variable("/job:ps", "w");
  ASSERT_TRUE(member.run({member.node("AssignVariableOp", {w, b.scalar(DType::f32, 0)})}).ok());
  const auto dequeue = [&](Value from) { return b.op("QueueDequeueV2", {from}, {{"component_types", std::vector<DType>{DType::f32}}}); };
  const NodeId add = member.node("AssignAddVariableOp", {w, dequeue(in)});
  member.graph->push_controls({&add, 1});
  const Value now = member.read(w);
  ASSERT_TRUE(member.graph->pop_controls().ok());
  const NodeId update = member.node("QueueEnqueueV2", {out, now});
  auto completions = CompletionQueue::create().take();
  auto loop = member.session->run_repeatedly({&update, 1}, completions, 7);
  ASSERT_TRUE(loop.ok()) << loop.status().message();
  const NodeId give = member.node("QueueEnqueueV2", {in, b.scalar(DType::f32, 2)});
  const Value taken = dequeue(out);
  for (int i = 1; i <= 50; ++i) {
    ASSERT_TRUE(member.run({give}).ok());
    EXPECT_EQ(member.fetch(taken), static_cast<float>(2 * i));
  }
  loop.value()->cancel();
  CompletionQueue::Event event;
  ASSERT_EQ(completions->next({&event, 1}, member.runtime->clock(), Deadline::after(member.runtime->clock(), 10 * kSecond)), 1u);
  EXPECT_EQ(event.tag, 7u);
  EXPECT_EQ(event.status.code(), Code::cancelled) << event.status.message();
}

// A part whose resource another session destroyed is refused before anything is done, and registered again in the same call.
TEST_F(Home, ARefusedPartIsRegisteredAgainWithinTheCall) {
  ServerProcess ps(cluster(), "ps", 0);
  Member chief, other;
  ASSERT_TRUE(chief.serve(cluster(), "worker", 0, {"/job:ps/task:0"}).ok());
  ASSERT_TRUE(other.serve(cluster(), "worker", 1, {"/job:ps/task:0"}).ok());
  ASSERT_TRUE(chief.connect(chief.server->target()).ok());
  ASSERT_TRUE(other.connect(other.server->target()).ok());
  const Value mine = chief.variable("/job:ps", "w"), theirs = other.variable("/job:ps", "w");
  const NodeId assign = chief.node("AssignVariableOp", {mine, chief.build->scalar(DType::f32, 4)});
  ASSERT_TRUE(chief.run({assign}).ok());
  const Value now = other.read(theirs);
  EXPECT_EQ(other.fetch(now), 4);
  ASSERT_TRUE(chief.session->reset({}).ok());
  ASSERT_TRUE(chief.run({assign}).ok());
  EXPECT_EQ(other.fetch(now), 4);
}

}  // namespace
}  // namespace dtg
