// AsyncPlan: the plan of a run that nobody waits for, where other tasks have to be asked. It waits for its turn to plan, computes on
// the pool, stands still while others answer, and tells. Where a task is lost meanwhile that may come back with what it held, it begins
// again after a pause, in which others have their turn.
//
// Owner: itself from start() until it has told and given its turn back; the run that wants it. Any thread.
#pragma once

#include <atomic>
#include <vector>

#include "cluster/plan_making.h"
#include "session/session.h"

namespace dtg {

class AsyncPlan final : public Timer::Timeout, private Turns::Waiter, private Pool::Task {
 public:
  // What to run, with tensors of its own.
  struct Wanted {
    std::vector<Value> feeds;
    std::vector<Tensor> tensors;
    std::vector<Value> fetches;
    std::vector<NodeId> targets;
    std::string at;
  };
  // `answer` is called once.
  AsyncPlan(Ref<Session> session, Wanted wanted, Deadline deadline, Answer<Ref<PartitionedPlan>> answer);

  void start();
  // The answer is `cause`, unless it has been given.
  void stop(const Status& cause);

 private:
  friend class Session;
  void your_turn() override { session_->runtime().pool().submit(this); }
  void run() override;
  Status go_on();
  Status rest();
  void ring() override;
  void end(Result<Ref<PartitionedPlan>> plan);
  void tell(Result<Ref<PartitionedPlan>> plan);
  RunArgs args() const { return {wanted_.feeds, tensors_, wanted_.fetches, wanted_.targets, 0, nullptr, wanted_.at}; }

  static constexpr int64_t kFirstPauseNs = 5'000'000, kLastPauseNs = 100'000'000;
  const Ref<Session> session_;
  const Wanted wanted_;
  std::vector<const Tensor*> tensors_;
  const uint64_t hash_;
  const Deadline deadline_;
  Answer<Ref<PartitionedPlan>> answer_;
  std::atomic<bool> told_{false};
  const int64_t wanted_ns_;
  const Deadline back_;  // until when a task that is lost meanwhile is waited for
  Status lost_;          // how that went the last time
  int64_t pause_ns_ = kFirstPauseNs;
  std::mutex mutex_;  // guards what follows
  Ref<PlanMaking> making_;
  Status cause_;
  int64_t rests_until_ns_ = 0;  // 0: it does not; otherwise it has no turn
  // The session's list, under its lock.
  AsyncPlan* prev_ = nullptr;
  AsyncPlan* next_ = nullptr;
};

}  // namespace dtg
