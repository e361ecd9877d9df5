// Graphs of any size: sums of many values are planned and computed, and values that no memory holds are refused with the node's name,
// here and where another task would have to make them.
#include <sys/stat.h>

#include "cluster/server.h"
#include "fixture.h"
#include "nn/layers.h"
#include "nn/losses.h"
#include "nn/optimizer.h"
#include "scratch.h"

namespace dtg {
namespace {

using Sizes = SessionTest;

TEST_F(Sizes, SumsOfAnyLength) {
  for (const int count : {2, 15, 16, 17, 18, 40, 100}) {
    std::vector<Feed> feeds;
    Value sum;
    for (int i = 0; i < count; ++i) {
      feeds.push_back({placeholder(DType::f32, PartialShape::scalar()), Tensor::scalar<float>(static_cast<float>(i + 1)).take()});
      sum = i ? build->add(sum, feeds.back().value) : feeds.back().value;
    }
    EXPECT_EQ(*fetch(sum, feeds).as<float>(), static_cast<float>(count * (count + 1) / 2)) << count;
  }
}

TEST_F(Sizes, ANodeHasNotAnyNumberOfInputs) {
  const std::vector<Value> many(0x10000, build->scalar(DType::f32, 1));
  EXPECT_EQ(*fetch(build->op("AddN", std::span(many).first(0xffff))).as<float>(), 65535);
  build->op("AddN", many);
  EXPECT_EQ(build->status().code(), Code::invalid_argument);
  EXPECT_NE(build->status().message().find("65536 values for inputs: at most 65535"), std::string::npos) << build->status().message();
}

// A number that is fed says how long a list is; it may ask for more than there may be, and the next run is right.
TEST_F(Sizes, ListsKeepToTheMemoryLimit) {
  open({}, 2, int64_t{32} << 20);
  const Value n = placeholder(DType::i32, PartialShape::scalar()), shape = build->ints({4});
  const Attr f32 = {"element_dtype", AttrValue(DType::f32)};
  const Value none = build->op("EmptyTensorList", {shape, build->integer(-1)}, {f32});
  const Value row = build->op("Fill", {shape, build->scalar(DType::f32, 1)});
  const auto length = [&](Value list) { return build->op("TensorListLength", {list}); };
  const Value array = build->op("TensorArrayV3", {n}, {{"dtype", DType::f32}});
  const std::vector<std::pair<const char*, Value>> sizes = {
      {"reserve", length(build->op("TensorListReserve", {shape, n}, {f32}))},
      {"resize", length(build->op("TensorListResize", {none, n}))},
      {"set", length(build->op("TensorListSetItem", {none, n, row}, {f32, {"resize_if_index_out_of_bounds", true}}))},
      {"scatter", length(build->op("TensorListScatter",
                                   {build->reshape(row, build->ints({1, 4})), build->reshape(n, build->ints({1})), shape}, {f32}))},
      {"array", build->op("TensorArraySizeV3", {array, array.sibling(1)})}};
  ASSERT_TRUE(build->ok()) << build->status().message();
  const auto integer = [](int32_t number) { return Tensor::scalar<int32_t>(number).take(); };
  for (const auto& [what, size] : sizes) {
    std::vector<Tensor> out;
    const Status refused = run({{n, integer(15'000'000)}}, {size}, &out);
    EXPECT_EQ(refused.code(), Code::resource_exhausted) << what << ": " << refused.message();
    EXPECT_GE(*fetch(size, {{n, integer(5)}}).as<int32_t>(), 5) << what;
  }
}

// One that holds another twice, level by level, has more ways through it than anybody can go; what is made of each list is made once.
TEST_F(Sizes, ListsThatHoldOneTwiceAreAddedOnce) {
  const Attr lists = {"element_dtype", AttrValue(DType::variant)};
  const auto empty = [&] { return build->op("EmptyTensorList", {build->integer(-1), build->integer(-1)}, {lists}); };
  Value all = empty();
  for (int level = 0; level < 60; ++level) {
    Value two = empty();
    for (int i = 0; i < 2; ++i) two = build->op("TensorListPushBack", {two, all}, {lists});
    all = two;
  }
  const Value sum = build->op("AddN", {all, all});
  EXPECT_EQ(*fetch(build->op("TensorListLength", {sum})).as<int32_t>(), 2);
  EXPECT_EQ(*fetch(build->op("TensorListLength", {build->op("ZerosLike", {all})})).as<int32_t>(), 2);
}

TEST_F(Sizes, ALossWithTwentyPenaltiesTrains) {
  auto model = make_ref<Model>(graph, 1);
  const Value x = placeholder(DType::f32, Shape::of({8, 16})), labels = placeholder(DType::i32, Shape::of({8}));
  Value h = x;
  for (int i = 0; i < 20; ++i) {
    auto layer = dense(*model, h, {.units = 16, .activation = Activation::tanh});
    ASSERT_TRUE(layer.ok()) << layer.status().message();
    h = layer.take();
  }
  Value loss = sparse_softmax_cross_entropy(*graph, labels, h).take();
  for (const NamedVariable& v : model->variables()) {
    if (v.shape.rank() == 2) loss = build->add(loss, build->mul(build->op("L2Loss", {v.read}), build->scalar(DType::f32, 1e-2)));
  }
  Optimizer optimizer;
  optimizer.rate = 0.1;
  auto training = minimize(*model, loss, optimizer);
  ASSERT_TRUE(training.ok()) << training.status().message();
  run_target(model->init_target().take());
  const std::vector<Feed> feeds = {{x, floats({8, 16}, std::vector<float>(128, 0.1f))},
                                   {labels, Tensor::of<int32_t>(Shape::of({8}), std::vector<int32_t>(8, 3)).take()}};
  float first = 0, last = 0;
  for (int step = 0; step < 10; ++step) {
    std::vector<Tensor> out;
    const Status status = run(feeds, {loss}, &out, {training.value().train});
    ASSERT_TRUE(status.ok()) << status.message();
    (step ? last : first) = *out[0].as<float>();
  }
  EXPECT_LT(last, first);
}

// A value of 2^31 x 2^31 elements, which is 2^64 bytes and so, to who does not look, none; and of 2^60 bytes.
Value huge(Build& build, Value x, int64_t rows, const char* name) {
  return build.op("BroadcastTo", {x, build.ints({rows, rows}, DType::i64)}, {}, name);
}
// One element of it, in ways that look at the whole or at a part.
std::vector<Value> corners(Build& build, Value large) {
  const Value begin = build.ints({0, 0}, DType::i64), size = build.ints({1, 1}, DType::i64);
  return {build.op("Max", {large, build.ints({0, 1})}), build.op("Slice", {large, begin, size}),
          build.op("Slice", {build.op("Tanh", {large}), begin, size})};
}

void expect_named(const Status& status, std::string_view node) {
  EXPECT_EQ(status.ok() ? Code::ok : status.code(), Code::resource_exhausted) << (status.ok() ? "" : status.message());
  if (status.ok()) return;
  EXPECT_EQ(status.origin().node, node) << status.message();
  EXPECT_NE(status.message().find(node), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("bytes"), std::string::npos) << status.message();
}

TEST_F(Sizes, WhatNoMemoryHoldsIsRefusedByName) {
  const Value x = placeholder(DType::f32, PartialShape::scalar());
  const std::vector<Feed> feeds = {{x, Tensor::scalar<float>(1).take()}};
  for (const int64_t rows : {int64_t{1} << 31, int64_t{1} << 30, int64_t{1} << 29}) {
    const std::string name = "huge_" + std::to_string(rows);
    for (const Value corner : corners(*build, huge(*build, x, rows, name.c_str()))) {
      std::vector<Tensor> out;
      expect_named(run(feeds, {corner}, &out), name);
    }
  }
  EXPECT_EQ(*fetch(build->neg(x), feeds).as<float>(), -1) << "the session goes on";
}

TEST_F(Sizes, ManyValuesThatTogetherAreTooMuchNameTheLargest) {
  Runtime::Options small;
  small.compute_threads = 1;
  small.memory_limit_bytes = 64 << 20;
  runtime = Runtime::create(small).take();
  graph = Graph::create(&runtime->ops()).take();
  build = std::make_unique<Build>(*graph);
  Session::Options plain;
  plain.fusion = false;
  session = Session::connect(runtime, "local", graph, plain).take();
  const Value x = placeholder(DType::f32, PartialShape::scalar());
  std::vector<Value> parts;
  for (int i = 0; i < 6; ++i) {
    const std::string name = "part" + std::to_string(i);
    const int64_t rows = i == 4 ? 4 << 10 : 3 << 10;
    parts.push_back(build->sum(build->op("Softmax", {build->op("BroadcastTo", {x, build->ints({rows, 1024}, DType::i64)}, {}, name)}),
                               build->ints({1})));
  }
  // Each by itself fits, one after the other.
  std::vector<Tensor> out;
  EXPECT_TRUE(run({{x, Tensor::scalar<float>(1).take()}}, parts, &out).ok());
  // All at one time do not, though none of them is too large.
  std::vector<Value> whole;
  for (int i = 0; i < 6; ++i) {
    whole.push_back(build->op("BroadcastTo", {x, build->ints({3 << 10, 1024}, DType::i64)}, {}, "whole" + std::to_string(i)));
  }
  const Value sum = build->op("L2Loss", {build->op("AddN", std::span<const Value>(whole))});
  const Status status = run({{x, Tensor::scalar<float>(1).take()}}, {sum}, &out);
  ASSERT_EQ(status.ok() ? Code::ok : status.code(), Code::resource_exhausted) << (status.ok() ? "" : status.message());
  EXPECT_NE(status.message().find("at one time"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("\"whole"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("12582912 bytes"), std::string::npos) << status.message();
}

TEST(SizesElsewhere, APartOnAnotherTaskIsRefusedByName) {
  const Scratch scratch;
  ::chmod(scratch.path().c_str(), 0700);
  const auto runtime = Runtime::create({.compute_threads = 1}).take();
  Server::Options options;
  options.cluster = ClusterSpec::parse("worker=unix:" + (scratch / "w0")).take();
  options.job = "worker";
  auto server = Server::start(runtime->host().take(), std::move(options), runtime);
  ASSERT_TRUE(server.ok()) << server.status().message();
  const auto client = Runtime::create({.compute_threads = 1}).take();
  const auto graph = Graph::create(&client->ops()).take();
  Build build(*graph);
  const Value x = build.op("Placeholder", {}, {{"dtype", DType::f32}, {"shape", PartialShape::scalar()}});
  graph->push_device("/job:worker/task:0");
  const std::vector<Value> wanted = corners(build, huge(build, x, int64_t{1} << 31, "far"));
  ASSERT_TRUE(graph->pop_device().ok());
  ASSERT_TRUE(build.ok()) << build.status().message();
  Session::Options session_options;
  session_options.connect_timeout_ns = 20'000'000'000;
  auto session = Session::connect(client, server.value()->target(), graph, session_options);
  ASSERT_TRUE(session.ok()) << session.status().message();
  const Tensor one = Tensor::scalar<float>(1).take();
  const Tensor* const feed = &one;
  for (const Value corner : wanted) {
    Tensor out;
    expect_named(session.value()->run({{&x, 1}, {&feed, 1}, {&corner, 1}, {}, 20'000'000'000}, {&out, 1}), "far");
  }
}

// Taps that lie further apart than the image is large take no memory for what is between them, forwards, backwards and before a bias.
TEST_F(Sizes, TapsFarApartTakeNoMemory) {
  Runtime::Options small;
  small.compute_threads = 1;
  small.memory_limit_bytes = 16 << 20;
  runtime = Runtime::create(small).take();
  graph = Graph::create(&runtime->ops()).take();
  build = std::make_unique<Build>(*graph);
  session = Session::connect(runtime, "local", graph, {}).take();
  const Value x = placeholder(DType::f32, Shape::of({1, 5, 5, 2})), filter = placeholder(DType::f32, Shape::of({2, 3, 2, 3}));
  const Value bias = placeholder(DType::f32, Shape::of({3}));
  const std::vector<Feed> feeds = {{x, floats({1, 5, 5, 2}, std::vector<float>(50, 1))},
                                   {filter, floats({2, 3, 2, 3}, std::vector<float>(36, 1))},
                                   {bias, floats({3}, {1, 2, 3})}};
  const std::vector<Attr> far = {
      {"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", "SAME"}, {"dilations", std::vector<int64_t>{1, int64_t{1} << 26, 1, 1}}};
  const Value forth[] = {x, filter};
  const Value y = build->op("Conv2D", forth, far);
  // Between two rows of taps there is room for the whole image, so none meets it.
  EXPECT_EQ(values(fetch(build->op("BiasAdd", {y, bias}), feeds))[1], 2);
  const Value back[] = {build->ints({1, 5, 5, 2}), filter, y}, weights[] = {x, build->ints({2, 3, 2, 3}), y};
  EXPECT_EQ(values(fetch(build->op("Conv2DBackpropInput", back, far), feeds)), std::vector<float>(50, 0));
  EXPECT_EQ(values(fetch(build->op("Conv2DBackpropFilter", weights, far), feeds)), std::vector<float>(36, 0));
}

}  // namespace
}  // namespace dtg
