// Adaptive pooling, bags, position encodings, noise, cached attention and the attention that holds no matrix of scores: against Keras and
// TensorFlow (keras/places.json.gz, made by keras/make_places.py), against each other, and misused.
#include "nn/places.h"

#include <cmath>

#include "golden.h"
#include "graph/gradient.h"
#include "graph/recompute.h"
#include "nn/attention.h"
#include "nn/convolution.h"
#include "nn/noise.h"
#include "nn/optimizer.h"
#include "wire/graph_codec.h"

namespace dtg {
namespace {

// ---- against Keras ----

class PlacesCase {
 public:
  PlacesCase(const Answers& given, bool open) : given_(given), settings_(given["settings"]), open_(open) {}

  void check() {
    Build build(small_.graph());
    const Value output = build.op("Identity", {layer()});  // a pool that changes no size gives its input, which is fed
    const Value total =
        build.sum(build.reshape(build.mul(output, build.constant(tensor_of(given_["direction"]))), build.ints({-1})), build.ints({0}));
    ASSERT_TRUE(build.ok()) << build.status().message();
    std::vector<Value> sources;
    std::vector<std::string> names;
    for (const auto& [name, value] : given_["gradients"].items()) {
      names.push_back(name);
      sources.push_back(inputs_.contains(name) ? inputs_[name] : weight(name).handle);
    }
    const std::vector<Gradient> gradients = good(add_gradients(small_.graph(), {&total, 1}, sources, {}));
    for (const auto& [name, value] : given_["weights"].items()) give(weight(name), tensor_of(value));
    expect_close("output", fetch(output), given_["output"], 2e-5, 1);
    for (size_t i = 0; i < names.size(); ++i) {
      ASSERT_TRUE(gradients[i].any()) << names[i];
      expect_close("gradient of " + names[i], fetch(densify(build, gradients[i])), given_["gradients"][names[i]], 2e-5, 1);
    }
  }

 private:
  Value layer() {
    Model& model = small_.model();
    if (given_["layer"] == "adaptive") {
      const std::vector<int64_t> sizes = settings_["sizes"];
      return good(adaptive_pool(model, feed("x", false), settings_["max"] ? GlobalPool::max : GlobalPool::mean, sizes));
    }
    if (given_["layer"] == "position") {
      PositionLayer layer;
      if (settings_["kind"] == "learned")
        layer.kind = PositionLayer::Kind::learned, layer.longest = given_["weights"]["embeddings"]["shape"][0];
      layer.wavelength = settings_["wavelength"];
      layer.start = Build(small_.graph()).integer(settings_["start"].get<int64_t>());
      scope_ = "position_embedding/";
      return good(position_embedding(model, feed("x", open_), layer));
    }
    using Combiner = EmbeddingBagLayer::Combiner;
    EmbeddingBagLayer layer;
    const Answers& table = given_["weights"]["embeddings"]["shape"];
    layer.rows = table[0], layer.width = table[1];
    layer.combiner = settings_["combiner"] == "mean" ? Combiner::mean : settings_["combiner"] == "sum" ? Combiner::sum : Combiner::sqrtn;
    if (given_["inputs"].contains("w")) layer.weights = feed("w", open_);
    if (given_["ints"].contains("lengths")) layer.lengths = feed_ints("lengths", {static_cast<int64_t>(given_["ints"]["lengths"].size())});
    scope_ = "embedding_bag/";
    const Answers& ids = given_["ints"]["ids"];
    return good(embedding_bag(model, feed_ints("ids", {static_cast<int64_t>(ids.size()), static_cast<int64_t>(ids[0].size())}), layer));
  }

