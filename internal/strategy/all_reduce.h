// Training by all-reduce: every member computes the gradients of its share of a batch, all of them average these with collectives, and
// each applies the mean to variables of its own, which stay equal because they began so. Members are tasks of a group, each with a graph
// of its own, or copies on the devices of one process in one graph. Means are those of towers (strategy/towers.h), to the bit.
// Functions over a model; the thread that builds.
#pragma once

#include "strategy/towers.h"

namespace dtg {

// Every member says the same.
struct AllReduce {
  int32_t group_key = 1;
  int32_t group_size = 1;
  int32_t first_instance = 1;             // calls take the instances from here on, in the same order everywhere
  int64_t pack_bytes = int64_t{4} << 20;  // small gradients travel together, so many bytes at most; those that are larger go alone
  double timeout_seconds = 0;             // of a call; 0: the group's
  const char* hint = "auto";              // how bytes move: "ring" goes from neighbour to neighbour
  Reduce reduce = Reduce::mean;           // of what is no gradient but follows the batches, the mean is taken anyway
  // A member brings the gradients of so many replicas: added up already, or, `stacked`, one behind the other along a first axis, which are
  // then added up in the order of the members and their replicas. The mean is that over all replicas.
  int32_t shares = 1;
  bool stacked = false;
};

Status check_all_reduce(const AllReduce& how);

// What a call is for, as members compare it (CallTerms::purpose): a text that is too long ends in a number made of all of it.
Attr purpose_attr(std::string purpose);
// "mean over 2 replicas of each worker"
std::string over_replicas(Reduce reduce, int64_t shares, bool in_order);

// The gradients' means (or sums) over the members. Dense ones are packed by type, the last variables first, since their gradients are there
// first. Rows stay rows: those of all members one behind the other. Nodes come after `controls`. Returns the instance that is free next.
Result<int32_t> all_reduce_gradients(Model& model, std::vector<VariableGradient>* gradients, const AllReduce& how,
                                     std::span<const NodeId> controls = {});

// One step over the mean of the members' losses. A loss that is no finite number leaves nobody's variables changed: that member's step
// fails, and so do the others', which wait for its gradients.
Result<Training> minimize_all_reduce(Model& model, Value loss, const Optimizer& optimizer, const AllReduce& how);

}  // namespace dtg
