// Prune, infer, fold, place: from a request on a graph to a draft.
#include "plan/draft.h"

#include <algorithm>
#include <unordered_map>

#include "graph/infer.h"
#include "plan/prepare.h"

namespace dtg {

Status infer_node(const Node& node, std::span<const ValueInfo> inputs, std::span<ValueInfo> outputs, Tensor (*constant_fn)(void*, int),
                  void* constant_context) {
  InferContext context(node, inputs, outputs, constant_fn, constant_context);
  Status status = node.op->shape_fn()(context);
  if (status.ok()) return status;
  std::string where = "infer \"" + std::string(node.name) + "\"";
  if (!node.location.empty()) where += " (made at " + std::string(node.location) + ")";
  return status.with_context(where).at_node(node.name).in_phase("prepare");
}

namespace {

class Drafter {
 public:
  Drafter(const PlanContext& context, const Graph& graph, const PlanRequest& request, Draft& draft)
      : context_(context), graph_(graph), request_(request), draft_(draft) {}

  Status run() {
    DTG_TRY(take_feeds());
    DTG_TRY(check_request());
    mark_needed();
    for (NodeId id = 0; id < needed_.size(); ++id) {
      if (needed_[id]) DTG_TRY(add(id));
    }
    for (NodeId target : request_.targets) draft_.nodes[at_[target]].target = true;
    for (Value fetch : request_.fetches) {
      const uint32_t value = value_of(fetch);
      draft_.fetches.push_back(value);
      ++draft_.values[value].fetches;
    }
    drop_unused();
    return {};
  }

 private:
  Status take_feeds() {
    for (const FeedSpec& feed : request_.feeds) {
      DTG_TRY(graph_.check(feed.value).with_context("feed"));
      const ValueInfo& info = graph_.info(feed.value);
      const std::string name = graph_.value_name(feed.value);
      if (info.dtype == DType::resource || info.dtype == DType::variant) {
        return invalid_argument("feed \"%s\": a %s cannot be fed", name.c_str(), dtype_name(info.dtype));
      }
      if (info.dtype != feed.dtype) {
        return invalid_argument("feed \"%s\": it is %s, but a %s tensor was given", name.c_str(), dtype_name(info.dtype),
                                dtype_name(feed.dtype));
      }
      if (!info.shape.admits(feed.shape)) {
        return invalid_argument("feed \"%s\": its shape is %s, but a tensor of shape %s was given", name.c_str(), info.shape.text().c_str(),
                                feed.shape.text().c_str());
      }
      DraftValue value;
      value.info = {feed.dtype, DType::invalid, PartialShape(feed.shape)};
      value.feed = static_cast<int32_t>(draft_.feeds.size());
      const uint32_t at = draft_.add_value(std::move(value));
      if (!fed_.emplace(feed.value.id, at).second) return invalid_argument("feed \"%s\": it is fed twice", name.c_str());
      draft_.feeds.push_back(at);
    }
    return {};
  }

  Status check_request() {
    if (request_.fetches.empty() && request_.targets.empty()) {
      return invalid_argument("run: nothing is asked for; name at least one fetch or target");
    }
    for (Value fetch : request_.fetches) {
      DTG_TRY(graph_.check(fetch).with_context("fetch"));
      if (fed_.count(fetch.id)) return invalid_argument("fetch \"%s\": it is fed in the same run", graph_.value_name(fetch).c_str());
      const DType dtype = graph_.info(fetch).dtype;
      if (dtype_size(dtype) == 0) {
        return invalid_argument("fetch \"%s\": a %s has no plain value", graph_.value_name(fetch).c_str(), dtype_name(dtype));
      }
    }
    for (NodeId target : request_.targets) DTG_TRY(graph_.check_node(target).with_context("target"));
    return {};
  }

  // A control edge from a Placeholder whose output is fed is satisfied by the feed; any other fed node
  // still runs when a control edge asks for it.
  bool satisfied_by_feed(const Node& node) const { return node.op->name() == "Placeholder" && fed_.count(graph_.value(node.id).id) != 0; }

  void need(NodeId id) {
    if (needed_[id]) return;
    needed_[id] = true;
    stack_.push_back(id);
  }