  Value placeholder(const std::string& name, DType dtype, std::vector<int64_t> dims, bool open, Tensor value) {
    for (size_t i = 0; open && i + (dims.size() > 2 ? 1 : 0) < dims.size(); ++i) dims[i] = -1;
    const Value made = small_.placeholder(name.c_str(), dtype, dims);
    fed_.push_back({made, std::move(value)});
    return made;
  }
  Value feed(const std::string& name, bool open) {
    const Answers& given = given_["inputs"][name];
    return inputs_[name] = placeholder(name, DType::f32, given["shape"], open, tensor_of(given));
  }
  Value feed_ints(const std::string& name, const std::vector<int64_t>& dims) {
    std::vector<int64_t> values;
    for (const Answers& each : given_["ints"][name]) {
      if (each.is_array()) values.insert(values.end(), each.begin(), each.end());
      else values.push_back(each);
    }
    return placeholder(name, DType::i64, dims, open_, good(Tensor::of<int64_t>(good(Shape::make(dims)), std::span<const int64_t>(values))));
  }
  NamedVariable weight(const std::string& name) {
    const NamedVariable* const found = small_.model().find(scope_ + name);
    EXPECT_TRUE(found) << scope_ << name;
    return found ? *found : NamedVariable();
  }
  void give(const NamedVariable& variable, const Tensor& value) {
    const Value feeds[] = {small_.graph().node(variable.assign).inputs[1]};
    const Tensor* const tensors[] = {&value};
    const Status status =
        small_.session().run({.feeds = feeds, .feed_tensors = tensors, .fetches = {}, .targets = {&variable.assign, 1}}, {});
    ASSERT_TRUE(status.ok()) << status.message();
  }
  Tensor fetch(Value value) {
    std::vector<Value> feeds;
    std::vector<Tensor> tensors;
    for (const auto& [at, tensor] : fed_) feeds.push_back(at), tensors.push_back(tensor);
    return small_.fetch(value, feeds, tensors);
  }

