// Optimizers: from a loss to a node that makes one training step. Formulas, slot names and the order of
// things are TensorFlow's: slots stand beside their variable, beta powers beside the first one, the global
// step grows after every update has been made. Gradients that are rows of a variable are applied as rows.
// Functions over a model; the thread that builds.
#pragma once

#include <span>
#include <vector>

#include "graph/gradient.h"
#include "nn/model.h"

namespace dtg {

struct Optimizer {
  enum class Kind : int32_t { sgd, momentum, adam, adagrad, rms_prop };
  Kind kind = Kind::sgd;
  // A float scalar (a placeholder, a schedule); invalid: `rate` as a constant.
  Value learning_rate;
  double rate = 0.01;
  double momentum = 0;               // momentum, rms_prop
  bool nesterov = false;             // momentum
  double beta1 = 0.9;                // adam
  double beta2 = 0.999;              // adam
  double epsilon = 1e-8;             // adam, rms_prop
  double decay = 0.9;                // rms_prop: rho
  double initial_accumulator = 0.1;  // adagrad
  // Gradients whose norm over all variables is greater are scaled down to it; 0: never.
  double clip_norm = 0;
};

// The gradient of one variable. Not any() where the loss does not depend on it.
struct VariableGradient {
  NamedVariable variable;
  Gradient gradient;
};

// What one training step is made of, for those who fetch or extend it.
struct Training {
  NodeId train = kNoNode;                   // the target to run
  Value global_step;                        // int64, before the step as far as order tells: fetch it in a run of its own
  Value learning_rate;                      // float scalar
  Value gradient_norm;                      // float scalar, before clipping; costs nothing unless fetched or clipped by
  std::vector<VariableGradient> gradients;  // as applied
};

// What can be told before anything is built: the kind, the rate, the norm.
Status check_optimizer(const Model& model, const Optimizer& optimizer);
// Equal indices added up, so that each row comes once: squares and moving means are not linear.
void merge_rows(Build& build, Gradient& gradient);
// Of the loss with respect to every trainable variable of the model, in order of creation.
Result<std::vector<VariableGradient>> compute_gradients(Model& model, Value loss);
// sqrt of the sum of squares over all of them. Rows with equal indices are merged first.
Result<Value> global_norm(Model& model, std::span<VariableGradient> gradients);
// Scales them so that `norm` becomes at most `clip_norm`. A norm that is not finite makes them all NaN, so
// that it does not go unnoticed.
Status clip_by_norm(Model& model, std::span<VariableGradient> gradients, Value norm, double clip_norm);
// The node that applies them and then counts the step. Variables without gradient are left out.
Result<NodeId> apply_gradients(Model& model, const Optimizer& optimizer, std::span<const VariableGradient> gradients);

// All of the above.
Result<Training> minimize(Model& model, Value loss, const Optimizer& optimizer);

}  // namespace dtg
