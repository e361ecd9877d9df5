// Segments: rows that share an id are added, multiplied, averaged, or the extreme of them is taken. SegmentSum and its kin
// want ids that do not fall; the Unsorted ones take any, and UnsortedSegmentSum also makes row gradients dense. Rows are
// folded in their order, so the result does not depend on the number of threads.
#include <limits>

#include "base/watched.h"
#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/rows.h"
#include "ops/type_lists.h"

namespace dtg::ops {
namespace {

// ---- shapes ------------------------------------------------------------------------------------------------

Status unsorted_segment_shape(InferContext& c) {
  DTG_TRY(c.require_rank(2, 0));
  const PartialShape &data = c.input(0), &ids = c.input(1);
  const KnownIntegers segments = known_integers(c, 2);
  if (segments.known && segments.values[0] < 0) return c.error("num_segments is %lld", static_cast<long long>(segments.values[0]));
  if (!ids.has_rank() || !data.has_rank()) return {};
  DTG_TRY(c.require_rank_at_least(0, ids.rank()));
  for (int i = 0; i < ids.rank(); ++i) {
    if (ids.dim(i) < 0 || data.dim(i) < 0 || ids.dim(i) == data.dim(i)) continue;
    return c.error("segment_ids of shape %s are no prefix of data %s", ids.text().c_str(), data.text().c_str());
  }
  PartialShape out = PartialShape::of_rank(0);
  DTG_TRY(out.append(segments.known ? segments.values[0] : -1));
  for (int i = ids.rank(); i < data.rank(); ++i) DTG_TRY(in_op(c.node(), out.append(data.dim(i))));
  c.output(0, out);
  return {};
}

Status segment_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 1));
  DTG_TRY(c.require_rank_at_least(0, 1));
  PartialShape out = c.input(0);
  if (out.has_rank()) out.set_dim(0, -1);
  c.output(0, out);
  return {};
}

// ---- gradients ---------------------------------------------------------------------------------------------

// The rows of x that the ids name.
Value rows_of_segments(GradContext& c, Value x) { return c.b().op("GatherV2", {x, c.input(1), c.b().integer(0)}); }

// Rows of per-segment values for ids of which negative ones name nothing.
class KeptRows {
 public:
  explicit KeptRows(GradContext& c) : b_(c.b()), ids_(c.input(1)), zero_(b_.zeros_like(ids_)) {
    clipped_ = b_.op("Maximum", {ids_, zero_});
  }
  // Some row or other where the id is negative.
  Value any(Value x) { return b_.op("GatherV2", {x, clipped_, b_.integer(0)}); }
  // Zeros there.
  Value or_zero(Value x) {
    const Value rows = any(x);
    return b_.op("SelectV2", {kept(rows), rows, b_.zeros_like(rows)});
  }
  // Is there a row? With one more dimension of 1 for each that the rows have.
  Value kept(Value rows) {
    Value kept = b_.op("GreaterEqual", {ids_, zero_});
    const int ids_rank = b_.info(ids_).shape.rank(), rows_rank = b_.info(rows).shape.rank();
    if (ids_rank >= 0 && rows_rank >= 0) {
      for (int i = ids_rank; i < rows_rank; ++i) kept = b_.op("ExpandDims", {kept, b_.integer(-1)});
      return kept;
    }
    const Value more = b_.sub(b_.op("Rank", {rows}), b_.op("Rank", {kept}));
    const Value ones = b_.op("Fill", {b_.reshape(more, b_.ints({1})), b_.integer(1)});
    return b_.reshape(kept, b_.op("ConcatV2", {b_.shape(kept), ones, b_.integer(0)}));
  }

 private:
  Build& b_;
  Value ids_, zero_, clipped_;
};

// d(data) = dy[segment_ids]
Status segment_grad(GradContext& c) {
  c.dx(0, rows_of_segments(c, c.dy()));
  return {};
}

// and zero where the id is negative
Status unsorted_segment_grad(GradContext& c) {
  c.dx(0, KeptRows(c).or_zero(c.dy()));
  return {};
}

