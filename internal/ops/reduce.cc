// Reductions over any set of axes: Sum, Mean, Prod, Max, Min, All, Any. The axes are usually constants and
// then everything is planned once; otherwise each run reads them, plans on its stack and leases the output.
#include "ops/reduce.h"

#include <algorithm>
#include <bit>

#include "device/cpu/elementwise.h"
#include "device/cpu/reduce.h"
#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/fuse.h"

namespace dtg::ops {

Result<int> read_axis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return invalid_argument("axis %lld of a tensor of rank %d: it must be in [%d, %d)", static_cast<long long>(axis), rank, -rank, rank);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Result<uint32_t> read_axes(const void* values, DType dtype, int64_t count, int rank) {
  uint32_t axes = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t given = dtype == DType::i32 ? static_cast<const int32_t*>(values)[i] : static_cast<const int64_t*>(values)[i];
    DTG_ASSIGN(const int axis, read_axis(given, rank));
    if (axes >> axis & 1u) return invalid_argument("axis %d is given twice", axis);
    axes |= 1u << axis;
  }
  return axes;
}

namespace {

// ---- shape -------------------------------------------------------------------------------------------------

PartialShape reduced_shape(const PartialShape& in, uint32_t axes, bool keep_dims) {
  PartialShape out = PartialShape::of_rank(keep_dims ? in.rank() : in.rank() - std::popcount(axes));
  for (int d = 0, o = 0; d < in.rank(); ++d) {
    const bool reduced = (axes >> d & 1u) != 0;
    if (reduced && keep_dims) out.set_dim(o++, 1);
    else if (!reduced) out.set_dim(o++, in.dim(d));
  }
  return out;
}

Status reduce_shape(InferContext& c) {
  const PartialShape& in = c.input(0);
  const PartialShape& axes_shape = c.input(1);
  if (axes_shape.has_rank() && axes_shape.rank() > 1) {
    return c.error("the axes must be a scalar or a vector, but have shape %s", axes_shape.text().c_str());
  }
  const bool keep_dims = c.boolean("keep_dims");
  if (!in.has_rank()) return {};
  const Tensor axes = c.constant(1);
  if (axes.valid()) {
    const auto mask = read_axes(axes.data(), axes.dtype(), axes.count(), in.rank());
    if (!mask.ok()) return c.error("%s", mask.status().message().c_str());
    c.output(0, reduced_shape(in, mask.value(), keep_dims));
    return {};
  }
  if (keep_dims) c.output(0, PartialShape::of_rank(in.rank()));
  else if (in.rank() == 0) c.output(0, PartialShape::scalar());
  // As many distinct axes as there are dimensions leave none.
  else if (axes_shape.has_rank() && axes_shape.rank() == 1 && axes_shape.dim(0) == in.rank()) c.output(0, PartialShape::scalar());
  return {};
}

// ---- gradients ---------------------------------------------------------------------------------------------

// bool vector: is dimension d reduced?
Value reduced_mask(GradContext& c, Value shape) {
  Build& b = c.b();
  const Value rank = b.op("Size", {shape});
  const Value column = b.reshape(b.cast(c.input(1), DType::i32), b.ints({-1, 1}));
  const Value axes = b.op("FloorMod", {b.add(column, rank), rank});
  const Value all = b.op("Range", {b.integer(0), rank, b.integer(1)});
  return b.op("Any", {b.op("Equal", {axes, all}), b.integer(0)});
}

// The shape of the output as it is with keep_dims.
Value kept_shape(GradContext& c) {
  Build& b = c.b();
  if (c.attr<bool>("keep_dims")) return b.shape(c.output(0));
  const PartialShape& in = c.input_info(0).shape;
  const Tensor axes = b.graph().constant_value(c.input(1));
  if (in.complete() && axes.valid()) {
    const auto mask = read_axes(axes.data(), axes.dtype(), axes.count(), in.rank());
    if (mask.ok()) return b.ints(reduced_shape(in, mask.value(), true).dims());
  }
  const Value shape = b.shape(c.input(0));
  return b.op("SelectV2", {reduced_mask(c, shape), b.integer(1), shape});
}

Value with_kept_dims(GradContext& c, Value value, Value kept) { return c.attr<bool>("keep_dims") ? value : c.b().reshape(value, kept); }

Value input_shape(GradContext& c) {
  const PartialShape& in = c.input_info(0).shape;
  return in.complete() ? c.b().ints(in.dims()) : c.b().shape(c.input(0));
}

// dx = dy at every element that was added
Status sum_grad(GradContext& c) {
  const Value g = with_kept_dims(c, c.dy(), kept_shape(c));
  c.dx(0, c.b().op("BroadcastTo", {g, input_shape(c)}));
  return {};
}

// How many elements make one of the output.
Value reduced_count(GradContext& c, DType dtype) {
  Build& b = c.b();
  const auto in = c.input_info(0).shape.to_shape(), out = c.output_info(0).shape.to_shape();
  if (in.ok() && out.ok()) {
    return b.scalar(dtype, static_cast<double>(in.value().count() / std::max<int64_t>(out.value().count(), 1)));
  }
  const Value outputs = b.op("Maximum", {b.op("Size", {c.output(0)}), b.integer(1)});
  return b.cast(b.op("FloorDiv", {b.op("Size", {c.input(0)}), outputs}), dtype);
}

// dx = dy / n at every element. Dividing before spreading gives the same bits for less work.
Status mean_grad(GradContext& c) {
  Build& b = c.b();
  const Value share = b.div(c.dy(), reduced_count(c, c.output_info(0).dtype));
  c.dx(0, b.op("BroadcastTo", {with_kept_dims(c, share, kept_shape(c)), input_shape(c)}));
  return {};
}

// dx = dy shared equally by the elements that are the extreme
Status extreme_grad(GradContext& c) {
  Build& b = c.b();
  const Value kept = kept_shape(c);
  const Value y = with_kept_dims(c, c.output(0), kept), g = with_kept_dims(c, c.dy(), kept);
  const Value chosen = b.cast(b.op("Equal", {y, c.input(0)}), b.info(g).dtype);
  const Value count = with_kept_dims(c, b.sum(chosen, c.input(1), c.attr<bool>("keep_dims")), kept);
  c.dx(0, b.mul(b.div(chosen, count), g));
  return {};
}

// The product of the others along one axis: what lies before times what lies behind.
Value product_of_others(Build& b, Value x, Value axis) {
  const Value before = b.op("Cumprod", {x, axis}, {{"exclusive", true}});
  return b.mul(before, b.op("Cumprod", {x, axis}, {{"exclusive", true}, {"reverse", true}}));
}

// Axes that only a run knows: the reduced dimensions are brought to the front and taken as one.
Value late_prod_grad(GradContext& c, Value g) {
  Build& b = c.b();
  const Value shape = b.shape(c.input(0)), mask = reduced_mask(c, shape);
  const Value all = b.ints({-1}), zero = b.integer(0), one = b.integer(1);
  const auto places = [&](Value of) { return b.reshape(b.cast(b.op("Where", {of}), DType::i32), all); };
  const Value order = b.op("ConcatV2", {places(mask), places(b.op("LogicalNot", {mask})), zero});
  // Where each dimension went: the place of d in the order.
  const Value range = b.op("Range", {zero, b.op("Size", {shape}), one});
  const Value match = b.op("Equal", {order, b.op("ExpandDims", {range, one})});
  const Value back = b.sum(b.mul(b.cast(match, DType::i32), range), one);
  const Value front = b.op("Transpose", {c.input(0), order});
  const Value together = b.op("Prod", {b.op("SelectV2", {mask, shape, one}), zero});
  const Value apart = b.op("Prod", {b.op("SelectV2", {mask, one, shape}), zero});
  const Value flat = b.reshape(front, b.op("Pack", {together, apart}, {{"axis", 0}}));
  const Value others = b.reshape(product_of_others(b, flat, zero), b.shape(front));
  return b.mul(g, b.op("Transpose", {others, back}));
}

// dx = dy times the product of the others. Axis by axis: the others along this one, times the others
// among the products along the axes that are done.
Status prod_grad(GradContext& c) {
  Build& b = c.b();
  const PartialShape& in = c.input_info(0).shape;
  const Tensor axes = b.graph().constant_value(c.input(1));
  Value total = with_kept_dims(c, c.dy(), kept_shape(c));
  if (!in.has_rank() || !axes.valid()) {
    c.dx(0, late_prod_grad(c, total));
    return {};
  }
  DTG_ASSIGN(const uint32_t mask, read_axes(axes.data(), axes.dtype(), axes.count(), in.rank()));
  Value rest = c.input(0);
  for (int d = 0; d < in.rank(); ++d) {
    if (!(mask >> d & 1u)) continue;
    const Value axis = b.integer(d);
    total = b.mul(product_of_others(b, rest, axis), total);
    rest = b.op("Prod", {rest, axis}, {{"keep_dims", true}});
  }
  c.dx(0, total);
  return {};
}

// dx = x dy / y
Status euclidean_grad(GradContext& c) {
  Build& b = c.b();
  const Value kept = kept_shape(c);
  const Value y = with_kept_dims(c, c.output(0), kept), g = with_kept_dims(c, c.dy(), kept);
  c.dx(0, b.div(c.input(0), b.div(y, g)));
  return {};
}

// ---- kernel ------------------------------------------------------------------------------------------------

struct ReduceArgs {
  cpu::ReducePlan plan;
  // For axes known at run time only:
  Shape in;
  cpu::Reduction reduction = cpu::Reduction::sum;
  DType dtype = DType::invalid, axes_dtype = DType::invalid;
  int64_t axes = 0;
  bool keep_dims = false, lease = false;
};

Status reduce_run(RunContext& c) {
  const auto& args = c.args<ReduceArgs>();
  cpu::run_reduce(args.plan, c.pool(), c.in<void>(0), c.out<void>(0), c.workspace());
  return {};
}

Status late_reduce_run(RunContext& c) {
  const auto& args = c.args<ReduceArgs>();
  const auto axes = read_axes(c.in<void>(1), args.axes_dtype, args.axes, args.in.rank());
  if (!axes.ok()) return c.error("%s", axes.status().message().c_str());
  void* out = c.out<void>(0);
  if (args.lease) {
    DTG_ASSIGN(const Shape shape, reduced_shape(args.in, axes.value(), args.keep_dims).to_shape());
    DTG_ASSIGN(out, c.lease_output(0, args.dtype, shape));
  }
  const cpu::ReducePlan plan = cpu::plan_reduce(args.reduction, args.dtype, args.in, axes.value());
  cpu::run_reduce(plan, c.pool(), c.in<void>(0), out, c.workspace());
  return {};
}

// The most that any axes need.
Bytes late_workspace(const ReduceArgs& args) {
  Bytes most;
  for (uint32_t mask = 0; mask < 1u << args.in.rank(); ++mask) {
    most = std::max(most, cpu::plan_reduce(args.reduction, args.dtype, args.in, mask).workspace());
  }
  return most;
}

Status late_prepare(PrepareContext& c, ReduceArgs& args) {
  const auto& axes = c.input(1);
  args.in = c.input(0).shape;
  args.axes_dtype = axes.dtype;
  args.axes = axes.shape.count();
  args.keep_dims = c.boolean("keep_dims");
  args.lease = c.output(0).dynamic;
  c.workspace(late_workspace(args));
  return c.sync(late_reduce_run);
}

Status reduce_prepare(PrepareContext& c, cpu::Reduction reduction) {
  const auto& in = c.input(0);
  auto& args = *c.args<ReduceArgs>();
  args.reduction = reduction;
  args.dtype = in.dtype;
  const Tensor axes = c.constant(1);
  if (!axes.valid()) return late_prepare(c, args);
  const auto mask = read_axes(axes.data(), axes.dtype(), axes.count(), in.shape.rank());
  if (!mask.ok()) return c.error("%s", mask.status().message().c_str());
  args.plan = cpu::plan_reduce(reduction, in.dtype, in.shape, mask.value());
  // Nothing but dimensions of 1 is reduced: the elements stay what they are.
  if (args.plan.count == 0 && args.plan.reduced == 1 && !c.output(0).dynamic) {
    c.alias(0, 0);
    return {};
  }
  c.workspace(args.plan.workspace());
  return c.sync(reduce_run);
}

template <cpu::Reduction kReduction>
Status prepare(PrepareContext& c) {
  return reduce_prepare(c, kReduction);
}

// ---- EuclideanNorm: a sum of squares, which stand in the workspace, and its root ---------------------------

struct NormArgs : ReduceArgs {
  cpu::BlockFn square = nullptr, root = nullptr;
  int64_t squares = 0;  // bytes of the workspace that they take
};

constexpr int64_t kSquareShard = 65536;

void map_in_shards(RunContext& c, cpu::BlockFn block, const void* in, void* out, int64_t count, int64_t size) {
  c.pool().parallel_for((count + kSquareShard - 1) / kSquareShard, [&](int64_t s) {
    const int64_t begin = s * kSquareShard, n = std::min(count - begin, kSquareShard);
    const void* const from[] = {static_cast<const char*>(in) + begin * size};
    block(from, static_cast<char*>(out) + begin * size, n);
  });
}

Status norm_run(RunContext& c) {
  const auto& args = c.args<NormArgs>();
  const auto axes = read_axes(c.in<void>(1), args.axes_dtype, args.axes, args.in.rank());
  if (!axes.ok()) return c.error("%s", axes.status().message().c_str());
  DTG_ASSIGN(const Shape shape, reduced_shape(args.in, axes.value(), args.keep_dims).to_shape());
  void* out = c.out<void>(0);
  if (args.lease) {
    DTG_ASSIGN(out, c.lease_output(0, args.dtype, shape));
  }
  const int64_t size = dtype_size(args.dtype);
  map_in_shards(c, args.square, c.in<void>(0), c.workspace(), args.in.count(), size);
  const cpu::ReducePlan plan = cpu::plan_reduce(args.reduction, args.dtype, args.in, axes.value());
  cpu::run_reduce(plan, c.pool(), c.workspace(), out, c.workspace() + args.squares);
  map_in_shards(c, args.root, out, out, shape.count(), size);
  return {};
}

Status norm_prepare(PrepareContext& c) {
  auto& args = *c.args<NormArgs>();
  args.dtype = c.input(0).dtype;
  DTG_TRY(late_prepare(c, args));
  const cpu::ElementBlock* square = cpu::find_block(cpu::ElementFn::square, args.dtype);
  const cpu::ElementBlock* root = cpu::find_block(cpu::ElementFn::sqrt, args.dtype);
  if (!square || !root) return c.error("no loop for %s", dtype_name(args.dtype));
  args.square = square->block;
  args.root = root->block;
  args.squares = (c.input(0).bytes() + 63) / 64 * 64;
  c.workspace(Bytes(args.squares) + late_workspace(args));
  return c.sync(norm_run);
}

constexpr const char* kNumbers =
    "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, "
    "complex128, half, uint32, uint64}";
constexpr const char* kOrdered =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8, quint8, qint32, qint16, "
    "quint16}";

struct ReduceOp {
  const char* name;
  const char* types;  // null: of bool
  cpu::Reduction reduction;
  GradFn gradient;  // null: none
  PrepareFn prepare;
  const char* doc;
  bool closes_chains = false;
};
constexpr ReduceOp kReductions[] = {
    {"Sum", kNumbers, cpu::Reduction::sum, sum_grad, prepare<cpu::Reduction::sum>, "The sum over some axes.", true},
    {"Mean", kNumbers, cpu::Reduction::mean, mean_grad, prepare<cpu::Reduction::mean>, "The mean over some axes.", true},
    {"Prod", kNumbers, cpu::Reduction::prod, prod_grad, prepare<cpu::Reduction::prod>, "The product over some axes."},
    {"Max", kOrdered, cpu::Reduction::max, extreme_grad, prepare<cpu::Reduction::max>, "The largest over some axes; NaN if there is one.",
     true},
    {"Min", kOrdered, cpu::Reduction::min, extreme_grad, prepare<cpu::Reduction::min>, "The smallest over some axes; NaN if there is one."},
    {"EuclideanNorm", kNumbers, cpu::Reduction::sum, euclidean_grad, norm_prepare, "The root of the sum of squares over some axes."},
    {"All", nullptr, cpu::Reduction::all, nullptr, prepare<cpu::Reduction::all>, "Are all true, over some axes?"},
    {"Any", nullptr, cpu::Reduction::any, nullptr, prepare<cpu::Reduction::any>, "Is any true, over some axes?"},
};

}  // namespace

void register_reduce(OpTable& ops, KernelTable& kernels) {
  for (const ReduceOp& row : kReductions) {
    OpDef def = OpDef::make(row.name)
                    .input(row.types ? "input: T" : "input: bool")
                    .input("reduction_indices: Tidx")
                    .output(row.types ? "output: T" : "output: bool")
                    .attr("keep_dims: bool = false");
    // The setters change the definition in place; assigning it to itself would empty it.
    if (row.types) std::move(def).attr(row.types);
    std::move(def).attr("Tidx: {int32, int64} = int32").shape(reduce_shape).forwards().doc(row.doc);
    if (row.closes_chains) std::move(def).role(Role::reduction).fuse(fuse_reduction);
    ops.add(row.gradient ? std::move(def).gradient(row.gradient) : std::move(def).no_gradient());
    KernelRow kernel{.op = row.name, .prepare = row.prepare};
    if (row.types) kernel.types = {{"T", row.prepare == norm_prepare ? kFloating : cpu::reducible_types(row.reduction)}};
    kernels.add(std::move(kernel));
  }
  register_argmax(ops, kernels);
  register_scan(ops, kernels);
  register_l2_loss(ops, kernels);
}

}  // namespace dtg::ops
