// Functions that write on a task in more than one unit: bodies that wait, loops in bodies, loops where the task keeps a log. Each is tried
// on a task that keeps its state in memory and on one that keeps it in a log; the latter is killed, and must come back with what was
// there. Moments come from the order of calls only.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <thread>

#include "graph/build.h"
#include "graph/closure.h"
#include "process.h"
#include "scratch.h"
#include "seconds.h"
#include "session/async_run.h"

namespace dtg {
namespace {

class Strand : public ::testing::TestWithParam<bool> {
 protected:
  using Acts = std::vector<NodeId>;

  Strand() {
    ::chmod(scratch_.path().c_str(), 0700);
    runtime_ = Runtime::create({.compute_threads = 2}).take();
    serve();
    graph_ = Graph::create(&runtime_->ops()).take();
    graph_->push_device("/job:ps/task:0");
    build_.emplace(*graph_);
    v_ = variable("v");
    w_ = variable("w");
    queue_ = build_->op(
        "FIFOQueueV2", std::span<const Value>(),
        std::vector<Attr>{{"component_types", kFloats}, {"shapes", std::vector<PartialShape>{Shape()}}, {"shared_name", std::string("q")}});
    clear_ = {assign(v_, 0), assign(w_, 0)};
    see_ = {read(*build_, v_), read(*build_, w_)};
  }
  ~Strand() override { session_ = nullptr; }

  void serve() {
    const std::string cluster = "ps=unix:" + path_;
    server_ = GetParam() ? std::make_unique<ServerProcess>(cluster, "ps", 0, scratch_ / "state")
                         : std::make_unique<ServerProcess>(cluster, "ps", 0);
  }
  void connect() {
    ASSERT_TRUE(build_->ok()) << build_->status().message();
    Session::Options options;
    options.connect_timeout_ns = 20 * kSecond;
    auto session = Session::connect(runtime_, "unix:" + path_, graph_, options);
    ASSERT_TRUE(session.ok()) << session.status().message();
    session_ = session.take();
    ASSERT_TRUE(run(clear_).ok());
  }
  Status run(const Acts& targets, int64_t timeout_ns = 20 * kSecond) { return session_->run({{}, {}, {}, targets, timeout_ns}, {}); }
  void expect(float v, float w) {
    std::vector<Tensor> got(2);
    const Status status = session_->run({{}, {}, see_, {}, 20 * kSecond}, got);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(got[0].as<float>()[0], v);
    EXPECT_EQ(got[1].as<float>()[0], w);
  }
  // What a log holds is there again when the process is.
  void expect_kept(float v, float w) {
    expect(v, w);
    if (!GetParam()) return;
    server_->kill();
    serve();
    expect(v, w);
  }

  Value variable(const char* name) {
    return build_->op("VarHandleOp", {}, {{"dtype", DType::f32}, {"shape", Shape()}, {"shared_name", std::string(name)}});
  }
  NodeId assign(Value handle, float value) {
    return build_->node("AssignVariableOp", std::vector<Value>{handle, build_->scalar(DType::f32, value)});
  }
  static Value read(Build& b, Value handle, const Acts& after = {}) {
    const Value in[] = {handle};
    const Attr type{"dtype", DType::f32};
    return b.op("ReadVariableOp", in, {&type, 1}, {}, after);
  }
  static NodeId add(Build& b, Value handle, Value value, const Acts& after = {}) {
    return b.node("AssignAddVariableOp", std::vector<Value>{handle, value}, {}, {}, after);
  }
  NodeId put(Build& b, Value value, const Acts& after = {}) const {
    return b.node("QueueEnqueueV2", std::vector<Value>{queue_, value}, {}, {}, after);
  }
  Value take(Build& b, const Acts& after = {}) const {
    const Value in[] = {queue_};
    const Attr types{"component_types", kFloats};
    return b.op("QueueDequeueV2", in, {&types, 1}, {}, after);
  }
  // In a graph or a body: so many rounds, numbered from 0.
  static NodeId rounds(const Ref<Graph>& graph, int count, const std::function<Acts(const Ref<Graph>&, Build&, Value number)>& round) {
    Build b(*graph);
    const Value start[] = {b.integer(0)};
    const Ref<Graph> condition = Graph::create_inside(graph).take(), body = Graph::create_inside(graph).take();
    const Value asked = condition->add_argument(graph->info(start[0])).take(), number = body->add_argument(graph->info(start[0])).take();
    Build c(*condition), d(*body);
    Closure more = finish_function(condition, "more", {c.op("Less", {asked, c.integer(count)})}).take();
    const Acts acts = round(body, d, number);
    EXPECT_TRUE(d.ok()) << d.status().message();
    auto finished = finish_function(body, "round", {d.add(number, d.integer(1))}, acts);
    EXPECT_TRUE(finished.ok()) << finished.status().message();
    auto made = add_while(*graph, start, std::move(more), finished.take());
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.value()[0].node();
  }
  // One of two.
  static NodeId where(const Ref<Graph>& graph, Value condition, const std::function<Acts(Build&)>& yes,
                      const std::function<Acts(Build&)>& no) {
    std::vector<Closure> branches;
    for (const auto& branch : {yes, no}) {
      const Ref<Graph> body = Graph::create_inside(graph).take();
      Build b(*body);
      const Acts acts = branch(b);
      EXPECT_TRUE(b.ok()) << b.status().message();
      branches.push_back(finish_function(body, "branch", {b.integer(0)}, acts).take());
    }
    return add_if(*graph, condition, std::move(branches[0]), std::move(branches[1])).take()[0].node();
  }