// d(data) = (dy / count)[segment_ids]
Status segment_mean_grad(GradContext& c) {
  Build& b = c.b();
  const Value rank = b.op("Rank", {c.input(0)}), one = b.ints({1});
  const Value ones = b.op("Fill", {b.reshape(b.sub(rank, b.integer(1)), one), b.integer(1)});
  const Value shape = b.op("ConcatV2", {b.shape(c.input(1)), ones, b.integer(0)});
  const Value counts = b.op("SegmentSum", {b.op("Fill", {shape, b.like(c.dy(), 1.0)}), c.input(1)});
  c.dx(0, rows_of_segments(c, b.div(c.dy(), counts)));
  return {};
}

// d(data) = dy shared equally by the elements that are the extreme
Status segment_extreme_grad(GradContext& c) {
  Build& b = c.b();
  const Value data = c.input(0), dy = c.dy();
  const Value selected = b.op("Equal", {data, rows_of_segments(c, c.output(0))});
  const Value count = b.op("SegmentSum", {b.cast(selected, b.info(dy).dtype), c.input(1)});
  c.dx(0, b.op("SelectV2", {selected, rows_of_segments(c, b.div(dy, count)), b.zeros_like(data)}));
  return {};
}

Status unsorted_segment_extreme_grad(GradContext& c) {
  Build& b = c.b();
  const Value data = c.input(0), dy = c.dy();
  KeptRows rows(c);
  const Value extreme = rows.any(c.output(0));
  const Value selected = b.op("LogicalAnd", {b.op("Equal", {data, extreme}), rows.kept(extreme)});
  const Value count = b.op("UnsortedSegmentSum", {b.cast(selected, b.info(dy).dtype), c.input(1), c.input(2)});
  c.dx(0, b.op("SelectV2", {selected, rows.any(b.div(dy, count)), b.zeros_like(data)}));
  return {};
}

// d(data) = dy times the product of the others: the whole product divided by the element, or where that is the only zero of
// its segment, the product of the rest. Two zeros leave nothing. `sums` counts the zeros, `products` multiplies.
template <class Sums, class Products, class Rows>
void segment_product_grad(GradContext& c, const Sums& sums, const Products& products, const Rows& rows) {
  Build& b = c.b();
  const Value data = c.input(0), dy = c.dy();
  const Value zero = b.op("Equal", {data, b.zeros_like(data)});
  const Value zeros = sums(b.cast(zero, DType::i32));
  const Value g = b.op("SelectV2", {b.op("Greater", {zeros, b.integer(1)}), b.zeros_like(dy), dy});
  const Value others = b.op("SelectV2", {zero, b.op("OnesLike", {data}), data});
  const Value whole = b.div(rows(c.output(0)), others);
  c.dx(0, b.mul(rows(g), b.op("SelectV2", {zero, rows(products(others)), whole})));
}

Status segment_prod_grad(GradContext& c) {
  Build& b = c.b();
  segment_product_grad(
      c,
      [&](Value x) {
        return b.op("SegmentSum", {x, c.input(1)});
      },
      [&](Value x) {
        return b.op("SegmentProd", {x, c.input(1)});
      },
      [&](Value x) { return rows_of_segments(c, x); });
  return {};
}

Status unsorted_segment_prod_grad(GradContext& c) {
  Build& b = c.b();
  KeptRows kept(c);
  segment_product_grad(
      c,
      [&](Value x) {
        return b.op("UnsortedSegmentSum", {x, c.input(1), c.input(2)});
      },
      [&](Value x) {
        return b.op("UnsortedSegmentProd", {x, c.input(1), c.input(2)});
      },
      [&](Value x) { return kept.or_zero(x); });
  return {};
}

// ---- kernels -----------------------------------------------------------------------------------------------

struct SegmentArgs {
  Shape data;
  int64_t count = 0;    // rows
  int64_t columns = 0;  // elements of a row
  int ids_rank = 0;
  bool wide = false;  // int64 ids
  Integers segments;
  OutputSpec out;
};