  SmallModel small_;
  const Answers& given_;
  const Answers& settings_;
  const bool open_;
  std::string scope_;
  std::map<std::string, Value> inputs_;
  std::vector<std::pair<Value, Tensor>> fed_;
};

class Places : public ::testing::TestWithParam<bool> {};

TEST_P(Places, LayersGiveTheSameAsKeras) {
  const Answers all = golden("places.json.gz");
  if (!all.is_object()) GTEST_SKIP() << "set DTG_SOURCE_DIR";
  ASSERT_GE(all["cases"].size(), 72u);
  size_t number = 0;
  for (const Answers& each : all["cases"]) {
    SCOPED_TRACE("case " + std::to_string(number++) + ": " + std::string(each["layer"]) + " " + each["settings"].dump());
    PlacesCase(each, GetParam()).check();
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Places, ::testing::Bool(), [](const auto& one) { return one.param ? "Open" : "Known"; });

// ---- noise ----

struct Moments {
  double mean = 0, deviation = 0;
};
Moments moments(std::span<const float> values) {
  double sum = 0, squares = 0;
  for (const float each : values) sum += each, squares += static_cast<double>(each) * static_cast<double>(each);
  const auto count = static_cast<double>(values.size());
  return {sum / count, std::sqrt(std::max(0.0, squares / count - sum * sum / count / count))};
}

Tensor constant_of(std::vector<int64_t> dims, float value) {
  const Shape shape = good(Shape::make(dims));
  const std::vector<float> values(static_cast<size_t>(shape.count()), value);
  return good(Tensor::of<float>(shape, std::span<const float>(values)));
}

TEST(Noise, HasKerasMeansAndDeviations) {
  SmallModel small;
  const Value step = small.placeholder("step", DType::i64, {}), on = small.placeholder("on", DType::boolean, {});
  const Value x = small.placeholder("x", DType::f32, {-1, -1});
  const auto run = [&](Value value, int64_t at, bool training) {
    return small.fetch(value, {step, on, x},
                       {good(Tensor::scalar<int64_t>(at)), good(Tensor::scalar<bool>(training)), constant_of({200, 100}, 2)});
  };
  const Value added = good(noise(small.model(), x, Noise::gaussian_noise, 0.5, step, on));
  const Value times = good(noise(small.model(), x, Noise::gaussian_dropout, 0.2, step, on));
  const Value alpha = good(noise(small.model(), x, Noise::alpha_dropout, 0.3, step, on));
  const Tensor first = run(added, 1, true);
  const Moments a = moments(first.values<float>()), t = moments(run(times, 1, true).values<float>());
  EXPECT_NEAR(a.mean, 2, 0.02);
  EXPECT_NEAR(a.deviation, 0.5, 0.02);
  EXPECT_NEAR(t.mean, 2, 0.04);
  EXPECT_NEAR(t.deviation, 2 * std::sqrt(0.2 / 0.8), 0.04);
  EXPECT_TRUE(std::ranges::equal(run(added, 1, true).values<float>(), first.values<float>())) << "a step can be repeated";
  EXPECT_FALSE(std::ranges::equal(run(added, 2, true).values<float>(), first.values<float>()));
  for (const Value each : {added, times, alpha}) EXPECT_EQ(moments(run(each, 1, false).values<float>()).deviation, 0);
  // What is dropped is SELU's limit, scaled and shifted as all of it is.
  const Tensor dropped = run(alpha, 1, true);
  const auto values = dropped.values<float>();
  const double limit = -1.7580993408473766, scale = 1 / std::sqrt(0.7 * (1 + 0.3 * limit * limit)), offset = -scale * limit * 0.3;
  const auto low = std::ranges::count_if(values, [&](float v) { return std::abs(v - (scale * limit + offset)) < 1e-5; });
  const auto high = std::ranges::count_if(values, [&](float v) { return std::abs(v - (scale * 2 + offset)) < 1e-5; });
  EXPECT_EQ(low + high, static_cast<int64_t>(values.size()));
  EXPECT_NEAR(static_cast<double>(low) / static_cast<double>(values.size()), 0.3, 0.02);
}

TEST(Noise, SpatialDropoutTakesWholeChannels) {
  SmallModel small;
  const Value step = small.placeholder("step", DType::i64, {});
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{20, 5, 30}, {20, 2, 3, 30}, {20, 2, 2, 2, 30}}) {
    const std::string name = "x" + std::to_string(dims.size());
    std::vector<int64_t> known(dims.size(), -1);
    known.back() = dims.back();
    const Value x = small.placeholder(name.c_str(), DType::f32, known);
    const Value y = good(noise(small.model(), x, Noise::spatial_dropout, 0.25, step, {}));
    const Tensor out = small.fetch(y, {step, x}, {good(Tensor::scalar<int64_t>(3)), constant_of(dims, 1)});
    const auto values = out.values<float>();
    const int64_t channels = 30, inside = out.shape().count(1, static_cast<int>(dims.size()) - 1);
    int64_t gone = 0;
    for (int64_t b = 0; b < 20; ++b) {
      for (int64_t c = 0; c < channels; ++c) {
        const float one = values[static_cast<size_t>(b * inside * channels + c)];
        EXPECT_TRUE(one == 0 || std::abs(one - 1 / 0.75f) < 1e-6f) << one;
        gone += one == 0;
        for (int64_t p = 0; p < inside; ++p) EXPECT_EQ(values[static_cast<size_t>((b * inside + p) * channels + c)], one);
      }
    }
    EXPECT_NEAR(static_cast<double>(gone) / 600, 0.25, 0.06);
  }
}

TEST(Noise, MisuseIsRefused) {
  SmallModel small;
  Model& model = small.model();
  const Value step = small.placeholder("step", DType::i64, {}), x = small.placeholder("x", DType::f32, {2, 3});
  const Value whole = small.placeholder("n", DType::i32, {2, 3, 4});
  const auto code = [&](Value value, Noise kind, double amount) { return noise(model, value, kind, amount, step, {}).status().code(); };
  EXPECT_EQ(code(x, Noise::spatial_dropout, 0.1), Code::invalid_argument) << "rank 2";
  EXPECT_EQ(code(whole, Noise::gaussian_noise, 0.1), Code::invalid_argument) << "whole numbers";
  EXPECT_EQ(code(x, Noise::gaussian_noise, -1), Code::invalid_argument);
  EXPECT_EQ(code(x, Noise::gaussian_dropout, 1), Code::invalid_argument);
  EXPECT_EQ(code(x, Noise::alpha_dropout, std::nan("")), Code::invalid_argument);
  EXPECT_EQ(noise(model, x, Noise::gaussian_noise, 1, {}, {}).status().code(), Code::invalid_argument) << "no step";
  EXPECT_EQ(adaptive_pool(model, small.placeholder("o", DType::f32, {2, -1, 3}), GlobalPool::mean, std::vector<int64_t>{2}).status().code(),
            Code::invalid_argument)
      << "an open dimension";
  EXPECT_EQ(embedding_bag(model, x, {.rows = 2, .width = 2}).status().code(), Code::invalid_argument) << "ids that are no whole numbers";
  EXPECT_EQ(position_embedding(model, x, {}).status().code(), Code::invalid_argument) << "rank 2";
  EXPECT_EQ(position_embedding(model, small.placeholder("s", DType::f32, {1, 5, 2}), {.kind = PositionLayer::Kind::learned, .longest = 4})
                .status()
                .code(),
            Code::invalid_argument)
      << "more steps than rows";
}

TEST(Bags, RowsBeyondALengthGetNoGradient) {
  SmallModel small;
  const Value ids = small.placeholder("ids", DType::i64, {2, 3}), lengths = small.placeholder("lengths", DType::i64, {2});
  const Value bag = good(embedding_bag(small.model(), ids, {.rows = 5, .width = 2, .lengths = lengths}));
  const Value handle = small.model().variables()[0].handle;
  const std::vector<Gradient> gradients = good(add_gradients(small.graph(), {&bag, 1}, {&handle, 1}, {}));
  ASSERT_TRUE(gradients[0].is_rows());
  small.init();
  const std::vector<int64_t> given = {1, 2, 4, 3, 4, 4}, counts = {2, 0};
  const Tensor touched = small.fetch(gradients[0].indices, {ids, lengths},
                                     {good(Tensor::of<int64_t>(Shape::of({2, 3}), std::span<const int64_t>(given))),
                                      good(Tensor::of<int64_t>(Shape::of({2}), std::span<const int64_t>(counts)))});
  EXPECT_EQ(std::vector<int64_t>(touched.values<int64_t>().begin(), touched.values<int64_t>().end()), (std::vector<int64_t>{1, 2}));
}

// ---- attention ----

std::vector<float> drawn(size_t count, uint32_t seed) {
  std::vector<float> values(count);
  for (float& each : values) {
    seed = seed * 1664525 + 1013904223;
    each = static_cast<float>(seed >> 8) / static_cast<float>(1 << 23) - 1;
  }
  return values;
}

TEST(AttentionCache, StepByStepGivesWhatAllAtOnceGives) {
  SmallModel small;
  constexpr int64_t kBatch = 2, kPlaces = 5, kWidth = 6;
  AttentionLayer layer;
  layer.heads = 2, layer.key_width = 3, layer.value_width = 4, layer.causal = true;
  const Value x = small.placeholder("x", DType::f32, {kBatch, kPlaces, kWidth});
  const Value whole = good(attention(small.model(), x, x, {}, layer));
  layer.weights_of = "multi_head_attention";
  Build build(small.graph());
  const auto places = [&](int64_t from, int64_t count) {
    return build.op("Slice", {x, build.ints({0, from, 0}), build.ints({kBatch, count, kWidth})});
  };
  AttentionCache cache = good(attention_cache(small.model(), places(0, 2), layer, kPlaces));
  std::vector<Value> outs;
  for (const auto& [from, count] : {std::pair<int64_t, int64_t>(2, 1), {3, 2}})
    outs.push_back(good(attention_step(small.model(), places(from, count), layer, &cache)));
  outs.push_back(build.integer(1));
  const Value steps = build.op("ConcatV2", outs);
  // Cross-attention from a cache of all places.
  layer.causal = false;
  AttentionCache fixed = good(attention_cache(small.model(), x, layer, 0));
  const Value across = good(attention_step(small.model(), places(0, 2), layer, &fixed));
  const Value directly = good(attention(small.model(), places(0, 2), x, {}, layer));
  ASSERT_TRUE(build.ok()) << build.status().message();
  EXPECT_FALSE(fixed.position.valid());
  small.init();
  const std::vector<float> values = drawn(kBatch * kPlaces * kWidth, 7);
  const std::vector<Tensor> given = {good(Tensor::of<float>(Shape::of({kBatch, kPlaces, kWidth}), std::span<const float>(values)))};
  const Tensor all = small.fetch(whole, {x}, given), some = small.fetch(steps, {x}, given);
  ASSERT_EQ(some.shape().text(), "[2,3,6]");
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t i = 0; i < 3 * kWidth; ++i)
      EXPECT_NEAR(some.values<float>()[static_cast<size_t>(b * 3 * kWidth + i)],
                  all.values<float>()[static_cast<size_t>((b * kPlaces + 2) * kWidth + i)], 1e-5);
  }
  const Tensor from_cache = small.fetch(across, {x}, given), plain = small.fetch(directly, {x}, given);
  for (size_t i = 0; i < plain.values<float>().size(); ++i) EXPECT_NEAR(from_cache.values<float>()[i], plain.values<float>()[i], 1e-6);
  const Tensor position = small.fetch(cache.position, {x}, given);
  EXPECT_EQ(position.values<int32_t>()[0], kPlaces);
}

