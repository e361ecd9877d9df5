// Larger tensors from smaller ones: Tile, BroadcastTo, Pad, PadV2. All of them are one strided copy each, with
// a stride of 0 where the source repeats.
#include <array>

#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/integers.h"

namespace dtg::ops {
namespace {

// ---- Tile --------------------------------------------------------------------------------------------------

Status tile_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 1));
  const PartialShape& in = c.input(0);
  const int64_t count = c.input(1).dim(0);
  if (in.has_rank() && count >= 0 && count != in.rank()) {
    return c.error("%lld multiples for an input of shape %s", static_cast<long long>(count), in.text().c_str());
  }
  if (!in.has_rank()) return {};
  PartialShape out = PartialShape::of_rank(in.rank());
  const KnownIntegers multiples = known_integers(c, 1);
  for (int i = 0; multiples.known && i < in.rank(); ++i) {
    const int64_t times = multiples.values[static_cast<size_t>(i)];
    int64_t dim = -1;
    if (in.dim(i) >= 0 && times >= 0 && __builtin_mul_overflow(in.dim(i), times, &dim)) {
      return c.error("dimension %d is too large: %lld times %lld", i, static_cast<long long>(in.dim(i)), static_cast<long long>(times));
    }
    out.set_dim(i, dim);
  }
  c.output(0, out);
  return {};
}

// d(input) = sum of dy over the copies: dy is reshaped so that each tiled dimension becomes [copies, dim].
Value tile_grad_of(Build& b, Value dy, const Shape& in, std::span<const int64_t> multiples) {
  std::vector<int64_t> split, axes;
  int64_t run = 1;  // dimensions without copies merge
  for (int i = 0; i < in.rank(); ++i) {
    if (multiples[static_cast<size_t>(i)] != 1) {
      if (run != 1) split.push_back(run);
      axes.push_back(static_cast<int64_t>(split.size()));
      split.push_back(multiples[static_cast<size_t>(i)]);
      run = 1;
    }
    run *= in.dim(i);
  }
  split.push_back(run);
  if (split.size() <= static_cast<size_t>(kRankMax)) return b.sum(b.reshape(dy, b.ints(split)), b.ints(axes));
  // Too many tiled dimensions at once: one after the other, the last first.
  int64_t below = 1;
  for (int i = in.rank(); i-- > 0;) {
    below *= in.dim(i);
    int64_t above = 1;
    for (int k = 0; k < i; ++k) above *= in.dim(k) * multiples[static_cast<size_t>(k)];
    dy = b.sum(b.reshape(dy, b.ints({above, multiples[static_cast<size_t>(i)], below})), b.ints({1}));
  }
  return dy;
}

// The same for sizes that only run knows, where twice the rank is more dimensions than a tensor may have: one
// dimension after the other, the last first.
Value tile_grad_by_dimension(Build& b, Value dy, Value shape, Value multiples, int64_t rank) {
  const Value tiled = b.mul(shape, multiples), one = b.ints({1}), zero = b.ints({0});
  const auto product = [&](Value dims, int64_t from, int64_t to) {
    const Value part = b.op("StridedSlice", {dims, b.ints({from}), b.ints({to}), one});
    return b.op("Prod", {part, zero}, {{"keep_dims", true}});
  };
  for (int64_t i = rank; i-- > 0;) {
    const Value parts[] = {product(tiled, 0, i), product(multiples, i, i + 1), product(shape, i, rank), b.integer(0)};
    dy = b.sum(b.reshape(dy, b.op("ConcatV2", parts)), one);
  }
  return dy;
}

// The same where not even the rank is known: every element of dy is added to the element that it is a copy of.
Value tile_grad_by_element(Build& b, Value dy, Value input, Value multiples) {
  const Value flat = b.ints({-1}), count = b.op("Size", {input}, {{"out_type", DType::i64}});
  const Value numbers = b.op("Range", {b.integer(0, DType::i64), count, b.integer(1, DType::i64)});
  const Value origins = b.op("Tile", {b.reshape(numbers, b.shape(input)), multiples});
  return b.op("UnsortedSegmentSum", {b.reshape(dy, flat), b.reshape(origins, flat), count});
}

