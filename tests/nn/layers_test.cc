// Layers, losses and metrics: shapes, names, values, gradients that flow, equal weights for equal seeds.
#include "nn/layers.h"

#include <cmath>
#include <cstring>

#include "graph/gradient.h"
#include "nn/attention.h"
#include "nn/losses.h"
#include "nn/recurrent.h"
#include "small_model.h"

namespace dtg {
namespace {

PartialShape shape_of(SmallModel& small, Value value) { return small.graph().info(value).shape; }

// The classifier of the demo, small.
Value classifier(SmallModel& small, Value images) {
  Model& model = small.model();
  Value x = good(conv2d(model, images, {.filters = 4, .padding = Padding::same, .activation = Activation::relu}));
  x = good(max_pool2d(model, x, {}));
  x = good(conv2d(model, x, {.filters = 3, .activation = Activation::tanh}));
  x = good(flatten(model, x));
  x = good(dense(model, x, {.units = 5, .activation = Activation::relu}));
  return good(dense(model, x, {.units = 3}));
}

TEST(Layers, NamesAndShapes) {
  SmallModel small;
  const Value images = small.placeholder("images", DType::f32, {-1, 8, 8, 1});
  const Value logits = classifier(small, images);
  EXPECT_EQ(shape_of(small, logits).text(), "[?,3]");
  std::vector<std::string> names;
  for (const NamedVariable& variable : small.model().variables()) names.push_back(variable.name + variable.shape.text());
  EXPECT_EQ(names, (std::vector<std::string>{"conv2d/kernel[3,3,1,4]", "conv2d/bias[4]", "conv2d_1/kernel[3,3,4,3]", "conv2d_1/bias[3]",
                                             "dense/kernel[12,5]", "dense/bias[5]", "dense_1/kernel[5,3]", "dense_1/bias[3]"}));
}

TEST(Layers, EqualSeedsGiveEqualWeights) {
  std::vector<float> first;
  for (uint64_t seed : {7u, 7u, 8u}) {
    SmallModel small(seed);
    classifier(small, small.placeholder("images", DType::f32, {-1, 8, 8, 1}));
    small.init();
    std::vector<float> all;
    for (const NamedVariable& variable : small.model().variables()) {
      const auto values = small.floats(variable.read);
      all.insert(all.end(), values.begin(), values.end());
    }
    if (first.empty()) first = all;
    if (seed == 7) EXPECT_EQ(all, first);
    else EXPECT_NE(all, first);
  }
}

TEST(Layers, TwoKernelsOfOneModelDiffer) {
  SmallModel small;
  const Value x = small.placeholder("x", DType::f32, {-1, 6});
  (void)good(dense(small.model(), x, {.units = 6}));
  (void)good(dense(small.model(), x, {.units = 6}));
  small.init();
  EXPECT_NE(small.floats(small.model().find("dense/kernel")->read), small.floats(small.model().find("dense_1/kernel")->read));
}

TEST(Initializers, HaveTheirMoments) {
  struct Case {
    Initializer initializer;
    double mean, deviation, limit;
  };
  // 300 inputs, 200 outputs.
  const Case cases[] = {
      {Initializer::uniform(-1, 3), 1, 4 / std::sqrt(12), 3},
      {Initializer::normal(2, 0.5), 2, 0.5, 10},
      {Initializer::truncated_normal(0, 1), 0, 0.8796, 2},
      {Initializer::glorot_uniform(), 0, std::sqrt(2.0 / 500), std::sqrt(6.0 / 500)},
      {Initializer::glorot_normal(), 0, std::sqrt(2.0 / 500), 1},
      {Initializer::he_uniform(), 0, std::sqrt(2.0 / 300), std::sqrt(6.0 / 300)},
      {Initializer::he_normal(), 0, std::sqrt(2.0 / 300), 1},
      {Initializer::constant(4), 4, 0, 4},
  };
  for (const Case& each : cases) {
    SmallModel small(3);
    const NamedVariable v =
        good(small.model().add_variable({.name = "v", .shape = Shape::of({300, 200}), .initializer = each.initializer}));
    small.init();
    const auto values = small.floats(v.read);
    ASSERT_EQ(values.size(), 60000u);
    double sum = 0, squares = 0, greatest = -1e9;
    for (float value : values) {
      sum += value;
      squares += static_cast<double>(value) * value;
      greatest = std::max<double>(greatest, value);
    }
    const double mean = sum / 60000, kind = static_cast<double>(each.initializer.kind);
    EXPECT_NEAR(mean, each.mean, 0.02 * (each.deviation + 1e-9)) << kind;
    EXPECT_NEAR(std::sqrt(std::max(0.0, squares / 60000 - mean * mean)), each.deviation, 0.01 * each.deviation + 1e-6) << kind;
    EXPECT_LE(greatest, each.limit * 1.000001) << kind;
  }
}

TEST(Layers, GradientsReachEveryWeight) {
  SmallModel small;
  const Value images = small.placeholder("images", DType::f32, {4, 8, 8, 1});
  const Value labels = small.placeholder("labels", DType::i64, {4});
  const Value loss = good(sparse_softmax_cross_entropy(small.graph(), labels, classifier(small, images)));
  std::vector<Value> handles;
  for (const NamedVariable& variable : small.model().variables()) handles.push_back(variable.handle);
  auto gradients = add_gradients(small.graph(), {&loss, 1}, handles, {});
  ASSERT_TRUE(gradients.ok()) << gradients.status().message();
  small.init();
  std::vector<float> pixels(256);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i * 37 % 101) / 101;
  const std::vector<int64_t> classes = {0, 1, 2, 1};
  const std::vector<Tensor> fed = {good(Tensor::of<float>(Shape::of({4, 8, 8, 1}), std::span<const float>(pixels))),
                                   good(Tensor::of<int64_t>(Shape::of({4}), std::span<const int64_t>(classes)))};
  for (size_t i = 0; i < handles.size(); ++i) {
    ASSERT_TRUE(gradients.value()[i].any());
    const Tensor found = small.fetch(gradients.value()[i].dense, {images, labels}, fed);
    ASSERT_TRUE(found.valid());
    EXPECT_TRUE(found.shape() == small.model().variables()[i].shape);
    double sum = 0;
    for (float value : found.values<float>()) sum += std::abs(value);
    EXPECT_GT(sum, 0) << small.model().variables()[i].name;
  }
}

TEST(Layers, DenseOfRankThreeWorksOnTheLastDimension) {
  SmallModel small;
  const Value x = small.placeholder("x", DType::f32, {-1, 3, 2});
  const Value y = good(dense(small.model(), x, {.units = 1, .kernel = Initializer::ones(), .bias = Initializer::constant(0.5)}));
  small.init();
  const std::vector<float> given = {1, 2, 3, 4, 5, 6};
  const Tensor found = small.fetch(y, {x}, {good(Tensor::of<float>(Shape::of({1, 3, 2}), std::span<const float>(given)))});
  EXPECT_EQ(found.shape().text(), "[1,3,1]");
  EXPECT_EQ(found.values<float>()[0], 3.5f);
  EXPECT_EQ(found.values<float>()[2], 11.5f);
}

TEST(Layers, DropoutKeepsTheMeanAndFollowsTheStep) {
  SmallModel small;
  const Value step = small.placeholder("step", DType::i64, {});
  const Value training = small.placeholder("training", DType::boolean, {});
  Build build(small.graph());
  const Value ones = build.op("Fill", {build.ints({100, 100}), build.scalar(DType::f32, 1)});
  const Value y = good(dropout(small.model(), ones, 0.25, step, training));
  const auto at = [&](int64_t count, bool on) {
    const Tensor result = small.fetch(y, {step, training}, {good(Tensor::scalar<int64_t>(count)), good(Tensor::scalar<bool>(on))});
    return std::vector<float>(result.values<float>().begin(), result.values<float>().end());
  };
  const auto first = at(1, true);
  double sum = 0;
  for (float value : first) {
    EXPECT_TRUE(value == 0 || std::abs(value - 4.0f / 3) < 1e-6);
    sum += value;
  }
  EXPECT_NEAR(sum / 10000, 1, 0.02);
  EXPECT_EQ(at(1, true), first);
  EXPECT_NE(at(2, true), first);
  EXPECT_EQ(at(1, false), std::vector<float>(10000, 1.0f));
}

TEST(Losses, MatchTheirFormulas) {
  SmallModel small;
  Build build(small.graph());
  const std::vector<float> logits = {1, 2, 0.5, -1, 0, 3}, dense_labels = {0, 1, 0, 0.5, 0.25, 0.25};
  const std::vector<int64_t> labels = {1, 0};
  const Value x = build.constant(good(Tensor::of<float>(Shape::of({2, 3}), std::span<const float>(logits))));
  const Value z = build.constant(good(Tensor::of<float>(Shape::of({2, 3}), std::span<const float>(dense_labels))));
  const Value y = build.constant(good(Tensor::of<int64_t>(Shape::of({2}), std::span<const int64_t>(labels))));
  double log_sum[2], sparse = 0, full = 0, sigmoid = 0, squares = 0;
  for (size_t r = 0; r < 2; ++r) {
    double sum = 0;
    for (size_t c = 0; c < 3; ++c) sum += std::exp(static_cast<double>(logits[r * 3 + c]));
    log_sum[r] = std::log(sum);
    sparse += log_sum[r] - logits[r * 3 + static_cast<size_t>(labels[r])];
    for (size_t c = 0; c < 3; ++c) {
      const double a = logits[r * 3 + c], b = dense_labels[r * 3 + c], p = 1 / (1 + std::exp(-a));
      full += b * (log_sum[r] - a);
      sigmoid -= b * std::log(p) + (1 - b) * std::log(1 - p);
      squares += (a - b) * (a - b);
    }
  }
  Graph& graph = small.graph();
  EXPECT_NEAR(small.floats(good(sparse_softmax_cross_entropy(graph, y, x)))[0], sparse / 2, 1e-6);
  EXPECT_NEAR(small.floats(good(softmax_cross_entropy(graph, z, x)))[0], full / 2, 1e-6);
  EXPECT_NEAR(small.floats(good(sigmoid_cross_entropy(graph, z, x)))[0], sigmoid / 6, 1e-6);
  EXPECT_NEAR(small.floats(good(mean_squared_error(graph, z, x)))[0], squares / 6, 1e-6);
  EXPECT_EQ(small.floats(good(accuracy(graph, y, x)))[0], 0.5f);
  EXPECT_EQ(small.fetch(good(correct_count(graph, y, x))).values<int64_t>()[0], 1);
}

TEST(Losses, ALabelThatIsNoClassIsAnError) {
  SmallModel small;
  const Value x = small.placeholder("x", DType::f32, {-1, 3}), y = small.placeholder("y", DType::i32, {-1});
  const std::vector<float> logits(6);
  const Tensor scores = good(Tensor::of<float>(Shape::of({2, 3}), std::span<const float>(logits)));
  for (const Value metric : {good(accuracy(small.graph(), y, x)), good(correct_count(small.graph(), y, x))}) {
    for (const int32_t label : {3, -1, 2}) {
      const std::vector<int32_t> labels = {0, label};
      const Tensor classes = good(Tensor::of<int32_t>(Shape::of({2}), std::span<const int32_t>(labels)));
      const Value feeds[] = {x, y};
      const Tensor* const tensors[] = {&scores, &classes};
      Tensor result;
      const Status status =
          small.session().run({.feeds = feeds, .feed_tensors = tensors, .fetches = {&metric, 1}, .targets = {}}, {&result, 1});
      EXPECT_EQ(status.ok(), label == 2) << label << ": " << status.message();
    }
  }
}

// Only a graph: nobody has the memory.
TEST(Layers, MoreRowsThanAnIntCanCount) {
  SmallModel small;
  const Value ids = small.placeholder("ids", DType::i64, {-1});
  const Value rows = good(embedding(small.model(), ids, {.rows = 3'000'000'000, .width = 2}));
  EXPECT_EQ(shape_of(small, rows).text(), "[?,2]");
  EXPECT_EQ(small.model().variables()[0].shape.text(), "[3000000000,2]");
}

TEST(Layers, ARefusedLayerLeavesNothingBehind) {
  SmallModel small;
  Model& model = small.model();
  const Value image = small.placeholder("image", DType::f32, {-1, 8, 8, 3});
  const Value ids = small.placeholder("ids", DType::f32, {-1});
  for (const Conv2DLayer& bad : {Conv2DLayer{.filters = 4, .stride_height = -1}, Conv2DLayer{.filters = 4, .dilation_width = 0},
                                 Conv2DLayer{.filters = 4, .kernel_height = 9, .padding = Padding::valid},
                                 Conv2DLayer{.filters = 4, .dilation_height = int64_t{1} << 62}}) {
    EXPECT_EQ(conv2d(model, image, bad).status().code(), Code::invalid_argument);
  }
  EXPECT_EQ(embedding(model, ids, {.rows = 3, .width = 2}).status().code(), Code::invalid_argument);
  EXPECT_EQ(embedding(model, small.placeholder("int", DType::i32, {-1}), {.rows = 0, .width = 2}).status().code(), Code::invalid_argument);
  (void)good(conv2d(model, image, {.filters = 4}));
  ASSERT_EQ(model.variables().size(), 2u);
  EXPECT_EQ(model.variables()[0].name, "conv2d/kernel");
  const Value wide = small.placeholder("wide", DType::f32, {-1, int64_t{1} << 40, int64_t{1} << 40});
  EXPECT_EQ(flatten(model, wide).status().code(), Code::invalid_argument);
}

TEST(Layers, SayWhatIsWrong) {
  SmallModel small;
  Model& model = small.model();
  const Value whole = small.placeholder("whole", DType::i32, {-1, 3});
  const Value open = small.placeholder("open", DType::f32, {-1, -1});
  const Value good = small.placeholder("good", DType::f32, {-1, 3});
  EXPECT_EQ(dense(model, whole, {.units = 2}).status().code(), Code::invalid_argument);
  EXPECT_EQ(dense(model, open, {.units = 2}).status().code(), Code::invalid_argument);
  EXPECT_EQ(dense(model, good, {}).status().code(), Code::invalid_argument);
  EXPECT_EQ(conv2d(model, good, {.filters = 2}).status().code(), Code::invalid_argument);
  EXPECT_EQ(flatten(model, open).status().code(), Code::invalid_argument);
  EXPECT_EQ(max_pool2d(model, good, {}).status().code(), Code::invalid_argument);
  EXPECT_EQ(dropout(model, good, 1.5, whole, {}).status().code(), Code::invalid_argument);
  EXPECT_EQ(dense(model, Value(), {.units = 2}).status().code(), Code::invalid_argument);
  EXPECT_TRUE(model.variables().empty());
}

// As in Keras: a sequence of no steps has no last output, whatever state it begins with; its state stays what it was.
TEST(Layers, ASequenceOfNoStepsKeepsItsStateAndHasNoOutput) {
  using Layer = RecurrentLayer;
  for (const auto kind : {Layer::Kind::lstm, Layer::Kind::gru, Layer::Kind::simple}) {
    SmallModel small;
    const Value x = small.placeholder("x", DType::f32, {2, 3, 2});
    Build build(small.graph());
    const Value start = build.constant(good(Tensor::of<float>(Shape::of({2, 2}), std::array{0.5f, 0.5f, 0.5f, 0.5f})));
    const Value lengths = build.constant(good(Tensor::of<int64_t>(Shape::of({2}), std::array{int64_t{0}, int64_t{2}})));
    Layer layer = {.kind = kind, .units = 2};
    layer.lengths = lengths, layer.hidden = start;
    if (kind == Layer::Kind::lstm) layer.cell = start;
    const Recurrent made = good(recurrent(small.model(), x, layer));
    small.init();
    const Tensor fed =
        good(Tensor::of<float>(Shape::of({2, 3, 2}), std::array{1.f, 2.f, 3.f, 4.f, 5.f, 6.f, 7.f, 8.f, 9.f, 1.f, 2.f, 3.f}));
    const Tensor* const given[] = {&fed};
    const Value wanted[] = {made.outputs, made.hidden};
    std::vector<Tensor> out(2);
    ASSERT_TRUE(small.session().run({.feeds = {&x, 1}, .feed_tensors = given, .fetches = wanted, .targets = {}}, out).ok());
    const auto* outputs = out[0].as<float>();
    for (int i = 0; i < 6; ++i) EXPECT_EQ(outputs[i], 0) << i;
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(out[1].as<float>()[i], 0.5f);
      EXPECT_NE(outputs[8 + i], 0);
      EXPECT_EQ(outputs[10 + i], outputs[8 + i]) << "held";
    }
  }
}

// One length for each example, one state for each: told where the layer is made if both numbers are known, else by the run.
TEST(Layers, SayWhatThereIsOneOfForEachExample) {
  SmallModel small;
  Model& model = small.model();
  const Value x = small.placeholder("x", DType::f32, {2, 4, 2}), three = small.placeholder("three", DType::i64, {3});
  const Value open = small.placeholder("open", DType::f32, {-1, 4, 2}), lengths = small.placeholder("lengths", DType::i64, {-1});
  const Value states = small.placeholder("states", DType::f32, {3, 5});
  const auto says = [](const Status& status, const char* words) {
    EXPECT_EQ(status.code(), Code::invalid_argument) << words;
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  };
  const Model::Mark before = model.mark();
  for (const auto kind : {RecurrentLayer::Kind::lstm, RecurrentLayer::Kind::gru, RecurrentLayer::Kind::simple}) {
    says(recurrent(model, x, {.kind = kind, .units = 5, .lengths = three}).status(),
         "the lengths are \"three:0\" of int64[3], and \"x:0\" of float32[2,4,2] has 2 examples; one for each of them is needed");
    says(recurrent(model, x, {.kind = kind, .units = 5, .hidden = states}).status(), "the first hidden state is \"states:0\"");
  }
  says(attention(model, x, x, {}, {.heads = 2, .key_width = 3, .lengths = three}).status(), "has 2 examples; one for each");
  AttentionCache cache;
  cache.keys = cache.values = small.placeholder("cache", DType::f32, {-1, -1, -1, -1});
  says(attention_step(model, x, {.heads = 2, .key_width = 3}, &cache).status(), "a Reshape to [-1, longest, 2, 3] says it");
  model.go_back(before);
  const Value y = good(recurrent(model, open, {.kind = RecurrentLayer::Kind::gru, .units = 5, .lengths = lengths})).hidden;
  small.init();
  const Tensor ones = good(Tensor::of<float>(Shape::of({2, 4, 2}), std::vector<float>(16, 1)));
  const Tensor few = good(Tensor::of<int64_t>(Shape::of({3}), std::span<const int64_t>({1, 1, 1})));
  const Value feeds[] = {open, lengths};
  const Tensor* const given[] = {&ones, &few};
  Tensor made;
  says(small.session().run({.feeds = feeds, .feed_tensors = given, .fetches = {&y, 1}, .targets = {}}, {&made, 1}),
       "one_length_for_each_example");
}

}  // namespace
}  // namespace dtg
