// Finds the handles of variables in a graph, and the nodes that read them and give them their first values. See adopt.h for threads.
#include "nn/adopt.h"

#include <algorithm>
#include <map>
#include <set>

#include "nn/scope.h"

namespace dtg {
namespace {

constexpr const char* kSlots[] = {"Momentum",
                                  "Adam",
                                  "Adam_1",
                                  "Adam_2",
                                  "Adagrad",
                                  "RMSProp",
                                  "RMSProp_1",
                                  "RMSProp_2",
                                  "Adadelta",
                                  "Adadelta_1",
                                  "Adamax",
                                  "Adamax_1",
                                  "Nadam",
                                  "Nadam_1",
                                  "Ftrl",
                                  "Ftrl_1",
                                  "Lion",
                                  "LAMB",
                                  "LAMB_1",
                                  "LARS",
                                  "Adafactor",
                                  "Adafactor_1",
                                  "ExponentialMovingAverage",
                                  "Accumulated",
                                  "Slow"};
constexpr const char* kCounters[] = {"beta1_power",    "beta2_power",  "nadam_decay_power", "nadam_u_product",
                                     "adafactor_step", "average_step", "accumulation_step"};

struct Found {
  NodeId handle = kNoNode;
  Value read;
  NodeId assign = kNoNode;
};

// The handles in order of number. Of several nodes that read or assign one, those that add_variable() would have made go first.
std::vector<Found> find_variables(const Graph& graph) {
  std::map<NodeId, Found> found;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (node.op->name() == "VarHandleOp") {
      // What was left of a layer that could not be made is nobody's.
      if (!graph.written_name(id).starts_with("_unused/")) found[id].handle = id;
      continue;
    }
    if (node.inputs.empty()) continue;
    const auto at = found.find(node.inputs[0].node());
    if (at == found.end()) continue;
    const std::string variable(graph.node(at->first).name);
    if (node.op->name() == "ReadVariableOp" && (!at->second.read.valid() || node.name == variable + "/Read")) {
      at->second.read = graph.value(id);
    }
    if (node.op->name() == "AssignVariableOp" && (at->second.assign == kNoNode || node.name == variable + "/Assign")) {
      at->second.assign = id;
    }
  }
  std::vector<Found> list;
  for (const auto& [id, each] : found) list.push_back(each);
  return list;
}

Result<NamedVariable> describe(const Graph& graph, const Found& found) {
  const Node& handle = graph.node(found.handle);
  NamedVariable variable;
  variable.name = handle.name;
  variable.dtype = handle.attr<DType>("dtype");
  const PartialShape& shape = handle.attr<PartialShape>("shape");
  if (!shape.to_shape().ok()) {
    return invalid_argument("take over the variables of a graph: the shape of \"%s\" is not known: %s", variable.name.c_str(),
                            shape.text().c_str());
  }
  DTG_ASSIGN(variable.shape, shape.to_shape());
  variable.handle = graph.value(found.handle);
  variable.read = found.read;
  variable.assign = found.assign;
  return variable;
}

Status complete(Graph& graph, NamedVariable& variable) {
  const NameScope root(graph, "");
  Build build(graph);
  if (!variable.read.valid()) {
    variable.read = build.op("ReadVariableOp", {variable.handle}, {{"dtype", variable.dtype}}, graph.unique_name(variable.name + "/Read"));
  }
  if (variable.assign == kNoNode) {
    // Restoring feeds it; nobody knows a first value.
    const Value given =
        build.op("Placeholder", {}, {{"dtype", variable.dtype}, {"shape", variable.shape}}, graph.unique_name(variable.name + "/Given"));
    const Value inputs[] = {variable.handle, given};
    variable.assign = build.node("AssignVariableOp", inputs, {}, graph.unique_name(variable.name + "/Assign"));
  }
  return build.status();
}

void classify(NamedVariable& variable, const std::set<std::string>& names, std::span<const VariableNote> notes) {
  const auto note = std::ranges::find(notes, variable.name, &VariableNote::name);
  const std::string& name = variable.name;
  if (note != notes.end()) {
    variable.trainable = note->trainable;
    variable.of = note->of;
    variable.slot = note->slot;
  } else {
    variable.trainable = dtype_is_floating(variable.dtype) && std::ranges::find(kCounters, name) == std::end(kCounters);
    for (const char* const slot : kSlots) {
      const size_t cut = name.rfind('/');
      if (cut == std::string::npos || name.substr(cut + 1) != slot || !names.contains(name.substr(0, cut))) continue;
      variable.trainable = false;
      variable.of = name.substr(0, cut);
      variable.slot = slot;
    }
  }
  variable.absolute = !variable.trainable;
}

// The scopes that the variables stand in, so that a layer which is added takes the next free name, as it would have beside the first.
void take_scopes(Graph& graph, const std::set<std::string>& names) {
  std::set<std::string> scopes;
  for (const std::string& name : names) {
    for (size_t cut = name.find('/'); cut != std::string::npos; cut = name.find('/', cut + 1)) scopes.insert(name.substr(0, cut));
  }
  const NameScope root(graph, "");
  for (const std::string& scope : scopes) const NameScope taken(graph, scope);
}

}  // namespace

Result<Ref<Model>> adopt_graph(Ref<Graph> graph, uint64_t seed, std::span<const VariableNote> notes) {
  auto model = make_ref<Model>(graph, seed);
  const std::vector<Found> found = find_variables(*graph);
  std::set<std::string> names;
  for (const Found& each : found) names.emplace(graph->node(each.handle).name);
  for (const Found& each : found) {
    DTG_ASSIGN(NamedVariable variable, describe(*graph, each));
    DTG_TRY(complete(*graph, variable));
    classify(variable, names, notes);
    model->take_over(std::move(variable));
  }
  take_scopes(*graph, names);
  return model;
}

}  // namespace dtg
