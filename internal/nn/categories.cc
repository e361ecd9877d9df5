// Adds the nodes of hashing and lookup layers. A lookup is a search among sorted integers: the tokens themselves, or hashes of texts under
// a key for which no two of the vocabulary agree. The token found is compared with what was asked for, so a hash fools nobody. Called by
// the thread that builds the model.
#include "nn/categories.h"

#include <algorithm>
#include <numeric>

#include "base/json.h"
#include "base/keyed_hash.h"
#include "nn/layer.h"
#include "nn/scope.h"
#include "tensor/text.h"

namespace dtg {
namespace {

using Long = long long;

// ---- elements of a tensor of strings or of int64 ----

// The bytes by which an element is told from others.
std::string_view element(const Tensor& tensor, int64_t i) {
  const auto at = static_cast<size_t>(i);
  if (tensor.dtype() == DType::string) return texts_of(tensor)[at].view();
  return {reinterpret_cast<const char*>(&tensor.values<int64_t>()[at]), sizeof(int64_t)};
}

// For messages: a number, or the beginning of a text in quotes.
std::string shown(const Tensor& tensor, int64_t i) {
  constexpr size_t kShown = 64;
  if (tensor.dtype() != DType::string) return std::to_string(tensor.values<int64_t>()[static_cast<size_t>(i)]);
  std::string text;
  append_json_string(text, element(tensor, i).substr(0, kShown));
  return element(tensor, i).size() > kShown ? text + "..." : text;
}

std::string described(const Tensor& tensor) { return dtype_name(tensor.dtype()) + tensor.shape().text(); }

Status check_scalar(const char* layer, const char* what, const Tensor* given, DType dtype) {
  if (!given || (given->dtype() == dtype && given->shape().rank() == 0)) return {};
  return invalid_argument("%s: the %s is %s; a scalar of %s is needed", layer, what, described(*given).c_str(), dtype_name(dtype));
}

// ---- what goes in, and how it comes out ----

Value constant(Build& b, Result<Tensor> made) {
  if (!made.ok()) b.fail(made.status());
  return b.ok() ? b.constant(made.value()) : Value();
}
Value whole(Build& b, int64_t value) { return constant(b, Tensor::scalar<int64_t>(value)); }
Value constant(Build& b, std::span<const int64_t> values, const Shape& shape) { return constant(b, Tensor::of<int64_t>(shape, values)); }

// Integers as int64.
Value widened(Build& b, Value x) { return b.ok() && b.info(x).dtype != DType::string ? b.cast(x, DType::i64) : x; }

Status check_input(const Model& model, const char* layer, Value x, DType wanted) {
  DTG_TRY(model.graph().check(x).with_context(layer));
  const DType dtype = model.graph().info(x).dtype;
  if (dtype == wanted || (wanted == DType::i64 && dtype_is_integer(dtype) && dtype != DType::u64)) return {};
  return invalid_argument("%s: the input is %s; %s is needed", layer, described(model, x).c_str(),
                          wanted == DType::i64 ? "an integer type up to int64" : dtype_name(wanted));
}

Status check_output(const Model& model, const char* layer, Value x, CategoryOutput output, int64_t depth) {
  if (output == CategoryOutput::number) return {};
  const PartialShape& shape = model.graph().info(x).shape;
  const bool one = output == CategoryOutput::one_hot;
  if (depth > INT32_MAX)
    return invalid_argument("%s: rows of %lld places; at most 2147483647 are possible", layer, static_cast<Long>(depth));
  if (shape.has_rank() && (one ? shape.rank() < kRankMax : shape.rank() == 1 || shape.rank() == 2)) return {};
  return invalid_argument("%s: the input is %s; for this output mode %s is needed", layer, described(model, x).c_str(),
                          one ? "a known rank below 8" : "[places] or [batch, places]");
}

Value encoded(Build& b, Value numbers, CategoryOutput output, int64_t depth) {
  if (!b.ok() || output == CategoryOutput::number) return numbers;
  if (output == CategoryOutput::one_hot) {
    const PartialShape& shape = b.info(numbers).shape;
    if (shape.rank() > 1 && shape.dim(shape.rank() - 1) == 1) {
      const int64_t last[] = {shape.rank() - 1};
      numbers = b.op("Squeeze", {numbers}, {{"squeeze_dims", std::vector<int64_t>(last, last + 1)}});
    }
    return b.op("OneHot", {numbers, b.integer(depth), b.scalar(DType::f32, 1), b.scalar(DType::f32, 0)}, {{"axis", -1}});
  }
  const auto none = Tensor::allocate(DType::f32, Shape::of({0}));
  if (!none.ok()) b.fail(none.status());
  if (!b.ok()) return {};
  return b.op("DenseBincount", {numbers, whole(b, depth), b.constant(none.value())},
              {{"binary_output", output == CategoryOutput::multi_hot}});
}

Value hashed(Build& b, Value texts, int64_t buckets, const HashKey* key) {
  if (!key) return b.op("StringToHashBucketFast", {texts}, {{"num_buckets", buckets}});
  const std::vector<int64_t> numbers = {static_cast<int64_t>(key->low), static_cast<int64_t>(key->high)};
  return b.op("StringToHashBucketStrong", {texts}, {{"num_buckets", buckets}, {"key", numbers}});
}

}  // namespace

Result<Value> hashing(Model& model, Value x, const HashingLayer& layer) {
  constexpr const char* kWhat = "hashing";
  DTG_TRY(model.graph().check(x).with_context(kWhat));
  const DType dtype = model.graph().info(x).dtype == DType::string ? DType::string : DType::i64;
  if (dtype != DType::string && !check_input(model, kWhat, x, dtype).ok())
    return invalid_argument("%s: the input is %s; strings or integers up to int64 are needed", kWhat, described(model, x).c_str());
  if (layer.bins < 1) return invalid_argument("%s: %lld bins; at least 1 is needed", kWhat, static_cast<Long>(layer.bins));
  DTG_TRY(check_scalar(kWhat, "mask value", layer.mask, dtype));
  DTG_TRY(check_output(model, kWhat, x, layer.output, layer.bins));
  const NameScope scope(model.graph(), layer.name);
  Build b(model.graph());
  const bool masked = layer.mask && layer.bins > 1;
  const HashKey key = {layer.salt[0], layer.salt[1]};
  const Value wide = widened(b, x);
  Value bin = hashed(b, dtype == DType::string ? wide : b.op("AsString", {wide}), layer.bins - masked, layer.salted ? &key : nullptr);
  if (masked) {
    const Value is_mask = b.op("Equal", {wide, b.constant(*layer.mask)});
    bin = b.op("SelectV2", {is_mask, whole(b, 0), b.add(bin, whole(b, 1))});
  }
  const Value y = encoded(b, bin, layer.output, layer.bins);
  DTG_TRY(b.status());
  return y;
}

namespace {

// ---- vocabularies ----

// The tokens of a lookup layer, without those that stand for others, and how they are searched.
struct Vocabulary {
  const char* layer = "";  // for messages
  Tensor tokens;           // in their order: token i has number start + i
  int64_t start = 0;       // after the mask's number and those for what is unknown
  int64_t oov_start = 0;
  std::vector<size_t> sorted;  // tokens in the order of their keys
  std::vector<int64_t> keys;   // sorted: the integers, or hashes of the texts
  HashKey hash = {};           // of texts

