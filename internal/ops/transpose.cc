// Elements in another order: Transpose, ConjugateTranspose (of real numbers: the same), InvertPermutation and
// ReverseV2. Transposing and reversing are strided copies.
#include <algorithm>

#include "base/watched.h"
#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/simplify.h"

namespace dtg::ops {
namespace {

int64_t stride_of(const Shape& shape, int i, int64_t size) { return shape.count(i + 1, shape.rank()) * size; }

// ---- Transpose ---------------------------------------------------------------------------------------------

// Each axis once, negative ones counted from the end.
Status resolve_permutation(std::span<const int64_t> perm, int rank, int* axes) {
  bool seen[kRankMax] = {};
  if (perm.size() != static_cast<size_t>(rank)) return invalid_argument("a permutation of %zu axes for rank %d", perm.size(), rank);
  for (size_t i = 0; i < perm.size(); ++i) {
    DTG_ASSIGN(axes[i], resolve_axis(perm[i], rank));
    if (seen[axes[i]]) return invalid_argument("axis %d occurs twice in the permutation", axes[i]);
    seen[axes[i]] = true;
  }
  return {};
}

Status transpose_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 1));
  const PartialShape& in = c.input(0);
  const int64_t count = c.input(1).dim(0);
  if (in.has_rank() && count >= 0 && count != in.rank()) {
    return c.error("a permutation of %lld axes for shape %s", static_cast<long long>(count), in.text().c_str());
  }
  const int64_t rank = in.has_rank() ? in.rank() : count;
  if (rank < 0) return {};
  if (rank > kRankMax) return c.error("a permutation of %lld axes; at most %d are supported", static_cast<long long>(rank), kRankMax);
  PartialShape out = PartialShape::of_rank(static_cast<int>(rank));
  const KnownIntegers perm = known_integers(c, 1);
  for (int i = 0; perm.known && i < perm.count; ++i) {
    const auto axis = resolve_axis(perm.values[static_cast<size_t>(i)], static_cast<int>(rank));
    if (!axis.ok()) return c.error("%s", axis.status().message().c_str());
    if (in.has_rank()) out.set_dim(i, in.dim(axis.value()));
  }
  c.output(0, out);
  return {};
}

// d(x) = transpose(dy, inverse of perm)
Status transpose_grad(GradContext& c) {
  const Value inverse = c.b().op("InvertPermutation", {c.input(1)});
  c.dx(0, c.b().op(c.node().op->name(), {c.dy(), inverse}));
  return {};
}

struct ReorderArgs {
  Shape in;
  int64_t size = 0;
  Integers axes;
  OutputSpec out;
};

Status transpose_run(RunContext& c) {
  const auto& a = c.args<ReorderArgs>();
  Integers::Buffer buffer;
  int axes[kRankMax];
  const int rank = a.in.rank();
  const Status status = resolve_permutation(a.axes.get(c, buffer), rank, axes);
  if (!status.ok()) return c.error("%s", status.message().c_str());
  int64_t dims[kRankMax];
  for (int i = 0; i < rank; ++i) dims[i] = a.in.dim(axes[i]);
  DTG_ASSIGN(const Shape shape, Shape::make({dims, static_cast<size_t>(rank)}));
  DTG_ASSIGN(char* out, a.out.memory(c, shape));
  cpu::Walk walk(a.size);
  for (int i = 0; i < rank; ++i) walk.add(dims[i], stride_of(a.in, axes[i], a.size), stride_of(shape, i, a.size));
  walk.finish();
  cpu::copy_walk(c.pool(), walk, c.in<char>(0), out);
  return {};
}

// Moving dimensions of 1 about leaves every element where it is.
bool keeps_order(const Shape& in, const int* axes) {
  int last = -1;
  for (int i = 0; i < in.rank(); ++i) {
    if (in.dim(axes[i]) == 1) continue;
    if (axes[i] < last) return false;
    last = axes[i];
  }
  return true;
}

template <SyncFn run>
Status reorder_prepare(PrepareContext& c) {
  auto* a = c.args<ReorderArgs>();
  a->in = c.input(0).shape;
  a->size = cell_bytes(c.input(0).dtype);
  DTG_TRY(a->axes.prepare(c, 1));
  a->out.prepare(c, 0);
  int axes[kRankMax];
  if (run == transpose_run && !a->out.dynamic && a->axes.known() && resolve_permutation(a->axes.values(), a->in.rank(), axes).ok() &&
      keeps_order(a->in, axes)) {
    c.alias(0, 0);
    return {};
  }
  return c.sync(run);
}

// ---- InvertPermutation -------------------------------------------------------------------------------------

Status invert_permutation_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 1));
  return c.same_as_input(0);
}

struct InvertArgs {
  int64_t count = 0;
  DType dtype = DType::i32;
};

