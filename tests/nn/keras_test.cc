// Layers against real Keras: settings and shapes that were drawn, weights, outputs, gradients, moving statistics (keras/layers.json.gz,
// made by keras/make.py beside it).
#include "golden.h"
#include "graph/gradient.h"
#include "nn/attention.h"
#include "nn/convolution.h"
#include "nn/norm.h"
#include "nn/optimizer.h"
#include "nn/recurrent.h"
#include "small_model.h"

namespace dtg {
namespace {

// One layer in a model of its own, with the case's values fed for inputs and weights.
class KerasCase {
 public:
  KerasCase(const Answers& given, bool open) : given_(given), settings_(given["settings"]) {
    for (const auto& [name, value] : given["inputs"].items()) inputs_[name] = feed(name, tensor_of(value), open);
    if (given.contains("ints") && given["ints"].contains("lengths")) {
      const std::vector<int64_t> lengths = given["ints"]["lengths"];
      const auto count = static_cast<int64_t>(lengths.size());
      lengths_ = small_.placeholder("lengths", DType::i64, {open ? -1 : count});
      fed_.push_back({lengths_, good(Tensor::of<int64_t>(Shape::of({count}), std::span<const int64_t>(lengths)))});
    }
  }

  void check() {
    const std::vector<Value> outputs = layer();
    ASSERT_EQ(outputs.size(), given_["outputs"].size());
    const std::string scope = scope_;
    Build build(small_.graph());
    Value total;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Value part = build.sum(
          build.reshape(build.mul(outputs[i], build.constant(tensor_of(given_["directions"][i]))), build.ints({-1})), build.ints({0}));
      total = i == 0 ? part : build.add(total, part);
    }
    ASSERT_TRUE(build.ok()) << build.status().message();
    std::vector<Value> sources;
    std::vector<std::string> names;
    for (const auto& [name, value] : given_["gradients"].items()) {
      const auto input = inputs_.find(name);
      names.push_back(name);
      sources.push_back(input != inputs_.end() ? input->second : variable(name).handle);
    }
    const std::vector<Gradient> gradients = good(add_gradients(small_.graph(), {&total, 1}, sources, {}));
    std::vector<VariableGradient> following;
    ASSERT_TRUE(add_following(small_.model(), 0, &following).ok());
    give_weights();
    for (size_t i = 0; i < outputs.size(); ++i) expect_near("output " + std::to_string(i), outputs[i], given_["outputs"][i]);
    ASSERT_EQ(gradients.size(), names.size());
    for (size_t i = 0; i < names.size(); ++i) expect_near("gradient of " + names[i], dense(gradients[i]), given_["gradients"][names[i]]);
    expect_statistics(following);
  }

 private:
  Value feed(const std::string& name, Tensor value, bool open) {
    std::vector<int64_t> dims(value.shape().dims().begin(), value.shape().dims().end());
    // The last dimension decides the shape of weights; all others may be open.
    for (size_t i = 0; open && i + 1 < dims.size(); ++i) dims[i] = -1;
    const Value made = small_.placeholder(name.c_str(), DType::f32, dims);
    fed_.push_back({made, std::move(value)});
    return made;
  }

  Value input(const char* name) { return inputs_.contains(name) ? inputs_[name] : Value(); }
  bool flag(const char* name) const { return settings_[name].get<bool>(); }
  int64_t number(const char* name) const { return settings_[name].get<int64_t>(); }

