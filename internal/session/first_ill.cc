// Walking back from a loss.
#include "session/first_ill.h"

#include <algorithm>
#include <cmath>

#include "graph/function.h"
#include "ops/loss_check.h"

namespace dtg {
namespace {

constexpr size_t kAtOnce = 64;  // values that are fetched together

// Whether the node may be run once more, and nobody could tell.
bool is_repeatable(const Node& node) {
  bool calls = false;
  for_each_function(node, [&](const Function&) { calls = true; });
  bool looks = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    switch (node.op->access_of(i)) {
      case Access::undeclared: break;
      case Access::read:
      case Access::peek:
      case Access::ask: looks = true; break;
      default: return false;
    }
  }
  if (!node.op->is_stateful() || node.op->role() == Role::handle) return true;
  return looks && !calls;
}

template <class T>
int64_t first_not_finite(const Tensor& tensor) {
  const std::span<const T> values = tensor.values<T>();
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(static_cast<double>(static_cast<std::conditional_t<sizeof(T) == 8, double, float>>(values[i]))))
      return static_cast<int64_t>(i);
  }
  return -1;
}

template <class T>
std::string found_in(const Tensor& tensor) {
  const int64_t at = first_not_finite<T>(tensor);
  if (at < 0) return {};
  const auto value =
      static_cast<double>(static_cast<std::conditional_t<sizeof(T) == 8, double, float>>(tensor.values<T>()[static_cast<size_t>(at)]));
  return format("%g at element %lld of %s", value, static_cast<long long>(at), tensor.shape().text().c_str());
}

// Nodes that `from` needs, by data and, where asked for, by control edges; what is fed ends the walk.
std::vector<NodeId> needed_by(const Graph& graph, std::span<const NodeId> from, std::span<const Value> feeds, bool controls) {
  std::vector<bool> seen(graph.node_count());
  std::vector<NodeId> open(from.begin(), from.end()), all;
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (seen[id]) continue;
    seen[id] = true;
    all.push_back(id);
    const Node& node = graph.node(id);
    for (const Value input : node.inputs) {
      if (std::ranges::find(feeds, input) == feeds.end()) open.push_back(input.node());
    }
    if (controls) open.insert(open.end(), node.controls.begin(), node.controls.end());
  }
  std::ranges::sort(all);
  return all;
}

}  // namespace

Value judged_value(const Graph& graph, NodeId failed, std::span<const NodeId> targets) {
  const auto judged = [&](NodeId id) {
    const Node& node = graph.node(id);
    const bool judges = node.op->is_judge() && !node.inputs.empty() && dtype_is_floating(graph.info(node.inputs[0]).dtype);
    return judges ? node.inputs[0] : Value();
  };
  if (const Value value = judged(failed); value.valid()) return value;
  for (const NodeId id : needed_by(graph, targets, {}, true)) {
    if (const Value value = judged(id); value.valid()) return value;
  }
  return {};
}

// A node's inputs have lower numbers, but for those that loops of old graphs lead back, of which there are none.
std::vector<Value> suspects(const Graph& graph, Value loss, std::span<const Value> feeds) {
  std::vector<Value> all;
  std::vector<bool> barred(graph.node_count());
  const NodeId last = loss.node();
  for (const NodeId id : needed_by(graph, {&last, 1}, feeds, false)) {
    const Node& node = graph.node(id);
    const auto is_fed = [&](uint32_t output) { return std::ranges::find(feeds, graph.value(id, output)) != feeds.end(); };
    bool may = is_repeatable(node);
    for (const Value input : node.inputs) {
      if (barred[input.node()] && std::ranges::find(feeds, input) == feeds.end()) may = false;
    }
    for (const NodeId control : node.controls) {
      // What runs before it would run again too.
      if (control >= barred.size() || barred[control] || !is_repeatable(graph.node(control))) may = false;
    }
    barred[id] = !may;
    for (uint32_t output = 0; may && output < node.outputs.size(); ++output) {
      if (dtype_is_floating(node.outputs[output].dtype) && !is_fed(output)) all.push_back(graph.value(id, output));
    }
  }
  return all;
}

