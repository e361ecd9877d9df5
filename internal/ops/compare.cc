// Comparisons, logic and the choice between two values. Nothing here has a gradient but the choice.
#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/element.h"

namespace dtg::ops {
namespace {

constexpr const char* kReal = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}";

// ---- Equal, NotEqual ---------------------------------------------------------------------------------------

bool may_differ(InferContext& c) { return !c.boolean("incompatible_shape_error"); }

// Shapes that do not broadcast are an error, or by wish an answer: the values are not equal.
Status equal_shape(InferContext& c) {
  if (!may_differ(c)) return c.broadcast();
  const auto both = broadcast_shapes(c.input(0), c.input(1));
  // What is not known yet may still turn out not to fit, and then the output is a scalar.
  if (!c.input(0).complete() || !c.input(1).complete()) c.output(0, PartialShape::unknown());
  else c.output(0, both.ok() ? both.value() : PartialShape::scalar());
  return {};
}

struct AnswerArgs {
  bool answer = false;
};
Status answer_run(RunContext& c) {
  *c.out<bool>(0) = c.args<AnswerArgs>().answer;
  return {};
}

Status equal_prepare(PrepareContext& c) {
  if (broadcast_shapes(c.input(0).shape, c.input(1).shape).ok()) return element_prepare(c);
  c.args<AnswerArgs>()->answer = c.node().op->name() == "NotEqual";
  return c.sync(answer_run);
}

void register_equality(OpTable& ops, KernelTable& kernels) {
  struct Row {
    const char* name;
    const char* doc;
  };
  for (const Row& row : {Row{"Equal", "x == y, with broadcasting."}, Row{"NotEqual", "x != y, with broadcasting."}}) {
    ops.add(OpDef::make(row.name)
                .input("x: T")
                .input("y: T")
                .output("z: bool")
                .attr("T: type")
                .attr("incompatible_shape_error: bool = true")
                .shape(equal_shape)
                .no_gradient()
                .doc(row.doc));
    add_element_kernels(kernels, row.name, equal_prepare, "T", Fusing::asks);
  }
}

void register_order(OpTable& ops, KernelTable& kernels) {
  struct Row {
    const char* name;
    const char* doc;
  };
  for (const Row& row : {Row{"Less", "x < y, with broadcasting."}, Row{"LessEqual", "x <= y, with broadcasting."},
                         Row{"Greater", "x > y, with broadcasting."}, Row{"GreaterEqual", "x >= y, with broadcasting."}}) {
    ops.add(
        OpDef::make(row.name).input("x: T").input("y: T").output("z: bool").attr(kReal).shape(broadcast_shape).no_gradient().doc(row.doc));
    add_element_kernels(kernels, row.name, element_prepare, "T", Fusing::asks);
  }
}

void register_logic(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("LogicalAnd")
              .input("x: bool")
              .input("y: bool")
              .output("z: bool")
              .shape(broadcast_shape)
              .no_gradient()
              .doc("x and y, with broadcasting."));
  ops.add(OpDef::make("LogicalOr")
              .input("x: bool")
              .input("y: bool")
              .output("z: bool")
              .shape(broadcast_shape)
              .no_gradient()
              .doc("x or y, with broadcasting."));
  ops.add(OpDef::make("LogicalNot").input("x: bool").output("y: bool").shape(unchanged_shape).no_gradient().doc("Not x."));
  for (const char* name : {"LogicalAnd", "LogicalOr", "LogicalNot"}) {
    add_element_kernels(kernels, name, element_prepare, nullptr, Fusing::keeps);
  }
}

// ---- SelectV2 ----------------------------------------------------------------------------------------------

Status select_v2_shape(InferContext& c) {
  auto values = broadcast_shapes(c.input(1), c.input(2));
  if (!values.ok()) return c.error("%s", values.status().message().c_str());
  auto all = broadcast_shapes(c.input(0), values.value());
  if (!all.ok()) return c.error("%s", all.status().message().c_str());
  c.output(0, all.take());
  return {};
}

