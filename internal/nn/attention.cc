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

// The first two dimensions of x, and others behind them.
Value outer_and(Build& build, Value x, std::initializer_list<int64_t> last) {
  const Value outer = build.op("StridedSlice", {build.shape(x), build.ints({0}), build.ints({2}), build.ints({1})});
  return build.op("ConcatV2", {outer, build.ints(last), build.integer(0)});
}

Value both(Build& build, Value a, Value b) { return a.valid() ? build.op("LogicalAnd", {a, b}) : b; }
Value places(Build& build, Value shape, int64_t axis) { return counting(build, dimension(build, shape, axis)); }

// What may be seen: a mask [batch, queries, keys] that may be invalid, lengths that may be, and for a causal one only what came before.
struct Sight {
  Value mask;
  Value lengths;
  bool causal = false;
};

// Scores [batch, heads, queries, keys] of what may not be seen are so small that nothing is left of them.
Value seen(Build& build, Value scores, const Sight& sight) {
  Value mask;
  if (sight.mask.valid()) mask = build.op("ExpandDims", {sight.mask, build.integer(1)});
  const Value shape = build.shape(scores);
  if (sight.lengths.valid()) {
    const Value counts = build.reshape(checked_lengths(build, sight.lengths, dimension(build, shape, 3)), build.ints({-1, 1, 1, 1}));
    mask = both(build, mask, build.op("Less", {places(build, shape, 3), counts}));
  }
  if (sight.causal) {
    const Value queries = build.op("ExpandDims", {places(build, shape, 2), build.integer(1)});
    mask = both(build, mask, build.op("LessEqual", {places(build, shape, 3), queries}));
  }
  if (!mask.valid() || !build.ok()) return scores;
  const double least = build.info(scores).dtype == DType::f16 ? -3e4 : -1e9;
  return build.op("SelectV2", {mask, scores, build.like(scores, least)});
}

// Without the matrix of all scores.
Value in_one_pass(Build& build, Value q, Value k, Value v, double scale, const Sight& sight) {
  std::vector<Value> operands = {q, k, v};
  if (sight.mask.valid()) operands.push_back(sight.mask);
  if (sight.lengths.valid()) operands.push_back(checked_lengths(build, sight.lengths, dimension(build, build.shape(k), 1)));
  const Attr settings[] = {
      {"causal", sight.causal}, {"scale", scale}, {"masks", int64_t{sight.mask.valid()}}, {"counts", int64_t{sight.lengths.valid()}}};
  return build.op("DotProductAttention", operands, settings);
}

Value turned(Build& build, Value x) { return build.op("Transpose", {x, build.ints({0, 2, 1, 3})}); }

// For types that have no such kernel.
Value in_steps(Build& build, Value q, Value k, Value v, double scale, const Sight& sight) {
  q = turned(build, build.mul(q, build.like(q, scale)));
  const Value scores = seen(build, build.op("BatchMatMulV2", {q, turned(build, k)}, {{"adj_y", true}}), sight);
  return turned(build, build.op("BatchMatMulV2", {build.op("Softmax", {scores}), turned(build, v)}));
}

