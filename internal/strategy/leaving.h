// Leaving: how a worker says, before the end of its job, that it makes no more steps. Training in which others would wait for a step that
// never comes (ssp, elastic) has a node for that, which is found by its op, so that whoever ends a job needs nothing but the graph.
//
// Any thread.
#pragma once

#include <optional>

#include "graph/graph.h"

namespace dtg {

struct Leaving {
  NodeId target = kNoNode;
  bool is_elastic = false;  // workers come and go: some may never have come
};

// None where nobody waits for this worker's steps.
std::optional<Leaving> leaving_of(const Graph& graph);

}  // namespace dtg
