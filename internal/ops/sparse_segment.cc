// Sums of picked rows: SparseSegmentSum, -Mean and -SqrtN, the forms that are told the number of segments, and their gradients. Row
// indices[i] of the data belongs to segment segment_ids[i]; ids never fall. Rows are added in their order, 16-bit floats in float, so
// the result does not depend on the number of threads.
#include <cmath>

#include "base/watched.h"
#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/rows.h"

namespace dtg::ops {
namespace {

using Long = long long;

// What a segment's sum is divided by.
enum class Share : uint8_t { sum, mean, root };

Share share_of(std::string_view op) {
  if (op.find("Mean") != std::string_view::npos) return Share::mean;
  return op.find("SqrtN") != std::string_view::npos ? Share::root : Share::sum;
}

double weight_of(Share share, int64_t rows) {
  if (share == Share::sum || rows <= 1) return 1;
  return share == Share::mean ? 1.0 / static_cast<double>(rows) : 1.0 / std::sqrt(static_cast<double>(rows));
}

// Sums are kept in this type.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

// ---- shapes ------------------------------------------------------------------------------------------------

Status check_lists(const InferContext& c, int ids) {
  DTG_TRY(c.require_rank(ids, 1));
  DTG_TRY(c.require_rank(ids + 1, 1));
  const int64_t a = c.input(ids).has_rank() ? c.input(ids).dim(0) : -1, b = c.input(ids + 1).has_rank() ? c.input(ids + 1).dim(0) : -1;
  if (a < 0 || b < 0 || a == b) return {};
  return c.error("%lld indices and %lld segment_ids: each index needs one id", static_cast<Long>(a), static_cast<Long>(b));
}

Status picked_shape(InferContext& c, int64_t segments) {
  PartialShape out = c.input(0);
  if (out.has_rank()) out.set_dim(0, segments);
  c.output(0, out);
  return {};
}

Status segments_shape(InferContext& c) {
  DTG_TRY(c.require_rank_at_least(0, 1));
  DTG_TRY(check_lists(c, 1));
  return picked_shape(c, -1);
}

// The number of rows of the result is input 3.
Status counted_shape(InferContext& c) {
  DTG_TRY(c.require_rank_at_least(0, 1));
  DTG_TRY(check_lists(c, 1));
  DTG_TRY(c.require_rank(3, 0));
  const KnownIntegers rows = known_integers(c, 3);
  if (rows.known && rows.values[0] < 0) return c.error("the number of rows is %lld", static_cast<Long>(rows.values[0]));
  return picked_shape(c, rows.known ? rows.values[0] : -1);
}

// ---- gradients ---------------------------------------------------------------------------------------------

// With rows: d(data)[indices[i]] += dy[segment_ids[i]] / share
void rows_gradient(GradContext& c, Share share) {
  Build& b = c.b();
  const Value ids = c.input(2), zero = b.integer(0);
  Value rows = b.op("GatherV2", {c.dy(), ids, zero});
  if (share != Share::sum) {
    const Value ones = b.op("Fill", {b.shape(ids), b.like(c.dy(), 1)});
    const Value counts = b.op("GatherV2", {b.op("SegmentSum", {ones, ids}), ids, zero});
    const Value by = share == Share::mean ? counts : b.op("Sqrt", {counts});
    // One dimension of 1 for each that a row has.
    const Value rank = b.op("Rank", {rows}), tail = b.op("Fill", {b.reshape(b.sub(rank, b.integer(1)), b.ints({1})), b.integer(1)});
    rows = b.div(rows, b.reshape(by, b.op("ConcatV2", {b.shape(by), tail, zero})));
  }
  c.dx_rows(0, rows, c.input(1), b.shape(c.input(0)));
}

// d(data) = SparseSegment...Grad(dy, indices, segment_ids, rows of data)
Status segments_grad(GradContext& c) {
  const std::string& op = c.node().op->name();
  const Share share = share_of(op);
  if (c.attr<bool>("sparse_gradient")) {
    rows_gradient(c, share);
    return {};
  }
  Build& b = c.b();
  const char* const name = share == Share::sum    ? "SparseSegmentSumGrad"
                           : share == Share::mean ? "SparseSegmentMeanGrad"
                                                  : "SparseSegmentSqrtNGrad";
  const Value rows = b.op("StridedSlice", {b.shape(c.input(0)), b.ints({0}), b.ints({1}), b.ints({1})}, {{"shrink_axis_mask", 1}});
  c.dx(0, b.op(name, {c.dy(), c.input(1), c.input(2), rows}));
  return {};
}

// ---- kernels -----------------------------------------------------------------------------------------------

struct PickArgs {
  Shape data;
  int64_t count = 0;    // of indices
  int64_t columns = 0;  // elements of a row
  DType index_dtype = DType::i32, id_dtype = DType::i32;
  Share share = Share::sum;
  bool counted = false;
  Integers rows;
  OutputSpec out;
};

int64_t index_at(RunContext& c, const PickArgs& a, int64_t i) { return integer_at(c.in<char>(1), a.index_dtype, i); }
int64_t id_at(RunContext& c, const PickArgs& a, int64_t i) { return integer_at(c.in<char>(2), a.id_dtype, i); }

Result<Shape> with_rows(const PickArgs& a, int64_t rows) {
  int64_t dims[kRankMax] = {rows};
  for (int d = 1; d < a.data.rank(); ++d) dims[d] = a.data.dim(d);
  return Shape::make({dims, static_cast<size_t>(a.data.rank())});
}

// The rows of the result, once all indices and ids are known to be good.
Result<int64_t> check_picks(RunContext& c, const PickArgs& a, int64_t segments) {
  int64_t last = 0;
  for (const int64_t i : watched(a.count)) {
    const int64_t row = index_at(c, a, i), id = id_at(c, a, i);
    if (row < 0 || row >= a.data.dim(0)) {
      return c.error("index %lld is %lld, not in [0, %lld)", static_cast<Long>(i), static_cast<Long>(row),
                     static_cast<Long>(a.data.dim(0)));
    }
    if (id < last) {
      return c.error("segment id %lld is %lld after %lld; ids must not be negative and must not fall", static_cast<Long>(i),
                     static_cast<Long>(id), static_cast<Long>(last));
    }
    last = id;
    if (segments >= 0 && id >= segments) {
      return c.error("segment id %lld is %lld, not below num_segments = %lld", static_cast<Long>(i), static_cast<Long>(id),
                     static_cast<Long>(segments));
    }
  }
  if (segments >= 0) return segments;
  if (last == INT64_MAX) return c.error("segment id %lld is too large", static_cast<Long>(last));
  return a.count > 0 ? last + 1 : 0;
}

// One segment's columns [begin, end): the picks [from, to) added up.
template <class T>
void sum_segment(RunContext& c, const PickArgs& a, T* out, int64_t from, int64_t to, int64_t begin, int64_t end) {
  constexpr int64_t kLane = 32;
  const double share = weight_of(a.share, to - from);
  for (int64_t at = begin; at < end; at += kLane) {
    const int64_t width = std::min(kLane, end - at);
    Wide<T> sums[kLane] = {};
    for (const int64_t i : watched(from, to, 8 + width)) {
      const T* row = c.in<T>(0) + index_at(c, a, i) * a.columns + at;
      for (int64_t k = 0; k < width; ++k) sums[k] = sum_of<Wide<T>>(sums[k], static_cast<Wide<T>>(row[k]));
    }
    for (int64_t k = 0; k < width; ++k) {
      if constexpr (std::is_integral_v<T>) out[at + k] = sums[k];
      else out[at + k] = T(static_cast<Wide<T>>(static_cast<double>(sums[k]) * share));
    }
  }
}

template <class T>
Status segments_run(RunContext& c) {
  const auto& a = c.args<PickArgs>();
  Integers::Buffer buffer;
  const int64_t told = a.counted ? a.rows.get(c, buffer)[0] : -1;
  if (a.counted && told < 0) return c.error("num_segments is %lld", static_cast<Long>(told));
  DTG_ASSIGN(const int64_t segments, check_picks(c, a, told));
  const auto shape = with_rows(a, segments);
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  DTG_ASSIGN(char* memory, a.out.memory(c, shape.value()));
  T* const out = reinterpret_cast<T*>(memory);
  cpu::clear(c.pool(), out, shape.value().count() * static_cast<int64_t>(sizeof(T)));
  // Columns side by side: the shards depend on the shapes alone.
  const int64_t wanted = cpu::shards_for_bytes(a.count * a.columns * static_cast<int64_t>(sizeof(T)));
  const int64_t shards = std::clamp<int64_t>(a.columns / 64, 1, wanted);
  c.pool().parallel_for(shards, [&](int64_t s) {
    const int64_t begin = a.columns * s / shards, end = a.columns * (s + 1) / shards;
    Lookout lookout;
    for (int64_t from = 0, to = 0; from < a.count; from = to) {
      const int64_t id = id_at(c, a, from);
      while (to < a.count && id_at(c, a, to) == id) ++to;
      lookout.after(20 + (end - begin) * (to - from));
      sum_segment<T>(c, a, out + id * a.columns, from, to, begin, end);
    }
  });
  return {};
}

Status prepare_picks(PrepareContext& c, PickArgs& a) {
  a.data = c.input(0).shape;
  a.count = c.input(1).shape.count();
  a.columns = a.data.count(1, a.data.rank());
  a.index_dtype = c.input(1).dtype;
  a.id_dtype = c.input(2).dtype;
  a.share = share_of(c.node().op->name());
  a.counted = c.num_inputs() > 3;
  if (a.counted) DTG_TRY(a.rows.prepare(c, 3));
  a.out.prepare(c, 0);
  return {};
}

template <class T>
Status segments_prepare(PrepareContext& c) {
  DTG_TRY(prepare_picks(c, *c.args<PickArgs>()));
  return c.sync(segments_run<T>);
}

// ---- the gradients as ops: row segment_ids[i] of dy goes to row indices[i], weighted ----------------------------------

// How often each segment occurs, into memory for that many; ids need no order here.
Status count_segments(RunContext& c, const PickArgs& a, int64_t rows, std::span<int64_t> counts) {
  for (const int64_t i : watched(a.count)) {
    const int64_t row = index_at(c, a, i), id = id_at(c, a, i);
    if (row < 0 || row >= rows) {
      return c.error("index %lld is %lld, not in [0, %lld)", static_cast<Long>(i), static_cast<Long>(row), static_cast<Long>(rows));
    }
    if (id < 0 || id >= a.data.dim(0)) {
      return c.error("segment id %lld is %lld, but the gradient has %lld rows", static_cast<Long>(i), static_cast<Long>(id),
                     static_cast<Long>(a.data.dim(0)));
    }
    ++counts[static_cast<size_t>(id)];
  }
  return {};
}

// Adds in Wide<T> into `sums`, which has the shape of the result.
template <class T>
void spread(RunContext& c, const PickArgs& a, Wide<T>* sums, std::span<const int64_t> counts) {
  const int64_t wanted = cpu::shards_for_bytes(a.count * a.columns * static_cast<int64_t>(sizeof(T)));
  const int64_t shards = std::clamp<int64_t>(a.columns / 64, 1, wanted);
  c.pool().parallel_for(shards, [&](int64_t s) {
    const int64_t begin = a.columns * s / shards, end = a.columns * (s + 1) / shards;
    for (const int64_t i : watched(a.count, 10 + end - begin)) {
      const int64_t id = id_at(c, a, i);
      const auto weight = static_cast<Wide<T>>(weight_of(a.share, counts[static_cast<size_t>(id)]));
      const T* row = c.in<T>(0) + id * a.columns;
      Wide<T>* sum = sums + index_at(c, a, i) * a.columns;
      for (int64_t k = begin; k < end; ++k) sum[k] = sum_of<Wide<T>>(sum[k], static_cast<Wide<T>>(row[k]) * weight);
    }
  });
}

template <class T>
Status spread_run(RunContext& c) {
  const auto& a = c.args<PickArgs>();
  Integers::Buffer buffer;
  const int64_t rows = a.rows.get(c, buffer)[0];
  if (rows < 0) return c.error("output_dim0 is %lld", static_cast<Long>(rows));
  auto* const counts = c.workspace<int64_t>();
  const auto segments = static_cast<size_t>(a.data.dim(0));
  std::fill_n(counts, segments, 0);
  DTG_TRY(count_segments(c, a, rows, {counts, segments}));
  const auto shape = with_rows(a, rows);
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  DTG_ASSIGN(char* memory, a.out.memory(c, shape.value()));
  const int64_t elements = shape.value().count(), bytes = elements * static_cast<int64_t>(sizeof(Wide<T>));
  char* sums = memory;
  if constexpr (!std::is_same_v<T, Wide<T>>) {
    DTG_ASSIGN(sums, c.slots().lease_block(bytes, "sums of rows"));
  }
  cpu::clear(c.pool(), sums, bytes);
  spread<T>(c, a, reinterpret_cast<Wide<T>*>(sums), {counts, segments});
  if constexpr (!std::is_same_v<T, Wide<T>>) {
    for (int64_t i = 0; i < elements; ++i) reinterpret_cast<T*>(memory)[i] = T(reinterpret_cast<const Wide<T>*>(sums)[i]);
  }
  return {};
}

template <class T>
Status spread_prepare(PrepareContext& c) {
  auto* const a = c.args<PickArgs>();
  DTG_TRY(prepare_picks(c, *a));
  c.workspace(Bytes::of(a->data.dim(0), sizeof(int64_t)));
  return c.sync(spread_run<T>);
}

// ---- registering -------------------------------------------------------------------------------------------

void add_forward(OpTable& ops, const char* name, const char* types, bool counted, const char* doc) {
  OpDef op = OpDef::make(name);
  std::move(op).input("data: T", {.rank_min = 1}).input("indices: Tidx").input("segment_ids: Tsegmentids");
  if (counted) std::move(op).input("num_segments: Tnumsegments");
  std::move(op).output("output: T").attr(types).attr("Tidx: {int32, int64} = int32");
  if (counted) std::move(op).attr("Tnumsegments: {int32, int64} = int32");
  std::move(op).attr("Tsegmentids: {int32, int64} = int32").attr("sparse_gradient: bool = false");
  std::move(op).shape(counted ? counted_shape : segments_shape).gradient(segments_grad).doc(doc);
  ops.add(std::move(op));
}

// The transpose of the transpose: rows of dy are summed by segment, as many as the gradients had.
Status backward_grad(GradContext& c) {
  Build& b = c.b();
  const Share share = share_of(c.node().op->name());
  const char* const name = share == Share::sum    ? "SparseSegmentSumWithNumSegments"
                           : share == Share::mean ? "SparseSegmentMeanWithNumSegments"
                                                  : "SparseSegmentSqrtNWithNumSegments";
  const Value rows = b.op("StridedSlice", {b.shape(c.input(0)), b.ints({0}), b.ints({1}), b.ints({1})}, {{"shrink_axis_mask", 1}});
  c.dx(0, b.op(name, {c.dy(), c.input(1), c.input(2), rows}));
  return {};
}

void add_backward(OpTable& ops, const char* name, const char* types, const char* doc) {
  ops.add(OpDef::make(name)
              .input("grad: T", {.rank_min = 1})
              .input("indices: Tidx")
              .input("segment_ids: Tsegmentids")
              .input("output_dim0: int32")
              .output("output: T")
              .attr(types)
              .attr("Tidx: {int32, int64} = int32")
              .attr("Tsegmentids: {int32, int64} = int32")
              .shape(counted_shape)
              .gradient(backward_grad)
              .doc(doc));
}

template <class T>
void add_kernels(KernelTable& kernels) {
  for (const char* op : {"SparseSegmentSum", "SparseSegmentSumWithNumSegments"}) {
    kernels.add({.op = op, .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = segments_prepare<T>});
  }
  if constexpr (!std::is_integral_v<T>) {
    for (const char* op :
         {"SparseSegmentMean", "SparseSegmentMeanWithNumSegments", "SparseSegmentSqrtN", "SparseSegmentSqrtNWithNumSegments"}) {
      kernels.add({.op = op, .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = segments_prepare<T>});
    }
    for (const char* op : {"SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad"}) {
      kernels.add({.op = op, .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = spread_prepare<T>});
    }
  }
}

}  // namespace

void register_sparse_segment(OpTable& ops, KernelTable& kernels) {
  constexpr const char* kReals = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}";
  constexpr const char* kFloats = "T: {bfloat16, half, float, double}";
  add_forward(ops, "SparseSegmentSum", kReals, false, "Row s is the sum of the rows of data that the indices of segment s name.");
  add_forward(ops, "SparseSegmentMean", kFloats, false, "Row s is the mean of the rows of data that the indices of segment s name.");
  add_forward(ops, "SparseSegmentSqrtN", kFloats, false, "SparseSegmentSum divided by the root of the number of rows.");
  add_forward(ops, "SparseSegmentSumWithNumSegments", kReals, true, "SparseSegmentSum into so many rows; those without a segment are 0.");
  add_forward(ops, "SparseSegmentMeanWithNumSegments", kFloats, true,
              "SparseSegmentMean into so many rows; those without a segment are 0.");
  add_forward(ops, "SparseSegmentSqrtNWithNumSegments", kFloats, true,
              "SparseSegmentSqrtN into so many rows; those without a segment are 0.");
  add_backward(ops, "SparseSegmentSumGrad", kFloats, "The gradient of SparseSegmentSum: row segment_ids[i] is added to row indices[i].");
  add_backward(ops, "SparseSegmentMeanGrad", kFloats, "The gradient of SparseSegmentMean.");
  add_backward(ops, "SparseSegmentSqrtNGrad", kFloats, "The gradient of SparseSegmentSqrtN.");
  add_kernels<float>(kernels);
  add_kernels<double>(kernels);
  add_kernels<Half>(kernels);
  add_kernels<BFloat16>(kernels);
  add_kernels<int8_t>(kernels);
  add_kernels<int16_t>(kernels);
  add_kernels<int32_t>(kernels);
  add_kernels<int64_t>(kernels);
  add_kernels<uint8_t>(kernels);
  add_kernels<uint16_t>(kernels);
  add_kernels<uint32_t>(kernels);
  add_kernels<uint64_t>(kernels);
}

}  // namespace dtg::ops