  const std::vector<DType> kFloats = {DType::f32};
  Scratch scratch_;
  const std::string path_ = scratch_ / "ps";
  Ref<Runtime> runtime_;
  std::unique_ptr<ServerProcess> server_;
  Ref<Graph> graph_;
  std::optional<Build> build_;
  Ref<Session> session_;
  Value v_, w_, queue_;
  Acts clear_;
  std::vector<Value> see_;
};

INSTANTIATE_TEST_SUITE_P(State, Strand, ::testing::Bool(), [](const auto& one) { return one.param ? "InALog" : "InMemory"; });

// What is in memory goes with the process.
class KilledStrand : public Strand {};
INSTANTIATE_TEST_SUITE_P(State, KilledStrand, ::testing::Values(true), [](const auto&) { return "InALog"; });

TEST_P(Strand, RoundsAreKept) {
  const NodeId loop = rounds(graph_, 5, [&](const Ref<Graph>&, Build& b, Value number) {
    return Acts{add(b, v_, b.cast(number, DType::f32)), add(b, w_, b.scalar(DType::f32, 1))};
  });
  connect();
  ASSERT_TRUE(run({loop}).ok());
  expect_kept(10, 5);
  ASSERT_TRUE(run({loop}).ok());
  expect_kept(20, 10);
}

// What is computed on a write of the round is a unit of its own.
TEST_P(Strand, ARoundMayBeSeveralUnits) {
  const NodeId loop = rounds(graph_, 3, [&](const Ref<Graph>&, Build& b, Value) {
    const NodeId first = add(b, v_, b.scalar(DType::f32, 1));
    return Acts{first, add(b, w_, read(b, v_, {first}))};
  });
  connect();
  ASSERT_TRUE(run({loop}).ok());
  expect_kept(3, 1 + 2 + 3);
}

TEST_P(Strand, ABodyThatWaitsWrites) {
  const NodeId loop = rounds(graph_, 3, [&](const Ref<Graph>&, Build& b, Value) { return Acts{add(b, v_, take(b))}; });
  std::vector<NodeId> puts;
  for (const float value : {1.f, 2.f, 4.f}) puts.push_back(put(*build_, build_->scalar(DType::f32, value)));
  const NodeId once = where(
      graph_, build_->op("Less", {build_->integer(0), build_->integer(1)}), [&](Build& b) { return Acts{add(b, w_, take(b))}; },
      [&](Build&) { return Acts{}; });
  connect();
  // It has begun before anything is there.
  auto completions = CompletionQueue::create().take();
  const auto begun = session_->run_async({{}, {}, {}, {&loop, 1}, 20 * kSecond}, completions, 1);
  ASSERT_TRUE(begun.ok()) << begun.status().message();
  for (const NodeId one : puts) ASSERT_TRUE(run({one}).ok());
  CompletionQueue::Event event;
  ASSERT_EQ(completions->next({&event, 1}, system_clock(), Deadline::after(system_clock(), 20 * kSecond)), 1u);
  ASSERT_TRUE(event.status.ok()) << event.status.message();
  expect(7, 0);
  ASSERT_TRUE(run({puts[2]}).ok());
  ASSERT_TRUE(run({once}).ok());
  expect_kept(7, 4);
}

// A deadline ends it between two rounds; what was committed is there, once.
TEST_P(Strand, ItEndsBetweenUnits) {
  const NodeId loop = rounds(graph_, 3, [&](const Ref<Graph>&, Build& b, Value) { return Acts{add(b, v_, take(b))}; });
  const NodeId one = put(*build_, build_->scalar(DType::f32, 1));
  connect();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(run({one}).ok());
  const Status late = run({loop}, kSecond / 2);
  EXPECT_EQ(late.code(), Code::deadline_exceeded) << late.message();
  expect_kept(2, 0);
}

TEST_P(Strand, LoopsMayStandInLoops) {
  const NodeId loop = rounds(graph_, 3, [&](const Ref<Graph>& body, Build& b, Value number) {
    const NodeId inner = rounds(body, 4, [&](const Ref<Graph>& inside, Build& c, Value) {
      const NodeId last = where(
          inside, c.op("Greater", {number, c.integer(0)}), [&](Build& d) { return Acts{add(d, w_, d.scalar(DType::f32, 1))}; },
          [&](Build&) { return Acts{}; });
      return Acts{add(c, v_, c.scalar(DType::f32, 1)), last};
    });
    return Acts{inner, add(b, v_, b.scalar(DType::f32, 100))};
  });
  const NodeId after = add(*build_, w_, read(*build_, v_, {loop}));
  connect();
  ASSERT_TRUE(run({loop, after}).ok());
  expect_kept(312, 8 + 312);
}

// Two loops of one run that need each other.
TEST_P(Strand, LoopsMayTalkToEachOther) {
  const NodeId giving = rounds(graph_, 20, [&](const Ref<Graph>&, Build& b, Value number) {
    const NodeId wrote = add(b, v_, b.scalar(DType::f32, 1));
    return Acts{wrote, put(b, b.cast(number, DType::f32), {wrote})};
  });
  const NodeId taking = rounds(graph_, 20, [&](const Ref<Graph>&, Build& b, Value) { return Acts{add(b, w_, take(b))}; });
  connect();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(run(i % 2 == 0 ? Acts{giving, taking} : Acts{taking, giving}).ok());
  expect_kept(100, 950);
}

// What is drawn in a body is drawn once: a log keeps what was written, not how.
TEST_P(Strand, WhatIsDrawnIsKept) {
  const NodeId branch = where(
      graph_, build_->op("Less", {build_->integer(0), build_->integer(1)}),
      [&](Build& b) {
        return Acts{add(b, w_, b.op("RandomUniform", {b.ints({})}, {{"dtype", DType::f32}}))};
      },
      [&](Build&) { return Acts{}; });
  connect();
  ASSERT_TRUE(run({branch}).ok());
  std::vector<Tensor> got(2);
  ASSERT_TRUE(session_->run({{}, {}, see_, {}, 20 * kSecond}, got).ok());
  EXPECT_NE(got[1].as<float>()[0], 0);
  expect_kept(got[0].as<float>()[0], got[1].as<float>()[0]);
}

// Killed at any moment, a run that is told to have ended has written each round once.
TEST_P(KilledStrand, LosesAndDoublesNothing) {
  const NodeId loop = rounds(graph_, 4, [&](const Ref<Graph>& body, Build&, Value) {
    return Acts{rounds(body, 3, [&](const Ref<Graph>&, Build& b, Value) {
      const NodeId gave = put(b, b.scalar(DType::f32, 1));
      return Acts{gave, add(b, v_, take(b, {gave}))};
    })};
  });
  connect();
  std::atomic<bool> over{false};
  std::thread killer([&] {
    for (int i = 0; i < 12; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(40 + 37 * i % 200));
      server_->kill();
      serve();
    }
    over = true;
  });
  int steps = 0;
  Status status;
  while (!over && status.ok()) {
    status = run({loop}, 60 * kSecond);
    steps += status.ok();
  }
  killer.join();
  ASSERT_TRUE(status.ok()) << status.message();
  std::printf("%d runs\n", steps);
  expect_kept(static_cast<float>(12 * steps), 0);
}

}  // namespace
}  // namespace dtg
