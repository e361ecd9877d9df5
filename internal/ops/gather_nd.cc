// Picking and adding by coordinates: GatherNd and ScatterNd, each the other's gradient. The last dimension of the
// indices holds coordinates into the leading dimensions of the tensor.
#include "base/watched.h"
#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/coordinates.h"
#include "ops/rows.h"

namespace dtg::ops {
namespace {

// ---- GatherNd ----------------------------------------------------------------------------------------------

Status gather_nd_shape(InferContext& c) {
  const PartialShape &params = c.input(0), &indices = c.input(1);
  DTG_TRY(c.require_rank_at_least(1, 1));
  if (!params.has_rank() || !indices.has_rank()) return {};
  const int64_t depth = indices.dim(indices.rank() - 1);
  if (depth > params.rank()) return c.error("tuples of %lld index into shape %s", static_cast<long long>(depth), params.text().c_str());
  if (depth < 0) return {};
  PartialShape out = PartialShape::of_rank(0);
  for (int i = 0; i + 1 < indices.rank(); ++i) DTG_TRY(in_op(c.node(), out.append(indices.dim(i))));
  for (int i = static_cast<int>(depth); i < params.rank(); ++i) DTG_TRY(in_op(c.node(), out.append(params.dim(i))));
  c.output(0, out);
  return {};
}

// d(params) = dy scattered back; as rows where the indices are plain row numbers
Status gather_nd_grad(GradContext& c) {
  Build& b = c.b();
  const ValueInfo& indices = c.input_info(1);
  const DType dtype = indices.dtype == DType::i64 ? DType::i64 : DType::i32;
  const Value shape = b.shape(c.input(0), dtype);
  if (indices.shape.rank() == 2 && indices.shape.dim(1) == 1) {
    c.dx_rows(0, c.dy(), b.op("Squeeze", {c.input(1)}, {{"squeeze_dims", std::vector<int64_t>{-1}}}), shape);
    return {};
  }
  const Value tuples = indices.dtype == DType::i16 ? b.cast(c.input(1), DType::i32) : c.input(1);
  c.dx(0, b.op("ScatterNd", {tuples, c.dy(), shape}, {{"bad_indices_policy", c.attr<std::string>("bad_indices_policy")}}));
  return {};
}

struct GatherNdArgs {
  Coordinates at;
  BadIndices policy = BadIndices::refuse;
  int64_t row = 0;  // bytes
};

Status gather_nd_run(RunContext& c) {
  const auto& a = c.args<GatherNdArgs>();
  return with_indices(a.at.dtype, c.in<char>(1), [&](const auto* indices) -> Status {
    if (a.policy == BadIndices::refuse) DTG_TRY(a.at.check(c, indices));
    const char* params = c.in<char>(0);
    char* out = c.out<char>(0);
    const int64_t shards = std::min(cpu::shards_for_bytes(a.at.count * a.row), std::max<int64_t>(a.at.count, 1));
    c.pool().parallel_for(shards, [&](int64_t s) {
      for (const int64_t i : watched(a.at.count * s / shards, a.at.count * (s + 1) / shards, 10 + a.row / 8)) {
        const int64_t from = a.at.row(indices, i);
        if (from >= 0) cpu::copy_row(out + i * a.row, params + from * a.row, a.row);
        else if (a.row > 0) __builtin_memset(out + i * a.row, 0, static_cast<size_t>(a.row));
      }
    });
    return {};
  });
}

Status gather_nd_prepare(PrepareContext& c) {
  auto* a = c.args<GatherNdArgs>();
  DTG_ASSIGN(a->policy, policy_of(c));
  DTG_TRY(prepare_coordinates(c, 1, a->at));
  a->at.tensor = c.input(0).shape;
  a->row = a->at.columns() * cell_bytes(c.input(0).dtype);
  return c.sync(gather_nd_run);
}

// ---- ScatterNd ---------------------------------------------------------------------------------------------

Status scatter_nd_shape(InferContext& c) {
  const PartialShape &indices = c.input(0), &updates = c.input(1);
  DTG_TRY(c.require_rank_at_least(0, 1));
  DTG_TRY(c.require_rank(2, 1));
  const KnownIntegers dims = known_integers(c, 2);
  for (int64_t dim : dims.span()) {
    if (dim < 0) return c.error("the shape has a dimension of %lld", static_cast<long long>(dim));
  }
  DTG_ASSIGN(PartialShape out, c.shape_from_input(2));
  // Tuples longer than the shape are left to run.
  if (out.has_rank() && indices.has_rank() && updates.has_rank() && indices.dim(indices.rank() - 1) <= out.rank()) {
    const Status status = check_updates(indices, updates, out);
    if (!status.ok()) return c.error("%s", status.message().c_str());
  }
  c.output(0, out);
  return {};
}

// d(updates) = gather_nd(dy, indices)
Status scatter_nd_grad(GradContext& c) {
  c.dx(1, c.b().op("GatherNd", {c.dy(), c.input(0)}, {{"bad_indices_policy", c.attr<std::string>("bad_indices_policy")}}));
  return {};
}

struct ScatterNdArgs {
  Shape indices, updates;
  Coordinates at;  // its tensor is known in run
  BadIndices policy = BadIndices::refuse;
  Integers dims;
  OutputSpec out;
  int64_t size = 0;
};

template <class T>
Status scatter_nd_run(RunContext& c) {
  const auto& a = c.args<ScatterNdArgs>();
  Integers::Buffer buffer;
  Coordinates at = a.at;
  const auto shape = Shape::make(a.dims.get(c, buffer));
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  at.tensor = shape.value();
  const Status fits = check_updates(a.indices, a.updates, at.tensor);
  if (!fits.ok()) return c.error("%s", fits.message().c_str());
  return with_indices(at.dtype, c.in<char>(0), [&](const auto* indices) -> Status {
    if (a.policy == BadIndices::refuse) DTG_TRY(at.check(c, indices));
    DTG_ASSIGN(char* out, a.out.memory(c, at.tensor));
    cpu::clear(c.pool(), out, at.tensor.count() * a.size);
    add_rows(c.pool(), reinterpret_cast<T*>(out), c.in<T>(1), at.count, at.columns(), [&](int64_t i) { return at.row(indices, i); });
    return {};
  });
}

template <class T>
Status scatter_nd_prepare(PrepareContext& c) {
  auto* a = c.args<ScatterNdArgs>();
  DTG_ASSIGN(a->policy, policy_of(c));
  DTG_TRY(prepare_coordinates(c, 0, a->at));
  a->indices = c.input(0).shape;
  a->updates = c.input(1).shape;
  a->size = dtype_size(c.input(1).dtype);
  DTG_TRY(a->dims.prepare(c, 2));
  a->out.prepare(c, 0);
  return c.sync(scatter_nd_run<T>);
}

template <class... T>
void add_scatter_kernels(KernelTable& kernels) {
  (kernels.add({.op = "ScatterNd", .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = scatter_nd_prepare<T>}), ...);
}

}  // namespace

void register_gather_nd(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("GatherNd")
              .input("params: Tparams")
              .input("indices: Tindices", {.rank_min = 1})
              .output("output: Tparams")
              .attr("Tparams: type")
              .attr("Tindices: {int16, int32, int64}")
              .attr("bad_indices_policy: string = ''")
              .shape(gather_nd_shape)
              .gradient(gather_nd_grad)
              .doc("The slices of params at the coordinates in indices."));
  kernels.add({.op = "GatherNd", .types = {{"Tparams", kMovable}}, .prepare = gather_nd_prepare});
  ops.add(OpDef::make("ScatterNd")
              .input("indices: Tindices", {.rank_min = 1})
              .input("updates: T")
              .input("shape: Tindices", {.rank = 1})
              .output("output: T")
              .attr("T: type")
              .attr("Tindices: {int16, int32, int64}")
              .attr("bad_indices_policy: string = ''")
              .shape(scatter_nd_shape)
              .gradient(scatter_nd_grad)
              .doc("Zeros of a shape, with the updates added at the coordinates in indices."));
  add_scatter_kernels<float, double, int32_t, int64_t, uint8_t, int8_t, int16_t, uint16_t, uint32_t, uint64_t, Half, BFloat16, bool>(
      kernels);
}

}  // namespace dtg::ops
