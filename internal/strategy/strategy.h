// Strategy: one model trained on several devices, or by several workers, behind one interface (the words are tf.distribute's). It adds
// nodes and nothing else: a run of a strategy calls a function once per replica, each time with the replica's device scope open, and every
// session can run what comes of it. There are two nouns: the strategy, and the per-replica value, a number that names one value per
// replica.
//
//   scope     The strategy is the model's VariablePolicy: it says how many copies of a variable there are and where. A variable of several
//             copies is still one variable of the model (NamedVariable::copies); saving, restoring and first values follow from that.
//   contexts  default (no scope), cross-replica (in the scope), replica (in the function). Every call belongs into some of them.
//   merge     A function that needs what all replicas have (merge_call) ends with it: the merge runs when the last replica has come there,
//             and each replica goes on with a function of its own. Nothing waits, so one thread builds everything.
//   update    Gradients meet in towers.h and are applied to every copy (nn/optimizer.cc), or go to parameter servers (replicas.h).
//   workers   Where replicas are in other processes too (workers.h), whatever makes one value out of those of the replicas first does it
//             here and then with the others, by a collective that all of them run.
//   kinds     differ in data only: devices, where variables stand, how parts are added up; a hook takes the place of any step.
//
// Owner: the handle, by count. One thread builds. Hooks and functions are called on it, inside the call that builds.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "strategy/replicas.h"
#include "strategy/towers.h"
#include "strategy/workers.h"

namespace dtg {

class Strategy final : public RefCounted, private VariablePolicy {
 public:
  enum class Kind : int32_t { one_device, mirrored, central_storage, parameter_server, custom, multi_worker_mirrored };
  enum class CrossDevice : int32_t { reduce_to_one, hierarchical };
  enum class Context : int32_t { none, cross_replica, replica };
  enum class Assign : int32_t { set, add, sub };
  // Names a per-replica value: the strategy's tag above, a number from 1 below.
  using Id = uint64_t;

  // What a custom strategy does in its own way; empty: as it is done here.
  struct Hooks {
    std::function<Status(VariableSpec&, std::vector<std::string>*)> create_variable;
    std::function<Status(size_t)> begin_replica, end_replica;
    std::function<Result<Value>(Reduce, std::span<const Value>)> reduce_to;
    std::function<Status(Reduce, std::span<const std::vector<Value>>, std::span<Value>)> batch_reduce_to;
    std::function<Status(Value, std::span<Value>)> broadcast_to;
    std::function<Result<Value>(std::string_view, std::span<const Value>)> read_variable;
    std::function<Status(std::string_view, size_t)> begin_update, end_update;
    std::function<Result<Value>(std::span<const Value>, int32_t)> gather;
    std::function<Status(Value, std::span<Value>)> split;
    std::function<Status(std::span<const Value>, std::vector<Value>*)> local_results;
  };
  struct Options {
    Kind kind = Kind::one_device;
    std::vector<std::string> devices;  // of the replicas
    std::string variable_device;       // not empty: the one copy of each variable stands there
    CrossDevice cross = CrossDevice::reduce_to_one;
    Replication replication;         // Kind::parameter_server
    int32_t in_sync = 0;             // Kind::custom: replicas of all workers; 0: those here
    std::optional<Workers> workers;  // Kind::multi_worker_mirrored
    Hooks hooks;
  };

  static Result<Ref<Strategy>> create(Ref<Model> model, Options options);
  ~Strategy() override;

  size_t replicas() const { return options_.devices.size(); }
  // Nothing: this process alone.
  const std::optional<Workers>& workers() const { return options_.workers; }
  int32_t replicas_in_sync() const;
  Context context() const { return context_; }
  // In a replica context: which.
  size_t replica() const { return replica_; }
  Model& model() const { return *model_; }

  Status enter();
  Status leave();

  // --- runs ---
  using ReplicaFn = std::function<Status(size_t replica, std::span<const Value> inputs, std::span<Value> results)>;
  using MergeFn = std::function<Status(std::span<const Id> values, std::span<Id> results)>;
  // One replica after the other, from 0, each begun and ended. The end of the last is that of the run: it answers one per-replica value
  // for each result, the others nothing. What fails abandons the run, and the model is as it was.
  Status begin_replica(size_t replica);
  Result<std::vector<Id>> end_replica(std::span<const Value> results);
  // The host gives the run up; not in what the run itself calls.
  Status give_up();
  // All of that.
  Result<std::vector<Id>> run(const ReplicaFn& fn, std::span<const Id> inputs, size_t results);
  // In a replica: from here on goes `then`, with what `merge` makes of all replicas' values. All of them must come here.
  Status merge_call(std::span<const Value> values, MergeFn merge, size_t merged, ReplicaFn then);

  // --- values (strategy_values.cc) ---
  static constexpr int32_t kNoAxis = INT32_MIN;
  Result<Value> reduce(Reduce reduce, Id value, int32_t axis);
  Result<Value> gather(Id value, int32_t axis);
  Result<Id> distribute(std::span<const Value> values);
  // The same value for all.
  Result<Id> broadcast(Value value);
  // A batch cut along its first axis as evenly as can be; the first ones have a row more.
  Result<Id> split(Value batch);
  // In a replica context.
  Result<Value> local(Id value) const;
  Result<std::vector<Value>> local_results(Id value) const;

