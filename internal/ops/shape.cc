// Shapes as values and values under another shape: Shape, ShapeN, Size, Rank, Reshape, ExpandDims, Squeeze,
// EnsureShape, and the arithmetic of broadcasting (BroadcastArgs, BroadcastGradientArgs). Reshaping moves no
// bytes: the output is the input, except where the shape is known only in run and the planner could not
// foresee that both share memory.
#include <limits>

#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/known.h"
#include "ops/simplify.h"

namespace dtg::ops {
namespace {

// d(input) = reshape(dy, shape(input)), for every op that only renames dimensions.
Status reshape_back(GradContext& c) {
  c.dx(0, c.b().reshape(c.dy(), c.b().shape(c.input(0))));
  return {};
}

void store(void* out, DType dtype, int64_t i, int64_t value) {
  if (dtype == DType::i32) static_cast<int32_t*>(out)[i] = static_cast<int32_t>(value);
  else static_cast<int64_t*>(out)[i] = value;
}

// ---- Reshape, ExpandDims, Squeeze, EnsureShape -------------------------------------------------------------

// The shape that `dims` (at most one -1) asks of `count` elements.
Result<Shape> reshape_target(int64_t count, std::span<const int64_t> dims) {
  if (dims.size() > kRankMax) return invalid_argument("%zu dimensions asked for, at most %d are supported", dims.size(), kRankMax);
  int64_t filled[kRankMax];
  int64_t known = 1;
  int open = -1;
  for (size_t i = 0; i < dims.size(); ++i) {
    filled[i] = dims[i];
    if (dims[i] == -1) {
      if (open >= 0) return invalid_argument("only one dimension may be -1, but dimensions %d and %zu are", open, i);
      open = static_cast<int>(i);
    } else if (dims[i] < 0) {
      return invalid_argument("dimension %zu is %lld; it must be -1 or more", i, static_cast<long long>(dims[i]));
    } else if (__builtin_mul_overflow(known, dims[i], &known)) {
      return invalid_argument("the shape asked for has too many elements");
    }
  }
  if (open >= 0) {
    if (known == 0) return invalid_argument("dimension %d cannot be inferred when another one is 0", open);
    if (count % known != 0) {
      return invalid_argument("%lld elements do not divide into groups of %lld, so the -1 cannot be inferred",
                              static_cast<long long>(count), static_cast<long long>(known));
    }
    filled[open] = count / known;
  } else if (known != count) {
    return invalid_argument("the input has %lld elements, the shape asked for has %lld", static_cast<long long>(count),
                            static_cast<long long>(known));
  }
  return Shape::make({filled, dims.size()});
}

Status reshape_shape(InferContext& c) {
  DTG_ASSIGN(PartialShape target, c.shape_from_input(1));
  int open = 0;
  for (int64_t dim : target.dims()) open += dim < 0;
  const auto in = c.input(0).to_shape();
  // Two open dimensions are left to run: the value of the shape input may not be what it seems here.
  if (c.constant(1).valid() && in.ok() && open <= 1) {
    auto shape = reshape_target(in.value().count(), target.dims());
    if (!shape.ok()) return c.error("%s to %s: %s", c.input(0).text().c_str(), target.text().c_str(), shape.status().message().c_str());
    target = shape.take();
  }
  c.output(0, target);
  return {};
}

struct ReshapeArgs {
  int64_t count = 0;
  int64_t bytes = 0;
  Integers target;
  OutputSpec out;
};

Status reshape_run(RunContext& c) {
  const auto& a = c.args<ReshapeArgs>();
  Integers::Buffer buffer;
  const auto shape = reshape_target(a.count, a.target.get(c, buffer));
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  DTG_ASSIGN(char* out, a.out.memory(c, shape.value()));
  cpu::copy_row(out, c.in<char>(0), a.bytes);
  return {};
}

Status reshape_prepare(PrepareContext& c) {
  if (!c.output(0).dynamic) {
    if (c.input(0).shape.count() != c.output(0).shape.count()) {
      return c.error("%s does not fit in %s", c.input(0).shape.text().c_str(), c.output(0).shape.text().c_str());
    }
    c.alias(0, 0);
    return {};
  }
  auto* a = c.args<ReshapeArgs>();
  a->count = c.input(0).shape.count();
  a->bytes = c.input(0).bytes();
  DTG_TRY(a->target.prepare(c, 1));
  a->out.prepare(c, 0);
  return c.sync(reshape_run);
}

Status expand_dims_shape(InferContext& c) {
  const KnownIntegers axis = known_integers(c, 1);
  const PartialShape& in = c.input(0);
  if (c.input(1).complete() && c.input(1).to_shape().ok() && c.input(1).to_shape().value().count() != 1) {
    return c.error("the axis must be one integer, but has shape %s", c.input(1).text().c_str());
  }
  if (!in.has_rank()) return {};
  if (!axis.known) {
    c.output(0, in.rank() < kRankMax ? PartialShape::of_rank(in.rank() + 1) : PartialShape::unknown());
    return {};
  }
  const auto at = resolve_axis(axis.values[0], in.rank() + 1);
  if (!at.ok()) return c.error("%s", at.status().message().c_str());
  PartialShape out = PartialShape::of_rank(0);
  for (int i = 0; i <= in.rank(); ++i) {
    if (i == at.value()) DTG_TRY(in_op(c.node(), out.append(1)));
    if (i < in.rank()) DTG_TRY(in_op(c.node(), out.append(in.dim(i))));
  }
  c.output(0, out);
  return {};
}

struct ExpandDimsArgs {
  Shape in;
  int64_t bytes = 0;
  Integers axis;
  OutputSpec out;
};

Status expand_dims_run(RunContext& c) {
  const auto& a = c.args<ExpandDimsArgs>();
  Integers::Buffer buffer;
  const auto at = resolve_axis(a.axis.get(c, buffer)[0], a.in.rank() + 1);
  if (!at.ok()) return c.error("%s", at.status().message().c_str());
  int64_t dims[kRankMax + 1];
  for (int i = 0; i <= a.in.rank(); ++i) dims[i] = i == at.value() ? 1 : a.in.dim(i < at.value() ? i : i - 1);
  DTG_ASSIGN(const Shape shape, Shape::make({dims, static_cast<size_t>(a.in.rank() + 1)}));
  DTG_ASSIGN(char* out, a.out.memory(c, shape));
  cpu::copy_row(out, c.in<char>(0), a.bytes);
  return {};
}

Status expand_dims_prepare(PrepareContext& c) {
  if (!c.output(0).dynamic) return reshape_prepare(c);
  if (c.input(1).shape.count() != 1) return c.error("the axis must be one integer");
  auto* a = c.args<ExpandDimsArgs>();
  a->in = c.input(0).shape;
  a->bytes = c.input(0).bytes();
  DTG_TRY(a->axis.prepare(c, 1));
  a->out.prepare(c, 0);
  return c.sync(expand_dims_run);
}

Status squeeze_shape(InferContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return {};
  bool listed[kRankMax] = {};
  const auto& dims = c.attr<std::vector<int64_t>>("squeeze_dims");
  for (int64_t dim : dims) {
    const auto at = resolve_axis(dim, in.rank());
    if (!at.ok()) return c.error("squeeze_dims: %s", at.status().message().c_str());
    listed[at.value()] = true;
  }
  PartialShape out = PartialShape::of_rank(0);
  for (int i = 0; i < in.rank(); ++i) {
    const bool squeeze = dims.empty() ? in.dim(i) == 1 : listed[i];
    // Without a list, an open dimension leaves even the rank open.
    if (dims.empty() && in.dim(i) < 0) return {};
    if (squeeze && in.dim(i) >= 0 && in.dim(i) != 1) {
      return c.error("dimension %d is %lld; only dimensions of 1 can be squeezed", i, static_cast<long long>(in.dim(i)));
    }
    if (!squeeze) DTG_TRY(out.append(in.dim(i)));
  }
  c.output(0, out);
  return {};
}

Status ensure_shape_shape(InferContext& c) {
  auto merged = PartialShape::merge(c.input(0), c.attr<PartialShape>("shape"), "the input and the shape it must have");
  if (!merged.ok()) return c.error("%s", merged.status().message().c_str());
  c.output(0, merged.take());
  return {};
}

Status ensure_shape_grad(GradContext& c) {
  c.dx(0, c.dy());
  return {};
}

Status ensure_shape_prepare(PrepareContext& c) {
  if (!c.attr<PartialShape>("shape").admits(c.input(0).shape)) {
    return c.error("the input has shape %s, it must be %s", c.input(0).shape.text().c_str(), c.attr<PartialShape>("shape").text().c_str());
  }
  c.alias(0, 0);
  return {};
}

// ---- Shape, ShapeN, Size, Rank -----------------------------------------------------------------------------

Status shape_shape(InferContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.output(i, PartialShape::vector(c.input(i).rank()));
  return {};
}

// The integers to write to each output, made at prepare: inputs always have their shapes by then.
struct ShapeValues {
  DType dtype = DType::i32;
  int outputs = 0;
  const int64_t* const* values = nullptr;
  const int64_t* counts = nullptr;
};

Status shape_values_run(RunContext& c) {
  const auto& a = c.args<ShapeValues>();
  for (int o = 0; o < a.outputs; ++o) {
    for (int64_t i = 0; i < a.counts[o]; ++i) store(c.out<char>(o), a.dtype, i, a.values[o][i]);
  }
  return {};
}

Status check_fits(PrepareContext& c, int64_t value) {
  if (c.output(0).dtype != DType::i32 || value <= std::numeric_limits<int32_t>::max()) return {};
  return c.error("%lld does not fit in int32; ask for out_type int64", static_cast<long long>(value));
}

Status prepare_shape_values(PrepareContext& c, std::span<const std::vector<int64_t>> values) {
  auto* a = c.args<ShapeValues>();
  std::vector<const int64_t*> rows;
  std::vector<int64_t> counts;
  for (const auto& row : values) {
    for (int64_t value : row) DTG_TRY(check_fits(c, value));
    rows.push_back(c.arena().copy(std::span<const int64_t>(row)).data());
    counts.push_back(static_cast<int64_t>(row.size()));
  }
  a->dtype = c.output(0).dtype;
  a->outputs = static_cast<int>(values.size());
  a->values = c.arena().copy(std::span<const int64_t* const>(rows)).data();
  a->counts = c.arena().copy(std::span<const int64_t>(counts)).data();
  return c.sync(shape_values_run);
}

Status shape_prepare(PrepareContext& c) {
  std::vector<std::vector<int64_t>> values;
  for (int i = 0; i < c.num_outputs(); ++i) {
    const auto dims = c.input(i).shape.dims();
    values.emplace_back(dims.begin(), dims.end());
  }
  return prepare_shape_values(c, values);
}

Status size_prepare(PrepareContext& c) {
  const std::vector<int64_t> values[] = {{c.input(0).shape.count()}};
  return prepare_shape_values(c, values);
}

Status rank_prepare(PrepareContext& c) {
  const std::vector<int64_t> values[] = {{c.input(0).shape.rank()}};
  return prepare_shape_values(c, values);
}

// ---- BroadcastArgs, BroadcastGradientArgs ------------------------------------------------------------------

// Two shapes as integers, aligned at their last dimension.
struct ShapePair {
  const void* data[2];
  int64_t count[2];
  DType dtype;
  int64_t rank() const { return std::max(count[0], count[1]); }
  int64_t dim(int which, int64_t i) const {
    const int64_t at = i - (rank() - count[which]);
    return at < 0 ? 1 : integer_at(data[which], dtype, at);
  }
  // The broadcast dimension, or -1 when the two contradict.
  int64_t both(int64_t i) const {
    const int64_t a = dim(0, i), b = dim(1, i);
    return a == b || b == 1 ? a : a == 1 ? b : -1;
  }
  bool same() const {
    if (count[0] != count[1]) return false;
    for (int64_t i = 0; i < count[0]; ++i) {
      if (dim(0, i) != dim(1, i)) return false;
    }
    return true;
  }
  // Is dimension i of shape `which` one that a gradient must be summed over?
  bool reduced(int which, int64_t i) const { return dim(which, i) == 1; }
};

Status broadcast_args_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 1));
  DTG_TRY(c.require_rank(1, 1));
  const int64_t a = c.input(0).dim(0), b = c.input(1).dim(0);
  c.output(0, PartialShape::vector(a < 0 || b < 0 ? -1 : std::max(a, b)));
  return {};
}