template <class T>
Status invert(RunContext& c, int64_t count) {
  const T* in = c.in<T>(0);
  T* out = c.out<T>(0);
  for (const int64_t i : watched(count, 1)) out[i] = T(-1);
  for (const int64_t i : watched(count, 20)) {
    if (in[i] < 0 || in[i] >= count) {
      return c.error("entry %lld is %lld, not in [0, %lld)", static_cast<long long>(i), static_cast<long long>(in[i]),
                     static_cast<long long>(count));
    }
    if (out[in[i]] != T(-1)) return c.error("%lld occurs twice", static_cast<long long>(in[i]));
    out[in[i]] = static_cast<T>(i);
  }
  return {};
}

Status invert_permutation_run(RunContext& c) {
  const auto& a = c.args<InvertArgs>();
  return a.dtype == DType::i32 ? invert<int32_t>(c, a.count) : invert<int64_t>(c, a.count);
}

Status invert_permutation_prepare(PrepareContext& c) {
  auto* a = c.args<InvertArgs>();
  a->count = c.input(0).shape.count();
  a->dtype = c.input(0).dtype;
  if (a->count > INT32_MAX) return c.error("a permutation of %lld axes is too long", static_cast<long long>(a->count));
  return c.sync(invert_permutation_run);
}

// ---- ReverseV2 ---------------------------------------------------------------------------------------------

Status resolve_reversed(std::span<const int64_t> axes, int rank, bool* reversed) {
  for (int64_t axis : axes) {
    DTG_ASSIGN(const int at, resolve_axis(axis, rank));
    if (reversed[at]) return invalid_argument("axis %d is given twice", at);
    reversed[at] = true;
  }
  return {};
}

Status reverse_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 1));
  const KnownIntegers axes = known_integers(c, 1);
  if (axes.known && c.input(0).has_rank()) {
    bool reversed[kRankMax] = {};
    const Status status = resolve_reversed(axes.span(), c.input(0).rank(), reversed);
    if (!status.ok()) return c.error("%s", status.message().c_str());
  }
  return c.same_as_input(0);
}

// d(tensor) = reverse(dy, axis)
Status reverse_grad(GradContext& c) {
  c.dx(0, c.b().op("ReverseV2", {c.dy(), c.input(1)}));
  return {};
}

Status reverse_run(RunContext& c) {
  const auto& a = c.args<ReorderArgs>();
  Integers::Buffer buffer;
  bool reversed[kRankMax] = {};
  const Status status = resolve_reversed(a.axes.get(c, buffer), a.in.rank(), reversed);
  if (!status.ok()) return c.error("%s", status.message().c_str());
  if (a.in.count() == 0) return {};
  cpu::Walk walk(a.size);
  const char* in = c.in<char>(0);
  for (int i = 0; i < a.in.rank(); ++i) {
    const int64_t step = stride_of(a.in, i, a.size);
    if (reversed[i]) in += (a.in.dim(i) - 1) * step;
    walk.add(a.in.dim(i), reversed[i] ? -step : step, step);
  }
  walk.finish();
  cpu::copy_walk(c.pool(), walk, in, c.out<char>(0));
  return {};
}

}  // namespace

void register_transpose(OpTable& ops, KernelTable& kernels) {
  for (const char* name : {"Transpose", "ConjugateTranspose"}) {
    ops.add(OpDef::make(name)
                .input("x: T")
                .input("perm: Tperm", {.rank = 1})
                .output("y: T")
                .attr("T: type")
                .attr("Tperm: {int32, int64} = int32")
                .shape(transpose_shape)
                .forwards()
                .simplify(simplify_transpose)
                .gradient(transpose_grad)
                .doc("Dimension i of the result is dimension perm[i] of x."));
  }
  kernels.add({.op = "Transpose", .types = {{"T", kMovable}}, .prepare = reorder_prepare<transpose_run>});
  kernels.add({.op = "ConjugateTranspose",
               .types = {{"T", kReal | DTypeSet{DType::boolean, DType::string}}},
               .prepare = reorder_prepare<transpose_run>});
  ops.add(OpDef::make("InvertPermutation")
              .input("x: T", {.rank = 1})
              .output("y: T")
              .attr("T: {int32, int64} = int32")
              .shape(invert_permutation_shape)
              .no_gradient()
              .doc("The permutation that undoes x."));
  kernels.add({.op = "InvertPermutation", .types = {{"T", kIndex}}, .prepare = invert_permutation_prepare});
  ops.add(OpDef::make("ReverseV2")
              .input("tensor: T")
              .input("axis: Tidx", {.rank = 1})
              .output("output: T")
              .attr("Tidx: {int32, int64} = int32")
              .attr("T: type")
              .shape(reverse_shape)
              .forwards()
              .gradient(reverse_grad)
              .doc("The elements in opposite order along the given axes."));
  kernels.add({.op = "ReverseV2", .types = {{"T", kMovable}}, .prepare = reorder_prepare<reverse_run>});
}

}  // namespace dtg::ops