Status tile_grad(GradContext& c) {
  Build& b = c.b();
  const PartialShape& in = c.input_info(0).shape;
  const Tensor multiples = b.graph().constant_value(c.input(1));
  const auto complete = in.to_shape();
  if (complete.ok() && multiples.valid()) {
    std::vector<int64_t> times;
    for (int64_t i = 0; i < multiples.count(); ++i) times.push_back(multiples.int_at(i));
    const Value sum = tile_grad_of(b, c.dy(), complete.value(), times);
    c.dx(0, b.reshape(sum, b.ints(complete.value().dims())));
    return {};
  }
  const int64_t rank = in.has_rank() ? in.rank() : c.input_info(1).shape.dim(0);
  const Value shape = b.shape(c.input(0), c.input_info(1).dtype);
  if (rank < 0) {
    c.dx(0, b.reshape(tile_grad_by_element(b, c.dy(), c.input(0), c.input(1)), shape));
    return {};
  }
  if (rank > kRankMax / 2) {
    c.dx(0, b.reshape(tile_grad_by_dimension(b, c.dy(), shape, c.input(1), rank), shape));
    return {};
  }
  const Value split = b.reshape(b.op("Pack", {c.input(1), shape}, {{"axis", 1}}), b.ints({-1}));
  const Value axes = b.op("Range", {b.integer(0), b.op("Size", {split}), b.integer(2)});
  c.dx(0, b.reshape(b.sum(b.reshape(c.dy(), split), axes), shape));
  return {};
}

struct StretchArgs {
  Shape in;
  int64_t size = 0;
  Integers sizes;
  OutputSpec out;
};

// Bytes from one index of dimension i to the next, in a plain tensor.
int64_t stride(const Shape& shape, int i, int64_t size) { return shape.count(i + 1, shape.rank()) * size; }

Status tile_run(RunContext& c) {
  const auto& a = c.args<StretchArgs>();
  Integers::Buffer buffer;
  const auto multiples = a.sizes.get(c, buffer);
  int64_t dims[kRankMax];
  for (int i = 0; i < a.in.rank(); ++i) {
    const int64_t times = multiples[static_cast<size_t>(i)];
    if (times < 0 || __builtin_mul_overflow(a.in.dim(i), times, &dims[i])) {
      return c.error("multiple %d is %lld, for an input of shape %s", i, static_cast<long long>(times), a.in.text().c_str());
    }
  }
  const auto shape = Shape::make({dims, static_cast<size_t>(a.in.rank())});
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  DTG_ASSIGN(char* out, a.out.memory(c, shape.value()));
  if (shape.value().count() == 0) return {};
  cpu::Walk walk(a.size);
  for (int i = 0; i < a.in.rank(); ++i) {
    const int64_t to = stride(shape.value(), i, a.size);
    walk.add(multiples[static_cast<size_t>(i)], 0, a.in.dim(i) * to);
    walk.add(a.in.dim(i), stride(a.in, i, a.size), to);
  }
  walk.finish();
  cpu::copy_walk(c.pool(), walk, c.in<char>(0), out);
  return {};
}

template <SyncFn run>
Status extend_prepare(PrepareContext& c) {
  auto* a = c.args<StretchArgs>();
  a->in = c.input(0).shape;
  a->size = cell_bytes(c.input(0).dtype);
  DTG_TRY(a->sizes.prepare(c, 1));
  a->out.prepare(c, 0);
  // Nothing repeated, nothing added: the output is the input.
  if (a->sizes.known() && !a->out.dynamic && a->out.shape == a->in) {
    c.alias(0, 0);
    return {};
  }
  return c.sync(run);
}

// ---- BroadcastTo -------------------------------------------------------------------------------------------

Status broadcast_to_shape(InferContext& c) {
  DTG_ASSIGN(PartialShape target, c.shape_from_input(1));
  const PartialShape& in = c.input(0);
  if (in.has_rank() && target.has_rank()) {
    if (in.rank() > target.rank()) return c.error("%s cannot become %s: it has more dimensions", in.text().c_str(), target.text().c_str());
    for (int i = 0; i < in.rank(); ++i) {
      const int64_t from = in.dim(i), to = target.dim(i + target.rank() - in.rank());
      if (from > 1 && to >= 0 && to != from) return c.error("%s cannot become %s", in.text().c_str(), target.text().c_str());
    }
  }
  c.output(0, target);
  return {};
}

