// State across steps: variables under contention, waiting queue operations and takes, from several runs at once.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "graph/build.h"
#include "graph/gradient.h"
#include "session/session.h"

namespace dtg {
namespace {

class State : public ::testing::Test {
 protected:
  void SetUp() override {
    Runtime::Options options;
    options.compute_threads = 2;
    runtime_ = Runtime::create(options).take();
    graph_ = Graph::create(&runtime_->ops()).take();
    build_ = std::make_unique<Build>(*graph_);
    session_ = Session::connect(runtime_, "local", graph_, {}).take();
  }

  Value variable(const char* name, DType dtype, const PartialShape& shape) {
    return build_->op("VarHandleOp", {}, {{"dtype", dtype}, {"shape", shape}, {"shared_name", name}});
  }
  NodeId node(const char* op, std::vector<Value> inputs, std::vector<Attr> attrs = {}) {
    const NodeId made = build_->node(op, inputs, attrs);
    EXPECT_TRUE(build_->ok()) << build_->status().message();
    return made;
  }
  Status run(NodeId target, int64_t timeout_ns = 0) {
    RunArgs args;
    args.targets = {&target, 1};
    args.timeout_ns = timeout_ns;
    return session_->run(args, {});
  }
  Result<Tensor> fetch(Value value) {
    RunArgs args;
    args.fetches = {&value, 1};
    Tensor tensor;
    DTG_TRY(session_->run(args, {&tensor, 1}));
    return tensor;
  }
  Value read(Value handle, DType dtype) { return build_->op("ReadVariableOp", {handle}, {{"dtype", dtype}}); }

  Ref<Runtime> runtime_;
  Ref<Graph> graph_;
  std::unique_ptr<Build> build_;
  Ref<Session> session_;
};

TEST_F(State, NoUpdateIsLostUnderContention) {
  constexpr int64_t kCount = 100'000;
  constexpr int kThreads = 3, kEach = 60;
  const Shape shape = Shape::of({kCount});
  const Value a = variable("a", DType::f32, shape), b = variable("b", DType::f32, shape);
  const Value zeros = build_->constant(Tensor::of<float>(shape, std::vector<float>(kCount, 0.0f)).take());
  const Value ones = build_->constant(Tensor::of<float>(shape, std::vector<float>(kCount, 1.0f)).take());
  const Value rate = build_->scalar(DType::f32, 1.0), keep = build_->scalar(DType::f32, 0.0);
  ASSERT_TRUE(run(node("AssignVariableOp", {a, zeros})).ok());
  ASSERT_TRUE(run(node("AssignVariableOp", {b, zeros})).ok());
  // Two variables per update, named in both orders.
  const NodeId forth = node("ResourceApplyMomentum", {a, b, rate, ones, keep});
  const NodeId back = node("ResourceApplyMomentum", {b, a, rate, ones, keep});
  const NodeId add = node("AssignAddVariableOp", {a, ones});
  const Value seen = read(a, DType::f32);
  ASSERT_TRUE(run(forth).ok() && run(back).ok() && run(add).ok());
  ASSERT_TRUE(run(node("AssignVariableOp", {a, zeros})).ok());
  std::vector<std::thread> threads;
  std::atomic<int> failed{0}, torn{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) failed += run(add).ok() ? 0 : 1;
    });
  }
  threads.emplace_back([&] {
    for (int i = 0; i < kEach; ++i) {
      const Tensor value = fetch(seen).take();
      for (int64_t k = 1; k < kCount; k += 997) torn += value.as<float>()[k] != value.as<float>()[0] ? 1 : 0;
    }
  });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(fetch(seen).take().as<float>()[kCount - 1], kThreads * kEach);
  // And updates that want the same two variables from both ends never wait for each other.
  std::thread one([&] {
    for (int i = 0; i < kEach; ++i) failed += run(forth).ok() ? 0 : 1;
  });
  std::thread two([&] {
    for (int i = 0; i < kEach; ++i) failed += run(back).ok() ? 0 : 1;
  });
  one.join();
  two.join();
  EXPECT_EQ(failed, 0);
}

TEST_F(State, AVariableIsWhatBothGraphsSay) {
  const Value open = variable("v", DType::f32, PartialShape::unknown());
  const Value two = variable("v", DType::f32, Shape::of({2}));
  const Value three = variable("v", DType::f32, Shape::of({3}));
  const Value values = build_->constant(Tensor::of<float>(Shape::of({3}), std::vector<float>{1, 2, 3}).take());
  EXPECT_EQ(fetch(read(two, DType::f32)).status().code(), Code::failed_precondition);
  EXPECT_EQ(fetch(read(three, DType::f32)).status().code(), Code::invalid_argument);
  EXPECT_EQ(run(node("AssignVariableOp", {open, values})).code(), Code::invalid_argument);
}

