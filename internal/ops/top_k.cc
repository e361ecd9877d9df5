// The largest of each row: TopK and TopKV2, NthElement, InTopK and InTopKV2. Of equal elements the one that stands first comes
// first; a NaN comes after everything else. Rows are independent, so threads do not matter.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/watched.h"
#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/type_lists.h"

namespace dtg::ops {
namespace {

// What comparisons happen in.
template <class T>
using Compared = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

template <class C>
bool is_nan(C value) {
  if constexpr (std::is_floating_point_v<C>) return std::isnan(value);
  else return false;
}

// Does a come before b among the largest (smallest)? A total order with NaN at the end.
template <class T, bool kLargest>
bool comes_before(T a, T b) {
  const auto x = static_cast<Compared<T>>(a), y = static_cast<Compared<T>>(b);
  if (is_nan(x) || is_nan(y)) return !is_nan(x) && is_nan(y);
  return kLargest ? x > y : x < y;
}

constexpr int64_t kRowShards = 16;

// ---- TopK, TopKV2 ------------------------------------------------------------------------------------------

Status top_k_shape_of(InferContext& c, int64_t k, bool known) {
  const PartialShape& in = c.input(0);
  DTG_TRY(c.require_rank_at_least(0, 1));
  if (known && k < 0) return c.error("k is %lld; it must not be negative", static_cast<long long>(k));
  if (!in.has_rank()) return {};
  const int64_t last = in.dim(in.rank() - 1);
  if (known && last >= 0 && k > last) {
    return c.error("rows of %lld have no %lld largest; k must be at most the last dimension", static_cast<long long>(last),
                   static_cast<long long>(k));
  }
  PartialShape out = in;
  out.set_dim(in.rank() - 1, known ? k : -1);
  c.output(0, out);
  c.output(1, out);
  return {};
}

Status top_k_shape(InferContext& c) { return top_k_shape_of(c, c.integer("k"), true); }
Status top_k_v2_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 0));
  const KnownIntegers k = known_integers(c, 1);
  return top_k_shape_of(c, k.values[0], k.known);
}

// d(input) = dy where the largest stood, zero elsewhere
Status top_k_grad(GradContext& c) {
  Build& b = c.b();
  const Value one = b.ints({1}), last = b.ints({-1}), scalar = b.ints({});
  const Value in = b.shape(c.input(0)), picked = b.shape(c.output(1));
  const Value extent = b.reshape(b.op("StridedSlice", {in, last, b.ints({0}), one}, {{"end_mask", 1}}), scalar);
  const Value k = b.op("StridedSlice", {picked, last, b.ints({0}), one}, {{"end_mask", 1}});
  const Value rows = b.op("Prod", {b.op("StridedSlice", {in, b.ints({0}), last, one}, {{"begin_mask", 1}}), b.ints({0})});
  const Value starts = b.mul(b.op("Range", {b.integer(0), rows, b.integer(1)}), extent);
  const Value by_row = b.op("ConcatV2", {b.reshape(rows, one), k, b.integer(0)});
  const Value within = b.reshape(b.cast(c.output(1), DType::i32), by_row);
  const Value places = b.add(within, b.op("ExpandDims", {starts, b.integer(-1)}));
  const Value count = b.op("Size", {c.output(1)});
  const Value tuples = b.reshape(places, b.op("Pack", {count, b.integer(1)}));
  const Value flat = b.op("ScatterNd", {tuples, b.reshape(c.dy(), b.reshape(count, one)), b.reshape(b.op("Size", {c.input(0)}), one)});
  c.dx(0, b.reshape(flat, in));
  return {};
}

struct TopKArgs {
  Shape in;
  int64_t rows = 0, extent = 0;
  int64_t k = 0;       // TopK
  bool given = false;  // k is an input
  Integers count;
  DType index = DType::i32;
  OutputSpec values, indices;
};

constexpr int64_t kFew = 32;