struct ShapePairArgs {
  int64_t count[2] = {};
  DType dtype = DType::i32;
  OutputSpec out[2];
};

ShapePair pair_of(RunContext& c, const ShapePairArgs& a) { return {{c.in<char>(0), c.in<char>(1)}, {a.count[0], a.count[1]}, a.dtype}; }

Status check_pair(RunContext& c, const ShapePair& pair) {
  for (int64_t i = 0; i < pair.rank(); ++i) {
    if (pair.both(i) >= 0) continue;
    return c.error("the shapes do not broadcast: %lld and %lld in dimension %lld", static_cast<long long>(pair.dim(0, i)),
                   static_cast<long long>(pair.dim(1, i)), static_cast<long long>(i));
  }
  return {};
}

Status broadcast_args_run(RunContext& c) {
  const auto& a = c.args<ShapePairArgs>();
  const ShapePair pair = pair_of(c, a);
  DTG_TRY(check_pair(c, pair));
  DTG_ASSIGN(char* out, a.out[0].memory(c, Shape::of({pair.rank()})));
  for (int64_t i = 0; i < pair.rank(); ++i) store(out, a.dtype, i, pair.both(i));
  return {};
}

Status broadcast_gradient_args_run(RunContext& c) {
  const auto& a = c.args<ShapePairArgs>();
  const ShapePair pair = pair_of(c, a);
  DTG_TRY(check_pair(c, pair));
  const int64_t rank = pair.same() ? 0 : pair.rank();
  for (int which = 0; which < 2; ++which) {
    int64_t count = 0;
    for (int64_t i = 0; i < rank; ++i) count += pair.reduced(which, i);
    DTG_ASSIGN(char* out, a.out[which].memory(c, Shape::of({count})));
    int64_t at = 0;
    for (int64_t i = 0; i < rank; ++i) {
      if (pair.reduced(which, i)) store(out, a.dtype, at++, i);
    }
  }
  return {};
}

