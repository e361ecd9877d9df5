// Reverse mode: finds the nodes between xs and ys, visits them in reverse order of creation (a topological order,
// because a node's inputs exist before it), adds up what arrives at each output, and asks the op's rule for what flows
// on. Called by the thread that builds the graph.
#include "graph/gradient.h"

#include <algorithm>

#include "base/flat_map.h"
#include "graph/recompute.h"

namespace dtg {

Value GradContext::dy(int i) {
  const Gradient& arrived = raw_dy(i);
  if (!arrived.any()) return build_.zeros_like(output(i));
  return densify(build_, arrived);
}

void GradContext::dx_unbroadcast(int i, Value value, int other) {
  const ValueInfo& own = input_info(i);
  const PartialShape& from = build_.info(value).shape;
  // Nothing was broadcast when the shapes are known to be equal.
  if (own.shape.complete() && from.complete() && own.shape == from) return dx(i, value);
  const int low = std::min(i, other), high = std::max(i, other);
  const Value shapes[] = {build_.shape(input(low)), build_.shape(input(high))};
  const Value axes = build_.op("BroadcastGradientArgs", std::span<const Value>(shapes));
  const Value mine = build_.ok() ? axes.sibling(i == low ? 0 : 1) : axes;
  dx(i, build_.reshape(build_.sum(value, mine), shapes[i == low ? 0 : 1]));
}

Value densify(Build& build, const Gradient& gradient) {
  if (!gradient.is_rows()) return gradient.dense;
  const DType index = build.info(gradient.dense_shape).dtype;
  const Value zero = build.ints({0}, index), one = build.ints({1}, index);
  const Value rows = build.op("StridedSlice", {gradient.dense_shape, zero, one, one}, {{"shrink_axis_mask", 1}});
  const Value sum = build.op("UnsortedSegmentSum", {gradient.values, gradient.indices, rows});
  // The segment sum knows the rows; the rest of the shape is that of the values.
  return build.reshape(sum, gradient.dense_shape);
}

namespace {

constexpr size_t kAddends = 0x8000;

// The nodes of recompute scopes once more, for gradients that ask for what they gave: the first ones wait for the gradient that arrives at
// the scope, so that meanwhile nobody holds what lies inside. That control edge also keeps planners from making both one.
class Again {
 public:
  explicit Again(Graph& graph) : graph_(graph), end_(graph.node_count()), scopes_(recompute_scopes(graph)) {}

  // The node whose values a gradient of `id` is to use; `arrived` comes before it.
  Result<NodeId> of(NodeId id, Value arrived) {
    const auto after = std::ranges::upper_bound(scopes_, id, {}, &std::pair<NodeId, NodeId>::first);
    if (after == scopes_.begin() || id >= std::prev(after)->second) return id;
    const auto [first, last] = *std::prev(after);
    if (!twins_.find(first)) DTG_TRY(repeat(first, std::min(last, end_), arrived.node()));
    return twin(id);
  }

 private:
  NodeId twin(NodeId id) const {
    const uint32_t* const at = twins_.find(id);
    return at ? *at : id;
  }

  Status repeat(NodeId first, NodeId last, NodeId arrived) {
    twins_.emplace(first, first);
    graph_.push_name_scope("");
    Status status;
    for (NodeId id = first; id < last && status.ok(); ++id) {
      if (is_repeatable(graph_.node(id))) status = repeat_one(id, arrived);
    }
    const Status closed = graph_.pop_name_scope();
    return status.ok() ? closed : status;
  }

  Status repeat_one(NodeId id, NodeId arrived) {
    const Node& node = graph_.node(id);
    std::vector<Value> inputs;
    bool waits = false;
    for (Value input : node.inputs) {
      const NodeId other = twin(input.node());
      waits = waits || other != input.node();
      inputs.push_back(graph_.value(other, input.output()));
    }
    graph_.push_colocation(id);
    const std::string name = graph_.unique_name(name_of_repetition(node));
    auto made = graph_.add({.op = node.op->name(),
                            .name = name,
                            .device = node.device,
                            .location = node.location,
                            .inputs = inputs,
                            .controls = std::span(&arrived, waits ? 0 : 1),
                            .attrs = node.attrs});
    const Status closed = graph_.pop_colocation();
    if (!made.ok()) return made.status().with_context("recompute").at_node(node.name);
    if (const auto [at, fresh] = twins_.emplace(id, made.value()); !fresh) *at = made.value();
    return closed;
  }

