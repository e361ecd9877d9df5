// Special functions: gamma, beta, error and Bessel functions with their gradients. The values are Eigen's
// (device/cpu/element_special.cc); the derivatives are closed forms out of the same family, as TensorFlow has them.
#include <cmath>

#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/element.h"
#include "ops/type_lists.h"

namespace dtg::ops {
namespace {

constexpr const char* kAttrTwoFloats = "T: {float, double}";

Value of(GradContext& c, const char* op, Value x) { return c.b().op(op, {x}); }
Status slope(GradContext& c, Value dy_dx) {
  c.dx(0, c.b().mul(c.dy(), dy_dx));
  return {};
}

// dx = dy digamma(x)
Status lgamma_grad(GradContext& c) { return slope(c, of(c, "Digamma", c.input(0))); }
// dx = dy polygamma(1, x)
Status digamma_grad(GradContext& c) { return slope(c, c.b().op("Polygamma", {c.b().like(c.input(0), 1.0), c.input(0)})); }
// dx = dy sqrt(pi) / 2 exp(y^2)
Status erfinv_grad(GradContext& c) {
  Build& b = c.b();
  return slope(c, b.mul(b.like(c.dy(), std::sqrt(M_PI) / 2), b.op("Exp", {b.op("Square", {c.output(0)})})));
}
// dx = dy sqrt(2 pi) exp(y^2 / 2)
Status ndtri_grad(GradContext& c) {
  Build& b = c.b();
  const Value half = b.mul(b.op("Square", {c.output(0)}), b.like(c.dy(), 0.5));
  return slope(c, b.mul(b.like(c.dy(), std::sqrt(2 * M_PI)), b.op("Exp", {half})));
}
// dx = dy i1(x)
Status bessel_i0_grad(GradContext& c) { return slope(c, of(c, "BesselI1", c.input(0))); }
// dx = dy (i1e(x) - sign(x) y)
Status bessel_i0e_grad(GradContext& c) {
  Build& b = c.b();
  return slope(c, b.sub(of(c, "BesselI1e", c.input(0)), b.mul(of(c, "Sign", c.input(0)), c.output(0))));
}
// dx = dy (f(x) - y / x), and `at_zero` there
Status bessel_quotient(GradContext& c, const char* function, double at_zero) {
  Build& b = c.b();
  const Value x = c.input(0);
  const Value zero = b.op("Equal", {x, b.like(x, 0.0)});
  const Value elsewhere = b.sub(of(c, function, x), b.div(c.output(0), x));
  return slope(c, b.op("SelectV2", {zero, b.like(x, at_zero), elsewhere}));
}
Status bessel_i1_grad(GradContext& c) { return bessel_quotient(c, "BesselI0", 1.0); }
Status bessel_j1_grad(GradContext& c) { return bessel_quotient(c, "BesselJ0", 0.5); }
// dx = dy (i0e(x) - y (sign(x) + 1 / x)), and dy / 2 where x is next to nothing
Status bessel_i1e_grad(GradContext& c) {
  Build& b = c.b();
  const Value x = c.input(0);
  const DType dtype = b.info(x).dtype;
  const double tiny = dtype == DType::f64   ? 2.220446049250313e-16
                      : dtype == DType::f32 ? 1.1920929e-07
                      : dtype == DType::f16 ? 9.765625e-4
                                            : 7.8125e-3;
  const Value usual = b.op("Greater", {of(c, "Abs", x), b.like(x, tiny)});
  const Value safe = b.op("SelectV2", {usual, x, b.like(x, tiny)});
  const Value rest = b.mul(c.output(0), b.add(of(c, "Sign", safe), of(c, "Reciprocal", safe)));
  return slope(c, b.op("SelectV2", {usual, b.sub(of(c, "BesselI0e", safe), rest), b.like(x, 0.5)}));
}
// dx = -dy k1(x), -dy j1(x), -dy y1(x)
Status bessel_k0_grad(GradContext& c) { return slope(c, c.b().neg(of(c, "BesselK1", c.input(0)))); }
Status bessel_j0_grad(GradContext& c) { return slope(c, c.b().neg(of(c, "BesselJ1", c.input(0)))); }
Status bessel_y0_grad(GradContext& c) { return slope(c, c.b().neg(of(c, "BesselY1", c.input(0)))); }
// dx = dy (y - k1e(x))
Status bessel_k0e_grad(GradContext& c) { return slope(c, c.b().sub(c.output(0), of(c, "BesselK1e", c.input(0)))); }
// dx = -dy (k0(x) + y / x)
Status bessel_k1_grad(GradContext& c) {
  Build& b = c.b();
  return slope(c, b.neg(b.add(of(c, "BesselK0", c.input(0)), b.div(c.output(0), c.input(0)))));
}
// dx = dy (y (1 - 1 / x) - k0e(x))
Status bessel_k1e_grad(GradContext& c) {
  Build& b = c.b();
  const Value rest = b.sub(b.like(c.input(0), 1.0), of(c, "Reciprocal", c.input(0)));
  return slope(c, b.sub(b.mul(c.output(0), rest), of(c, "BesselK0e", c.input(0))));
}
// dx = dy (y0(x) - y / x)
Status bessel_y1_grad(GradContext& c) {
  Build& b = c.b();
  return slope(c, b.sub(of(c, "BesselY0", c.input(0)), b.div(c.output(0), c.input(0))));
}

// ---- of two and three operands -----------------------------------------------------------------------------

// P(a, x): da = dy dP/da, dx = dy exp(-x + (a - 1) log(x) - lgamma(a)); Q = 1 - P has the negatives
Status incomplete_gamma_grad(GradContext& c, bool complement) {
  Build& b = c.b();
  const Value a = c.input(0), x = c.input(1), dy = c.dy();
  const Value power = b.mul(b.sub(a, b.like(a, 1.0)), of(c, "Log", x));
  Value by_a = b.op("IgammaGradA", {a, x});
  Value by_x = of(c, "Exp", b.sub(b.add(b.neg(x), power), of(c, "Lgamma", a)));
  if (complement) by_a = b.neg(by_a), by_x = b.neg(by_x);
  c.dx_unbroadcast(0, b.mul(by_a, dy), 1);
  c.dx_unbroadcast(1, b.mul(by_x, dy), 0);
  return {};
}
Status igamma_grad(GradContext& c) { return incomplete_gamma_grad(c, false); }
Status igammac_grad(GradContext& c) { return incomplete_gamma_grad(c, true); }

// TensorFlow has no gradient towards x: dq = -dy x zeta(x + 1, q)
Status zeta_grad(GradContext& c) {
  Build& b = c.b();
  const Value x = c.input(0), q = c.input(1);
  const Value partial = b.mul(b.neg(x), b.op("Zeta", {b.add(x, b.like(x, 1.0)), q}));
  c.dx_unbroadcast(1, b.mul(partial, c.dy()), 0);
  return {};
}
// nor towards n: dx = dy polygamma(n + 1, x)
Status polygamma_grad(GradContext& c) {
  Build& b = c.b();
  const Value n = c.input(0), x = c.input(1);
  c.dx_unbroadcast(1, b.mul(b.op("Polygamma", {b.add(n, b.like(n, 1.0)), x}), c.dy()), 0);
  return {};
}
// nor towards a and b: dx = dy (1 - x)^(b - 1) x^(a - 1) / B(a, b)
Status betainc_grad(GradContext& c) {
  Build& build = c.b();
  const Value a = c.input(0), b = c.input(1), x = c.input(2), one = build.like(x, 1.0);
  const Value log_beta = build.sub(build.add(of(c, "Lgamma", a), of(c, "Lgamma", b)), of(c, "Lgamma", build.add(a, b)));
  const Value tail = build.op("Xlog1py", {build.sub(b, one), build.neg(x)}), head = build.op("Xlogy", {build.sub(a, one), x});
  const Value partial = of(c, "Exp", build.sub(build.add(tail, head), log_beta));
  const Value g = build.mul(partial, c.dy()), shape = build.shape(x);
  const Value axes = build.op("BroadcastGradientArgs", {shape, build.shape(g)});
  c.dx(2, build.reshape(build.sum(g, axes), shape));
  return {};
}

// Each operand is a scalar or has the shape of the rest.
Status betainc_shape(InferContext& c) {
  PartialShape out = PartialShape::unknown();
  bool scalars = true;
  for (int i = 0; i < 3; ++i) {
    if (c.input(i).has_rank() && c.input(i).rank() == 0) continue;
    scalars = false;
    // Without a rank it could be a scalar.
    if (!c.input(i).has_rank()) continue;
    auto merged = PartialShape::merge(out, c.input(i), "the operands");
    if (!merged.ok()) return c.error("%s", merged.status().message().c_str());
    out = merged.take();
  }
  c.output(0, scalars ? PartialShape::scalar() : out);
  return {};
}

struct SpecialOp {
  const char* name;
  GradFn gradient;
  const char* doc;
};
constexpr SpecialOp kOfOne[] = {
    {"Lgamma", lgamma_grad, "The logarithm of the absolute value of the gamma function."},
    {"Digamma", digamma_grad, "The derivative of Lgamma."},
    {"Erfinv", erfinv_grad, "The number whose error function is x."},
    {"Ndtri", ndtri_grad, "The quantile of the standard normal distribution."},
    {"BesselI0", bessel_i0_grad, "The modified Bessel function of the first kind and order 0."},
    {"BesselI0e", bessel_i0e_grad, "BesselI0 times exp(-|x|)."},
    {"BesselI1", bessel_i1_grad, "The modified Bessel function of the first kind and order 1."},
    {"BesselI1e", bessel_i1e_grad, "BesselI1 times exp(-|x|)."},
    {"BesselJ0", bessel_j0_grad, "The Bessel function of the first kind and order 0."},
    {"BesselJ1", bessel_j1_grad, "The Bessel function of the first kind and order 1."},
    {"BesselK0", bessel_k0_grad, "The modified Bessel function of the second kind and order 0."},
    {"BesselK0e", bessel_k0e_grad, "BesselK0 times exp(x)."},
    {"BesselK1", bessel_k1_grad, "The modified Bessel function of the second kind and order 1."},
    {"BesselK1e", bessel_k1e_grad, "BesselK1 times exp(x)."},
    {"BesselY0", bessel_y0_grad, "The Bessel function of the second kind and order 0."},
    {"BesselY1", bessel_y1_grad, "The Bessel function of the second kind and order 1."},
};

void register_two(OpTable& ops, KernelTable& kernels, const char* name, const char* inputs, const char* types, GradFn gradient,
                  const char* doc) {
  const std::string first(1, inputs[0]), second(1, inputs[1]);
  OpDef def = OpDef::make(name).input((first + ": T").c_str()).input((second + ": T").c_str()).output("z: T").attr(types);
  std::move(def).shape(broadcast_shape).doc(doc);
  ops.add(std::move(def).gradient(gradient));
  add_element_kernels(kernels, name);
}

}  // namespace

void register_special(OpTable& ops, KernelTable& kernels) {
  for (const SpecialOp& row : kOfOne) {
    ops.add(
        OpDef::make(row.name).input("x: T").output("y: T").attr(kAttrFloats).shape(unchanged_shape).gradient(row.gradient).doc(row.doc));
    add_element_kernels(kernels, row.name);
  }
  register_two(ops, kernels, "Igamma", "ax", kAttrFloats, igamma_grad, "The regularised lower incomplete gamma function P(a, x).");
  register_two(ops, kernels, "Igammac", "ax", kAttrFloats, igammac_grad, "The regularised upper incomplete gamma function Q(a, x).");
  register_two(ops, kernels, "IgammaGradA", "ax", kAttrTwoFloats, nullptr, "The derivative of Igamma towards a.");
  register_two(ops, kernels, "Zeta", "xq", kAttrTwoFloats, zeta_grad, "The Hurwitz zeta function.");
  register_two(ops, kernels, "Polygamma", "ax", kAttrTwoFloats, polygamma_grad, "The derivative of order a of Digamma.");
  ops.add(OpDef::make("Betainc")
              .input("a: T")
              .input("b: T")
              .input("x: T")
              .output("z: T")
              .attr(kAttrTwoFloats)
              .shape(betainc_shape)
              .gradient(betainc_grad)
              .doc("The regularised incomplete beta function I_x(a, b); scalars go with any shape."));
  add_element_kernels(kernels, "Betainc", element_prepare, "T", Fusing::none);
}

}  // namespace dtg::ops