// d(input) = reshape(sum(dy, broadcast axes), shape(input))
Status broadcast_to_grad(GradContext& c) {
  Build& b = c.b();
  const Value shape = b.shape(c.input(0), c.input_info(1).dtype);
  const Value axes = b.op("BroadcastGradientArgs", {c.input(1), shape});
  const Value own = b.ok() ? axes.sibling(1) : axes;
  c.dx(0, b.reshape(b.sum(c.dy(), own, true), shape));
  return {};
}

Status broadcast_to_run(RunContext& c) {
  const auto& a = c.args<StretchArgs>();
  Integers::Buffer buffer;
  const auto shape = Shape::make(a.sizes.get(c, buffer));
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  const int lead = shape.value().rank() - a.in.rank();
  for (int i = 0; lead >= 0 && i < a.in.rank(); ++i) {
    if (a.in.dim(i) == 1 || a.in.dim(i) == shape.value().dim(i + lead)) continue;
    return c.error("%s cannot become %s", a.in.text().c_str(), shape.value().text().c_str());
  }
  if (lead < 0) return c.error("%s cannot become %s: it has more dimensions", a.in.text().c_str(), shape.value().text().c_str());
  DTG_ASSIGN(char* out, a.out.memory(c, shape.value()));
  cpu::Walk walk(a.size);
  for (int i = 0; i < shape.value().rank(); ++i) {
    const bool repeated = i < lead || a.in.dim(i - lead) == 1;
    walk.add(shape.value().dim(i), repeated ? 0 : stride(a.in, i - lead, a.size), stride(shape.value(), i, a.size));
  }
  walk.finish();
  cpu::copy_walk(c.pool(), walk, c.in<char>(0), out);
  return {};
}

// ---- Pad, PadV2 --------------------------------------------------------------------------------------------

Status pad_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 2));
  const PartialShape& in = c.input(0);
  const int64_t rows = c.input(1).dim(0), columns = c.input(1).dim(1);
  if (columns >= 0 && columns != 2) return c.error("paddings must have shape [rank, 2], but have %s", c.input(1).text().c_str());
  if (in.has_rank() && rows >= 0 && rows != in.rank()) {
    return c.error("%lld rows of paddings for an input of shape %s", static_cast<long long>(rows), in.text().c_str());
  }
  if (c.num_inputs() > 2) DTG_TRY(c.require_rank(2, 0));
  const KnownIntegers paddings = known_integers(c, 1);
  for (int64_t padding : paddings.span()) {
    if (padding < 0) return c.error("a padding is %lld; it must be 0 or more", static_cast<long long>(padding));
  }
  if (!in.has_rank()) return {};
  PartialShape out = PartialShape::of_rank(in.rank());
  for (int i = 0; paddings.known && i < in.rank(); ++i) {
    const auto at = static_cast<size_t>(2 * i);
    int64_t dim = in.dim(i);
    if (dim >= 0 &&
        (__builtin_add_overflow(dim, paddings.values[at], &dim) || __builtin_add_overflow(dim, paddings.values[at + 1], &dim))) {
      return c.error("dimension %d is too large once padded", i);
    }
    out.set_dim(i, dim);
  }
  c.output(0, out);
  return {};
}

// d(input) = slice(dy, paddings[:, 0], shape(input))
Status pad_grad(GradContext& c) {
  Build& b = c.b();
  const DType dtype = c.input_info(1).dtype;
  const Value before = b.op("Slice", {c.input(1), b.ints({0, 0}), b.ints({-1, 1})});
  c.dx(0, b.op("Slice", {c.dy(), b.reshape(before, b.ints({-1})), b.shape(c.input(0), dtype)}));
  return {};
}

struct PadGeometry {
  Shape out;
  std::array<int64_t, kRankMax> before{}, after{};
};

Result<PadGeometry> resolve_pad(const Shape& in, std::span<const int64_t> paddings) {
  PadGeometry g;
  int64_t dims[kRankMax];
  for (int i = 0; i < in.rank(); ++i) {
    const auto at = static_cast<size_t>(i);
    g.before[at] = paddings[2 * at];
    g.after[at] = paddings[2 * at + 1];
    if (g.before[at] < 0 || g.after[at] < 0 || __builtin_add_overflow(in.dim(i), g.before[at], &dims[i]) ||
        __builtin_add_overflow(dims[i], g.after[at], &dims[i])) {
      return invalid_argument("paddings of dimension %d are %lld and %lld", i, static_cast<long long>(g.before[at]),
                              static_cast<long long>(g.after[at]));
    }
  }
  DTG_ASSIGN(g.out, Shape::make({dims, static_cast<size_t>(in.rank())}));
  return g;
}