  // What has effects or deals with resources is done once; its values are kept, as are constants. So are calls of functions, whose
  // gradients have a way of their own to what they need.
  bool is_repeatable(const Node& node) const {
    const auto plain = [](DType dtype) { return dtype != DType::resource && dtype != DType::variant; };
    if (node.inputs.empty() || node.outputs.empty() || node.op->is_stateful() || node.op->role() != Role::compute) return false;
    return std::ranges::all_of(node.outputs, [&](const ValueInfo& info) { return plain(info.dtype); }) &&
           std::ranges::all_of(node.inputs, [&](Value input) { return plain(graph_.info(input).dtype); }) &&
           std::ranges::none_of(node.op->attrs(), [](const AttrDef& attr) { return attr.kind == AttrKind::function; });
  }

  Graph& graph_;
  const NodeId end_;
  const std::vector<std::pair<NodeId, NodeId>> scopes_;
  FlatMap<uint32_t> twins_;  // by node; the first of a scope stands for itself where it has none
};

// Everything that arrived at one value.
using Arrived = std::vector<Gradient>;

class Backward {
 public:
  Backward(Graph& graph, std::span<const Value> ys, std::span<const Value> xs, std::span<const Value> grad_ys, bool inner = false)
      : graph_(graph),
        build_(graph),
        ys_(ys),
        xs_(xs),
        grad_ys_(grad_ys),
        inner_(inner),
        again_(graph),
        call_(inner ? std::string() : "gradients_" + std::to_string(graph.node_count())) {}

  Result<std::vector<Gradient>> run() {
    DTG_TRY(seed());
    mark_between();
    for (NodeId id = last_ + 1; id-- > 0;) {
      if (between_[id] && !extends_[id]) DTG_TRY(visit(furthest(id)));
    }
    std::vector<Gradient> result;
    for (Value x : xs_) {
      DTG_ASSIGN(Gradient total, sum(x));
      // An output that no y uses, beside one that some y uses, has a gradient of zeros, as in TensorFlow.
      if (!total.any() && x.node() <= last_ && differentiated_[x.node()] && dtype_is_floating(graph_.info(x).dtype)) {
        total.dense = build_.zeros_like(x);
      }
      result.push_back(total);
    }
    DTG_TRY(build_.status());
    return result;
  }

 private:
  Status seed() {
    if (inner_) {
      for (size_t i = 0; i < ys_.size(); ++i) {
        last_ = std::max(last_, ys_[i].node());
        arrived_at(ys_[i]).push_back({grad_ys_[i], {}, {}, {}});
      }
      return {};
    }
    if (!grad_ys_.empty() && grad_ys_.size() != ys_.size()) {
      return invalid_argument("gradients: %zu values to differentiate, but %zu weights", ys_.size(), grad_ys_.size());
    }
    for (Value x : xs_) DTG_TRY(graph_.check(x).with_context("gradients, with respect to"));
    for (size_t i = 0; i < ys_.size(); ++i) {
      DTG_TRY(graph_.check(ys_[i]).with_context("gradients, of"));
      const ValueInfo& info = graph_.info(ys_[i]);
      if (!dtype_is_floating(info.dtype)) {
        return invalid_argument("gradients: \"%s\" is %s; only floating-point values can be differentiated; Cast before the loss is made",
                                graph_.value_name(ys_[i]).c_str(), dtype_name(info.dtype));
      }
      Value weight = grad_ys_.empty() ? Value() : grad_ys_[i];
      if (weight.valid()) {
        DTG_TRY(graph_.check(weight).with_context("gradients, weight"));
        if (graph_.info(weight).dtype != info.dtype) {
          return invalid_argument("gradients: the weight of \"%s\" is %s, it must be %s", graph_.value_name(ys_[i]).c_str(),
                                  dtype_name(graph_.info(weight).dtype), dtype_name(info.dtype));
        }
        DTG_TRY(PartialShape::merge(graph_.info(weight).shape, info.shape, "gradients: a weight and its value").status());
      } else {
        weight = build_.op("OnesLike", {ys_[i]});
        DTG_TRY(build_.status());
      }
      last_ = std::max(last_, ys_[i].node());
      arrived_at(ys_[i]).push_back({weight, {}, {}, {}});
    }
    return {};
  }

