// NodeCopier: nodes of one graph again in another, with other values in place of some. For functions that are made of functions. One
// thread.
#pragma once

#include <unordered_map>

#include "graph/graph.h"

namespace dtg {

class NodeCopier {
 public:
  NodeCopier(const Graph& from, Graph& into) : from_(from), into_(into) {}

  // `there` stands for `here` from now on.
  void stand_in(Value here, Value there) { values_[here.id] = there; }
  bool has(Value here) const { return values_.count(here.id) != 0; }
  // Of a value whose node was copied, or that something stands in for.
  Result<Value> operator[](Value here) const;
  // What was copied of these nodes.
  std::vector<NodeId> copied(std::span<const NodeId> nodes) const;
  // After whatever it takes. Control edges from nodes that were not copied are left out; so are devices to share with others.
  Status copy(NodeId node);

 private:
  const Graph& from_;
  Graph& into_;
  std::unordered_map<uint64_t, Value> values_;
  std::unordered_map<NodeId, NodeId> nodes_;
};

}  // namespace dtg
