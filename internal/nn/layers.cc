// Adds the nodes of layers: dense, convolution, pooling, flattening and embedding. Called by the thread that
// builds the model.
#include "nn/layers.h"

#include <cmath>

#include "nn/layer.h"
#include "nn/scope.h"

namespace dtg {
Value activate(Build& build, Value x, Activation activation) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return build.op("Relu", {x});
    case Activation::relu6: return build.op("Relu6", {x});
    case Activation::elu: return build.op("Elu", {x});
    case Activation::selu: return build.op("Selu", {x});
    case Activation::softplus: return build.op("Softplus", {x});
    case Activation::sigmoid: return build.op("Sigmoid", {x});
    case Activation::tanh: return build.op("Tanh", {x});
    case Activation::softmax: return build.op("Softmax", {x});
    case Activation::gelu: {
      const Value error = build.op("Erf", {build.mul(x, build.like(x, std::sqrt(0.5)))});
      return build.mul(build.mul(x, build.like(x, 0.5)), build.add(error, build.like(x, 1)));
    }
  }
  build.fail(invalid_argument("activation %d is unknown", static_cast<int>(activation)));
  return {};
}

Result<Value> dense(Model& model, Value x, const DenseLayer& layer) {
  DTG_ASSIGN(const int64_t in, channels_of(model, x, "dense layer", 2, kRankMax));
  if (layer.units < 1) return invalid_argument("dense layer: %lld units; at least 1 is needed", static_cast<long long>(layer.units));
  const NameScope scope(model.graph(), layer.name);
  Build build(model.graph());
  DTG_ASSIGN(const Shape shape, Shape::make(std::array{in, layer.units}));
  DTG_ASSIGN(
      const NamedVariable kernel,
      variable_of(model, layer.weights_of, {.name = "kernel", .dtype = build.info(x).dtype, .shape = shape, .initializer = layer.kernel}));
  Value y = project(build, x, kernel.read, in, layer.units);
  if (layer.use_bias) y = add_bias(model, build, y, layer.units, layer.bias, layer.weights_of);
  y = activate(build, y, layer.activation);
  DTG_TRY(build.status());
  return y;
}

Result<Value> conv2d(Model& model, Value x, const Conv2DLayer& layer) {
  DTG_ASSIGN(const int64_t in, channels_of(model, x, "conv2d layer", 4, 4));
  if (layer.filters < 1 || layer.kernel_height < 1 || layer.kernel_width < 1) {
    return invalid_argument("conv2d layer: %lld filters of %lld x %lld; at least 1 of each is needed",
                            static_cast<long long>(layer.filters), static_cast<long long>(layer.kernel_height),
                            static_cast<long long>(layer.kernel_width));
  }
  const PartialShape& image = model.graph().info(x).shape;
  DTG_TRY(check_window("conv2d layer", image.dim(1), layer.kernel_height, layer.stride_height, layer.dilation_height, layer.padding));
  DTG_TRY(check_window("conv2d layer", image.dim(2), layer.kernel_width, layer.stride_width, layer.dilation_width, layer.padding));
  const NameScope scope(model.graph(), layer.name);
  Build build(model.graph());
  DTG_ASSIGN(const Shape shape, Shape::make(std::array{layer.kernel_height, layer.kernel_width, in, layer.filters}));
  DTG_ASSIGN(
      const NamedVariable kernel,
      variable_of(model, layer.weights_of, {.name = "kernel", .dtype = build.info(x).dtype, .shape = shape, .initializer = layer.kernel}));
  Value y = build.op("Conv2D", {x, kernel.read},
                     {{"strides", std::vector<int64_t>{1, layer.stride_height, layer.stride_width, 1}},
                      {"dilations", std::vector<int64_t>{1, layer.dilation_height, layer.dilation_width, 1}},
                      {"padding", padding_name(layer.padding)}});
  if (layer.use_bias) y = add_bias(model, build, y, layer.filters, layer.bias, layer.weights_of);
  y = activate(build, y, layer.activation);
  DTG_TRY(build.status());
  return y;
}

namespace {

Result<Value> pool2d(Model& model, const char* op, const char* name, Value x, const Pool2DLayer& layer) {
  DTG_TRY(model.graph().check(x).with_context(name));
  const int64_t high = layer.stride_height ? layer.stride_height : layer.window_height;
  const int64_t wide = layer.stride_width ? layer.stride_width : layer.window_width;
  const NameScope scope(model.graph(), layer.name.empty() ? std::string_view(name) : layer.name);
  Build build(model.graph());
  const Value y = build.op(op, {x},
                           {{"ksize", std::vector<int64_t>{1, layer.window_height, layer.window_width, 1}},
                            {"strides", std::vector<int64_t>{1, high, wide, 1}},
                            {"padding", padding_name(layer.padding)}});
  DTG_TRY(build.status());
  return y;
}

}  // namespace

Result<Value> max_pool2d(Model& model, Value x, const Pool2DLayer& layer) { return pool2d(model, "MaxPool", "max_pool2d", x, layer); }

Result<Value> avg_pool2d(Model& model, Value x, const Pool2DLayer& layer) { return pool2d(model, "AvgPool", "avg_pool2d", x, layer); }

Result<Value> flatten(Model& model, Value x) {
  DTG_TRY(model.graph().check(x).with_context("flatten"));
  const PartialShape& shape = model.graph().info(x).shape;
  int64_t width = 1;
  for (int i = 1; i < shape.rank(); ++i) {
    if (width < 0 || shape.dim(i) < 0) {
      width = -1;
    } else if (__builtin_mul_overflow(width, shape.dim(i), &width)) {
      return invalid_argument("flatten: the input is %s; its rows have more elements than can be counted", described(model, x).c_str());
    }
  }
  if (shape.rank() < 1 || width < 0) {
    return invalid_argument("flatten: the input is %s; every dimension but the first must be known", described(model, x).c_str());
  }
  const NameScope scope(model.graph(), "flatten");
  Build build(model.graph());
  const Value y = build.reshape(x, build.ints({-1, width}));
  DTG_TRY(build.status());
  return y;
}

Result<Value> embedding(Model& model, Value ids, const EmbeddingLayer& layer) {
  DTG_TRY(model.graph().check(ids).with_context("embedding layer"));
  const DType of_ids = model.graph().info(ids).dtype;
  if (of_ids != DType::i32 && of_ids != DType::i64) {
    return invalid_argument("embedding layer: the ids are %s; int32 or int64 is needed", described(model, ids).c_str());
  }
  if (layer.rows < 1 || layer.width < 1) {
    return invalid_argument("embedding layer: %lld rows of %lld; at least 1 of each is needed", static_cast<long long>(layer.rows),
                            static_cast<long long>(layer.width));
  }
  const NameScope scope(model.graph(), layer.name);
  Build build(model.graph());
  DTG_ASSIGN(const Shape shape, Shape::make(std::array{layer.rows, layer.width}));
  DTG_ASSIGN(const NamedVariable table,
             variable_of(model, layer.weights_of, {.name = "embeddings", .shape = shape, .initializer = layer.table}));
  const Value y = look_up(model, build, table, ids);
  DTG_TRY(build.status());
  return y;
}

}  // namespace dtg