// What the heads make of their queries, keys and values; all [batch, places, heads, width].
Value weighed(Build& build, Value q, Value k, Value v, int64_t key_width, const Sight& sight) {
  if (!build.ok()) return {};
  const double scale = 1 / std::sqrt(static_cast<double>(key_width));
  const DType dtype = build.info(q).dtype;
  return dtype == DType::f32 || dtype == DType::f64 ? in_one_pass(build, q, k, v, scale, sight) : in_steps(build, q, k, v, scale, sight);
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

  Result<AttentionCache> keep(Value value, int64_t longest) {
    AttentionCache cache;
    DTG_ASSIGN(cache.keys, headed("key", value, layer_.key_width));
    DTG_ASSIGN(cache.values, headed("value", value, layer_.value_width ? layer_.value_width : layer_.key_width));
    if (longest == 0) return cache;
    cache.position = dimension(build_, build_.shape(value), 1);
    const Value room = build_.sub(build_.integer(longest), cache.position), none = build_.ints({0, 0});
    const Value pads = build_.op("Pack", {none, build_.op("Pack", {build_.integer(0), room}), none, none});
    for (Value* const rows : {&cache.keys, &cache.values}) {
      PartialShape shape = build_.ok() ? build_.info(*rows).shape : PartialShape::unknown();
      *rows = build_.op("Pad", {*rows, pads});
      if (!build_.ok()) return build_.status();
      shape.set_dim(1, longest);
      *rows = shaped(build_, *rows, shape);
    }
    DTG_TRY(build_.status());
    return cache;
  }

  Result<Value> step(Value query, AttentionCache* cache, int64_t in) {
    const int64_t values = layer_.value_width ? layer_.value_width : layer_.key_width;
    const int64_t out = layer_.output_width ? layer_.output_width : in;
    DTG_ASSIGN(const Value q, headed("query", query, layer_.key_width));
    AttentionCache next = *cache;
    Value mask = layer_.mask;
    if (cache->position.valid()) {
      DTG_ASSIGN(const Value k, headed("key", query, layer_.key_width));
      DTG_ASSIGN(const Value v, headed("value", query, values));
      const Value longest = dimension(build_, build_.shape(cache->keys), 1), count = dimension(build_, build_.shape(query), 1);
      const Value from = checked_lengths(build_, build_.cast(cache->position, DType::i32), longest);
      // All of them fit, or none is written.
      next.position = checked_lengths(build_, build_.add(from, count), longest);
      next.keys = written(cache->keys, k, from, next.position);
      next.values = written(cache->values, v, from, next.position);
      // Place i of the query, which is place from + i of all, sees those up to itself.
      const Value own = build_.op("ExpandDims", {build_.add(counting(build_, count), from), build_.integer(1)});
      const Value all = counting(build_, longest);
      const Value seen = build_.op("ExpandDims", {build_.op("LessEqual", {all, own}), build_.integer(0)});
      mask = mask.valid() ? build_.op("LogicalAnd", {mask, seen}) : seen;
    }
    const Value together = weighed(build_, q, next.keys, next.values, layer_.key_width, {mask, layer_.lengths, false});
    const Value rows = from_heads(build_, together, layer_.heads, values);
    DTG_TRY(build_.status());
    DTG_ASSIGN(const Value y,
               projected("attention_output", rows, Shape::of({layer_.heads, values, out}), layer_.heads * values, out, Shape::of({out})));
    *cache = next;
    return y;
  }

 private:
  // Rows [batch, count, heads, width] in places from `from` up to `until` of a cache.
  Value written(Value cache, Value rows, Value from, Value until) {
    const Value zero = build_.integer(0);
    const Value begin = build_.op("Pack", {zero, from}), end = build_.op("Pack", {zero, until});
    return build_.op("TensorStridedSliceUpdate", {cache, begin, end, build_.ints({1, 1}), rows}, {{"begin_mask", 1}, {"end_mask", 1}});
  }

  Result<Value> headed(std::string_view name, Value x, int64_t width) {
    const int64_t in = build_.info(x).shape.dim(2);
    DTG_ASSIGN(const Value y,
               projected(name, x, Shape::of({in, layer_.heads, width}), in, layer_.heads * width, Shape::of({layer_.heads, width})));
    return to_heads(build_, y, layer_.heads, width);
  }

  // The kernel stands in checkpoints with a dimension for the heads, as Keras has it.
  Result<Value> projected(std::string_view name, Value x, const Shape& kernel, int64_t in, int64_t out, const Shape& bias) {
    DTG_TRY(build_.status());  // nothing is known of what could not be made
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

Status check_extra(const Model& model, Value query, const AttentionLayer& layer) {
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
  if ((info.dtype != DType::i32 && info.dtype != DType::i64) || (info.shape.has_rank() && info.shape.rank() != 1)) {
    return invalid_argument("%s: the lengths are %s; int32 or int64 of [batch] is needed", kLayer, described(model, layer.lengths).c_str());
  }
  return check_one_each(model, kLayer, "the lengths are", layer.lengths, query);
}

}  // namespace

Value to_heads(Build& build, Value x, int64_t heads, int64_t width) { return build.reshape(x, outer_and(build, x, {heads, width})); }

Value from_heads(Build& build, Value x, int64_t heads, int64_t width) { return build.reshape(x, outer_and(build, x, {heads * width})); }

Value attend(Build& build, Value query, Value key, Value value, const AttentionLayer& layer) {
  return weighed(build, query, key, value, layer.key_width, {layer.mask, layer.lengths, layer.causal});
}

Status check_attention(const Model& model, Value query, Value value, Value key, const AttentionLayer& layer) {
  DTG_TRY(channels_of(model, query, kLayer, 3, 3).status());
  for (const Value other : {value, key.valid() ? key : value}) {
    DTG_TRY(channels_of(model, other, kLayer, 3, 3).status());
    if (model.graph().info(other).dtype == model.graph().info(query).dtype) continue;
    return invalid_argument("%s: the query is %s and the value or key %s; they must be of one type", kLayer,
                            described(model, query).c_str(), described(model, other).c_str());
  }
  return check_extra(model, query, layer);
}

Result<Value> attention(Model& model, Value query, Value value, Value key, const AttentionLayer& layer) {
  DTG_TRY(check_attention(model, query, value, key, layer));
  const NameScope scope(model.graph(), layer.name);
  return Heads(model, layer).run(query, value, key.valid() ? key : value, model.graph().info(query).shape.dim(2));
}

Result<AttentionCache> attention_cache(Model& model, Value value, const AttentionLayer& layer, int64_t longest) {
  DTG_TRY(channels_of(model, value, kLayer, 3, 3).status());
  DTG_TRY(check_extra(model, value, layer));
  const int64_t places = model.graph().info(value).shape.dim(1);
  if (longest < 0 || longest > INT32_MAX || (longest > 0 && places > longest)) {
    return invalid_argument("%s: a cache of %lld places for %s; at least those are needed", kLayer, static_cast<long long>(longest),
                            described(model, value).c_str());
  }
  const NameScope scope(model.graph(), layer.name);
  return Heads(model, layer).keep(value, longest);
}

Result<Value> attention_step(Model& model, Value query, const AttentionLayer& layer, AttentionCache* cache) {
  DTG_ASSIGN(const int64_t in, channels_of(model, query, kLayer, 3, 3));
  DTG_TRY(check_extra(model, query, layer));
  const DType dtype = model.graph().info(query).dtype;
  const int64_t values = layer.value_width ? layer.value_width : layer.key_width;
  for (const auto& [rows, width] : {std::pair(cache->keys, layer.key_width), std::pair(cache->values, values)}) {
    DTG_TRY(model.graph().check(rows).with_context(kLayer));
    const ValueInfo& info = model.graph().info(rows);
    const PartialShape& shape = info.shape;
    if (info.dtype == dtype && shape.rank() == 4 && shape.dim(2) == layer.heads && shape.dim(3) == width) continue;
    const bool open = info.dtype == dtype && (!shape.has_rank() || (shape.rank() == 4 && (shape.dim(2) < 0 || shape.dim(3) < 0)));
    const auto heads = static_cast<long long>(layer.heads), wide = static_cast<long long>(width);
    return invalid_argument(
        "%s: the cache has %s; %s of [batch, longest, %lld, %lld] is needed, as the cache of such a layer has it%s", kLayer,
        described(model, rows).c_str(), dtype_name(dtype), heads, wide,
        open ? format("; where the graph cannot see its shape, a Reshape to [-1, longest, %lld, %lld] says it", heads, wide).c_str() : "");
  }
  if (cache->position.valid()) {
    DTG_TRY(model.graph().check(cache->position).with_context(kLayer));
    const ValueInfo& info = model.graph().info(cache->position);
    if ((info.dtype != DType::i32 && info.dtype != DType::i64) || (info.shape.has_rank() && info.shape.rank() != 0)) {
      return invalid_argument("%s: the position is %s; an int32 or int64 scalar is needed", kLayer,
                              described(model, cache->position).c_str());
    }
  }
  const NameScope scope(model.graph(), layer.name);
  return Heads(model, layer).step(query, cache, in);
}

}  // namespace dtg
