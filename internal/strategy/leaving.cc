// Finding it.
#include "strategy/leaving.h"

namespace dtg {

std::optional<Leaving> leaving_of(const Graph& graph) {
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const std::string_view op = graph.node(id).op->name();
    if (op == "_LeaveSteps" || op == "_LeaveClocks") return Leaving{id, op == "_LeaveSteps"};
  }
  return {};
}

}  // namespace dtg
