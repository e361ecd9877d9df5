// Control edges hold whatever the planner makes of the nodes between them: a check that fails keeps what comes after it from
// happening, fused and not.
#include "fixture.h"

namespace dtg {
namespace {

class Gates : public SessionTest, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    Session::Options options;
    options.fusion = GetParam();
    open(options);
    x = placeholder(DType::f32, Shape::of({6}));
    zero = placeholder(DType::i32, Shape());
    handle = variable("v", Shape::of({6}));
    run_target(assign(handle, build->constant(floats({6}, {0, 0, 0, 0, 0, 0}))));
    check = build->op("FloorDiv", {build->integer(1), zero}).node();
  }

  Value after_check(std::string_view op, std::initializer_list<Value> inputs) {
    graph->push_controls({&check, 1});
    const Value value = build->op(op, inputs);
    EXPECT_TRUE(graph->pop_controls().ok());
    return value;
  }
  Value constant_after_check(const Tensor& tensor) {
    graph->push_controls({&check, 1});
    const Value value = build->constant(tensor);
    EXPECT_TRUE(graph->pop_controls().ok());
    return value;
  }
  // The check fails, so `y` may not be written.
  void expect_held(Value y) {
    const NodeId write = assign(handle, build->neg(y));
    std::vector<Tensor> none;
    const Status status = run({{x, floats({6}, {1, 2, 3, 4, 5, 6})}, {zero, Tensor::scalar<int32_t>(0).take()}}, {}, &none, {write});
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(values(fetch(read(handle))), std::vector<float>(6, 0.0f));
    // With a check that holds it goes well.
    const Status good = run({{x, floats({6}, {1, 2, 3, 4, 5, 6})}, {zero, Tensor::scalar<int32_t>(1).take()}}, {}, &none, {write});
    EXPECT_TRUE(good.ok()) << good.message();
    EXPECT_NE(values(fetch(read(handle))), std::vector<float>(6, 0.0f));
  }

  Value x, zero, handle;
  NodeId check = kNoNode;
};

TEST_P(Gates, ReshapeOfReshape) { expect_held(build->reshape(after_check("Reshape", {x, build->ints({2, 3})}), build->ints({6}))); }
TEST_P(Gates, ReshapeOfReshapeToWhatWaits) {
  const Value shape = constant_after_check(Tensor::ints(DType::i32, std::vector<int64_t>{2, 3}).take());
  expect_held(build->reshape(build->reshape(x, shape), build->ints({6})));
}
TEST_P(Gates, TransposeOfTranspose) {
  const Value turned = after_check("Transpose", {build->reshape(x, build->ints({2, 3})), build->ints({1, 0})});
  expect_held(build->reshape(build->op("Transpose", {turned, build->ints({1, 0})}), build->ints({6})));
}
TEST_P(Gates, TimesOne) { expect_held(build->mul(x, constant_after_check(Tensor::scalar<float>(1).take()))); }
TEST_P(Gates, TransposeThatChangesNothing) {
  expect_held(build->op("Transpose", {x, constant_after_check(Tensor::ints(DType::i32, std::vector<int64_t>{0}).take())}));
}
TEST_P(Gates, EqualNodesOfWhichOneWaits) {
  const Value first = build->mul(x, build->scalar(DType::f32, 2)),
              then = build->mul(x, constant_after_check(Tensor::scalar<float>(2).take()));
  expect_held(build->add(build->op("Tanh", {first}), build->op("Exp", {then})));
}
TEST_P(Gates, TheAxesOfAReduction) {
  const Value axes = constant_after_check(Tensor::ints(DType::i32, std::vector<int64_t>{0}).take());
  expect_held(build->op("BroadcastTo", {build->sum(build->mul(x, x), axes), build->ints({6})}));
}
TEST_P(Gates, AShapeThatIsKnownAnyway) {
  const Value shape = build->shape(after_check("Identity", {x}));
  expect_held(build->op("BroadcastTo", {build->cast(build->op("Prod", {shape, build->integer(0)}), DType::f32), build->ints({6})}));
}
TEST_P(Gates, AShapeAtTheEndOfALongWay) {
  const Value far = build->neg(build->op("Tanh", {build->neg(after_check("Identity", {x}))}));
  expect_held(build->op("BroadcastTo", {build->cast(build->op("Size", {far}), DType::f32), build->ints({6})}));
}
TEST_P(Gates, AShapeThatIsFetched) {
  const Value shape = build->shape(build->neg(after_check("Identity", {x})));
  std::vector<Tensor> out;
  EXPECT_FALSE(run({{x, floats({6}, {1, 2, 3, 4, 5, 6})}, {zero, Tensor::scalar<int32_t>(0).take()}}, {shape}, &out).ok());
  EXPECT_TRUE(run({{x, floats({6}, {1, 2, 3, 4, 5, 6})}, {zero, Tensor::scalar<int32_t>(1).take()}}, {shape}, &out).ok());
}

