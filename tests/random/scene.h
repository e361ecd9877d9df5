// Scene: everything that one seed gives: nodes, and the runs that are asked of them one after the other. It owns its data and
// knows no graph; replay() builds the graph again, as often and in as many parts as somebody wants. One thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace dtg::random {

// One output of one node of the scene.
struct Port {
  int node = -1;
  int output = 0;
  bool operator==(const Port&) const = default;
};

struct NodeRecord {
  std::string op;
  int place = -1;  // 0, 1: which of two devices; -1: whichever
  std::vector<Port> inputs;
  std::vector<int> controls;
  std::vector<std::pair<std::string, AttrValue>> attrs;
};

struct RunRecord {
  int nodes = 0;  // how much of the graph is there when it begins
  int times = 1;  // more than once: without fetches
  std::vector<std::pair<Port, Tensor>> feeds;
  std::vector<Port> fetches;
  std::vector<int> targets;
};

struct Scene {
  uint64_t seed = 0;
  std::vector<NodeRecord> nodes;
  std::vector<RunRecord> runs;
};

// What a place means: nothing, a device of this process, a task.
enum class Places { none, devices, tasks, emu };

// Adds the nodes [graph.node_count(), upto) of the scene; node i of the scene is node i of the graph.
Status replay(const Scene& scene, int upto, Places places, Graph& graph);

// The nodes that a run needs, by index; what is fed is not computed.
std::vector<bool> needed_nodes(const Scene& scene, const RunRecord& run);
// Does a node that is needed change state?
bool has_effects(const Scene& scene, const RunRecord& run, const OpTable& ops);

// The text form: lines "node ...", "run ...", "feed ...", "fetch ...", "target ..."; see text.cc.
std::string to_text(const Scene& scene);
Result<Scene> from_text(std::string_view text, const OpTable& ops);

}  // namespace dtg::random
