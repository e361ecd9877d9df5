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
  // Result r is argument returned_argument(r) unchanged; -1 where it is computed.
  int returned_argument(size_t r) const { return returned_[r]; }

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
  explicit Function(Parts parts) : parts_(std::move(parts)) {}
  Status check_arguments() const;
  Status look_inside();
  void find_needed();
  Status find_effects();

  Parts parts_;
  std::vector<NodeId> targets_;
  std::vector<NodeId> needed_;
  std::vector<uint32_t> accesses_;
  std::vector<int> returned_;
  int depth_ = 1;
  int64_t expanded_ = 0;
  bool stateful_ = false;
  Memo memo_;
};

// Calls fn(const Function&) for each function that a node calls.
template <class Fn>
void for_each_function(const Node& node, Fn&& fn) {
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