TEST(AttentionCache, WhatDoesNotFitIsRefused) {
  SmallModel small;
  AttentionLayer layer;
  layer.heads = 2, layer.key_width = 3;
  const Value x = small.placeholder("x", DType::f32, {1, 4, 6});
  EXPECT_EQ(attention_cache(small.model(), x, layer, 3).status().code(), Code::invalid_argument) << "more places than room";
  AttentionCache cache = good(attention_cache(small.model(), x, layer, 5));
  AttentionLayer other = layer;
  other.heads = 3;
  EXPECT_EQ(attention_step(small.model(), x, other, &cache).status().code(), Code::invalid_argument) << "other heads";
  AttentionCache none;
  EXPECT_EQ(attention_step(small.model(), x, layer, &none).status().code(), Code::invalid_argument) << "no cache";
  // Four more places than the one that is left: known only when it runs.
  const Value y = good(attention_step(small.model(), x, layer, &cache));
  small.init();
  const Tensor given = constant_of({1, 4, 6}, 1);
  const Value feeds[] = {x};
  const Tensor* const tensors[] = {&given};
  Tensor result;
  EXPECT_EQ(small.session().run({.feeds = feeds, .feed_tensors = tensors, .fetches = {&y, 1}, .targets = {}}, {&result, 1}).code(),
            Code::invalid_argument);
}

