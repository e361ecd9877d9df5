// Model: a graph under construction together with the variables that its layers made: their handles,
// readings and first values. Layers, losses and optimizers are functions over it; it only keeps the books,
// so a model of one's own needs nothing else than add_variable().
//
// A model inside of the body of a function keeps no books: it is where layers go, and asks the model around it for all else.
//
// Owner: the host that builds, by count. Not thread-safe: one thread builds.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ref.h"
#include "graph/build.h"
#include "nn/initializer.h"

namespace dtg {

// How the values of a variable's copies, one per replica of a strategy, hang together.
enum class Sync : int32_t {
  on_write,  // all copies are equal: a write goes to all of them
  on_read,   // each replica has its own; who reads it from outside gets them combined
};
// How what the replicas give is combined into one value.
enum class Aggregation : int32_t { none, sum, mean, only_first };

// Which part of a whole a variable is, where a whole is cut along an axis into several: optimizers see the parts, files the whole.
struct WholePart {
  std::string whole = {};  // its name
  Shape shape = {};        // its shape
  int32_t axis = 0;
  int32_t number = 0;  // of this part, along the axis
  int32_t of = 0;      // so many parts; 0: the variable is no part
  int64_t first = 0;   // its first row, counted along the axis
  bool any() const { return of > 0; }
};

// One of several copies of a variable, each of which stands on the device of its replica.
struct VariableCopy {
  Value handle;
  Value read;
};

// One variable of a model. `name` is the node's and what checkpoints call it. One that a strategy made may have copies: then `handle` is
// that of the first, `assign` gives all of them their value from one, and `read` is what stands for all.
struct NamedVariable {
  std::string name;
  DType dtype = DType::invalid;
  Shape shape = {};
  bool trainable = false;
  Value handle;             // resource
  Value read;               // its value, read once a step
  NodeId assign = kNoNode;  // gives it its first value
  bool absolute = false;    // of the whole model, such as the global step and what optimizers keep
  std::string of = {};      // what an optimizer keeps of a variable: that one's name, and what the optimizer calls it
  std::string slot = {};
  std::vector<VariableCopy> copies = {};  // none, or two and more; one where others are in other processes and each has its own value
  size_t copy = 0;                        // which of them `handle` and `read` are
  Sync sync = Sync::on_write;
  Aggregation aggregation = Aggregation::none;
  uint32_t strategy = 0;  // whose it is (VariablePolicy::tag); 0: made outside of any
  WholePart part = {};

  // It as replica `i` has it; itself where it has one copy only.
  NamedVariable at_replica(size_t i) const;
  // What this process has of it, without a word to others, where each has its own; else its value.
  Value read_here() const { return copies.size() == 1 ? at_replica(0).read : read; }
  // Whether it is the handle, or that of a copy.
  bool has_handle(Value other) const;
};

struct VariableSpec {
  std::string_view name;
  DType dtype = DType::f32;
  Shape shape = {};
  Initializer initializer = {};
  bool trainable = true;
  NodeId colocate = kNoNode;  // a slot stands where its variable stands
  bool alone = false;         // a slot of that copy only, whatever others the variable has
  bool absolute = false;      // the name is complete, open name scopes do not count
  std::string_view of = {};   // see NamedVariable
  std::string_view slot = {};
  Value first = {};  // its first value, in place of the initializer's
  Sync sync = Sync::on_write;
  Aggregation aggregation = Aggregation::none;
  // `shape` is the part's. Where the whole's name is not given it is the scope that the part's name stands in, so a part is called
  // "kernel/part_0". Its first value is what the whole's would have there, however it is cut.
  WholePart part = {};
};

// Decides where the variables of a model stand while it is set: a strategy whose scope is open.
class VariablePolicy {
 public:
  virtual ~VariablePolicy() = default;
  // Not 0, and no other policy's.
  virtual uint32_t tag() const = 0;
  // One device per copy; none: the open scopes decide, and there is one. It may change what is asked for.
  virtual Result<std::vector<std::string>> place(VariableSpec& spec) = 0;
  // What is read from outside of the replicas, made from the reads of all copies of a variable that is synchronised on read.
  virtual Result<Value> read_of(const NamedVariable& variable, std::span<const Value> reads) = 0;
  // Whether other processes have copies too, and the first of all is one of theirs.
  virtual bool has_elsewhere() const { return false; }
  virtual bool is_first_elsewhere() const { return false; }
};

class Model final : public RefCounted {
 public:
  Model(Ref<Graph> graph, uint64_t seed) : graph_(std::move(graph)), seed_(seed) {}

