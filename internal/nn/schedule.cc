// Adds the nodes of learning-rate schedules. Called by the thread that builds the graph.
#include "nn/schedule.h"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "nn/scope.h"

namespace dtg {
namespace {

constexpr double kMost = std::numeric_limits<float>::max();

// What a schedule is made from is computed with as float32.
Status check_numbers(const char* what, std::span<const double> numbers) {
  for (const double number : numbers) {
    if (!(std::abs(number) <= kMost)) return invalid_argument("%s: %g is no number that float32 has", what, number);
  }
  return {};
}

Result<Value> done(const Build& build, Value value) {
  DTG_TRY(build.status().with_context("learning-rate schedule"));
  return value;
}

}  // namespace

Result<Value> adjustable_rate(Graph& graph, double rate) {
  DTG_TRY(check_numbers("learning rate", {&rate, 1}));
  const NameScope scope(graph, "adjustable");
  Build build(graph);
  const Value first = build.scalar(DType::f32, rate, "first");
  return done(build, build.op("PlaceholderWithDefault", {first}, {{"shape", PartialShape(Shape())}}, "learning_rate"));
}

Result<Value> exponential_decay(Graph& graph, Value step, double rate, double every, double factor, bool staircase) {
  DTG_TRY(graph.check(step).with_context("exponential decay"));
  if (!(every > 0) || !(factor > 0))
    return invalid_argument("exponential decay: every %g steps by %g; both must be positive", every, factor);
  DTG_TRY(check_numbers("exponential decay", std::array{rate, every, factor}));
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
  DTG_TRY(check_numbers("cosine decay", std::array{rate, steps, floor, warmup}));
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
  DTG_TRY(check_numbers("piecewise constant rate", values));
  for (size_t i = 0; i + 1 < boundaries.size(); ++i) {
    if (boundaries[i] < boundaries[i + 1]) continue;
    return invalid_argument("piecewise constant rate: the boundaries do not rise: %lld, %lld", static_cast<long long>(boundaries[i]),
                            static_cast<long long>(boundaries[i + 1]));
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

namespace {

// A schedule whose rate is a function of n, the count of steps as float32, in which Keras computes too.
class Curve {
 public:
  Curve(Graph& graph, const Schedule& schedule, Value step) : b(graph), s(schedule), n(b.cast(step, DType::f32)) {}

  Result<Value> run() {
    switch (s.kind) {
      case Schedule::Kind::exponential_decay: return done(b, b.mul(number(s.rate), power(number(s.decay_rate), periods())));
      case Schedule::Kind::inverse_time_decay:
        return done(b, b.div(number(s.rate), b.add(number(1), b.mul(number(s.decay_rate), periods()))));
      case Schedule::Kind::polynomial_decay: return done(b, polynomial());
      case Schedule::Kind::cosine_decay: return done(b, s.warms_up ? warmed_up() : cosine(n, number(s.rate)));
      case Schedule::Kind::cosine_decay_restarts: return done(b, restarts());
      case Schedule::Kind::piecewise_constant: break;
    }
    return internal_error("no curve of schedule %d", static_cast<int>(s.kind));
  }

 private:
  Value number(double value) { return b.scalar(DType::f32, value); }
  Value power(Value base, Value exponent) { return b.op("Pow", {base, exponent}); }
  Value floor(Value x) { return b.op("Floor", {x}); }
  Value least(Value x, Value y) { return b.op("Minimum", {x, y}); }
  Value choose(Value when, Value yes, Value no) { return b.op("SelectV2", {when, yes, no}); }

  Value periods() {
    const Value all = b.div(n, number(s.steps));
    return s.staircase ? floor(all) : all;
  }

  Value polynomial() {
    Value steps = number(s.steps), now = n;
    if (s.cycle) {
      const Value cycles = b.op("Ceil", {b.div(n, steps)});
      steps = b.mul(steps, choose(b.op("Equal", {n, number(0)}), number(1), cycles));
    } else {
      now = least(n, steps);
    }
    const Value rest = b.sub(number(1), b.div(now, steps));
    return b.add(b.mul(number(s.rate - s.end_rate), power(rest, number(s.power))), number(s.end_rate));
  }

  // Half a wave over s.steps, between `rate` and its share alpha.
  Value wave(Value part, Value rate) {
    const Value half = b.mul(number(0.5), b.add(number(1), b.op("Cos", {b.mul(part, number(std::numbers::pi))})));
    return b.mul(rate, b.add(b.mul(number(1 - s.alpha), half), number(s.alpha)));
  }
  Value cosine(Value now, Value rate) { return wave(b.div(least(now, number(s.steps)), number(s.steps)), rate); }

  Value warmed_up() {
    const Value target = number(s.warmup_target), steps = number(s.warmup_steps);
    const Value later = cosine(b.sub(n, steps), target);
    if (s.warmup_steps == 0) return later;
    const Value line = b.add(b.mul(number(s.warmup_target - s.rate), b.div(n, steps)), number(s.rate));
    return choose(b.op("Less", {n, steps}), line, later);
  }

  Value restarts() {
    const Value all = b.div(n, number(s.steps)), one = number(1);
    Value restart = floor(all), part = b.sub(all, restart);
    if (s.t_mul != 1) {
      const Value t = number(s.t_mul), rest = number(1 - s.t_mul);
      restart = floor(b.div(b.op("Log", {b.sub(one, b.mul(all, rest))}), b.op("Log", {t})));
      const Value times = power(t, restart);
      part = b.div(b.sub(all, b.div(b.sub(one, times), rest)), times);
    }
    return wave(part, b.mul(power(number(s.m_mul), restart), number(s.rate)));
  }

  Build b;
  const Schedule& s;
  const Value n;
};

constexpr const char* kScheduleNames[] = {"exponential_decay",  "inverse_time_decay", "polynomial_decay",
                                          "piecewise_constant", "cosine_decay",       "cosine_decay_restarts"};

Status check_schedule(const Schedule& s) {
  using Kind = Schedule::Kind;
  const bool warm = s.kind == Kind::cosine_decay && s.warms_up, restarts = s.kind == Kind::cosine_decay_restarts;
  const bool cosine = s.kind == Kind::cosine_decay || restarts;
  const struct {
    bool is_used;
    const char* name;
    double value, least;
  } numbers[] = {{true, "rate", s.rate, -kMost},
                 {true, "steps", s.steps, std::numeric_limits<float>::min()},
                 {s.kind == Kind::exponential_decay || s.kind == Kind::inverse_time_decay, "decay_rate", s.decay_rate, 0},
                 {s.kind == Kind::polynomial_decay, "end_rate", s.end_rate, -kMost},
                 {s.kind == Kind::polynomial_decay, "power", s.power, 0},
                 {cosine, "alpha", s.alpha, -kMost},
                 {warm, "warmup_target", s.warmup_target, -kMost},
                 {warm, "warmup_steps", s.warmup_steps, 0},
                 {restarts, "t_mul", s.t_mul, 1},
                 {restarts, "m_mul", s.m_mul, 0}};
  for (const auto& each : numbers) {
    if (!each.is_used || (each.value >= each.least && each.value <= kMost)) continue;
    return invalid_argument("schedule %s: %s is %g; it must be a number %s", kScheduleNames[static_cast<int>(s.kind)], each.name,
                            each.value,
                            each.least == -kMost ? "that float32 has"
                            : each.least == 1    ? "from 1 up"
                            : each.least == 0    ? "from 0 up"
                                                 : "above 0");
  }
  return {};
}

}  // namespace

Result<Value> add_schedule(Graph& graph, Value step, const Schedule& schedule) {
  if (schedule.kind == Schedule::Kind::piecewise_constant) return piecewise_constant(graph, step, schedule.boundaries, schedule.values);
  DTG_TRY(graph.check(step).with_context("schedule"));
  DTG_TRY(check_schedule(schedule));
  const NameScope scope(graph, kScheduleNames[static_cast<int>(schedule.kind)]);
  return Curve(graph, schedule, step).run();
}

}  // namespace dtg
