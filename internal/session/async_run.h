// AsyncRun: a run that nobody's thread waits for. It holds its feeds and results, can be cancelled at any
// time, ends exactly once, and announces that in a completion queue. A repeated one begins again whenever it has ended well.
//
// Owner: the host's op handle, and itself while it is under way. Any thread.
#pragma once

#include <mutex>
#include <vector>

#include "session/completion_queue.h"
#include "session/session.h"

namespace dtg {

class AsyncRun final : public Timer::Timeout, private SessionRun {
 public:
  // `queue` may be null: then nobody is told.
  AsyncRun(Ref<Session> session, Ref<PartitionedPlan> plan, std::vector<Tensor> feeds, Deadline deadline, Ref<CompletionQueue> queue,
           uint64_t tag, bool repeated = false);
  // Begins; from here on the end is announced whatever happens.
  void start();
  // Sticky and idempotent; a run that has ended stays as it is.
  void cancel();
  bool finished() const { return finished_.load(std::memory_order_acquire); }
  // Valid once finished: the outcome, and fetch i (moved out, so once).
  const Status& outcome() const { return outcome_; }
  Result<Tensor> take(size_t i);
  size_t result_count() const { return results_.size(); }

 private:
  void ended(Status status) override;
  void ring() override;
  void stop_early(const Status& cause);
  Status again();
  void announce(Status status);

  const Ref<Session> session_;
  const Ref<PartitionedPlan> plan_;
  const std::vector<Tensor> feeds_;
  std::vector<const Tensor*> feed_list_;
  const Ref<CompletionQueue> queue_;
  const uint64_t tag_;
  const bool repeated_;
  std::vector<Tensor> results_;
  std::atomic<bool> stopped_{false};  // or ended, whichever came first
  std::atomic<bool> finished_{false};
  std::mutex results_mutex_;
  Status outcome_;
};

}  // namespace dtg
