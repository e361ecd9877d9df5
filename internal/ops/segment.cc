// Sums over segments: UnsortedSegmentSum, which also makes row gradients dense, and SegmentSum. Rows are added in
// their order, so the result does not depend on the number of threads.
#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/rows.h"

namespace dtg::ops {
namespace {

// ---- UnsortedSegmentSum ------------------------------------------------------------------------------------

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

// d(data) = dy[segment_ids], and zero where the id is negative
Status unsorted_segment_grad(GradContext& c) {
  Build& b = c.b();
  const Value ids = c.input(1), zero = b.zeros_like(ids);
  const Value rows = b.op("GatherV2", {c.dy(), b.op("Maximum", {ids, zero}), b.integer(0)});
  Value kept = b.op("GreaterEqual", {ids, zero});
  const int ids_rank = b.info(ids).shape.rank(), rows_rank = b.info(rows).shape.rank();
  if (ids_rank >= 0 && rows_rank >= 0) {
    // One more dimension of 1 for each that the rows have.
    for (int i = ids_rank; i < rows_rank; ++i) kept = b.op("ExpandDims", {kept, b.integer(-1)});
  } else {
    const Value more = b.sub(b.op("Rank", {rows}), b.op("Rank", {kept}));
    const Value ones = b.op("Fill", {b.reshape(more, b.ints({1})), b.integer(1)});
    kept = b.reshape(kept, b.op("ConcatV2", {b.shape(kept), ones, b.integer(0)}));
  }
  c.dx(0, b.op("SelectV2", {kept, rows, b.zeros_like(rows)}));
  return {};
}

struct SegmentArgs {
  Shape data;
  int64_t count = 0;    // rows
  int64_t columns = 0;  // elements of a row
  int ids_rank = 0;
  DType id_dtype = DType::i32;
  Integers segments;
  OutputSpec out;
};

// [segments] + the dimensions of data behind those of the ids.
Result<Shape> segments_shape(const SegmentArgs& a, int64_t segments) {
  int64_t dims[kRankMax + 1] = {segments};
  size_t rank = 1;
  for (int i = a.ids_rank; i < a.data.rank(); ++i) dims[rank++] = a.data.dim(i);
  return Shape::make({dims, rank});
}

// Adds each row of the data to the segment its id names; the ids are known to be good.
template <class T, class Id>
Status sum_into(RunContext& c, const SegmentArgs& a, const Shape& shape, const Id* ids) {
  DTG_ASSIGN(char* out, a.out.memory(c, shape));
  cpu::clear(c.pool(), out, shape.count() * static_cast<int64_t>(sizeof(T)));
  add_rows(c.pool(), reinterpret_cast<T*>(out), c.in<T>(0), a.count, a.columns, [&](int64_t i) { return static_cast<int64_t>(ids[i]); });
  return {};
}

template <class T>
Status unsorted_segment_run(RunContext& c) {
  const auto& a = c.args<SegmentArgs>();
  Integers::Buffer buffer;
  const int64_t segments = a.segments.get(c, buffer)[0];
  const auto shape = segments_shape(a, segments);
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  return with_indices(a.id_dtype, c.in<char>(1), [&](const auto* ids) -> Status {
    for (int64_t i = 0; i < a.count; ++i) {
      if (static_cast<int64_t>(ids[i]) < segments) continue;
      return c.error("segment id %lld is %lld, not below num_segments = %lld", static_cast<long long>(i), static_cast<long long>(ids[i]),
                     static_cast<long long>(segments));
    }
    return sum_into<T>(c, a, shape.value(), ids);
  });
}

template <class T>
Status unsorted_segment_prepare(PrepareContext& c) {
  auto* a = c.args<SegmentArgs>();
  a->data = c.input(0).shape;
  a->ids_rank = c.input(1).shape.rank();
  a->count = c.input(1).shape.count();
  a->columns = a->data.count(a->ids_rank, a->data.rank());
  a->id_dtype = c.input(1).dtype;
  DTG_TRY(a->segments.prepare(c, 2));
  a->out.prepare(c, 0);
  return c.sync(unsorted_segment_run<T>);
}

// ---- SegmentSum --------------------------------------------------------------------------------------------

Status segment_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 1));
  DTG_TRY(c.require_rank_at_least(0, 1));
  PartialShape out = c.input(0);
  if (out.has_rank()) out.set_dim(0, -1);
  c.output(0, out);
  return {};
}

