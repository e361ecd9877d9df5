// BoundedWorker: the program of a worker in a job of bounded staleness: a cell for each step of each worker on every server, and a step
// that takes 1 from its cell, by a gradient. The fiber of its process.
#pragma once

#include <vector>

#include "process.h"
#include "strategy/replicas.h"
#include "timed_runs.h"

namespace dtg::sim {

class BoundedWorker final {
 public:
  BoundedWorker(Process& process, int servers, int cells, const Replication& share);

  Status connect(const std::string& target);
  // Gives the variables their values where they have none (the chief), and joins; after a loss once more.
  Status go_on();
  // Adds to the cell; the worker's clock after that.
  Result<int64_t> step(int cell);
  // It makes no more steps.
  Status leave() { return run({}, {&added_.leave, 1}); }
  bool was_late() { return runs_.was_late(); }
  // The clock with which it has joined.
  Result<int64_t> clock();
  // What each server's cells hold, as counts.
  Result<std::vector<Tensor>> counts();

 private:
  Status build(int servers, int cells);
  Status begin();
  Status run(std::span<const Value> fetches, std::span<const NodeId> targets, std::vector<Tensor>* fetched = nullptr, int cell = -1);

  Process& process_;
  const Replication share_;
  const Ref<Graph> graph_;
  const Ref<Model> model_;
  Ref<Session> session_;
  Status status_;
  Value cell_, clocks_;
  std::vector<Value> counts_;
  Replicated added_;
  NodeId init_ = kNoNode;
  TimedRuns runs_{process_};
};

}  // namespace dtg::sim
