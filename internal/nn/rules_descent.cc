// Steps along the gradient, along what has gathered of it, or along the sign of that. The thread that builds.
#include "nn/clipping.h"
#include "nn/rules.h"

namespace dtg {

Status descend(Updates& u, const NamedVariable& v, Gradient& g) {
  if (!g.is_rows()) return u.apply(v, "ResourceApplyGradientDescent", std::array{v.handle, u.rate(v), g.dense});
  // Subtracting is linear, so rows need not be merged.
  return u.apply(v, "ResourceScatterSub", std::array{v.handle, g.indices, u.build().mul(g.values, u.rate(v))}, {{"dtype", v.dtype}});
}

Status momentum(Updates& u, const NamedVariable& v, Gradient& g) {
  DTG_ASSIGN(const NamedVariable accum, u.slot(v, "Momentum", 0));
  const Attr nesterov{"use_nesterov", u.optimizer().nesterov};
  const Value factor = u.number(v, u.optimizer().momentum);
  if (!g.is_rows()) {
    return u.apply(v, "ResourceApplyMomentum", std::array{v.handle, accum.handle, u.rate(v), g.dense, factor}, {nesterov});
  }
  merge_rows(u.build(), g);
  return u.apply(v, "ResourceSparseApplyMomentum", std::array{v.handle, accum.handle, u.rate(v), g.values, g.indices, factor}, {nesterov});
}

// Keras' Lion, of all rows: v -= rate * sign(beta1 * m + (1 - beta1) * g), then m += (1 - beta2) * (g - m).
Status lion(Updates& u, const NamedVariable& v, Gradient& g) {
  DTG_ASSIGN(const NamedVariable m, u.slot(v, "Lion", 0));
  Build& b = u.build();
  const Optimizer& o = u.optimizer();
  const Value gradient = densify(b, g);
  const Value ahead = b.add(b.mul(m.read, u.number(v, o.beta1)), b.mul(gradient, u.number(v, 1 - o.beta1)));
  const Value step = b.mul(b.op("Sign", {ahead}), u.rate(v)), by = b.mul(b.sub(gradient, m.read), u.number(v, 1 - o.beta2));
  DTG_TRY(u.increase(v, m, by));
  return u.decrease(v, v, step);
}

}  // namespace dtg
