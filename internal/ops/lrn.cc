// LRN and its gradient: each value divided by a power of the sum of squares of the channels around it. The channels lie last; a
// pixel is the unit. Registered once by the runtime; kernels run on any thread.
#include <algorithm>
#include <cmath>

#include "base/watched.h"
#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"

namespace dtg::ops {
namespace {

Status check_radius(const Node& node) {
  const int64_t radius = node.attr<int64_t>("depth_radius");
  if (radius >= 0 && radius <= INT32_MAX) return {};
  return invalid_argument("%s: depth_radius is %lld; it must not be negative, and fit into 32 bits", node.op->name().c_str(),
                          static_cast<long long>(radius));
}

// All inputs are images of one shape, and so is the output.
Status lrn_shape(InferContext& c) {
  PartialShape shape = PartialShape::of_rank(4);
  for (int i = 0; i < c.num_inputs(); ++i) {
    DTG_TRY(c.require_rank(i, 4));
    auto merged = PartialShape::merge(shape, c.input(i), "shape");
    if (!merged.ok()) return c.error("input %d: %s", i, merged.status().message().c_str());
    shape = merged.take();
  }
  DTG_TRY(check_radius(c.node()));
  c.output(0, shape);
  return {};
}

Status lrn_grad(GradContext& c) {
  c.dx(0, c.b().op("LRNGrad", {c.dy(), c.input(0), c.output(0)},
                   {{"depth_radius", c.attr<int64_t>("depth_radius")},
                    {"bias", c.attr<double>("bias")},
                    {"alpha", c.attr<double>("alpha")},
                    {"beta", c.attr<double>("beta")}}));
  return {};
}

struct LrnArgs {
  int64_t pixels = 0, channels = 0, radius = 0, shards = 1;
  float bias = 1, alpha = 1, beta = 0.5f;
};

// n to the power of -beta; the exponents in use have cheap forms.
float power(float n, float beta) {
  if (beta == 0.5f) return 1.0f / std::sqrt(n);
  if (beta == 1.0f) return 1.0f / n;
  if (beta == 0.75f) return 1.0f / (std::sqrt(n) * std::sqrt(std::sqrt(n)));
  return std::pow(n, -beta);
}

// fn(k, sum of value(j) for |j - k| <= radius), a sliding sum in double, which keeps what leaves from showing.
template <class Value, class Fn>
void sliding(const LrnArgs& a, Value value, Fn fn) {
  double sum = 0;
  for (const int64_t j : watched(std::min(a.radius, a.channels))) sum += value(j);
  for (const int64_t k : watched(a.channels, 20)) {
    if (k + a.radius < a.channels) sum += value(k + a.radius);
    if (k - a.radius > 0) sum -= value(k - a.radius - 1);
    fn(k, static_cast<float>(sum));
  }
}

template <class Fn>
void for_pixels(RunContext& c, const LrnArgs& a, Fn fn) {
  c.pool().parallel_for(a.shards, [&](int64_t shard) {
    look_between(a.pixels * shard / a.shards, a.pixels * (shard + 1) / a.shards, 20 * a.channels,
                 [&](int64_t i) { fn(i * a.channels, shard); });
  });
}

template <class T>
double squared(T x) {
  const auto wide = static_cast<double>(static_cast<float>(x));
  return wide * wide;
}

// y = x (bias + alpha sum of squares)^-beta
template <class T>
Status lrn_run(RunContext& c) {
  const auto& a = c.args<LrnArgs>();
  for_pixels(c, a, [&](int64_t at, int64_t) {
    const T* x = c.in<T>(0) + at;
    T* y = c.out<T>(0) + at;
    sliding(
        a, [&](int64_t j) { return squared(x[j]); },
        [&](int64_t k, float sum) { y[k] = static_cast<T>(static_cast<float>(x[k]) * power(a.bias + a.alpha * sum, a.beta)); });
  });
  return {};
}

// dx_k = dy_k n_k^-beta - 2 alpha beta x_k sum over |j - k| <= radius of dy_j y_j / n_j, with n = bias + alpha sum of squares
template <class T>
Status lrn_grad_run(RunContext& c) {
  const auto& a = c.args<LrnArgs>();
  for_pixels(c, a, [&](int64_t at, int64_t shard) {
    const T *dy = c.in<T>(0) + at, *x = c.in<T>(1) + at, *y = c.in<T>(2) + at;
    T* dx = c.out<T>(0) + at;
    float* norm = c.workspace<float>() + shard * a.channels;
    sliding(
        a, [&](int64_t j) { return squared(x[j]); }, [&](int64_t k, float sum) { norm[k] = a.bias + a.alpha * sum; });
    const auto share = [&](int64_t j) { return static_cast<double>(static_cast<float>(dy[j]) * static_cast<float>(y[j]) / norm[j]); };
    sliding(a, share, [&](int64_t k, float sum) {
      dx[k] = static_cast<T>(static_cast<float>(dy[k]) * power(norm[k], a.beta) - 2.0f * a.alpha * a.beta * static_cast<float>(x[k]) * sum);
    });
  });
  return {};
}

Status set_lrn(PrepareContext& c) {
  auto& a = *c.args<LrnArgs>();
  DTG_TRY(check_radius(c.node()));
  const Shape& shape = c.input(0).shape;
  a.channels = shape.dim(3);
  a.pixels = shape.count(0, 3);
  a.radius = std::min(c.integer("depth_radius"), a.channels);
  a.bias = static_cast<float>(c.attr<double>("bias"));
  a.alpha = static_cast<float>(c.attr<double>("alpha"));
  a.beta = static_cast<float>(c.attr<double>("beta"));
  a.shards = std::clamp<int64_t>(shape.count() / 8192, 1, std::clamp<int64_t>(a.pixels, 1, 16));
  return {};
}

template <class T>
Status lrn_prepare(PrepareContext& c) {
  DTG_TRY(set_lrn(c));
  return c.sync(lrn_run<T>);
}

template <class T>
Status lrn_grad_prepare(PrepareContext& c) {
  DTG_TRY(set_lrn(c));
  c.workspace(Bytes::of(c.args<LrnArgs>()->channels, 4) * c.args<LrnArgs>()->shards);
  return c.sync(lrn_grad_run<T>);
}

OpDef&& lrn_def(OpDef&& def) {
  return std::move(def)
      .attr("depth_radius: int = 5")
      .attr("bias: float = 1.0")
      .attr("alpha: float = 1.0")
      .attr("beta: float = 0.5")
      .attr("T: {half, bfloat16, float} = float")
      .shape(lrn_shape);
}

template <class T>
void add_kernels(KernelTable& kernels) {
  const KernelRow::TypeClause type{"T", DTypeSet{dtype_of<T>}};
  kernels.add({.op = "LRN", .types = {type}, .prepare = lrn_prepare<T>});
  kernels.add({.op = "LRNGrad", .types = {type}, .prepare = lrn_grad_prepare<T>});
}

}  // namespace

void register_norm(OpTable& ops, KernelTable& kernels) {
  register_batch_norm(ops, kernels);
  ops.add(lrn_def(OpDef::make("LRN").input("input: T", {.rank = 4}).output("output: T"))
              .gradient(lrn_grad)
              .doc("Each value over a power of bias + alpha times the sum of squares of the channels around it."));
  ops.add(lrn_def(OpDef::make("LRNGrad")
                      .input("input_grads: T", {.rank = 4})
                      .input("input_image: T", {.rank = 4})
                      .input("output_image: T", {.rank = 4})
                      .output("output: T"))
              .gradient(nullptr)
              .doc("Gradient of LRN, from its input and output."));
  add_kernels<float>(kernels);
  add_kernels<Half>(kernels);
  add_kernels<BFloat16>(kernels);
}

}  // namespace dtg::ops
