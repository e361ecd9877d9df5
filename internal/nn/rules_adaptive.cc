// Rates of each element, by the squares of its gradients. TensorFlow has a fused op for each, and one for rows, which leaves other rows
// alone. The thread that builds.
#include "nn/clipping.h"
#include "nn/rules.h"

namespace dtg {
namespace {

// `before` the gradient, then its rows' indices, then `behind`: the order of inputs of all these ops.
Status apply_either(Updates& u, const NamedVariable& v, Gradient& g, const char* dense, const char* rows, std::vector<Value> inputs,
                    std::initializer_list<Value> behind = {}) {
  if (g.is_rows()) merge_rows(u.build(), g);
  inputs.push_back(g.is_rows() ? g.values : g.dense);
  if (g.is_rows()) inputs.push_back(g.indices);
  inputs.insert(inputs.end(), behind.begin(), behind.end());
  return u.apply(v, g.is_rows() ? rows : dense, inputs);
}

}  // namespace

Status adagrad(Updates& u, const NamedVariable& v, Gradient& g) {
  DTG_ASSIGN(const NamedVariable accum, u.slot(v, "Adagrad", u.optimizer().initial_accumulator));
  return apply_either(u, v, g, "ResourceApplyAdagrad", "ResourceSparseApplyAdagrad", {v.handle, accum.handle, u.rate(v)});
}

Status adadelta(Updates& u, const NamedVariable& v, Gradient& g) {
  const Optimizer& o = u.optimizer();
  DTG_ASSIGN(const NamedVariable accum, u.slot(v, "Adadelta", 0));
  DTG_ASSIGN(const NamedVariable steps, u.slot(v, "Adadelta_1", 0));
  return apply_either(u, v, g, "ResourceApplyAdadelta", "ResourceSparseApplyAdadelta",
                      {v.handle, accum.handle, steps.handle, u.rate(v), u.number(v, o.decay), u.number(v, o.epsilon)});
}

Status rms_prop(Updates& u, const NamedVariable& v, Gradient& g) {
  const Optimizer& o = u.optimizer();
  DTG_ASSIGN(const NamedVariable square, u.slot(v, "RMSProp", 1));
  std::vector<Value> inputs = {v.handle};
  if (o.centered) {
    DTG_ASSIGN(const NamedVariable mean, u.slot(v, "RMSProp_1", 0));
    inputs.push_back(mean.handle);
  }
  DTG_ASSIGN(const NamedVariable step, u.slot(v, o.centered ? "RMSProp_2" : "RMSProp_1", 0));
  for (const Value each : {square.handle, step.handle, u.rate(v), u.number(v, o.decay), u.number(v, o.momentum), u.number(v, o.epsilon)}) {
    inputs.push_back(each);
  }
  if (o.centered) {
    return apply_either(u, v, g, "ResourceApplyCenteredRMSProp", "ResourceSparseApplyCenteredRMSProp", std::move(inputs));
  }
  return apply_either(u, v, g, "ResourceApplyRMSProp", "ResourceSparseApplyRMSProp", std::move(inputs));
}

// beta is TensorFlow's: l2 + beta / (2 * rate) in place of l2.
Status ftrl(Updates& u, const NamedVariable& v, Gradient& g) {
  const Optimizer& o = u.optimizer();
  Build& b = u.build();
  DTG_ASSIGN(const NamedVariable accum, u.slot(v, "Ftrl", o.initial_accumulator));
  DTG_ASSIGN(const NamedVariable linear, u.slot(v, "Ftrl_1", 0));
  Value l2 = u.number(v, o.l2);
  if (o.ftrl_beta > 0) l2 = b.add(l2, b.div(u.number(v, o.ftrl_beta / 2), u.rate(v)));
  return apply_either(u, v, g, "ResourceApplyFtrlV2", "ResourceSparseApplyFtrlV2", {v.handle, accum.handle, linear.handle},
                      {u.rate(v), u.number(v, o.l1), l2, u.number(v, o.l2_shrinkage), u.number(v, o.rate_power)});
}

}  // namespace dtg
