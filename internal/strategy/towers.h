// Towers: in-graph replication. One graph holds N copies of a model's computation over shared variables, each with a
// loss of its own; the update applies the mean of their gradients. Strict replicas (strategy/replicas.h) combine what
// they collect with the functions of this file, which is why N workers and N towers give the same bits.
// Functions over a model; the thread that builds.
#pragma once

#include <span>

#include "nn/optimizer.h"

namespace dtg {

// One step over the mean of the losses, each of which is the mean over an equal share of the batch. Parts are added up
// in the order of `losses`, on the device of the variable. Row gradients stay rows.
Result<Training> minimize_towers(Model& model, std::span<const Value> losses, const Optimizer& optimizer);

// The mean of one variable's gradients, added up in their order; rows are put one after the other. Nodes come after
// `controls`. Parts that are not any() count as zero.
Result<Gradient> mean_of(Model& model, const NamedVariable& variable, std::span<const Gradient> parts, std::span<const NodeId> controls);

// The gradients clipped as the optimizer says, applied, and the step counted. Their norm before clipping is left in
// `norm`, unless that is null or nothing clips.
Result<NodeId> apply_clipped(Model& model, const Optimizer& optimizer, std::vector<VariableGradient> gradients, Value* norm);

}  // namespace dtg
