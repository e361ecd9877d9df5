// The ops that make up a graph rather than compute: inputs, constants, pass-through.
#include <cmath>
#include <cstring>
#include <type_traits>

#include "exec/kernel.h"
#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/known.h"
#include "ops/simplify.h"

namespace dtg::ops {
namespace {

Status placeholder_shape(InferContext& c) {
  c.output(0, c.attr<PartialShape>("shape"));
  return {};
}

Status const_shape(InferContext& c) {
  const auto& value = c.attr<Tensor>("value");
  if (!value.valid()) return c.error("the value is not a tensor");
  if (value.dtype() != c.attr<DType>("dtype")) {
    return c.error("dtype is %s, but the value is %s", dtype_name(c.attr<DType>("dtype")), value.text().c_str());
  }
  c.output(0, value.shape());
  return {};
}

// A handle stays the same handle.
Status identity_shape(InferContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (is_holder(c.input_dtype(i))) c.output_held(i, c.held_dtype(i), c.input(i));
    else c.output(i, c.input(i));
  }
  return {};
}

Status default_shape(InferContext& c) {
  auto merged = PartialShape::merge(c.input(0), c.attr<PartialShape>("shape"), "default value and shape");
  if (!merged.ok()) return c.error("%s", merged.status().message().c_str());
  c.output(0, c.attr<PartialShape>("shape"));
  return {};
}

// dx = dy
Status identity_grad(GradContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.has_dy(i)) continue;
    const Gradient& dy = c.raw_dy(i);
    if (dy.is_rows()) c.dx_rows(i, dy.values, dy.indices, dy.dense_shape);
    else c.dx(i, dy.dense);
  }
  return {};
}

Status prevent_grad(GradContext& c) {
  return c.b().status().ok() ? failed_precondition("%s: %s", c.node().op->name().c_str(),
                                                   c.attr<std::string>("message").empty() ? "the graph says that no gradient may pass here"
                                                                                          : c.attr<std::string>("message").c_str())
                             : c.b().status();
}

Status alias_prepare(PrepareContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) c.alias(i, i);
  return {};
}

struct DefaultArgs {
  Shape in;
  int64_t bytes = 0;
  OutputSpec out;
};

Status default_run(RunContext& c) {
  const auto& a = c.args<DefaultArgs>();
  DTG_ASSIGN(char* memory, a.out.memory(c, a.in));
  if (a.bytes > 0) std::memcpy(memory, c.in<char>(0), static_cast<size_t>(a.bytes));
  return {};
}

// The declared shape may be wider than that of the default, since a feed need not have the shape of the default: then
// the shape is only known in run.
Status default_prepare(PrepareContext& c) {
  auto* a = c.args<DefaultArgs>();
  a->in = c.input(0).shape;
  a->bytes = c.input(0).bytes();
  a->out.prepare(c, 0);
  if (!a->out.dynamic) return alias_prepare(c);
  return c.sync(default_run);
}

Status nothing(PrepareContext&) { return {}; }

void register_inputs(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("Placeholder")
              .output("output: dtype")
              .attr("dtype: type")
              .attr("shape: shape = unknown")
              .role(Role::feed)
              .shape(placeholder_shape)
              .no_gradient()
              .doc("A value that every run that needs it must feed."));
  ops.add(OpDef::make("PlaceholderWithDefault")
              .input("input: dtype")
              .output("output: dtype")
              .attr("dtype: type")
              .attr("shape: shape")
              .shape(default_shape)
              .forwards()
              .gradient(identity_grad)
              .doc("A value that a run may feed; otherwise it is the input."));
  ops.add(OpDef::make("Const")
              .output("output: dtype")
              .attr("value: tensor")
              .attr("dtype: type")
              .role(Role::constant)
              .shape(const_shape)
              .value(const_value)
              .no_gradient()
              .doc("A tensor that is part of the graph."));
  kernels.add({.op = "PlaceholderWithDefault", .prepare = default_prepare});
  for (const char* op : {"Placeholder", "Const"}) kernels.add({.op = op, .prepare = nothing});
}

void register_passing_on(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("Identity")
              .input("input: T")
              .output("output: T")
              .attr("T: type")
              .shape(identity_shape)
              .forwards()
              .value(first_value)
              .simplify(simplify_identity)
              .gradient(identity_grad)
              .doc("Its input, unchanged."));
  ops.add(OpDef::make("IdentityN")
              .input("input: T")
              .output("output: T")
              .attr("T: list(type) >= 1")
              .shape(identity_shape)
              .forwards_each()
              .gradient(identity_grad)
              .doc("Its inputs, unchanged; none is available before all are."));
  ops.add(OpDef::make("PreventGradient")
              .input("input: T")
              .output("output: T")
              .attr("T: type")
              .attr("message: string = ''")
              .shape(identity_shape)
              .forwards()
              .gradient(prevent_grad)
              .doc("Its input, unchanged; asking for a gradient through it is an error."));
  for (const char* op : {"Identity", "IdentityN", "PreventGradient"}) kernels.add({.op = op, .prepare = alias_prepare});
}

}  // namespace

void register_graph(OpTable& ops, KernelTable& kernels) {
  register_inputs(ops, kernels);
  register_passing_on(ops, kernels);
  ops.add(
      OpDef::make("NoOp").role(Role::nothing).shape(no_outputs).no_gradient().doc("Computes nothing; a point to tie control edges to."));
  kernels.add({.op = "NoOp", .prepare = nothing});
}

}  // namespace dtg::ops
