// Functions: checked once when they are made; what callers ask is worked out then. See function.h.
#include "graph/function.h"

#include <algorithm>

#include "base/flat_map.h"
#include "base/interrupt.h"
#include "graph/known.h"

namespace dtg {

FunctionRef::FunctionRef(Ref<const Function> function) : held_(std::move(function)) {}
const Function* FunctionRef::get() const { return static_cast<const Function*>(held_.get()); }

bool calls_functions(const Node& node) {
  bool calls = false;
  for_each_function(node, [&](const Function&) { calls = true; });
  return calls;
}

uint32_t accesses_of(const Node& node, size_t input) {
  uint32_t accesses = access_bit(node.op->access_of(input));
  for_each_function(node, [&](const Function& function) {
    const size_t count = function.arguments().size();
    const size_t first = node.inputs.size() >= count ? node.inputs.size() - count : 0;
    if (input >= first && input - first < count) accesses |= function.accesses(input - first);
  });
  return accesses;
}

Ref<const RefCounted> Function::Memo::find(int key) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [have, kept] : kept_) {
    if (have == key) return kept;
  }
  return nullptr;
}

Ref<const RefCounted> Function::Memo::keep(int key, Ref<const RefCounted> made) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [have, kept] : kept_) {
    if (have == key) return kept;
  }
  kept_.emplace_back(key, made);
  return made;
}

Result<Ref<const Function>> Function::make(Parts parts) {
  const std::string where = "function \"" + parts.name + "\"";
  Graph& graph = *parts.graph;
  for (Value& result : parts.results) {
    if (graph.outer() && result.valid() && result.tag() != graph.tag()) {
      auto captured = graph.capture(result);
      if (!captured.ok()) return captured.status().with_context(where + ", a result");
      result = captured.value();
    }
    if (Status status = graph.check(result); !status.ok()) return status.with_context(where + ", a result");
  }
  auto made = Ref<Function>::adopt(new Function(std::move(parts)));
  Status status = made->check_arguments();
  if (status.ok()) status = made->look_inside();
  if (!status.ok()) return status.with_context(where);
  graph.close();  // what is no function can be mended, or ended again with memory for it
  return Ref<const Function>(std::move(made));
}

Status Function::check_arguments() const {
  FlatMap<char> seen;
  for (Value argument : parts_.arguments) {
    DTG_TRY(graph().check(argument).with_context("an argument"));
    if (graph().node(argument.node()).op->role() != Role::argument) {
      return invalid_argument("\"%s\" is no argument: arguments are made for the purpose", graph().value_name(argument).c_str());
    }
    if (!seen.emplace(argument.id, 1).second)
      return invalid_argument("argument \"%s\" is named twice", graph().value_name(argument).c_str());
  }
  for (NodeId control : parts_.controls) DTG_TRY(graph().check_node(control));
  return {};
}

Status Function::look_inside() {
  DTG_TRY(find_effects());
  for (NodeId id : needed_) {
    const Node& node = graph().node(id);
    ++expanded_;
    stateful_ |= node.op->is_stateful();
    for_each_function(node, [&](const Function& called) {
      depth_ = std::max(depth_, called.depth() + 1);
      expanded_ = std::min(expanded_ + called.expanded_nodes(), kNodesMax + 1);
      stateful_ |= called.is_stateful();
    });
    if (node.op->role() == Role::argument && std::ranges::find(parts_.arguments, graph().value(id)) == parts_.arguments.end()) {
      return invalid_argument("it needs \"%s\", which is none of its arguments", std::string(node.name).c_str());
    }
    if (node.op->role() == Role::feed) {
      return invalid_argument("it needs the placeholder \"%s\", which nobody can feed inside a function; make it an argument",
                              std::string(node.name).c_str());
    }
    if (node.op->role() == Role::handle) {
      return unimplemented("it makes \"%s\" (%s): make what is shared between runs outside and use its handle in the function",
                           std::string(node.name).c_str(), node.op->name().c_str());
    }
  }
  if (depth_ > kDepthMax) return resource_exhausted("functions call each other %d levels deep: at most %d are possible", depth_, kDepthMax);
  if (expanded_ > kNodesMax) {
    return resource_exhausted("with all that it calls it has more than %lld nodes, which is the limit", static_cast<long long>(kNodesMax));
  }
  return {};
}

