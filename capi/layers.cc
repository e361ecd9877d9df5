// dtg/layers.h. Each function reads its struct, fills in the defaults and calls its namesake in internal/nn. One thread at a time uses a
// model.
#include "dtg/layers.h"

#include "capi/guard.h"
#include "capi/model.h"
#include "capi/nn.h"
#include "capi/scale.h"
#include "nn/attention.h"
#include "nn/convolution.h"
#include "nn/noise.h"
#include "nn/norm.h"
#include "nn/places.h"
#include "nn/recurrent.h"

namespace dtg::capi {
namespace {

Result<Value> add_batch_norm(Model& model, Value x, const dtg_batch_norm* given) {
  dtg_batch_norm c = DTG_BATCH_NORM_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_batch_norm), "dtg_batch_norm", &c));
  BatchNormLayer layer;
  layer.name = name_or(c.name, c.name_len, layer.name);
  layer.momentum = real_or(c.momentum, layer.momentum);
  layer.epsilon = real_or(c.epsilon, layer.epsilon);
  layer.center = c.no_center == 0;
  layer.scale = c.no_scale == 0;
  layer.weights_of = text(c.weights_of, c.weights_of_len);
  return batch_norm(model, x, layer, here(model, c.training));
}

Result<dtg_norm> read_norm(const dtg_norm* given) {
  dtg_norm c = DTG_NORM_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_norm), "dtg_norm", &c));
  return c;
}

Result<Value> add_layer_norm(Model& model, Value x, const dtg_norm* given, bool rms) {
  DTG_ASSIGN(const dtg_norm c, read_norm(given));
  LayerNormLayer layer;
  layer.name = text(c.name, c.name_len);
  layer.rms = rms;
  layer.epsilon = c.epsilon;
  layer.center = c.no_center == 0;
  layer.scale = c.no_scale == 0;
  layer.weights_of = text(c.weights_of, c.weights_of_len);
  return layer_norm(model, x, layer);
}

Result<Value> add_group_norm(Model& model, Value x, const dtg_norm* given) {
  DTG_ASSIGN(const dtg_norm c, read_norm(given));
  GroupNormLayer layer;
  layer.name = name_or(c.name, c.name_len, layer.name);
  layer.groups = number_or(c.groups, layer.groups);
  layer.epsilon = real_or(c.epsilon, layer.epsilon);
  layer.center = c.no_center == 0;
  layer.scale = c.no_scale == 0;
  layer.weights_of = text(c.weights_of, c.weights_of_len);
  return group_norm(model, x, layer);
}

Result<Recurrent> add_recurrent(Model& model, Value x, const dtg_recurrent* given) {
  dtg_recurrent c = DTG_RECURRENT_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_recurrent), "dtg_recurrent", &c));
  RecurrentLayer layer;
  layer.name = text(c.name, c.name_len);
  DTG_ASSIGN(layer.kind, read_enum(c.kind, RecurrentLayer::Kind::simple, "kind of recurrent layer"));
  DTG_ASSIGN(layer.direction, read_enum(c.direction, RecurrentLayer::Direction::both, "direction"));
  layer.units = c.units;
  layer.use_bias = c.no_bias == 0;
  layer.forget_bias = c.no_forget_bias == 0;
  DTG_ASSIGN(layer.kernel, read_initializer(c.kernel, layer.kernel));
  DTG_ASSIGN(layer.recurrent, read_initializer(c.recurrent, layer.recurrent));
  DTG_ASSIGN(layer.bias, read_initializer(c.bias, layer.bias));
  layer.lengths = here(model, c.lengths);
  layer.hidden = here(model, c.hidden);
  layer.cell = here(model, c.cell);
  layer.weights_of = text(c.weights_of, c.weights_of_len);
  return recurrent(model, x, layer);
}

dtg_value to_c_or_none(Value value) { return value.valid() ? to_c(value) : dtg_value{0}; }

// Makes or changes a cache of `model` by fn(AttentionLayer, AttentionCache*).
template <class Fn>
dtg_error* change_cache(dtg_model* handle, const dtg_attention* given, dtg_attention_cache* cache, Fn&& fn) {
  return with_builder(handle, Owner::Use::change, [&](ModelObject& object) -> Status {
    dtg_attention_cache c = DTG_ATTENTION_CACHE_INIT;
    DTG_TRY(read_struct(cache, sizeof(dtg_attention_cache), "dtg_attention_cache", &c));
    Model& model = *object.model;
    return all_or_nothing(model, [&]() -> Status {
      Value key;
      DTG_ASSIGN(const AttentionLayer layer, read_attention(model, given, &key));
      AttentionCache now = {here(model, c.keys), here(model, c.values), here(model, c.position)};
      DTG_TRY(fn(model, layer, &now));
      c.keys = to_c(now.keys);
      c.values = to_c(now.values);
      c.position = to_c_or_none(now.position);
      write_struct(c, cache);
      return {};
    });
  });
}

