// Adds the nodes of learning-rate schedules. Called by the thread that builds the graph.
#include "nn/schedule.h"

#include <numbers>

#include "nn/scope.h"

namespace dtg {
namespace {

Result<Value> done(const Build& build, Value value) {
  DTG_TRY(build.status().with_context("learning-rate schedule"));
  return value;
}

}  // namespace

Result<Value> exponential_decay(Graph& graph, Value step, double rate, double every, double factor, bool staircase) {
  DTG_TRY(graph.check(step).with_context("exponential decay"));
  if (!(every > 0) || !(factor > 0))
    return invalid_argument("exponential decay: every %g steps by %g; both must be positive", every, factor);
  const NameScope scope(graph, "exponential_decay");
  Build build(graph);
  const Value x = build.cast(step, DType::f32);
  Value periods = build.div(x, build.like(x, every));
  if (staircase) periods = build.op("Floor", {periods});
  return done(build, build.mul(build.op("Pow", {build.like(x, factor), periods}), build.like(x, rate)));
}

Result<Value> cosine_decay(Graph& graph, Value step, double rate, double steps, double floor, double warmup) {
  DTG_TRY(graph.check(step).with_context("cosine decay"));
  if (!(steps > warmup) || !(warmup >= 0)) {
    return invalid_argument("cosine decay: %g steps of which %g are warm-up; the warm-up must be the shorter", steps, warmup);
  }
  const NameScope scope(graph, "cosine_decay");
  Build build(graph);
  const Value x = build.cast(step, DType::f32), zero = build.like(x, 0), one = build.like(x, 1);
  const Value along = build.div(build.sub(x, build.like(x, warmup)), build.like(x, steps - warmup));
  const Value part = build.op("Minimum", {build.op("Maximum", {along, zero}), one});
  const Value wave = build.add(build.op("Cos", {build.mul(part, build.like(x, std::numbers::pi))}), one);
  Value share = build.add(build.mul(wave, build.like(x, (1 - floor) / 2)), build.like(x, floor));
  if (warmup > 0) share = build.op("Minimum", {share, build.div(x, build.like(x, warmup))});
  return done(build, build.mul(share, build.like(x, rate)));
}

Result<Value> piecewise_constant(Graph& graph, Value step, std::span<const int64_t> boundaries, std::span<const double> values) {
  DTG_TRY(graph.check(step).with_context("piecewise constant rate"));
  if (values.size() != boundaries.size() + 1) {
    return invalid_argument("piecewise constant rate: %zu boundaries need %zu values, %zu were given", boundaries.size(),
                            boundaries.size() + 1, values.size());
  }
  const NameScope scope(graph, "piecewise_constant");
  Build build(graph);
  const Value x = build.cast(step, DType::i64);
  Value rate = build.scalar(DType::f32, values.back());
  for (size_t i = boundaries.size(); i-- > 0;) {
    const Value early = build.op("LessEqual", {x, build.integer(boundaries[i], DType::i64)});
    rate = build.op("SelectV2", {early, build.scalar(DType::f32, values[i]), rate});
  }
  return done(build, rate);
}

}  // namespace dtg