// Whatever it is that is asked of it: one code, which a worker can wait on, and the name.
TEST_F(State, AVariableWithoutAValueIsToldAsSuch) {
  const Value v = variable("empty", DType::f32, Shape::of({2}));
  const Value one = build_->scalar(DType::f32, 1), rows = build_->ints({0});
  const Value values = build_->constant(Tensor::of<float>(Shape::of({2}), std::vector<float>{1, 2}).take());
  const Value row = build_->constant(Tensor::of<float>(Shape::of({1}), std::vector<float>{1}).take());
  const NodeId asked[] = {node("AssignAddVariableOp", {v, values}),
                          node("AssignSubVariableOp", {v, values}),
                          node("ResourceApplyGradientDescent", {v, one, values}),
                          node("ResourceScatterAdd", {v, rows, row}),
                          node("ResourceGather", {v, rows}, {{"dtype", DType::f32}}),
                          node("ReadVariableOp", {v}, {{"dtype", DType::f32}})};
  for (const NodeId target : asked) {
    const Status status = run(target);
    EXPECT_EQ(status.code(), Code::failed_precondition) << status.message();
    EXPECT_NE(status.message().find("\"empty\" of type float32: it has no value"), std::string::npos) << status.message();
  }
}

TEST_F(State, DestroyedVariablesComeBackEmpty) {
  const Value v = variable("v", DType::i32, PartialShape::unknown());
  const Value seen = read(v, DType::i32);
  ASSERT_TRUE(run(node("AssignVariableOp", {v, build_->ints({1, 2})})).ok());
  EXPECT_EQ(fetch(seen).take().count(), 2);
  ASSERT_TRUE(run(node("DestroyResourceOp", {v})).ok());
  EXPECT_EQ(fetch(seen).status().code(), Code::failed_precondition);
  ASSERT_TRUE(run(node("AssignVariableOp", {v, build_->ints({3})})).ok());
  EXPECT_EQ(fetch(seen).take().count(), 1);
}

TEST_F(State, GradientsReachTheHandle) {
  const Shape shape = Shape::of({3, 2});
  for (const bool known : {true, false}) {
    const Value v = variable(known ? "known" : "open", DType::f32, known ? PartialShape(shape) : PartialShape::unknown());
    const Value start = build_->constant(Tensor::of<float>(shape, std::vector<float>{1, 2, 3, 4, 5, 6}).take());
    ASSERT_TRUE(run(node("AssignVariableOp", {v, start})).ok());
    const Value rows = build_->op("ResourceGather", {v, build_->ints({2, 0, 2})}, {{"dtype", DType::f32}});
    const Value dense = read(v, DType::f32);
    const Value square = build_->mul(dense, dense);
    const Value ys[] = {rows, square}, xs[] = {v, dense};
    const auto gradients = add_gradients(*graph_, ys, xs, {});
    ASSERT_TRUE(gradients.ok()) << gradients.status().message();
    const auto of_handle = fetch(densify(*build_, gradients.value()[0]));
    ASSERT_TRUE(of_handle.ok()) << of_handle.status().message();
    const auto values = of_handle.value().values<float>();
    EXPECT_EQ(std::vector<float>(values.begin(), values.end()), (std::vector<float>{3, 5, 6, 8, 12, 14}));
    const auto of_read = fetch(gradients.value()[1].dense);
    ASSERT_TRUE(of_read.ok()) << of_read.status().message();
    EXPECT_EQ(of_read.value().as<float>()[5], 12);
  }
}

TEST_F(State, ADequeueWaitsForAnotherRun) {
  const Value queue =
      build_->op("FIFOQueueV2", {}, {{"component_types", std::vector<DType>{DType::i32}}, {"shapes", std::vector<PartialShape>{Shape()}}});
  const Value out = build_->op("QueueDequeueV2", {queue}, {{"component_types", std::vector<DType>{DType::i32}}});
  const NodeId in = node("QueueEnqueueV2", {queue, build_->integer(7)});
  const Value twice = build_->add(out, out);
  std::thread other([&] { EXPECT_TRUE(run(in).ok()); });
  const auto got = fetch(twice);
  other.join();
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(got.value().int_at(0), 14);
  const Status late = run(out.node(), 20'000'000);
  EXPECT_EQ(late.code(), Code::deadline_exceeded) << late.message();
  ASSERT_TRUE(run(in).ok());
  EXPECT_EQ(fetch(out).take().int_at(0), 7);
  ASSERT_TRUE(run(node("QueueCloseV2", {queue})).ok());
  EXPECT_EQ(fetch(out).status().code(), Code::out_of_range);
  EXPECT_EQ(run(in).code(), Code::cancelled);
}

TEST_F(State, ATakeWaitsForItsGradients) {
  const Value accumulator = build_->op("ResourceConditionalAccumulator", {}, {{"dtype", DType::f32}, {"shape", Shape::of({2})}});
  const Value gradient = build_->constant(Tensor::of<float>(Shape::of({2}), std::vector<float>{1, 3}).take());
  const Value step = build_->integer(0, DType::i64);
  const NodeId apply = node("ResourceAccumulatorApplyGradient", {accumulator, step, gradient});
  const Value mean = build_->op("ResourceAccumulatorTakeGradient", {accumulator, build_->integer(2)}, {{"dtype", DType::f32}});
  std::thread workers([&] {
    EXPECT_TRUE(run(apply).ok());
    EXPECT_TRUE(run(apply).ok());
  });
  const auto got = fetch(mean);
  workers.join();
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(got.value().as<float>()[1], 3);
}

}  // namespace
}  // namespace dtg
