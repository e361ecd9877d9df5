// Gradients of the ops that call functions. The way back needs values of the way there, and nodes never change: so a second node is made
// that does what the first does and gives those values as well, and says whose extension it is; a plan that needs both runs only that one
// (Graph::extension_of). A function's derivative is made once, so there is never a third.
//
// A call gives what it saves in lists of one, for a branch that is not taken has nothing to give; a loop gives lists of what each round
// saved, last on top, and a count of rounds. The way back of a loop is a loop over the count that takes them off again.
#include <algorithm>
#include <optional>

#include "ops/control.h"
#include "ops/control_kernels.h"
#include "ops/derivative.h"
#include "ops/making.h"
#include "ops/tensor_array.h"

namespace dtg::ops {
namespace {

using DerivativeRef = Ref<const Derivative>;

// The shape of elements as TensorList ops take it: -1 where nothing is known.
Value element_shape(Build& b, const ValueInfo& info) {
  if (is_holder(info.dtype) || !info.shape.has_rank()) return b.integer(-1);
  return b.ints(info.shape.dims());
}

Value empty_list(Build& b, const ValueInfo& element) {
  return b.op("EmptyTensorList", {element_shape(b, element), b.integer(-1)}, {{"element_dtype", AttrValue(element.dtype)}});
}

// What is known of a list of such elements.
ValueInfo list_info(const ValueInfo& element) {
  return {DType::variant, element.dtype, is_holder(element.dtype) ? PartialShape::unknown() : element.shape};
}

std::vector<ValueInfo> argument_infos(const Function& function) {
  std::vector<ValueInfo> infos;
  for (size_t i = 0; i < function.arguments().size(); ++i) infos.push_back(function.argument_info(i));
  return infos;
}

// The node that does what this one does and gives more; `functions` are its attributes. What it takes beyond is made by `more`, which
// control scopes of whoever asks for a gradient must not hold up.
template <class More>
Result<NodeId> extend(GradContext& c, std::vector<Attr> functions, More&& more) {
  Graph& graph = c.b().graph();
  const Node& node = c.node();
  if (const NodeId have = graph.extension_of(node.id); have != kNoNode) {
    for (const Attr& attr : functions) {
      const AttrValue* const other = graph.node(have).find_attr(attr.name);
      if (attr.value.kind() == AttrKind::list_type || (other && same_value(*other, attr.value))) continue;
      return unimplemented("\"%s\" has an extension that was not made here (the graph was read from bytes that hold gradients): make the "
                           "gradients before the graph is written, or import the graph without them",
                           std::string(node.name).c_str());
    }
    return have;
  }
  graph.push_no_controls();
  std::vector<Value> inputs(node.inputs.begin(), node.inputs.end());
  more(inputs);
  functions.push_back({Graph::kExtendsAttr, AttrValue(int64_t{node.id})});
  const NodeId made = c.b().node(node.op->name(), inputs, functions, {}, node.controls);
  DTG_TRY(graph.pop_controls());
  DTG_TRY(c.b().status());
  return made;
}

// The array of gradients that a way back takes, of an array that the call was given.
Result<Value> gradients_for(GradContext& c, Value array, const Derivative::Array& wanted) {
  const Value handle = follow_steps(c.b(), array, wanted.steps);
  DTG_TRY(c.b().status());
  DTG_ASSIGN(const ArrayGradients found, gradients_of_array(c, handle, c.b().scalar(DType::f32, 0)));
  return found.handle;
}

// --- If, Case, PartitionedCall ---

// Each function's values of the way there in the lists `slots`: as many as the branch that saves most.
class CallGradient {
 public:
  CallGradient(GradContext& c, std::vector<const Function*> branches) : c_(c), branches_(std::move(branches)) {}

  Status run() {
    first_ = static_cast<size_t>(first_argument(c_.node()));
    for (const Function* function : branches_) {
      DTG_ASSIGN(DerivativeRef derivative, derivative_of(*function, Reuse::call));
      slots_ = std::max(slots_, derivative->saved);
      derivatives_.push_back(std::move(derivative));
    }
    // A value that is no number in one branch is none in the others; of a variable any of them may read it.
    for (size_t r = 0; r < c_.node().outputs.size(); ++r) {
      if (any_of(&Derivative::dy, r)) dy_.push_back(r);
    }
    for (size_t i = 0; i < branches_[0]->arguments().size(); ++i) {
      if (any_of(&Derivative::dx, i) && c_.wants(static_cast<int>(first_ + i))) dx_.push_back(i);
    }
    for (const DerivativeRef& derivative : derivatives_) {
      for (const Derivative::Array& array : derivative->arrays) {
        if (std::ranges::find(arrays_, array) == arrays_.end()) arrays_.push_back(array);
      }
    }
    DTG_TRY(pass_on());
    if (dx_.empty()) return give({});
    for (size_t i = 0; i < branches_[0]->arguments().size(); ++i) {
      if (any_of(&Derivative::direct, i) || needs_zeros(i)) direct_.push_back(i);
    }
    return build();
  }