std::string not_finite(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::f64: return found_in<double>(tensor);
    case DType::f16: return found_in<Half>(tensor);
    case DType::bf16: return found_in<BFloat16>(tensor);
    case DType::f32: return found_in<float>(tensor);
    default: return {};
  }
}

std::string described_node(const Graph& graph, Value value) {
  const Node& node = graph.node(value.node());
  std::string text = "\"" + std::string(node.name) + "\" (" + node.op->name();
  if (!node.location.empty()) text += ", made at " + std::string(node.location);
  return text + ")";
}

std::optional<IllSearch> IllSearch::of(const Graph& graph, const Status& failure, std::span<const Value> feeds,
                                       std::span<const Tensor* const> tensors, std::span<const NodeId> targets) {
  if (failure.code() != Code::invalid_argument || failure.origin().node.empty()) return {};
  const NodeId failed = graph.find(failure.origin().node);
  if (failed == kNoNode || !graph.node(failed).op->is_judge()) return {};
  const Value loss = judged_value(graph, failed, targets);
  if (!loss.valid()) return {};
  IllSearch search(graph, failure, loss, feeds, tensors);
  // It may have been another worker's, and variables may have changed since; what cannot run again is believed of its own judge only.
  if (std::ranges::find(search.suspects_, loss) != search.suspects_.end()) return search;
  const bool is_own = !graph.node(failed).inputs.empty() && graph.node(failed).inputs[0] == loss;
  if (!is_own) return {};
  search.is_confirmed_ = true;
  search.look_at_feeds();
  return search;
}

IllSearch::IllSearch(const Graph& graph, const Status& failure, Value loss, std::span<const Value> feeds,
                     std::span<const Tensor* const> tensors)
    : graph_(&graph), failure_(failure), loss_(loss), feeds_(feeds), tensors_(tensors), suspects_(suspects(graph, loss, feeds)) {}

std::span<const Value> IllSearch::wanted() const {
  if (is_over_) return {};
  if (!is_confirmed_) return {&loss_, 1};
  return std::span<const Value>(suspects_).subspan(next_, std::min(kAtOnce, suspects_.size() - next_));
}

void IllSearch::take(std::span<const Tensor> values) {
  if (!is_confirmed_) {
    is_confirmed_ = true;
    if (not_finite(values[0]).empty()) return give_up();
    return look_at_feeds();
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string what = not_finite(values[i]);
    if (what.empty()) continue;
    const Value value = suspects_[next_ + i];
    const Node& made_by = graph_->node(value.node());
    const bool is_weight = !made_by.inputs.empty() && made_by.op->access_of(0) == Access::read;
    return found("the first value that is not finite is that of " + described_node(*graph_, value) + ": " + what +
                 (is_weight
                      ? "; an earlier step has made the weight so, of a finite loss with a gradient that was not: go back to saved weights"
                      : ""));
  }
  next_ += values.size();
}

void IllSearch::look_at_feeds() {
  for (size_t i = 0; i < feeds_.size(); ++i) {
    const std::string what = not_finite(*tensors_[i]);
    if (!what.empty()) return found("what was fed to " + described_node(*graph_, feeds_[i]) + " is " + what);
  }
  is_empty_ = is_batch_empty();
  is_over_ = is_over_ || is_empty_;
}

// Where everything that has rows has none: then no value is to blame, but that there are none.
bool IllSearch::is_batch_empty() const {
  size_t with_rows = 0;
  for (const Tensor* const tensor : tensors_) {
    if (tensor->shape().rank() == 0) continue;
    if (tensor->shape().dim(0) > 0) return false;
    ++with_rows;
  }
  return with_rows > 0;
}

void IllSearch::found(std::string what) {
  found_ = std::move(what);
  is_over_ = true;
}

Status IllSearch::answer() const {
  if (is_empty_) {
    const std::string& said = failure_.message();
    const size_t end = said.rfind(ops::kLossAdvice);
    return Status(failure_.code(),
                  said.substr(0, end) + (end == said.npos ? "; " : "") +
                      "the batch is empty, what was fed has no rows: leave such "
                      "batches out",
                  failure_.origin());
  }
  return found_.empty() ? failure_ : Status(failure_.code(), failure_.message() + "; " + found_, failure_.origin());
}

}  // namespace dtg