  // The same model, whose layers are added to `body`, a function's in the graph of `around` or in another body there. Variables that they
  // ask for are made outside of all bodies, under the functions' names, and are read there, once a step.
  static Result<Ref<Model>> inside(Ref<Model> around, Ref<Graph> body);
  bool is_inside() const { return around_.get() != nullptr; }
  // The model that keeps the books; itself where it is inside of nothing.
  Model& outermost() { return around_ ? around_->outermost() : *this; }
  const Model& outermost() const { return around_ ? around_->outermost() : *this; }

  Graph& graph() const { return *graph_; }
  uint64_t seed() const { return seed_; }

  // Makes handle, first value, assignment and reading. A name that is taken gets a number.
  Result<NamedVariable> add_variable(const VariableSpec& spec);
  // The next copy of the computation over the same variables (strategy/towers.h): add_variable() answers those that
  // there are, from the first, in their order, until all have been asked for. Another type, shape or name is an error.
  void next_tower();
  // While it is set, it is asked about every variable that is neither kept by an optimizer nor the model's own. Null: nobody.
  void set_policy(VariablePolicy* policy) { policy_ = policy; }
  VariablePolicy* policy() const { return outermost().policy_; }
  // What is done behind the assignments of first values: answers a node that comes after those it is given. Kept by the model.
  using AfterInit = std::function<Result<NodeId>(Model&, std::span<const NodeId>)>;
  void set_after_init(AfterInit after) { after_init_ = std::move(after); }
  // The replicas of one run of a strategy, from 0: what 0 makes, the others are answered, each its own copy; what follows the batches
  // counts for the towers first_tower .. first_tower + n - 1, which begin_replicas() answers.
  size_t begin_replicas();
  // So many replicas of the same training are in other processes before those here.
  void set_first_replica(size_t number) { first_replica_ = number; }
  // The same replicas go on, from 0, with what their first halves led to.
  void continue_replicas();
  void begin_replica(size_t replica);
  // An error where it asked for fewer variables than replica 0.
  Status end_replica();
  void end_replicas();
  // A piece of the model is built for one replica, as one tower; several pieces may take turns. `again`: over the variables of these
  // numbers, once more, in their order; empty where it makes its own. The end is an error where it asked for fewer.
  void begin_visit(size_t replica, size_t tower, std::span<const size_t> again);
  Status end_visit();
  // So many numbers of towers that nobody else has, from the answer on.
  size_t take_towers(size_t count);
  // The variable as the replica that is being built sees it, and the body.
  NamedVariable here(const NamedVariable& variable) const;
  // What stands for a value in the body; the value itself where it cannot, which whoever uses it will say.
  Value here(Value value) const;
  // One whose nodes the graph has already (nn/adopt.h).
  void take_over(NamedVariable variable);
  // In order of creation: the weights, then what optimizers added.
  std::span<const NamedVariable> variables() const { return outermost().variables_; }
  // Null if there is none.
  const NamedVariable* find(std::string_view name) const;
  // A variable that follows what the batches give, and is no weight: each step moves it by `share` of the way to `target`, whatever the
  // optimizer (moving statistics). Several targets of one variable, as of a layer that is called twice, count by their mean.
  struct Following {
    NamedVariable variable;
    std::vector<Value> targets;
    double share = 0;
    size_t tower = 0;
  };
  // What the replicas of this run so far, this one included, add to their copies of a variable; otherwise that alone.
  std::vector<NodeId> additions(const NamedVariable& variable, NodeId add);
  Status follow(const NamedVariable& variable, Value target, double share);
  std::span<const Following> following() const { return following_; }
  // A layer that does in training what it does not elsewhere (dropout, moving statistics), and the switch that tells it; invalid: it
  // takes everything for training.
  struct Switched {
    Value y;  // invalid: one in the body of a function, of which only is known that nothing switches it off
    Value training;
    std::string in_body = {};  // its name
  };
  void note_switched(Value y, Value training);
  std::span<const Switched> switched() const { return switched_; }
  // Where the model stands, and going back there after a layer failed half-way; the nodes that it added stay in the graph, unused.
  struct Mark {
    size_t variables = 0;
    uint64_t streams = 0;
    std::vector<size_t> shared;
    std::vector<Following> following;
    size_t switched = 0;
    size_t bodies = 0;
  };
  Mark mark() const { return {variables_.size(), streams_, shared_, following_, switched_.size(), bodies_.size()}; }
  // With `unnamed`, their names are free again (Graph::end_trial).
  void go_back(const Mark& mark, bool unnamed = false);
  // The int64 count of training steps, "global_step"; made when first asked for.
  Result<NamedVariable> global_step();
  // Null where nobody asked for one.
  const NamedVariable* step_if_any() const { return global_step_ == SIZE_MAX ? nullptr : &variables_[global_step_]; }
  // A node that assigns the first value of every variable so far. A variable added later makes a new one.
  Result<NodeId> init_target();
  // Numbers for random streams other than those of variables (dropout), counted apart from them.
  RandomStream next_stream();

