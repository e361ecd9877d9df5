// Taking functions apart. The function is copied into a graph of work, gradients are added there by the ordinary rules, and then nodes are
// sorted: what the results need goes forward, what needs an incoming gradient goes backward, and what crosses from one to the other is
// saved, but for constants and arguments that are at hand anyway. See derivative.h.
#include "ops/derivative.h"

#include <algorithm>
#include <functional>
#include <map>

#include "graph/gradient.h"
#include "ops/control.h"

namespace dtg::ops {
namespace {

constexpr int64_t kConstantBytes = 1024;

bool is_number(const ValueInfo& info) { return dtype_is_floating(info.dtype) || info.dtype == DType::variant; }

}  // namespace

bool has_gradient(const Function& function, size_t argument) {
  const ValueInfo& info = function.argument_info(argument);
  if (info.dtype != DType::resource) return is_number(info);
  const uint32_t reads = access_bit(Access::read) | access_bit(Access::peek);
  const uint32_t others = access_bit(Access::produce) | access_bit(Access::fence) | access_bit(Access::consume) | access_bit(Access::close);
  return dtype_is_floating(info.held) && (function.accesses(argument) & reads) != 0 && (function.accesses(argument) & others) == 0;
}

ValueInfo gradient_info(const ValueInfo& of) { return of.dtype == DType::resource ? ValueInfo{of.held, DType::invalid, of.shape} : of; }

Value zeros_for(Build& b, Value value) {
  if (!b.ok()) return {};
  const ValueInfo info = b.info(value);
  if (info.dtype == DType::variant) return b.zeros_like(value);
  const ValueInfo gradient = gradient_info(info);
  const Value zero = b.scalar(gradient.dtype, 0);
  if (gradient.shape.complete()) return b.op("Fill", {b.ints(gradient.shape.dims()), zero});
  if (info.dtype == DType::resource) return b.op("Fill", {b.op("VariableShape", {value}), zero});
  return b.op("Fill", {b.shape(value), zero});
}

namespace {

// But for those that something stands in for.
Status copy_all(NodeCopier& copier, const Function& function, std::span<const NodeId> nodes) {
  for (NodeId id : nodes) {
    if (!copier.has(function.graph().value(id))) DTG_TRY(copier.copy(id));
  }
  return {};
}

Result<std::vector<Value>> copies_of(const NodeCopier& copier, std::span<const Value> values) {
  std::vector<Value> copies;
  for (Value value : values) {
    DTG_ASSIGN(const Value there, copier[value]);
    copies.push_back(there);
  }
  return copies;
}

}  // namespace

Result<std::vector<Value>> inline_function(const Function& function, Graph& into, std::span<const Value> arguments,
                                           std::vector<NodeId>* controls) {
  NodeCopier copier(function.graph(), into);
  for (size_t i = 0; i < arguments.size(); ++i) copier.stand_in(function.arguments()[i], arguments[i]);
  DTG_TRY(copy_all(copier, function, function.needed()));
  DTG_ASSIGN(std::vector<Value> results, copies_of(copier, function.results()));
  if (controls) *controls = copier.copied(function.targets());
  return results;
}

Slice slice_of(const Function& function, std::span<const size_t> results) {
  const Graph& graph = function.graph();
  std::vector<bool> taken(graph.node_count());
  for (size_t r : results) taken[function.results()[r].node()] = true;
  Slice slice;
  // A node's inputs were made before it.
  const std::span<const NodeId> needed = function.needed();
  for (size_t n = needed.size(); n-- > 0;) {
    const NodeId id = needed[n];
    if (!taken[id]) continue;
    slice.nodes.push_back(id);
    for (Value input : graph.node(id).inputs) taken[input.node()] = true;
  }
  std::reverse(slice.nodes.begin(), slice.nodes.end());
  for (Value argument : function.arguments()) slice.arguments.push_back(taken[argument.node()]);
  return slice;
}

Result<std::vector<Value>> inline_slice(const Function& function, const Slice& slice, std::span<const size_t> results, Graph& into,
                                        std::span<const Value> arguments) {
  NodeCopier copier(function.graph(), into);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (slice.arguments[i]) copier.stand_in(function.arguments()[i], arguments[i]);
  }
  DTG_TRY(copy_all(copier, function, slice.nodes));
  std::vector<Value> wanted;
  for (size_t r : results) wanted.push_back(function.results()[r]);
  return copies_of(copier, wanted);
}