// The border of dimension d: `width` planes from `first` on, inside the dimensions before d, across those after.
void fill_border(Pool& pool, const PadGeometry& g, const Shape& in, int64_t size, int d, int64_t first, int64_t width, const char* value,
                 char* out) {
  if (width == 0) return;
  cpu::Walk walk(size);
  char* to = out + first * stride(g.out, d, size);
  for (int i = 0; i < g.out.rank(); ++i) {
    const int64_t step = stride(g.out, i, size);
    if (i < d) to += g.before[static_cast<size_t>(i)] * step;
    walk.add(i < d ? in.dim(i) : i == d ? width : g.out.dim(i), 0, step);
  }
  cpu::copy_walk(pool, walk, value, to);
}

Status pad_run(RunContext& c) {
  const auto& a = c.args<StretchArgs>();
  Integers::Buffer buffer;
  const auto resolved = resolve_pad(a.in, a.sizes.get(c, buffer));
  if (!resolved.ok()) return c.error("%s", resolved.status().message().c_str());
  const PadGeometry& g = resolved.value();
  DTG_ASSIGN(char* out, a.out.memory(c, g.out));
  if (g.out.count() == 0) return {};
  const char zero[16] = {};
  const char* value = c.node().inputs.size() > 2 ? c.in<char>(2) : zero;
  cpu::Walk walk(a.size);
  char* inner = out;
  for (int i = 0; i < a.in.rank(); ++i) {
    const int64_t before = g.before[static_cast<size_t>(i)], step = stride(g.out, i, a.size);
    fill_border(c.pool(), g, a.in, a.size, i, 0, before, value, out);
    fill_border(c.pool(), g, a.in, a.size, i, before + a.in.dim(i), g.after[static_cast<size_t>(i)], value, out);
    walk.add(a.in.dim(i), stride(a.in, i, a.size), step);
    inner += before * step;
  }
  walk.finish();
  cpu::copy_walk(c.pool(), walk, c.in<char>(0), inner);
  return {};
}

}  // namespace

void register_pad_tile(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("Tile")
              .input("input: T")
              .input("multiples: Tmultiples", {.rank = 1})
              .output("output: T")
              .attr("T: type")
              .attr("Tmultiples: {int32, int64} = int32")
              .shape(tile_shape)
              .forwards()
              .gradient(tile_grad)
              .doc("The input repeated multiples[i] times along each dimension i."));
  kernels.add({.op = "Tile", .types = {{"T", kMovable}}, .prepare = extend_prepare<tile_run>});
  ops.add(OpDef::make("BroadcastTo")
              .input("input: T")
              .input("shape: Tidx", {.rank = 1})
              .output("output: T")
              .attr("T: type")
              .attr("Tidx: {int32, int64} = int32")
              .shape(broadcast_to_shape)
              .forwards()
              .gradient(broadcast_to_grad)
              .doc("The input broadcast to a shape."));
  kernels.add({.op = "BroadcastTo", .types = {{"T", kMovable}}, .prepare = extend_prepare<broadcast_to_run>});
  ops.add(OpDef::make("Pad")
              .input("input: T")
              .input("paddings: Tpaddings", {.rank = 2})
              .output("output: T")
              .attr("T: type")
              .attr("Tpaddings: {int32, int64} = int32")
              .shape(pad_shape)
              .forwards()
              .gradient(pad_grad)
              .doc("The input with paddings[i, 0] zeros before and paddings[i, 1] after it along each dimension i."));
  kernels.add({.op = "Pad", .types = {{"T", kMovable}}, .prepare = extend_prepare<pad_run>});
  ops.add(OpDef::make("PadV2")
              .input("input: T")
              .input("paddings: Tpaddings", {.rank = 2})
              .input("constant_values: T", {.rank = 0})
              .output("output: T")
              .attr("T: type")
              .attr("Tpaddings: {int32, int64} = int32")
              .shape(pad_shape)
              .forwards()
              .gradient(pad_grad)
              .doc("The input with copies of constant_values around it."));
  kernels.add({.op = "PadV2", .types = {{"T", kMovable}}, .prepare = extend_prepare<pad_run>});
}

}  // namespace dtg::ops
