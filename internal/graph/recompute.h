// Recompute scopes: stretches of a graph whose nodes gradients compute again instead of keeping what they gave. A scope is the nodes
// between two marks, which are nodes that do nothing, so it is written and read with the graph. Called by the thread that builds the graph.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace dtg {

// Nodes that are added until the scope is closed belong to it. Scopes do not nest, and are not for the bodies of functions.
Status open_recompute(Graph& graph);
Status close_recompute(Graph& graph);

// What a node that computes the values of this one again is called, or with a number behind it; and those that are there.
std::string name_of_repetition(const Node& node);
std::vector<NodeId> repetitions_of(const Graph& graph, NodeId id);

// First and last + 1 of the nodes of each scope, in order.
std::vector<std::pair<NodeId, NodeId>> recompute_scopes(const Graph& graph);

}  // namespace dtg