 private:
  // What arrives at a variable that a function only hands on, and does not read, is its argument's.
  Status pass_on() {
    for (size_t r = 0; r < c_.node().outputs.size(); ++r) {
      if (c_.output_info(static_cast<int>(r)).dtype != DType::resource || !c_.has_dy(static_cast<int>(r))) continue;
      std::vector<std::optional<size_t>> to(branches_.size());  // by function; none: its way back takes it
      std::vector<size_t> arguments;
      for (size_t k = 0; k < branches_.size(); ++k) {
        if (std::ranges::find(derivatives_[k]->dy, r) != derivatives_[k]->dy.end()) continue;
        const int argument = branches_[k]->returned_argument(r);
        if (argument < 0) {
          return unimplemented("%s: function \"%s\" gives one variable or another, and the gradient needs to know which: read it in the "
                               "function",
                               c_.node().op->name().c_str(), branches_[k]->name().c_str());
        }
        to[k] = static_cast<size_t>(argument);
        if (std::ranges::find(arguments, *to[k]) == arguments.end()) arguments.push_back(*to[k]);
      }
      DTG_TRY(pass_on(c_.dy(static_cast<int>(r)), to, arguments));
    }
    return {};
  }

  Status pass_on(Value dy, const std::vector<std::optional<size_t>>& to, const std::vector<size_t>& arguments) {
    if (arguments.empty()) return {};
    if (std::ranges::all_of(to, [&](const auto& one) { return one == to[0]; })) {
      passed_.emplace_back(arguments[0], dy);
      return {};
    }
    std::vector<std::vector<Value>> results;
    for (const std::optional<size_t>& one : to) {
      std::vector<Value>& list = results.emplace_back();
      for (size_t a : arguments) list.push_back(one == a ? dy : zeros_for(c_.b(), c_.input(static_cast<int>(first_ + a))));
    }
    DTG_TRY(c_.b().status());
    DTG_ASSIGN(const Value chosen, choose_alike(c_.b(), c_.node(), chooser_of(c_.node()), results));
    for (size_t k = 0; k < arguments.size(); ++k) passed_.emplace_back(arguments[k], chosen.sibling(static_cast<uint32_t>(k)));
    return {};
  }

  // The gradients of arguments `dx_`, and what is passed on.
  Status give(std::span<const Value> dx) {
    for (size_t i = 0; i < branches_[0]->arguments().size(); ++i) {
      std::vector<Value> parts;
      const auto at = std::ranges::find(dx_, i);
      if (at != dx_.end()) parts.push_back(dx[static_cast<size_t>(at - dx_.begin())]);
      for (const auto& [argument, value] : passed_) {
        if (argument == i) parts.push_back(value);
      }
      if (!parts.empty()) c_.dx(static_cast<int>(first_ + i), parts.size() == 1 ? parts[0] : c_.b().op("AddN", parts));
    }
    return c_.b().status();
  }

  bool any_of(std::vector<size_t> Derivative::*list, size_t number) const {
    return std::ranges::any_of(derivatives_,
                               [&](const DerivativeRef& d) { return std::ranges::find((*d).*list, number) != ((*d).*list).end(); });
  }

  // Zeros like an argument stand for the gradient that one of the branches has not got.
  bool needs_zeros(size_t argument) const {
    return std::ranges::find(dx_, argument) != dx_.end() &&
           std::ranges::any_of(derivatives_, [&](const DerivativeRef& d) { return std::ranges::find(d->dx, argument) == d->dx.end(); });
  }

