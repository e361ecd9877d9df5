// Writing remedies as names, and reading them.
#include "strategy/remedy.h"

#include <algorithm>

#include "graph/build.h"
#include "graph/function.h"

namespace dtg {
namespace {

constexpr const char* kSuffix = "/remedy";
constexpr size_t kWordsOfUnit = 5;  // what, has_note, applied, kept, follow

std::string name_of(const Graph& graph, NodeId node) { return node == kNoNode ? std::string() : std::string(graph.node(node).name); }
std::string name_of(const Graph& graph, Value value) { return value.valid() ? graph.value_name(value) : std::string(); }
NodeId node_named(const Graph& graph, const std::string& name) { return name.empty() ? kNoNode : graph.find(name); }

Value value_named(const Graph& graph, const std::string& name) {
  if (name.empty()) return {};
  auto value = graph.parse_value(name);
  return value.ok() ? value.take() : Value();
}

bool changes(Access access) {
  switch (access) {
    case Access::undeclared:
    case Access::read:
    case Access::peek:
    case Access::ask:
    case Access::attend: return false;
    default: return true;
  }
}

bool has_effect(const Node& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const uint32_t accesses = accesses_of(node, i);
    for (uint32_t k = 0; k < 32; ++k) {
      if ((accesses >> k & 1) != 0 && changes(static_cast<Access>(k))) return true;
    }
  }
  return node.op->capability() == Capability::net;
}

}  // namespace

Status add_remedy(Graph& graph, NodeId target, const Remedy& remedy) {
  std::vector<std::string> effects, units;
  for (const NodeId effect : remedy.effects) effects.push_back(name_of(graph, effect));
  for (const UpdateUnit& unit : remedy.units) {
    units.push_back(unit.what);
    for (const Value value : {unit.has_note, unit.applied, unit.kept}) units.push_back(name_of(graph, value));
    units.push_back(name_of(graph, unit.follow));
  }
  const Attr attrs[] = {{"first", name_of(graph, remedy.first)},
                        {"first_if_made", name_of(graph, remedy.first_if_made)},
                        {"effects", AttrValue::Variant(std::move(effects))},
                        {"units", AttrValue::Variant(std::move(units))},
                        {"begin_units", name_of(graph, remedy.begin_units)}};
  const NameScope root(graph, "");
  const ColocationScope beside(graph, target);
  Build build(graph);
  (void)build.node("_Remedy", {}, attrs, name_of(graph, target) + kSuffix);
  return build.status();
}

std::optional<Remedy> remedy_of(const Graph& graph, NodeId target) {
  const NodeId found = graph.find(name_of(graph, target) + kSuffix);
  if (found == kNoNode || graph.node(found).op->name() != "_Remedy") return {};
  const Node& node = graph.node(found);
  Remedy remedy;
  remedy.first = node_named(graph, node.attr<std::string>("first"));
  remedy.first_if_made = node_named(graph, node.attr<std::string>("first_if_made"));
  remedy.begin_units = node_named(graph, node.attr<std::string>("begin_units"));
  for (const std::string& name : node.attr<std::vector<std::string>>("effects")) remedy.effects.push_back(graph.find(name));
  const auto& words = node.attr<std::vector<std::string>>("units");
  for (size_t i = 0; i + kWordsOfUnit <= words.size(); i += kWordsOfUnit) {
    remedy.units.push_back({words[i], value_named(graph, words[i + 1]), value_named(graph, words[i + 2]), value_named(graph, words[i + 3]),
                            node_named(graph, words[i + 4])});
  }
  return remedy;
}

bool makes_known_steps(const Graph& home) {
  for (NodeId id = 0; id < home.node_count(); ++id) {
    if (home.node(id).op->name() == "_CheckToken") return true;
  }
  return false;
}

std::optional<Remedy> repetition_of(const Graph& graph, std::span<const Value> feeds, std::span<const Value> fetches,
                                    std::span<const NodeId> targets) {
  std::optional<Remedy> remedy;
  for (const NodeId target : targets) {
    auto found = remedy_of(graph, target);
    if (found && !found->effects.empty()) remedy = std::move(found);
  }
  if (!remedy) return {};
  std::vector<bool> seen(graph.node_count());
  std::vector<NodeId> open(targets.begin(), targets.end());
  for (const Value fetch : fetches) open.push_back(fetch.node());
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (id >= seen.size() || seen[id]) continue;
    seen[id] = true;
    const Node& node = graph.node(id);
    if (has_effect(node) && std::ranges::find(remedy->effects, id) == remedy->effects.end()) return {};
    for (const Value input : node.inputs) {
      if (std::ranges::find(feeds, input) == feeds.end()) open.push_back(input.node());
    }
    open.insert(open.end(), node.controls.begin(), node.controls.end());
  }
  return remedy;
}

}  // namespace dtg