namespace {

// Is what a node gives one of its inputs, and not something that belongs to it?
bool hands_on_itself(const Node& node, size_t output) {
  bool itself = !node.op->forwards_any() || node.op->access_of(0) == Access::undeclared;
  for_each_function(node, [&](const Function& function) {
    if (output < function.results().size()) itself = itself && function.returns_itself(output);
  });
  return itself;
}

}  // namespace

// What nobody needs, and does nothing by itself, is not done: a read that was left over.
void Function::count_accesses(std::span<const Done> done) {
  accesses_.assign(parts_.arguments.size(), 0);
  for (const Done& each : done) {
    if (std::ranges::binary_search(needed_, each.node)) accesses_[each.argument] |= each.accesses;
  }
}

// Which arguments a resource may be, by the ops that hand it on; and so what is done to them.
Status Function::find_effects() {
  std::vector<Done> done;
  std::vector<Returned> sets(1);  // 0: none
  FlatMap<uint32_t> set_of;
  const auto arguments_of = [&](Value value) -> const Returned& {
    const uint32_t* const set = set_of.find(value.id);
    return sets[set ? *set : 0];
  };
  for (size_t i = 0; i < parts_.arguments.size(); ++i) {
    set_of.emplace(parts_.arguments[i].id, static_cast<uint32_t>(sets.size()));
    sets.push_back({{static_cast<uint32_t>(i)}});
  }
  const uint32_t count = graph().node_count();
  for (NodeId id = 0; id < count; ++id) {
    const Node& node = graph().node(id);
    bool acts = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (graph().info(node.inputs[i]).dtype != DType::resource) continue;
      const uint32_t accesses = accesses_of(node, i);
      acts |= (accesses & kActs) != 0;
      for (uint32_t argument : arguments_of(node.inputs[i]).arguments) done.push_back({id, argument, accesses});
    }
    if (acts) targets_.push_back(id);
    // A resource is handed on as the same one; a list may come out as another, the sum of two for one.
    for (uint32_t o = 0; o < node.outputs.size(); ++o) {
      if (node.outputs[o].dtype != DType::resource) continue;
      Returned all;
      all.itself = hands_on_itself(node, o);
      for_each_source(node, node.inputs.size(), o, [&](size_t input) {
        const Returned& from = arguments_of(node.inputs[input]);
        all.itself = all.itself && from.itself;
        for (uint32_t argument : from.arguments) {
          if (std::ranges::find(all.arguments, argument) == all.arguments.end()) all.arguments.push_back(argument);
        }
      });
      if (all.arguments.empty()) continue;
      set_of.emplace(graph().value(id, o).id, static_cast<uint32_t>(sets.size()));
      sets.push_back(std::move(all));
    }
  }
  for (NodeId control : parts_.controls) targets_.push_back(control);
  std::ranges::sort(targets_);
  targets_.erase(std::unique(targets_.begin(), targets_.end()), targets_.end());
  find_needed();
  count_accesses(done);
  for (Value result : parts_.results) {
    returned_.push_back(arguments_of(result));
    if (returned_.back().arguments.empty() && graph().info(result).dtype == DType::resource) {
      return unimplemented("result \"%s\" is a resource that is none of its arguments", graph().value_name(result).c_str());
    }
  }
  return {};
}

void Function::find_needed() {
  std::vector<bool> marked(graph().node_count());
  std::vector<NodeId> stack(targets_.begin(), targets_.end());
  for (Value result : parts_.results) stack.push_back(result.node());
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    if (marked[id]) continue;
    marked[id] = true;
    const Node& node = graph().node(id);
    for (Value input : node.inputs) stack.push_back(input.node());
    for (NodeId control : node.controls) stack.push_back(control);
  }
  for (NodeId id = 0; id < marked.size(); ++id) {
    if (marked[id]) needed_.push_back(id);
  }
}

namespace {

bool same_info(const ValueInfo& a, const ValueInfo& b) { return a.dtype == b.dtype && a.held == b.held && a.shape == b.shape; }

// Shapes and small values of a body for certain arguments.
class BodyInference {
 public:
  explicit BodyInference(const Function& function) : function_(function), graph_(function.graph()), at_(graph_.node_count(), 0) {}

