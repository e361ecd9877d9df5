// Who is the chief, and what graphs of others may hold.
#include "cluster/rights.h"

#include <unordered_set>

#include "graph/function.h"

namespace dtg {

namespace {

// "ps" of "/job:ps/replica:0/task:0".
std::string_view job_of(std::string_view task) {
  constexpr std::string_view kJob = "/job:";
  if (!task.starts_with(kJob)) return {};
  task.remove_prefix(kJob.size());
  return task.substr(0, task.find('/'));
}

bool destroys(const Node& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.op->access_of(i) == Access::destroy) return true;
  }
  return false;
}

}  // namespace

Party party_of(const ClusterSpec& cluster, std::string_view peer_task) {
  constexpr std::string_view kFirstWorker = "/job:worker/replica:0/task:0";
  const bool named = cluster.task_count("chief") + cluster.task_count("master") > 0;
  const bool has_chief = named || cluster.find(kFirstWorker);
  const std::string_view job = job_of(peer_task);
  if (peer_task.empty()) return has_chief ? Party::client : Party::chief;
  if (named ? job == "chief" || job == "master" : peer_task == kFirstWorker) return Party::chief;
  if (job == "ps") return Party::ps;
  if (job == "observer") return Party::observer;
  return Party::worker;
}

Ref<const Rights> rights_of(const ClusterSpec& cluster, const std::string& peer_task, const std::string& task) {
  return make_ref<Rights>(party_of(cluster, peer_task), peer_task, task);
}

namespace {

// With the functions that are called, each once.
Status check_nodes(const Graph& graph, const Rights& rights, std::unordered_set<const Function*>& seen) {
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    Status inside;
    for_each_function(node, [&](const Function& called) {
      if (inside.ok() && seen.insert(&called).second) inside = check_nodes(called.graph(), rights, seen);
    });
    DTG_TRY(inside);
    const Role role = node.op->role();
    if (role == Role::commit || role == Role::committed)
      return invalid_argument("register a part: \"%.*s\" (%s) is the planner's own to make", int(node.name.size()), node.name.data(),
                              node.op->name().c_str())
          .at_node(node.name);
    const Capability capability = node.op->capability();
    if (capability != Capability::pure && capability != Capability::state) {
      return permission_denied("register a part: \"%.*s\" (%s) touches files or other tasks, which graphs from other processes may not",
                               int(node.name.size()), node.name.data(), node.op->name().c_str())
          .at_node(node.name);
    }
    if (rights.allows(Verb::destroy) || !destroys(node)) continue;
    const std::string attempted = "register a part in which \"" + std::string(node.name) + "\" destroys a resource";
    return rights.refuse(Verb::destroy, attempted).at_node(node.name);
  }
  return {};
}

}  // namespace

Status check_graph(const Graph& graph, const Rights& rights) {
  DTG_TRY(rights.check(Verb::run, "register a part"));
  std::unordered_set<const Function*> seen;
  return check_nodes(graph, rights, seen);
}

}  // namespace dtg
