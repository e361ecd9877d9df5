// Workers of a MultiWorkerMirrored strategy: tasks of one group, each with a graph of its own that is built alike, which meet in
// collectives. What one of them knows of the others, one value out of those that all have, and levelling: all variables as the worker has
// them that has made the most steps, which at the beginning is the first one.
// Functions over a model; the thread that builds.
#pragma once

#include <string>

#include "strategy/all_reduce.h"

namespace dtg {

// This worker's place among all; every one of them has the same but for `rank` and `task`.
struct Workers {
  AllReduce how;  // its first_instance is the first of the strategy's, which has kWorkersInstances of them
  int32_t rank = 0;
  std::string task;  // "/job:worker/replica:0/task:1": where the replicas of this worker stand
};

// The instances of one strategy: calls for gradients and values as they are built, and, from the middle on, those that level.
inline constexpr int32_t kWorkersInstances = 1 << 20;

// Calls of collectives with the instances that follow; all workers make the same.
class WorkerCalls {
 public:
  // `purpose`: what they are for, which all workers compare; text that lives as long.
  WorkerCalls(Build& build, const Workers& workers, int32_t* instance, std::string_view purpose)
      : build_(build), workers_(workers), instance_(*instance), purpose_(purpose) {}
  // merge: "Add", "Max", "Min". Sums of whole numbers of every width, which wrap around as those of one process do.
  Value reduce(Value x, const char* merge, std::span<const NodeId> controls = {});
  // Rows of all, one behind the other; numbers of rows may differ. Every type of a fixed size.
  Value gather(Value x);
  // That of rank 0, in every type of a fixed size.
  Value from_first(Value x);
  // This worker's rank in the epoch that the run is in; it may be another one than when the graph was built.
  Value rank();

 private:
  Value call(std::string_view op, std::span<const Value> inputs, size_t keys_at, const char* merge, std::span<const NodeId> controls = {});
  Build& build_;
  const Workers& workers_;
  int32_t& instance_;
  const std::string_view purpose_;
};

// The target that gives all variables of the model, but those that each replica has its own value of, what the worker has that has made the
// most steps, or the first of those. `after`: what comes before. All workers run it at once; those that come from somewhere else (first
// values, a restart) meet those that were there.
Result<NodeId> level(Model& model, const Workers& workers, std::span<const NodeId> after);

}  // namespace dtg
