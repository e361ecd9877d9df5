// Ops of one operand: arithmetic, exponentials, trigonometry, rounding, questions; and the gradient
// ops that belong to them. The activations live in activation.cc. Definitions are a table because they
// differ only in name, types and gradient.
#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/activation.h"
#include "ops/all.h"
#include "ops/element.h"
#include "ops/known.h"
#include "ops/simplify.h"

namespace dtg::ops {
namespace {

constexpr const char* kReal = "T: {bfloat16, half, float, double}";
constexpr const char* kField = "T: {bfloat16, half, float, double, complex64, complex128}";
constexpr const char* kSigned = "T: {bfloat16, half, float, double, int8, int16, int32, int64}";
constexpr const char* kNumber = "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}";
constexpr const char* kEveryNumber =
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}";

// dx = -dy
Status neg_grad(GradContext& c) {
  c.dx(0, c.b().neg(c.dy()));
  return {};
}
// dx = dy sign(x)
Status abs_grad(GradContext& c) {
  Build& b = c.b();
  c.dx(0, b.mul(c.dy(), b.op("Sign", {c.input(0)})));
  return {};
}
// Flat wherever it is defined, but TensorFlow says zero rather than nothing.
Status sign_grad(GradContext& c) {
  c.dx(0, c.b().zeros_like(c.input(0)));
  return {};
}
// dx = dy 2x
Status square_grad(GradContext& c) {
  Build& b = c.b();
  const Value x = c.input(0);
  c.dx(0, b.mul(c.dy(), b.mul(x, b.like(x, 2.0))));
  return {};
}
// dx = dy / 2y
Status sqrt_grad(GradContext& c) {
  c.dx(0, c.b().op("SqrtGrad", {c.output(0), c.dy()}));
  return {};
}
// dx = -dy y^3 / 2
Status rsqrt_grad(GradContext& c) {
  c.dx(0, c.b().op("RsqrtGrad", {c.output(0), c.dy()}));
  return {};
}
// dx = -dy y^2
Status reciprocal_grad(GradContext& c) {
  c.dx(0, c.b().op("ReciprocalGrad", {c.output(0), c.dy()}));
  return {};
}
// dx = dy y
Status exp_grad(GradContext& c) {
  c.dx(0, c.b().mul(c.dy(), c.output(0)));
  return {};
}
// dx = dy exp(x)
Status expm1_grad(GradContext& c) {
  Build& b = c.b();
  c.dx(0, b.mul(c.dy(), b.op("Exp", {c.input(0)})));
  return {};
}
// dx = dy / x
Status log_grad(GradContext& c) {
  Build& b = c.b();
  c.dx(0, b.mul(c.dy(), b.op("Reciprocal", {c.input(0)})));
  return {};
}
// dx = dy / (1 + x)
Status log1p_grad(GradContext& c) {
  Build& b = c.b();
  const Value x = c.input(0);
  c.dx(0, b.mul(c.dy(), b.op("Reciprocal", {b.add(b.like(x, 1.0), x)})));
  return {};
}
// dx = dy cos(x)
Status sin_grad(GradContext& c) {
  Build& b = c.b();
  c.dx(0, b.mul(c.dy(), b.op("Cos", {c.input(0)})));
  return {};
}
// dx = -dy sin(x)
Status cos_grad(GradContext& c) {
  Build& b = c.b();
  c.dx(0, b.mul(b.neg(c.dy()), b.op("Sin", {c.input(0)})));
  return {};
}
// dx = dy / cos(x)^2
Status tan_grad(GradContext& c) {
  Build& b = c.b();
  const Value secant = b.op("Reciprocal", {b.op("Cos", {c.input(0)})});
  c.dx(0, b.mul(b.op("Square", {secant}), c.dy()));
  return {};
}
// dx = dy / sqrt(1 - x^2), and the negative of it for the other
Status arc_grad(GradContext& c, bool negative) {
  Build& b = c.b();
  const Value x = c.input(0);
  const Value slope = b.op("Reciprocal", {b.op("Sqrt", {b.sub(b.like(x, 1.0), b.op("Square", {x}))})});
  const Value dx = b.mul(c.dy(), slope);
  c.dx(0, negative ? b.neg(dx) : dx);
  return {};
}
Status asin_grad(GradContext& c) { return arc_grad(c, false); }
Status acos_grad(GradContext& c) { return arc_grad(c, true); }
// dx = dy / (1 + x^2)
Status atan_grad(GradContext& c) {
  Build& b = c.b();
  const Value x = c.input(0);
  c.dx(0, b.mul(c.dy(), b.op("Reciprocal", {b.add(b.like(x, 1.0), b.op("Square", {x}))})));
  return {};
}
// dx = dy / (1 - x^2)
Status atanh_grad(GradContext& c) {
  Build& b = c.b();
  const Value x = c.input(0);
  c.dx(0, b.mul(c.dy(), b.op("Reciprocal", {b.sub(b.like(x, 1.0), b.op("Square", {x}))})));
  return {};
}
// dx = dy cosh(x)
Status sinh_grad(GradContext& c) {
  c.dx(0, c.b().mul(c.dy(), c.b().op("Cosh", {c.input(0)})));
  return {};
}
// dx = dy sinh(x)
Status cosh_grad(GradContext& c) {
  c.dx(0, c.b().mul(c.dy(), c.b().op("Sinh", {c.input(0)})));
  return {};
}
// dx = dy / cosh(y)
Status asinh_grad(GradContext& c) {
  c.dx(0, c.b().div(c.dy(), c.b().op("Cosh", {c.output(0)})));
  return {};
}
// dx = dy / sinh(y)
Status acosh_grad(GradContext& c) {
  c.dx(0, c.b().div(c.dy(), c.b().op("Sinh", {c.output(0)})));
  return {};
}
// dx = dy factor exp(-x^2)
Status bell_grad(GradContext& c, double factor) {
  Build& b = c.b();
  const Value x = c.input(0);
  const Value bell = b.op("Exp", {b.neg(b.op("Square", {x}))});
  c.dx(0, b.mul(b.mul(c.dy(), b.like(x, factor)), bell));
  return {};
}
constexpr double kTwoOverRootPi = 1.1283791670955126;
Status erf_grad(GradContext& c) { return bell_grad(c, kTwoOverRootPi); }
Status erfc_grad(GradContext& c) { return bell_grad(c, -kTwoOverRootPi); }

struct UnaryOp {
  const char* name;
  const char* types;
  GradFn gradient;  // null: none flows
  const char* doc;
};
constexpr UnaryOp kUnary[] = {
    {"Neg", kNumber, neg_grad, "-x."},
    {"Abs", kSigned, abs_grad, "The absolute value of x."},
    {"Sign", kNumber, sign_grad, "-1, 0 or 1 as x is negative, zero or positive."},
    {"Square", kEveryNumber, square_grad, "x times x."},
    {"Sqrt", kField, sqrt_grad, "The square root of x."},
    {"Rsqrt", kField, rsqrt_grad, "1 over the square root of x."},
    {"Reciprocal", kNumber, reciprocal_grad, "1 / x."},
    {"Inv", kNumber, reciprocal_grad, "1 / x; the older name of Reciprocal."},
    {"Exp", kField, exp_grad, "e to the power of x."},
    {"Expm1", kField, expm1_grad, "exp(x) - 1, precise near zero."},
    {"Log", kField, log_grad, "The natural logarithm of x."},
    {"Log1p", kField, log1p_grad, "log(1 + x), precise near zero."},
    {"Sin", kField, sin_grad, "The sine of x."},
    {"Cos", kField, cos_grad, "The cosine of x."},
    {"Tan", kNumber, tan_grad, "The tangent of x."},
    {"Asin", kNumber, asin_grad, "The angle whose sine is x."},
    {"Acos", kNumber, acos_grad, "The angle whose cosine is x."},
    {"Atan", kNumber, atan_grad, "The angle whose tangent is x."},
    {"Sinh", kField, sinh_grad, "The hyperbolic sine of x."},
    {"Cosh", kField, cosh_grad, "The hyperbolic cosine of x."},
    {"Asinh", kField, asinh_grad, "The inverse hyperbolic sine of x."},
    {"Acosh", kField, acosh_grad, "The inverse hyperbolic cosine of x."},
    {"Atanh", kField, atanh_grad, "The inverse hyperbolic tangent of x."},
    {"Erf", kReal, erf_grad, "The Gauss error function of x."},
    {"Erfc", kReal, erfc_grad, "1 - erf(x), precise where that is small."},
    {"Floor", kReal, nullptr, "The largest whole number not above x."},
    {"Ceil", kReal, nullptr, "The smallest whole number not below x."},
    {"Rint", kReal, nullptr, "The whole number nearest to x; halves go to the even one."},
    {"Invert", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}", nullptr, "Every bit of x the other way."},
    {"Round", kNumber, nullptr, "The whole number nearest to x; halves go to the even one."},
};

void register_maps(OpTable& ops, KernelTable& kernels) {
  for (const UnaryOp& row : kUnary) {
    OpDef def = OpDef::make(row.name).input("x: T").output("y: T").attr(row.types).shape(unchanged_shape).doc(row.doc);
    ops.add(row.gradient ? std::move(def).gradient(row.gradient) : std::move(def).no_gradient());
    add_element_kernels(kernels, row.name);
  }
}

void register_questions(OpTable& ops, KernelTable& kernels) {
  struct Question {
    const char* name;
    const char* doc;
  };
  for (const Question& row : {Question{"IsNan", "Is x not a number?"}, Question{"IsInf", "Is x infinite?"},
                              Question{"IsFinite", "Is x neither infinite nor NaN?"}}) {
    ops.add(OpDef::make(row.name).input("x: T").output("y: bool").attr(kReal).shape(unchanged_shape).no_gradient().doc(row.doc));
    add_element_kernels(kernels, row.name, element_prepare, "T", Fusing::asks);
  }
}

// ---- gradient ops: z from the output y and its gradient dy -----------------------------------------------

Status merged_shape(InferContext& c) {
  auto both = PartialShape::merge(c.input(0), c.input(1), "a value and its gradient");
  if (!both.ok()) return c.error("%s", both.status().message().c_str());
  c.output(0, both.take());
  return {};
}

// z = dy / 2y:  dz/dy = -(g / y) z,  dz/d(dy) = g / 2y
Status sqrt_grad_grad(GradContext& c) {
  Build& b = c.b();
  const Value ratio = b.div(c.dy(), c.input(0));
  c.dx(0, b.mul(b.neg(ratio), c.output(0)));
  c.dx(1, b.mul(b.like(ratio, 0.5), ratio));
  return {};
}
// z = -dy y^3 / 2:  dz/dy = -3/2 g dy y^2,  dz/d(dy) = -g y^3 / 2
Status rsqrt_grad_grad(GradContext& c) {
  Build& b = c.b();
  const Value y = c.input(0), g = c.dy();
  c.dx(0, b.mul(b.mul(b.mul(b.like(g, -1.5), g), c.input(1)), b.op("Square", {y})));
  c.dx(1, b.op("RsqrtGrad", {y, g}));
  return {};
}
// z = -dy y^2:  dz/dy = -2 g dy y,  dz/d(dy) = -g y^2
Status reciprocal_grad_grad(GradContext& c) {
  Build& b = c.b();
  const Value y = c.input(0), g = c.dy();
  c.dx(0, b.mul(b.mul(b.mul(g, b.like(g, -2.0)), c.input(1)), y));
  c.dx(1, b.op("ReciprocalGrad", {y, g}));
  return {};
}
// z = dy (1 - y^2):  dz/dy = -2 g dy y,  dz/d(dy) = g (1 - y^2)
Status tanh_grad_grad(GradContext& c) {
  Build& b = c.b();
  const Value y = c.input(0), g = c.dy();
  c.dx(0, b.mul(b.mul(b.mul(g, b.like(g, -2.0)), c.input(1)), y));
  c.dx(1, b.op("TanhGrad", {y, g}));
  return {};
}
// z = dy y (1 - y):  dz/dy = g dy - 2 g dy y,  dz/d(dy) = g y (1 - y)
Status sigmoid_grad_grad(GradContext& c) {
  Build& b = c.b();
  const Value y = c.input(0), g = c.dy();
  const Value both = b.mul(g, c.input(1));
  c.dx(0, b.sub(both, b.mul(b.mul(b.like(g, 2.0), both), y)));
  c.dx(1, b.op("SigmoidGrad", {y, g}));
  return {};
}

constexpr UnaryOp kGradients[] = {
    {"SqrtGrad", kField, sqrt_grad_grad, "dy / 2y: the gradient of y = Sqrt(x)."},
    {"RsqrtGrad", kField, rsqrt_grad_grad, "-dy y^3 / 2: the gradient of y = Rsqrt(x)."},
    {"ReciprocalGrad", kField, reciprocal_grad_grad, "-dy y^2: the gradient of y = Reciprocal(x)."},
    {"InvGrad", kField, reciprocal_grad_grad, "-dy y^2: the gradient of y = Inv(x)."},
    {"TanhGrad", kField, tanh_grad_grad, "dy (1 - y^2): the gradient of y = Tanh(x)."},
    {"SigmoidGrad", kField, sigmoid_grad_grad, "dy y (1 - y): the gradient of y = Sigmoid(x)."},
};

void register_gradients(OpTable& ops, KernelTable& kernels) {
  for (const UnaryOp& row : kGradients) {
    ops.add(OpDef::make(row.name)
                .input("y: T")
                .input("dy: T")
                .output("z: T")
                .attr(row.types)
                .shape(merged_shape)
                .gradient(row.gradient)
                .doc(row.doc));
    add_element_kernels(kernels, row.name);
  }
}

// ---- StopGradient ----------------------------------------------------------------------------------------

Status stop_gradient_prepare(PrepareContext& c) {
  c.alias(0, 0);
  return {};
}

void register_stop_gradient(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("StopGradient")
              .input("input: T")
              .output("output: T")
              .attr("T: type")
              .shape(unchanged_shape)
              .forwards()
              .value(first_value)
              .simplify(simplify_identity)
              .no_gradient()
              .doc("Its input; gradients do not pass."));
  kernels.add({.op = "StopGradient", .prepare = stop_gradient_prepare});
}

}  // namespace

void register_unary(OpTable& ops, KernelTable& kernels) {
  register_maps(ops, kernels);
  register_questions(ops, kernels);
  register_gradients(ops, kernels);
  register_stop_gradient(ops, kernels);
  register_activation(ops, kernels);
}

}  // namespace dtg::ops
