// Updates: the nodes of one optimizer over all variables of a step, which its rule (nn/rules.h) adds one variable at a time. It knows where
// things stand: slots beside their variable, counters beside the first one, the count of steps last. What a variable becomes must be made
// from what it was before the step and from what was kept, so that all writes of a step can be one unit; and it is written by ops that
// update, not by assignments of what was read: workers that train at once would lose each other's steps, and what has a value only the
// chief may assign.
//
// Owner: apply_gradients, while it builds. One thread.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/closure.h"
#include "nn/optimizer.h"

namespace dtg {

class Updates {
 public:
  // `stages` may be null. Nothing is written before `first`.
  Updates(Model& model, const Optimizer& optimizer, ApplyStages* stages, std::span<const NodeId> first)
      : model_(model), optimizer_(optimizer), stages_(stages), first_(first.begin(), first.end()), outside_(model.graph()) {}

  Result<NodeId> run(std::span<const VariableGradient> gradients);

  // --- for rules ---

  const Optimizer& optimizer() const { return optimizer_; }
  Build& build() { return inside_ ? *inside_ : outside_; }
  // Hyperparameters are of the variable's type.
  Value number(const NamedVariable& v, double value) { return build().scalar(v.dtype, value); }
  Value rate(const NamedVariable& v) { return build().cast(from(v.handle.node(), rate_), v.dtype); }
  // What decoupled weight decay leaves of it, which is what the rule starts from; it is taken off already.
  Value decayed(const NamedVariable& v);
  // The share of v that goes, times the rate; 0 for what is exempt.
  double decay_of(const NamedVariable& v) const;

  // Kept beside v from step to step, "v/name"; made when first asked for, with v's shape unless another is given.
  Result<NamedVariable> slot(const NamedVariable& v, const char* name, double first) { return slot(v, name, first, v.shape); }
  Result<NamedVariable> slot(const NamedVariable& v, const char* name, double first, const Shape& shape, Value same_as = {});

  // Scalars of the whole optimizer, which stand beside its first variable; a rule makes them before its first update. Powers are float32 as
  // in TensorFlow, whatever the variables are, and multiplied by what `by` builds there, after all updates.
  Status count_power(const char* name, double first, std::function<Value()> by);
  // One more each step; a number that float32 would lose is float64.
  Status count_steps(const char* name, double first);
  // As it is before the step, by order of making, in v's type; here: as it is, for `by`.
  Value counter(const NamedVariable& v, size_t k) { return build().cast(past(v, k), v.dtype); }
  Value counter_here(size_t k) { return from(counters_[0].variable.handle.node(), counters_[k].variable.at_replica(copy_).read); }
  Value constant(double value) { return build().scalar(DType::f32, value); }

  // A write of v or of its slots, in the order of the calls.
  Status apply(const NamedVariable& v, const char* op, std::span<const Value> inputs, std::initializer_list<Attr> attrs = {});
  Status increase(const NamedVariable& v, const NamedVariable& what, Value by);
  Status decrease(const NamedVariable& v, const NamedVariable& what, Value by);

 private:
  struct Counter {
    NamedVariable variable;
    std::function<Value()> by;  // null: one more
  };
  Status make_counters(std::span<const VariableGradient> gradients);
  Status make_counter(const char* name, DType dtype, double first, std::function<Value()> by);
  Status keep_all(std::span<const VariableGradient> gradients);
  Status update_all(std::span<const VariableGradient> gradients);
  Status update(const VariableGradient& each);
  // A counter as it is before the step, for v.
  Value past(const NamedVariable& v, size_t k) { return from(v.handle.node(), counters_[k].variable.at_replica(v.copy).read); }
  Status advance(size_t from, size_t to);
  Status advance(const Counter& counter, size_t copy, std::span<const NodeId> after);
  Result<NodeId> count_step();
  Value from(NodeId beside, Value value);
  Graph& graph() { return build().graph(); }
  // In the body of a function nothing stands beside nodes of the graph around it.
  NodeId place(const NamedVariable& v) const { return inside_ ? kNoNode : v.handle.node(); }

  // --- what comes behind a rule (averages.cc, accumulation.cc) ---

  bool averages() const { return optimizer_.use_ema || optimizer_.lookahead_steps > 0; }
  bool accumulates() const { return optimizer_.accumulation_steps > 1; }
  Status average(const NamedVariable& v);
  Value every(const NamedVariable& v, Value now, double steps);
  Value step_number(const NamedVariable& v, bool as_keras);
  Status accumulate(std::span<const VariableGradient> gradients);
  Status accumulate_copy(std::span<const VariableGradient> weights, size_t copy);
  Result<std::vector<VariableGradient>> add_up(std::span<const VariableGradient> gradients);
  Result<Closure> apply_mean(std::span<const VariableGradient> weights);
  Result<Closure> only_add(std::span<const VariableGradient> weights);

  Model& model_;
  const Optimizer& optimizer_;
  ApplyStages* const stages_;
  std::vector<NodeId> first_;
  Build outside_;
  std::optional<Build> inside_;  // the body that is being built
  Value rate_;
  const NamedVariable* anchor_ = nullptr;  // whom the counters stand beside
  std::vector<Counter> counters_;          // the rule's, then that of averages, then that of accumulation
  size_t of_rule_ = 0;                     // how many are the rule's
  std::map<std::string, NamedVariable> slots_;
  size_t copy_ = 0;                                   // of the counter that is advanced
  size_t only_copy_ = SIZE_MAX;                       // of the counters, in a body; else all
  NodeId last_ = kNoNode;                             // the last write of the variable at hand
  std::vector<NodeId> besides_, updates_, advanced_;  // besides_[i] is whose updates_[i] is
};

}  // namespace dtg
