// Adds the nodes of normalizations. Called by the thread that builds the model.
#include "nn/norm.h"

#include <cmath>

#include "graph/closure.h"
#include "nn/layer.h"
#include "nn/scope.h"

namespace dtg {
namespace {

Status check_numbers(const char* layer, double epsilon, double momentum = 0) {
  if (!(epsilon >= 0) || !std::isfinite(epsilon)) return invalid_argument("%s: epsilon is %g; it must be 0 or more", layer, epsilon);
  if (!(momentum >= 0 && momentum <= 1)) return invalid_argument("%s: momentum is %g; it must be in [0, 1]", layer, momentum);
  return {};
}

// Sums of many 16-bit numbers would lose most of their bits.
DType statistics_of(DType input) { return input == DType::f16 || input == DType::bf16 ? DType::f32 : input; }

// One of a layer's vectors over the channels.
struct Vectors {
  Model& model;
  std::string_view weights_of;
  DType dtype;
  int64_t channels;

  Result<NamedVariable> make(std::string_view name, double first, bool trainable = true) const {
    return variable_of(model, weights_of,
                       {.name = name,
                        .dtype = dtype,
                        .shape = Shape::of({channels}),
                        .initializer = first == 0 ? Initializer::zeros() : Initializer::ones(),
                        .trainable = trainable});
  }
  // Its value, or the number everywhere where the layer has no such vector.
  Result<Value> value(Build& build, bool wanted, std::string_view name, double otherwise) const {
    if (wanted) {
      DTG_ASSIGN(const NamedVariable made, make(name, otherwise));
      return made.read;
    }
    return build.op("Fill", {build.ints({channels}), build.scalar(dtype, otherwise)});
  }
  // y times one of them plus another, where they have a name; in the type that the layer's input had.
  Result<Value> apply(Build& build, Value y, std::string_view factor, std::string_view offset, DType to) const {
    DTG_TRY(build.status());
    if (!factor.empty()) {
      DTG_ASSIGN(const NamedVariable made, make(factor, 1));
      y = build.mul(y, made.read);
    }
    if (!offset.empty()) {
      DTG_ASSIGN(const NamedVariable made, make(offset, 0));
      y = build.add(y, made.read);
    }
    if (build.ok()) y = build.cast(y, to);
    DTG_TRY(build.status());
    return y;
  }
};

// (x - mean) / sqrt(variance + epsilon) over `axes`, which are kept with an extent of 1; without the mean where it is `rms`.
Value standardized(Build& build, Value x, Value axes, double epsilon, bool rms) {
  const Attr keep{"keep_dims", true};
  const Value centred = rms ? x : build.sub(x, build.op("Mean", {x, axes}, {keep}));
  if (!build.ok()) return {};
  const Value variance = build.op("Mean", {build.op("Square", {centred}), axes}, {keep});
  if (!build.ok()) return {};
  return build.mul(centred, build.op("Rsqrt", {build.add(variance, build.like(variance, epsilon))}));
}

// What a batch normalization gives: the output, and the statistics it used.
struct Normalized {
  Value y, mean, variance;
};

struct BatchNorm {
  Value x, gamma, beta, mean, variance;
  double epsilon;

  // One pass of the kernel over [rows, 1, 1, channels], or the same from parts for float64, which it does not take.
  Normalized add(Build& build, bool training) const {
    if (build.info(x).dtype == DType::f64) return from_parts(build, training);
    const Value y = build.op("FusedBatchNormV3", {x, gamma, beta, mean, variance},
                             {{"epsilon", epsilon}, {"is_training", training}, {"data_format", "NHWC"}});
    if (!training || !build.ok()) return {y, mean, variance};
    // Output 4 is the variance of the batch itself; output 2 is what TensorFlow 1 made of it for a small sample.
    return {y, y.sibling(1), y.sibling(4)};
  }