template <SyncFn run>
Status shape_pair_prepare(PrepareContext& c) {
  auto* a = c.args<ShapePairArgs>();
  for (int i = 0; i < 2; ++i) {
    if (c.input(i).shape.rank() != 1) return c.error("input %d must be a vector, but has shape %s", i, c.input(i).shape.text().c_str());
    a->count[i] = c.input(i).shape.count();
  }
  a->dtype = c.input(0).dtype;
  for (int o = 0; o < c.num_outputs(); ++o) a->out[o].prepare(c, o);
  return c.sync(run);
}

Status broadcast_gradient_args_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 1));
  DTG_TRY(c.require_rank(1, 1));
  c.output(0, PartialShape::vector(-1));
  c.output(1, PartialShape::vector(-1));
  const Tensor a = c.constant(0), b = c.constant(1);
  if (!a.valid() || !b.valid()) return {};
  const ShapePair pair{{a.data(), b.data()}, {a.count(), b.count()}, a.dtype()};
  int64_t counts[2] = {0, 0};
  const bool same = pair.same();
  for (int64_t i = 0; i < pair.rank(); ++i) {
    if (pair.both(i) < 0) return {};  // run says what is wrong
    for (int which = 0; which < 2; ++which) counts[which] += !same && pair.reduced(which, i);
  }
  for (int o = 0; o < 2; ++o) c.output(o, PartialShape::vector(counts[o]));
  return {};
}