// The ids, of either width.
struct SegmentIds {
  const void* data = nullptr;
  bool wide = false;
  int64_t operator()(int64_t i) const { return wide ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i]; }
};

// [segments] + the dimensions of data behind those of the ids.
Result<Shape> segments_shape(const SegmentArgs& a, int64_t segments) {
  int64_t dims[kRankMax + 1] = {segments};
  size_t rank = 1;
  for (int i = a.ids_rank; i < a.data.rank(); ++i) dims[rank++] = a.data.dim(i);
  return Shape::make({dims, rank});
}

// What a fold starts from and does. A segment that no row belongs to stays at `unsorted`, or at 0 (1 for products) among
// sorted ones.
template <class T>
struct SumFold {
  static T unsorted() { return T(0); }
  static T of(T a, T b) { return sum_of<T>(a, b); }
};
template <class T>
struct ProdFold {
  static T unsorted() { return T(1); }
  static T of(T a, T b) { return product_of<T>(a, b); }
};
template <class T>
T lowest_of() {
  if constexpr (std::is_same_v<T, Half>) return T(-65504.0f);
  else if constexpr (std::is_same_v<T, BFloat16>) return T(-3.3895314e38f);
  else return std::numeric_limits<T>::lowest();
}
template <class T>
T highest_of() {
  if constexpr (std::is_same_v<T, Half>) return T(65504.0f);
  else if constexpr (std::is_same_v<T, BFloat16>) return T(3.3895314e38f);
  else return std::numeric_limits<T>::max();
}
template <class T>
struct MaxFold {
  static T unsorted() { return lowest_of<T>(); }
  static T of(T a, T b) { return a < b ? b : a; }
};
template <class T>
struct MinFold {
  static T unsorted() { return highest_of<T>(); }
  static T of(T a, T b) { return b < a ? b : a; }
};

template <class T, class Fold>
void fold_segments(RunContext& c, const SegmentArgs& a, T* out, const SegmentIds& ids) {
  fold_rows(c.pool(), out, c.in<T>(0), a.count, a.columns, ids, [](T x, T y) { return Fold::of(x, y); });
}

template <class T, class Fold>
Status unsorted_segment_run(RunContext& c) {
  const auto& a = c.args<SegmentArgs>();
  Integers::Buffer buffer;
  const int64_t segments = a.segments.get(c, buffer)[0];
  const auto shape = segments_shape(a, segments);
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  const SegmentIds ids{c.in<void>(1), a.wide};
  for (const int64_t i : watched(a.count)) {
    if (ids(i) < segments) continue;
    return c.error("segment id %lld is %lld, not below num_segments = %lld", static_cast<long long>(i), static_cast<long long>(ids(i)),
                   static_cast<long long>(segments));
  }
  DTG_ASSIGN(char* out, a.out.memory(c, shape.value()));
  const T start = Fold::unsorted();
  cpu::fill(c.pool(), out, shape.value().count(), sizeof(T), &start);
  fold_segments<T, Fold>(c, a, reinterpret_cast<T*>(out), ids);
  return {};
}

Status prepare_unsorted(PrepareContext& c, SyncFn run) {
  auto* a = c.args<SegmentArgs>();
  a->data = c.input(0).shape;
  a->ids_rank = c.input(1).shape.rank();
  a->count = c.input(1).shape.count();
  a->columns = a->data.count(a->ids_rank, a->data.rank());
  a->wide = c.input(1).dtype == DType::i64;
  DTG_TRY(a->segments.prepare(c, 2));
  a->out.prepare(c, 0);
  return c.sync(run);
}

template <class T, class Fold>
Status unsorted_segment_prepare(PrepareContext& c) {
  return prepare_unsorted(c, unsorted_segment_run<T, Fold>);
}