  Normalized from_parts(Build& build, bool training) const {
    const Value axes = build.ints({0, 1, 2});
    Normalized made{{}, mean, variance};
    if (training) {
      made.mean = build.op("Mean", {x, axes});
      made.variance = build.op("Mean", {build.op("SquaredDifference", {x, build.op("StopGradient", {made.mean})}), axes});
    }
    if (!build.ok()) return made;
    // The mean's own share in the variance's gradient is zero, so it may stop there; the rest flows through both.
    const Value factor = build.mul(gamma, build.op("Rsqrt", {build.add(made.variance, build.like(made.variance, epsilon))}));
    made.y = build.add(build.mul(build.sub(x, made.mean), factor), beta);
    return made;
  }
};

Result<Closure> branch(Graph& around, const BatchNorm& norm, bool training) {
  DTG_ASSIGN(Ref<Graph> body, Graph::create_inside(Ref<Graph>::share(&around)));
  Build build(*body);
  const Normalized made = norm.add(build, training);
  DTG_TRY(build.status());
  return finish_function(std::move(body), training ? "training" : "inference", {made.y, made.mean, made.variance});
}

bool is_constant_false(const Graph& graph, Value training) {
  if (!training.valid()) return false;
  const Tensor known = graph.constant_value(training);
  return known.valid() && !*static_cast<const bool*>(known.data());
}

// Either of the two, as the run says.
Result<Normalized> by_switch(Graph& graph, const BatchNorm& norm, Value training) {
  DTG_ASSIGN(Closure yes, branch(graph, norm, true));
  DTG_ASSIGN(Closure no, branch(graph, norm, false));
  DTG_ASSIGN(const std::vector<Value> outs, add_if(graph, training, std::move(yes), std::move(no)));
  return Normalized{outs[0], outs[1], outs[2]};
}

}  // namespace

Result<Value> batch_norm(Model& model, Value x, const BatchNormLayer& layer, Value training) {
  constexpr const char* kLayer = "batch normalization";
  DTG_ASSIGN(const int64_t channels, channels_of(model, x, kLayer, 2, kRankMax));
  DTG_TRY(check_numbers(kLayer, layer.epsilon, layer.momentum));
  if (training.valid()) {
    DTG_TRY(model.graph().check(training).with_context(kLayer));
    const ValueInfo& info = model.graph().info(training);
    if (info.dtype != DType::boolean || (info.shape.has_rank() && info.shape.rank() != 0)) {
      return invalid_argument("%s: `training` is %s; a bool scalar is needed", kLayer, described(model, training).c_str());
    }
  }
  const NameScope scope(model.graph(), layer.name);
  Build build(model.graph());
  const DType dtype = model.graph().info(x).dtype;
  const Vectors vectors{model, layer.weights_of, statistics_of(dtype), channels};
  BatchNorm norm{{}, {}, {}, {}, {}, layer.epsilon};
  DTG_ASSIGN(norm.gamma, vectors.value(build, layer.scale, "gamma", 1));
  DTG_ASSIGN(norm.beta, vectors.value(build, layer.center, "beta", 0));
  DTG_ASSIGN(const NamedVariable mean, vectors.make("moving_mean", 0, false));
  DTG_ASSIGN(const NamedVariable variance, vectors.make("moving_variance", 1, false));
  norm.mean = mean.read;
  norm.variance = variance.read;
  const bool flat = build.info(x).shape.rank() != 4;
  norm.x = flat ? build.reshape(x, build.ints({-1, 1, 1, channels})) : x;
  DTG_TRY(build.status());
  const bool never_trains = model.is_inside() && is_constant_false(model.graph(), training);
  Normalized made;
  if (training.valid() && !never_trains) {
    DTG_ASSIGN(made, by_switch(model.graph(), norm, training));
  } else {
    made = norm.add(build, !never_trains);
  }
  const Value y = flat ? shaped(build, build.reshape(made.y, build.shape(x)), build.info(x).shape) : made.y;
  DTG_TRY(build.status());
  if (never_trains) return y;
  model.note_switched(y, training);
  DTG_TRY(model.follow(mean, made.mean, 1 - layer.momentum));
  DTG_TRY(model.follow(variance, made.variance, 1 - layer.momentum));
  return y;
}

Result<Value> layer_norm(Model& model, Value x, const LayerNormLayer& layer) {
  const char* const what = layer.rms ? "RMS normalization" : "layer normalization";
  DTG_ASSIGN(const int64_t channels, channels_of(model, x, what, 1, kRankMax));
  DTG_TRY(check_numbers(what, layer.epsilon));
  const std::string_view fallback = layer.rms ? "rms_normalization" : "layer_normalization";
  const NameScope scope(model.graph(), layer.name.empty() ? fallback : layer.name);
  Build build(model.graph());
  const PartialShape shape = build.info(x).shape;
  const DType dtype = build.info(x).dtype, wide = statistics_of(dtype);
  const Vectors vectors{model, layer.weights_of, wide, channels};
  const double epsilon = layer.epsilon != 0 ? layer.epsilon : layer.rms ? 1e-6 : 1e-3;
  Value y = standardized(build, build.cast(x, wide), build.ints({shape.rank() - 1}), epsilon, layer.rms);
  return vectors.apply(build, y, layer.scale ? (layer.rms ? "scale" : "gamma") : "", layer.center && !layer.rms ? "beta" : "", dtype);
}

Result<Value> group_norm(Model& model, Value x, const GroupNormLayer& layer) {
  constexpr const char* kLayer = "group normalization";
  DTG_ASSIGN(const int64_t channels, channels_of(model, x, kLayer, 2, kRankMax));
  DTG_TRY(check_numbers(kLayer, layer.epsilon));
  if (layer.groups < 1 || channels % layer.groups != 0) {
    return invalid_argument("%s: %lld channels cannot be cut into %lld equal groups", kLayer, static_cast<long long>(channels),
                            static_cast<long long>(layer.groups));
  }
  const NameScope scope(model.graph(), layer.name);
  Build build(model.graph());
  const PartialShape shape = build.info(x).shape;
  const DType dtype = build.info(x).dtype, wide = statistics_of(dtype);
  const Vectors vectors{model, layer.weights_of, wide, channels};
  // [batch, everywhere, groups, channels of a group]
  const Value batch = build.op("StridedSlice", {build.shape(x), build.ints({0}), build.ints({1}), build.ints({1})});
  const Value cut = build.op("ConcatV2", {batch, build.ints({-1, layer.groups, channels / layer.groups}), build.integer(0)});
  Value y = standardized(build, build.reshape(build.cast(x, wide), cut), build.ints({1, 3}), layer.epsilon, false);
  y = shaped(build, build.reshape(y, build.shape(x)), shape);
  return vectors.apply(build, y, layer.scale ? "gamma" : "", layer.center ? "beta" : "", dtype);
}

}  // namespace dtg