void register_broadcast_args(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("BroadcastArgs")
              .input("s0: T")
              .input("s1: T")
              .output("r0: T")
              .attr("T: {int32, int64} = int32")
              .shape(broadcast_args_shape)
              .no_gradient()
              .doc("The shape that two shapes broadcast to."));
  kernels.add({.op = "BroadcastArgs", .types = {{"T", kIndex}}, .prepare = shape_pair_prepare<broadcast_args_run>});
  ops.add(OpDef::make("BroadcastGradientArgs")
              .input("s0: T")
              .input("s1: T")
              .output("r0: T")
              .output("r1: T")
              .attr("T: {int32, int64} = int32")
              .shape(broadcast_gradient_args_shape)
              .no_gradient()
              .doc("The axes over which gradients of two broadcast operands must be summed."));
  kernels.add({.op = "BroadcastGradientArgs", .types = {{"T", kIndex}}, .prepare = shape_pair_prepare<broadcast_gradient_args_run>});
}

void register_shape_values(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("Shape")
              .input("input: T")
              .output("output: out_type")
              .attr("T: type")
              .attr("out_type: {int32, int64} = int32")
              .shape(shape_shape)
              .value(shape_value)
              .no_gradient()
              .doc("The dimensions of the input as a vector."));
  kernels.add({.op = "Shape", .prepare = shape_prepare});
  ops.add(OpDef::make("ShapeN")
              .input("input: N * T")
              .output("output: N * out_type")
              .attr("N: int >= 1")
              .attr("T: type")
              .attr("out_type: {int32, int64} = int32")
              .shape(shape_shape)
              .value(shape_value)
              .no_gradient()
              .doc("The dimensions of each input as vectors."));
  kernels.add({.op = "ShapeN", .prepare = shape_prepare});
  ops.add(OpDef::make("Size")
              .input("input: T")
              .output("output: out_type")
              .attr("T: type")
              .attr("out_type: {int32, int64} = int32")
              .shape(scalar_shape)
              .value(size_value)
              .no_gradient()
              .doc("The number of elements of the input."));
  kernels.add({.op = "Size", .prepare = size_prepare});
  ops.add(OpDef::make("Rank")
              .input("input: T")
              .output("output: int32")
              .attr("T: type")
              .shape(scalar_shape)
              .value(rank_value)
              .no_gradient()
              .doc("The number of dimensions of the input."));
  kernels.add({.op = "Rank", .prepare = rank_prepare});
}

}  // namespace

