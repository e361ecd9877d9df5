// dtg/nn.h, the half about layers, losses, schedules and optimizers. Each function reads its struct, fills in the
// defaults and calls its namesake in internal/nn. One thread at a time uses a model.
#include "dtg/nn.h"

#include "capi/guard.h"
#include "capi/model.h"
#include "nn/layers.h"
#include "nn/losses.h"
#include "nn/optimizer.h"
#include "nn/schedule.h"

namespace dtg::capi {
namespace {

using Kind = Initializer::Kind;

// A number of an enum of the ABI as our enum, which counts alike.
template <class E>
Result<E> read_enum(int32_t number, E last, const char* what) {
  if (number < 0 || number > static_cast<int32_t>(last)) {
    return invalid_argument("%s: %d is none of its values (0 to %d)", what, number, static_cast<int>(last));
  }
  return static_cast<E>(number);
}

Result<Initializer> read_initializer(const dtg_initializer& given, const Initializer& fallback) {
  if (given.kind == DTG_INIT_DEFAULT) return fallback;
  if (given.kind < 0 || given.kind > DTG_INIT_HE_NORMAL) {
    return invalid_argument("an initializer of kind %d; use the DTG_INIT_ constants", given.kind);
  }
  return Initializer{static_cast<Kind>(given.kind - 1), given.a, given.b};
}
static_assert(static_cast<int>(Kind::zeros) + 1 == DTG_INIT_ZEROS && static_cast<int>(Kind::he_normal) + 1 == DTG_INIT_HE_NORMAL);

std::string_view name_or(const char* name, size_t length, std::string_view fallback) {
  const std::string_view given = text(name, length);
  return given.empty() ? fallback : given;
}

int64_t number_or(int64_t given, int64_t fallback) { return given == 0 ? fallback : given; }
double real_or(double given, double fallback) { return given == 0 ? fallback : given; }

// Every function here: hold the model, make a value, hand it out.
template <class Fn>
dtg_error* value_of_model(dtg_model* handle, dtg_value* out, Fn&& fn) {
  return guard([&]() -> Status {
    DTG_TRY(require(out, "out"));
    const Held<ModelObject> held(handle, HandleType::model);
    DTG_TRY(held.status());
    return all_or_nothing(*held->model, [&]() -> Status {
      DTG_ASSIGN(const Value value, fn(*held->model));
      *out = to_c(value);
      return {};
    });
  });
}

Result<Value> add_dense(Model& model, Value x, const dtg_dense* given) {
  dtg_dense c = DTG_DENSE_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_dense), "dtg_dense", &c));
  DenseLayer layer;
  layer.name = name_or(c.name, c.name_len, "dense");
  layer.units = c.units;
  layer.use_bias = c.no_bias == 0;
  DTG_ASSIGN(layer.activation, read_enum(c.activation, Activation::gelu, "activation"));
  DTG_ASSIGN(layer.kernel, read_initializer(c.kernel, layer.kernel));
  DTG_ASSIGN(layer.bias, read_initializer(c.bias, layer.bias));
  return dense(model, x, layer);
}

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
  return conv2d(model, x, layer);
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

Result<Value> add_embedding(Model& model, Value ids, const dtg_embedding* given) {
  dtg_embedding c = DTG_EMBEDDING_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_embedding), "dtg_embedding", &c));
  EmbeddingLayer layer;
  layer.name = name_or(c.name, c.name_len, "embedding");
  layer.rows = c.rows;
  layer.width = c.width;
  DTG_ASSIGN(layer.table, read_initializer(c.table, layer.table));
  return embedding(model, ids, layer);
}

}  // namespace

Result<Optimizer> read_optimizer(const dtg_optimizer* given) {
  dtg_optimizer c = DTG_OPTIMIZER_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_optimizer), "dtg_optimizer", &c));
  Optimizer optimizer;
  DTG_ASSIGN(optimizer.kind, read_enum(c.kind, Optimizer::Kind::rms_prop, "kind of optimizer"));
  optimizer.nesterov = c.nesterov != 0;
  optimizer.learning_rate = value_of(c.learning_rate);
  optimizer.rate = real_or(c.rate, optimizer.rate);
  optimizer.momentum = c.momentum;
  optimizer.beta1 = real_or(c.beta1, optimizer.beta1);
  optimizer.beta2 = real_or(c.beta2, optimizer.beta2);
  optimizer.epsilon = real_or(c.epsilon, optimizer.epsilon);
  optimizer.decay = real_or(c.decay, optimizer.decay);
  optimizer.initial_accumulator = real_or(c.initial_accumulator, optimizer.initial_accumulator);
  optimizer.clip_norm = c.clip_norm;
  return optimizer;
}

Result<VariableGradient> read_gradient(const Model& model, dtg_value handle, const dtg_gradient& given) {
  for (const NamedVariable& variable : model.variables()) {
    if (variable.handle != value_of(handle)) continue;
    return VariableGradient{variable,
                            {value_of(given.dense), value_of(given.values), value_of(given.indices), value_of(given.dense_shape)}};
  }
  return invalid_argument("apply gradients: one of the handles is no variable of this model");
}

}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_nn_dense(dtg_model* model, dtg_value x, const dtg_dense* layer, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return add_dense(m, value_of(x), layer); });
}