// How many segments sorted ids make; an error where they are negative or fall.
Result<int64_t> count_segments(RunContext& c, const SegmentArgs& a, const SegmentIds& ids) {
  int64_t last = -1;
  for (const int64_t i : watched(a.count)) {
    const int64_t id = ids(i);
    if (id < 0 || id < last) {
      return c.error("segment id %lld is %lld after %lld; ids must not be negative and must not fall", static_cast<long long>(i),
                     static_cast<long long>(id), static_cast<long long>(last));
    }
    last = id;
  }
  // The largest id could ask for any amount of memory; the count of elements bounds it first.
  if (last == INT64_MAX) return c.error("segment id %lld is too large", static_cast<long long>(last));
  return last + 1;
}

// A run of equal ids starts with a copy of its first row.
template <class T, class Fold>
Status segment_run(RunContext& c) {
  const auto& a = c.args<SegmentArgs>();
  const SegmentIds ids{c.in<void>(1), a.wide};
  DTG_ASSIGN(const int64_t segments, count_segments(c, a, ids));
  const auto shape = segments_shape(a, segments);
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  DTG_ASSIGN(char* memory, a.out.memory(c, shape.value()));
  T* const out = reinterpret_cast<T*>(memory);
  const T empty = std::is_same_v<Fold, ProdFold<T>> ? T(1) : T(0);
  cpu::fill(c.pool(), memory, shape.value().count(), sizeof(T), &empty);
  for (const int64_t i : watched(a.count, 4 + a.columns)) {
    if (i > 0 && ids(i) == ids(i - 1)) continue;
    const T start = Fold::unsorted();
    std::fill_n(out + ids(i) * a.columns, a.columns, start);
  }
  fold_segments<T, Fold>(c, a, out, ids);
  return {};
}

// The sum, then every row divided by how many made it.
template <class T>
Status segment_mean_run(RunContext& c) {
  const auto& a = c.args<SegmentArgs>();
  const SegmentIds ids{c.in<void>(1), a.wide};
  DTG_ASSIGN(const int64_t segments, count_segments(c, a, ids));
  const auto shape = segments_shape(a, segments);
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  DTG_ASSIGN(char* memory, a.out.memory(c, shape.value()));
  T* const out = reinterpret_cast<T*>(memory);
  cpu::clear(c.pool(), memory, shape.value().count() * static_cast<int64_t>(sizeof(T)));
  fold_segments<T, SumFold<T>>(c, a, out, ids);
  Lookout lookout;
  for (int64_t begin = 0, end = 0; begin < a.count; begin = end) {
    lookout.after(10 + a.columns);
    while (end < a.count && ids(end) == ids(begin)) ++end;
    T* const row = out + ids(begin) * a.columns;
    for (int64_t k = 0; k < a.columns; ++k) {
      if constexpr (std::is_integral_v<T>) row[k] = static_cast<T>(row[k] / static_cast<T>(end - begin));
      else if constexpr (std::is_floating_point_v<T>) row[k] = row[k] / static_cast<T>(end - begin);
      else row[k] = T(static_cast<float>(row[k]) / static_cast<float>(end - begin));
    }
  }
  return {};
}

Status prepare_sorted(PrepareContext& c, SyncFn run) {
  auto* a = c.args<SegmentArgs>();
  a->data = c.input(0).shape;
  a->ids_rank = 1;
  a->count = c.input(1).shape.count();
  if (a->count != a->data.dim(0))
    return c.error("%lld segment ids for data of shape %s", static_cast<long long>(a->count), a->data.text().c_str());
  a->columns = a->data.count(1, a->data.rank());
  a->wide = c.input(1).dtype == DType::i64;
  a->out.prepare(c, 0);
  return c.sync(run);
}

template <class T, class Fold>
Status segment_prepare(PrepareContext& c) {
  return prepare_sorted(c, segment_run<T, Fold>);
}
template <class T>
Status segment_mean_prepare(PrepareContext& c) {
  return prepare_sorted(c, segment_mean_run<T>);
}

