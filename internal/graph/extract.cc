// Copies nodes in the order of their numbers, in which each comes after what it needs. See extract.h for threads.
#include "graph/extract.h"

#include <algorithm>

#include "graph/build.h"

namespace dtg {
namespace {

class Extraction {
 public:
  Extraction(const Graph& from, const Extract& what, Ref<Graph> to) : from_(from), what_(what), build_(*to) { made_.graph = std::move(to); }

  Result<Extracted> run() {
    for (const Value value : what_.fed) DTG_TRY(cut(value));
    for (const NodeId id : needed_nodes(from_, what_.wanted, what_.fed)) {
      DTG_TRY(copy(from_.node(id)).with_context("take a part of the graph").at_node(from_.node(id).name));
    }
    return std::move(made_);
  }

 private:
  Status cut(Value value) {
    if (made_.values.contains(value.id)) return {};
    const Node& node = from_.node(value.node());
    const ValueInfo& info = from_.info(value);
    std::string name(node.name);
    if (value.output() > 0) name += "_" + std::to_string(value.output());
    const Value fed = build_.op("Placeholder", {}, {{"dtype", info.dtype}, {"shape", info.shape}}, name);
    made_.values.emplace(value.id, fed);
    return build_.status();
  }

  // A value that was fed hides the output of a node that is needed for another one.
  void publish(const Node& node, NodeId id) {
    const auto outputs = static_cast<uint32_t>(std::max<size_t>(1, node.outputs.size()));
    for (uint32_t i = 0; i < outputs; ++i) made_.values.emplace(from_.value(node.id, i).id, made_.graph->value(id, i));
    nodes_[node.id] = id;
  }

  Status copy(const Node& node) {
    if (what_.fixed && what_.fixed->contains(node.id)) return constant(node, what_.fixed->at(node.id));
    if (what_.frozen && what_.frozen->contains(node.id)) return constant(node, what_.frozen->at(node.id));
    if (const Tensor* const frozen = frozen_input(node)) return read(node, *frozen);
    std::vector<Value> inputs;
    for (const Value input : node.inputs) inputs.push_back(made_.of(input));
    const std::vector<NodeId> controls = controls_of(node);
    std::string name(node.name);
    if (made_.graph->find(name) != kNoNode) name = made_.graph->unique_name(name);  // of a node that is cut off and needed
    DTG_ASSIGN(
        const NodeId id,
        made_.graph->add(
            {.op = node.op->name(), .name = name, .location = node.location, .inputs = inputs, .controls = controls, .attrs = node.attrs}));
    publish(node, id);
    return {};
  }

  std::vector<NodeId> controls_of(const Node& node) const {
    std::vector<NodeId> controls;
    for (const NodeId control : node.controls) {
      if (const auto at = nodes_.find(control); at != nodes_.end()) controls.push_back(at->second);
    }
    return controls;
  }

  // A handle, or a placeholder, becomes its value, under its name.
  Status constant(const Node& node, const Tensor& held) {
    const Value value = build_.constant(held, node.name);
    DTG_TRY(build_.status());
    publish(node, value.node());
    return {};
  }

  const Tensor* frozen_input(const Node& node) const {
    if (!what_.frozen || node.inputs.empty()) return nullptr;
    for (const Value input : node.inputs) {
      if (const auto at = what_.frozen->find(input.node()); at != what_.frozen->end()) return &at->second;
    }
    return nullptr;
  }

  // What only reads a variable, over a constant.
  Status read(const Node& node, const Tensor&) {
    const std::string& op = node.op->name();
    const Value value = made_.of(node.inputs[0]);
    Value result;
    if (op == "ReadVariableOp") {
      result = build_.op("Identity", {value}, {}, node.name);
    } else if (op == "ResourceGather") {
      result = build_.op("GatherV2", {value, made_.of(node.inputs[1]), build_.integer(node.attr<int64_t>("batch_dims"))},
                         {{"batch_dims", node.attr<int64_t>("batch_dims")}}, node.name);
    } else if (op == "ResourceGatherNd") {
      result = build_.op("GatherNd", {value, made_.of(node.inputs[1])}, {}, node.name);
    } else {
      return failed_precondition("freeze a graph: %s does not only read the variable \"%s\"; ask for outputs that change nothing",
                                 op.c_str(), std::string(from_.node(node.inputs[0].node()).name).c_str());
    }
    DTG_TRY(build_.status());
    publish(node, result.node());
    return {};
  }

  const Graph& from_;
  const Extract& what_;
  Extracted made_;
  Build build_;
  std::map<NodeId, NodeId> nodes_;
};

}  // namespace

std::vector<NodeId> needed_nodes(const Graph& graph, std::span<const NodeId> wanted, std::span<const Value> fed) {
  std::vector<NodeId> open, found;
  std::vector<bool> seen(graph.node_count());
  const auto need = [&](NodeId id) {
    if (!seen[id]) {
      seen[id] = true;
      open.push_back(id);
    }
  };
  std::ranges::for_each(wanted, need);
  while (!open.empty()) {
    const Node& node = graph.node(open.back());
    open.pop_back();
    found.push_back(node.id);
    for (const Value input : node.inputs) {
      if (std::ranges::find(fed, input) == fed.end()) need(input.node());
    }
    std::ranges::for_each(node.controls, need);
  }
  std::ranges::sort(found);
  return found;
}

bool must_be_fed(const Node& node) { return node.op->name() == "Placeholder"; }

Result<Extracted> extract_graph(const Graph& from, const Extract& what) {
  DTG_ASSIGN(Ref<Graph> to, Graph::create(&from.ops()));
  return Extraction(from, what, std::move(to)).run();
}

}  // namespace dtg