  // between_[n]: some y depends on n and n depends on some x.
  void mark_between() {
    std::vector<bool> from_y(last_ + 1), from_x(last_ + 1);
    for (Value y : ys_) from_y[y.node()] = true;
    for (Value x : xs_) {
      if (x.node() <= last_) from_x[x.node()] = true;
    }
    for (NodeId id = last_ + 1; id-- > 0;) {
      if (!from_y[id]) continue;
      for (Value input : graph_.node(id).inputs) from_y[input.node()] = true;
    }
    for (NodeId id = 0; id <= last_; ++id) {
      if (from_x[id]) continue;
      for (Value input : graph_.node(id).inputs) from_x[id] = from_x[id] || from_x[input.node()];
    }
    between_.resize(last_ + 1);
    differentiated_.resize(last_ + 1);
    for (NodeId id = 0; id <= last_; ++id) between_[id] = from_y[id] && from_x[id];
    extends_.resize(last_ + 1);
    for (NodeId id = 0; id <= last_; ++id) {
      const NodeId extension = graph_.extension_of(id);
      if (extension != kNoNode && extension <= last_) extends_[extension] = between_[id] || extends_[id];
    }
  }

  // A node that was extended for an earlier pass does the same as its extension, and what flows to either of them is one gradient: it is
  // asked of the extension, in the node's place.
  NodeId furthest(NodeId id) {
    NodeId last = id;
    for (NodeId next = graph_.extension_of(id); next != kNoNode && next <= last_; next = graph_.extension_of(next)) {
      if (!between_[next]) continue;
      for (uint32_t o = 0; o < graph_.node(last).outputs.size(); ++o) {
        const uint32_t* const at = numbers_.find(graph_.value(last, o).id);
        if (!at) continue;
        const Arrived parts = arrived_[*at];
        Arrived& all = arrived_at(graph_.value(next, o));
        all.insert(all.end(), parts.begin(), parts.end());
      }
      last = next;
    }
    if (last != id) differentiated_[id] = true;
    return last;
  }

  Arrived& arrived_at(Value value) {
    const auto [at, fresh] = numbers_.emplace(value.id, static_cast<uint32_t>(arrived_.size()));
    if (fresh) arrived_.emplace_back();
    return arrived_[*at];
  }

  // One gradient for everything that arrived at a value. Rows stay rows when all of it is rows.
  Result<Gradient> sum(Value value) {
    const uint32_t* const at = numbers_.find(value.id);
    if (!at) return Gradient();
    Arrived& parts = arrived_[*at];
    if (parts.size() > 1) {
      const bool rows = std::ranges::all_of(parts, &Gradient::is_rows);
      parts = {rows ? join_rows(parts) : add_dense(parts)};
    }
    DTG_TRY(build_.status());
    return parts[0];
  }

  Gradient add_dense(const Arrived& parts) {
    std::vector<Value> dense;
    for (const Gradient& part : parts) dense.push_back(densify(build_, part));
    // A node has no more inputs than that.
    while (dense.size() > kAddends) {
      std::vector<Value> sums;
      for (size_t at = 0; at < dense.size(); at += kAddends)
        sums.push_back(build_.op("AddN", std::span<const Value>(dense).subspan(at, std::min(kAddends, dense.size() - at))));
      dense = std::move(sums);
    }
    return {build_.op("AddN", dense), {}, {}, {}};
  }

