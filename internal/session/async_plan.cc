// From the wait for a turn to the answer.
#include "session/async_plan.h"

#include <algorithm>
#include <new>
#include <utility>

namespace dtg {

AsyncPlan::AsyncPlan(Ref<Session> session, Wanted wanted, Deadline deadline, Answer<Ref<PartitionedPlan>> answer)
    : session_(std::move(session)),
      wanted_(std::move(wanted)),
      tensors_([this] {
        std::vector<const Tensor*> list;
        for (const Tensor& tensor : wanted_.tensors) list.push_back(&tensor);
        return list;
      }()),
      hash_(Session::hash_of(args())),
      deadline_(deadline),
      answer_(std::move(answer)),
      wanted_ns_(session_->runtime().clock().monotonic_ns()),
      back_(session_->planning_end(deadline)) {}

void AsyncPlan::start() {
  if (Status status = session_->enter(*this); !status.ok()) return tell(std::move(status));
  retain();  // until end()
  if (session_->turns_.take(*this)) your_turn();
}

void AsyncPlan::stop(const Status& cause) {
  Ref<PlanMaking> making;
  int64_t rested_until_ns = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!cause_.ok()) return;
    cause_ = cause;
    making = making_;
    rested_until_ns = std::exchange(rests_until_ns_, 0);
  }
  tell(cause);
  if (making) return making->give_up(cause);
  if (rested_until_ns != 0) session_->runtime().timer().cancel(*this, rested_until_ns);
  else if (!session_->turns_.withdraw(*this)) return;  // it is about to see the cause
  session_->leave(*this);
  release();
}

void AsyncPlan::run() {
  Status status;
  try {
    status = go_on();
  } catch (const std::bad_alloc&) {
    status = resource_exhausted("plan a run: out of memory");
  }
  if (!status.ok()) end(std::move(status));
}

Status AsyncPlan::go_on() {
  Ref<PlanMaking> making;
  {
    const std::lock_guard lock(mutex_);
    DTG_TRY(cause_);
    making = making_;
  }
  if (!making) {
    // Who waited for the turn may find that it was for the same.
    if (Ref<PartitionedPlan> found = session_->find_kept(hash_, args())) return end(std::move(found)), Status();
    making = session_->start_plan(args(), deadline_, wanted_ns_);
    const std::lock_guard lock(mutex_);
    DTG_TRY(cause_);
    making_ = making;
  }
  if (!making->advance()) {
    making->when_answered([this] { your_turn(); });
    return {};
  }
  auto made = making->take();
  if (session_->may_plan_again(made.status(), back_)) {
    lost_ = made.status();
    return rest();
  }
  // Who was lost is told rather than that the time is over.
  end(made.status().code() == Code::deadline_exceeded && !lost_.ok() ? std::move(lost_) : std::move(made));
  return {};
}

// Whoever stops it from here on finds that it has no turn.
Status AsyncPlan::rest() {
  const Ref<AsyncPlan> self = Ref<AsyncPlan>::share(this);
  const int64_t at_ns = Deadline::after(session_->runtime().clock(), pause_ns_).at_ns;
  pause_ns_ = std::min(2 * pause_ns_, kLastPauseNs);
  {
    const std::lock_guard lock(mutex_);
    DTG_TRY(cause_);
    making_ = nullptr;
    rests_until_ns_ = at_ns;
  }
  session_->turns_.give_back();
  session_->runtime().timer().schedule(at_ns, self);
  return {};
}

void AsyncPlan::ring() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(rests_until_ns_, 0) == 0) return;  // it was stopped
  }
  if (session_->turns_.take(*this)) your_turn();
}

// The turn is over.
void AsyncPlan::end(Result<Ref<PartitionedPlan>> plan) {
  if (plan.ok() && making_) session_->keep_plan(hash_, args(), plan.value());
  session_->turns_.give_back();
  session_->leave(*this);
  tell(std::move(plan));
  release();
}

void AsyncPlan::tell(Result<Ref<PartitionedPlan>> plan) {
  if (told_.exchange(true)) return;
  if (!plan.ok()) plan = session_->refuse_run(plan.status(), args());
  const Answer<Ref<PartitionedPlan>> answer = std::move(answer_);
  answer(std::move(plan));
}

// ---- what the session has of it ----------------------------------------------------------------------------

Ref<PlanMaking> Session::start_plan(const RunArgs& args, Deadline until, int64_t wanted_ns) {
  plans_made_.add();
  return make_ref<PlanMaking>(driver_, graph_, request_of(args), until, wanted_ns);
}

Status Session::enter(AsyncPlan& plan) {
  const std::lock_guard lock(lock_);
  if (!refusal_.ok()) return refusal_;
  plan.next_ = first_plan_;
  if (first_plan_) first_plan_->prev_ = &plan;
  first_plan_ = &plan;
  return {};
}

void Session::leave(AsyncPlan& plan) {
  {
    const std::lock_guard lock(lock_);
    (plan.prev_ ? plan.prev_->next_ : first_plan_) = plan.next_;
    if (plan.next_) plan.next_->prev_ = plan.prev_;
    plan.prev_ = plan.next_ = nullptr;
  }
  if (!refuses_.load()) return;
  idle_.change([] {});
  driver_->task().observer_left();
}

// Each is taken hold of under the lock and stopped without; those that come meanwhile are refused.
void Session::stop_plans(const Status& cause) {
  std::vector<Ref<AsyncPlan>> plans;
  {
    size_t count = 0;
    lock_.lock();
    for (const AsyncPlan* plan = first_plan_; plan; plan = plan->next_) ++count;
    lock_.unlock();
    plans.reserve(count);
    const std::lock_guard lock(lock_);
    for (AsyncPlan* plan = first_plan_; plan && plans.size() < plans.capacity(); plan = plan->next_)
      plans.push_back(Ref<AsyncPlan>::share(plan));
  }
  for (const Ref<AsyncPlan>& plan : plans) plan->stop(cause);
}

}  // namespace dtg
