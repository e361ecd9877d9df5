// A part of a graph as a graph of its own: what some nodes need, cut off where values will be fed, with variables as constants where their
// values are given. Names stay; devices and colocations go, for the part may run anywhere. Pure functions; `from` may grow meanwhile.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace dtg {

struct Extract {
  std::span<const NodeId> wanted;
  // Where the graph is cut off: their nodes become placeholders, unless they are some already.
  std::span<const Value> fed = {};
  // By the node of its handle: the value that a variable is to have for good.
  const std::map<NodeId, Tensor>* frozen = nullptr;
  // By the node: placeholders that are to have that value for good.
  const std::map<NodeId, Tensor>* fixed = nullptr;
};

struct Extracted {
  Ref<Graph> graph;
  std::map<uint64_t, Value> values;  // counterparts, by the id of the value there; of a node without outputs, by its output 0
  Value of(Value there) const { return values.at(there.id); }
};

// The nodes that `wanted` need, without those behind `fed`, in order of number.
std::vector<NodeId> needed_nodes(const Graph& graph, std::span<const NodeId> wanted, std::span<const Value> fed);

// A node that has no value unless a run feeds it.
bool must_be_fed(const Node& node);

// FAILED_PRECONDITION where a frozen variable is not only read.
Result<Extracted> extract_graph(const Graph& from, const Extract& what);

}  // namespace dtg
