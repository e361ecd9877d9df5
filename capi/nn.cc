// dtg/nn.h, the half about layers and losses. Each function reads its struct, fills in the
// defaults and calls its namesake in internal/nn. One thread at a time uses a model.
#include "dtg/nn.h"

#include <algorithm>

#include "capi/guard.h"
#include "capi/model.h"
#include "capi/nn.h"
#include "capi/scale.h"
#include "data/normalize.h"
#include "nn/layers.h"
#include "nn/losses.h"
#include "nn/scope.h"

namespace dtg::capi {
namespace {

Result<Value> add_conv2d(Model& model, Value x, const dtg_conv2d* given) {
  dtg_conv2d c = DTG_CONV2D_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_conv2d), "dtg_conv2d", &c));
  Conv2DLayer layer;
  layer.name = name_or(c.name, c.name_len, "conv2d");
  layer.filters = c.filters;
  layer.kernel_height = number_or(c.kernel_height, 3);
  layer.kernel_width = number_or(c.kernel_width, layer.kernel_height);
  layer.stride_height = number_or(c.stride_height, 1);
  layer.stride_width = number_or(c.stride_width, layer.stride_height);
  layer.dilation_height = number_or(c.dilation_height, 1);
  layer.dilation_width = number_or(c.dilation_width, layer.dilation_height);
  layer.use_bias = c.no_bias == 0;
  DTG_ASSIGN(layer.padding, read_enum(c.padding, Padding::same, "padding"));
  DTG_ASSIGN(layer.activation, read_enum(c.activation, Activation::gelu, "activation"));
  DTG_ASSIGN(layer.kernel, read_initializer(c.kernel, layer.kernel));
  DTG_ASSIGN(layer.bias, read_initializer(c.bias, layer.bias));
  layer.weights_of = text(c.weights_of, c.weights_of_len);
  return conv2d(model, x, layer);
}

Result<Value> normalize(Model& model, Value x, std::string_view given) {
  DTG_TRY(model.graph().check(x).with_context("normalize"));
  DTG_ASSIGN(const Normalization numbers, Normalization::parse(given));
  const PartialShape& shape = model.graph().info(x).shape;
  const auto features = static_cast<int64_t>(numbers.shift.size());
  if (features != 1 && (!shape.has_rank() || shape.rank() == 0 || shape.dim(shape.rank() - 1) != features)) {
    return invalid_argument("normalize: the input is %s, and the normalization is of %lld features", shape.text().c_str(),
                            static_cast<long long>(features));
  }
  const NameScope scope(model.graph(), "normalize");
  Build build(model.graph());
  const Shape of = features == 1 ? Shape() : Shape::of({features});
  DTG_ASSIGN(const Tensor shift, Tensor::of<float>(of, numbers.shift));
  DTG_ASSIGN(const Tensor scale, Tensor::of<float>(of, numbers.scale));
  const Value y = build.div(build.sub(build.cast(x, DType::f32), build.constant(shift)), build.constant(scale));
  DTG_TRY(build.status());
  return y;
}

Result<Pool2DLayer> read_pool(const dtg_pool2d* given) {
  dtg_pool2d c = DTG_POOL2D_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_pool2d), "dtg_pool2d", &c));
  Pool2DLayer layer;
  layer.name = text(c.name, c.name_len);
  layer.window_height = number_or(c.window_height, 2);
  layer.window_width = number_or(c.window_width, layer.window_height);
  layer.stride_height = c.stride_height;
  layer.stride_width = c.stride_width;
  DTG_ASSIGN(layer.padding, read_enum(c.padding, Padding::same, "padding"));
  return layer;
}

using Kind = Initializer::Kind;
static_assert(static_cast<int>(Kind::zeros) + 1 == DTG_INIT_ZEROS && static_cast<int>(Kind::orthogonal) + 1 == DTG_INIT_ORTHOGONAL);

}  // namespace

Result<Initializer> read_initializer(const dtg_initializer& given, const Initializer& fallback) {
  if (given.kind == DTG_INIT_DEFAULT) return fallback;
  if (given.kind < 0 || given.kind > DTG_INIT_ORTHOGONAL) {
    return invalid_argument("an initializer of kind %d; use the DTG_INIT_ constants", given.kind);
  }
  return Initializer{static_cast<Kind>(given.kind - 1), given.a, given.b, 0, 0};
}

Result<DenseLayer> read_dense(const dtg_dense* given) {
  dtg_dense c = DTG_DENSE_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_dense), "dtg_dense", &c));
  DenseLayer layer;
  layer.name = name_or(c.name, c.name_len, "dense");
  layer.units = c.units;
  layer.use_bias = c.no_bias == 0;
  DTG_ASSIGN(layer.activation, read_enum(c.activation, Activation::gelu, "activation"));
  DTG_ASSIGN(layer.kernel, read_initializer(c.kernel, layer.kernel));
  DTG_ASSIGN(layer.bias, read_initializer(c.bias, layer.bias));
  layer.weights_of = text(c.weights_of, c.weights_of_len);
  return layer;
}

