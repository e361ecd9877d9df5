// Rows dealt out and put together again: DynamicPartition, DynamicStitch and ParallelDynamicStitch. The partitions tell which
// output takes a row; the indices of a stitch tell where each row goes, and where two go to one place the later one stays.
#include <algorithm>

#include "base/watched.h"
#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/integers.h"

namespace dtg::ops {
namespace {

// `prefix` must be how the shape of `data` begins; an error otherwise, as far as both are known.
Status begins_with(InferContext& c, const PartialShape& data, const PartialShape& prefix) {
  if (!data.has_rank() || !prefix.has_rank()) return {};
  bool fits = data.rank() >= prefix.rank();
  for (int i = 0; fits && i < prefix.rank(); ++i) fits = data.dim(i) < 0 || prefix.dim(i) < 0 || data.dim(i) == prefix.dim(i);
  return fits ? Status() : c.error("data of shape %s does not begin with shape %s", data.text().c_str(), prefix.text().c_str());
}

// ---- DynamicPartition --------------------------------------------------------------------------------------

Status partition_shape(InferContext& c) {
  const PartialShape &data = c.input(0), &partitions = c.input(1);
  DTG_TRY(begins_with(c, data, partitions));
  if (!data.has_rank() || !partitions.has_rank()) return {};
  PartialShape out = PartialShape::of_rank(0);
  DTG_TRY(out.append(-1));
  for (int i = partitions.rank(); i < data.rank(); ++i) DTG_TRY(in_op(c.node(), out.append(data.dim(i))));
  for (int i = 0; i < c.num_outputs(); ++i) c.output(i, out);
  return {};
}

// d(data): the gradients stitched together by where their rows came from
Status partition_grad(GradContext& c) {
  Build& b = c.b();
  const Value count = b.op("Size", {c.input(1)});
  const Value numbers = b.reshape(b.op("Range", {b.integer(0), count, b.integer(1)}), b.shape(c.input(1)));
  const Value places = b.op("DynamicPartition", {numbers, c.input(1)}, {{"num_partitions", c.attr<int64_t>("num_partitions")}});
  if (!b.ok()) return b.status();
  std::vector<Value> arguments;
  for (int i = 0; i < c.num_outputs(); ++i) arguments.push_back(places.sibling(static_cast<uint32_t>(i)));
  for (int i = 0; i < c.num_outputs(); ++i) arguments.push_back(c.dy(i));
  const Attr number[] = {{"N", static_cast<int64_t>(c.num_outputs())}};
  c.dx(0, b.reshape(b.op("ParallelDynamicStitch", arguments, number), b.shape(c.input(0))));
  return {};
}

struct PartitionArgs {
  Shape data;
  int partitions_rank = 0;
  int64_t count = 0;  // rows
  int64_t row = 0;    // bytes
  int outputs = 0;
  DType dtype = DType::invalid;
};

Status partition_run(RunContext& c) {
  const auto& a = c.args<PartitionArgs>();
  const int32_t* const partitions = c.in<int32_t>(1);
  auto* const counts = c.workspace<int64_t>();
  auto** const ends = reinterpret_cast<char**>(counts + a.outputs);
  std::fill_n(counts, a.outputs, 0);
  for (const int64_t i : watched(a.count)) {
    if (partitions[i] < 0 || partitions[i] >= a.outputs) {
      return c.error("partitions[%lld] = %d is not in [0, %d)", static_cast<long long>(i), partitions[i], a.outputs);
    }
    ++counts[partitions[i]];
  }
  for (int o = 0; o < a.outputs; ++o) {
    int64_t dims[kRankMax + 1] = {counts[o]};
    size_t rank = 1;
    for (int d = a.partitions_rank; d < a.data.rank(); ++d) dims[rank++] = a.data.dim(d);
    const auto shape = Shape::make({dims, rank});
    if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
    DTG_ASSIGN(void* memory, c.lease_output(o, a.dtype, shape.value()));
    ends[o] = static_cast<char*>(memory);
  }
  const char* row = c.in<char>(0);
  Lookout lookout;
  for (int64_t i = 0; i < a.count; ++i) {
    cpu::copy_row(ends[partitions[i]], row, a.row, lookout);
    ends[partitions[i]] += a.row;
    row += a.row;
  }
  return {};
}

Status partition_prepare(PrepareContext& c) {
  auto* a = c.args<PartitionArgs>();
  a->data = c.input(0).shape;
  a->dtype = c.input(0).dtype;
  a->partitions_rank = c.input(1).shape.rank();
  a->count = c.input(1).shape.count();
  a->row = a->data.count(a->partitions_rank, a->data.rank()) * dtype_size(a->dtype);
  a->outputs = c.num_outputs();
  c.workspace(Bytes::of(a->outputs, sizeof(int64_t) + sizeof(char*)));
  return c.sync(partition_run);
}

// ---- DynamicStitch, ParallelDynamicStitch ------------------------------------------------------------------

// The dimensions behind those of the indices, which all pieces share.
Result<PartialShape> row_shape_of(InferContext& c, int pieces) {
  PartialShape row = PartialShape::unknown();
  for (int i = 0; i < pieces; ++i) {
    const PartialShape &indices = c.input(i), &data = c.input(pieces + i);
    DTG_TRY(begins_with(c, data, indices));
    if (!data.has_rank() || !indices.has_rank()) continue;
    PartialShape own = PartialShape::of_rank(0);
    for (int d = indices.rank(); d < data.rank(); ++d) DTG_TRY(own.append(data.dim(d)));
    auto merged = PartialShape::merge(row, own, "the rows of the data");
    if (!merged.ok()) return c.error("%s", merged.status().message().c_str());
    row = merged.take();
  }
  return row;
}

Status stitch_shape(InferContext& c) {
  const int pieces = c.num_inputs() / 2;
  DTG_ASSIGN(const PartialShape row, row_shape_of(c, pieces));
  int64_t largest = -1;
  bool known = true;
  for (int i = 0; i < pieces && known; ++i) {
    const Tensor indices = c.constant(i);
    known = indices.valid();
    for (int64_t k = 0; known && k < indices.count(); ++k) largest = std::max<int64_t>(largest, indices.as<int32_t>()[k]);
  }
  if (!row.has_rank()) return {};
  PartialShape out = PartialShape::of_rank(0);
  DTG_TRY(out.append(known ? largest + 1 : -1));
  for (int d = 0; d < row.rank(); ++d) DTG_TRY(in_op(c.node(), out.append(row.dim(d))));
  c.output(0, out);
  return {};
}

// d(data i) = dy[indices i]
Status stitch_grad(GradContext& c) {
  const Value dy = c.dy();
  const int pieces = c.num_inputs() / 2;
  for (int i = 0; i < pieces; ++i) c.dx(pieces + i, c.b().op("GatherV2", {dy, c.input(i), c.b().integer(0)}));
  return {};
}

struct StitchArgs {
  int pieces = 0;
  std::span<const int64_t> counts;  // rows of each piece
  Shape row;
  int64_t bytes = 0;  // of a row
  OutputSpec out;
};

Status stitch_run(RunContext& c) {
  const auto& a = c.args<StitchArgs>();
  int64_t rows = 0;
  for (int p = 0; p < a.pieces; ++p) {
    for (const int64_t i : watched(a.counts[static_cast<size_t>(p)])) {
      const int32_t index = c.in<int32_t>(p)[i];
      if (index < 0) return c.error("indices[%lld] of piece %d is %d; it must not be negative", static_cast<long long>(i), p, index);
      rows = std::max<int64_t>(rows, int64_t{index} + 1);
    }
  }
  int64_t dims[kRankMax + 1] = {rows};
  for (int d = 0; d < a.row.rank(); ++d) dims[d + 1] = a.row.dim(d);
  const auto shape = Shape::make({dims, static_cast<size_t>(a.row.rank()) + 1});
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  DTG_ASSIGN(char* out, a.out.memory(c, shape.value()));
  // Rows that no index names are zero.
  cpu::clear(c.pool(), out, rows * a.bytes);
  Lookout lookout;
  for (int p = 0; p < a.pieces; ++p) {
    const char* from = c.in<char>(a.pieces + p);
    for (int64_t i = 0; i < a.counts[static_cast<size_t>(p)]; ++i) {
      cpu::copy_row(out + c.in<int32_t>(p)[i] * a.bytes, from, a.bytes, lookout);
      from += a.bytes;
    }
  }
  return {};
}

Status stitch_prepare(PrepareContext& c) {
  auto* a = c.args<StitchArgs>();
  a->pieces = c.num_inputs() / 2;
  std::vector<int64_t> counts;
  for (int p = 0; p < a->pieces; ++p) counts.push_back(c.input(p).shape.count());
  a->counts = c.arena().copy(std::span<const int64_t>(counts));
  const Shape &data = c.input(a->pieces).shape, &indices = c.input(0).shape;
  DTG_ASSIGN(a->row, Shape::make(data.dims().subspan(static_cast<size_t>(indices.rank()))));
  a->bytes = a->row.count() * dtype_size(c.input(a->pieces).dtype);
  a->out.prepare(c, 0);
  return c.sync(stitch_run);
}

}  // namespace

void register_partition(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("DynamicPartition")
              .input("data: T")
              .input("partitions: int32")
              .output("outputs: num_partitions * T")
              .attr("num_partitions: int >= 1")
              .attr("T: type")
              .shape(partition_shape)
              .gradient(partition_grad)
              .doc("The rows of data dealt to as many outputs as there are partitions."));
  kernels.add({.op = "DynamicPartition", .types = {{"T", kPlain}}, .prepare = partition_prepare});
  for (const char* name : {"DynamicStitch", "ParallelDynamicStitch"}) {
    ops.add(OpDef::make(name)
                .input("indices: N * int32")
                .input("data: N * T")
                .output("merged: T")
                .attr("N: int >= 1")
                .attr("T: type")
                .shape(stitch_shape)
                .gradient(stitch_grad)
                .doc("Rows of several tensors in one, each where its index says."));
    kernels.add({.op = name, .types = {{"T", kPlain}}, .prepare = stitch_prepare});
  }
}

}  // namespace dtg::ops