// The few best so far stand in their order; most elements are worse than the last of them, which one look tells.
template <class T>
void find_few(const T* row, int64_t extent, int64_t k, int32_t* order) {
  using C = Compared<T>;
  int64_t have = 0;
  C last{};  // of those; where it is NaN, one that is not comes before it
  for (const int64_t i : watched(extent, 2)) {
    const C x = static_cast<C>(row[i]);
    if (have == k && !(x > last) && !is_nan(last)) continue;
    if (have == k && is_nan(x)) continue;
    int64_t place = have < k ? have++ : k - 1;
    for (; place > 0 && comes_before<T, true>(row[i], row[order[place - 1]]); --place) order[place] = order[place - 1];
    order[place] = static_cast<int32_t>(i);
    last = static_cast<C>(row[order[have - 1]]);
  }
}

template <class T>
void find_many(const T* row, int64_t extent, int64_t k, int32_t* order) {
  for (const int64_t i : watched(extent, 1)) order[i] = static_cast<int32_t>(i);
  Lookout lookout;
  std::partial_sort(order, order + k, order + extent, [row, &lookout](int32_t a, int32_t b) {
    lookout.after(10);
    if (comes_before<T, true>(row[a], row[b])) return true;
    return a < b && !comes_before<T, true>(row[b], row[a]);
  });
}

template <class T>
void top_of_row(const T* row, int64_t extent, int64_t k, int32_t* order, T* values, void* indices, int64_t at, DType index) {
  if (k > kFew) find_many(row, extent, k, order);
  else if (k > 0) find_few(row, extent, k, order);
  for (int64_t i = 0; i < k; ++i) {
    values[i] = row[order[i]];
    if (index == DType::i16) static_cast<int16_t*>(indices)[at + i] = static_cast<int16_t>(order[i]);
    else if (index == DType::i32) static_cast<int32_t*>(indices)[at + i] = order[i];
    else static_cast<int64_t*>(indices)[at + i] = order[i];
  }
}

template <class T>
Status top_k_run(RunContext& c) {
  const auto& a = c.args<TopKArgs>();
  Integers::Buffer buffer;
  const int64_t k = a.given ? a.count.get(c, buffer)[0] : a.k;
  if (k < 0 || k > a.extent) {
    return c.error("k is %lld; it must be in [0, %lld]", static_cast<long long>(k), static_cast<long long>(a.extent));
  }
  int64_t dims[kRankMax];
  std::copy_n(a.in.dims().begin(), a.in.rank(), dims);
  dims[a.in.rank() - 1] = k;
  DTG_ASSIGN(const Shape shape, Shape::make({dims, static_cast<size_t>(a.in.rank())}));
  DTG_ASSIGN(char* values, a.values.memory(c, shape));
  DTG_ASSIGN(char* indices, a.indices.memory(c, shape));
  const int64_t shards = std::min(a.rows, kRowShards);
  const T* const in = c.in<T>(0);
  int32_t* const orders = c.workspace<int32_t>();
  c.pool().parallel_for(shards, [&](int64_t s) {
    for (const int64_t r : watched(a.rows * s / shards, a.rows * (s + 1) / shards, a.extent)) {
      top_of_row(in + r * a.extent, a.extent, k, orders + s * a.extent, reinterpret_cast<T*>(values) + r * k, indices, r * k, a.index);
    }
  });
  return {};
}

template <class T>
Status top_k_prepare(PrepareContext& c) {
  auto* a = c.args<TopKArgs>();
  a->in = c.input(0).shape;
  a->extent = a->in.dim(a->in.rank() - 1);
  a->rows = a->in.count(0, a->in.rank() - 1);
  if (a->extent > std::numeric_limits<int32_t>::max()) return c.error("rows of %lld are too long", static_cast<long long>(a->extent));
  a->given = c.num_inputs() > 1;
  if (a->given) DTG_TRY(a->count.prepare(c, 1));
  else a->k = c.integer("k");
  a->index = c.output(1).dtype;
  a->values.prepare(c, 0);
  a->indices.prepare(c, 1);
  c.workspace(Bytes::of(std::min(a->rows, kRowShards) * a->extent, sizeof(int32_t)));
  return c.sync(top_k_run<T>);
}

