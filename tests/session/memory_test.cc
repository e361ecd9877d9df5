// What runs hold: many plans together no more than what runs at once, and values that cross devices share memory with what comes later.
#include <cmath>

#include "fixture.h"
#include "nn/layers.h"
#include "nn/losses.h"
#include "nn/optimizer.h"

namespace dtg {
namespace {

class MemoryOfRuns : public SessionTest {
 protected:
  // A training step of a perceptron; the batch is open.
  void build_perceptron(int layers, int64_t width) {
    model_ = make_ref<Model>(graph, 1);
    PartialShape batch = PartialShape::of_rank(2);
    batch.set_dim(1, width);
    x_ = placeholder(DType::f32, batch);
    labels_ = placeholder(DType::i32, PartialShape::of_rank(1));
    Value h = x_;
    for (int i = 0; i < layers; ++i) h = dense(*model_, h, {.units = width, .activation = Activation::tanh}).take();
    loss_ = sparse_softmax_cross_entropy(*graph, labels_, h).take();
    Optimizer optimizer;
    train_ = minimize(*model_, loss_, optimizer).take().train;
    run_target(model_->init_target().take());
  }
  void train(int64_t batch) {
    const int64_t width = graph->info(x_).shape.dim(1);
    std::vector<Tensor> out;
    const Status status =
        run({{x_, floats({batch, width}, std::vector<float>(static_cast<size_t>(batch * width), 0.1f))},
             {labels_, Tensor::of<int32_t>(Shape::of({batch}), std::vector<int32_t>(static_cast<size_t>(batch), 1)).take()}},
            {loss_}, &out, {train_});
    ASSERT_TRUE(status.ok()) << status.message();
  }

  Ref<Model> model_;
  Value x_, labels_, loss_;
  NodeId train_ = kNoNode;
};

TEST_F(MemoryOfRuns, ManyBatchSizesHoldWhatTheLargestHolds) {
  build_perceptron(4, 64);
  train(1024);
  const int64_t alone = runtime->memory()->held_bytes();
  ASSERT_GT(alone, int64_t{1024} * 64 * 4);
  for (int64_t batch = 1023; batch > 1024 - 128; --batch) train(batch);
  EXPECT_LE(static_cast<double>(runtime->memory()->held_bytes()), 1.2 * static_cast<double>(alone));
}

TEST_F(MemoryOfRuns, GrowingBatchSizesHoldNoMore) {
  build_perceptron(4, 64);
  for (int64_t batch = 1024 - 127; batch <= 1024; ++batch) train(batch);
  const int64_t held = runtime->memory()->held_bytes();
  SetUp();
  build_perceptron(4, 64);
  train(1024);
  EXPECT_LE(static_cast<double>(held), 1.2 * static_cast<double>(runtime->memory()->held_bytes()));
}

TEST_F(MemoryOfRuns, AChainOverTwoDevicesNeedsWhatLivesAtOnce) {
  constexpr int kHops = 48;
  constexpr int64_t kSide = 64, kBytes = kSide * kSide * 4;
  Session::Options options;
  options.devices.cpu = 2;
  open(options);
  const Value x = placeholder(DType::f32, Shape::of({kSide, kSide}));
  Value y = x;
  for (int i = 0; i < kHops; ++i) {
    graph->push_device("/device:CPU:" + std::to_string(i % 2));
    y = build->op("Tanh", {build->op("MatMul", {y, y})});
    ASSERT_TRUE(graph->pop_device().ok());
  }
  const Value sum = build->sum(y, build->ints({0, 1}));
  ASSERT_TRUE(build->ok()) << build->status().message();
  const Tensor fed = floats({kSide, kSide}, std::vector<float>(kSide * kSide, 0.01f));
  const Tensor* const tensor = &fed;
  const auto plan = session->plan_for({{&x, 1}, {&tensor, 1}, {&sum, 1}, {}, 0});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const Program& program = plan.value()->home().program();
  EXPECT_GE(program.segments.size(), static_cast<size_t>(kHops));
  EXPECT_LE(program.frame_bytes, 8 * kBytes) << kHops << " values of " << kBytes << " bytes, two or three of them at a time";
}

TEST_F(MemoryOfRuns, WeightsOnAnotherDeviceNeedNoMoreThanOnOne) {
  int64_t frame_bytes[2] = {};
  for (int device = 0; device < 2; ++device) {
    constexpr int64_t kRows = 256, kWidth = 32;
    Session::Options options;
    options.devices.cpu = 2;
    open(options);
    auto model = make_ref<Model>(graph, 1);
    const Value x = placeholder(DType::f32, Shape::of({kRows, kWidth})), labels = placeholder(DType::i32, Shape::of({kRows}));
    Value h = x;
    for (int i = 0; i < 24; ++i) {
      graph->push_device("/device:CPU:" + std::to_string(device));
      auto weights =
          model->add_variable({.name = "w" + std::to_string(i), .shape = Shape::of({kWidth, kWidth}), .initializer = Initializer::zeros()});
      ASSERT_TRUE(graph->pop_device().ok());
      ASSERT_TRUE(weights.ok()) << weights.status().message();
      h = build->op("Tanh", {build->op("MatMul", {h, weights.value().read})});
    }
    const Value loss = sparse_softmax_cross_entropy(*graph, labels, h).take();
    const NodeId train = minimize(*model, loss, Optimizer()).take().train;
    const Tensor fed = floats({kRows, kWidth}, std::vector<float>(kRows * kWidth, 0.01f));
    const Tensor classes = Tensor::of<int32_t>(Shape::of({kRows}), std::vector<int32_t>(kRows, 1)).take();
    const Value feeds[] = {x, labels};
    const Tensor* const tensors[] = {&fed, &classes};
    const auto plan = session->plan_for({feeds, tensors, {&loss, 1}, {&train, 1}, 0});
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    frame_bytes[device] = plan.value()->home().program().frame_bytes;
  }
  EXPECT_LE(static_cast<double>(frame_bytes[1]), 1.5 * static_cast<double>(frame_bytes[0]));
}

TEST_F(MemoryOfRuns, WaitsGrowWithTheHandOvers) {
  constexpr int kCrossings = 1000;
  Session::Options options;
  options.devices.cpu = 2;
  options.fusion = false;
  open(options);
  const Value x = placeholder(DType::f32, PartialShape::scalar());
  Value p = x, sum = build->neg(x);
  for (int i = 0; i < kCrossings; ++i) {
    graph->push_device("/device:CPU:1");
    p = build->op("Sin", {p});
    ASSERT_TRUE(graph->pop_device().ok());
    graph->push_device("/device:CPU:0");
    sum = build->add(sum, p);
    ASSERT_TRUE(graph->pop_device().ok());
  }
  const Tensor fed = Tensor::scalar<float>(1).take();
  const Tensor* const tensor = &fed;
  const auto plan = session->plan_for({{&x, 1}, {&tensor, 1}, {&sum, 1}, {}, 0});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  uint64_t waits = 0;
  for (const uint32_t each : plan.value()->home().program().waits) waits += each;
  EXPECT_LE(waits, 3u * kCrossings);
  EXPECT_LE(plan.value()->home().program().segments.size(), 3u) << "the additions are one segment, which waits on its way";
  float expected = -1, sine = 1;
  for (int i = 0; i < kCrossings; ++i) expected += sine = std::sin(sine);
  EXPECT_NEAR(*fetch(sum, {{x, fed}}).as<float>(), expected, 0.05);
}

}  // namespace
}  // namespace dtg