  bool texts() const { return tokens.dtype() == DType::string; }
  int64_t count() const { return tokens.shape().count(); }
  int64_t size() const { return start + count(); }
};

Status twice(const Vocabulary& v, size_t a, size_t b) {
  return invalid_argument("%s: the token %s is in the vocabulary twice, as number %zu and as number %zu of it; each may be there once",
                          v.layer, shown(v.tokens, static_cast<int64_t>(a)).c_str(), std::min(a, b), std::max(a, b));
}

// Sorts the tokens by keys under v->hash. False where two texts have one hash.
Result<bool> sort_tokens(Vocabulary* v) {
  const auto count = static_cast<size_t>(v->count());
  std::vector<int64_t> of(count);
  for (size_t i = 0; i < count; ++i) {
    const std::string_view token = element(v->tokens, static_cast<int64_t>(i));
    of[i] = v->texts() ? static_cast<int64_t>(keyed_hash(token, v->hash) % INT64_MAX) : v->tokens.values<int64_t>()[i];
  }
  v->sorted.resize(count);
  std::iota(v->sorted.begin(), v->sorted.end(), size_t{0});
  std::ranges::stable_sort(v->sorted, {}, [&](size_t i) { return of[i]; });
  v->keys.resize(count);
  for (size_t i = 0; i < count; ++i) v->keys[i] = of[v->sorted[i]];
  bool distinct = true;
  for (size_t i = 1; i < count; ++i) {
    if (v->keys[i] != v->keys[i - 1]) continue;
    const size_t a = v->sorted[i - 1], b = v->sorted[i];
    if (element(v->tokens, static_cast<int64_t>(a)) == element(v->tokens, static_cast<int64_t>(b))) return twice(*v, a, b);
    distinct = false;
  }
  return distinct;
}

// Whether the vocabulary begins with what stands for others, as Keras gives it out.
bool begins_special(const Tensor& all, int64_t oov_start, int64_t start, const Tensor* mask, const Tensor& unknown) {
  if (start > all.shape().count()) return false;
  for (int64_t i = 0; i < start; ++i) {
    if (element(all, i) != element(i < oov_start ? *mask : unknown, 0)) return false;
  }
  return true;
}

Status check_reserved(const Vocabulary& v, const Tensor* token, const char* what) {
  for (int64_t i = 0; token && i < v.count(); ++i) {
    if (element(v.tokens, i) != element(*token, 0)) continue;
    return invalid_argument("%s: the %s %s is number %lld of the vocabulary; it has a number of its own, so leave it out there", v.layer,
                            what, shown(*token, 0).c_str(), static_cast<Long>(i));
  }
  return {};
}

Status check_vocabulary(const char* what, const LookupLayer& layer) {
  if (!layer.vocabulary) return invalid_argument("%s: no vocabulary; give a tensor of strings or of int64", what);
  const Tensor& all = *layer.vocabulary;
  if ((all.dtype() != DType::string && all.dtype() != DType::i64) || all.shape().rank() != 1 || all.shape().count() == 0)
    return invalid_argument("%s: the vocabulary is %s; a vector of strings or of int64 with at least 1 token is needed", what,
                            described(all).c_str());
  DTG_TRY(check_scalar(what, "mask token", layer.mask, all.dtype()));
  DTG_TRY(check_scalar(what, "token for what is unknown", layer.unknown, all.dtype()));
  if (layer.oov < 0 || layer.oov > INT32_MAX)
    return invalid_argument("%s: num_oov_indices is %lld; 1 to 2147483647 are possible", what, static_cast<Long>(layer.oov));
  if (layer.invert && layer.output != CategoryOutput::number)
    return invalid_argument("%s: an inverted layer gives tokens; no output mode but the one of numbers fits", what);
  return {};
}

Result<Vocabulary> read_vocabulary(const char* what, const LookupLayer& layer, const Tensor& unknown) {
  const Tensor& all = *layer.vocabulary;
  Vocabulary v;
  v.layer = what;
  v.oov_start = layer.mask && layer.output == CategoryOutput::number ? 1 : 0;
  v.start = v.oov_start + layer.oov;
  v.tokens = all;
  if (begins_special(all, v.oov_start, v.start, layer.mask, unknown)) {
    const int64_t rest = all.shape().count() - v.start;
    if (rest == 0) return invalid_argument("%s: the vocabulary has nothing but the tokens for what is masked or unknown", what);
    DTG_ASSIGN(v.tokens, rows_of(all, v.start, Shape::of({rest})));
  }
  DTG_TRY(check_reserved(v, layer.mask, "mask token"));
  if (layer.invert) DTG_TRY(check_reserved(v, &unknown, "token for what is unknown"));
  for (;; ++v.hash.high) {
    DTG_ASSIGN(const bool distinct, sort_tokens(&v));
    if (distinct) return v;
  }
}

// ---- lookups ----

Value token_of(Build& b, const Vocabulary& v, Value numbers, const LookupLayer& layer, const Tensor& unknown) {
  const Value first = whole(b, v.start), last = whole(b, v.size() - 1);
  const Value inside = b.op("LogicalAnd", {b.op("GreaterEqual", {numbers, first}), b.op("LessEqual", {numbers, last})});
  const Value at = b.sub(b.op("Minimum", {b.op("Maximum", {numbers, first}), last}), first);
  Value y = b.op("SelectV2", {inside, b.op("GatherV2", {b.constant(v.tokens), at, b.integer(0)}), b.constant(unknown)});
  if (!layer.mask) return y;
  return b.op("SelectV2", {b.op("Equal", {numbers, whole(b, 0)}), b.constant(*layer.mask), y});
}

// The tokens in the order of their keys.
Result<Tensor> sorted_tokens(const Vocabulary& v) {
  const Shape shape = Shape::of({v.count()});
  if (!v.texts()) return Tensor::of<int64_t>(shape, v.keys);
  std::vector<Text> texts;
  for (const size_t i : v.sorted) texts.push_back(texts_of(v.tokens)[i]);
  return make_texts(shape, texts);
}

// `y` once all are known; a run that meets others fails and shows some of them.
Value checked(Build& b, const Vocabulary& v, Value x, Value known, Value y) {
  const Value flat = b.reshape(known, b.ints({-1}));
  const Value where = b.op("Where", {b.op("LogicalNot", {flat})});
  const Value others = b.op("GatherNd", {b.reshape(x, b.ints({-1})), where});
  const std::string message = std::string(v.layer) + ": not in the vocabulary, and no_oov leaves no number for what is unknown";
  const Text text(message);
  const Value inputs[] = {b.op("All", {flat, b.ints({0})}), constant(b, make_texts(Shape(), {&text, 1})), others};
  const NodeId controls[] = {b.node("Assert", inputs)};
  const Value seen[] = {y};
  return b.op("Identity", seen, {}, {}, b.ok() ? std::span<const NodeId>(controls) : std::span<const NodeId>());
}

Value number_of(Build& b, const Vocabulary& v, Value x, const LookupLayer& layer) {
  const Value keys = v.texts() ? hashed(b, x, INT64_MAX, &v.hash) : x;
  const Value row =
      b.op("LowerBound", {constant(b, v.keys, Shape::of({1, v.count()})), b.reshape(keys, b.ints({1, -1}))}, {{"out_type", DType::i64}});
  const Value place = b.reshape(row, b.shape(x));
  const Value at = b.op("Minimum", {b.ok() ? shaped(b, place, b.info(x).shape) : place, whole(b, v.count() - 1)});
  std::vector<int64_t> numbers;
  for (const size_t i : v.sorted) numbers.push_back(v.start + static_cast<int64_t>(i));
  Value known = b.op("Equal", {b.op("GatherV2", {constant(b, sorted_tokens(v)), at, b.integer(0)}), x});
  Value y = b.op("GatherV2", {constant(b, numbers, Shape::of({v.count()})), at, b.integer(0)});
  Value other = whole(b, v.oov_start);
  if (layer.oov > 1) {
    const Value oov = v.texts() ? hashed(b, x, layer.oov, nullptr) : b.op("FloorMod", {x, whole(b, layer.oov)});
    other = b.add(oov, other);
  }
  y = b.op("SelectV2", {known, y, other});
  if (layer.mask) {
    // As a number it is 0; among places of rows it has none.
    const Value is_mask = b.op("Equal", {x, b.constant(*layer.mask)});
    y = b.op("SelectV2", {is_mask, whole(b, layer.output == CategoryOutput::number ? 0 : INT64_MAX), y});
    known = b.op("LogicalOr", {known, is_mask});
  }
  return layer.oov == 0 ? checked(b, v, x, known, y) : y;
}

}  // namespace

Result<Value> lookup(Model& model, Value x, const LookupLayer& layer) {
  const bool texts = layer.vocabulary && layer.vocabulary->dtype() == DType::string;
  const char* const what = texts ? "string_lookup" : "integer_lookup";
  DTG_TRY(check_vocabulary(what, layer));
  DTG_TRY(check_input(model, what, x, texts && !layer.invert ? DType::string : DType::i64));
  const Text mark("[UNK]");
  DTG_ASSIGN(const Tensor usual, texts ? make_texts(Shape(), {&mark, 1}) : Tensor::scalar<int64_t>(-1));
  const Tensor& unknown = layer.unknown ? *layer.unknown : usual;
  DTG_ASSIGN(const Vocabulary v, read_vocabulary(what, layer, unknown));
  DTG_TRY(check_output(model, what, x, layer.output, v.size()));
  const NameScope scope(model.graph(), layer.name.empty() ? std::string_view(what) : layer.name);
  Build b(model.graph());
  const Value wide = widened(b, x);
  const Value y = layer.invert ? token_of(b, v, wide, layer, unknown) : encoded(b, number_of(b, v, wide, layer), layer.output, v.size());
  DTG_TRY(b.status());
  return y;
}

}  // namespace dtg