  Status run(std::span<const ValueInfo> arguments, InferContext::ConstantFn constant_fn, void* constant_context,
             std::span<ValueInfo> results) {
    given_ = arguments;
    for (size_t i = 0; i < arguments.size(); ++i) argument_of_.emplace(function_.arguments()[i].id, static_cast<uint32_t>(i));
    constant_fn_ = constant_fn;
    constant_context_ = constant_context;
    Interrupt::look();  // one body may be looked at many times, by loops around loops
    Lookout lookout;
    for (NodeId id : function_.needed()) {
      lookout.after(1000);
      const Node& node = graph_.node(id);
      at_[id] = static_cast<uint32_t>(infos_.size());
      for (const ValueInfo& output : node.outputs) infos_.push_back({output.dtype, output.held, PartialShape::unknown()});
      known_.resize(infos_.size());
      if (node.op->role() != Role::argument) DTG_TRY(infer(node));
    }
    for (size_t r = 0; r < results.size(); ++r) results[r] = info(function_.results()[r]);
    return {};
  }

 private:
  const ValueInfo& info(Value value) const {
    if (const uint32_t* const argument = argument_of_.find(value.id)) return given_[*argument];
    return infos_[at_[value.node()] + value.output()];
  }
  Tensor constant(Value value) const {
    if (const uint32_t* const argument = argument_of_.find(value.id)) {
      return constant_fn_ ? constant_fn_(constant_context_, static_cast<int>(*argument)) : Tensor();
    }
    const Tensor built = graph_.constant_value(value);
    return built.valid() ? built : known_[at_[value.node()] + value.output()];
  }
  class Values final : public ValueContext {
   public:
    Values(const BodyInference& all, const Node& node, std::span<const ValueInfo> outputs, std::span<Tensor> known)
        : ValueContext(node, outputs, known), all_(all) {}
    Tensor input(int i) const override { return all_.constant(node().inputs[static_cast<size_t>(i)]); }
    const ValueInfo& input_info(int i) const override { return all_.info(node().inputs[static_cast<size_t>(i)]); }

   private:
    const BodyInference& all_;
  };

  Status infer(const Node& node) {
    std::vector<ValueInfo> inputs;
    for (Value input : node.inputs) inputs.push_back(info(input));
    const std::span<ValueInfo> outputs(infos_.data() + at_[node.id], node.outputs.size());
    struct Known {
      const BodyInference* all;
      const Node* node;
      static Tensor of(void* context, int i) {
        const auto* k = static_cast<const Known*>(context);
        return k->all->constant(k->node->inputs[static_cast<size_t>(i)]);
      }
    } known{this, &node};
    InferContext context(node, inputs, outputs, Known::of, &known);
    if (Status status = node.op->shape_fn()(context); !status.ok()) {
      return status.with_context("in function \"" + function_.name() + "\", \"" + std::string(node.name) + "\"");
    }
    if (node.op->value_fn() && node.known.empty()) {
      Values values(*this, node, outputs, std::span<Tensor>(known_.data() + at_[node.id], node.outputs.size()));
      node.op->value_fn()(values);
    }
    return {};
  }

  const Function& function_;
  const Graph& graph_;
  std::vector<uint32_t> at_;  // by node: its first output
  std::vector<ValueInfo> infos_;
  std::vector<Tensor> known_;
  FlatMap<uint32_t> argument_of_;
  std::span<const ValueInfo> given_;
  InferContext::ConstantFn constant_fn_ = nullptr;
  void* constant_context_ = nullptr;
};

}  // namespace

Status Function::infer(std::span<const ValueInfo> arguments, std::span<ValueInfo> results, InferContext::ConstantFn constant_fn,
                       void* constant_context) const {
  // What calls others many levels deep would be looked at more often than it is worth.
  constexpr int kDeep = 8;
  bool as_built = true;
  for (size_t i = 0; i < arguments.size(); ++i) {
    as_built = as_built && same_info(arguments[i], argument_info(i)) &&
               !(constant_fn && constant_fn(constant_context, static_cast<int>(i)).valid());
  }
  if (as_built || depth_ > kDeep) {
    for (size_t r = 0; r < results.size(); ++r) results[r] = result_info(r);
    return {};
  }
  return BodyInference(*this).run(arguments, constant_fn, constant_context, results);
}

}  // namespace dtg
