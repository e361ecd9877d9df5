// Adds the nodes of attention: three projections, the scores, what may be seen, and the sum of the values. Called by the thread that builds
// the model.
#include "nn/attention.h"

#include <array>
#include <cmath>

#include "nn/layer.h"
#include "nn/scope.h"

namespace dtg {
namespace {

constexpr const char* kLayer = "multi head attention";

// The shape of x with other dimensions instead of the last one.
Value outer_and(Build& build, Value x, std::initializer_list<int64_t> last) {
  const Value outer = build.op("StridedSlice", {build.shape(x), build.ints({0}), build.ints({2}), build.ints({1})});
  return build.op("ConcatV2", {outer, build.ints(last), build.integer(0)});
}

Value both(Build& build, Value a, Value b) { return a.valid() ? build.op("LogicalAnd", {a, b}) : b; }
Value places(Build& build, Value shape, int64_t axis) { return counting(build, dimension(build, shape, axis)); }

// Scores of what may not be seen are so small that nothing is left of them.
Value seen(Build& build, Value scores, const AttentionLayer& layer) {
  Value mask;
  if (layer.mask.valid()) mask = build.op("ExpandDims", {layer.mask, build.integer(1)});
  const Value shape = build.shape(scores);
  if (layer.lengths.valid()) {
    const Value counts = build.reshape(checked_lengths(build, layer.lengths, dimension(build, shape, 3)), build.ints({-1, 1, 1, 1}));
    mask = both(build, mask, build.op("Less", {places(build, shape, 3), counts}));
  }
  if (layer.causal) {
    const Value queries = build.op("ExpandDims", {places(build, shape, 2), build.integer(1)});
    mask = both(build, mask, build.op("LessEqual", {places(build, shape, 3), queries}));
  }
  if (!mask.valid() || !build.ok()) return scores;
  const double least = build.info(scores).dtype == DType::f16 ? -3e4 : -1e9;
  return build.op("SelectV2", {mask, scores, build.like(scores, least)});
}

class Heads {
 public:
  Heads(Model& model, const AttentionLayer& layer) : model_(model), layer_(layer), build_(model.graph()) {}

  Result<Value> run(Value query, Value value, Value key, int64_t in) {
    const int64_t values = layer_.value_width ? layer_.value_width : layer_.key_width;
    const int64_t out = layer_.output_width ? layer_.output_width : in;
    DTG_ASSIGN(const Value q, headed("query", query, layer_.key_width));
    DTG_ASSIGN(const Value k, headed("key", key, layer_.key_width));
    DTG_ASSIGN(const Value v, headed("value", value, values));
    const Value rows = from_heads(build_, attend(build_, q, k, v, layer_), layer_.heads, values);
    DTG_TRY(build_.status());
    return projected("attention_output", rows, Shape::of({layer_.heads, values, out}), layer_.heads * values, out, Shape::of({out}));
  }

 private:
  Result<Value> headed(std::string_view name, Value x, int64_t width) {
    const int64_t in = build_.info(x).shape.dim(2);
    DTG_ASSIGN(const Value y,
               projected(name, x, Shape::of({in, layer_.heads, width}), in, layer_.heads * width, Shape::of({layer_.heads, width})));
    return to_heads(build_, y, layer_.heads, width);
  }

  // The kernel stands in checkpoints with a dimension for the heads, as Keras has it.
  Result<Value> projected(std::string_view name, Value x, const Shape& kernel, int64_t in, int64_t out, const Shape& bias) {
    const DType dtype = build_.info(x).dtype;
    const NameScope scope(model_.graph(), name);
    const std::string shared = layer_.weights_of.empty() ? "" : std::string(layer_.weights_of) + "/" + std::string(name);
    DTG_ASSIGN(const NamedVariable weights,
               variable_of(model_, shared, {.name = "kernel", .dtype = dtype, .shape = kernel, .initializer = layer_.kernel}));
    Value y = project(build_, x, build_.reshape(weights.read, build_.ints({in, out})), in, out);
    if (layer_.use_bias) {
      DTG_ASSIGN(const NamedVariable offset,
                 variable_of(model_, shared, {.name = "bias", .dtype = dtype, .shape = bias, .initializer = layer_.bias}));
      y = build_.op("BiasAdd", {y, build_.reshape(offset.read, build_.ints({out}))});
    }
    DTG_TRY(build_.status());
    return y;
  }