  std::vector<Value> layer() {
    const std::string kind = given_["layer"];
    Model& model = small_.model();
    if (kind == "batch_norm") {
      const Value training = small_.placeholder("training", DType::boolean, {});
      fed_.push_back({training, Tensor::scalar<bool>(flag("training")).take()});
      scope_ = "batch_normalization/";
      return {good(
          batch_norm(model, input("x"),
                     {.momentum = settings_["momentum"], .epsilon = settings_["epsilon"], .center = flag("center"), .scale = flag("scale")},
                     training))};
    }
    if (kind == "layer_norm") {
      scope_ = "layer_normalization/";
      return {good(layer_norm(model, input("x"), {.epsilon = settings_["epsilon"], .center = flag("center"), .scale = flag("scale")}))};
    }
    if (kind == "rms_norm") {
      scope_ = "rms_normalization/";
      return {good(layer_norm(model, input("x"), {.rms = true, .epsilon = settings_["epsilon"]}))};
    }
    if (kind == "group_norm") {
      scope_ = "group_normalization/";
      return {good(
          group_norm(model, input("x"),
                     {.groups = number("groups"), .epsilon = settings_["epsilon"], .center = flag("center"), .scale = flag("scale")}))};
    }
    if (kind == "recurrent") return recurrent_layer();
    if (kind == "attention") {
      scope_ = "multi_head_attention/";
      return {good(attention(model, input("query"), input("value").valid() ? input("value") : input("query"), {},
                             {.heads = number("heads"),
                              .key_width = number("key_width"),
                              .value_width = number("value_width"),
                              .output_width = number("output_width"),
                              .use_bias = flag("use_bias"),
                              .causal = flag("causal"),
                              .lengths = lengths_}))};
    }
    if (kind == "up_sampling") return {good(up_sampling2d(model, input("x"), number("high"), number("wide"), flag("bilinear")))};
    if (kind == "global_average") return {good(global_pool(model, input("x"), GlobalPool::mean, flag("keep_dims")))};
    if (kind == "global_max") return {good(global_pool(model, input("x"), GlobalPool::max, flag("keep_dims")))};
    return {convolution(kind)};
  }

  std::vector<Value> recurrent_layer() {
    using Kind = RecurrentLayer::Kind;
    using Direction = RecurrentLayer::Direction;
    const std::string kind = settings_["kind"], direction = settings_["direction"];
    RecurrentLayer layer;
    layer.kind = kind == "lstm" ? Kind::lstm : kind == "gru" ? Kind::gru : Kind::simple;
    layer.direction = direction == "both" ? Direction::both : direction == "backward" ? Direction::backward : Direction::forward;
    layer.units = number("units");
    layer.use_bias = flag("use_bias");
    layer.lengths = lengths_;
    layer.hidden = input("hidden");
    layer.cell = input("cell");
    layer.name = "rnn";
    scope_ = "rnn/";
    const Recurrent made = good(recurrent(small_.model(), input("x"), layer));
    if (kind == "lstm") return {made.outputs, made.hidden, made.cell};
    return {made.outputs, made.hidden};
  }

  Value convolution(const std::string& kind) {
    ConvLayer layer;
    for (size_t i = 0; i < settings_["kernel"].size(); ++i) {
      layer.kernel[i] = settings_["kernel"][i];
      layer.stride[i] = settings_["stride"][i];
      layer.dilation[i] = settings_["dilation"][i];
    }
    layer.padding = settings_["padding"] == "same" ? Padding::same : Padding::valid;
    layer.causal = settings_["padding"] == "causal";
    layer.filters = number("filters");
    layer.multiplier = number("multiplier");
    layer.use_bias = flag("use_bias");
    scope_ = kind + "/";
    Model& model = small_.model();
    if (kind == "conv1d") return good(conv1d(model, input("x"), layer));
    if (kind == "conv3d") return good(conv3d(model, input("x"), layer));
    if (kind == "conv2d_transpose") return good(conv2d_transpose(model, input("x"), layer));
    if (kind == "depthwise_conv2d") return good(depthwise_conv2d(model, input("x"), layer));
    EXPECT_EQ(kind, "separable_conv2d");
    return good(separable_conv2d(model, input("x"), layer));
  }

  NamedVariable variable(const std::string& name) {
    const NamedVariable* const found = small_.model().find(scope_ + name);
    EXPECT_TRUE(found) << scope_ << name;
    return found ? *found : NamedVariable();
  }

