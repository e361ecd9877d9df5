// Prune: from a request on a graph to the nodes that it needs, in the order in which they were made.
#include <algorithm>
#include <optional>

#include "base/flat_map.h"
#include "graph/recompute.h"
#include "plan/passes.h"

namespace dtg {
namespace {

class Pruner {
 public:
  Pruner(const PlanContext& context, Ir& ir) : context_(context), graph_(*ir.graph), request_(*ir.request), ir_(ir) {}

  Status run() {
    DTG_TRY(take_feeds());
    DTG_TRY(check_request());
    mark_needed();
    ir_.nodes.reserve(needed_count_);
    list_.reserve(kSpare);
    ir_.values.reserve(needed_count_ + request_.feeds.size() + kSpare);
    for (NodeId id = 0; id < needed_.size(); ++id) {
      if (needed_[id] && at_[id] == kNone) DTG_TRY(add_or_extend(id));
      if (context_.is_checkpoint(id)) DTG_TRY(context_.check_time());
    }
    for (NodeId target : request_.targets) ir_.nodes[at_[target]].target = true;
    for (Value fetch : request_.fetches) {
      const uint32_t value = value_of(fetch);
      ir_.fetches.push_back(value);
      ++ir_.values[value].fetches;
    }
    return {};
  }

 private:
  Status take_feeds() {
    // Most graphs are of bodies, and small: then there is room for all from the beginning.
    ir_.values.reserve(request_.feeds.size() + std::min<size_t>(graph_.node_count(), kSmall) + kSpare);
    fed_.reserve(request_.feeds.size());
    ir_.feeds.reserve(request_.feeds.size());
    ir_.fetches.reserve(request_.fetches.size());
    for (const FeedSpec& feed : request_.feeds) {
      if (Status status = graph_.check(feed.value); !status.ok()) return status.with_context("feed");
      const ValueInfo& info = graph_.info(feed.value);
      if (Status status = check_feed(feed, info); !status.ok()) return status.at_node(graph_.node(feed.value.node()).name).in_phase("feed");
      IrValue value;
      value.info =
          ir_.arena.make<ValueInfo>(ValueInfo{feed.dtype, feed.held, is_holder(feed.dtype) ? feed.holds : PartialShape(feed.shape)});
      value.feed = static_cast<int32_t>(ir_.feeds.size());
      value.unsure = graph_.constant_value(feed.value).valid();
      const uint32_t at = ir_.add_value(value);
      if (!fed_.emplace(feed.value.id, at).second) {
        return invalid_argument("feed \"%s\": it is fed twice", graph_.value_name(feed.value).c_str())
            .at_node(graph_.node(feed.value.node()).name)
            .in_phase("feed");
      }
      ir_.feeds.push_back(at);
      if (!request_.body) feed_repetitions(feed, at);
    }
    return {};
  }

  // What gradients compute anew to save memory is what was fed, too.
  void feed_repetitions(const FeedSpec& feed, uint32_t at) {
    for (const NodeId id : repetitions_of(graph_, feed.value.node())) {
      if (feed.value.output() >= graph_.node(id).outputs.size()) continue;
      const Value again = graph_.value(id, feed.value.output());
      if (check_feed(feed, graph_.info(again)).ok()) fed_.emplace(again.id, at);
    }
  }

  // Most often it is the first dimension, how many examples there are, that is fixed where it should be open, or left out.
  static const char* batch_hint(const PartialShape& wanted, const Shape& given) {
    const auto fits = [&](int from, int skip) {
      for (int i = from; i < wanted.rank(); ++i) {
        if (wanted.dim(i) >= 0 && wanted.dim(i) != given.dim(i - skip)) return false;
      }
      return true;
    };
    if (wanted.rank() < 1) return "";
    if (wanted.rank() == given.rank() && fits(1, 0)) {
      return "; if that is the number of examples, make a placeholder whose first dimension is open (-1), which takes any number of them";
    }
    if (wanted.rank() == given.rank() + 1 && fits(1, 1)) return "; the batch comes first: give one example as a batch of 1";
    return "";
  }

  Status check_feed(const FeedSpec& feed, const ValueInfo& info) const {
    if (request_.body && is_holder(feed.dtype)) return {};
    if (!is_holder(info.dtype) && info.dtype == feed.dtype && info.shape.admits(feed.shape)) return {};
    const std::string name = graph_.value_name(feed.value);
    if (is_holder(info.dtype)) {
      return invalid_argument("feed \"%s\": a %s cannot be fed", name.c_str(), dtype_name(info.dtype));
    }
    if (info.dtype != feed.dtype) {
      return invalid_argument(
          "feed \"%s\": it is %s, but a tensor of %s was given; cast what is fed, such as the data set, or build it of %s with a Cast behind it",
          name.c_str(), dtype_name(info.dtype), dtype_name(feed.dtype), dtype_name(feed.dtype));
    }
    return invalid_argument("feed \"%s\": its shape is %s, but a tensor of shape %s was given%s", name.c_str(), info.shape.text().c_str(),
                            feed.shape.text().c_str(), batch_hint(info.shape, feed.shape));
  }

  Status check_request() const {
    if (request_.fetches.empty() && request_.targets.empty() && !request_.body) {
      return invalid_argument("run: nothing is asked for; name at least one fetch or target");
    }
    for (Value fetch : request_.fetches) {
      if (Status status = graph_.check(fetch); !status.ok()) return status.with_context("fetch");
      if (fed_.find(fetch.id) && !request_.body)
        return invalid_argument("fetch \"%s\": it is fed in the same run", graph_.value_name(fetch).c_str());
      const DType dtype = graph_.info(fetch).dtype;
      if (cell_bytes(dtype) == 0 && !(request_.body && is_holder(dtype))) {
        return invalid_argument("fetch \"%s\": a %s has no plain value", graph_.value_name(fetch).c_str(), dtype_name(dtype));
      }
    }
    for (NodeId target : request_.targets) DTG_TRY(graph_.check_node(target).with_context("target"));
    return {};
  }

