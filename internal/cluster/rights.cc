// Who is the chief, and what the others may not.
#include "cluster/rights.h"

namespace dtg {

Rights rights_of(const ClusterSpec& cluster, std::string_view peer_task) {
  if (peer_task.empty()) return Rights::all;
  bool named = false;
  for (const ClusterSpec::Task& task : cluster.tasks()) named |= task.job == "chief" || task.job == "master";
  const bool chief =
      named ? peer_task.starts_with("/job:chief/") || peer_task.starts_with("/job:master/") : peer_task == "/job:worker/replica:0/task:0";
  return chief ? Rights::all : Rights::worker;
}

namespace {
bool destroys(const Node& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.op->access_of(i) == Access::destroy) return true;
  }
  return false;
}
}  // namespace

Status check_graph(const Graph& graph, Rights rights) {
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    const Capability capability = node.op->capability();
    if (capability != Capability::pure && capability != Capability::state) {
      return permission_denied("register a part: \"%.*s\" (%s) touches files or the network, which graphs from other processes may not",
                               int(node.name.size()), node.name.data(), node.op->name().c_str())
          .at_node(node.name);
    }
    if (rights == Rights::worker && destroys(node)) {
      return permission_denied("register a part: \"%.*s\" destroys a resource of another task, which only the chief may",
                               int(node.name.size()), node.name.data())
          .at_node(node.name);
    }
  }
  return {};
}

Status check_chief(Rights rights, std::string_view peer_task, const char* what) {
  if (rights == Rights::all) return {};
  return permission_denied("%s: only the chief may; this session speaks for %.*s", what, int(peer_task.size()), peer_task.data());
}

}  // namespace dtg