  // --- variables (strategy_variables.cc) ---
  struct Minimized {
    Training training;
    std::optional<Replicated> replicated;
  };
  Result<Minimized> minimize(Id losses, Reduce reduce, const Optimizer& optimizer);
  // All copies, or what the synchronization of the variable says. kNoNode in a replica context where the others are still to come.
  Result<NodeId> assign(Value handle, Assign how, Value value);
  // The target of everything that the last run assigned.
  Result<NodeId> updates();
  // fn(copy, the variable as that replica has it, values of that replica) for each copy; answers a target of what it answers.
  using UpdateFn = std::function<Result<Value>(size_t copy, const NamedVariable& variable, std::span<const Value> values)>;
  Result<NodeId> update(Value handle, const UpdateFn& fn, std::span<const Id> values);
  // The target that gives all workers what the one has that has made the most steps (workers.h); of one process: nothing.
  Result<NodeId> level();

 private:
  struct PerReplica {
    std::vector<Value> values;
    size_t first_tower = SIZE_MAX;  // of the run that it came from; SIZE_MAX: of none
  };
  struct Merge {
    std::vector<Value> values;
    MergeFn merge;
    size_t merged = 0;
    ReplicaFn then;
  };
  struct Inside {
    explicit Inside(int& depth) : depth_(depth) { ++depth_; }
    ~Inside() { --depth_; }
    int& depth_;
  };
  struct PendingAssign {
    NamedVariable variable;
    Assign how = Assign::set;
    std::vector<Value> parts;
  };
  struct Run {
    Model::Mark before;
    Context outside = Context::none;
    size_t first_tower = SIZE_MAX;
    std::vector<std::vector<Value>> results;   // by replica
    std::vector<std::optional<Merge>> merges;  // by replica
    std::vector<PendingAssign> assigns;        // in the order of replica 0
    size_t assigned = 0;                       // of them, by the replica that is being built
    std::vector<NodeId> effects;
  };

  Strategy(Ref<Model> model, Options options);
  Graph& graph() const { return model_->graph(); }
  Status cross(const char* what) const;
  Status in_replica(const char* what) const;
  Status open_replica(size_t replica);
  Status close_replica(std::span<const Value> results);
  void leave_replica_scopes();
  Result<std::vector<Id>> finish_run();
  Status merge_all(size_t results);
  void abandon();
  Status not_inside(const char* what) const;
  Result<const PerReplica*> resolve(Id id, const char* what) const;
  Id add(std::vector<Value> values);
  Result<Value> combine(Reduce reduce, std::span<const Value> parts);
  Value add_up(Build& build, std::span<const Value> parts, std::span<const std::string> devices);
  Result<Value> along_axis(Reduce reduce, std::span<const Value> parts, int32_t axis);
  Result<std::vector<Value>> reduce_gradients(Reduce reduce, std::span<const std::vector<Value>> parts, std::span<const NodeId> besides);

  // The first tower of the run that a loss comes from, which need not be a result of it.
  size_t tower_of(const PerReplica& losses) const;
  // --- with the other workers (strategy_workers.cc) ---
  // Whether values are made one in the order of all replicas, rather than each worker's first.
  bool in_order() const { return options_.cross == CrossDevice::reduce_to_one && replicas() > 1; }
  Result<Value> combine_workers(Reduce reduce, std::span<const Value> parts);
  Result<Value> gather_workers(Value value, int32_t axis);
  Result<Value> value_of_first(Value value);
  Status meet_workers(Reduce reduce, std::span<const std::vector<VariableGradient>> towers, std::vector<NodeId>* first,
                      std::vector<VariableGradient>* out);

  uint32_t tag() const override { return tag_; }
  bool has_elsewhere() const override { return options_.workers.has_value(); }
  bool is_first_elsewhere() const override { return options_.workers && options_.workers->rank > 0; }
  Result<std::vector<std::string>> place(VariableSpec& spec) override;
  Result<Value> read_of(const NamedVariable& variable, std::span<const Value> reads) override;
  Result<NamedVariable> variable_of(Value handle, const char* what) const;
  Status is_mine(const NamedVariable& variable, const char* what) const;
  Result<NodeId> write(const NamedVariable& variable, size_t copy, Assign how, Value value);
  Result<NodeId> write_all(const NamedVariable& variable, Assign how, std::span<const Value> values);
  Status assign_later(const NamedVariable& variable, Assign how, Value value);
  Status assign_pending();
  Result<Value> aggregated(const NamedVariable& variable, std::span<const Value> parts);

  const Ref<Model> model_;
  const Options options_;
  const uint32_t tag_;
  Context context_ = Context::none;
  size_t replica_ = 0;
  int inside_ = 0;  // functions of a merge and hooks that are being called, from which the run cannot be changed
  std::optional<Run> run_;
  std::vector<NodeId> effects_;       // of the last run
  std::vector<size_t> first_towers_;  // of all runs
  std::vector<PerReplica> values_;
  int32_t instance_ = 0;  // of the next collective of the workers
};

}  // namespace dtg