  void mark_needed() {
    needed_.assign(graph_.node_count(), false);
    for (NodeId target : request_.targets) need(target);
    for (Value fetch : request_.fetches) need(fetch.node());
    while (!stack_.empty()) {
      const Node& node = graph_.node(stack_.back());
      stack_.pop_back();
      for (Value input : node.inputs) {
        if (!fed_.count(input.id)) need(input.node());
      }
      for (NodeId control : node.controls) {
        if (!satisfied_by_feed(graph_.node(control))) need(control);
      }
    }
    at_.assign(needed_.size(), kNone);
  }

  uint32_t value_of(Value value) {
    if (const auto fed = fed_.find(value.id); fed != fed_.end()) return fed->second;
    return draft_.nodes[at_[value.node()]].outputs[value.output()];
  }

  Status add(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op->name() == "Placeholder") {
      // Only a target or a control edge brings a fed placeholder here; it has nothing left to do.
      if (!satisfied_by_feed(node)) {
        return invalid_argument("run: placeholder \"%.*s\" (%s%s) is needed but not fed", int(node.name.size()), node.name.data(),
                                dtype_name(node.outputs[0].dtype), node.outputs[0].shape.text().c_str())
            .at_node(node.name)
            .in_phase("prepare");
      }
    }
    DraftNode draft;
    draft.node = &node;
    std::vector<uint32_t> inputs;
    for (Value input : node.inputs) inputs.push_back(value_of(input));
    draft.inputs = draft_.arena.copy(std::span<const uint32_t>(inputs));
    for (NodeId control : node.controls) {
      if (at_[control] != kNone) draft.controls.push_back(at_[control]);
    }
    DTG_ASSIGN(draft.device, context_.placer->place(graph_, id));
    const auto number = static_cast<uint32_t>(draft_.nodes.size());
    DTG_TRY(add_outputs(draft, number));
    at_[id] = number;
    draft_.nodes.push_back(std::move(draft));
    return {};
  }

  Status add_outputs(DraftNode& draft, uint32_t number) {
    const Node& node = *draft.node;
    std::vector<ValueInfo> infos(node.outputs.begin(), node.outputs.end());
    DTG_TRY(infer(draft, infos));
    std::vector<Tensor> known = fold(draft, infos);
    std::vector<uint32_t> outputs;
    for (uint32_t o = 0; o < infos.size(); ++o) {
      DraftValue value;
      value.producer = number;
      value.output = o;
      value.info = std::move(infos[o]);
      if (o < known.size()) value.known = known[o];
      draft.dynamic |= value.dynamic();
      outputs.push_back(draft_.add_value(std::move(value)));
    }
    draft.outputs = draft_.arena.copy(std::span<const uint32_t>(outputs));
    for (uint32_t input : draft.inputs) {
      const DraftValue& value = draft_.values[input];
      draft.dynamic |= value.dynamic();
      if (value.producer == kNone) continue;
      const DraftNode& producer = draft_.nodes[value.producer];
      if (value.known.valid()) draft.late |= producer.late;
      else draft.dynamic |= producer.dynamic;
    }
    for (uint32_t control : draft.controls) draft.late |= draft_.nodes[control].dynamic;
    draft.dynamic |= draft.late;
    return {};
  }

  Status infer(const DraftNode& draft, std::vector<ValueInfo>& outputs) {
    // What was complete when the node was built stays as it is; a feed can only be more exact.
    bool open = std::ranges::any_of(outputs, [](const ValueInfo& o) { return !o.shape.complete(); });
    for (Value input : draft.node->inputs) open |= !graph_.info(input).shape.complete();
    if (!open) return {};
    std::vector<ValueInfo> inputs;
    for (uint32_t input : draft.inputs) inputs.push_back(draft_.values[input].info);
    struct Known {
      const Draft* draft;
      std::span<const uint32_t> inputs;
    } known{&draft_, draft.inputs};
    const auto constant = [](void* context, int i) {
      const auto* k = static_cast<const Known*>(context);
      return k->draft->values[k->inputs[static_cast<size_t>(i)]].known;
    };
    return infer_node(*draft.node, inputs, outputs, constant, &known);
  }

