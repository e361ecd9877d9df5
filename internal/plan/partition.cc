// The Ir says what is needed, where it runs and what is known; this walks it once in order and builds the parts. The nodes of a part
// stand in the order of the whole, and each end of an edge where its value is first asked for, so that the order of creation inside
// the parts, by which each task orders the effects on its resources, is the one of the graph.
#include "plan/partition.h"

#include <algorithm>
#include <map>

#include "plan/phases.h"

namespace dtg {
namespace {

class Cutter {
 public:
  Cutter(const PlanContext& context, const TaskMap& map, Ir& ir) : context_(context), map_(map), ir_(ir) {}

  Result<Partition> run(const PlanRequest& request) {
    DTG_TRY(add_part(map_.home));
    DTG_TRY(add_feeds(request));
    find_kernels(context_, ir_);
    const Effects effects = find_effects(context_, ir_);
    number_phases(ir_, effects, find_before(ir_, effects), map_.task_of_device);
    local_.resize(ir_.nodes.size(), kNoNode);
    for (uint32_t n = 0; n < ir_.nodes.size(); ++n) {
      if (context_.is_checkpoint(n)) DTG_TRY(context_.check_time());
      if (!ir_.nodes[n].dead) DTG_TRY(add_node(n));
    }
    for (uint32_t value : ir_.fetches) {
      DTG_ASSIGN(const Value here, value_in(value, map_.home));
      part(map_.home).request.fetches.push_back(here);
    }
    DTG_TRY(add_joins());
    Partition result;
    for (auto& [task, built] : parts_) {
      if (task == map_.home) result.home = std::move(built);
    }
    for (uint32_t task : joined_) result.others.push_back(std::move(parts_.at(task)));
    result.edges = std::move(edges_);
    return result;
  }

 private:
  Part& part(uint32_t task) { return parts_.at(task); }

  Status add_part(uint32_t task) {
    if (parts_.count(task)) return {};
    Part fresh;
    fresh.task = task;
    DTG_ASSIGN(fresh.graph, Graph::create(context_.ops));
    parts_.emplace(task, std::move(fresh));
    return {};
  }

  bool is_direct(uint32_t from, uint32_t to) const { return from == map_.home || to == map_.home || !map_.apart.contains({from, to}); }

  uint32_t task_of(uint32_t n) const { return map_.task_of_device[ir_.nodes[n].device]; }

  Result<NodeId> add(uint32_t task, const NodeSpec& spec) {
    DTG_TRY(add_part(task));
    auto added = part(task).graph->add(spec);
    return added.ok() ? added : added.status().with_context("partition for " + map_.tasks[task]);
  }

  std::string_view name_of(Role role) const { return context_.ops->with_role(role)->name(); }

  Status add_feeds(const PlanRequest& request) {
    for (size_t i = 0; i < ir_.feeds.size(); ++i) {
      const FeedSpec& feed = request.feeds[i];
      const Attr attrs[] = {{"dtype", AttrValue(feed.dtype)}, {"shape", AttrValue(feed.shape)}};
      const std::string name = "_feed/" + std::to_string(i);
      DTG_ASSIGN(const NodeId node, add(map_.home, {.op = name_of(Role::feed), .name = name, .attrs = attrs}));
      const Value here = part(map_.home).graph->value(node);
      part(map_.home).request.feeds.push_back({here, feed.dtype, feed.shape});
      values_[{ir_.feeds[i], map_.home}] = here;
    }
    return {};
  }

