// Rules: what each kind of optimizer counts, and what it adds for one variable. A row for each kind; the formulas are in rules_descent.cc
// (steps along the gradient or its sign), rules_adam.cc (moving means of it and of its square), rules_adaptive.cc (rates of each element)
// and rules_layerwise.cc (rates of each variable).
// Functions over Updates; the thread that builds.
#pragma once

#include "nn/updates.h"

namespace dtg {

struct Rule {
  const char* name;                                                             // the scope of its nodes
  Status (*update)(Updates& u, const NamedVariable& v, Gradient& g);            // `g` is any(); the variable is decayed already
  Status (*count)(Updates& u) = nullptr;                                        // makes what is counted
  bool (*decays)(const Optimizer& o) = [](const Optimizer&) { return false; };  // weight decay is its own business
};

// Of a kind that there is.
const Rule& rule_of(Optimizer::Kind kind);

Status descend(Updates& u, const NamedVariable& v, Gradient& g);
Status momentum(Updates& u, const NamedVariable& v, Gradient& g);
Status lion(Updates& u, const NamedVariable& v, Gradient& g);

Status count_beta1(Updates& u);
Status count_betas(Updates& u);
Status count_nadam(Updates& u);
bool adam_decays(const Optimizer& o);
Status adam(Updates& u, const NamedVariable& v, Gradient& g);
Status adamax(Updates& u, const NamedVariable& v, Gradient& g);
Status nadam(Updates& u, const NamedVariable& v, Gradient& g);

Status adagrad(Updates& u, const NamedVariable& v, Gradient& g);
Status adadelta(Updates& u, const NamedVariable& v, Gradient& g);
Status rms_prop(Updates& u, const NamedVariable& v, Gradient& g);
Status ftrl(Updates& u, const NamedVariable& v, Gradient& g);

Status count_steps(Updates& u);
Status lamb(Updates& u, const NamedVariable& v, Gradient& g);
Status lars(Updates& u, const NamedVariable& v, Gradient& g);
Status adafactor(Updates& u, const NamedVariable& v, Gradient& g);

// A moving mean and a moving mean square, by what they grow and as they are then.
struct Moments {
  NamedVariable m, s;
  Value by_m, by_s, new_m, new_s;
};
Result<Moments> moments_of(Updates& u, const NamedVariable& v, Value g, const char* m, const char* s);
// Writes them, and then takes `step` off the variable.
Status move_by(Updates& u, const NamedVariable& v, const Moments& moments, Value step);

}  // namespace dtg
