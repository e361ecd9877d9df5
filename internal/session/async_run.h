// AsyncRun: a run that nobody's thread waits for. It holds its feeds and results, can be cancelled at any
// time, ends exactly once, and announces that in a completion queue. A repeated one begins again whenever it has ended well, and one for
// whose target there is a remedy (strategy/remedy.h) after the loss of a task too. Where its plan has to be made first, it begins when that
// is there.
//
// Owner: the host's op handle, and itself while it is under way. Any thread.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "session/async_plan.h"
#include "session/completion_queue.h"
#include "session/first_ill.h"
#include "session/session.h"
#include "strategy/remedy.h"

namespace dtg {

class Mending;

class AsyncRun final : public Timer::Timeout {
 public:
  // `queue` may be null: then nobody is told.
  AsyncRun(Ref<Session> session, std::vector<Tensor> feeds, Deadline deadline, Ref<CompletionQueue> queue, uint64_t tag,
           bool repeated = false);
  // Begins; from here on the end is announced whatever happens.
  void start(Ref<PartitionedPlan> plan);
  // The same, when other tasks have their parts.
  void start(std::span<const Value> feeds, std::span<const Value> fetches, std::span<const NodeId> targets, std::string at = {});
  // Instead of start(): the end, and why nothing begins, is announced.
  void refuse(Status why);
  // Before start(): who hears of the end where there is no queue, once, on whatever thread. Such a run is part of another one.
  void tell(std::function<void(AsyncRun&)> told) { told_ = std::move(told); }
  // Before start(): where a connection is lost it is not repeated here, as its work may be given to another task. `write`: the number of
  // an earlier attempt; 0: there was none.
  void attempt_once(uint64_t write) {
    once_ = true;
    attempts_ = write ? 1 : 0;
    write_ = write;
  }
  // Before start(): the number of its updates; `again`: that of an earlier run, which this repeats.
  void known_by(uint64_t write, bool again) {
    write_ = write;
    again_ = again;
  }
  // Instead of start(), a repeated one that goes on after a loss. `behind`, where it is not null, runs the same: this begins when that has
  // ended, as after a loss.
  void start(Ref<PartitionedPlan> plan, Remedy remedy, const Ref<AsyncRun>& behind);
  // Ends one for another that runs the same.
  void give_way();
  // Of a repeated one with a remedy: applies that now. It has when mended() is at least what this returns; or the run has ended.
  int mend();
  int mended() const { return mended_.load(); }
  bool is_stopped() const { return stopped_.load(); }
  // The target of a repeated one with a remedy.
  NodeId target() const { return target_; }
  // Once such a run has ended with an error: may it be repeated, with write()? Nothing has run, or all that took place is known by that.
  bool may_be_repeated() const { return may_repeat_; }
  uint64_t write() const { return write_; }
  // Sticky and idempotent; a run that has ended stays as it is.
  void cancel();
  bool finished() const { return finished_.load(std::memory_order_acquire); }
  // Valid once finished: the outcome, what was run, and fetch i (moved out, so once).
  const Status& outcome() const { return outcome_; }
  Result<Tensor> take(size_t i);
  const Ref<PartitionedPlan>& plan() const { return plan_; }
  size_t result_count() const { return results_.size(); }

 private:
  friend class Session;
  // What runs, once there is a plan.
  class Body final : public SessionRun {
   public:
    Body(AsyncRun& owner, PartitionedPlan& plan) : SessionRun(*owner.session_, plan, Caller::is_told, owner.deadline_), owner_(owner) {}
    using Run::give;
    using Run::renew;
    using Run::repeat;
    Status stopped_by() { return stop_cause(); }

   private:
    void ended(Status status) override { owner_.ended(std::move(status)); }
    AsyncRun& owner_;
  };

  void expect_end();
  void planned(Result<Ref<PartitionedPlan>> plan);
  Status begin(Ref<PartitionedPlan> plan);
  bool try_again(const Status& status);
  void plan_again(Deadline until);
  bool mend_first(const Status& status);
  bool mends(const Status& status);
  bool start_mending(Remedy remedy, Deadline until, bool keeps_state, int64_t pause_ns, std::function<void(Status)> told);
  void healed(Status status);
  bool let_follow(AsyncRun& next);
  void begin_behind();
  void ended(Status status);
  void ring() override;
  void stop_early(const Status& cause);
  Status again();
  void end(Status status);
  bool look_for_ill(const Status& status);
  void look_on();
  void conclude(Status status);
  void say_ended(const Status& status) const;
  void announce(Status status);

  const Ref<Session> session_;
  const std::vector<Tensor> feeds_;
  std::vector<const Tensor*> feed_list_;
  const Deadline deadline_;
  const Ref<CompletionQueue> queue_;
  const uint64_t tag_;
  const bool repeated_;
  std::function<void(AsyncRun&)> told_;
  std::mutex begin_mutex_;  // guards these until the body is there, which then stays, and aside_
  Status stopped_early_;
  Ref<AsyncPlan> planning_;
  Ref<Mending> mending_;
  Ref<PartitionedPlan> plan_;
  std::optional<Body> body_;
  int attempts_ = 0;    // at the present run
  uint64_t write_ = 0;  // the number of the first
  bool once_ = false;   // no attempts but the first are made here
  bool may_repeat_ = false;
  bool again_ = false;  // the caller has asked for a repetition
  Status cut_short_;    // why the last was
  Deadline back_{0};    // until when whoever was lost is waited for; 0: nobody was
  // Of a repeated one that goes on after a loss.
  std::optional<Remedy> remedy_;
  NodeId target_ = kNoNode;
  int wanted_ = 0;                  // calls of mend(), under begin_mutex_
  Ref<PartitionedPlan> mended_on_;  // the last run of the mending that is through; under begin_mutex_
  int mending_for_ = 0;             // so many, the mending that is under way
  std::atomic<int> mended_{0};      // so many have been answered
  int losses_ = 0;                  // since a run of it ended well
  int64_t lost_at_ns_ = 0;          // the first of them
  Ref<AsyncRun> behind_;            // begins when this has ended; under begin_mutex_, as is the next
  bool has_announced_ = false;
  // After a loss that is not finite: what was the first such value. The end is announced when that is known.
  std::optional<IllSearch> search_;
  std::vector<Value> ill_feeds_;
  Deadline search_end_;
  Ref<AsyncRun> aside_;  // the part of the search that is under way
  std::vector<Tensor> results_;
  std::atomic<bool> stopped_{false};  // or ended, whichever came first
  std::atomic<bool> finished_{false};
  std::mutex results_mutex_;
  Status outcome_;
};

}  // namespace dtg
