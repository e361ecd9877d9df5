// Optimizers: from a loss to a node that makes one training step. Formulas, slot names and the order of
// things are TensorFlow's, where TensorFlow's registry has the rule, and those of Keras 3 otherwise: slots stand beside their variable,
// counters (Adam's powers) beside the first one, the global step grows after every update has been made. Gradients that are rows of a
// variable are applied as rows where TensorFlow has an op for that. What each kind does is in rules_*.cc, by the table of rules.h.
// Functions over a model; the thread that builds.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "graph/gradient.h"
#include "nn/model.h"

namespace dtg {

struct Optimizer {
  enum class Kind : int32_t {
    sgd,
    momentum,
    adam,
    adagrad,
    rms_prop,
    adam_w,
    adadelta,
    adamax,
    nadam,
    ftrl,
    lion,
    lamb,
    lars,
    adafactor,
  };
  Kind kind = Kind::sgd;
  // A float scalar (a placeholder, a schedule); invalid: `rate` as a constant.
  Value learning_rate;
  double rate = 0.01;
  double momentum = 0;               // momentum, rms_prop, lars
  bool nesterov = false;             // momentum, lars
  double beta1 = 0.9;                // the Adam family, lion
  double beta2 = 0.999;              // the same
  double weight_decay = 0;           // share of the variable, times the rate, that goes each step; lars: added to the gradient
  bool lazy = false;                 // adam, adam_w: rows without a gradient stay as they are, and so do their moving means
  double epsilon = 1e-8;             // all that divide by a root but adagrad and ftrl
  double decay = 0.9;                // rms_prop, adadelta: rho; adafactor: the exponent of beta2, negative
  double initial_accumulator = 0.1;  // adagrad, ftrl
  // Gradients whose norm over all variables is greater are scaled down to it; 0: never.
  double clip_norm = 0;
  // minimize() checks that the loss is finite before anything is changed.
  bool check_loss = true;
  bool amsgrad = false;       // adam, adam_w: the largest mean square so far divides
  bool centered = false;      // rms_prop: the variance divides
  double l1 = 0, l2 = 0;      // ftrl
  double l2_shrinkage = 0;    // ftrl
  double ftrl_beta = 0;       // ftrl
  double rate_power = -0.5;   // ftrl
  double trust = 0.001;       // lars
  double epsilon2 = 0.001;    // adafactor: the least size of a variable
  double clip_threshold = 1;  // adafactor
  double clip_value = 0;      // each element of a gradient is cut to [-clip_value, clip_value]; 0: never
  double clip_each_norm = 0;  // a gradient whose norm is greater is scaled down to it; 0: never
  // Exempt from weight decay: these handles, and whose names contain one of these words.
  std::vector<Value> undecayed = {};
  std::vector<std::string> undecayed_names = {};
  // A moving mean of each trained variable, "v/ExponentialMovingAverage": mean = ema_momentum * mean + (1 - ema_momentum) * v after each
  // step, v itself after the first. Every ema_overwrite_every steps v becomes its mean; 0: never.
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_every = 0;
  // Above 1: gradients are added up, and each accumulation_steps-th step applies their mean; the others change no variable.
  int64_t accumulation_steps = 1;
  // Above 0: every lookahead_steps steps a slow copy of each variable, "v/Slow", goes lookahead_share of the way to it, and v back there.
  int64_t lookahead_steps = 0;
  double lookahead_share = 0.5;
  // Handles of what minimize() trains; empty: every trainable variable.
  std::vector<Value> variables = {};

  bool decays(const NamedVariable& v) const;

  static const char* name_of(Kind kind);  // null: none
  // With the numbers that Keras gives this kind where the host says nothing.
  static Optimizer of(Kind kind);
};

// The gradient of one variable. Not any() where the loss does not depend on it.
struct VariableGradient {
  NamedVariable variable;
  Gradient gradient;
  // Not 0: no weight, but what follows the batches (Model::follow). The gradient is how far it is off, and it moves by that share of it,
  // whatever the optimizer; norms do not count it.
  double share = 0;
};

// What one training step is made of, for those who fetch or extend it.
struct Training {
  NodeId train = kNoNode;                   // the target to run
  Value global_step;                        // int64, before the step as far as order tells: fetch it in a run of its own
  Value learning_rate;                      // float scalar
  Value gradient_norm;                      // float scalar, before clipping; costs nothing unless fetched or clipped by
  std::vector<VariableGradient> gradients;  // as applied
};

// An update in two stages: what it is made from is kept where it will be used, and applied from there (strategy/staging.h).
class ApplyStages {
 public:
  virtual ~ApplyStages() = default;
  // Keeps the value at the place of `beside`, for kept().
  virtual Status keep(NodeId beside, Value value) = 0;
  // Nothing more will be kept.
  virtual Status all_kept() = 0;
  virtual Result<Value> kept(NodeId beside, Value value) = 0;
  // These nodes have applied what was kept for the places of `besides`, one each.
  virtual Status applied(std::span<const NodeId> besides, std::span<const NodeId> writes) = 0;
  // And these have written what is but one, beside the node; `what` is for messages.
  virtual Status went_on(NodeId beside, std::span<const NodeId> writes, std::string_view what) = 0;
  // The same follows once more: for whoever finds that a place has not applied what it kept.
  virtual void follow_up() = 0;
};

// What can be told before anything is built: the kind, the rate, the norm.
Status check_optimizer(const Model& model, const Optimizer& optimizer);
// Of the loss with respect to every trainable variable of the model, or to those that are listed, in order of creation; then what follows
// the batches of that tower, of which with a list only what the loss depends on.
// Variables that have copies: with respect to that replica's.
Result<std::vector<VariableGradient>> compute_gradients(Model& model, Value loss, size_t tower = 0, std::span<const Value> listed = {},
                                                        size_t replica = 0);
// Whether `of` is computed from `value`, or is it.
bool depends_on(const Graph& graph, Value of, Value value);
// The latter alone, for who has gradients of their own.
Status add_following(Model& model, size_t tower, std::vector<VariableGradient>* gradients);
// The node that applies them, to all copies of a variable, after `first`, and then counts the step. Variables without gradient are left
// out.
Result<NodeId> apply_gradients(Model& model, const Optimizer& optimizer, std::span<const VariableGradient> gradients,
                               ApplyStages* stages = nullptr, std::span<const NodeId> first = {});

// What the ways of training one model differ in: how many losses there are, and what becomes of their gradients.
struct TrainingWay {
  std::span<const Value> losses;
  const char* what = "minimize";  // for messages
  int64_t number = -1;            // of the first loss among those that are told apart; negative: there is one
  // The gradients of losses[i], one per variable and in the order of the others.
  std::function<Result<std::vector<VariableGradient>>(size_t i)> local;
  // Those that are applied, by replacing the gradients of the first loss. Nothing is applied before the nodes of `first`, which are those
  // that look at the losses; it may add its own. Empty: they are those of the one loss.
  std::function<Status(std::span<const std::vector<VariableGradient>> towers, std::vector<NodeId>* first,
                       std::vector<VariableGradient>* applied)>
      combine = {};
};
// One training step that way: each loss is looked at where it stands, before anything is changed; gradients are combined, measured,
// clipped and applied.
Result<Training> make_training(Model& model, const Optimizer& optimizer, const TrainingWay& way);

// The same of one loss.
Result<Training> minimize(Model& model, Value loss, const Optimizer& optimizer);

}  // namespace dtg