// A single place would be stretched into no place at all.
TEST(AttentionCache, APlaceBeyondTheLastIsRefused) {
  SmallModel small;
  AttentionLayer layer;
  layer.heads = 2, layer.key_width = 3;
  const Value x = small.placeholder("x", DType::f32, {1, 1, 6});
  AttentionCache cache = good(attention_cache(small.model(), x, layer, 4));
  cache.position = small.placeholder("position", DType::i32, {});
  const Value fed = cache.position;
  const Value y = good(attention_step(small.model(), x, layer, &cache));
  small.init();
  const Tensor given = constant_of({1, 1, 6}, 1);
  for (const int32_t position : {3, 4, 9, -1, -4}) {
    const Tensor at = good(Tensor::scalar<int32_t>(position));
    const Value feeds[] = {x, fed};
    const Tensor* const tensors[] = {&given, &at};
    const Value fetches[] = {y, cache.keys, cache.position};
    std::vector<Tensor> results(3);
    const Status status = small.session().run({.feeds = feeds, .feed_tensors = tensors, .fetches = fetches, .targets = {}}, results);
    EXPECT_EQ(status.code(), position == 3 ? Code::ok : Code::invalid_argument) << position << ": " << status.message();
  }
}

// ---- recompute ----

// Blocks of dense layers on a model, each in a scope of its own where `again`.
struct Deep {
  explicit Deep(bool again, int64_t width, int blocks) {
    Build build(small.graph());
    x = small.placeholder("x", DType::f32, {-1, width});
    const Value step = build.integer(3, DType::i64);
    Value y = x;
    for (int b = 0; b < blocks; ++b) {
      if (again) {
        EXPECT_TRUE(open_recompute(small.graph()).ok());
      }
      for (int layer = 0; layer < 4; ++layer) {
        y = good(dense(small.model(), y, {.units = width, .activation = Activation::tanh}));
        y = good(dropout(small.model(), y, 0.2, step, {}));
      }
      if (again) {
        EXPECT_TRUE(close_recompute(small.graph()).ok());
      }
    }
    loss = build.sum(build.op("Square", {y}), build.ints({0, 1}));
    std::vector<Value> sources;
    for (const NamedVariable& variable : small.model().variables()) sources.push_back(variable.handle);
    sources.push_back(x);
    for (const Gradient& gradient : good(add_gradients(small.graph(), {&loss, 1}, sources, {}))) gradients.push_back(gradient.dense);
    small.init();
  }
  SmallModel small;
  Value x, loss;
  std::vector<Value> gradients;
};