Result<Value> add_position(Model& model, Value x, const dtg_position* given) {
  dtg_position c = DTG_POSITION_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_position), "dtg_position", &c));
  PositionLayer layer;
  layer.name = name_or(c.name, c.name_len, layer.name);
  DTG_ASSIGN(layer.kind, read_enum(c.kind, PositionLayer::Kind::learned, "kind of position embedding"));
  layer.wavelength = real_or(c.wavelength, layer.wavelength);
  layer.longest = c.longest;
  layer.start = here(model, c.start);
  DTG_ASSIGN(layer.table, read_initializer(c.table, layer.table));
  layer.weights_of = text(c.weights_of, c.weights_of_len);
  return position_embedding(model, x, layer);
}

Result<Value> add_bag(Model& model, Value ids, const dtg_embedding_bag* given) {
  dtg_embedding_bag c = DTG_EMBEDDING_BAG_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_embedding_bag), "dtg_embedding_bag", &c));
  EmbeddingBagLayer layer;
  layer.name = name_or(c.name, c.name_len, layer.name);
  layer.rows = c.rows;
  layer.width = c.width;
  DTG_ASSIGN(layer.combiner, read_enum(c.combiner, EmbeddingBagLayer::Combiner::sqrtn, "combiner"));
  layer.lengths = here(model, c.lengths);
  layer.weights = here(model, c.weights);
  DTG_ASSIGN(layer.table, read_initializer(c.table, layer.table));
  layer.weights_of = text(c.weights_of, c.weights_of_len);
  return embedding_bag(model, ids, layer);
}

// Each entry that is 0 is like the one before.
std::array<int64_t, 3> along(const int64_t (&given)[3], int64_t first) {
  std::array<int64_t, 3> all{};
  for (size_t i = 0; i < 3; ++i) all[i] = given[i] != 0 ? given[i] : i == 0 ? first : all[i - 1];
  return all;
}

Result<ConvLayer> read_conv(const dtg_conv* given) {
  dtg_conv c = DTG_CONV_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_conv), "dtg_conv", &c));
  ConvLayer layer;
  layer.name = text(c.name, c.name_len);
  layer.filters = c.filters;
  layer.multiplier = number_or(c.multiplier, 1);
  layer.kernel = along(c.kernel, 3);
  layer.stride = along(c.stride, 1);
  layer.dilation = along(c.dilation, 1);
  DTG_ASSIGN(layer.padding, read_enum(c.padding, Padding::same, "padding"));
  layer.causal = c.causal != 0;
  DTG_ASSIGN(layer.activation, read_enum(c.activation, Activation::gelu, "activation"));
  layer.use_bias = c.no_bias == 0;
  DTG_ASSIGN(layer.kernel_init, read_initializer(c.kernel_init, layer.kernel_init));
  DTG_ASSIGN(layer.bias_init, read_initializer(c.bias_init, layer.bias_init));
  layer.weights_of = text(c.weights_of, c.weights_of_len);
  return layer;
}

using AddConv = Result<Value> (*)(Model& model, Value x, const ConvLayer& layer);

dtg_error* convolution(AddConv add, dtg_model* model, dtg_value x, const dtg_conv* given, dtg_value* out) {
  return value_of_model(model, out, [&](ModelObject& object) -> Result<Value> {
    DTG_ASSIGN(const ConvLayer layer, read_conv(given));
    DTG_ASSIGN(const Value y, add(*object.model, here(*object.model, x), layer));
    tell_one_unit(object, y, "convolution");
    return y;
  });
}

}  // namespace
Result<AttentionLayer> read_attention(const Model& model, const dtg_attention* given, Value* key) {
  dtg_attention c = DTG_ATTENTION_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_attention), "dtg_attention", &c));
  AttentionLayer layer;
  layer.name = name_or(c.name, c.name_len, layer.name);
  layer.heads = c.heads;
  layer.key_width = c.key_width;
  layer.value_width = c.value_width;
  layer.output_width = c.output_width;
  layer.use_bias = c.no_bias == 0;
  layer.causal = c.causal != 0;
  DTG_ASSIGN(layer.kernel, read_initializer(c.kernel, layer.kernel));
  DTG_ASSIGN(layer.bias, read_initializer(c.bias, layer.bias));
  layer.weights_of = text(c.weights_of, c.weights_of_len);
  layer.mask = here(model, c.mask);
  layer.lengths = here(model, c.lengths);
  *key = here(model, c.key);
  return layer;
}

}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_nn_batch_norm(dtg_model* model, dtg_value x, const dtg_batch_norm* layer, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return add_batch_norm(m, here(m, x), layer); });
}

dtg_error* dtg_nn_layer_norm(dtg_model* model, dtg_value x, const dtg_norm* layer, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return add_layer_norm(m, here(m, x), layer, false); });
}

dtg_error* dtg_nn_rms_norm(dtg_model* model, dtg_value x, const dtg_norm* layer, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return add_layer_norm(m, here(m, x), layer, true); });
}

dtg_error* dtg_nn_group_norm(dtg_model* model, dtg_value x, const dtg_norm* layer, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return add_group_norm(m, here(m, x), layer); });
}

