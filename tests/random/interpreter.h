// Interpreter: the truth. It executes what a run needs in the order in which the nodes were made, each alone, each value in
// memory of its own; no planner has a part in it. Where neither data nor control orders two effects, the order of creation does.
// Owns its state (variables, queues) from run to run. One thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "graph/function.h"
#include "random/node_call.h"
#include "random/scene.h"

namespace dtg::random {

// Kinds of outcome: an error of a node of which only the shape is asked may or may not be noticed by a planner.
enum class Verdict { ok, error, either };

struct Outcome {
  Verdict verdict = Verdict::ok;
  Status status;
  std::vector<Tensor> fetched;
  int times = 1;  // a run that is repeated: this is the outcome of the last time, those before it went well
};

// What is executed, in order: nodes in the order of creation. Of a node and its extensions, which do the same, the last does it for all.
struct Turn {
  NodeId node;
  std::vector<NodeId> others;  // those that have what its first outputs are
};
std::vector<Turn> turns_of(const Graph& graph, std::span<const NodeId> needed, const std::function<bool(Value)>& given);

class Interpreter {
 public:
  Interpreter(const KernelTable& kernels, Pool& pool) : machine_{&kernels, &pool, &store_} {}
  Outcome run(const Graph& graph, const Scene& scene, const RunRecord& run);
  // One node with these inputs, queues and functions included.
  Status call(const Node& node, std::span<const Datum> inputs, std::vector<Datum>& outputs);

 private:
  using Tuple = std::vector<Tensor>;
  bool queue_op(const Node& node, std::span<const Datum> inputs, std::vector<Datum>& outputs, Status& status);
  Status dequeue(const Node& node, std::deque<Tuple>& queue, std::span<const Datum> inputs, std::vector<Datum>& outputs);
  Status enqueue_many(std::deque<Tuple>& queue, std::span<const Datum> inputs);

  Status call_functions(const Node& node, std::span<const Datum> inputs, std::vector<Datum>& outputs);
  Status branch(const Node& node, std::span<const Datum> inputs, std::vector<Datum>& outputs);
  Status loop(const Node& node, std::span<const Datum> inputs, std::vector<Datum>& outputs);
  Status apply(const Function& function, std::span<const Datum> arguments, std::vector<Datum>& results);

  // A planner that knows less may find out later, or never: in a branch that is not taken, in a loop without rounds.
  bool may_go_unnoticed_ = false;
  ResourceStore store_;
  Machine machine_;
  std::map<const RefCounted*, std::deque<Tuple>> queues_;
};

}  // namespace dtg::random