  Status build() {
    Build& b = c_.b();
    Graph& graph = b.graph();
    const Node& node = c_.node();
    NodeId source = node.id;
    if (slots_ > 0) {
      std::vector<FunctionRef> forward;
      for (size_t k = 0; k < branches_.size(); ++k) {
        DTG_ASSIGN(FunctionRef one, forward_of(k));
        forward.push_back(std::move(one));
      }
      std::vector<DType> types;
      for (const ValueInfo& output : node.outputs) types.push_back(output.dtype);
      types.resize(types.size() + slots_, DType::variant);
      std::vector<Attr> attrs = function_attrs(node, forward);
      attrs.push_back({"Tout", AttrValue(types)});
      DTG_ASSIGN(source, extend(c_, std::move(attrs), [](std::vector<Value>&) {}));
    }
    std::vector<FunctionRef> backward;
    for (size_t k = 0; k < branches_.size(); ++k) {
      DTG_ASSIGN(FunctionRef one, backward_of(k, graph.node(source)));
      backward.push_back(std::move(one));
    }
    std::vector<Value> inputs(node.inputs.begin(), node.inputs.begin() + static_cast<std::ptrdiff_t>(first_));
    for (size_t r : dy_)
      inputs.push_back(c_.has_dy(static_cast<int>(r)) ? c_.dy(static_cast<int>(r)) : zeros_for(b, c_.output(static_cast<int>(r))));
    for (size_t i : direct_) inputs.push_back(node.inputs[first_ + i]);
    for (size_t s = 0; s < slots_; ++s) inputs.push_back(graph.value(source, static_cast<uint32_t>(node.outputs.size() + s)));
    for (const Derivative::Array& each : arrays_) {
      DTG_ASSIGN(const Value handle, gradients_for(c_, node.inputs[first_ + each.argument], each));
      inputs.push_back(handle);
    }
    std::vector<DType> types;
    for (size_t i : dx_) types.push_back(gradient_info(branches_[0]->argument_info(i)).dtype);
    std::vector<Attr> attrs = function_attrs(node, backward);
    attrs.push_back({"Tout", AttrValue(types)});
    const Value results = b.op(node.op->name(), inputs, attrs);
    DTG_TRY(b.status());
    std::vector<Value> dx;
    for (size_t k = 0; k < dx_.size(); ++k) dx.push_back(results.sibling(static_cast<uint32_t>(k)));
    return give(dx);
  }

  // What a way back that takes it knows of it.
  const ValueInfo& array_info(const Derivative::Array& array) const {
    for (const DerivativeRef& d : derivatives_) {
      const auto at = std::ranges::find(d->arrays, array);
      if (at != d->arrays.end()) return d->array_info(static_cast<size_t>(at - d->arrays.begin()));
    }
    return branches_[0]->argument_info(array.argument);
  }

  // Kept, so that the extension that is there is known again.
  struct Kept final : RefCounted {
    FunctionRef function;
    size_t slots = 0;
  };

  Result<FunctionRef> forward_of(size_t k) {
    const Derivative& derivative = *derivatives_[k];
    const Function& forward = *derivative.forward;
    const int key = 100 + static_cast<int>(slots_);
    if (Ref<const RefCounted> known = forward.memo().find(key)) return static_cast<const Kept&>(*known).function;
    Making made(forward.name());
    DTG_TRY(made.begin(forward.graph().ops()));
    DTG_ASSIGN(const std::vector<Value> arguments, made.arguments(argument_infos(forward)));
    DTG_ASSIGN(std::vector<Value> results, inline_function(forward, made.graph(), arguments, &made.parts.controls));
    const size_t own = results.size() - derivative.saved;
    Build b(made.graph());
    for (size_t s = 0; s < slots_; ++s) {
      const bool used = s < derivative.saved;
      const Value list = empty_list(b, used ? b.info(results[own + s]) : ValueInfo{DType::f32, DType::invalid, {}});
      if (used) results[own + s] = b.op("TensorListPushBack", {list, results[own + s]});
      else results.push_back(list);
    }
    DTG_TRY(b.status());
    made.give(results);
    auto kept = make_ref<Kept>();
    DTG_ASSIGN(kept->function, made.end());
    return static_cast<const Kept&>(*forward.memo().keep(key, kept)).function;
  }

