// Workshop: a scene in the making. Every node is tried on a graph of its own and executed at once by an interpreter, so that
// whoever proposes the next node knows types, shapes and values of everything there is. Only what was accepted and ran becomes
// part of the scene. One thread.
#pragma once

#include <map>
#include <optional>

#include "random/draw.h"
#include "random/interpreter.h"

namespace dtg::random {

// What the makers of graphs are asked to leave out or to do; the totals that they keep.
struct Wishes {
  bool ordered = false;           // effects on one variable are always ordered by control edges
  bool functions = false;         // in each scene a condition and a loop at least, some within others
  std::vector<std::string> only;  // these ops alone (and what feeds them); empty: all
};

struct Tally {
  std::map<std::string, int64_t> accepted, refused;  // by op
  std::map<std::string, int64_t> features;
};

struct Known {
  Port port;
  Tensor tensor;
};

// A resource: a variable (dtype, shape) or a queue (components).
struct Resident {
  Port handle;
  int place = -1;
  DType dtype = DType::invalid;
  Shape shape;
  std::vector<DType> components;
  std::vector<Shape> shapes;
  bool batches = false;  // a queue that knows its shapes
  int assign = -1;       // node of the first assignment
  int last_write = -1;
  std::vector<int> reads;  // since then
};

class Workshop {
 public:
  Workshop(const OpTable& ops, const KernelTable& kernels, Pool& pool, Tally& tally, const Wishes& wishes, uint64_t seed);

  // The index of the new node, or -1 when the graph or the interpreter refused it.
  int add(NodeRecord record);
  // The same for a node that the truth would refuse: nobody executes it, and nobody else is given its values.
  int add_untried(NodeRecord record);
  Port output(int node, int output = 0) const { return {node, output}; }
  const Tensor& tensor(const Port& port) const;
  const ValueInfo& info(const Port& port) const;
  bool has_output(int node) const {
    return !values_[static_cast<size_t>(node)].empty() && values_[static_cast<size_t>(node)][0].tensor.valid();
  }
  bool fed(int node) const { return scene.nodes[static_cast<size_t>(node)].op == "Placeholder"; }

  // A value that is there: type, rank; nothing when there is none.
  std::optional<Known> find(DType dtype, int rank_min = 0, int rank_max = kRankMax);
  // A value of exactly that type and shape, as a rule made from what is there.
  Port wanted(DType dtype, const Shape& shape);
  Port any(DType dtype, int rank_min, int rank_max);
  // A constant, a placeholder, a variable that is read.
  Port source(DType dtype, const Shape& shape);
  Port source(const Tensor& value, bool exact);
  // Given whole numbers, as a scalar or a vector.
  Port ints(DType dtype, const std::vector<int64_t>& values, bool scalar);
  Port ints(DType dtype, const std::vector<int64_t>& values, const Shape& shape);
  Port constant(const Tensor& value);

  // One that is there, or a new one.
  Resident& variable(DType dtype, const Shape& shape);
  // A slot for an optimizer, on the same device. An update that names one variable twice is not determined, so none of `taken`.
  Resident& slot_of(const Resident& owner, std::span<const Resident* const> taken);
  Resident& variable_of_rank(DType dtype, int rank_min);
  // The controls of a node that reads or writes; `done` afterwards says which node it became.
  std::vector<int> controls_for(const Resident& resident, bool writes);
  void done(Resident& resident, int node, bool writes);

  Shape shape(int rank_min = 0, int rank_max = kRankMax);
  Tensor random_tensor(DType dtype, const Shape& shape);
  // Takes over nodes that somebody else added to the graph behind our back (gradients).
  bool adopt(uint32_t from);
  void count(const char* feature) { ++tally.features[feature]; }
  Graph& graph() { return *graph_; }
  Value value(const Port& port) const { return graph_->value(ids_[static_cast<size_t>(port.node)], static_cast<uint32_t>(port.output)); }

  Draw draw;
  Port favourite;  // what the next node is to use, if it can
  Scene scene;
  std::vector<Known> known;
  std::deque<Resident> variables, queues;
  std::map<int, Tensor> defaults;  // of placeholders: what they were fed while the scene was made
  std::vector<bool> exact;         // of nodes: placeholders whose value means something (an axis, a shape)
  Tally& tally;
  const Wishes& wishes;
  const OpTable& ops;

 private:
  Resident& new_variable(DType dtype, const Shape& shape, int place);
  Result<NodeId> add_to_graph(const NodeRecord& record);
  bool run(const NodeRecord& record, NodeId id);
  void publish(NodeRecord record, NodeId id, std::vector<Datum> outputs);

  Ref<Graph> graph_;
  Interpreter interpreter_;
  std::vector<NodeId> ids_;                 // scene -> graph
  std::vector<std::vector<Datum>> values_;  // of the scene's nodes
  std::vector<int64_t> sizes_;              // the dimensions this scene likes
};

}  // namespace dtg::random