  Gradient join_rows(const Arrived& parts) {
    std::vector<Value> values, indices;
    const DType index = build_.info(parts[0].indices).dtype;
    const bool same = std::ranges::all_of(parts, [&](const Gradient& p) { return build_.info(p.indices).dtype == index; });
    for (const Gradient& part : parts) {
      values.push_back(part.values);
      indices.push_back(same ? part.indices : build_.cast(part.indices, DType::i64));
    }
    const Value axis = build_.integer(0);
    values.push_back(axis);
    indices.push_back(axis);
    return {{}, build_.op("ConcatV2", values), build_.op("ConcatV2", indices), parts[0].dense_shape};
  }

  Status visit(NodeId id) {
    // The copy survives: the gradient functions add nodes, and nodes never move.
    const Node& node = graph_.node(id);
    std::vector<Gradient> dy(node.outputs.size());
    bool any = false;
    for (size_t o = 0; o < dy.size(); ++o) {
      DTG_ASSIGN(dy[o], sum(graph_.value(id, static_cast<uint32_t>(o))));
      any |= dy[o].any();
    }
    if (!any || node.inputs.empty() || !node.op->is_differentiable()) return {};
    std::vector<bool> wanted;
    for (Value input : node.inputs) wanted.push_back(reaches_x(input));
    if (std::ranges::find(wanted, true) == wanted.end()) return {};
    if (!node.op->grad_fn()) {
      return unimplemented("gradients: %s (node \"%.*s\") lies on the path but has no gradient function", node.op->name().c_str(),
                           int(node.name.size()), node.name.data());
    }
    differentiated_[id] = true;
    const Gradient& arrived = *std::ranges::find_if(dy, &Gradient::any);
    DTG_ASSIGN(const NodeId seen, again_.of(id, arrived.is_rows() ? arrived.values : arrived.dense));
    std::vector<Gradient> dx(node.inputs.size());
    GradContext context(build_, graph_.node(seen), dy, dx, call_, wanted, shared_);
    graph_.push_name_scope("gradients/" + std::string(node.name));
    graph_.push_colocation(id);
    Status status = node.op->grad_fn()(context);
    const Status popped = graph_.pop_colocation();
    const Status closed = graph_.pop_name_scope();
    if (status.ok()) status = build_.status();
    if (status.ok()) status = popped.ok() ? closed : popped;
    if (!status.ok()) return status.with_context("gradient of " + node.op->name()).at_node(node.name);
    for (size_t i = 0; i < dx.size(); ++i) {
      if (dx[i].any()) arrived_at(node.inputs[i]).push_back(dx[i]);
    }
    return {};
  }

  bool reaches_x(Value input) const { return between_[input.node()] || std::ranges::find(xs_, input) != xs_.end(); }

  Graph& graph_;
  Build build_;
  std::span<const Value> ys_, xs_, grad_ys_;
  const bool inner_;
  Again again_;
  const std::string call_;  // nodes are only ever added, and a pass that adds none needs no name
  GradContext::Shared shared_;
  NodeId last_ = 0;
  std::vector<bool> between_;
  std::vector<bool> extends_;         // a node that is between
  std::vector<bool> differentiated_;  // by node
  FlatMap<uint32_t> numbers_;         // value -> index of what arrived
  std::vector<Arrived> arrived_;
};

}  // namespace

Result<std::vector<Gradient>> add_gradients(Graph& graph, std::span<const Value> ys, std::span<const Value> xs,
                                            std::span<const Value> grad_ys) {
  return Backward(graph, ys, xs, grad_ys).run();
}

Result<std::vector<Gradient>> add_inner_gradients(Graph& graph, std::span<const Value> ys, std::span<const Value> xs,
                                                  std::span<const Value> grad_ys) {
  return Backward(graph, ys, xs, grad_ys, /*inner=*/true).run();
}

}  // namespace dtg
