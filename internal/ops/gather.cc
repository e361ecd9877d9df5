// Picking by index: Gather and GatherV2. The gradient towards the rows of axis 0 stays rows; along any other axis
// it is a segment sum.
#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/rows.h"

namespace dtg::ops {
namespace {

// Where things are in params and indices, once the axis is known.
struct Picture {
  int axis = 0, batch_dims = 0;
  Shape out;
};

int64_t batch_dims_of(const Node& node) { return node.find_attr("batch_dims") ? node.attr<int64_t>("batch_dims") : 0; }

Result<Picture> resolve_gather(const Shape& params, const Shape& indices, int64_t axis, int64_t batch_dims) {
  Picture p;
  DTG_ASSIGN(p.axis, resolve_axis(axis, params.rank()));
  if (batch_dims < 0) batch_dims += indices.rank();
  if (batch_dims < 0 || batch_dims > indices.rank() || batch_dims > p.axis) {
    return invalid_argument("batch_dims is %lld, it must be at most the axis %d and the rank of the indices %d",
                            static_cast<long long>(batch_dims), p.axis, indices.rank());
  }
  p.batch_dims = static_cast<int>(batch_dims);
  for (int i = 0; i < p.batch_dims; ++i) {
    if (params.dim(i) == indices.dim(i)) continue;
    return invalid_argument("params %s and indices %s differ in batch dimension %d", params.text().c_str(), indices.text().c_str(), i);
  }
  int64_t out[3 * kRankMax];
  size_t rank = 0;
  for (int i = 0; i < p.axis; ++i) out[rank++] = params.dim(i);
  for (int i = p.batch_dims; i < indices.rank(); ++i) out[rank++] = indices.dim(i);
  for (int i = p.axis + 1; i < params.rank(); ++i) out[rank++] = params.dim(i);
  DTG_ASSIGN(p.out, Shape::make({out, rank}));
  return p;
}

// Only contradictions that are certain are refused here; the batch dimensions are compared when all is known.
Status gather_shape_of(InferContext& c, const KnownIntegers& axis) {
  const PartialShape &params = c.input(0), &indices = c.input(1);
  DTG_TRY(c.require_rank_at_least(0, 1));
  if (!params.has_rank() || !axis.known) return {};
  const auto at = resolve_axis(axis.values[0], params.rank());
  if (!at.ok()) return c.error("%s", at.status().message().c_str());
  if (!indices.has_rank()) return {};
  int64_t batch_dims = batch_dims_of(c.node());
  if (batch_dims < 0) batch_dims += indices.rank();
  if (batch_dims < 0 || batch_dims > indices.rank() || batch_dims > at.value()) return {};
  for (int i = 0; i < batch_dims; ++i) {
    if (params.dim(i) >= 0 && indices.dim(i) >= 0 && params.dim(i) != indices.dim(i)) return {};
  }
  PartialShape out = PartialShape::of_rank(0);
  for (int i = 0; i < at.value(); ++i) DTG_TRY(in_op(c.node(), out.append(params.dim(i))));
  for (int i = static_cast<int>(batch_dims); i < indices.rank(); ++i) DTG_TRY(in_op(c.node(), out.append(indices.dim(i))));
  for (int i = at.value() + 1; i < params.rank(); ++i) DTG_TRY(in_op(c.node(), out.append(params.dim(i))));
  c.output(0, out);
  return {};
}

KnownIntegers axis_zero() {
  KnownIntegers zero;
  zero.known = true;
  zero.count = 1;
  return zero;
}

Status gather_shape(InferContext& c) { return gather_shape_of(c, axis_zero()); }

Status gather_v2_shape(InferContext& c) {
  DTG_TRY(c.require_rank(2, 0));
  return gather_shape_of(c, known_integers(c, 2));
}

// ---- gradient ----------------------------------------------------------------------------------------------

// Pieces of a value's shape as vectors: constants where the graph knows them.
class Dims {
 public:
  Dims(Build& b, Value x) : b_(b), x_(x) {}
  int rank() const { return b_.info(x_).shape.rank(); }
  Value part(int from, int to) {
    std::vector<int64_t> dims;
    for (int i = from; i < to; ++i) dims.push_back(b_.info(x_).shape.dim(i));
    for (int64_t dim : dims) {
      if (dim < 0) return b_.op("StridedSlice", {b_.shape(x_), b_.ints({from}), b_.ints({to}), b_.ints({1})});
    }
    return b_.ints(dims);
  }
  // One entry: the product of the dimensions [from, to).
  Value product(int from, int to) {
    int64_t product = 1;
    for (int i = from; i < to; ++i) {
      const int64_t dim = b_.info(x_).shape.dim(i);
      if (dim < 0) return b_.op("Prod", {part(from, to), b_.ints({0})}, {{"keep_dims", true}});
      product *= dim;
    }
    return b_.ints({product});
  }

