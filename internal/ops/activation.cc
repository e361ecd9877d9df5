// Activations of neural networks and their gradient ops. As in TensorFlow, Tanh and Sigmoid differentiate
// through their outputs, the others through ops that take (gradients, features or outputs).
#include "ops/activation.h"

#include <algorithm>
#include <type_traits>

#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/element.h"
#include "ops/fuse.h"

namespace dtg::ops {
namespace {

constexpr const char* kFloat = "T: {half, bfloat16, float, double}";
constexpr const char* kField = "T: {bfloat16, half, float, double, complex64, complex128}";
constexpr const char* kReal = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}";
constexpr const char* kRealOrQuantized =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8}";

Status relu_grad(GradContext& c) {
  c.dx(0, c.b().op("ReluGrad", {c.dy(), c.output(0)}));
  return {};
}
Status relu6_grad(GradContext& c) {
  c.dx(0, c.b().op("Relu6Grad", {c.dy(), c.output(0)}));
  return {};
}
Status elu_grad(GradContext& c) {
  c.dx(0, c.b().op("EluGrad", {c.dy(), c.output(0)}));
  return {};
}
Status softplus_grad(GradContext& c) {
  c.dx(0, c.b().op("SoftplusGrad", {c.dy(), c.input(0)}));
  return {};
}
Status softsign_grad(GradContext& c) {
  c.dx(0, c.b().op("SoftsignGrad", {c.dy(), c.input(0)}));
  return {};
}
Status tanh_grad(GradContext& c) {
  c.dx(0, c.b().op("TanhGrad", {c.output(0), c.dy()}));
  return {};
}
Status sigmoid_grad(GradContext& c) {
  c.dx(0, c.b().op("SigmoidGrad", {c.output(0), c.dy()}));
  return {};
}

Status selu_grad(GradContext& c) {
  c.dx(0, c.b().op("SeluGrad", {c.dy(), c.output(0)}));
  return {};
}

struct Activation {
  const char* name;
  const char* input;
  const char* output;
  const char* types;
  GradFn gradient;
  const char* doc;
  RewriteFn fuse = nullptr;
};
constexpr Activation kActivations[] = {
    {"Relu", "features: T", "activations: T", kRealOrQuantized, relu_grad, "x where it is positive, else 0.", fuse_relu},
    {"Relu6", "features: T", "activations: T", kReal, relu6_grad, "x held between 0 and 6."},
    {"Elu", "features: T", "activations: T", kFloat, elu_grad, "x where it is positive, else exp(x) - 1."},
    {"Selu", "features: T", "activations: T", kFloat, selu_grad, "Elu, scaled so that layers keep mean and variance."},
    {"Softplus", "features: T", "activations: T", kFloat, softplus_grad, "log(1 + exp(x))."},
    {"Softsign", "features: T", "activations: T", kFloat, softsign_grad, "x / (1 + |x|)."},
    {"Tanh", "x: T", "y: T", kField, tanh_grad, "The hyperbolic tangent of x."},
    {"Sigmoid", "x: T", "y: T", kField, sigmoid_grad, "1 / (1 + exp(-x))."},
};

// ---- gradient ops: backprops from (gradients, features or outputs) ---------------------------------------

Status merged_shape(InferContext& c) {
  auto both = PartialShape::merge(c.input(0), c.input(1), "gradients and features");
  if (!both.ok()) return c.error("%s", both.status().message().c_str());
  c.output(0, both.take());
  return {};
}

// Linear in the gradients, flat almost everywhere in the features.
Status linear_grad_grad(GradContext& c) {
  Build& b = c.b();
  c.dx(0, b.op(c.node().op->name(), {c.dy(), c.input(1)}));
  c.dx(1, b.zeros_like(c.input(1)));
  return {};
}
// Where y < 0, backprops = dy (y + 1): the derivative by y is dy.
Status elu_grad_grad(GradContext& c) {
  Build& b = c.b();
  const Value y = c.input(1), g = c.dy();
  c.dx(0, b.op("EluGrad", {g, y}));
  const Value negative = b.op("Less", {y, b.like(y, 0.0)});
  c.dx(1, b.op("SelectV2", {negative, b.mul(g, c.input(0)), b.zeros_like(y)}));
  return {};
}
// Where y < 0, backprops = dy (y + scale alpha): the derivative by y is dy.
Status selu_grad_grad(GradContext& c) {
  Build& b = c.b();
  const Value y = c.input(1), g = c.dy();
  c.dx(0, b.op("SeluGrad", {g, y}));
  const Value negative = b.op("Less", {y, b.like(y, 0.0)});
  c.dx(1, b.op("SelectV2", {negative, b.mul(g, c.input(0)), b.zeros_like(y)}));
  return {};
}
// backprops = dy sigmoid(x): the derivative by x is dy / (exp(-x) + 2 + exp(x))
Status softplus_grad_grad(GradContext& c) {
  Build& b = c.b();
  const Value x = c.input(1), g = c.dy();
  c.dx(0, b.op("SoftplusGrad", {g, x}));
  const Value around = b.add(b.add(b.op("Exp", {b.neg(x)}), b.like(x, 2.0)), b.op("Exp", {x}));
  c.dx(1, b.div(b.mul(g, c.input(0)), around));
  return {};
}
// backprops = dy / (1 + |x|)^2: the derivative by x is -2 dy sign(x) / (1 + |x|)^3
Status softsign_grad_grad(GradContext& c) {
  Build& b = c.b();
  const Value x = c.input(1), g = c.dy();
  c.dx(0, b.op("SoftsignGrad", {g, x}));
  const Value around = b.add(b.like(x, 1.0), b.op("Abs", {x}));
  const Value top = b.mul(b.mul(b.like(x, -2.0), b.mul(g, c.input(0))), b.op("Sign", {x}));
  c.dx(1, b.div(top, b.mul(around, b.op("Square", {around}))));
  return {};
}