// `value`, which has the output's shape, summed down to the shape of input i.
void unbroadcast_from_output(GradContext& c, int i, Value value) {
  Build& b = c.b();
  const PartialShape& own = c.input_info(i).shape;
  if (own.complete() && own == c.output_info(0).shape) return c.dx(i, value);
  const Value shape = b.shape(c.input(i)), whole = b.shape(c.output(0));
  const Value axes = b.op("BroadcastGradientArgs", {shape, whole});
  c.dx(i, b.reshape(b.sum(value, axes, true), shape));
}

// The gradient goes to the chosen side.
Status select_v2_grad(GradContext& c) {
  Build& b = c.b();
  const Value g = c.dy(), zero = b.like(g, 0.0);
  unbroadcast_from_output(c, 1, b.op("SelectV2", {c.input(0), g, zero}));
  unbroadcast_from_output(c, 2, b.op("SelectV2", {c.input(0), zero, g}));
  return {};
}

// ---- Select: no broadcasting, but a vector condition chooses whole rows --------------------------------------

Status select_shape(InferContext& c) {
  auto values = PartialShape::merge(c.input(1), c.input(2), "then and else");
  if (!values.ok()) return c.error("%s", values.status().message().c_str());
  const PartialShape& condition = c.input(0);
  PartialShape out = values.take();
  if (condition.has_rank() && out.has_rank() && condition.rank() != 0) {
    const bool rows = condition.rank() == 1 && out.rank() > 1;
    const bool fits =
        rows ? condition.dim(0) < 0 || out.dim(0) < 0 || condition.dim(0) == out.dim(0) : PartialShape::merge(condition, out, "").ok();
    if (!fits) {
      return c.error("the condition has shape %s; for values of shape %s it must be a scalar, have the same shape, or be a "
                     "vector with one entry per row",
                     condition.text().c_str(), out.text().c_str());
    }
  }
  c.output(0, std::move(out));
  return {};
}

Status select_grad(GradContext& c) {
  Build& b = c.b();
  const Value g = c.dy(), zeros = b.zeros_like(g);
  c.dx(1, b.op("Select", {c.input(0), g, zeros}));
  c.dx(2, b.op("Select", {c.input(0), zeros, g}));
  return {};
}

// A row condition [n] is the column [n, 1, ...] to broadcasting.
Status select_prepare(PrepareContext& c) {
  const Shape& condition = c.input(0).shape;
  const Shape& out = c.output(0).shape;
  if (condition.rank() != 1 || out.rank() <= 1) return element_prepare(c);
  int64_t dims[kRankMax] = {condition.dim(0)};
  for (int d = 1; d < out.rank(); ++d) dims[d] = 1;
  DTG_ASSIGN(const Shape column, Shape::make({dims, static_cast<size_t>(out.rank())}));
  const DType dtype = c.input(1).dtype;
  const cpu::ElementBlock* block = cpu::find_block(cpu::ElementFn::select, dtype);
  if (!block) return c.error("no loop for %s", dtype_name(dtype));
  const Shape shapes[] = {column, out, out};
  const int64_t size = dtype_size(dtype), sizes[] = {1, size, size};
  c.args<ElementArgs>()->loop = cpu::plan_elements(block->block, false, shapes, sizes, out, size);
  c.may_overwrite(1, 0);
  c.may_overwrite(2, 0);
  return c.sync(element_run);
}

void register_choice(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("SelectV2")
              .input("condition: bool")
              .input("t: T")
              .input("e: T")
              .output("output: T")
              .attr("T: type")
              .shape(select_v2_shape)
              .gradient(select_v2_grad)
              .doc("t where the condition holds, else e; all three broadcast."));
  add_element_kernels(kernels, "SelectV2", element_prepare, "T", Fusing::chooses);
  ops.add(OpDef::make("Select")
              .input("condition: bool")
              .input("t: T")
              .input("e: T")
              .output("output: T")
              .attr("T: type")
              .shape(select_shape)
              .gradient(select_grad)
              .doc("t where the condition holds, else e; the condition is a scalar, one per row, or one per element."));
  add_element_kernels(kernels, "Select", select_prepare, "T", Fusing::none);
}

}  // namespace

void register_compare(OpTable& ops, KernelTable& kernels) {
  register_equality(ops, kernels);
  register_order(ops, kernels);
  register_logic(ops, kernels);
  register_choice(ops, kernels);
}

}  // namespace dtg::ops