 private:
  static constexpr size_t kNoReplica = SIZE_MAX;
  static constexpr size_t kRunTowers = size_t{1} << 20;  // those of next_tower() are below
  struct Place {
    std::string device;       // or
    NodeId beside = kNoNode;  // this node's
  };
  Result<NamedVariable> variable_outside(const VariableSpec& spec);
  std::string name_of_body(const Graph& body);
  std::string path_outside(const Graph& body, const std::string& path);
  Result<NamedVariable> shared_variable(const VariableSpec& spec);
  uint64_t stream_of(const WholePart& part) const;
  Result<std::vector<Place>> places_of(VariableSpec& spec, uint32_t* strategy);
  Status add_nodes(const VariableSpec& spec, std::span<const Place> places, NamedVariable& variable);
  Result<Value> add_handle(const VariableSpec& spec, const std::string& name, const Place& place);
  const Ref<Graph> graph_;
  const uint64_t seed_;
  // Scopes that stand for those of bodies, by the body's tag and the scope's name there: its variables are called so.
  std::vector<std::pair<std::pair<uint32_t, std::string>, std::string>> bodies_;
  Ref<Model> around_;  // set before anybody else sees it; null: it is the outermost
  std::vector<NamedVariable> variables_;
  uint64_t streams_ = 0;
  size_t global_step_ = SIZE_MAX;  // index in variables_
  NodeId init_ = kNoNode;
  size_t init_covers_ = 0;      // variables that init_ assigns
  std::vector<size_t> shared_;  // what next_tower() still has to answer, last first
  std::vector<Following> following_;
  std::vector<Switched> switched_;
  size_t tower_ = 0;  // how often next_tower() was called
  VariablePolicy* policy_ = nullptr;
  AfterInit after_init_;
  size_t replica_ = kNoReplica;
  size_t first_replica_ = 0;
  struct {
    size_t towers = kRunTowers;  // the next run's first
    size_t variables = 0;        // when the run began
    uint64_t first_stream = 0;   // then
    uint64_t next_stream = 0;    // behind those that any of its replicas has taken
    std::vector<size_t> shared;  // what next_tower() had left to answer then
    size_t tower = 0;            // outside of it
    size_t left = 0;             // of `shared`, when replica 0 was built
    std::vector<std::pair<std::string, NodeId>> additions;
  } run_;
  struct {
    std::vector<size_t> shared;  // outside of it
    size_t tower = 0;
  } visit_;
};

}  // namespace dtg
