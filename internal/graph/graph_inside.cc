// The graph as the body of a function: arguments, and values of the graphs around it, which become arguments too. See graph.h for threads.
#include "graph/graph.h"

#include "graph/refusal.h"

namespace dtg {
namespace {

constexpr int64_t kCopiedBytes = 1024;

}  // namespace

Result<Ref<Graph>> Graph::create_inside(Ref<Graph> outer) {
  DTG_ASSIGN(Ref<Graph> body, create(&outer->ops()));
  body->outer_tag_ = outer->tag();
  body->outer_ = std::move(outer);
  return body;
}

void Graph::close() {
  Ref<Graph> outer;  // goes without the lock
  const std::lock_guard lock(mutex_);
  closed_.store(true, std::memory_order_release);
  outer = std::move(outer_);
}

std::vector<Graph::Capture> Graph::captures() const {
  const std::lock_guard lock(mutex_);
  return captures_;
}

NodeId Graph::extension_of(NodeId node) const {
  if (!extended_.load(std::memory_order_acquire)) return kNoNode;
  const std::lock_guard lock(mutex_);
  const auto at = extensions_.find(node);
  return at == extensions_.end() ? kNoNode : at->second;
}

std::vector<Value> Graph::arguments() const {
  const std::lock_guard lock(mutex_);
  return arguments_;
}

Result<Value> Graph::add_argument(const ValueInfo& info, std::string_view name) {
  DTG_ASSIGN(const Value made, make_argument(info, name));
  const std::lock_guard lock(mutex_);
  arguments_.push_back(made);
  return made;
}

Result<Value> Graph::make_argument(const ValueInfo& info, std::string_view name) {
  const Attr attrs[] = {
      {"T", AttrValue(info.dtype)}, {"shape", AttrValue(info.shape)}, {"held", AttrValue(static_cast<int64_t>(info.held))}};
  DTG_ASSIGN(const NodeId node, add_here({.op = ops_->with_role(Role::argument)->name(), .name = name, .attrs = attrs}));
  return value(node);
}

Result<Value> Graph::capture(Value outer) {
  if (!outer.valid() || outer.tag() == tag_ || !outer_) {
    DTG_TRY(check(outer));
    return outer;
  }
  Value around = outer;
  if (outer.tag() != outer_->tag()) {
    DTG_ASSIGN(around, outer_->capture(outer));
  }
  DTG_TRY(outer_->check(around));
  {
    const std::lock_guard lock(mutex_);
    for (const Capture& capture : captures_) {
      if (capture.outer == around) return capture.argument;
    }
    if (const auto copy = copies_.find(around.id); copy != copies_.end()) return copy->second;
  }
  const Tensor known = outer_->constant_value(around);
  if (known.valid() && known.bytes() <= kCopiedBytes) {
    const Attr attrs[] = {{"value", AttrValue(known)}, {"dtype", AttrValue(known.dtype())}};
    DTG_ASSIGN(const NodeId node, add_here({.op = ops_->with_role(Role::constant)->name(), .attrs = attrs}));
    const std::lock_guard lock(mutex_);
    return copies_[around.id] = value(node);
  }
  DTG_ASSIGN(const Value argument, make_argument(outer_->info(around), {}));
  const std::lock_guard lock(mutex_);
  captures_.push_back({around, argument});
  return argument;
}

// The same node, with what stands here for values around.
Result<NodeId> Graph::add_inside(const NodeSpec& spec) {
  bool foreign = false;
  for (Value input : spec.inputs) foreign |= input.valid() && input.tag() != tag_;
  if (!foreign) return add_here(spec);
  std::vector<Value> inputs(spec.inputs.begin(), spec.inputs.end());
  for (Value& input : inputs) {
    if (!input.valid() || input.tag() == tag_) continue;
    auto captured = capture(input);
    if (!captured.ok()) {
      const std::string number = std::to_string(&input - inputs.data());
      const Status why = captured.status().with_context("input " + number + ": take a value from around the function");
      return refuse_node(name_of_refused(*this, spec), spec.location, why);
    }
    input = captured.value();
  }
  NodeSpec here = spec;
  here.inputs = inputs;
  return add_here(here);
}

}  // namespace dtg
