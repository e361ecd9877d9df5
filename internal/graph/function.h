// Function: a graph with arguments and results, which nodes of other graphs call (If, While, PartitionedCall: attributes of kind func).
// It knows what its callers must know without looking inside: types, shapes, what it does to the resources that it is given, whether
// it acts at all. A function calls only functions that were finished before it, so none can reach itself.
//
// The body's graph is closed when the function is made and may be shared by several functions. Immutable; any thread.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/infer.h"

namespace dtg {

class Function final : public RefCounted {
 public:
  // Levels of functions that call functions, and nodes of all of them, each counted as often as it is called.
  static constexpr int kDepthMax = 64;
  static constexpr int64_t kNodesMax = int64_t{1} << 20;

  struct Parts {
    std::string name;
    Ref<Graph> graph;
    std::vector<Value> arguments;  // made by Graph::add_argument
    std::vector<Value> results;
    std::vector<NodeId> controls;  // must run, whatever the results need
  };
  // Values of graphs around the body may be results; what the body captured is appended to the arguments unless `captured` says that
  // it is among them.
  static Result<Ref<const Function>> make(Parts parts);

  const std::string& name() const { return parts_.name; }
  const Graph& graph() const { return *parts_.graph; }
  const Ref<Graph>& shared_graph() const { return parts_.graph; }
  std::span<const Value> arguments() const { return parts_.arguments; }
  std::span<const Value> results() const { return parts_.results; }
  const ValueInfo& argument_info(size_t i) const { return graph().info(parts_.arguments[i]); }
  const ValueInfo& result_info(size_t i) const { return graph().info(parts_.results[i]); }
  // Nodes that act on something and so run in each call.
  std::span<const NodeId> targets() const { return targets_; }
  // What the results and targets need, in the order in which they were made.
  std::span<const NodeId> needed() const { return needed_; }
  int depth() const { return depth_; }
  int64_t expanded_nodes() const { return expanded_; }
  // Holds an op that is more than a function of its inputs.
  bool is_stateful() const { return stateful_; }
  // Bit k: Access(k) of what argument i is.
  uint32_t accesses(size_t i) const { return accesses_[i]; }
  // Result r is argument returned_argument(r) unchanged; -1 where it is computed, or one argument or another.
  int returned_argument(size_t r) const {
    const Returned& from = returned_[r];
    return from.itself && from.arguments.size() == 1 ? static_cast<int>(from.arguments[0]) : -1;
  }
  // The arguments that result r may be, or belong to, which is the same where the order of effects is concerned; of a resource at least
  // one.
  std::span<const uint32_t> returned_arguments(size_t r) const { return returned_[r].arguments; }
  bool returns_itself(size_t r) const { return returned_[r].itself; }

  // What the results are for these arguments. A constant function may know values of arguments.
  Status infer(std::span<const ValueInfo> arguments, std::span<ValueInfo> results, InferContext::ConstantFn constant_fn = nullptr,
               void* constant_context = nullptr) const;

  // Room for what is worked out of the function once (its derivative, ops/derivative.h), by key. Guarded by itself.
  class Memo {
   public:
    Ref<const RefCounted> find(int key) const;
    // What is there now: `made`, or what another thread put there first.
    Ref<const RefCounted> keep(int key, Ref<const RefCounted> made) const;

   private:
    mutable std::mutex mutex_;
    mutable std::vector<std::pair<int, Ref<const RefCounted>>> kept_;
  };
  const Memo& memo() const { return memo_; }

 private:
  // Which arguments a value may be. itself: and not something that belongs to one, as an array of gradients does.
  struct Returned {
    std::vector<uint32_t> arguments;
    bool itself = true;
  };
  explicit Function(Parts parts) : parts_(std::move(parts)) {}
  Status check_arguments() const;
  Status look_inside();
  void find_needed();
  // What a node does to an argument.
  struct Done {
    NodeId node;
    uint32_t argument, accesses;
  };
  Status find_effects();
  void count_accesses(std::span<const Done> done);

  Parts parts_;
  std::vector<NodeId> targets_;
  std::vector<NodeId> needed_;
  std::vector<uint32_t> accesses_;
  std::vector<Returned> returned_;
  int depth_ = 1;
  int64_t expanded_ = 0;
  bool stateful_ = false;
  Memo memo_;
};

// Calls fn(const Function&) for each function that a node calls.
template <class Fn>
void for_each_function(const Node& node, Fn&& fn) {
  if (!node.op->takes_functions()) return;
  for (const Attr& attr : node.attrs) {
    if (const auto* one = attr.value.get<FunctionRef>()) {
      if (*one) fn(*one->get());
    } else if (const auto* list = attr.value.get<std::vector<FunctionRef>>()) {
      for (const FunctionRef& each : *list) {
        if (each) fn(*each.get());
      }
    }
  }
}
bool calls_functions(const Node& node);

// Calls fn(input) for each of a node's so many inputs that its resource `output` may be, or belongs to.
template <class Fn>
void for_each_source(const Node& node, size_t inputs, size_t output, Fn&& fn) {
  for (size_t i = 0; i < inputs; ++i) {
    if (node.op->forwards(i, output)) return fn(i);
  }
  // Arguments are the last inputs.
  for_each_function(node, [&](const Function& function) {
    if (output >= function.results().size() || function.arguments().size() > inputs) return;
    for (const uint32_t argument : function.returned_arguments(output)) fn(inputs - function.arguments().size() + argument);
  });
}

// What a node does to the resource that its input `input` is: bit k is Access(k). Of a node that calls functions, what they do to it; their
// arguments are its last inputs.
uint32_t accesses_of(const Node& node, size_t input);
inline constexpr uint32_t access_bit(Access access) { return 1u << static_cast<uint32_t>(access); }
// Those that change something, or wait for something.
inline constexpr uint32_t kActs = access_bit(Access::write) | access_bit(Access::assign) | access_bit(Access::destroy) |
                                  access_bit(Access::produce) | access_bit(Access::fence) | access_bit(Access::consume) |
                                  access_bit(Access::close);
inline constexpr uint32_t kWrites = access_bit(Access::write) | access_bit(Access::assign) | access_bit(Access::destroy);

}  // namespace dtg
