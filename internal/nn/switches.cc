// Walks back from what is wanted. See switches.h for threads.
#include "nn/switches.h"

#include <algorithm>
#include <array>
#include <vector>

#include "graph/function.h"

namespace dtg {
namespace {

// By node: whether one of the values needs it. Whoever looks at them next refuses those that are none.
std::vector<bool> needed_by(const Graph& graph, std::span<const Value> wanted) {
  std::vector<bool> needed(graph.node_count());
  std::vector<NodeId> open;
  const auto reach = [&](NodeId id) {
    if (!needed[id]) open.push_back(id);
    needed[id] = true;
  };
  for (const Value value : wanted) {
    if (graph.check_node(value.node()).ok()) reach(value.node());
  }
  while (!open.empty()) {
    const Node& node = graph.node(open.back());
    open.pop_back();
    for (const Value input : node.inputs) reach(input.node());
    for (const NodeId control : node.controls) reach(control);
  }
  return needed;
}

// The names of those layers that are wanted and of which `speaks`, each by its scope.
template <class Fn>
std::string names_of(const Model& model, std::span<const Value> wanted, Fn&& speaks) {
  constexpr size_t kLongest = 200;
  if (model.switched().empty()) return {};
  const Graph& graph = model.graph();
  const std::vector<bool> needed = needed_by(graph, wanted);
  const auto is_wanted = [&](const Model::Switched& layer) {
    if (layer.y.valid()) return bool(needed[layer.y.node()]);
    // Of those in bodies it is enough that bodies are called.
    for (NodeId id = 0; id < needed.size(); ++id) {
      if (needed[id] && calls_functions(graph.node(id))) return true;
    }
    return false;
  };
  std::string names;
  for (const Model::Switched& layer : model.switched()) {
    if (!is_wanted(layer) || !speaks(layer.training) || names.size() > kLongest) continue;
    std::string name = layer.in_body;
    if (layer.y.valid()) name = graph.node(layer.y.node()).name;
    if (layer.y.valid()) name = name.substr(0, std::min(name.size(), name.rfind('/')));
    names += (names.empty() ? "\"" : ", \"") + name + "\"";
  }
  return names;
}

}  // namespace

std::string tell_always_on(const Model& model, std::span<const Value> wanted, const char* where) {
  const std::string names = names_of(model, wanted, [](Value training) { return !training.valid(); });
  if (names.empty()) return {};
  return "layers that nothing switches off do in " + std::string(where) + " what is for training alone: " + names +
         "; give them a bool placeholder, as their switch of training";
}

std::string tell_apart(const Model& model, std::span<const Value> wanted, std::span<const Value> fed, Value training) {
  const Graph& graph = model.graph();
  const auto is_apart = [&](Value given) {
    if (!given.valid() || given == training || std::ranges::find(fed, given) != fed.end()) return false;
    const std::string& op = graph.node(given.node()).op->name();
    if (op == "Const" || op == "Placeholder") return false;
    return !training.valid() || !needed_by(graph, std::array{given})[training.node()];
  };
  const std::string names = names_of(model, wanted, is_apart);
  if (names.empty()) return {};
  return "layers are turned on and off by another switch than the trainer's, which turns them neither on in steps nor off elsewhere: " +
         names + "; give the trainer the same";
}

}  // namespace dtg
