// What a plan's collectives are to the plan: which call each node is, whom a run owes calls, and whether those that meet in one run are
// all there. Functions over the Ir; one thread.
#pragma once

#include <optional>

#include "exec/collectives.h"
#include "plan/passes.h"

namespace dtg {

// As far as they are known before it runs.
struct CollectiveKeys {
  std::optional<int32_t> size, group, instance;
};
// Its members do it together: an op that reaches beyond its task.
inline bool is_collective(const IrNode& node) { return node.op->capability() == Capability::net; }
CollectiveKeys collective_keys(const Ir& ir, const IrNode& node);

// Of the whole plan, to groups of tasks. An error where a run would wait for a device that takes no part in it, and inside functions.
Status find_duties(const PlanContext& context, const Ir& ir, CollectiveDuties* duties);

// The groups that a run of `task` calls, as far as the graph says without a plan.
std::vector<int32_t> called_groups(const Graph& graph, std::span<const Value> fetches, std::span<const NodeId> targets,
                                   std::span<const Value> feeds, const std::string& task);

}  // namespace dtg