struct GradientOp {
  const char* name;
  const char* second;
  const char* types;
  GradFn gradient;
  const char* doc;
  RewriteFn fuse = nullptr;
};
constexpr GradientOp kGradients[] = {
    {"ReluGrad", "features: T", kReal, linear_grad_grad, "The gradients where the features are positive, else 0.", fuse_relu_grad},
    {"Relu6Grad", "features: T", kReal, linear_grad_grad, "The gradients where the features are between 0 and 6, else 0."},
    {"EluGrad", "outputs: T", kFloat, elu_grad_grad, "The gradient of Elu, from its outputs."},
    {"SeluGrad", "outputs: T", kFloat, selu_grad_grad, "The gradient of Selu, from its outputs."},
    {"SoftplusGrad", "features: T", kFloat, softplus_grad_grad, "The gradient of Softplus, from its features."},
    {"SoftsignGrad", "features: T", kFloat, softsign_grad_grad, "The gradient of Softsign, from its features."},
};

// ---- LeakyRelu: a slope below zero ---------------------------------------------------------------------------

Status leaky_grad(GradContext& c) {
  c.dx(0, c.b().op("LeakyReluGrad", {c.dy(), c.input(0)}, {{"alpha", c.attr<double>("alpha")}}));
  return {};
}
Status leaky_grad_grad(GradContext& c) {
  Build& b = c.b();
  c.dx(0, b.op("LeakyReluGrad", {c.dy(), c.input(1)}, {{"alpha", c.attr<double>("alpha")}}));
  c.dx(1, b.zeros_like(c.input(1)));
  return {};
}

struct LeakyArgs {
  double alpha = 0;
  int64_t count = 0;
};
constexpr int64_t kLeakyShard = 65536;

// y = x where it is positive, else alpha x; of the gradient op, x is input 0 and input 1 decides.
template <class T, bool kGradient>
Status leaky_run(RunContext& c) {
  const auto& args = c.args<LeakyArgs>();
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
  // The attribute is a float32 in TensorFlow, for float64 too.
  const C alpha = static_cast<C>(static_cast<float>(args.alpha));
  const T* x = c.in<T>(0);
  const T* decides = c.in<T>(kGradient ? 1 : 0);
  T* y = c.out<T>(0);
  c.pool().parallel_for((args.count + kLeakyShard - 1) / kLeakyShard, [&](int64_t shard) {
    const int64_t end = std::min(args.count, (shard + 1) * kLeakyShard);
    for (int64_t i = shard * kLeakyShard; i < end; ++i) {
      // A factor rather than a branch, which is guessed wrong on data that is not sorted.
      const C slopes[2] = {alpha, C(1)};
      y[i] = T(static_cast<C>(x[i]) * slopes[static_cast<C>(decides[i]) > 0]);
    }
  });
  return {};
}

template <bool kGradient>
Status leaky_prepare(PrepareContext& c) {
  auto* args = c.args<LeakyArgs>();
  args->alpha = c.attr<double>("alpha");
  args->count = c.output(0).shape.count();
  for (int i = 0; i < c.num_inputs(); ++i) c.may_overwrite(i, 0);
  switch (c.input(0).dtype) {
    case DType::f64: return c.sync(leaky_run<double, kGradient>);
    case DType::f16: return c.sync(leaky_run<Half, kGradient>);
    case DType::bf16: return c.sync(leaky_run<BFloat16, kGradient>);
    default: return c.sync(leaky_run<float, kGradient>);
  }
}

void register_leaky(OpTable& ops, KernelTable& kernels) {
  constexpr const char* kTypes = "T: {half, bfloat16, float, double} = float";
  ops.add(OpDef::make("LeakyRelu")
              .input("features: T")
              .output("activations: T")
              .attr("alpha: float = 0.2")
              .attr(kTypes)
              .shape(unchanged_shape)
              .gradient(leaky_grad)
              .doc("x where it is positive, else alpha x."));
  ops.add(OpDef::make("LeakyReluGrad")
              .input("gradients: T")
              .input("features: T")
              .output("backprops: T")
              .attr("alpha: float = 0.2")
              .attr(kTypes)
              .shape(merged_shape)
              .gradient(leaky_grad_grad)
              .doc("The gradient of LeakyRelu, from its features."));
  kernels.add({.op = "LeakyRelu", .types = {{"T", kFloating}}, .prepare = leaky_prepare<false>});
  kernels.add({.op = "LeakyReluGrad", .types = {{"T", kFloating}}, .prepare = leaky_prepare<true>});
}

}  // namespace

void register_activation(OpTable& ops, KernelTable& kernels) {
  for (const Activation& row : kActivations) {
    OpDef def = OpDef::make(row.name).input(row.input).output(row.output).attr(row.types).shape(unchanged_shape).doc(row.doc);
    if (row.fuse) std::move(def).fuse(row.fuse);
    ops.add(std::move(def).gradient(row.gradient));
    add_element_kernels(kernels, row.name);
  }
  for (const GradientOp& row : kGradients) {
    OpDef def = OpDef::make(row.name).input("gradients: T").input(row.second).output("backprops: T").attr(row.types);
    if (row.fuse) std::move(def).fuse(row.fuse);
    ops.add(std::move(def).shape(merged_shape).gradient(row.gradient).doc(row.doc));
    add_element_kernels(kernels, row.name);
  }
  register_leaky(ops, kernels);
}

}  // namespace dtg::ops