dtg_error* dtg_nn_recurrent(dtg_model* model, dtg_value x, const dtg_recurrent* layer, dtg_recurrent_result* out) noexcept {
  return with_builder(model, Owner::Use::change, [&](ModelObject& object) -> Status {
    dtg_recurrent_result result = DTG_RECURRENT_RESULT_INIT;
    DTG_TRY(read_struct(out, sizeof(dtg_recurrent_result), "dtg_recurrent_result", &result));
    return all_or_nothing(*object.model, [&]() -> Status {
      DTG_ASSIGN(const Recurrent made, add_recurrent(*object.model, here(*object.model, x), layer));
      result.outputs = to_c(made.outputs);
      result.hidden = to_c(made.hidden);
      result.cell = made.cell.valid() ? to_c(made.cell) : dtg_value{0};
      write_struct(result, out);
      return {};
    });
  });
}

dtg_error* dtg_nn_attention(dtg_model* model, dtg_value query, dtg_value value, const dtg_attention* layer, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) -> Result<Value> {
    Value key;
    DTG_ASSIGN(const AttentionLayer what, read_attention(m, layer, &key));
    return attention(m, here(m, query), here(m, value), key, what);
  });
}

dtg_error* dtg_nn_attention_cache(dtg_model* model, dtg_value value, const dtg_attention* layer, int64_t longest,
                                  dtg_attention_cache* out) noexcept {
  return change_cache(model, layer, out, [&](Model& m, const AttentionLayer& settings, AttentionCache* cache) -> Status {
    DTG_ASSIGN(*cache, attention_cache(m, here(m, value), settings, longest));
    return {};
  });
}

dtg_error* dtg_nn_attention_step(dtg_model* model, dtg_value query, const dtg_attention* layer, dtg_attention_cache* cache,
                                 dtg_value* out) noexcept {
  return change_cache(model, layer, cache, [&](Model& m, const AttentionLayer& settings, AttentionCache* now) -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(const Value made, attention_step(m, here(m, query), settings, now));
    *out = to_c(made);
    return {};
  });
}

dtg_error* dtg_nn_position_embedding(dtg_model* model, dtg_value x, const dtg_position* layer, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return add_position(m, here(m, x), layer); });
}

dtg_error* dtg_nn_embedding_bag(dtg_model* model, dtg_value ids, const dtg_embedding_bag* layer, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return add_bag(m, here(m, ids), layer); });
}

dtg_error* dtg_nn_noise(dtg_model* model, dtg_value x, dtg_noise_kind kind, double amount, dtg_value step, dtg_value training,
                        dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) -> Result<Value> {
    DTG_ASSIGN(const Noise which, read_enum(kind, Noise::alpha_dropout, "kind of noise"));
    return noise(m, here(m, x), which, amount, here(m, step), here(m, training));
  });
}

dtg_error* dtg_nn_conv1d(dtg_model* model, dtg_value x, const dtg_conv* layer, dtg_value* out) noexcept {
  return convolution(conv1d, model, x, layer, out);
}

dtg_error* dtg_nn_conv3d(dtg_model* model, dtg_value x, const dtg_conv* layer, dtg_value* out) noexcept {
  return convolution(conv3d, model, x, layer, out);
}

dtg_error* dtg_nn_conv2d_transpose(dtg_model* model, dtg_value x, const dtg_conv* layer, dtg_value* out) noexcept {
  return convolution(conv2d_transpose, model, x, layer, out);
}

dtg_error* dtg_nn_depthwise_conv2d(dtg_model* model, dtg_value x, const dtg_conv* layer, dtg_value* out) noexcept {
  return convolution(depthwise_conv2d, model, x, layer, out);
}

dtg_error* dtg_nn_separable_conv2d(dtg_model* model, dtg_value x, const dtg_conv* layer, dtg_value* out) noexcept {
  return convolution(separable_conv2d, model, x, layer, out);
}

dtg_error* dtg_nn_global_avg_pool(dtg_model* model, dtg_value x, int32_t keep_dims, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return global_pool(m, here(m, x), GlobalPool::mean, keep_dims != 0); });
}

dtg_error* dtg_nn_global_max_pool(dtg_model* model, dtg_value x, int32_t keep_dims, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return global_pool(m, here(m, x), GlobalPool::max, keep_dims != 0); });
}

dtg_error* dtg_nn_adaptive_pool(dtg_model* model, dtg_value x, const int64_t* sizes, size_t num_sizes, int32_t max,
                                dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) -> Result<Value> {
    if (num_sizes != 0) DTG_TRY(require(sizes, "sizes"));
    return adaptive_pool(m, here(m, x), max != 0 ? GlobalPool::max : GlobalPool::mean, std::span(sizes, num_sizes));
  });
}

dtg_error* dtg_nn_up_sampling2d(dtg_model* model, dtg_value x, int64_t high, int64_t wide, int32_t bilinear, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return up_sampling2d(m, here(m, x), high, wide, bilinear != 0); });
}

}  // extern "C"
