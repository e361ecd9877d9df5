// Parts of a tensor: Slice, StridedSlice and StridedSliceGrad. A strided slice is resolved by one function from
// the shape, the masks and whatever is known of begin, end and strides; shape functions call it with gaps, the
// kernels without.
#include <algorithm>
#include <optional>

#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/known.h"

namespace dtg::ops {
namespace {

// Bytes from one index of dimension i to the next, in a plain tensor.
int64_t stride_of(const Shape& shape, int i, int64_t size) { return shape.count(i + 1, shape.rank()) * size; }

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
  a->size = dtype_size(c.input(0).dtype);
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

// ---- StridedSlice: what begin, end, strides and the masks mean ---------------------------------------------

struct Masks {
  uint64_t begin, end, ellipsis, new_axis, shrink;
  explicit Masks(const Node& node)
      : begin(mask(node, "begin_mask")),
        end(mask(node, "end_mask")),
        ellipsis(mask(node, "ellipsis_mask")),
        new_axis(mask(node, "new_axis_mask")),
        shrink(mask(node, "shrink_axis_mask")) {}
  Masks() : begin(0), end(0), ellipsis(0), new_axis(0), shrink(0) {}
  static uint64_t mask(const Node& node, std::string_view name) { return static_cast<uint64_t>(node.attr<int64_t>(name)); }
};

// begin, end and strides as far as they are known.
struct Entries {
  int count = 0;
  std::optional<std::span<const int64_t>> begin, end, strides;
};

// One dimension of the input: which indices are taken.
struct Range {
  int64_t begin = 0;
  int64_t step = 1;
  int64_t count = -1;  // -1: not known
};

struct StridedGeometry {
  std::array<Range, kRankMax> ranges{};  // per dimension of the input
  PartialShape out = PartialShape::of_rank(0);
};

bool has_bit(uint64_t mask, int i) { return (mask >> i & 1u) != 0; }

// The indices begin, begin + step, ... before end, after negative and open bounds are made sense of.
Range resolve_range(int64_t dim, int64_t begin, int64_t end, int64_t step, bool begin_open, bool end_open) {
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
  const auto bound = [&](int64_t at) { return std::clamp(at < 0 ? at + dim : at, low, high); };
  begin = begin_open ? (step > 0 ? low : high) : bound(begin);
  end = end_open ? (step > 0 ? high : low) : bound(end);
  const int64_t distance = end - begin;
  if (distance == 0 || (distance < 0) != (step < 0)) return {begin, step, 0};
  return {begin, step, distance / step + (distance % step != 0)};
}

// Entry i picks from a dimension of extent `dim` (-1: not known).
Result<Range> resolve_entry(const Entries& e, const Masks& masks, int i, int64_t dim) {
  const auto at = static_cast<size_t>(i);
  const bool shrink = has_bit(masks.shrink, i);
  if (e.strides && (*e.strides)[at] == 0) return invalid_argument("stride %d is 0", i);
  if (shrink && e.strides && (*e.strides)[at] < 0) return invalid_argument("stride %d is negative where one index is taken", i);
  if (dim < 0 || (shrink && !e.begin)) return Range{0, 1, shrink ? 1 : -1};
  if (shrink) {
    const int64_t begin = (*e.begin)[at], index = begin < 0 ? begin + dim : begin;
    if (index < 0 || index >= dim) {
      return invalid_argument("index %lld is outside a dimension of %lld", static_cast<long long>(begin), static_cast<long long>(dim));
    }
    return Range{index, 1, 1};
  }
  const bool begin_open = has_bit(masks.begin, i), end_open = has_bit(masks.end, i);
  if (!e.strides || (!begin_open && !e.begin) || (!end_open && !e.end)) return Range{0, 1, -1};
  return resolve_range(dim, begin_open ? 0 : (*e.begin)[at], end_open ? 0 : (*e.end)[at], (*e.strides)[at], begin_open, end_open);
}

// Walks the entries along the dimensions of the input; the ellipsis, or the end, stands for those left over.
Result<StridedGeometry> resolve_strided(const PartialShape& in, const Entries& e, const Masks& masks) {
  StridedGeometry g;
  const int ellipses = __builtin_popcountll(masks.ellipsis & ((uint64_t{1} << e.count) - 1));
  if (ellipses > 1) return invalid_argument("only one ellipsis is allowed");
  int used = 0;  // dimensions that entries take
  for (int i = 0; i < e.count; ++i) used += !has_bit(masks.ellipsis, i) && !has_bit(masks.new_axis, i);
  if (used > in.rank()) return invalid_argument("%d entries index into shape %s", used, in.text().c_str());
  int dim = 0;
  const auto keep = [&](int count) -> Status {
    for (int k = 0; k < count; ++k, ++dim) {
      g.ranges[static_cast<size_t>(dim)] = {0, 1, in.dim(dim)};
      DTG_TRY(g.out.append(in.dim(dim)));
    }
    return {};
  };
  for (int i = 0; i < e.count; ++i) {
    if (has_bit(masks.ellipsis, i)) {
      DTG_TRY(keep(in.rank() - used));
    } else if (has_bit(masks.new_axis, i)) {
      DTG_TRY(g.out.append(1));
    } else {
      DTG_ASSIGN(const Range range, resolve_entry(e, masks, i, in.dim(dim)));
      g.ranges[static_cast<size_t>(dim++)] = range;
      if (!has_bit(masks.shrink, i)) DTG_TRY(g.out.append(range.count));
    }
  }
  DTG_TRY(keep(in.rank() - dim));
  return g;
}

// Begin, end and strides are inputs [first, first + 3). The number of entries, or -1.
Result<int> entry_count(const InferContext& c, int first) {
  int64_t count = -1;
  for (int i = first; i < first + 3; ++i) {
    DTG_TRY(c.require_rank(i, 1));
    const int64_t own = c.input(i).has_rank() ? c.input(i).dim(0) : -1;
    if (own < 0) continue;
    if (count >= 0 && own != count)
      return c.error("begin, end and strides must have the same length, but have %lld and %lld", static_cast<long long>(count),
                     static_cast<long long>(own));
    count = own;
  }
  if (count > Integers::kMax)
    return c.error("%lld entries; at most %lld are supported", static_cast<long long>(count), static_cast<long long>(Integers::kMax));
  return static_cast<int>(count);
}

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

std::vector<Attr> mask_attrs(const GradContext& c) {
  std::vector<Attr> attrs;
  for (const char* name : {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
    attrs.push_back({name, c.attr<int64_t>(name)});
  }
  return attrs;
}

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

struct StridedArgs {
  PartialShape in;  // of the tensor that is sliced; unknown for a gradient whose shape comes in run
  Shape dy;         // StridedSliceGrad only
  int64_t size = 0;
  Masks masks;
  Integers whole, begin, end, strides;
  OutputSpec out;
};

Result<StridedGeometry> geometry_in_run(RunContext& c, const StridedArgs& a, const PartialShape& in) {
  Integers::Buffer begin, end, strides;
  const Entries e{a.begin.count(), a.begin.get(c, begin), a.end.get(c, end), a.strides.get(c, strides)};
  auto g = resolve_strided(in, e, a.masks);
  if (!g.ok()) return c.error("%s", g.status().message().c_str());
  return g;
}

// The part of `whole` that the ranges take, walked beside a tensor that holds just them.
struct PartWalk {
  cpu::Walk walk;
  int64_t offset = 0;  // of the part in the whole
};

PartWalk walk_part(const Shape& whole, const StridedGeometry& g, int64_t size, bool into_whole) {
  PartWalk result{cpu::Walk(size), 0};
  int64_t counts[kRankMax], step = size;
  int64_t steps[kRankMax];
  for (int i = whole.rank(); i-- > 0;) {
    counts[i] = g.ranges[static_cast<size_t>(i)].count;
    steps[i] = step;
    step *= counts[i];
  }
  for (int i = 0; i < whole.rank(); ++i) {
    if (counts[i] == 0) return {};  // nothing is taken, and offsets could point outside
  }
  for (int i = 0; i < whole.rank(); ++i) {
    const Range& range = g.ranges[static_cast<size_t>(i)];
    const int64_t stride = stride_of(whole, i, size);
    result.offset += range.begin * stride;
    // One index has no step, which may be any number.
    const int64_t stepped = counts[i] == 1 ? 0 : range.step * stride;
    result.walk.add(counts[i], into_whole ? steps[i] : stepped, into_whole ? stepped : steps[i]);
  }
  result.walk.finish();
  return result;
}

Status strided_slice_run(RunContext& c) {
  const auto& a = c.args<StridedArgs>();
  DTG_ASSIGN(const StridedGeometry g, geometry_in_run(c, a, a.in));
  DTG_ASSIGN(const Shape shape, g.out.to_shape());
  DTG_ASSIGN(const Shape whole, a.in.to_shape());
  DTG_ASSIGN(char* out, a.out.memory(c, shape));
  if (shape.count() == 0) return {};
  const PartWalk part = walk_part(whole, g, a.size, false);
  cpu::copy_walk(c.pool(), part.walk, c.in<char>(0) + part.offset, out);
  return {};
}

Status prepare_entries(PrepareContext& c, StridedArgs& a) {
  a.masks = Masks(c.node());
  DTG_TRY(a.begin.prepare(c, 1));
  DTG_TRY(a.end.prepare(c, 2));
  DTG_TRY(a.strides.prepare(c, 3));
  a.out.prepare(c, 0);
  return {};
}

Status strided_slice_prepare(PrepareContext& c) {
  auto* a = c.args<StridedArgs>();
  a->in = c.input(0).shape;
  a->size = dtype_size(c.input(0).dtype);
  DTG_TRY(prepare_entries(c, *a));
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
  DTG_ASSIGN(const StridedGeometry g, geometry_in_run(c, a, whole.value()));
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
  DTG_TRY(prepare_entries(c, *a));
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
  kernels.add({.op = "Slice", .types = {{"T", kPlain}}, .prepare = slice_prepare});
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
  kernels.add({.op = "StridedSlice", .types = {{"T", kPlain}}, .prepare = strided_slice_prepare});
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
}

}  // namespace dtg::ops