  Model& model_;
  const AttentionLayer& layer_;
  Build build_;
};

Status check_extra(const Model& model, const AttentionLayer& layer) {
  if (layer.heads < 1 || layer.key_width < 1 || layer.value_width < 0 || layer.output_width < 0) {
    return invalid_argument("%s: %lld heads of %lld for keys and %lld for values; at least 1 of each is needed", kLayer,
                            static_cast<long long>(layer.heads), static_cast<long long>(layer.key_width),
                            static_cast<long long>(layer.value_width));
  }
  for (const int64_t width : {layer.key_width, layer.value_width}) {
    int64_t all = 0;
    if (__builtin_mul_overflow(layer.heads, width, &all)) return invalid_argument("%s: the heads are too wide", kLayer);
  }
  if (layer.mask.valid()) {
    DTG_TRY(model.graph().check(layer.mask).with_context(kLayer));
    const ValueInfo& info = model.graph().info(layer.mask);
    if (info.dtype != DType::boolean || info.shape.rank() != 3) {
      return invalid_argument("%s: the mask is %s; bool of [batch, queries, keys] is needed", kLayer, described(model, layer.mask).c_str());
    }
  }
  if (!layer.lengths.valid()) return {};
  DTG_TRY(model.graph().check(layer.lengths).with_context(kLayer));
  const ValueInfo& info = model.graph().info(layer.lengths);
  if ((info.dtype == DType::i32 || info.dtype == DType::i64) && (!info.shape.has_rank() || info.shape.rank() == 1)) return {};
  return invalid_argument("%s: the lengths are %s; int32 or int64 of [batch] is needed", kLayer, described(model, layer.lengths).c_str());
}

}  // namespace

Value to_heads(Build& build, Value x, int64_t heads, int64_t width) {
  const Value cut = build.reshape(x, outer_and(build, x, {heads, width}));
  return build.op("Transpose", {cut, build.ints({0, 2, 1, 3})});
}

Value from_heads(Build& build, Value x, int64_t heads, int64_t width) {
  const Value together = build.op("Transpose", {x, build.ints({0, 2, 1, 3})});
  return build.reshape(together, outer_and(build, together, {heads * width}));
}

Value attend(Build& build, Value query, Value key, Value value, const AttentionLayer& layer) {
  if (!build.ok()) return {};
  query = build.mul(query, build.like(query, 1 / std::sqrt(static_cast<double>(layer.key_width))));
  const Value scores = seen(build, build.op("BatchMatMulV2", {query, key}, {{"adj_y", true}}), layer);  // [batch, heads, queries, keys]
  return build.op("BatchMatMulV2", {build.op("Softmax", {scores}), value});
}

Status check_attention(const Model& model, Value query, Value value, Value key, const AttentionLayer& layer) {
  DTG_TRY(channels_of(model, query, kLayer, 3, 3).status());
  for (const Value other : {value, key.valid() ? key : value}) {
    DTG_TRY(channels_of(model, other, kLayer, 3, 3).status());
    if (model.graph().info(other).dtype == model.graph().info(query).dtype) continue;
    return invalid_argument("%s: the query is %s and the value or key %s; they must be of one type", kLayer,
                            described(model, query).c_str(), described(model, other).c_str());
  }
  return check_extra(model, layer);
}

Result<Value> attention(Model& model, Value query, Value value, Value key, const AttentionLayer& layer) {
  DTG_TRY(check_attention(model, query, value, key, layer));
  const NameScope scope(model.graph(), layer.name);
  return Heads(model, layer).run(query, value, key.valid() ? key : value, model.graph().info(query).shape.dim(2));
}

}  // namespace dtg
