// Adds the nodes of dropout and its relatives. Called by the thread that builds the model.
#include "nn/noise.h"

#include <cmath>

#include "nn/layer.h"
#include "nn/scope.h"

namespace dtg {
namespace {

// Numbers of x's type in such a shape. Key and counter are functions of (seed, this layer, step): the same step draws the same ones.
Value drawn(Model& model, Build& build, const char* op, Value x, Value shape, Value step) {
  const RandomStream stream = model.next_stream();
  const auto number = Tensor::scalar<int64_t>(static_cast<int64_t>(stream.seed ^ stream.number * 0x9e3779b97f4a7c15u));
  if (!number.ok()) build.fail(number.status());
  if (!build.ok()) return {};
  const Value layer = build.constant(number.value());
  const Value pair[] = {layer, build.cast(step, DType::i64)};
  const Value seed = build.op("Pack", pair);
  const Value key = build.op("StatelessRandomGetKeyCounter", {seed});
  if (!build.ok()) return {};
  return build.op(op, {shape, key, key.sibling(1), build.scalar(DType::i32, 1)}, {{"dtype", build.info(x).dtype}});
}

// 1 for the share 1 - rate that stays, 0 for the rest.
Value kept(Model& model, Build& build, Value x, Value shape, double rate, Value step) {
  const Value draw = drawn(model, build, "StatelessRandomUniformV2", x, shape, step);
  return build.ok() ? build.cast(build.op("GreaterEqual", {draw, build.like(draw, rate)}), build.info(x).dtype) : Value();
}

Result<Value> while_training(Model& model, Build& build, Value training, Value changed, Value x, bool changes) {
  const Value y = training.valid() ? build.op("SelectV2", {training, changed, x}) : changed;
  DTG_TRY(build.status());
  if (changes) model.note_switched(y, training);
  return y;
}

// Mean and variance of what SELU gives stay what they are (Klambauer et al., "Self-normalizing neural networks").
Value alpha_dropped(Model& model, Build& b, Value x, double rate, Value step) {
  constexpr double kLimit = -1.0507009873554804934193349852946 * 1.6732632423543772848170429916717;
  const double a = 1 / std::sqrt((1 - rate) * (1 + rate * kLimit * kLimit)), offset = -a * kLimit * rate;
  const Value keep = kept(model, b, x, b.shape(x), rate, step);
  const Value rest = b.mul(b.sub(b.like(x, 1), keep), b.like(x, kLimit));
  return b.add(b.mul(b.add(b.mul(x, keep), rest), b.like(x, a)), b.like(x, offset));
}

Value changed(Model& model, Build& b, Value x, Noise kind, double amount, Value step) {
  if (kind == Noise::alpha_dropout) return alpha_dropped(model, b, x, amount, step);
  if (kind != Noise::spatial_dropout) {
    const bool adds = kind == Noise::gaussian_noise;
    const Value normal = drawn(model, b, "StatelessRandomNormalV2", x, b.shape(x), step);
    if (!b.ok()) return {};
    const Value scaled = b.mul(normal, b.like(x, adds ? amount : std::sqrt(amount / (1 - amount))));
    return adds ? b.add(x, scaled) : b.mul(x, b.add(scaled, b.like(x, 1)));
  }
  const int rank = b.info(x).shape.rank();
  std::vector<Value> sizes(static_cast<size_t>(rank), b.integer(1));
  sizes.front() = dimension(b, b.shape(x), 0);
  sizes.back() = dimension(b, b.shape(x), rank - 1);
  return b.mul(x, b.mul(kept(model, b, x, b.op("Pack", sizes), amount, step), b.like(x, 1 / (1 - amount))));
}

}  // namespace

Result<Value> dropout(Model& model, Value x, double rate, Value step, Value training) {
  DTG_TRY(model.graph().check(x).with_context("dropout"));
  DTG_TRY(model.graph().check(step).with_context("dropout, step"));
  if (!(rate >= 0 && rate < 1)) return invalid_argument("dropout: the rate is %g; it must be in [0, 1)", rate);
  const NameScope scope(model.graph(), "dropout");
  Build build(model.graph());
  const Value keep = kept(model, build, x, build.shape(x), rate, step);
  const Value y = build.mul(x, build.mul(keep, build.like(x, 1 / (1 - rate))));
  return while_training(model, build, training, y, x, rate > 0);
}

Result<Value> noise(Model& model, Value x, Noise kind, double amount, Value step, Value training) {
  static constexpr const char* kNames[] = {"spatial_dropout", "gaussian_noise", "gaussian_dropout", "alpha_dropout"};
  const char* const name = kNames[static_cast<size_t>(kind)];
  DTG_TRY(model.graph().check(x).with_context(name));
  DTG_TRY(model.graph().check(step).with_context(name));
  const ValueInfo& info = model.graph().info(x);
  const bool spatial = kind == Noise::spatial_dropout;
  if (!dtype_is_floating(info.dtype) || (spatial && (info.shape.rank() < 3 || info.shape.rank() > 5))) {
    return invalid_argument("%s: the input is %s; a floating-point value%s is needed", name, described(model, x).c_str(),
                            spatial ? " of rank 3 to 5" : "");
  }
  const bool open = kind != Noise::gaussian_noise;
  if (!(amount >= 0) || !(open ? amount < 1 : std::isfinite(amount)))
    return invalid_argument("%s: the amount is %g; it must be %s", name, amount, open ? "in [0, 1)" : "a finite number from 0");
  const NameScope scope(model.graph(), name);
  Build build(model.graph());
  return while_training(model, build, training, changed(model, build, x, kind, amount, step), x, amount > 0);
}

}  // namespace dtg
