// See recompute.h. A mark is known by its op and the last part of its name.
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

std::vector<std::pair<NodeId, NodeId>> recompute_scopes(const Graph& graph) {
  std::vector<std::pair<NodeId, NodeId>> scopes;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const bool open = !scopes.empty() && scopes.back().second == kNoNode;
    if (!open && is_mark(graph.node(id), kOpens)) scopes.emplace_back(id, kNoNode);
    if (open && is_mark(graph.node(id), kCloses)) scopes.back().second = id;
  }
  return scopes;
}

Status open_recompute(Graph& graph) {
  if (graph.outer_tag() != 0)
    return unimplemented("recompute scope: this graph is the body of a function, where gradients keep what they need");
  if (is_open(graph)) return failed_precondition("recompute scope: one is open already, and they do not nest");
  return add_mark(graph, kOpens);
}

Status close_recompute(Graph& graph) {
  if (!is_open(graph)) return failed_precondition("leave a recompute scope: none is open");
  return add_mark(graph, kCloses);
}

}  // namespace dtg