TEST(Recompute, GivesTheSameBitsFromNodesThatRunAgain) {
  Deep plain(false, 8, 3), again(true, 8, 3);
  const std::vector<float> values = drawn(5 * 8, 3);
  const std::vector<Tensor> given = {good(Tensor::of<float>(Shape::of({5, 8}), std::span<const float>(values)))};
  ASSERT_EQ(plain.gradients.size(), again.gradients.size());
  for (size_t i = 0; i < plain.gradients.size(); ++i) {
    const Tensor a = plain.small.fetch(plain.gradients[i], {plain.x}, given), b = again.small.fetch(again.gradients[i], {again.x}, given);
    EXPECT_TRUE(std::ranges::equal(a.values<float>(), b.values<float>())) << "gradient " << i;
  }
  int repeated = 0;
  for (NodeId id = 0; id < again.small.graph().node_count(); ++id) repeated += again.small.graph().node(id).name.ends_with("/_recompute");
  EXPECT_GE(repeated, 3 * 4 * 3);
}

// What is computed again is what was fed in its place, by whatever way the graph came here.
TEST(Recompute, FollowsWhatIsFedInside) {
  for (const bool again : {false, true}) {
    SmallModel small;
    Build build(small.graph());
    const Value x = small.placeholder("x", DType::f32, {2});
    if (again) {
      ASSERT_TRUE(open_recompute(small.graph()).ok());
    }
    const Value keep =
        build.op("PlaceholderWithDefault", {build.scalar(DType::f32, 1)}, {{"dtype", DType::f32}, {"shape", PartialShape(Shape())}});
    const Value inner = build.mul(keep, x), y = build.op("Sin", {build.mul(inner, inner)});
    if (again) {
      ASSERT_TRUE(close_recompute(small.graph()).ok());
    }
    ASSERT_TRUE(build.ok()) << build.status().message();
    const Value sources[] = {x, inner};
    const std::vector<Gradient> gradients = good(add_gradients(small.graph(), {&y, 1}, sources, {}));
    const Tensor given = constant_of({2}, 0.5), five = good(Tensor::scalar<float>(5)), two = constant_of({2}, 2);
    // y = sin((k x)^2): dy/dx = cos((k x)^2) 2 k^2 x.
    EXPECT_NEAR(small.fetch(gradients[0].dense, {x, keep}, {given, five}).values<float>()[0], std::cos(6.25) * 25, 1e-4) << again;
    // With k x fed as 2 and nothing else: dy/d(k x) = cos(4) 4.
    EXPECT_NEAR(small.fetch(gradients[1].dense, {inner}, {two}).values<float>()[1], std::cos(4.0) * 4, 1e-5) << again;
  }
}

TEST(Recompute, AScopeThatWasOpenWhenItWasWrittenIsNone) {
  SmallModel small;
  ASSERT_TRUE(open_recompute(small.graph()).ok());
  Build build(small.graph());
  build.op("Neg", {build.scalar(DType::f32, 1)});
  const Ref<Graph> read = good(Graph::create(&small.graph().ops()));
  MemoryBudget budget(int64_t{1} << 30);
  ASSERT_TRUE(decode_graph(good(encode_graph(small.graph())), *read, budget).ok());
  EXPECT_TRUE(recompute_scopes(*read).empty());
  EXPECT_TRUE(open_recompute(*read).ok());
  EXPECT_TRUE(close_recompute(*read).ok());
  EXPECT_EQ(recompute_scopes(*read).size(), 1u);
}

TEST(Recompute, ScopesArePairedAndDoNotNest) {
  SmallModel small;
  Graph& graph = small.graph();
  EXPECT_EQ(close_recompute(graph).code(), Code::failed_precondition);
  EXPECT_TRUE(open_recompute(graph).ok());
  EXPECT_EQ(open_recompute(graph).code(), Code::failed_precondition);
  EXPECT_TRUE(close_recompute(graph).ok());
  EXPECT_EQ(close_recompute(graph).code(), Code::failed_precondition);
  EXPECT_TRUE(open_recompute(graph).ok());
  EXPECT_TRUE(close_recompute(graph).ok());
  ASSERT_EQ(recompute_scopes(graph).size(), 2u);
  Ref<Graph> body = good(Graph::create_inside(Ref<Graph>::share(&graph)));
  EXPECT_EQ(open_recompute(*body).code(), Code::unimplemented);
}

}  // namespace
}  // namespace dtg