  Status add_node(uint32_t n) {
    const IrNode& node = ir_.nodes[n];
    const uint32_t task = task_of(n);
    std::vector<Value> inputs;
    std::vector<NodeId> controls;
    for (uint32_t v : node.inputs) {
      const IrValue& value = ir_.values[v];
      if (!node.barrier) {
        DTG_ASSIGN(const Value here, value_in(v, task));
        inputs.push_back(here);
        if (!value.is_known()) continue;
      }
      if (!ir_.waits_for(node, value)) continue;
      DTG_ASSIGN(const NodeId here, control_in(value.producer, task));
      controls.push_back(here);
    }
    for (uint32_t control : node.controls) {
      if (ir_.nodes[control].dead) continue;
      DTG_ASSIGN(const NodeId here, control_in(control, task));
      controls.push_back(here);
    }
    NodeSpec spec;
    spec.op = node.barrier ? name_of(Role::nothing) : std::string_view(node.op->name());
    spec.name = node.node->name;
    spec.location = node.node->location;
    spec.device = context_.placer->devices()[node.device].text;
    spec.inputs = inputs;
    spec.controls = controls;
    const std::vector<Attr> attrs = node.barrier ? std::vector<Attr>() : lasting_attrs(*node.node);
    spec.attrs = attrs;
    DTG_ASSIGN(const NodeId id, add(task, spec));
    local_[n] = id;
    Part& into = part(task);
    for (uint32_t o = 0; !node.barrier && o < node.outputs.size(); ++o) values_[{node.outputs[o], task}] = into.graph->value(id, o);
    // Nobody takes a known value from whoever would make it, so a fetch that waits for that node asks for it by name.
    const bool fetched = std::ranges::any_of(
        node.outputs, [&](uint32_t v) { return ir_.values[v].fetches > 0 && (node.barrier || ir_.values[v].is_known()); });
    if (node.target || fetched || acts_unasked(node)) into.request.targets.push_back(id);
    return {};
  }

  // Which node another one extends, by its number in the graph that was asked for, has done its work in prune.
  static std::vector<Attr> lasting_attrs(const Node& node) {
    std::vector<Attr> attrs(node.attrs.begin(), node.attrs.end());
    std::erase_if(attrs, [](const Attr& attr) { return attr.name == Graph::kExtendsAttr; });
    return attrs;
  }

  // An effect that nothing in the plan waits for any longer, because what did is known without it.
  bool acts_unasked(const IrNode& node) const {
    return node.op->is_stateful() && !node.controlled &&
           std::ranges::all_of(node.outputs, [&](uint32_t v) { return ir_.values[v].uses == 0 && ir_.values[v].fetches == 0; });
  }

  Result<Value> value_in(uint32_t v, uint32_t task) {
    if (const auto have = values_.find({v, task}); have != values_.end()) return have->second;
    const IrValue& value = ir_.values[v];
    Value here;
    if (value.is_known()) {
      DTG_ASSIGN(here, add_constant(ir_.constant(value), task));
    } else {
      DTG_ASSIGN(here, add_edge(v, task));
    }
    values_[{v, task}] = here;
    return here;
  }

  Result<Value> add_constant(const Tensor& tensor, uint32_t task) {
    const Attr attrs[] = {{"value", AttrValue(tensor)}, {"dtype", AttrValue(tensor.dtype())}};
    const std::string name = "_known/" + std::to_string(constants_++);
    DTG_ASSIGN(const NodeId node, add(task, {.op = name_of(Role::constant), .name = name, .attrs = attrs}));
    return part(task).graph->value(node);
  }

  Result<Value> add_edge(uint32_t v, uint32_t to) {
    const IrValue& value = ir_.values[v];
    const uint32_t from = value.producer == kNone ? map_.home : task_of(value.producer);
    const ValueInfo& info = *value.info;
    if (cell_bytes(info.dtype) == 0) {
      return unimplemented(
          "partition: \"%s\" is a %s and is used on %s, but made on %s; such values cannot travel, so place both on one task",
          ir_.value_text(v).c_str(), dtype_name(info.dtype), map_.tasks[to].c_str(), map_.tasks[from].c_str());
    }
    const uint32_t phase = value.producer == kNone ? 0 : phase_after(ir_.nodes[value.producer]);
    if (is_direct(from, to)) return carry(values_.at({v, from}), info, from, to, phase);
    DTG_ASSIGN(const Value between, value_in(v, map_.home));
    return carry(between, info, map_.home, to, phase);
  }

  // Strings own more than their elements: they travel packed into bytes, whose number only the run knows.
  Result<Value> carry(Value value, const ValueInfo& info, uint32_t from, uint32_t to, uint32_t phase) {
    if (info.dtype != DType::string) return connect(value, info, from, to, phase, {});
    const std::string name = "_edge/" + std::to_string(edges_.size());
    const Value texts[] = {value};
    DTG_ASSIGN(const NodeId pack, add(from, {.op = name_of(Role::pack), .name = name + "/pack", .inputs = texts}));
    const ValueInfo bytes{DType::u8, DType::invalid, PartialShape::vector(-1)};
    DTG_ASSIGN(const Value arrived, connect(part(from).graph->value(pack), bytes, from, to, phase, {}));
    const Value packed[] = {arrived};
    const Attr attrs[] = {{"shape", AttrValue(info.shape)}};
    DTG_ASSIGN(const NodeId unpack, add(to, {.op = name_of(Role::unpack), .name = name + "/unpack", .inputs = packed, .attrs = attrs}));
    return part(to).graph->value(unpack);
  }