namespace {

class Taking {
 public:
  Taking(const Function& function, Reuse reuse) : function_(function), reuse_(reuse), made_(make_ref<Derivative>()) {}

  Result<Ref<const Derivative>> run() {
    DTG_ASSIGN(work_, Graph::create(&function_.graph().ops()));
    DTG_TRY(differentiate());
    sort();
    DTG_TRY(make_backward());
    DTG_TRY(make_forward());
    return Ref<const Derivative>(std::move(made_));
  }

 private:
  bool result_has_gradient(size_t r) const {
    if (function_.result_info(r).dtype != DType::resource) return is_number(function_.result_info(r));
    return std::ranges::any_of(function_.returned_arguments(r), [&](uint32_t argument) { return has_gradient(function_, argument); });
  }

  Status differentiate() {
    Graph& work = *work_;
    for (size_t i = 0; i < function_.arguments().size(); ++i) {
      DTG_ASSIGN(const Value argument, work.add_argument(function_.argument_info(i)));
      arguments_.push_back(argument);
    }
    NodeCopier copier(function_.graph(), work);
    for (size_t i = 0; i < arguments_.size(); ++i) copier.stand_in(function_.arguments()[i], arguments_[i]);
    for (NodeId id : function_.needed()) {
      if (!copier.has(function_.graph().value(id))) DTG_TRY(copier.copy(id));
    }
    for (Value result : function_.results()) {
      DTG_ASSIGN(const Value here, copier[result]);
      results_.push_back(here);
    }
    boundary_ = work.node_count();
    targets_ = copier.copied(function_.targets());
    std::vector<Value> ys, xs;
    for (size_t r = 0; r < results_.size(); ++r) {
      if (!result_has_gradient(r)) continue;
      const bool loop = reuse_ == Reuse::loop;
      const ValueInfo info = gradient_info(loop ? function_.argument_info(r) : function_.result_info(r));
      DTG_ASSIGN(const Value dy, work.add_argument(info));
      made_->dy.push_back(r);
      ys.push_back(results_[r]);
      incoming_.push_back(dy);
    }
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (!has_gradient(function_, i)) continue;
      made_->dx.push_back(i);
      xs.push_back(arguments_[i]);
    }
    DTG_ASSIGN(const std::vector<Gradient> gradients, add_inner_gradients(work, ys, xs, incoming_));
    Build b(work);
    for (size_t k = 0; k < xs.size(); ++k) {
      outgoing_.push_back(gradients[k].any() ? densify(b, gradients[k]) : zeros_for(b, xs[k]));
    }
    return b.status();
  }

  // What does more than a node of the function belongs there, and so do shapes and the like: they are smaller than what they are the shapes
  // of.
  void sort() {
    const uint32_t count = work_->node_count();
    forward_.assign(count, false);
    std::vector<bool> waits(count);
    for (Value dy : incoming_) waits[dy.node()] = true;
    for (NodeId id = 0; id < count; ++id) {
      const Node& node = work_->node(id);
      forward_[id] = id < boundary_;
      for (Value input : node.inputs) waits[id] = waits[id] || waits[input.node()];
      if (forward_[id] || waits[id]) continue;
      const bool small = !node.outputs.empty() && std::ranges::all_of(node.outputs, [](const ValueInfo& output) {
        return output.dtype == DType::i32 || output.dtype == DType::i64;
      });
      const AttrValue* const extends = node.find_attr(Graph::kExtendsAttr);
      if (small || (extends && *extends->get<int64_t>() >= 0)) take_forward(id);
    }
  }

  void take_forward(NodeId id) {
    std::vector<NodeId> stack = {id};
    while (!stack.empty()) {
      const NodeId next = stack.back();
      stack.pop_back();
      if (forward_[next]) continue;
      forward_[next] = true;
      for (Value input : work_->node(next).inputs) stack.push_back(input.node());
    }
  }

  bool is_direct(size_t argument) const {
    if (reuse_ == Reuse::call) return true;
    return argument < function_.results().size() && function_.returned_argument(argument) == static_cast<int>(argument);
  }