// ---- NthElement --------------------------------------------------------------------------------------------

Status nth_shape(InferContext& c) {
  DTG_TRY(c.require_rank_at_least(0, 1));
  DTG_TRY(c.require_rank(1, 0));
  const PartialShape& in = c.input(0);
  const KnownIntegers n = known_integers(c, 1);
  if (n.known && n.values[0] < 0) return c.error("n is %lld; it must not be negative", static_cast<long long>(n.values[0]));
  if (!in.has_rank()) return {};
  const int64_t last = in.dim(in.rank() - 1);
  if (n.known && last >= 0 && n.values[0] >= last) {
    return c.error("n is %lld, but the rows have %lld elements", static_cast<long long>(n.values[0]), static_cast<long long>(last));
  }
  PartialShape out = PartialShape::of_rank(in.rank() - 1);
  for (int d = 0; d + 1 < in.rank(); ++d) out.set_dim(d, in.dim(d));
  c.output(0, out);
  return {};
}

// dy shared equally by the elements that equal the n-th
Status nth_grad(GradContext& c) {
  Build& b = c.b();
  const Value last = b.integer(-1), dy = c.dy();
  const Value equal = b.cast(b.op("Equal", {b.op("ExpandDims", {c.output(0), last}), c.input(0)}), b.info(dy).dtype);
  const Value count = b.op("ExpandDims", {b.sum(equal, last), last});
  c.dx(0, b.mul(b.div(equal, count), b.op("ExpandDims", {dy, last})));
  return {};
}

struct NthArgs {
  int64_t rows = 0, extent = 0;
  bool reverse = false;
};

template <class T>
Status nth_run(RunContext& c) {
  const auto& a = c.args<NthArgs>();
  const int32_t n = *c.in<int32_t>(1);
  if (n < 0 || n >= a.extent) return c.error("n is %d; it must be in [0, %lld)", n, static_cast<long long>(a.extent));
  const int64_t shards = std::min(a.rows, kRowShards);
  T* const copies = c.workspace<T>();
  c.pool().parallel_for(shards, [&](int64_t s) {
    T* const row = copies + s * a.extent;
    for (int64_t r = a.rows * s / shards; r < a.rows * (s + 1) / shards; ++r) {
      for (const int64_t i : watched(a.extent, 1)) row[i] = c.in<T>(0)[r * a.extent + i];
      Lookout lookout;
      std::nth_element(row, row + n, row + a.extent, [&lookout, reverse = a.reverse](const T& x, const T& y) {
        lookout.after(6);
        return reverse ? comes_before<T, true>(x, y) : comes_before<T, false>(x, y);
      });
      c.out<T>(0)[r] = row[n];
    }
  });
  return {};
}

template <class T>
Status nth_prepare(PrepareContext& c) {
  auto* a = c.args<NthArgs>();
  const Shape& in = c.input(0).shape;
  a->extent = in.dim(in.rank() - 1);
  a->rows = in.count(0, in.rank() - 1);
  a->reverse = c.boolean("reverse");
  c.workspace(Bytes::of(std::min(a->rows, kRowShards) * a->extent, sizeof(T)));
  return c.sync(nth_run<T>);
}

template <class... T>
void add_order_kernels(KernelTable& kernels) {
  (kernels.add({.op = "TopK", .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = top_k_prepare<T>}), ...);
  (kernels.add({.op = "TopKV2", .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = top_k_prepare<T>}), ...);
  (kernels.add({.op = "NthElement", .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = nth_prepare<T>}), ...);
}

// ---- InTopK, InTopKV2 --------------------------------------------------------------------------------------

Status in_top_k_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 2));
  DTG_TRY(c.require_rank(1, 1));
  if (c.num_inputs() > 2) DTG_TRY(c.require_rank(2, 0));
  const int64_t rows = c.input(0).dim(0), targets = c.input(1).dim(0);
  if (rows >= 0 && targets >= 0 && rows != targets) {
    return c.error("%lld targets for predictions of shape %s", static_cast<long long>(targets), c.input(0).text().c_str());
  }
  c.output(0, PartialShape::vector(rows >= 0 ? rows : targets));
  return {};
}

