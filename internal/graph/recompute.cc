// See recompute.h. A mark is known by its op and the last part of its name. A scope without an end is open where it was opened here, and
// none where it was written before it was closed.
#include "graph/recompute.h"

namespace dtg {
namespace {

constexpr std::string_view kOpens = "_recompute_begin", kCloses = "_recompute_end";

bool is_mark(const Node& node, std::string_view name) {
  return node.op->role() == Role::nothing && node.name.substr(node.name.rfind('/') + 1).starts_with(name);
}

Status add_mark(Graph& graph, std::string_view name) {
  const OpDef* const op = graph.ops().with_role(Role::nothing);
  const std::string free = graph.unique_name(name);
  return graph.add({.op = op->name(), .name = free.substr(free.rfind('/') + 1)}).status();
}

bool is_open(const Graph& graph) {
  const auto scopes = recompute_scopes(graph);
  return !scopes.empty() && scopes.back().second == kNoNode;
}

}  // namespace

std::string name_of_repetition(const Node& node) { return std::string(node.name) + "/_recompute"; }

std::vector<NodeId> repetitions_of(const Graph& graph, NodeId id) {
  std::vector<NodeId> all;
  const Node& node = graph.node(id);
  const std::string name = name_of_repetition(node);
  for (NodeId found = graph.find(name); found != kNoNode; found = graph.find(name + "_" + std::to_string(all.size()))) {
    if (graph.node(found).op != node.op) break;
    all.push_back(found);
  }
  return all;
}

std::vector<std::pair<NodeId, NodeId>> recompute_scopes(const Graph& graph) {
  std::vector<std::pair<NodeId, NodeId>> scopes;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const bool open = !scopes.empty() && scopes.back().second == kNoNode;
    if (is_mark(graph.node(id), kOpens)) {
      if (open) scopes.pop_back();
      scopes.emplace_back(id, kNoNode);
    } else if (open && is_mark(graph.node(id), kCloses)) {
      scopes.back().second = id;
    }
  }
  if (!scopes.empty() && scopes.back().second == kNoNode && scopes.back().first != graph.open_mark()) scopes.pop_back();
  return scopes;
}

Status open_recompute(Graph& graph) {
  if (graph.outer_tag() != 0)
    return unimplemented("recompute scope: this graph is the body of a function, where gradients keep what they need");
  if (is_open(graph)) return failed_precondition("recompute scope: one is open already, and they do not nest");
  DTG_TRY(add_mark(graph, kOpens));
  graph.set_open_mark(static_cast<NodeId>(graph.node_count() - 1));
  return {};
}

Status close_recompute(Graph& graph) {
  if (!is_open(graph)) return failed_precondition("leave a recompute scope: none is open");
  DTG_TRY(add_mark(graph, kCloses));
  graph.set_open_mark(kNoNode);
  return {};
}

}  // namespace dtg