  // Both ends of a new edge, and the value at the far one.
  Result<Value> connect(Value value, const ValueInfo& info, uint32_t from, uint32_t to, uint32_t phase, std::span<const NodeId> after) {
    const auto edge = static_cast<uint32_t>(edges_.size());
    edges_.push_back({from, to});
    const std::string name = "_edge/" + std::to_string(edge);
    const std::string peer_to = to == map_.home ? std::string() : map_.tasks[to];
    const std::string peer_from = from == map_.home ? std::string() : map_.tasks[from];
    const Attr send_attrs[] = {{"edge", AttrValue(int64_t{edge})}, {"peer", AttrValue(peer_to)}};
    const Value inputs[] = {value};
    DTG_ASSIGN(const NodeId send,
               add(from, {.op = name_of(Role::send), .name = name + "/send", .inputs = inputs, .controls = after, .attrs = send_attrs}));
    part(from).request.targets.push_back(send);
    const Attr recv_attrs[] = {{"edge", AttrValue(int64_t{edge})},
                               {"phase", AttrValue(int64_t{phase})},
                               {"peer", AttrValue(peer_from)},
                               {"dtype", AttrValue(info.dtype)},
                               {"shape", AttrValue(info.shape)}};
    DTG_ASSIGN(const NodeId recv, add(to, {.op = name_of(Role::receive), .name = name + "/recv", .attrs = recv_attrs}));
    return part(to).graph->value(recv);
  }

  // What stands on `task` for "after node n": the node, or the arrival of a tiny value that is sent after it.
  Result<NodeId> control_in(uint32_t n, uint32_t task) {
    if (task_of(n) == task) return local_[n];
    if (const auto have = signals_.find({n, task}); have != signals_.end()) return have->second;
    const bool direct = is_direct(task_of(n), task);
    const uint32_t from = direct ? task_of(n) : map_.home;
    NodeId before = local_[n];
    if (!direct) {
      DTG_ASSIGN(before, control_in(n, map_.home));
    }
    DTG_ASSIGN(const Tensor token, Tensor::scalar<bool>(true));
    DTG_ASSIGN(const Value value, add_constant(token, from));
    const NodeId after[] = {before};
    DTG_ASSIGN(const Value arrival,
               connect(value, {DType::boolean, DType::invalid, PartialShape::scalar()}, from, task, phase_after(ir_.nodes[n]), after));
    signals_[{n, task}] = arrival.node();
    return arrival.node();
  }

  // Of whoever waits for the node.
  static uint32_t phase_after(const IrNode& node) { return node.phase + (node.write || node.blocking() ? 1 : 0); }

  Status add_joins() {
    for (const auto& [task, built] : parts_) {
      // Without targets it has only values that are known everywhere.
      if (task != map_.home && !built.request.targets.empty()) joined_.push_back(task);
    }
    for (size_t k = 0; k < joined_.size(); ++k) {
      const Attr attrs[] = {{"task", AttrValue(static_cast<int64_t>(k))}};
      const std::string name = "_join/" + std::to_string(k);
      DTG_ASSIGN(const NodeId join, add(map_.home, {.op = name_of(Role::join), .name = name, .attrs = attrs}));
      part(map_.home).request.targets.push_back(join);
    }
    return {};
  }

  using Key = std::pair<uint32_t, uint32_t>;  // (value or node of the Ir, task)
  const PlanContext& context_;
  const TaskMap& map_;
  Ir& ir_;
  std::map<uint32_t, Part> parts_;
  std::vector<uint32_t> joined_;
  std::map<Key, Value> values_;
  std::map<Key, NodeId> signals_;
  std::vector<NodeId> local_;  // node of the Ir -> node of its part
  std::vector<Edge> edges_;
  uint32_t constants_ = 0;
};

}  // namespace

Result<Partition> partition(const PlanContext& context, const Graph& graph, const PlanRequest& request, const TaskMap& map,
                            PassObserver observer, void* user) {
  Ir ir;
  ir.graph = &graph;
  ir.request = &request;
  context.placer->update(graph, graph.node_count());
  DTG_TRY(run_passes(context, front_passes(), ir, observer, user));
  return Cutter(context, map, ir).run(request);
}

}  // namespace dtg
