// Words around the reason why a node was refused. See refusal.h.
#include "graph/refusal.h"

namespace dtg {

Status refuse_node(std::string_view name, std::string_view location, const Status& why) {
  std::string where = name.empty() ? "add a node" : "add \"" + std::string(name) + "\"";
  if (!location.empty()) where += " at " + std::string(location);
  return why.with_context(where).at_node(name).in_phase("build");
}

std::string name_of_refused(Graph& graph, const NodeSpec& spec) {
  // A trial that fails gives back the numbers that unique_name() counts.
  const Graph::Trial trial = graph.begin_trial();
  std::string name = graph.unique_name(spec.name.empty() ? spec.op : "node");
  graph.end_trial(trial, true);
  // Of a node with a name of its own only the scope was asked: its name may be taken, which is no reason to tell another.
  if (!spec.name.empty()) name.replace(name.rfind('/') + 1, std::string::npos, spec.name);
  return name;
}

}  // namespace dtg
