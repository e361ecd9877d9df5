// The draft says what is needed, where it runs and what is known; this walks it once in order and builds the parts.
#include "plan/partition.h"

#include <algorithm>
#include <map>
#include <set>

namespace dtg {
namespace {

// Edges on a task's own later receives depend on, by way of other tasks.
using EdgeSet = std::set<uint32_t>;

class Cutter {
 public:
  Cutter(const PlanContext& context, const TaskMap& map, const Draft& draft) : context_(context), map_(map), draft_(draft) {}

  Result<Partition> run(const PlanRequest& request) {
    DTG_TRY(add_part(map_.home));
    DTG_TRY(add_feeds(request));
    upstream_.resize(draft_.nodes.size());
    after_write_.resize(draft_.nodes.size());
    local_.resize(draft_.nodes.size(), kNoNode);
    for (uint32_t n = 0; n < draft_.nodes.size(); ++n) {
      if (!draft_.nodes[n].dead) DTG_TRY(add_node(n));
    }
    for (uint32_t value : draft_.fetches) {
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

  uint32_t task_of(uint32_t n) const { return map_.task_of_device[draft_.nodes[n].device]; }

  Result<NodeId> add(uint32_t task, const NodeSpec& spec) {
    DTG_TRY(add_part(task));
    auto added = part(task).graph->add(spec);
    return added.ok() ? added : added.status().with_context("partition for " + map_.tasks[task]);
  }

  Status add_feeds(const PlanRequest& request) {
    for (size_t i = 0; i < draft_.feeds.size(); ++i) {
      const FeedSpec& feed = request.feeds[i];
      const Attr attrs[] = {{"dtype", AttrValue(feed.dtype)}, {"shape", AttrValue(feed.shape)}};
      const std::string name = "_feed/" + std::to_string(i);
      DTG_ASSIGN(const NodeId node, add(map_.home, {.op = "Placeholder", .name = name, .attrs = attrs}));
      const Value here = part(map_.home).graph->value(node);
      part(map_.home).request.feeds.push_back({here, feed.dtype, feed.shape});
      values_[{draft_.feeds[i], map_.home}] = here;
    }
    return {};
  }

  Status add_node(uint32_t n) {
    const DraftNode& node = draft_.nodes[n];
    const uint32_t task = task_of(n);
    std::vector<Value> inputs;
    for (uint32_t value : node.inputs) {
      DTG_ASSIGN(const Value here, value_in(value, task));
      inputs.push_back(here);
      note_upstream(n, draft_.values[value].known.valid() ? kNone : draft_.values[value].producer);
    }
    std::vector<NodeId> controls;
    for (uint32_t control : live_controls(n)) {
      DTG_ASSIGN(const NodeId here, control_in(control, task));
      controls.push_back(here);
      note_upstream(n, control);
    }
    NodeSpec spec;
    // A fed placeholder that is asked to run has nothing to do.
    const bool placeholder = node.node->op->name() == "Placeholder";
    spec.op = placeholder ? std::string_view("NoOp") : std::string_view(node.node->op->name());
    spec.name = node.node->name;
    spec.location = node.node->location;
    spec.device = context_.placer->devices()[node.device].text;
    spec.inputs = inputs;
    spec.controls = controls;
    if (!placeholder) spec.attrs = node.node->attrs;
    DTG_ASSIGN(const NodeId id, add(task, spec));
    local_[n] = id;
    Part& into = part(task);
    for (uint32_t o = 0; !placeholder && o < node.outputs.size(); ++o) values_[{node.outputs[o], task}] = into.graph->value(id, o);
    if (node.target) into.request.targets.push_back(id);
    after_write_[n] = after_write_[n] || writes(*node.node);
    return {};
  }

  // A control edge on a folded node means what it forwards to.
  std::vector<uint32_t> live_controls(uint32_t n) const {
    std::vector<uint32_t> live, stack(draft_.nodes[n].controls);
    while (!stack.empty()) {
      const uint32_t control = stack.back();
      stack.pop_back();
      const DraftNode& node = draft_.nodes[control];
      if (node.dead) stack.insert(stack.end(), node.forwards.begin(), node.forwards.end());
      else live.push_back(control);
    }
    std::ranges::sort(live);
    live.erase(std::unique(live.begin(), live.end()), live.end());
    return live;
  }

  static bool writes(const Node& node) {
    const std::string& op = node.op->name();
    return node.op->is_stateful() && op != "VarHandleOp" && op != "ReadVariableOp" && op != "VarIsInitializedOp" && op != "VariableShape" &&
           op != "ResourceGather" && op != "ResourceGatherNd";
  }

  // Which sends that follow a write stand before a node, on any task: a receive on the task of such a send comes
  // after it, although nothing in that task's part would say so, and a part's order of reads and writes must know.
  void note_upstream(uint32_t n, uint32_t before) {
    if (before == kNone) return;
    upstream_[n].insert(upstream_[before].begin(), upstream_[before].end());
    if (task_of(before) == task_of(n)) {
      after_write_[n] = after_write_[n] || after_write_[before];
      return;
    }
    if (const auto sent = sent_.find({before, task_of(n)}); sent != sent_.end()) {
      upstream_[n].insert(sent->second.begin(), sent->second.end());
    }
  }

  Result<Value> value_in(uint32_t v, uint32_t task) {
    if (const auto have = values_.find({v, task}); have != values_.end()) return have->second;
    const DraftValue& value = draft_.values[v];
    Value here;
    if (value.known.valid()) {
      DTG_ASSIGN(here, add_constant(value.known, task));
    } else {
      DTG_ASSIGN(here, add_edge(v, task));
    }
    values_[{v, task}] = here;
    return here;
  }

  Result<Value> add_constant(const Tensor& tensor, uint32_t task) {
    const Attr attrs[] = {{"value", AttrValue(tensor)}, {"dtype", AttrValue(tensor.dtype())}};
    const std::string name = "_known/" + std::to_string(constants_++);
    DTG_ASSIGN(const NodeId node, add(task, {.op = "Const", .name = name, .attrs = attrs}));
    return part(task).graph->value(node);
  }

  std::string value_text(const DraftValue& value) const {
    if (value.producer == kNone) return "feed " + std::to_string(value.feed);
    return std::string(draft_.nodes[value.producer].node->name) + ":" + std::to_string(value.output);
  }

  Result<Value> add_edge(uint32_t v, uint32_t to) {
    const DraftValue& value = draft_.values[v];
    const uint32_t from = value.producer == kNone ? map_.home : task_of(value.producer);
    if (dtype_size(value.info.dtype) == 0) {
      return unimplemented(
          "partition: \"%s\" is a %s and is used on %s, but made on %s; such values cannot travel, so place both on one task",
          value_text(value).c_str(), dtype_name(value.info.dtype), map_.tasks[to].c_str(), map_.tasks[from].c_str());
    }
    if (is_direct(from, to)) return connect(values_.at({v, from}), value.info, from, to, value.producer, {});
    DTG_ASSIGN(const Value between, value_in(v, map_.home));
    DTG_ASSIGN(const Value there, connect(between, value.info, map_.home, to, value.producer, {}));
    passed_on(value.producer, to);
    return there;
  }

  // What home passed on stands behind the send to home, too.
  void passed_on(uint32_t producer, uint32_t to) {
    if (producer == kNone) return;
    const auto first = sent_.find({producer, map_.home});
    if (first == sent_.end()) return;
    const EdgeSet edges = first->second;
    sent_[{producer, to}].insert(edges.begin(), edges.end());
  }

  // Both ends of a new edge, and the value at the far one.
  Result<Value> connect(Value value, const ValueInfo& info, uint32_t from, uint32_t to, uint32_t producer, std::span<const NodeId> after) {
    const auto edge = static_cast<uint32_t>(edges_.size());
    edges_.push_back({from, to});
    const std::string name = "_edge/" + std::to_string(edge);
    const std::string peer_to = to == map_.home ? std::string() : map_.tasks[to];
    const std::string peer_from = from == map_.home ? std::string() : map_.tasks[from];
    const Attr send_attrs[] = {{"edge", AttrValue(int64_t{edge})}, {"peer", AttrValue(peer_to)}};
    const Value inputs[] = {value};
    DTG_ASSIGN(const NodeId send,
               add(from, {.op = "_Send", .name = name + "/send", .inputs = inputs, .controls = after, .attrs = send_attrs}));
    part(from).request.targets.push_back(send);
    sends_.push_back(send);
    const Attr recv_attrs[] = {{"edge", AttrValue(int64_t{edge})},
                               {"peer", AttrValue(peer_from)},
                               {"dtype", AttrValue(info.dtype)},
                               {"shape", AttrValue(info.shape)}};
    std::vector<NodeId> order;
    if (producer != kNone) {
      if (after_write_[producer]) sent_[{producer, to}].insert(edge);
      for (uint32_t earlier : upstream_[producer]) {
        if (edges_[earlier].from == to) order.push_back(sends_[earlier]);
      }
    }
    DTG_ASSIGN(const NodeId recv, add(to, {.op = "_Recv", .name = name + "/recv", .controls = order, .attrs = recv_attrs}));
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
    DTG_ASSIGN(const Value arrival, connect(value, {DType::boolean, DType::invalid, PartialShape::scalar()}, from, task, n, after));
    if (!direct) passed_on(n, task);
    signals_[{n, task}] = arrival.node();
    return arrival.node();
  }

  Status add_joins() {
    for (const auto& [task, built] : parts_) {
      // Without targets it has only values that are known everywhere.
      if (task != map_.home && !built.request.targets.empty()) joined_.push_back(task);
    }
    for (size_t k = 0; k < joined_.size(); ++k) {
      const Attr attrs[] = {{"task", AttrValue(static_cast<int64_t>(k))}};
      const std::string name = "_join/" + std::to_string(k);
      DTG_ASSIGN(const NodeId join, add(map_.home, {.op = "_Join", .name = name, .attrs = attrs}));
      part(map_.home).request.targets.push_back(join);
    }
    return {};
  }

  using Key = std::pair<uint32_t, uint32_t>;  // (draft value or node, task)
  const PlanContext& context_;
  const TaskMap& map_;
  const Draft& draft_;
  std::map<uint32_t, Part> parts_;
  std::vector<uint32_t> joined_;
  std::map<Key, Value> values_;
  std::map<Key, NodeId> signals_;
  std::map<Key, EdgeSet> sent_;    // (draft node, receiving task) -> edges
  std::vector<EdgeSet> upstream_;  // per draft node: edges after writes that stand before it
  std::vector<bool> after_write_;  // per draft node: a write on its own task stands before it
  std::vector<NodeId> local_;      // draft node -> node of its part
  std::vector<NodeId> sends_;      // edge -> its _Send
  std::vector<Edge> edges_;
  uint32_t constants_ = 0;
};

}  // namespace

Result<Partition> partition(const PlanContext& context, const Graph& graph, const PlanRequest& request, const TaskMap& map) {
  Draft draft;
  context.placer->update(graph, graph.node_count());
  DTG_TRY(make_draft(context, graph, request, draft));
  return Cutter(context, map, draft).run(request);
}

}  // namespace dtg
