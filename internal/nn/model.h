// Model: a graph under construction together with the variables that its layers made: their handles,
// readings and first values. Layers, losses and optimizers are functions over it; it only keeps the books,
// so a model of one's own needs nothing else than add_variable().
//
// Owner: the host that builds, by count. Not thread-safe: one thread builds.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ref.h"
#include "graph/build.h"
#include "nn/initializer.h"

namespace dtg {

// One variable of a model. `name` is the node's and what checkpoints call it.
struct NamedVariable {
  std::string name;
  DType dtype = DType::invalid;
  Shape shape = {};
  bool trainable = false;
  Value handle;             // resource
  Value read;               // its value, read once a step
  NodeId assign = kNoNode;  // gives it its first value
  bool absolute = false;    // of the whole model, such as the global step and what optimizers keep
};

struct VariableSpec {
  std::string_view name;
  DType dtype = DType::f32;
  Shape shape = {};
  Initializer initializer = {};
  bool trainable = true;
  NodeId colocate = kNoNode;  // a slot stands where its variable stands
  bool absolute = false;      // the name is complete, open name scopes do not count
};

class Model final : public RefCounted {
 public:
  Model(Ref<Graph> graph, uint64_t seed) : graph_(std::move(graph)), seed_(seed) {}

  Graph& graph() const { return *graph_; }
  uint64_t seed() const { return seed_; }

  // Makes handle, first value, assignment and reading. A name that is taken gets a number.
  Result<NamedVariable> add_variable(const VariableSpec& spec);
  // The next copy of the computation over the same variables (strategy/towers.h): add_variable() answers those that
  // there are, from the first, in their order, until all have been asked for. Another type, shape or name is an error.
  void next_tower();
  // In order of creation: the weights, then what optimizers added.
  std::span<const NamedVariable> variables() const { return variables_; }
  // Null if there is none.
  const NamedVariable* find(std::string_view name) const;
  // Keeps the first `count` only, after a layer failed half-way; the nodes of the others stay in the graph, unused.
  void forget_beyond(size_t count);
  // The int64 count of training steps, "global_step"; made when first asked for.
  Result<NamedVariable> global_step();
  // A node that assigns the first value of every variable so far. A variable added later makes a new one.
  Result<NodeId> init_target();
  // Numbers for random streams other than those of variables (dropout), counted apart from them.
  RandomStream next_stream();

 private:
  Result<NamedVariable> shared_variable(const VariableSpec& spec);
  const Ref<Graph> graph_;
  const uint64_t seed_;
  std::vector<NamedVariable> variables_;
  uint64_t streams_ = 0;
  size_t global_step_ = SIZE_MAX;  // index in variables_
  NodeId init_ = kNoNode;
  size_t init_covers_ = 0;      // variables that init_ assigns
  std::vector<size_t> shared_;  // what next_tower() still has to answer, last first
};

}  // namespace dtg