  // A control edge from a placeholder whose output is fed is satisfied by the feed; any other fed node still runs when a control
  // edge asks for it.
  bool satisfied_by_feed(const Node& node) const { return is_given(node.op->role()) && fed_.find(graph_.value(node.id).id) != nullptr; }

  void need(NodeId id) {
    if (needed_[id]) return;
    needed_[id] = true;
    ++needed_count_;
    stack_.push_back(id);
  }

  void mark_needed() {
    stack_.reserve(kSmall);
    needed_.assign(graph_.node_count(), false);
    at_.assign(needed_.size(), kNone);
    values_at_.assign(needed_.size(), kNone);
    for (NodeId target : request_.targets) need(target);
    for (Value fetch : request_.fetches) {
      if (!is_fed(fetch)) need(fetch.node());
    }
    while (!stack_.empty()) {
      const Node& node = graph_.node(stack_.back());
      stack_.pop_back();
      for (Value input : node.inputs) {
        if (!is_fed(input)) need(input.node());
      }
      for (NodeId control : node.controls) {
        if (!satisfied_by_feed(graph_.node(control))) need(control);
      }
    }
  }

  // What the last of `chain` needs and its first has not got, in its order; nothing where it cannot stand in that place.
  std::optional<std::vector<NodeId>> needed_before(const std::vector<NodeId>& chain) const {
    std::vector<NodeId> found, stack = {chain.back()};
    while (!stack.empty()) {
      const Node& node = graph_.node(stack.back());
      stack.pop_back();
      const auto visit = [&](NodeId before) {
        if (before > chain.front() && at_[before] == kNone && std::ranges::find(found, before) == found.end()) {
          found.push_back(before);
          stack.push_back(before);
        }
        return std::ranges::find(chain, before) == chain.end();
      };
      for (Value input : node.inputs) {
        if (!is_fed(input) && !visit(input.node())) return {};
      }
      for (NodeId control : node.controls) {
        if (!visit(control)) return {};
      }
    }
    std::ranges::sort(found);
    return found;
  }

  // A node, or in its place one that does the same and more, where that is needed too; that one may have one like it in turn.
  Status add_or_extend(NodeId id) {
    NodeId extension = graph_.extension_of(id);
    if (extension == kNoNode) return add(id);
    std::vector<NodeId> chain = {id};
    for (; extension != kNoNode && extension < needed_.size(); extension = graph_.extension_of(extension)) chain.push_back(extension);
    for (; chain.size() > 1; chain.pop_back()) {
      if (!needed_[chain.back()]) continue;
      const auto before = needed_before(chain);
      if (!before) continue;
      for (NodeId other : *before) {
        if (at_[other] == kNone) DTG_TRY(add(other));
      }
      DTG_TRY(add(chain.back()));
      for (NodeId one : chain) {
        at_[one] = at_[chain.back()];
        values_at_[one] = values_at_[chain.back()];
      }
      return {};
    }
    return add(id);
  }

  bool is_fed(Value value) const { return fed_.find(value.id) != nullptr; }

  uint32_t value_of(Value value) const {
    if (const uint32_t* const fed = fed_.find(value.id)) return *fed;
    return values_at_[value.node()] + value.output();
  }

  Status add(NodeId id) {
    const Node& node = graph_.node(id);
    // Only a target or a control edge brings a fed placeholder here; it has nothing left to do.
    if (is_given(node.op->role()) && !satisfied_by_feed(node)) {
      return invalid_argument("run: placeholder \"%.*s\" (%s%s) is needed but not fed", int(node.name.size()), node.name.data(),
                              dtype_name(node.outputs[0].dtype), node.outputs[0].shape.text().c_str())
          .at_node(node.name)
          .in_phase("prepare");
    }
    const auto number = static_cast<uint32_t>(ir_.nodes.size());
    IrNode& made = ir_.nodes.emplace_back();
    made.stand_for(&node, false);
    list_.clear();
    for (Value input : node.inputs) list_.push_back(value_of(input));
    made.inputs = ir_.arena.copy(std::span<const uint32_t>(list_));
    list_.clear();
    for (NodeId control : node.controls) {
      if (at_[control] != kNone) list_.push_back(at_[control]);
    }
    made.controls = ir_.arena.copy(std::span<const uint32_t>(list_));
    list_.clear();
    const auto first = static_cast<uint32_t>(ir_.values.size());
    for (uint32_t o = 0; o < node.outputs.size(); ++o) {
      IrValue value;
      value.producer = number;
      value.output = o;
      value.info = &node.outputs[o];
      list_.push_back(ir_.add_value(value));
    }
    made.outputs = ir_.arena.copy(std::span<const uint32_t>(list_));
    at_[id] = number;
    values_at_[id] = first;
    return {};
  }

  static constexpr size_t kSmall = 256, kSpare = 16;
  const PlanContext& context_;
  const Graph& graph_;
  const PlanRequest& request_;
  Ir& ir_;
  FlatMap<uint32_t> fed_;
  std::vector<bool> needed_;
  size_t needed_count_ = 0;
  std::vector<NodeId> stack_;
  std::vector<uint32_t> at_;         // graph node -> node
  std::vector<uint32_t> values_at_;  // graph node -> its first value, which the others follow
  std::vector<uint32_t> list_;
};

}  // namespace

Status prune(const PlanContext& context, Ir& ir) { return Pruner(context, ir).run(); }

}  // namespace dtg