  // Values that need no run: constants, shapes that are known, and what follows from them.
  std::vector<Tensor> fold(const DraftNode& draft, const std::vector<ValueInfo>& outputs) {
    const Node& node = *draft.node;
    const std::string& op = node.op->name();
    if (op == "Const") return {node.attr<Tensor>("value")};
    if (node.op->is_stateful() || outputs.empty() || !draft.controls.empty()) return {};
    if (op == "Shape" || op == "ShapeN" || op == "Size" || op == "Rank") return fold_shape(draft, outputs);
    std::vector<Tensor> inputs;
    std::vector<ValueInfo> infos;
    for (uint32_t input : draft.inputs) {
      const DraftValue& value = draft_.values[input];
      if (!value.known.valid()) return {};
      inputs.push_back(value.known);
      infos.push_back(value.info);
    }
    if (inputs.empty()) return {};
    return evaluate_node(context_, node, inputs, infos, outputs);
  }

  std::vector<Tensor> fold_shape(const DraftNode& draft, const std::vector<ValueInfo>& outputs) {
    std::vector<Tensor> known;
    for (size_t i = 0; i < draft.inputs.size(); ++i) {
      const PartialShape& shape = draft_.values[draft.inputs[i]].info.shape;
      const std::string& op = draft.node->op->name();
      if (op == "Rank" ? !shape.has_rank() : !shape.complete()) return {};
      std::vector<int64_t> values(shape.dims().begin(), shape.dims().end());
      if (op == "Rank") values = {shape.rank()};
      if (op == "Size") {
        auto full = shape.to_shape();
        if (!full.ok()) return {};
        values = {full.value().count()};
      }
      auto tensor = Tensor::ints(outputs[i].dtype, values);
      if (!tensor.ok()) return {};
      known.push_back(op == "Rank" || op == "Size" ? tensor.value().reshaped(Shape()) : tensor.take());
    }
    return known;
  }

  // Folded nodes compute nothing, and what only they asked for is not needed either. From the back.
  void drop_unused() {
    for (size_t n = draft_.nodes.size(); n-- > 0;) {
      DraftNode& node = draft_.nodes[n];
      const bool useful =
          node.target || node.node->op->is_stateful() || needed_by_control(n) || std::ranges::any_of(node.outputs, [&](uint32_t o) {
            const DraftValue& value = draft_.values[o];
            return !value.known.valid() && (value.uses > 0 || value.fetches > 0);
          });
      if (!useful || (all_known(node) && !node.target)) {
        node.dead = true;
        node.forwards = node.controls;
        for (uint32_t control : node.controls) mark_control(control);
        // A constant may be held back by control edges; who reads what was folded from it still waits for them.
        for (uint32_t input : node.inputs) {
          const DraftValue& value = draft_.values[input];
          if (value.known.valid() && value.producer != kNone) node.forwards.push_back(value.producer);
        }
        continue;
      }
      for (uint32_t input : node.inputs) ++draft_.values[input].uses;
      for (uint32_t control : node.controls) mark_control(control);
    }
  }

  bool all_known(const DraftNode& node) const {
    return !node.outputs.empty() && std::ranges::all_of(node.outputs, [&](uint32_t o) { return draft_.values[o].known.valid(); });
  }
  bool needed_by_control(size_t n) const { return n < controlled_.size() && controlled_[n]; }
  void mark_control(uint32_t n) {
    if (controlled_.size() < draft_.nodes.size()) controlled_.resize(draft_.nodes.size());
    controlled_[n] = true;
  }

  const PlanContext& context_;
  const Graph& graph_;
  const PlanRequest& request_;
  Draft& draft_;
  std::unordered_map<uint64_t, uint32_t> fed_;
  std::vector<bool> needed_;
  std::vector<NodeId> stack_;
  std::vector<uint32_t> at_;  // graph node -> draft node
  std::vector<bool> controlled_;
};

}  // namespace

Status make_draft(const PlanContext& context, const Graph& graph, const PlanRequest& request, Draft& draft) {
  return Drafter(context, graph, request, draft).run();
}

}  // namespace dtg