template <class T, template <class> class Fold>
void add_fold_kernels(KernelTable& kernels, const char* sorted, const char* unsorted) {
  const DTypeSet own{dtype_of<T>};
  kernels.add({.op = sorted, .types = {{"T", own}}, .prepare = segment_prepare<T, Fold<T>>});
  kernels.add({.op = unsorted, .types = {{"T", own}}, .prepare = unsorted_segment_prepare<T, Fold<T>>});
}

template <class T>
void add_typed_kernels(KernelTable& kernels) {
  add_fold_kernels<T, SumFold>(kernels, "SegmentSum", "UnsortedSegmentSum");
  add_fold_kernels<T, ProdFold>(kernels, "SegmentProd", "UnsortedSegmentProd");
  add_fold_kernels<T, MaxFold>(kernels, "SegmentMax", "UnsortedSegmentMax");
  add_fold_kernels<T, MinFold>(kernels, "SegmentMin", "UnsortedSegmentMin");
  kernels.add({.op = "SegmentMean", .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = segment_mean_prepare<T>});
}

template <class... T>
void add_segment_kernels(KernelTable& kernels) {
  (add_typed_kernels<T>(kernels), ...);
}

struct SegmentOp {
  const char* name;
  const char* types;
  GradFn gradient;
  const char* doc;
};
constexpr SegmentOp kSorted[] = {
    {"SegmentSum", kAttrNumbers, segment_grad, "Row s is the sum of the rows of data whose id is s; ids must not fall."},
    {"SegmentMean", kAttrNumbers, segment_mean_grad, "Row s is the mean of the rows of data whose id is s; ids must not fall."},
    {"SegmentProd", kAttrNumbers, segment_prod_grad, "Row s is the product of the rows of data whose id is s; ids must not fall."},
    {"SegmentMax", kAttrReals, segment_extreme_grad, "Row s is the largest of the rows of data whose id is s; ids must not fall."},
    {"SegmentMin", kAttrReals, segment_extreme_grad, "Row s is the smallest of the rows of data whose id is s; ids must not fall."},
};
constexpr SegmentOp kUnsorted[] = {
    {"UnsortedSegmentSum", kAttrNumbers, unsorted_segment_grad,
     "Row s is the sum of the rows of data whose id is s; negative ids are dropped."},
    {"UnsortedSegmentProd", kAttrNumbers, unsorted_segment_prod_grad,
     "Row s is the product of the rows of data whose id is s; negative ids are dropped."},
    {"UnsortedSegmentMax", kAttrReals, unsorted_segment_extreme_grad,
     "Row s is the largest of the rows of data whose id is s; negative ids are dropped."},
    {"UnsortedSegmentMin", kAttrReals, unsorted_segment_extreme_grad,
     "Row s is the smallest of the rows of data whose id is s; negative ids are dropped."},
};

}  // namespace

void register_segment(OpTable& ops, KernelTable& kernels) {
  for (const SegmentOp& row : kUnsorted) {
    ops.add(OpDef::make(row.name)
                .input("data: T")
                .input("segment_ids: Tindices")
                .input("num_segments: Tnumsegments", {.rank = 0})
                .output("output: T")
                .attr(row.types)
                .attr("Tindices: {int32, int64}")
                .attr("Tnumsegments: {int32, int64} = int32")
                .shape(unsorted_segment_shape)
                .gradient(row.gradient)
                .doc(row.doc));
  }
  for (const SegmentOp& row : kSorted) {
    ops.add(OpDef::make(row.name)
                .input("data: T", {.rank_min = 1})
                .input("segment_ids: Tindices", {.rank = 1})
                .output("output: T")
                .attr(row.types)
                .attr("Tindices: {int32, int64}")
                .shape(segment_shape)
                .gradient(row.gradient)
                .doc(row.doc));
  }
  add_segment_kernels<float, double, int32_t, int64_t, uint8_t, int8_t, int16_t, uint16_t, uint32_t, uint64_t, Half, BFloat16>(kernels);
}

}  // namespace dtg::ops