struct InTopKArgs {
  int64_t rows = 0, classes = 0;
  int64_t k = 0;
  bool given = false;
  DType dtype = DType::i32;
};

// Are fewer than k classes more probable? No, where that cannot be said: a target that is no class, predictions that are not finite.
bool in_top(const float* row, int64_t classes, int64_t target, int64_t k) {
  if (target < 0 || target >= classes || !std::isfinite(row[target])) return false;
  int64_t better = 0;
  for (const int64_t i : watched(classes, 1)) {
    if (!std::isfinite(row[i])) return false;
    better += row[i] > row[target];
  }
  return better < k;
}

Status in_top_k_run(RunContext& c) {
  const auto& a = c.args<InTopKArgs>();
  const int64_t k = a.given ? integer_at(c.in<char>(2), a.dtype, 0) : a.k;
  for (const int64_t r : watched(a.rows, 4 + a.classes)) {
    c.out<bool>(0)[r] = in_top(c.in<float>(0) + r * a.classes, a.classes, integer_at(c.in<char>(1), a.dtype, r), k);
  }
  return {};
}

Status in_top_k_prepare(PrepareContext& c) {
  auto* a = c.args<InTopKArgs>();
  a->rows = c.input(0).shape.dim(0);
  a->classes = c.input(0).shape.dim(1);
  a->given = c.num_inputs() > 2;
  if (!a->given) a->k = c.integer("k");
  a->dtype = c.input(1).dtype;
  return c.sync(in_top_k_run);
}

}  // namespace

void register_top_k(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("TopK")
              .input("input: T", {.rank_min = 1})
              .output("values: T")
              .output("indices: int32")
              .attr("k: int >= 0")
              .attr("sorted: bool = true")
              .attr(kAttrReals)
              .shape(top_k_shape)
              .gradient(top_k_grad)
              .doc("The k largest of each row and where they stand; equal ones in their order."));
  ops.add(OpDef::make("TopKV2")
              .input("input: T", {.rank_min = 1})
              .input("k: Tk", {.rank = 0})
              .output("values: T")
              .output("indices: index_type")
              .attr("sorted: bool = true")
              .attr(kAttrReals)
              .attr("Tk: {int16, int32, int64} = int32")
              .attr("index_type: {int16, int32, int64} = int32")
              .shape(top_k_v2_shape)
              .gradient(top_k_grad)
              .doc("The k largest of each row and where they stand; equal ones in their order."));
  ops.add(OpDef::make("NthElement")
              .input("input: T", {.rank_min = 1})
              .input("n: int32", {.rank = 0})
              .output("values: T")
              .attr("reverse: bool = false")
              .attr(kAttrReals)
              .shape(nth_shape)
              .gradient(nth_grad)
              .doc("The element of each row that would stand at place n if the row was sorted."));
  add_order_kernels<float, double, int32_t, int64_t, uint8_t, int8_t, int16_t, uint16_t, uint32_t, uint64_t, Half, BFloat16>(kernels);
  ops.add(OpDef::make("InTopK")
              .input("predictions: float", {.rank = 2})
              .input("targets: T", {.rank = 1})
              .output("precision: bool")
              .attr("k: int")
              .attr("T: {int32, int64} = int32")
              .shape(in_top_k_shape)
              .no_gradient()
              .doc("Is the target among the k most probable classes of its row?"));
  ops.add(OpDef::make("InTopKV2")
              .input("predictions: float", {.rank = 2})
              .input("targets: T", {.rank = 1})
              .input("k: T", {.rank = 0})
              .output("precision: bool")
              .attr("T: {int32, int64} = int32")
              .shape(in_top_k_shape)
              .no_gradient()
              .doc("Is the target among the k most probable classes of its row?"));
  for (const char* name : {"InTopK", "InTopKV2"}) kernels.add({.op = name, .prepare = in_top_k_prepare});
}

}  // namespace dtg::ops
