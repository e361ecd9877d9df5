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

class Heads {
 public:
  Heads(Model& model, const AttentionLayer& layer) : model_(model), layer_(layer), build_(model.graph()) {}

  Result<Value> run(Value query, Value value, Value key, int64_t in) {
    const int64_t values = layer_.value_width ? layer_.value_width : layer_.key_width;
    const int64_t out = layer_.output_width ? layer_.output_width : in;
    DTG_ASSIGN(Value q, to_heads("query", query, layer_.key_width));
    DTG_ASSIGN(const Value k, to_heads("key", key, layer_.key_width));
    DTG_ASSIGN(const Value v, to_heads("value", value, values));
    q = build_.mul(q, build_.like(q, 1 / std::sqrt(static_cast<double>(layer_.key_width))));
    Value scores = build_.op("BatchMatMulV2", {q, k}, {{"adj_y", true}});  // [batch, heads, queries, keys]
    DTG_TRY(build_.status());
    scores = seen(scores);
    const Value weighed = build_.op("BatchMatMulV2", {build_.op("Softmax", {scores}), v});
    const Value together = build_.op("Transpose", {weighed, build_.ints({0, 2, 1, 3})});
    const Value rows = build_.reshape(together, outer_and(query, {layer_.heads * values}));
    DTG_TRY(build_.status());
    return projected("attention_output", rows, Shape::of({layer_.heads, values, out}), layer_.heads * values, out, Shape::of({out}));
  }

 private:
  // [batch, places, in] as [batch, heads, places, width].
  Result<Value> to_heads(std::string_view name, Value x, int64_t width) {
    const PartialShape shape = build_.info(x).shape;
    const int64_t in = shape.dim(2);
    DTG_ASSIGN(const Value y,
               projected(name, x, Shape::of({in, layer_.heads, width}), in, layer_.heads * width, Shape::of({layer_.heads, width})));
    const Value cut = build_.reshape(y, outer_and(x, {layer_.heads, width}));
    const Value turned = build_.op("Transpose", {cut, build_.ints({0, 2, 1, 3})});
    DTG_TRY(build_.status());
    return turned;
  }

  // The shape of x with other dimensions instead of the last one.
  Value outer_and(Value x, std::initializer_list<int64_t> last) {
    const Value outer = build_.op("StridedSlice", {build_.shape(x), build_.ints({0}), build_.ints({2}), build_.ints({1})});
    return build_.op("ConcatV2", {outer, build_.ints(last), build_.integer(0)});
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

  // Scores of what may not be seen are so small that nothing is left of them.
  Value seen(Value scores) {
    Value mask;
    if (layer_.mask.valid()) mask = build_.op("ExpandDims", {layer_.mask, build_.integer(1)});
    const Value shape = build_.shape(scores);
    if (layer_.lengths.valid()) {
      const Value counts = build_.reshape(checked_lengths(build_, layer_.lengths, dimension(build_, shape, 3)), build_.ints({-1, 1, 1, 1}));
      mask = both(mask, build_.op("Less", {places(shape, 3), counts}));
    }
    if (layer_.causal)
      mask = both(mask, build_.op("LessEqual", {places(shape, 3), build_.op("ExpandDims", {places(shape, 2), build_.integer(1)})}));
    if (!mask.valid() || !build_.ok()) return scores;
    const double least = build_.info(scores).dtype == DType::f16 ? -3e4 : -1e9;
    return build_.op("SelectV2", {mask, scores, build_.like(scores, least)});
  }
  Value both(Value a, Value b) { return a.valid() ? build_.op("LogicalAnd", {a, b}) : b; }
  Value places(Value shape, int64_t axis) { return counting(build_, dimension(build_, shape, axis)); }

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

Result<Value> attention(Model& model, Value query, Value value, Value key, const AttentionLayer& layer) {
  DTG_ASSIGN(const int64_t in, channels_of(model, query, kLayer, 3, 3));
  if (!key.valid()) key = value;
  for (const Value other : {value, key}) {
    DTG_TRY(channels_of(model, other, kLayer, 3, 3).status());
    if (model.graph().info(other).dtype == model.graph().info(query).dtype) continue;
    return invalid_argument("%s: the query is %s and the value or key %s; they must be of one type", kLayer,
                            described(model, query).c_str(), described(model, other).c_str());
  }
  DTG_TRY(check_extra(model, layer));
  const NameScope scope(model.graph(), layer.name);
  return Heads(model, layer).run(query, value, key, in);
}

}  // namespace dtg