  void give_weights() {
    ASSERT_EQ(given_["weights"].size(), small_.model().variables().size());
    std::vector<Value> feeds;
    std::vector<Tensor> values;
    std::vector<NodeId> targets;
    for (const auto& [name, value] : given_["weights"].items()) {
      const NamedVariable weight = variable(name);
      values.push_back(tensor_of(value));
      ASSERT_TRUE(values.back().shape() == weight.shape) << name << ": " << weight.shape.text();
      feeds.push_back(small_.graph().node(weight.assign).inputs[1]);
      targets.push_back(weight.assign);
    }
    std::vector<const Tensor*> tensors;
    for (const Tensor& value : values) tensors.push_back(&value);
    if (targets.empty()) return;
    const Status status = small_.session().run({.feeds = feeds, .feed_tensors = tensors, .fetches = {}, .targets = targets}, {});
    ASSERT_TRUE(status.ok()) << status.message();
  }

  Value dense(const Gradient& gradient) {
    Build build(small_.graph());
    Gradient copy = gradient;
    return gradient.any() ? densify(build, copy) : Value();
  }

  Tensor fetch(Value value) {
    std::vector<Value> feeds;
    std::vector<Tensor> tensors;
    for (const auto& [at, tensor] : fed_) {
      feeds.push_back(at);
      tensors.push_back(tensor);
    }
    return small_.fetch(value, feeds, tensors);
  }

  // Sums of many terms in another order, in float32 on both sides.
  void expect_near(const std::string& what, Value value, const Answers& expected) {
    const std::vector<float> wanted = expected["values"];
    // Keras has no gradient where ours is zero, and the other way round.
    const Tensor found = value.valid() ? fetch(value) : Tensor();
    double size = 0;
    for (const float each : wanted) size = std::max<double>(size, std::abs(each));
    if (!found.valid()) {
      EXPECT_EQ(size, 0) << what;
      return;
    }
    const auto have = found.values<float>();
    ASSERT_EQ(have.size(), wanted.size()) << what << " " << found.shape().text();
    EXPECT_EQ(std::vector<int64_t>(expected["shape"]), std::vector<int64_t>(found.shape().dims().begin(), found.shape().dims().end()))
        << what;
    for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(have[i], wanted[i], 2e-5 * (size + 1)) << what << ", element " << i;
  }

  // One step moves by the share of how far the batch is off.
  void expect_statistics(std::span<const VariableGradient> following) {
    ASSERT_EQ(following.size(), given_["after"].size());
    for (const VariableGradient& each : following) {
      Build build(small_.graph());
      const Value after = build.sub(each.variable.read, build.mul(each.gradient.dense, build.like(each.gradient.dense, each.share)));
      const std::string name = each.variable.name.substr(scope_.size());
      expect_near(name + " after a step", after, given_["after"][name]);
    }
  }

  SmallModel small_;
  const Answers& given_;
  const Answers& settings_;
  std::string scope_;
  std::map<std::string, Value> inputs_;
  Value lengths_;
  std::vector<std::pair<Value, Tensor>> fed_;
};

class Keras : public ::testing::TestWithParam<bool> {};

TEST_P(Keras, LayersGiveTheSame) {
  const Answers all = golden("layers.json.gz");
  if (!all.is_object()) GTEST_SKIP() << "set DTG_SOURCE_DIR";
  ASSERT_GT(all["cases"].size(), 100u);
  size_t number = 0;
  for (const Answers& each : all["cases"]) {
    SCOPED_TRACE("case " + std::to_string(number++) + ": " + std::string(each["layer"]) + " " + each["settings"].dump());
    KerasCase(each, GetParam()).check();
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Keras, ::testing::Bool(), [](const auto& one) { return one.param ? "Open" : "Known"; });

}  // namespace
}  // namespace dtg
