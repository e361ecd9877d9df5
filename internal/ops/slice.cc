// Parts of a tensor: Slice, StridedSlice and StridedSliceGrad. What begin, end, strides and the masks of a strided slice mean
// is in strided.h; shape functions ask it with gaps, the kernels without.
#include <algorithm>

#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/known.h"
#include "ops/strided.h"

namespace dtg::ops {
namespace {

// ---- Slice -------------------------------------------------------------------------------------------------

Status slice_shape(InferContext& c) {
  const PartialShape& in = c.input(0);
  int rank = in.rank();
  for (int i = 1; i < 3; ++i) {
    DTG_TRY(c.require_rank(i, 1));
    const int64_t count = c.input(i).has_rank() ? c.input(i).dim(0) : -1;
    if (count < 0) continue;
    if (count > kRankMax || (rank >= 0 && count != rank)) {
      return c.error("begin and size must have one entry per dimension, but input %d has %lld (input shape %s)", i,
                     static_cast<long long>(count), in.text().c_str());
    }
    rank = static_cast<int>(count);
  }
  if (rank < 0) return {};
  PartialShape out = PartialShape::of_rank(rank);
  const KnownIntegers begin = known_integers(c, 1), size = known_integers(c, 2);
  for (int i = 0; size.known && i < rank; ++i) {
    const auto at = static_cast<size_t>(i);
    int64_t extent = size.values[at];
    if (extent < -1) return c.error("size %d is %lld; it must be -1 or more", i, static_cast<long long>(extent));
    if (extent == -1 && begin.known && in.has_rank() && in.dim(i) >= 0) {
      extent = in.dim(i) - std::max<int64_t>(begin.values[at], 0);
      if (extent < 0) return c.error("begin %d is %lld, beyond shape %s", i, static_cast<long long>(begin.values[at]), in.text().c_str());
    }
    out.set_dim(i, extent);
  }
  c.output(0, out);
  return {};
}

// d(input) = dy with zeros around it: pad(dy, [begin, shape(input) - shape(output) - begin])
Status slice_grad(GradContext& c) {
  Build& b = c.b();
  const DType dtype = c.input_info(1).dtype;
  const Value begin = c.input(1);
  const Value rest = b.sub(b.sub(b.shape(c.input(0), dtype), b.shape(c.output(0), dtype)), begin);
  c.dx(0, b.op("Pad", {c.dy(), b.op("Pack", {begin, rest}, {{"axis", 1}})}));
  return {};
}

struct SliceArgs {
  Shape in;
  int64_t size = 0;
  Integers begin, extent;
  OutputSpec out;
};

Status slice_run(RunContext& c) {
  const auto& a = c.args<SliceArgs>();
  Integers::Buffer begins, extents;
  const auto begin = a.begin.get(c, begins), extent = a.extent.get(c, extents);
  int64_t dims[kRankMax];
  for (int i = 0; i < a.in.rank(); ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t dim = a.in.dim(i);
    const bool inside = begin[at] >= 0 && begin[at] <= dim;
    const int64_t left = inside ? dim - begin[at] : 0;
    dims[i] = extent[at] == -1 ? left : extent[at];
    if (!inside || dims[i] < 0 || dims[i] > left) {
      return c.error("dimension %d of shape %s has no part of size %lld from %lld on", i, a.in.text().c_str(),
                     static_cast<long long>(extent[at]), static_cast<long long>(begin[at]));
    }
  }
  const auto shape = Shape::make({dims, static_cast<size_t>(a.in.rank())});
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  DTG_ASSIGN(char* out, a.out.memory(c, shape.value()));
  const char* in = c.in<char>(0);
  cpu::Walk walk(a.size);
  for (int i = 0; i < a.in.rank(); ++i) {
    walk.add(dims[i], stride_of(a.in, i, a.size), stride_of(shape.value(), i, a.size));
    in += begin[static_cast<size_t>(i)] * stride_of(a.in, i, a.size);
  }
  walk.finish();
  cpu::copy_walk(c.pool(), walk, in, out);
  return {};
}

Status slice_prepare(PrepareContext& c) {
  auto* a = c.args<SliceArgs>();
  a->in = c.input(0).shape;
  a->size = cell_bytes(c.input(0).dtype);
  DTG_TRY(a->begin.prepare(c, 1));
  DTG_TRY(a->extent.prepare(c, 2));
  a->out.prepare(c, 0);
  const auto from_start = [](std::span<const int64_t> begin) { return std::ranges::all_of(begin, [](int64_t at) { return at == 0; }); };
  // All of it: the output is the input.
  if (a->begin.known() && from_start(a->begin.values()) && !a->out.dynamic && a->out.shape == a->in) {
    c.alias(0, 0);
    return {};
  }
  return c.sync(slice_run);
}

// ---- StridedSlice and StridedSliceGrad: shapes ------------------------------------------------------------

Status strided_slice_shape(InferContext& c) {
  DTG_ASSIGN(const int count, entry_count(c, 1));
  if (count < 0 || !c.input(0).has_rank()) return {};
  const KnownIntegers known[] = {known_integers(c, 1), known_integers(c, 2), known_integers(c, 3)};
  Entries e{count, {}, {}, {}};
  if (known[0].known) e.begin = known[0].span();
  if (known[1].known) e.end = known[1].span();
  if (known[2].known) e.strides = known[2].span();
  auto g = resolve_strided(c.input(0), e, Masks(c.node()));
  if (!g.ok()) return c.error("%s", g.status().message().c_str());
  c.output(0, g.value().out);
  return {};
}

// ---- StridedSlice and StridedSliceGrad: gradients and kernels ----------------------------------------------

// d(input) = zeros like the input with dy at the places that were taken
Status strided_slice_grad(GradContext& c) {
  Build& b = c.b();
  const DType dtype = c.input_info(1).dtype;
  if (!kIndex.has(dtype)) return unimplemented("the gradient of StridedSlice needs int32 or int64 indices, not %s", dtype_name(dtype));
  const auto shape = c.input_info(0).shape.to_shape();
  const Value whole = shape.ok() ? b.ints(shape.value().dims(), dtype) : b.shape(c.input(0), dtype);
  const Value arguments[] = {whole, c.input(1), c.input(2), c.input(3), c.dy()};
  c.dx(0, b.op("StridedSliceGrad", arguments, mask_attrs(c)));
  return {};
}

// d(dy) = the same slice of the second gradient
Status strided_slice_grad_grad(GradContext& c) {
  const Value arguments[] = {c.dy(), c.input(1), c.input(2), c.input(3)};
  c.dx(4, c.b().op("StridedSlice", arguments, mask_attrs(c)));
  return {};
}

struct StridedArgs : StridedEntries {
  PartialShape in;  // of the tensor that is sliced; unknown for a gradient whose shape comes in run
  Shape dy;         // StridedSliceGrad only
  int64_t size = 0;
  Integers whole;
  OutputSpec out;
};

Status strided_slice_run(RunContext& c) {
  const auto& a = c.args<StridedArgs>();
  DTG_ASSIGN(const StridedGeometry g, a.geometry(c, a.in));
  DTG_ASSIGN(const Shape shape, g.out.to_shape());
  DTG_ASSIGN(const Shape whole, a.in.to_shape());
  DTG_ASSIGN(char* out, a.out.memory(c, shape));
  if (shape.count() == 0) return {};
  const PartWalk part = walk_part(whole, g, a.size, false);
  cpu::copy_walk(c.pool(), part.walk, c.in<char>(0) + part.offset, out);
  return {};
}

Status strided_slice_prepare(PrepareContext& c) {
  auto* a = c.args<StridedArgs>();
  a->in = c.input(0).shape;
  a->size = cell_bytes(c.input(0).dtype);
  DTG_TRY(a->prepare_entries(c));
  a->out.prepare(c, 0);
  return c.sync(strided_slice_run);
}

Status strided_slice_grad_shape(InferContext& c) {
  DTG_ASSIGN(const int count, entry_count(c, 1));
  (void)count;
  const KnownIntegers whole = known_integers(c, 0);
  for (int64_t dim : whole.span()) {
    if (dim < 0) return c.error("the shape has a dimension of %lld", static_cast<long long>(dim));
  }
  DTG_ASSIGN(PartialShape shape, c.shape_from_input(0));
  c.output(0, shape);
  return {};
}

Status strided_slice_grad_run(RunContext& c) {
  const auto& a = c.args<StridedArgs>();
  Integers::Buffer buffer;
  const auto whole = Shape::make(a.whole.get(c, buffer));
  if (!whole.ok()) return c.error("%s", whole.status().message().c_str());
  DTG_ASSIGN(const StridedGeometry g, a.geometry(c, whole.value()));
  if (!g.out.admits(a.dy)) {
    return c.error("dy has shape %s, but the slice has shape %s", a.dy.text().c_str(), g.out.text().c_str());
  }
  DTG_ASSIGN(char* out, a.out.memory(c, whole.value()));
  cpu::clear(c.pool(), out, whole.value().count() * a.size);
  if (a.dy.count() == 0) return {};
  const PartWalk part = walk_part(whole.value(), g, a.size, true);
  cpu::copy_walk(c.pool(), part.walk, c.in<char>(4), out + part.offset);
  return {};
}

Status strided_slice_grad_prepare(PrepareContext& c) {
  auto* a = c.args<StridedArgs>();
  a->dy = c.input(4).shape;
  a->size = dtype_size(c.input(4).dtype);
  DTG_TRY(a->whole.prepare(c, 0));
  DTG_TRY(a->prepare_entries(c));
  a->out.prepare(c, 0);
  return c.sync(strided_slice_grad_run);
}

}  // namespace

void register_slice(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("Slice")
              .input("input: T")
              .input("begin: Index", {.rank = 1})
              .input("size: Index", {.rank = 1})
              .output("output: T")
              .attr("T: type")
              .attr("Index: {int32, int64}")
              .shape(slice_shape)
              .forwards()
              .value(slice_value)
              .gradient(slice_grad)
              .doc("The block of the input that starts at begin; a size of -1 means all that is left."));
  kernels.add({.op = "Slice", .types = {{"T", kMovable}}, .prepare = slice_prepare});
  ops.add(OpDef::make("StridedSlice")
              .input("input: T")
              .input("begin: Index", {.rank = 1})
              .input("end: Index", {.rank = 1})
              .input("strides: Index", {.rank = 1})
              .output("output: T")
              .attr("T: type")
              .attr("Index: {int16, int32, int64}")
              .attr("begin_mask: int = 0")
              .attr("end_mask: int = 0")
              .attr("ellipsis_mask: int = 0")
              .attr("new_axis_mask: int = 0")
              .attr("shrink_axis_mask: int = 0")
              .shape(strided_slice_shape)
              .forwards()
              .value(strided_slice_value)
              .gradient(strided_slice_grad)
              .doc("What x[begin:end:stride, index, ..., newaxis] takes; bit i of a mask changes what entry i means."));
  kernels.add({.op = "StridedSlice", .types = {{"T", kMovable}}, .prepare = strided_slice_prepare});
  ops.add(OpDef::make("StridedSliceGrad")
              .input("shape: Index", {.rank = 1})
              .input("begin: Index", {.rank = 1})
              .input("end: Index", {.rank = 1})
              .input("strides: Index", {.rank = 1})
              .input("dy: T")
              .output("output: T")
              .attr("T: type")
              .attr("Index: {int32, int64}")
              .attr("begin_mask: int = 0")
              .attr("end_mask: int = 0")
              .attr("ellipsis_mask: int = 0")
              .attr("new_axis_mask: int = 0")
              .attr("shrink_axis_mask: int = 0")
              .shape(strided_slice_grad_shape)
              .gradient(strided_slice_grad_grad)
              .doc("Zeros of a shape, with dy where StridedSlice would take values from."));
  kernels.add({.op = "StridedSliceGrad", .types = {{"T", kPlain}}, .prepare = strided_slice_grad_prepare});
  register_transpose(ops, kernels);
  register_strided_assign(ops, kernels);
}

}  // namespace dtg::ops
