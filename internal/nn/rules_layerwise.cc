// Rates of each variable, by norms over all of it. They are composed from ops; gradients that are rows are taken as dense. The thread that
// builds.
#include "nn/rules.h"

namespace dtg {
namespace {

// Over everything, a scalar.
Value norm_of(Build& b, Value x) {
  const Value half = b.op("L2Loss", {x});
  return b.ok() ? b.op("Sqrt", {b.mul(half, b.like(half, 2))}) : Value();
}

Value mean_of(Build& b, Value x, std::span<const int64_t> axes, bool keep_dims = false) {
  return b.op("Mean", {x, b.ints(axes)}, {{"keep_dims", keep_dims}});
}

// The root of the mean square over everything.
Value rms_of(Build& b, const NamedVariable& v, Value x) {
  std::vector<int64_t> all;
  for (int i = 0; i < v.shape.rank(); ++i) all.push_back(i);
  return b.op("Sqrt", {mean_of(b, b.op("Square", {x}), all)});
}

// `ratio` where both norms are something, 1 otherwise.
Value where_both(Build& b, Value w_norm, Value g_norm, Value ratio) {
  if (!b.ok()) return {};
  const Value zero = b.like(w_norm, 0), one = b.like(w_norm, 1);
  const Value where_g = b.op("SelectV2", {b.op("Greater", {g_norm, zero}), ratio, one});
  return b.op("SelectV2", {b.op("Greater", {w_norm, zero}), where_g, one});
}

Result<Shape> without(const Shape& shape, int d) {
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims.erase(dims.begin() + d);
  return Shape::make(dims);
}

// slot += (target - slot) * share; what it is then.
Result<Value> follow(Updates& u, const NamedVariable& v, const NamedVariable& slot, Value target, Value share) {
  Build& b = u.build();
  const Value by = b.mul(b.sub(target, slot.read), share);
  const Value then = b.add(slot.read, by);
  DTG_TRY(u.increase(v, slot, by));
  return then;
}

}  // namespace

// Keras' Lamb: Adam's step without its root of powers, times |v| / |step|.
Status lamb(Updates& u, const NamedVariable& v, Gradient& g) {
  const Optimizer& o = u.optimizer();
  Build& b = u.build();
  DTG_ASSIGN(const Moments moments, moments_of(u, v, densify(b, g), "LAMB", "LAMB_1"));
  const Value one = u.number(v, 1);
  const Value m = b.div(moments.new_m, b.sub(one, u.counter(v, 0)));
  const Value s = b.op("Sqrt", {b.div(moments.new_s, b.sub(one, u.counter(v, 1)))});
  const Value step = b.div(m, b.add(s, u.number(v, o.epsilon)));
  const Value w_norm = norm_of(b, u.decayed(v)), g_norm = norm_of(b, step);
  const Value ratio = where_both(b, w_norm, g_norm, b.div(w_norm, g_norm));
  return move_by(u, v, moments, b.mul(b.mul(ratio, u.rate(v)), step));
}

// tf.contrib.opt.LARSOptimizer: momentum with the rate * trust * |v| / (|g| + weight_decay * |v| + epsilon), of g + weight_decay * v. What
// is exempt from weight decay has the plain rate.
Status lars(Updates& u, const NamedVariable& v, Gradient& g) {
  const Optimizer& o = u.optimizer();
  Build& b = u.build();
  DTG_ASSIGN(const NamedVariable accum, u.slot(v, "LARS", 0));
  Value gradient = densify(b, g), rate = u.rate(v);
  if (o.decays(v)) {
    const Value decay = u.number(v, o.weight_decay), w_norm = norm_of(b, v.read), g_norm = norm_of(b, gradient);
    const Value divisor = b.add(b.add(g_norm, b.mul(decay, w_norm)), u.number(v, o.epsilon));
    rate = b.mul(rate, where_both(b, w_norm, g_norm, b.div(b.mul(u.number(v, o.trust), w_norm), divisor)));
    gradient = b.add(gradient, b.mul(decay, v.read));
  }
  DTG_TRY(b.status());
  return u.apply(v, "ResourceApplyMomentum", std::array{v.handle, accum.handle, rate, gradient, u.number(v, o.momentum)},
                 {{"use_nesterov", o.nesterov}});
}

// t, from 1.
Status count_steps(Updates& u) { return u.count_steps("adafactor_step", 1); }

// Keras' Adafactor: means of g^2 by rows and columns of the last two dimensions in place of all of it.
Status adafactor(Updates& u, const NamedVariable& v, Gradient& g) {
  const Optimizer& o = u.optimizer();
  Build& b = u.build();
  const Value gradient = densify(b, g), t = u.counter(v, 0), one = u.number(v, 1);
  const Value share = b.op("Pow", {t, u.number(v, o.decay)});  // 1 - beta2(t)
  const Value squares = b.add(b.mul(gradient, gradient), u.number(v, o.epsilon));
  Value mean;
  if (const int rank = v.shape.rank(); rank >= 2) {
    DTG_ASSIGN(const Shape by_row, without(v.shape, rank - 1));
    DTG_ASSIGN(const Shape by_column, without(v.shape, rank - 2));
    DTG_ASSIGN(const NamedVariable rows, u.slot(v, "Adafactor", 0, by_row));
    DTG_ASSIGN(const NamedVariable columns, u.slot(v, "Adafactor_1", 0, by_column));
    const int64_t last[] = {rank - 1}, before[] = {rank - 2};
    DTG_ASSIGN(const Value r, follow(u, v, rows, mean_of(b, squares, last), share));
    DTG_ASSIGN(const Value c, follow(u, v, columns, mean_of(b, squares, before), share));
    const Value part = b.div(r, mean_of(b, r, before, true));
    mean = b.mul(b.op("ExpandDims", {part, b.integer(rank - 1)}), b.op("ExpandDims", {c, b.integer(rank - 2)}));
  } else {
    DTG_ASSIGN(const NamedVariable all, u.slot(v, "Adafactor", 0));
    DTG_ASSIGN(mean, follow(u, v, all, squares, share));
  }
  const Value step = b.div(gradient, b.op("Sqrt", {mean}));
  const Value clipped = b.div(step, b.op("Maximum", {one, b.div(rms_of(b, v, step), u.number(v, o.clip_threshold))}));
  const Value rate = b.op("Minimum", {u.rate(v), b.div(one, b.op("Sqrt", {t}))});
  const Value size = b.op("Maximum", {u.number(v, o.epsilon2), rms_of(b, v, u.decayed(v))});
  return u.decrease(v, v, b.mul(b.mul(size, rate), clipped));
}

}  // namespace dtg