// d(data) = dy[segment_ids]
Status segment_grad(GradContext& c) {
  c.dx(0, c.b().op("GatherV2", {c.dy(), c.input(1), c.b().integer(0)}));
  return {};
}

template <class T>
Status segment_run(RunContext& c) {
  const auto& a = c.args<SegmentArgs>();
  return with_indices(a.id_dtype, c.in<char>(1), [&](const auto* ids) -> Status {
    int64_t last = -1;
    for (int64_t i = 0; i < a.count; ++i) {
      const auto id = static_cast<int64_t>(ids[i]);
      if (id < 0 || id < last) {
        return c.error("segment id %lld is %lld after %lld; ids must not be negative and must not fall", static_cast<long long>(i),
                       static_cast<long long>(id), static_cast<long long>(last));
      }
      last = id;
    }
    // The largest id could ask for any amount of memory; the count of elements bounds it first.
    if (last == INT64_MAX) return c.error("segment id %lld is too large", static_cast<long long>(last));
    const auto shape = segments_shape(a, last + 1);
    if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
    return sum_into<T>(c, a, shape.value(), ids);
  });
}

template <class T>
Status segment_prepare(PrepareContext& c) {
  auto* a = c.args<SegmentArgs>();
  a->data = c.input(0).shape;
  a->ids_rank = 1;
  a->count = c.input(1).shape.count();
  if (a->count != a->data.dim(0))
    return c.error("%lld segment ids for data of shape %s", static_cast<long long>(a->count), a->data.text().c_str());
  a->columns = a->data.count(1, a->data.rank());
  a->id_dtype = c.input(1).dtype;
  a->out.prepare(c, 0);
  return c.sync(segment_run<T>);
}

template <class... T>
void add_kernels(KernelTable& kernels) {
  (kernels.add({.op = "UnsortedSegmentSum", .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = unsorted_segment_prepare<T>}), ...);
  (kernels.add({.op = "SegmentSum", .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = segment_prepare<T>}), ...);
}

}  // namespace

#define DTG_NUMBERS                                                                                           \
  "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, " \
  "quint16, uint16, complex128, half, uint32, uint64}"

void register_segment(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("UnsortedSegmentSum")
              .input("data: T")
              .input("segment_ids: Tindices")
              .input("num_segments: Tnumsegments", {.rank = 0})
              .output("output: T")
              .attr(DTG_NUMBERS)
              .attr("Tindices: {int32, int64}")
              .attr("Tnumsegments: {int32, int64} = int32")
              .shape(unsorted_segment_shape)
              .gradient(unsorted_segment_grad)
              .doc("Row s is the sum of the rows of data whose id is s; negative ids are dropped."));
  ops.add(OpDef::make("SegmentSum")
              .input("data: T", {.rank_min = 1})
              .input("segment_ids: Tindices", {.rank = 1})
              .output("output: T")
              .attr(DTG_NUMBERS)
              .attr("Tindices: {int32, int64}")
              .shape(segment_shape)
              .gradient(segment_grad)
              .doc("Row s is the sum of the rows of data whose id is s; ids must not fall."));
  add_kernels<float, double, int32_t, int64_t, uint8_t, int8_t, int16_t, uint16_t, uint32_t, uint64_t, Half, BFloat16>(kernels);
}

#undef DTG_NUMBERS

}  // namespace dtg::ops