 private:
  Build& b_;
  Value x_;
};

Value join(Build& b, std::initializer_list<Value> parts) {
  std::vector<Value> all;
  for (Value part : parts) {
    if (b.info(part).shape.dim(0) != 0) all.push_back(part);
  }
  if (all.empty()) return *parts.begin();
  if (all.size() == 1) return all[0];
  all.push_back(b.integer(0));
  return b.op("ConcatV2", all);
}

// d(params) = rows: dy reshaped to one row per index
void gather_rows_grad(GradContext& c) {
  Build& b = c.b();
  Dims params(b, c.input(0)), indices(b, c.input(1));
  const Value count = indices.rank() >= 0 ? indices.product(0, indices.rank()) : b.reshape(b.op("Size", {c.input(1)}), b.ints({1}));
  const Value tail = params.rank() >= 0
                         ? params.part(1, params.rank())
                         : b.op("StridedSlice", {b.shape(c.input(0)), b.ints({1}), b.ints({0}), b.ints({1})}, {{"end_mask", 1}});
  const Value whole = params.rank() >= 0 ? params.part(0, params.rank()) : b.shape(c.input(0));
  c.dx_rows(0, b.reshape(c.dy(), join(b, {count, tail})), b.reshape(c.input(1), count), whole);
}

// What the gradient along an axis needs to know, as vectors and permutations: constants where ranks and axis are
// known, otherwise ops that find out in run.
struct AxisParts {
  Value batch, middle, extent, tail;  // params' shape: before the batch dimensions end, up to the axis, it, behind it
  Value picked;                       // one entry: indices per batch
  Value forth, back;                  // moves the axis behind the batch dimensions, and back
  bool batched = false;
};

AxisParts known_axis_parts(GradContext& c, int axis, int batch_dims) {
  Build& b = c.b();
  Dims params(b, c.input(0)), indices(b, c.input(1));
  const int rank = params.rank();
  std::vector<int64_t> forth, back;
  for (int i = 0; i < batch_dims; ++i) forth.push_back(i), back.push_back(i);
  forth.push_back(axis);
  for (int i = batch_dims; i < axis; ++i) forth.push_back(i), back.push_back(i + 1);
  back.push_back(batch_dims);
  for (int i = axis + 1; i < rank; ++i) forth.push_back(i), back.push_back(i);
  return {params.part(0, batch_dims),
          params.part(batch_dims, axis),
          params.part(axis, axis + 1),
          params.part(axis + 1, rank),
          indices.product(batch_dims, indices.rank()),
          b.ints(forth),
          b.ints(back),
          batch_dims > 0};
}

AxisParts open_axis_parts(GradContext& c) {
  Build& b = c.b();
  const int64_t asked = c.attr<int64_t>("batch_dims");
  const Value zero = b.integer(0), one = b.integer(1), scalar = b.ints({}), vector = b.ints({1});
  const Value rank = b.op("Rank", {c.input(0)}), shape = b.shape(c.input(0));
  const Value given = b.cast(c.input(2), DType::i32);
  const Value axis = b.reshape(b.op("SelectV2", {b.op("Less", {given, zero}), b.add(given, rank), given}), scalar);
  const Value batch_dims = asked < 0 ? b.add(b.op("Rank", {c.input(1)}), b.integer(asked)) : b.integer(asked);
  const Value behind = b.add(axis, one);
  const auto list = [&](Value x) { return b.reshape(x, vector); };
  const auto part = [&](Value from, Value to) { return b.op("StridedSlice", {shape, list(from), list(to), vector}); };
  const auto range = [&](Value from, Value to) { return b.op("Range", {from, to, one}); };
  const Value picked = b.op("StridedSlice", {b.shape(c.input(1)), list(batch_dims), b.ints({0}), vector}, {{"end_mask", 1}});
  const Value before = range(zero, batch_dims), after = range(behind, rank);
  return {part(zero, batch_dims),
          part(batch_dims, axis),
          part(axis, behind),
          part(behind, rank),
          b.op("Prod", {picked, b.ints({0})}, {{"keep_dims", true}}),
          join(b, {before, list(axis), range(batch_dims, axis), after}),
          join(b, {before, range(b.add(batch_dims, one), behind), list(batch_dims), after}),
          asked != 0};
}

// For another axis than 0: move it behind the batch dimensions, sum the slices of equal index, move it back.
void gather_axis_grad(GradContext& c, const AxisParts& p) {
  Build& b = c.b();
  const Value slices = b.reshape(c.dy(), join(b, {p.batch, p.middle, p.picked, p.tail}));
  const Value moved = b.op("Transpose", {slices, p.forth});
  const DType index = c.input_info(1).dtype == DType::i64 ? DType::i64 : DType::i32;
  Value ids = b.cast(c.input(1), index), batches = b.ints({1});
  if (p.batched) {
    // The batches lie one after the other in one long list of segments.
    batches = b.op("Prod", {p.batch, b.ints({0})}, {{"keep_dims", true}});
    const Value numbers = b.op("Range", {b.integer(0), b.reshape(batches, b.ints({})), b.integer(1)});
    const Value starts = b.reshape(b.mul(numbers, p.extent), join(b, {batches, b.ints({1})}));
    ids = b.add(b.reshape(ids, join(b, {batches, p.picked})), b.cast(starts, index));
  }
  const Value rows = b.reshape(moved, join(b, {b.mul(batches, p.picked), p.middle, p.tail}));
  const Value segments = b.reshape(b.mul(batches, p.extent), b.ints({}));
  const Value sums = b.op("UnsortedSegmentSum", {rows, b.reshape(ids, b.ints({-1})), segments});
  const Value whole = b.reshape(sums, join(b, {p.batch, p.extent, p.middle, p.tail}));
  c.dx(0, b.op("Transpose", {whole, p.back}));
}

Status gather_grad(GradContext& c) {
  gather_rows_grad(c);
  return {};
}

Status gather_v2_grad(GradContext& c) {
  const Tensor axis = c.b().graph().constant_value(c.input(2));
  const int params_rank = c.input_info(0).shape.rank(), indices_rank = c.input_info(1).shape.rank();
  int64_t batch_dims = c.attr<int64_t>("batch_dims");
  if (axis.valid() && axis.int_at(0) == 0 && batch_dims == 0) return gather_grad(c);
  if (!axis.valid() || params_rank < 0 || indices_rank < 0) {
    gather_axis_grad(c, open_axis_parts(c));
    return {};
  }
  if (batch_dims < 0) batch_dims += indices_rank;
  DTG_ASSIGN(const int at, resolve_axis(axis.int_at(0), params_rank));
  if (at == 0) return gather_grad(c);
  gather_axis_grad(c, known_axis_parts(c, at, static_cast<int>(batch_dims)));
  return {};
}

// ---- kernel ------------------------------------------------------------------------------------------------

struct GatherArgs {
  Shape params, indices;
  DType index_dtype = DType::i32;
  int64_t size = 0, batch_dims = 0;
  bool has_axis = false;
  bool lengths = false;  // what is looked up are lengths of sequences
  Integers axis;
  OutputSpec out;
};

// Copies the rows [begin, end) of the output; a row is one picked slice.
template <class I>
void gather_rows(const Picture& p, const GatherArgs& a, const I* indices, const char* params, char* out, int64_t begin, int64_t end) {
  const int64_t picked = a.indices.count(p.batch_dims, a.indices.rank());
  const int64_t outer = a.params.count(p.batch_dims, p.axis);
  const int64_t extent = a.params.dim(p.axis), row = a.params.count(p.axis + 1, a.params.rank()) * a.size;
  if (picked == 0) return;
  Lookout lookout;
  int64_t block = begin / picked, i = begin % picked;
  for (int64_t at = begin; at < end; ++at) {
    const int64_t index = static_cast<int64_t>(indices[block / outer * picked + i]);
    cpu::copy_row(out + at * row, params + (block * extent + index) * row, row, lookout);
    if (++i == picked) i = 0, ++block;
  }
}

// Of lengths of sequences (checked_lengths of nn): who reads of it knows lengths, and no indices.
template <class I>
Status check_indices(RunContext& c, const GatherArgs& a, const I* indices, int64_t extent) {
  const int64_t count = a.indices.count();
  for (int64_t i = 0; i < count; ++i) {
    if (static_cast<uint64_t>(static_cast<int64_t>(indices[i])) < static_cast<uint64_t>(extent)) continue;
    if (a.lengths) {
      return c.error("lengths[%lld] is %lld, and the sequences have %lld steps: give lengths from 0 to %lld", static_cast<long long>(i),
                     static_cast<long long>(indices[i]), static_cast<long long>(extent - 1), static_cast<long long>(extent - 1));
    }
    return c.error("index %lld is %lld, not in [0, %lld)", static_cast<long long>(i), static_cast<long long>(indices[i]),
                   static_cast<long long>(extent));
  }
  return {};
}

Status gather_run(RunContext& c) {
  const auto& a = c.args<GatherArgs>();
  Integers::Buffer buffer;
  const auto picture = resolve_gather(a.params, a.indices, a.has_axis ? a.axis.get(c, buffer)[0] : 0, a.batch_dims);
  if (!picture.ok()) return c.error("%s", picture.status().message().c_str());
  const Picture& p = picture.value();
  return with_indices(a.index_dtype, c.in<char>(1), [&](const auto* indices) -> Status {
    DTG_TRY(check_indices(c, a, indices, a.params.dim(p.axis)));
    DTG_ASSIGN(char* out, a.out.memory(c, p.out));
    const int64_t row = a.params.count(p.axis + 1, a.params.rank());
    const int64_t rows = row == 0 ? 0 : p.out.count() / row;
    const int64_t shards = std::min(cpu::shards_for_bytes(rows * row * a.size), std::max<int64_t>(rows, 1));
    const char* params = c.in<char>(0);
    c.pool().parallel_for(shards, [&](int64_t s) {
      gather_rows(p, a, indices, params, out, rows / shards * s + std::min(s, rows % shards),
                  rows / shards * (s + 1) + std::min(s + 1, rows % shards));
    });
    return {};
  });
}

Status gather_prepare(PrepareContext& c) {
  auto* a = c.args<GatherArgs>();
  a->params = c.input(0).shape;
  a->indices = c.input(1).shape;
  a->index_dtype = c.input(1).dtype;
  a->size = cell_bytes(c.input(0).dtype);
  a->batch_dims = batch_dims_of(c.node());
  a->has_axis = c.num_inputs() > 2;
  if (a->has_axis) DTG_TRY(a->axis.prepare(c, 2));
  const AttrValue* const lengths = c.node().find_attr("_lengths");  // Gather has none
  a->lengths = lengths && *lengths->get<bool>();
  a->out.prepare(c, 0);
  return c.sync(gather_run);
}

}  // namespace

void register_gather(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("Gather")
              .input("params: Tparams", {.rank_min = 1})
              .input("indices: Tindices")
              .output("output: Tparams")
              .attr("validate_indices: bool = true")
              .attr("Tparams: type")
              .attr("Tindices: {int32, int64}")
              .shape(gather_shape)
              .gradient(gather_grad)
              .doc("The rows of params that the indices name."));
  kernels.add({.op = "Gather", .types = {{"Tparams", kMovable}}, .prepare = gather_prepare});
  ops.add(OpDef::make("GatherV2")
              .input("params: Tparams", {.rank_min = 1})
              .input("indices: Tindices")
              .input("axis: Taxis", {.rank = 0})
              .output("output: Tparams")
              .attr("batch_dims: int = 0")
              .attr("Tparams: type")
              .attr("Tindices: {int16, int32, int64}")
              .attr("Taxis: {int32, int64}")
              .attr("_lengths: bool = false")
              .shape(gather_v2_shape)
              .gradient(gather_v2_grad)
              .doc("The slices of params along an axis that the indices name."));
  kernels.add({.op = "GatherV2", .types = {{"Tparams", kMovable}}, .prepare = gather_prepare});
  register_gather_nd(ops, kernels);
  register_segment(ops, kernels);
  register_unique(ops, kernels);
  register_unique_slices(ops, kernels);
  register_tensor_scatter(ops, kernels);
}

}  // namespace dtg::ops
