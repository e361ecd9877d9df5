// Adam and its kin: moving means of the gradient and of its square. Gradients that are rows are taken as dense, as TensorFlow and Keras do:
// the means of all rows decay, and all rows move; but for the lazy form of Adam. The thread that builds.
#include "nn/clipping.h"
#include "nn/rules.h"

namespace dtg {
namespace {

// beta^t.
Status count_power(Updates& u, const char* name, double beta) {
  return u.count_power(name, beta, [&u, beta] { return u.constant(beta); });
}

constexpr double kNadamDecay = 0.96;

// Of the rows that were used, or with a decay that is part of the op.
Status adam_in_one(Updates& u, const NamedVariable& v, Gradient& g, const NamedVariable& m, const NamedVariable& s, bool rows) {
  const Optimizer& o = u.optimizer();
  if (rows) merge_rows(u.build(), g);
  std::vector<Value> inputs = {v.handle,
                               m.handle,
                               s.handle,
                               u.counter(v, 0),
                               u.counter(v, 1),
                               u.rate(v),
                               u.number(v, o.beta1),
                               u.number(v, o.beta2),
                               u.number(v, o.epsilon),
                               u.number(v, u.decay_of(v))};
  inputs.push_back(rows ? g.values : densify(u.build(), g));
  if (rows) inputs.push_back(g.indices);
  return u.apply(v, rows ? "_ResourceSparseApplyAdamW" : "_ResourceApplyAdamW", inputs);
}

}  // namespace

bool adam_decays(const Optimizer& o) { return !o.amsgrad; }

Status count_beta1(Updates& u) { return count_power(u, "beta1_power", u.optimizer().beta1); }
Status count_betas(Updates& u) {
  DTG_TRY(count_beta1(u));
  return count_power(u, "beta2_power", u.optimizer().beta2);
}

Status adam(Updates& u, const NamedVariable& v, Gradient& g) {
  const Optimizer& o = u.optimizer();
  DTG_ASSIGN(const NamedVariable m, u.slot(v, "Adam", 0));
  DTG_ASSIGN(const NamedVariable s, u.slot(v, "Adam_1", 0));
  const bool rows = g.is_rows() && o.lazy;
  if (!o.amsgrad && (rows || u.decay_of(v) > 0)) return adam_in_one(u, v, g, m, s, rows);
  std::vector<Value> inputs = {v.handle, m.handle, s.handle};
  if (o.amsgrad) {
    DTG_ASSIGN(const NamedVariable most, u.slot(v, "Adam_2", 0));
    inputs.push_back(most.handle);
  }
  const Value gradient = densify(u.build(), g);
  for (const Value each :
       {u.counter(v, 0), u.counter(v, 1), u.rate(v), u.number(v, o.beta1), u.number(v, o.beta2), u.number(v, o.epsilon), gradient}) {
    inputs.push_back(each);
  }
  return u.apply(v, o.amsgrad ? "ResourceApplyAdamWithAmsgrad" : "ResourceApplyAdam", inputs);
}

Status adamax(Updates& u, const NamedVariable& v, Gradient& g) {
  const Optimizer& o = u.optimizer();
  DTG_ASSIGN(const NamedVariable m, u.slot(v, "Adamax", 0));
  DTG_ASSIGN(const NamedVariable most, u.slot(v, "Adamax_1", 0));
  const Value gradient = densify(u.build(), g);
  return u.apply(v, "ResourceApplyAdaMax",
                 std::array{v.handle, m.handle, most.handle, u.counter(v, 0), u.rate(v), u.number(v, o.beta1), u.number(v, o.beta2),
                            u.number(v, o.epsilon), gradient});
}

// 0: 0.96^t; 1: u(1) * ... * u(t) with u(t) = beta1 * (1 - 0.96^t / 2); 2: beta2^t.
Status count_nadam(Updates& u) {
  const double beta1 = u.optimizer().beta1;
  DTG_TRY(count_power(u, "nadam_decay_power", kNadamDecay));
  DTG_TRY(u.count_power("nadam_u_product", beta1 * (1 - kNadamDecay / 2), [&u, beta1] {
    Build& b = u.build();
    return b.mul(u.constant(beta1), b.sub(u.constant(1), b.mul(u.constant(kNadamDecay / 2), u.counter_here(0))));
  }));
  return count_power(u, "beta2_power", u.optimizer().beta2);
}

Status nadam(Updates& u, const NamedVariable& v, Gradient& g) {
  const Optimizer& o = u.optimizer();
  Build& b = u.build();
  const Value gradient = densify(b, g);
  DTG_ASSIGN(const Moments moments, moments_of(u, v, gradient, "Nadam", "Nadam_1"));
  const Value one = u.number(v, 1), power = u.counter(v, 0), product = u.counter(v, 1);
  const auto ahead = [&](double half) { return b.mul(u.number(v, o.beta1), b.sub(one, b.mul(u.number(v, half), power))); };
  const Value now = ahead(0.5), next = ahead(kNadamDecay / 2);
  const Value from_m = b.div(b.mul(next, moments.new_m), b.sub(one, b.mul(product, next)));
  const Value from_g = b.div(b.mul(b.sub(one, now), gradient), b.sub(one, product));
  const Value s = b.div(moments.new_s, b.sub(one, u.counter(v, 2)));
  const Value divisor = b.add(b.op("Sqrt", {s}), u.number(v, o.epsilon));
  return move_by(u, v, moments, b.div(b.mul(b.add(from_m, from_g), u.rate(v)), divisor));
}

Result<Moments> moments_of(Updates& u, const NamedVariable& v, Value g, const char* m, const char* s) {
  const Optimizer& o = u.optimizer();
  Build& b = u.build();
  Moments all;
  DTG_ASSIGN(all.m, u.slot(v, m, 0));
  DTG_ASSIGN(all.s, u.slot(v, s, 0));
  all.by_m = b.mul(b.sub(g, all.m.read), u.number(v, 1 - o.beta1));
  all.by_s = b.mul(b.sub(b.mul(g, g), all.s.read), u.number(v, 1 - o.beta2));
  all.new_m = b.add(all.m.read, all.by_m);
  all.new_s = b.add(all.s.read, all.by_s);
  DTG_TRY(b.status());
  return all;
}

Status move_by(Updates& u, const NamedVariable& v, const Moments& moments, Value step) {
  DTG_TRY(u.build().status());
  DTG_TRY(u.increase(v, moments.m, moments.by_m));
  DTG_TRY(u.increase(v, moments.s, moments.by_s));
  return u.decrease(v, v, step);
}

}  // namespace dtg