  // What the way back needs, in order.
  std::vector<NodeId> backward_nodes() const {
    std::vector<bool> marked(work_->node_count());
    std::vector<NodeId> stack, found;
    for (Value value : outgoing_) stack.push_back(value.node());
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (marked[id] || forward_[id]) continue;
      marked[id] = true;
      for (Value input : work_->node(id).inputs) stack.push_back(input.node());
    }
    for (NodeId id = 0; id < marked.size(); ++id) {
      if (marked[id]) found.push_back(id);
    }
    return found;
  }

  Status make_backward() {
    const std::vector<NodeId> nodes = backward_nodes();
    DTG_ASSIGN(const Ref<Graph> graph, Graph::create(&work_->ops()));
    NodeCopier copier(*work_, *graph);
    Function::Parts parts;
    parts.name = "gradient of " + function_.name();
    parts.graph = graph;
    for (Value dy : incoming_) {
      DTG_ASSIGN(const Value there, graph->add_argument(work_->info(dy)));
      copier.stand_in(dy, there);
      parts.arguments.push_back(there);
    }
    std::vector<Value> direct, saved;
    const std::function<Status(Value)> bring = [&](Value value) -> Status {
      if (!forward_[value.node()] || copier.has(value)) return {};
      const Node& from = work_->node(value.node());
      if (work_->info(value).dtype == DType::resource && from.op->role() != Role::argument) {
        return bring_handle(value, copier, *graph, bring);
      }
      const Tensor known = work_->constant_value(value);
      if (from.op->role() == Role::constant) return copier.copy(from.id);
      if (known.valid() && known.bytes() <= kConstantBytes) {
        Build b(*graph);
        copier.stand_in(value, b.constant(known));
        return b.status();
      }
      DTG_ASSIGN(const Value there, graph->add_argument(work_->info(value)));
      copier.stand_in(value, there);
      (note_saved(value) ? saved : direct).push_back(there);
      return {};
    };
    for (NodeId id : nodes) {
      if (is_callers_gradients(work_->node(id))) continue;
      for (Value input : work_->node(id).inputs) DTG_TRY(bring(input));
    }
    for (Value value : outgoing_) DTG_TRY(bring(value));
    parts.arguments.insert(parts.arguments.end(), direct.begin(), direct.end());
    parts.arguments.insert(parts.arguments.end(), saved.begin(), saved.end());
    for (NodeId id : nodes) {
      if (is_callers_gradients(work_->node(id))) DTG_TRY(take_array(work_->node(id), copier, parts));
      else if (!copier.has(work_->value(id))) DTG_TRY(copier.copy(id));
    }
    for (Value value : outgoing_) {
      DTG_ASSIGN(const Value there, copier[value]);
      parts.results.push_back(there);
    }
    DTG_ASSIGN(made_->backward, Function::make(std::move(parts)));
    made_->saved = saved_.size();
    return {};
  }

  // False: the way back takes it as the argument that it is.
  bool note_saved(Value value) {
    const auto number = static_cast<size_t>(std::ranges::find(arguments_, value) - arguments_.begin());
    const bool saves = number == arguments_.size() || !is_direct(number);
    if (saves) saved_.push_back(value);
    else made_->direct.push_back(number);
    return saves;
  }

  // A handle that the function was given, through whatever hands it on or chooses it: that is done again on the way back, as no list keeps
  // handles.
  Status bring_handle(Value handle, NodeCopier& copier, Graph& graph, const std::function<Status(Value)>& bring) {
    std::map<uint64_t, std::vector<Value>> sources;  // by id of the value: what it is, for each function that may have given it
    std::vector<Value> stack = {handle};
    while (!stack.empty()) {
      const Value value = stack.back();
      stack.pop_back();
      const Node& node = work_->node(value.node());
      if (copier.has(value) || sources.contains(value.id)) continue;
      if (node.op->role() == Role::argument) {
        DTG_TRY(bring(value));
        continue;
      }
      std::vector<Value> from;
      // What looks into a resource gives what belongs to it, and not the same one.
      if (node.op->access_of(0) == Access::undeclared) {
        DTG_ASSIGN(from, handed_on(node, value.output()));
      }
      if (calls_functions(node)) {
        for (Value chooser : chooser_of(node)) DTG_TRY(bring(chooser));
      }
      if (from.empty()) {
        return unimplemented("\"%s\" (%s): the gradient needs this resource, which the function makes; make it outside and use its handle",
                             std::string(node.name).c_str(), node.op->name().c_str());
      }
      stack.insert(stack.end(), from.begin(), from.end());
      sources.emplace(value.id, std::move(from));
    }
    Build b(graph);
    // Whatever a value is was made before it.
    for (const auto& [id, from] : sources) {
      DTG_ASSIGN(const std::vector<Value> each, copies_of(copier, from));
      Value same = each[0];
      if (std::ranges::any_of(each, [&](Value one) { return !(one == same); })) {
        const Node& call = work_->node(Value{id}.node());
        DTG_ASSIGN(const std::vector<Value> chooser, copies_of(copier, chooser_of(call)));
        std::vector<std::vector<Value>> results;
        for (Value one : each) results.push_back({one});
        DTG_ASSIGN(same, choose_alike(b, call, chooser, results));
      }
      copier.stand_in(Value{id}, same);
    }
    return b.status();
  }

  // The array of an argument's gradients is one more argument, as only callers know whose gradients they are.
  Status take_array(const Node& node, NodeCopier& copier, Function::Parts& parts) {
    DTG_ASSIGN(NamedArray from, named_array(*work_, node.inputs[0]));
    const auto number = static_cast<size_t>(std::ranges::find(arguments_, from.maker) - arguments_.begin());
    if (number == arguments_.size() || !is_direct(number)) {
      return unimplemented("%s: gradients through an array need the same array in each call", node.op->name().c_str());
    }
    Derivative::Array array = {number, std::move(from.steps)};
    const auto known = std::ranges::find(made_->arrays, array);
    const auto at = static_cast<size_t>(known - made_->arrays.begin());
    if (known == made_->arrays.end()) {
      DTG_ASSIGN(const Value there, parts.graph->add_argument(node.outputs[0]));
      parts.arguments.push_back(there);
      made_->arrays.push_back(std::move(array));
      gradient_arrays_.push_back(there);
    }
    copier.stand_in(work_->value(node.id, 0), gradient_arrays_[at]);
    // Of the way there it needs no flow: all of that is over.
    const bool follows = !forward_[node.inputs[1].node()];
    Build b(*parts.graph);
    Value flow;
    if (follows) {
      DTG_ASSIGN(flow, copier[node.inputs[1]]);
    } else {
      flow = b.scalar(DType::f32, 0);
    }
    copier.stand_in(work_->value(node.id, 1), flow);
    return b.status();
  }

  Status make_forward() {
    DTG_ASSIGN(Ref<Graph> graph, Graph::create(&work_->ops()));
    NodeCopier copier(*work_, *graph);
    Function::Parts parts;
    parts.name = function_.name();
    for (Value argument : arguments_) {
      DTG_ASSIGN(const Value there, graph->add_argument(work_->info(argument)));
      copier.stand_in(argument, there);
      parts.arguments.push_back(there);
    }
    for (NodeId id = 0; id < forward_.size(); ++id) {
      if (forward_[id] && !copier.has(work_->value(id))) DTG_TRY(copier.copy(id));
    }
    for (const std::vector<Value>* list : {&results_, &saved_}) {
      for (Value value : *list) {
        DTG_ASSIGN(const Value there, copier[value]);
        parts.results.push_back(there);
      }
    }
    parts.controls = copier.copied(targets_);
    parts.graph = std::move(graph);
    DTG_ASSIGN(made_->forward, Function::make(std::move(parts)));
    return {};
  }

  const Function& function_;
  const Reuse reuse_;
  Ref<Derivative> made_;
  Ref<Graph> work_;
  NodeId boundary_ = 0;  // of the function's own nodes
  std::vector<Value> arguments_, results_, incoming_, outgoing_, saved_;
  std::vector<Value> gradient_arrays_;  // of the way back
  std::vector<bool> forward_;
  std::vector<NodeId> targets_;  // what runs in each call
};

}  // namespace

Result<Ref<const Derivative>> derivative_of(const Function& function, Reuse reuse) {
  const int key = static_cast<int>(reuse);
  if (Ref<const RefCounted> known = function.memo().find(key)) {
    return Ref<const Derivative>::share(static_cast<const Derivative*>(known.get()));
  }
  auto made = Taking(function, reuse).run();
  if (!made.ok()) return made.status().with_context("differentiate function \"" + function.name() + "\"");
  const Ref<const RefCounted> kept = function.memo().keep(key, made.value());
  return Ref<const Derivative>::share(static_cast<const Derivative*>(kept.get()));
}

}  // namespace dtg::ops