INSTANTIATE_TEST_SUITE_P(Fusion, Gates, ::testing::Bool(), [](const auto& run) { return run.param ? "Fused" : "Plain"; });

// The axes are known to the planner only; two that are the same are an error, not a reduction over all.
TEST_F(SessionTest, AnAxisGivenTwice) {
  const Value x = placeholder(DType::f32, Shape::of({3, 1000}));
  const Value zeros = build->constant(Tensor::ints(DType::i32, std::vector<int64_t>{0, 0}).take());
  for (const char* op : {"Sum", "Mean", "Max"}) {
    const Value y = build->op(op, {build->mul(x, build->scalar(DType::f32, 2)), build->neg(zeros)});
    std::vector<Tensor> out;
    const Status status = run({{x, Tensor::allocate(DType::f32, Shape::of({3, 1000})).take()}}, {y}, &out);
    EXPECT_EQ(status.code(), Code::invalid_argument) << op << ": " << status.message();
  }
}

// A write may not wait for an enqueue that may in turn wait for what comes after the write.
TEST_F(SessionTest, AWriteDoesNotWaitForAQueue) {
  const Value v = variable("v", Shape());
  run_target(assign(v, build->scalar(DType::f32, 1)));
  const Value queue = build->op("FIFOQueueV2", {},
                                {{"component_types", std::vector<DType>{DType::f32}},
                                 {"shapes", std::vector<PartialShape>{PartialShape::scalar()}},
                                 {"capacity", int64_t{1}}});
  const auto enqueue = [&](Value value) {
    const Value inputs[] = {queue, value};
    return build->node("QueueEnqueueV2", inputs);
  };
  run_target(enqueue(build->scalar(DType::f32, 7)));
  const NodeId push = enqueue(read(v));
  const Value inputs[] = {v, build->scalar(DType::f32, 1)};
  const NodeId write = build->node("AssignAddVariableOp", inputs);
  graph->push_controls({&write, 1});
  const Value taken = build->op("QueueDequeueV2", {queue}, {{"component_types", std::vector<DType>{DType::f32}}});
  EXPECT_TRUE(graph->pop_controls().ok());
  std::vector<Tensor> out;
  const Status status = run({}, {taken}, &out, {push, write}, int64_t{20'000'000'000});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(values(out[0]), std::vector<float>{7});
  EXPECT_EQ(values(fetch(build->op("QueueDequeueV2", {queue}, {{"component_types", std::vector<DType>{DType::f32}}}))),
            std::vector<float>{1})
      << "what was read before the write";
}

// Variables stay where they are whatever joins the graph later; who would tear them apart is refused alone.
TEST_F(SessionTest, ANodeThatWouldMoveAVariableIsRefused) {
  Session::Options options;
  options.devices.cpu = 2;
  open(options);
  const auto variable_on = [&](const char* name, const char* device) {
    graph->push_device(device);
    const Value v = variable(name, Shape());
    EXPECT_TRUE(graph->pop_device().ok());
    return v;
  };
  const Value a = variable_on("a", "/device:CPU:0"), b = variable_on("b", "/device:CPU:1");
  run_target(assign(a, build->scalar(DType::f32, 3)));
  run_target(assign(b, build->scalar(DType::f32, 5)));
  const NodeId both[] = {a.node(), b.node()};
  const auto torn = graph->add({.op = "NoOp", .colocate = both});
  ASSERT_TRUE(torn.ok()) << torn.status().message();
  std::vector<Tensor> none;
  const Status status = run({}, {}, &none, {torn.value()});
  EXPECT_EQ(status.code(), Code::invalid_argument) << status.message();
  EXPECT_NE(status.message().find("share a device"), std::string::npos) << status.message();
  EXPECT_EQ(values(fetch(build->neg(read(a)))), std::vector<float>{-3});
  EXPECT_EQ(values(fetch(build->neg(read(b)))), std::vector<float>{-5});
}

// A value that is used more often than a node has inputs.
TEST_F(SessionTest, AGradientOfMoreAddendsThanInputs) {
  const Value x = placeholder(DType::f32, Shape());
  constexpr int kUses = 70'000;
  std::vector<Value> terms;
  for (int i = 0; i < kUses; ++i) terms.push_back(build->neg(x));
  while (terms.size() > 1) {
    std::vector<Value> sums;
    for (size_t at = 0; at < terms.size(); at += 1000)
      sums.push_back(build->op("AddN", std::span<const Value>(terms).subspan(at, std::min<size_t>(1000, terms.size() - at))));
    terms = std::move(sums);
  }
  const Value ys[] = {terms[0]}, xs[] = {x};
  const auto gradient = add_gradients(*graph, ys, xs, {});
  ASSERT_TRUE(gradient.ok()) << gradient.status().message();
  EXPECT_EQ(values(fetch(gradient.value()[0].dense, {{x, Tensor::scalar<float>(1).take()}})), std::vector<float>{-kUses});
}

}  // namespace
}  // namespace dtg