dtg_error* dtg_nn_conv2d(dtg_model* model, dtg_value x, const dtg_conv2d* layer, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return add_conv2d(m, value_of(x), layer); });
}

dtg_error* dtg_nn_max_pool2d(dtg_model* model, dtg_value x, const dtg_pool2d* layer, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) -> Result<Value> {
    DTG_ASSIGN(const Pool2DLayer pool, read_pool(layer));
    return max_pool2d(m, value_of(x), pool);
  });
}

dtg_error* dtg_nn_avg_pool2d(dtg_model* model, dtg_value x, const dtg_pool2d* layer, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) -> Result<Value> {
    DTG_ASSIGN(const Pool2DLayer pool, read_pool(layer));
    return avg_pool2d(m, value_of(x), pool);
  });
}

dtg_error* dtg_nn_flatten(dtg_model* model, dtg_value x, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return flatten(m, value_of(x)); });
}

dtg_error* dtg_nn_dropout(dtg_model* model, dtg_value x, double rate, dtg_value step, dtg_value training, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return dropout(m, value_of(x), rate, value_of(step), value_of(training)); });
}

dtg_error* dtg_nn_embedding(dtg_model* model, dtg_value ids, const dtg_embedding* layer, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return add_embedding(m, value_of(ids), layer); });
}

dtg_error* dtg_nn_activation(dtg_model* model, dtg_value x, dtg_activation activation, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) -> Result<Value> {
    DTG_ASSIGN(const Activation kind, read_enum(activation, Activation::gelu, "activation"));
    DTG_TRY(m.graph().check(value_of(x)).with_context("activation"));
    Build build(m.graph());
    const Value y = activate(build, value_of(x), kind);
    DTG_TRY(build.status());
    return y;
  });
}

dtg_error* dtg_nn_sparse_softmax_cross_entropy(dtg_model* model, dtg_value labels, dtg_value logits, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return sparse_softmax_cross_entropy(m.graph(), value_of(labels), value_of(logits)); });
}

dtg_error* dtg_nn_softmax_cross_entropy(dtg_model* model, dtg_value labels, dtg_value logits, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return softmax_cross_entropy(m.graph(), value_of(labels), value_of(logits)); });
}

dtg_error* dtg_nn_sigmoid_cross_entropy(dtg_model* model, dtg_value labels, dtg_value logits, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return sigmoid_cross_entropy(m.graph(), value_of(labels), value_of(logits)); });
}

dtg_error* dtg_nn_mean_squared_error(dtg_model* model, dtg_value labels, dtg_value predictions, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return mean_squared_error(m.graph(), value_of(labels), value_of(predictions)); });
}

dtg_error* dtg_nn_accuracy(dtg_model* model, dtg_value labels, dtg_value logits, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return accuracy(m.graph(), value_of(labels), value_of(logits)); });
}

dtg_error* dtg_nn_correct_count(dtg_model* model, dtg_value labels, dtg_value logits, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return correct_count(m.graph(), value_of(labels), value_of(logits)); });
}

dtg_error* dtg_nn_minimize(dtg_model* model, dtg_value loss, const dtg_optimizer* optimizer, dtg_training* out) noexcept {
  return guard([&]() -> Status {
    const Held<ModelObject> held(model, HandleType::model);
    DTG_TRY(held.status());
    return answer_training(*held->model, optimizer, out,
                           [&](Model& m, const Optimizer& settings) { return minimize(m, value_of(loss), settings); });
  });
}

dtg_error* dtg_nn_apply_gradients(dtg_model* model, const dtg_optimizer* optimizer, const dtg_value* handles, const dtg_gradient* gradients,
                                  size_t num_gradients, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) -> Result<Value> {
    DTG_TRY(require_array(handles, num_gradients, "handles"));
    DTG_TRY(require_array(gradients, num_gradients, "gradients"));
    DTG_ASSIGN(const Optimizer settings, read_optimizer(optimizer));
    std::vector<VariableGradient> list;
    for (size_t i = 0; i < num_gradients; ++i) {
      DTG_ASSIGN(VariableGradient each, read_gradient(m, handles[i], gradients[i]));
      list.push_back(std::move(each));
    }
    DTG_ASSIGN(const NodeId train, apply_gradients(m, settings, list));
    return m.graph().value(train);
  });
}

dtg_error* dtg_nn_exponential_decay(dtg_model* model, dtg_value step, double rate, double every, double factor, int32_t staircase,
                                    dtg_value* out) noexcept {
  return value_of_model(model, out,
                        [&](Model& m) { return exponential_decay(m.graph(), value_of(step), rate, every, factor, staircase != 0); });
}

dtg_error* dtg_nn_cosine_decay(dtg_model* model, dtg_value step, double rate, double steps, double floor, double warmup,
                               dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return cosine_decay(m.graph(), value_of(step), rate, steps, floor, warmup); });
}

}  // extern "C"
