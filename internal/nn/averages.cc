// Means of variables over the steps, behind the rule that moves them: the moving mean of Keras' use_ema, and the slow copy of look-ahead.
// Both are one op, which sees what the variable has become and so belongs to the same unit of writes. The thread that builds.
#include "nn/scope.h"
#include "nn/updates.h"

namespace dtg {

// 1 where `now`, a number of steps, is a multiple of `steps`, 0 otherwise.
Value Updates::every(const NamedVariable& v, Value now, double steps) {
  Build& b = build();
  if (!b.ok()) return {};
  const Value period = b.like(now, steps);
  const Value rest = b.sub(now, b.mul(b.op("Floor", {b.div(now, period)}), period));
  return b.cast(b.op("Equal", {rest, b.like(now, 0)}), v.dtype);
}

// The number of this step, from 1. With accumulation `as_keras` is the number of the one that it belongs to, in each of its parts.
Value Updates::step_number(const NamedVariable& v, bool as_keras) {
  Build& b = build();
  const Value past = this->past(v, of_rule_);
  if (!b.ok()) return {};
  const auto n = [&](double value) { return b.like(past, value); };
  if (!as_keras || !accumulates()) return b.add(past, n(1));
  return b.add(b.op("Floor", {b.div(past, n(static_cast<double>(optimizer_.accumulation_steps)))}), n(1));
}

Status Updates::average(const NamedVariable& v) {
  Build& b = build();
  const ColocationScope beside(graph(), place(v));
  if (optimizer_.lookahead_steps > 0) {
    DTG_ASSIGN(const NamedVariable slow, slot(v, "Slow", 0, v.shape, graph().node(v.assign).inputs[1]));
    // Of steps that move the variable: with accumulation the last part of each.
    const double parts = accumulates() ? static_cast<double>(optimizer_.accumulation_steps) : 1;
    const Value now = every(v, step_number(v, false), static_cast<double>(optimizer_.lookahead_steps) * parts);
    const Value kept = b.sub(number(v, 1), b.mul(now, number(v, optimizer_.lookahead_share)));
    DTG_TRY(apply(v, "_ResourceApplyAverage", std::array{v.handle, slow.handle, kept, now}));
  }
  if (!optimizer_.use_ema) return {};
  DTG_ASSIGN(const NamedVariable mean, slot(v, "ExponentialMovingAverage", 0));
  // As long as the first step lasts the mean is the variable.
  const double first = accumulates() ? static_cast<double>(optimizer_.accumulation_steps) : 1;
  const Value past = this->past(v, of_rule_);
  const Value later = b.cast(b.op("GreaterEqual", {past, b.like(past, first)}), v.dtype);
  const Value overwrite = optimizer_.ema_overwrite_every > 0
                              ? every(v, step_number(v, true), static_cast<double>(optimizer_.ema_overwrite_every))
                              : number(v, 0);
  const Value momentum = b.mul(later, number(v, optimizer_.ema_momentum));
  return apply(v, "_ResourceApplyAverage", std::array{v.handle, mean.handle, momentum, overwrite});
}

}  // namespace dtg