  Result<FunctionRef> backward_of(size_t k, const Node& source) {
    const Derivative& derivative = *derivatives_[k];
    Making made(derivative.backward->name());
    DTG_TRY(made.begin(derivative.backward->graph().ops()));
    std::vector<Value> incoming, direct;
    for (size_t r : dy_) {
      DTG_ASSIGN(const Value dy, made.argument(gradient_info(c_.node().outputs[r])));
      incoming.push_back(dy);
    }
    std::vector<Value> arguments(branches_[k]->arguments().size());
    for (size_t i : direct_) {
      DTG_ASSIGN(arguments[i], made.argument(branches_[k]->argument_info(i)));
    }
    std::vector<Value> slots;
    for (size_t s = 0; s < slots_; ++s) {
      DTG_ASSIGN(const Value slot, made.argument(source.outputs[c_.node().outputs.size() + s]));
      slots.push_back(slot);
    }
    std::vector<Value> arrays;
    for (const Derivative::Array& each : arrays_) {
      DTG_ASSIGN(const Value array, made.argument(array_info(each)));
      arrays.push_back(array);
    }
    Build b(made.graph());
    std::vector<Value> given;
    for (size_t r : derivative.dy) given.push_back(incoming[static_cast<size_t>(std::ranges::find(dy_, r) - dy_.begin())]);
    for (size_t i : derivative.direct) given.push_back(arguments[i]);
    for (size_t s = 0; s < derivative.saved; ++s) {
      const ValueInfo& info = derivative.backward->argument_info(given.size());
      given.push_back(
          b.op("TensorListGetItem", {slots[s], b.integer(0), element_shape(b, info)}, {{"element_dtype", AttrValue(info.dtype)}}));
    }
    for (const Derivative::Array& each : derivative.arrays) {
      given.push_back(arrays[static_cast<size_t>(std::ranges::find(arrays_, each) - arrays_.begin())]);
    }
    DTG_TRY(b.status());
    DTG_ASSIGN(const std::vector<Value> results, inline_function(*derivative.backward, made.graph(), given));
    for (size_t i : dx_) {
      const auto at = std::ranges::find(derivative.dx, i);
      made.parts.results.push_back(at != derivative.dx.end() ? results[static_cast<size_t>(at - derivative.dx.begin())]
                                                             : zeros_for(b, arguments[i]));
    }
    DTG_TRY(b.status());
    return made.end();
  }

  GradContext& c_;
  const std::vector<const Function*> branches_;
  std::vector<DerivativeRef> derivatives_;
  size_t first_ = 0, slots_ = 0;
  std::vector<size_t> dy_, dx_;
  std::vector<size_t> direct_;                    // arguments that the way back takes as they are
  std::vector<Derivative::Array> arrays_;         // those whose gradients the way back takes
  std::vector<std::pair<size_t, Value>> passed_;  // gradients of arguments that the functions hand on
};

// --- While ---

class LoopGradient {
 public:
  LoopGradient(GradContext& c, const Function& condition, const Function& body) : c_(c), condition_(condition), body_(body) {}

  Status run() {
    DTG_ASSIGN(derivative_, derivative_of(body_, Reuse::loop));
    // What arrives at a variable that no round reads is that of what came in.
    for (size_t i = 0; i < body_.arguments().size(); ++i) {
      const int o = static_cast<int>(i);
      if (c_.output_info(o).dtype != DType::resource || !c_.has_dy(o)) continue;
      if (std::ranges::find(derivative_->dy, i) == derivative_->dy.end()) c_.dx(o, c_.dy(o));
    }
    if (derivative_->dx.empty()) return {};
    for (size_t s = 0; s < derivative_->saved; ++s) {
      saved_.push_back(derivative_->forward->result_info(body_.results().size() + s));
    }
    DTG_ASSIGN(const NodeId forward, extended());
    return way_back(forward);
  }

 private:
  static constexpr int kFirstKey = 1000;
  struct Kept final : RefCounted {
    Ref<const Function> beside;  // the condition that it is for
    FunctionRef condition, body;
  };

  // The loop that also counts its rounds and keeps what each saves.
  Result<NodeId> extended() {
    DTG_ASSIGN(const Ref<const Kept> functions, forward_functions());
    std::vector<Attr> attrs = {{"cond", AttrValue(functions->condition)}, {"body", AttrValue(functions->body)}};
    return extend(c_, std::move(attrs), [&](std::vector<Value>& inputs) {
      inputs.push_back(c_.b().integer(0));
      for (const ValueInfo& info : saved_) inputs.push_back(empty_list(c_.b(), info));
    });
  }