void register_shape(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("Reshape")
              .input("tensor: T")
              .input("shape: Tshape")
              .output("output: T")
              .attr("T: type")
              .attr("Tshape: {int32, int64} = int32")
              .shape(reshape_shape)
              .forwards()
              .value(reshape_value)
              .simplify(simplify_reshape)
              .gradient(reshape_back)
              .doc("The same elements under another shape; one dimension may be -1 and is inferred."));
  kernels.add({.op = "Reshape", .types = {{"T", kMovable}}, .prepare = reshape_prepare});
  ops.add(OpDef::make("ExpandDims")
              .input("input: T")
              .input("dim: Tdim")
              .output("output: T")
              .attr("T: type")
              .attr("Tdim: {int32, int64} = int32")
              .shape(expand_dims_shape)
              .forwards()
              .value(reshape_value)
              .gradient(reshape_back)
              .doc("Inserts a dimension of 1 before axis dim."));
  kernels.add({.op = "ExpandDims", .types = {{"T", kMovable}}, .prepare = expand_dims_prepare});
  ops.add(OpDef::make("Squeeze")
              .input("input: T")
              .output("output: T")
              .attr("T: type")
              .attr("squeeze_dims: list(int) >= 0 = []")
              .shape(squeeze_shape)
              .forwards()
              .value(reshape_value)
              .gradient(reshape_back)
              .doc("Removes dimensions of 1: those listed, or all."));
  kernels.add({.op = "Squeeze", .types = {{"T", kMovable}}, .prepare = reshape_prepare});
  ops.add(OpDef::make("EnsureShape")
              .input("input: T")
              .output("output: T")
              .attr("shape: shape")
              .attr("T: type")
              .shape(ensure_shape_shape)
              .forwards()
              .gradient(ensure_shape_grad)
              .simplify(simplify_ensured)
              .doc("The input, once it is sure to have the shape."));
  kernels.add({.op = "EnsureShape", .types = {{"T", kMovable}}, .prepare = ensure_shape_prepare});
  register_shape_values(ops, kernels);
  register_broadcast_args(ops, kernels);
}

}  // namespace dtg::ops
