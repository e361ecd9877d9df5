// A scene as a graph.
#include "random/scene.h"

#include <algorithm>

#include "graph/function.h"

namespace dtg::random {
namespace {

std::string_view device_of(int place, Places places) {
  if (place < 0 || places == Places::none) return {};
  if (places == Places::emu) return place == 0 ? "/device:EMU:1" : "/device:CPU:0";  // the others on EMU:0
  if (places == Places::devices) return place == 0 ? "/device:CPU:0" : "/device:CPU:1";
  return place == 0 ? "/job:worker/task:0" : "/job:ps/task:0";
}

bool reads_only(std::string_view op) {
  return op == "VarHandleOp" || op == "ReadVariableOp" || op == "VarIsInitializedOp" || op == "VariableShape" || op == "ResourceGather" ||
         op == "ResourceGatherNd" || op == "FIFOQueueV2" || op == "QueueSizeV2";
}

}  // namespace

Status replay(const Scene& scene, int upto, Places places, Graph& graph) {
  for (int i = static_cast<int>(graph.node_count()); i < upto; ++i) {
    const NodeRecord& record = scene.nodes[static_cast<size_t>(i)];
    std::vector<Value> inputs;
    for (const Port& port : record.inputs)
      inputs.push_back(graph.value(static_cast<NodeId>(port.node), static_cast<uint32_t>(port.output)));
    std::vector<NodeId> controls(record.controls.begin(), record.controls.end());
    std::vector<Attr> attrs;
    for (const auto& [name, value] : record.attrs) attrs.push_back({name, value});
    const std::string name = "n" + std::to_string(i);
    DTG_TRY(graph
                .add({.op = record.op,
                      .name = name,
                      .device = device_of(record.place, places),
                      .inputs = inputs,
                      .controls = controls,
                      .attrs = attrs})
                .status());
  }
  return {};
}

std::vector<bool> needed_nodes(const Scene& scene, const RunRecord& run) {
  std::vector<bool> needed(scene.nodes.size());
  const auto fed = [&](const Port& port) {
    for (const auto& feed : run.feeds) {
      if (feed.first == port) return true;
    }
    return false;
  };
  for (const Port& fetch : run.fetches) needed[static_cast<size_t>(fetch.node)] = true;
  for (int target : run.targets) needed[static_cast<size_t>(target)] = true;
  for (size_t n = scene.nodes.size(); n-- > 0;) {
    if (!needed[n]) continue;
    for (const Port& input : scene.nodes[n].inputs) {
      if (!fed(input)) needed[static_cast<size_t>(input.node)] = true;
    }
    for (int control : scene.nodes[n].controls) {
      const bool satisfied = scene.nodes[static_cast<size_t>(control)].op == "Placeholder" && fed({control, 0});
      if (!satisfied) needed[static_cast<size_t>(control)] = true;
    }
  }
  return needed;
}

bool has_effects(const Scene& scene, const RunRecord& run, const OpTable& ops) {
  const std::vector<bool> needed = needed_nodes(scene, run);
  for (size_t n = 0; n < needed.size(); ++n) {
    const OpDef* op = needed[n] ? ops.find(scene.nodes[n].op) : nullptr;
    if (op && op->is_stateful() && !reads_only(op->name())) return true;
  }
  return false;
}

}  // namespace dtg::random
