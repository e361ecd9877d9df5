// A synchronous worker of a simulated job. The variables are rows of cells on every parameter server; step k takes 1 from cell k of each,
// and more where what a worker read did not fit together: a server ahead of another, or of the count of steps. In the end cell k of every
// server is -1 for the steps that are counted, and 0 for the others, whoever was killed when. An elastic worker does the same, as the mean
// does not hang on who takes part; elements of data are dealt to it, of which each is to be in one update of its epoch.
//
// The fiber of its process.
#pragma once

#include <string>
#include <vector>

#include "process.h"
#include "session/recover.h"
#include "timed_runs.h"

namespace dtg::sim {

class StrictWorker final {
 public:
  static constexpr int kCells = 512;

  StrictWorker(Process& process, int servers, const Replication& share);
  ~StrictWorker();

  Status connect(const std::string& target);
  // Begins, or goes on after a loss, where that is due; then a step. A run that ended later than it may is noted.
  Status step();
  // The chief: no update is under way any more, nor half done.
  Status settle();
  bool was_late() { return runs_.was_late(); }
  int64_t steps() const { return step_; }
  // What is wrong with what the servers hold; empty: nothing.
  Result<std::string> judge();

 private:
  Status build(int servers);
  std::string judge_contributions(int64_t counted, const Tensor& contributions) const;
  std::string judge_ledger(const Tensor& contributions, const Tensor& ledger) const;
  Status deal();
  Status begin();
  Status recovered();
  Status go_on();
  void stop_updates();
  Status run(std::span<const Value> fetches, std::span<const NodeId> targets, std::vector<Tensor>* fetched = nullptr, bool feeds = false);

  Process& process_;
  const Replication share_;
  Ref<Graph> graph_;
  Ref<Model> model_;
  Ref<Session> session_;
  Ref<CompletionQueue> ends_;
  Ref<AsyncRun> updates_;
  Status status_;
  Value number_;
  Replicated added_;
  NodeId init_ = kNoNode;
  const bool is_chief_;
  bool goes_on_ = false;
  int64_t step_ = 0;
  TimedRuns runs_{process_};
};

}  // namespace dtg::sim
