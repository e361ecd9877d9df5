// Losses between numbers, between vectors and between distributions, and those of margins. Called by the thread that builds the model.
#include <cmath>

#include "nn/loss_parts.h"

namespace dtg {
namespace {

Value difference(const LossInput& in) { return in.build.sub(in.labels, in.predictions); }

Value percentage(const LossInput& in) {
  Build& b = in.build;
  const Value share = b.op("Abs", {b.div(difference(in), at_least(b, b.op("Abs", {in.labels}), kFuzz))});
  return times(b, mean_last(b, share), 100);
}

Value logarithmic(const LossInput& in) {
  Build& b = in.build;
  const auto log = [&](Value x) { return b.op("Log", {plus(b, at_least(b, x, kFuzz), 1)}); };
  return mean_last(b, square(b, b.sub(log(in.predictions), log(in.labels))));
}

// 0.5 e^2 where |e| <= delta, beyond that a straight line that goes on from there.
Value huber(const LossInput& in) {
  Build& b = in.build;
  const double delta = in.loss.delta;
  const Value error = b.sub(in.predictions, in.labels), size = b.op("Abs", {error});
  if (!b.ok()) return {};
  const Value near = b.op("LessEqual", {size, b.like(size, delta)});
  const Value far = plus(b, times(b, size, delta), -0.5 * delta * delta);
  return mean_last(b, b.op("SelectV2", {near, times(b, square(b, error), 0.5), far}));
}

// log(cosh(e)) = e + softplus(-2 e) - log 2, which does not overflow.
Value log_cosh(const LossInput& in) {
  Build& b = in.build;
  const Value error = b.sub(in.predictions, in.labels);
  const Value all = b.add(error, b.op("Softplus", {times(b, error, -2)}));
  return mean_last(b, plus(b, all, -std::log(2.0)));
}

// x / max(|x|, epsilon).
Value direction(Build& b, Value x) {
  const Value length = b.op("Rsqrt", {b.sum(square(b, x), last_axis(b), /*keep_dims=*/true)});
  return b.ok() ? b.mul(x, b.op("Minimum", {length, b.like(x, 1 / kFuzz)})) : Value();
}

Value divergence(const LossInput& in) {
  Build& b = in.build;
  const Value labels = clip(b, in.labels, kFuzz, 1), predictions = clip(b, in.predictions, kFuzz, 1);
  return sum_last(b, b.mul(labels, b.op("Log", {b.div(labels, predictions)})));
}

Value poisson(const LossInput& in) {
  Build& b = in.build;
  return mean_last(b, b.sub(in.predictions, b.mul(in.labels, b.op("Log", {plus(b, in.predictions, kFuzz)}))));
}

// Distances d of pairs, label 1 where both are the same thing: d^2 for those, for the others how far they are within the margin, squared.
Value contrastive(const LossInput& in) {
  Build& b = in.build;
  const Value close = b.mul(in.labels, square(b, in.predictions));
  const Value room = at_least(b, rest_of(b, in.loss.margin, in.predictions), 0);
  return b.add(close, b.mul(rest_of(b, 1, in.labels), square(b, room)));
}

// Labels that are all 0 or 1 are taken as -1 or 1.
Value signs(const LossInput& in) {
  Build& b = in.build;
  if (!b.ok()) return {};
  const Value zero = b.op("Equal", {in.labels, b.like(in.labels, 0)}), one = b.op("Equal", {in.labels, b.like(in.labels, 1)});
  const Value either = b.op("LogicalOr", {zero, one});
  const Value binary = b.op("All", {either, axes_from(b, either, 0)});
  return b.op("SelectV2", {binary, plus(b, times(b, in.labels, 2), -1), in.labels});
}

}  // namespace

Value distance_loss(const LossInput& in) {
  using Kind = Loss::Kind;
  Build& b = in.build;
  switch (in.loss.kind) {
    case Kind::mean_squared_error: return mean_last(b, square(b, difference(in)));
    case Kind::mean_absolute_error: return mean_last(b, b.op("Abs", {difference(in)}));
    case Kind::mean_absolute_percentage_error: return percentage(in);
    case Kind::mean_squared_logarithmic_error: return logarithmic(in);
    case Kind::huber: return huber(in);
    case Kind::log_cosh: return log_cosh(in);
    case Kind::cosine_similarity: return b.neg(sum_last(b, b.mul(direction(b, in.labels), direction(b, in.predictions))));
    case Kind::kl_divergence: return divergence(in);
    case Kind::poisson: return poisson(in);
    case Kind::contrastive: return contrastive(in);
    default: b.fail(unimplemented("%s is no distance", loss_name(in.loss.kind))); return {};
  }
}

Value hinge_loss(const LossInput& in) {
  Build& b = in.build;
  if (in.loss.kind == Loss::Kind::categorical_hinge) {
    const Value right = sum_last(b, b.mul(in.labels, in.predictions));
    const Value wrong = b.op("Max", {b.mul(rest_of(b, 1, in.labels), in.predictions), last_axis(b)});
    return at_least(b, plus(b, b.sub(wrong, right), 1), 0);
  }
  const Value short_of = at_least(b, rest_of(b, 1, b.mul(signs(in), in.predictions)), 0);
  return mean_last(b, in.loss.kind == Loss::Kind::squared_hinge ? square(b, short_of) : short_of);
}

}  // namespace dtg