  Result<Ref<const Kept>> forward_functions() {
    const Function& forward = *derivative_->forward;
    // The same body may stand beside several conditions.
    int key = kFirstKey;
    for (; Ref<const RefCounted> known = forward.memo().find(key); ++key) {
      const auto* const kept = static_cast<const Kept*>(known.get());
      if (kept->beside.get() == &condition_) return Ref<const Kept>::share(kept);
    }
    auto kept = make_ref<Kept>();
    kept->beside = Ref<const Function>::share(&condition_);
    std::vector<ValueInfo> infos = argument_infos(body_);
    infos.push_back({DType::i32, DType::invalid, PartialShape::scalar()});
    for (const ValueInfo& info : saved_) infos.push_back(list_info(info));
    const size_t own = body_.arguments().size();
    {
      Making made(condition_.name());
      DTG_TRY(made.begin(condition_.graph().ops()));
      DTG_ASSIGN(const std::vector<Value> arguments, made.arguments(infos));
      DTG_ASSIGN(const std::vector<Value> results,
                 inline_function(condition_, made.graph(), std::span(arguments).first(own), &made.parts.controls));
      made.give(results);
      DTG_ASSIGN(kept->condition, made.end());
    }
    Making made(body_.name());
    DTG_TRY(made.begin(body_.graph().ops()));
    DTG_ASSIGN(const std::vector<Value> arguments, made.arguments(infos));
    DTG_ASSIGN(const std::vector<Value> results,
               inline_function(forward, made.graph(), std::span(arguments).first(own), &made.parts.controls));
    Build b(made.graph());
    made.give(std::span(results).first(own));
    made.parts.results.push_back(b.add(arguments[own], b.integer(1)));
    for (size_t s = 0; s < saved_.size(); ++s) {
      made.parts.results.push_back(b.op("TensorListPushBack", {arguments[own + 1 + s], results[own + s]}));
    }
    DTG_TRY(b.status());
    DTG_ASSIGN(kept->body, made.end());
    for (;; ++key) {
      const Ref<const RefCounted> there = forward.memo().keep(key, kept);
      const auto* const now = static_cast<const Kept*>(there.get());
      if (now->beside.get() == &condition_) return Ref<const Kept>::share(now);
    }
  }

  // Gradients that nobody asked for are not carried along: those wanted, those that they are made of, and what all these take.
  Status choose() {
    const Derivative& d = *derivative_;
    for (size_t i : d.dx) {
      if (c_.wants(static_cast<int>(i))) kept_.push_back(i);
    }
    if (kept_.empty()) return {};
    for (size_t before = 0; before != kept_.size();) {
      before = kept_.size();
      results_.clear();
      for (size_t i : kept_) results_.push_back(static_cast<size_t>(std::ranges::find(d.dx, i) - d.dx.begin()));
      slice_ = slice_of(*d.backward, results_);
      for (size_t k = 0; k < d.dy.size(); ++k) {
        if (!slice_.arguments[k] || std::ranges::find(kept_, d.dy[k]) != kept_.end()) continue;
        if (std::ranges::find(d.dx, d.dy[k]) == d.dx.end())
          return internal_error("loop variable %zu has a gradient that goes nowhere", d.dy[k]);
        kept_.push_back(d.dy[k]);
      }
    }
    const size_t direct = d.dy.size(), saved = direct + d.direct.size();
    for (size_t k = 0; k < d.direct.size(); ++k) {
      if (slice_.arguments[direct + k]) direct_.push_back(k);
    }
    for (size_t s = 0; s < saved_.size(); ++s) {
      if (slice_.arguments[saved + s]) stacks_.push_back(s);
    }
    for (size_t k = 0; k < d.arrays.size(); ++k) {
      if (slice_.arguments[saved + saved_.size() + k]) arrays_.push_back(k);
    }
    return {};
  }

  Status way_back(NodeId forward) {
    Build& b = c_.b();
    Graph& graph = b.graph();
    const size_t own = body_.arguments().size();
    const Derivative& d = *derivative_;
    DTG_TRY(choose());
    if (kept_.empty()) return {};
    std::vector<Value> start = {graph.value(forward, static_cast<uint32_t>(own))};
    std::vector<ValueInfo> infos = {{DType::i32, DType::invalid, PartialShape::scalar()}};
    // A gradient for each of them comes in as well: arguments and results of a loop are the same.
    for (size_t i : kept_) {
      if (std::ranges::find(d.dy, i) == d.dy.end()) return internal_error("loop variable %zu has a gradient that comes from nowhere", i);
      const int o = static_cast<int>(i);
      start.push_back(c_.has_dy(o) ? c_.dy(o) : zeros_for(b, c_.output(o)));
      infos.push_back(gradient_info(body_.argument_info(i)));
    }
    for (size_t s : stacks_) {
      start.push_back(graph.value(forward, static_cast<uint32_t>(own + 1 + s)));
      infos.push_back(list_info(saved_[s]));
    }
    for (size_t k : direct_) {
      start.push_back(c_.input(static_cast<int>(d.direct[k])));
      infos.push_back(body_.argument_info(d.direct[k]));
    }
    for (size_t k : arrays_) {
      DTG_ASSIGN(const Value handle, gradients_for(c_, c_.input(static_cast<int>(d.arrays[k].argument)), d.arrays[k]));
      start.push_back(handle);
      infos.push_back(d.array_info(k));
    }
    DTG_TRY(b.status());
    DTG_ASSIGN(const FunctionRef condition, back_condition(infos));
    DTG_ASSIGN(const FunctionRef body, back_body(infos));
    const Attr attrs[] = {{"cond", AttrValue(condition)}, {"body", AttrValue(body)}};
    const Value results = b.op(c_.node().op->name(), start, attrs);
    DTG_TRY(b.status());
    for (size_t k = 0; k < kept_.size(); ++k) c_.dx(static_cast<int>(kept_[k]), results.sibling(static_cast<uint32_t>(1 + k)));
    return {};
  }

