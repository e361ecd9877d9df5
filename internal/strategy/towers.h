// Towers: in-graph replication. One graph holds N copies of a model's computation over shared variables, each with a
// loss of its own; the update applies the mean of their gradients. Strict replicas (strategy/replicas.h) combine what
// they collect with the functions of this file, which is why N workers and N towers give the same bits.
// Functions over a model; the thread that builds.
#pragma once

#include <functional>
#include <span>

#include "nn/optimizer.h"

namespace dtg {

// What is made of the towers' gradients.
enum class Reduce : int32_t { sum, mean };

// How the towers of a strategy differ from plain ones.
struct TowerOptions {
  Reduce reduce = Reduce::mean;
  size_t first = 0;     // number of the first tower, for what follows its batches
  bool copies = false;  // tower i computes on copy i of the variables
  size_t number = 0;    // of the first tower, for messages
  // Reduces dense parts for one variable after another, all of them at once: parts[v] are those of variable v, beside[v] its handle. Empty:
  // an addition in order, on the device of the variable.
  std::function<Result<std::vector<Value>>(Reduce, std::span<const std::vector<Value>> parts, std::span<const NodeId> beside)> reducer = {};
  Reduce follow = Reduce::mean;  // what is made of that which follows the batches
  bool reduces_all = false;      // the reducer reduces that too
  // In place of all reduction: into `out`, which holds the gradients of tower 0. Nothing is applied before the nodes of `first`, which are
  // those that look at the losses; it adds its own.
  std::function<Status(std::span<const std::vector<VariableGradient>> towers, std::vector<NodeId>* first,
                       std::vector<VariableGradient>* out)>
      meet = {};
};

// The towers' gradients, reduced as the options say, into `gradients`, which are those of tower 0.
Status reduce_towers(Model& model, const TowerOptions& options, std::span<const std::vector<VariableGradient>> towers,
                     std::span<VariableGradient> gradients);

// One step over the mean (or the sum) of the losses, each of which is the mean over an equal share of the batch. Parts are added up
// in the order of `losses`, on the device of the variable. Row gradients stay rows.
Result<Training> minimize_towers(Model& model, std::span<const Value> losses, const Optimizer& optimizer, const TowerOptions& options = {});

// The mean of one variable's gradients, added up in their order; rows are put one after the other. Nodes come after
// `controls`. Parts that are not any() count as zero. `count`, an integer: by how many the sum is divided, where not all parts count.
Result<Gradient> mean_of(Model& model, const NamedVariable& variable, std::span<const Gradient> parts, std::span<const NodeId> controls,
                         Value count = {});

// Gradients as a worker would push them and its accumulator give them back: of rows each comes once, where `sorted` by rising index.
Status as_contributed(Model& model, std::span<VariableGradient> gradients, bool sorted);

// Those of one loss, like that, beside it.
Result<std::vector<VariableGradient>> contribution(Model& model, Value loss, const Optimizer& optimizer, size_t tower = 0, size_t copy = 0);

// The gradients clipped as the optimizer says, applied, and the step counted.
Result<NodeId> apply_clipped(Model& model, const Optimizer& optimizer, std::vector<VariableGradient> gradients,
                             ApplyStages* stages = nullptr);

}  // namespace dtg