Result<EmbeddingLayer> read_embedding(const dtg_embedding* given) {
  dtg_embedding c = DTG_EMBEDDING_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_embedding), "dtg_embedding", &c));
  EmbeddingLayer layer;
  layer.name = name_or(c.name, c.name_len, "embedding");
  layer.rows = c.rows;
  layer.width = c.width;
  DTG_ASSIGN(layer.table, read_initializer(c.table, layer.table));
  layer.weights_of = text(c.weights_of, c.weights_of_len);
  return layer;
}

namespace {

using AddEntropy = Result<Value> (*)(Graph& graph, Value labels, Value logits);

dtg_error* of_logits(AddEntropy add, dtg_model* model, dtg_value labels, dtg_value logits, bool over_classes, const char* what,
                     dtg_value* out) {
  return value_of_model(model, out, [&](ModelObject& object) -> Result<Value> {
    const Model& m = *object.model;
    DTG_ASSIGN(const Value made, add(object.model->graph(), here(m, labels), here(m, logits)));
    tell_scale(object, here(m, logits), Scale::logits, what);
    if (over_classes) tell_one_class(object, here(m, logits), -1, what);
    return made;
  });
}

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_nn_dense(dtg_model* model, dtg_value x, const dtg_dense* layer, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](ModelObject& object) -> Result<Value> {
    DTG_ASSIGN(const DenseLayer what, read_dense(layer));
    DTG_ASSIGN(const Value y, dense(*object.model, here(*object.model, x), what));
    tell_one_unit(object, y, "dense layer");
    return y;
  });
}

dtg_error* dtg_nn_conv2d(dtg_model* model, dtg_value x, const dtg_conv2d* layer, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](ModelObject& object) -> Result<Value> {
    DTG_ASSIGN(const Value y, add_conv2d(*object.model, here(*object.model, x), layer));
    tell_one_unit(object, y, "conv2d layer");
    return y;
  });
}

dtg_error* dtg_nn_max_pool2d(dtg_model* model, dtg_value x, const dtg_pool2d* layer, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) -> Result<Value> {
    DTG_ASSIGN(const Pool2DLayer pool, read_pool(layer));
    return max_pool2d(m, here(m, x), pool);
  });
}

dtg_error* dtg_nn_avg_pool2d(dtg_model* model, dtg_value x, const dtg_pool2d* layer, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) -> Result<Value> {
    DTG_ASSIGN(const Pool2DLayer pool, read_pool(layer));
    return avg_pool2d(m, here(m, x), pool);
  });
}

dtg_error* dtg_nn_flatten(dtg_model* model, dtg_value x, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return flatten(m, here(m, x)); });
}

dtg_error* dtg_nn_dropout(dtg_model* model, dtg_value x, double rate, dtg_value step, dtg_value training, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return dropout(m, here(m, x), rate, here(m, step), here(m, training)); });
}

dtg_error* dtg_nn_embedding(dtg_model* model, dtg_value ids, const dtg_embedding* layer, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) -> Result<Value> {
    DTG_ASSIGN(const EmbeddingLayer what, read_embedding(layer));
    return embedding(m, here(m, ids), what);
  });
}

dtg_error* dtg_nn_normalize(dtg_model* model, dtg_value x, const char* normalization, size_t normalization_len, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) -> Result<Value> {
    DTG_TRY(require(normalization, "normalization"));
    return normalize(m, here(m, x), text(normalization, normalization_len));
  });
}

dtg_error* dtg_nn_activation(dtg_model* model, dtg_value x, dtg_activation activation, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](ModelObject& object) -> Result<Value> {
    Model& m = *object.model;
    DTG_ASSIGN(const Activation kind, read_enum(activation, Activation::gelu, "activation"));
    DTG_TRY(m.graph().check(here(m, x)).with_context("activation"));
    Build build(m.graph());
    const Value y = activate(build, here(m, x), kind);
    DTG_TRY(build.status());
    tell_one_unit(object, y, "activation");
    return y;
  });
}

dtg_error* dtg_nn_sparse_softmax_cross_entropy(dtg_model* model, dtg_value labels, dtg_value logits, dtg_value* out) noexcept {
  return of_logits(sparse_softmax_cross_entropy, model, labels, logits, true, "sparse softmax cross entropy", out);
}

dtg_error* dtg_nn_softmax_cross_entropy(dtg_model* model, dtg_value labels, dtg_value logits, dtg_value* out) noexcept {
  return of_logits(softmax_cross_entropy, model, labels, logits, true, "softmax cross entropy", out);
}

dtg_error* dtg_nn_sigmoid_cross_entropy(dtg_model* model, dtg_value labels, dtg_value logits, dtg_value* out) noexcept {
  return of_logits(sigmoid_cross_entropy, model, labels, logits, false, "sigmoid cross entropy", out);
}

dtg_error* dtg_nn_mean_squared_error(dtg_model* model, dtg_value labels, dtg_value predictions, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return mean_squared_error(m.graph(), here(m, labels), here(m, predictions)); });
}

dtg_error* dtg_nn_accuracy(dtg_model* model, dtg_value labels, dtg_value logits, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return accuracy(m.graph(), here(m, labels), here(m, logits)); });
}

dtg_error* dtg_nn_correct_count(dtg_model* model, dtg_value labels, dtg_value logits, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return correct_count(m.graph(), here(m, labels), here(m, logits)); });
}

}  // extern "C"