  Result<FunctionRef> back_condition(std::span<const ValueInfo> infos) {
    Making made("rounds left of " + body_.name());
    DTG_TRY(made.begin(body_.graph().ops()));
    DTG_ASSIGN(const std::vector<Value> arguments, made.arguments(infos));
    Build b(made.graph());
    const Value more = b.op("Greater", {arguments[0], b.integer(0)});
    DTG_TRY(b.status());
    made.give(std::span(&more, 1));
    return made.end();
  }

  Result<FunctionRef> back_body(std::span<const ValueInfo> infos) {
    const Derivative& d = *derivative_;
    Making made(d.backward->name());
    DTG_TRY(made.begin(body_.graph().ops()));
    DTG_ASSIGN(const std::vector<Value> arguments, made.arguments(infos));
    Build b(made.graph());
    const std::span<const Value> dy = std::span(arguments).subspan(1, kept_.size());
    const std::span<const Value> stacks = std::span(arguments).subspan(1 + kept_.size(), stacks_.size());
    const std::span<const Value> direct = std::span(arguments).subspan(1 + kept_.size() + stacks_.size(), direct_.size());
    const std::span<const Value> arrays = std::span(arguments).last(arrays_.size());
    std::vector<Value> given(d.backward->arguments().size()), rest;
    for (size_t k = 0; k < kept_.size(); ++k) given[static_cast<size_t>(std::ranges::find(d.dy, kept_[k]) - d.dy.begin())] = dy[k];
    for (size_t k = 0; k < direct_.size(); ++k) given[d.dy.size() + direct_[k]] = direct[k];
    for (size_t k = 0; k < arrays_.size(); ++k) given[d.dy.size() + d.direct.size() + saved_.size() + arrays_[k]] = arrays[k];
    for (size_t k = 0; k < stacks_.size(); ++k) {
      const ValueInfo& info = saved_[stacks_[k]];
      const Value popped = b.op("TensorListPopBack", {stacks[k], element_shape(b, info)}, {{"element_dtype", AttrValue(info.dtype)}});
      rest.push_back(popped);
      given[d.dy.size() + d.direct.size() + stacks_[k]] = popped.sibling(1);
    }
    const Value left = b.sub(arguments[0], b.integer(1));
    DTG_TRY(b.status());
    DTG_ASSIGN(const std::vector<Value> results, inline_slice(*d.backward, slice_, results_, made.graph(), given));
    made.parts.results.push_back(left);
    made.give(results);
    made.give(rest);
    made.give(direct);
    made.give(arrays);
    return made.end();
  }

  GradContext& c_;
  const Function& condition_;
  const Function& body_;
  DerivativeRef derivative_;
  std::vector<ValueInfo> saved_;
  std::vector<size_t> kept_;                      // loop variables whose gradients are carried along
  std::vector<size_t> results_;                   // of the way back, theirs
  std::vector<size_t> direct_, stacks_, arrays_;  // of those that the derivative names and saves, the ones that are needed
  Slice slice_;
};

}  // namespace

Status call_grad(GradContext& c) {
  DTG_ASSIGN(std::vector<const Function*> branches, branches_of(c.node()));
  return CallGradient(c, std::move(branches)).run();
}

Status while_grad(GradContext& c) {
  DTG_ASSIGN(const Function* const condition, function_of(c.node(), "cond"));
  DTG_ASSIGN(const Function* const body, function_of(c.node(), "body"));
  return LoopGradient(c, *condition, *body).run();
}

}  // namespace dtg::ops
