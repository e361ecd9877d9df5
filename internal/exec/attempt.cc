// Attempts: who ends one. Under the resource's lock an attempt is either waiting or it is not; whoever takes it off
// the list owes its end, be it the resource or an abort. The reference for the abort is given back by remove() when
// no abort came, and by the abort itself otherwise.
#include "exec/attempt.h"

namespace dtg {

void AttemptList::add(Attempt* attempt) {
  attempt->next_ = nullptr;
  attempt->prev_ = last_;
  (last_ ? last_->next_ : first_) = attempt;
  last_ = attempt;
}

void AttemptList::remove(Attempt* attempt) {
  (attempt->prev_ ? attempt->prev_->next_ : first_) = attempt->next_;
  (attempt->next_ ? attempt->next_->prev_ : last_) = attempt->prev_;
  attempt->next_ = attempt->prev_ = nullptr;
}

void Attempt::drop() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void Attempt::aborted(const Status& cause) {
  resource_->withdraw_aborted(*this, cause);
  drop();
}

void WaitingResource::start(Attempt* attempt, Step* step) {
  attempt->resource_ = Ref<WaitingResource>::share(this);
  AttemptList ended;
  {
    // Locked before the step knows, so that an abort finds the attempt in its place and not on the way there.
    std::lock_guard hold(mutex_);
    attempt->step_ = step;
    if (step) attempt->refs_.store(2, std::memory_order_relaxed);
    if (step && !step->add(attempt)) {
      attempt->refs_.store(1, std::memory_order_relaxed);
      attempt->step_ = nullptr;
      end(*attempt, ended, step->cause());
    } else {
      enter(*attempt, ended);
    }
  }
  settle(ended);
}

void WaitingResource::withdraw_aborted(Attempt& attempt, const Status& cause) {
  AttemptList ended;
  {
    std::lock_guard hold(mutex_);
    if (attempt.waiting_) {
      attempt.outcome_ = cause;
      attempt.step_ = nullptr;  // this call is the abort, there is nothing to take off the step's list
      withdraw(attempt, ended);
    }
  }
  settle(ended);
}

void WaitingResource::wait(Attempt& attempt, AttemptList& list) {
  attempt.waiting_ = true;
  list.add(&attempt);
}

void WaitingResource::end(Attempt& attempt, AttemptList& list, AttemptList& ended, Status status) {
  list.remove(&attempt);
  attempt.waiting_ = false;
  end(attempt, ended, std::move(status));
}

void WaitingResource::end(Attempt& attempt, AttemptList& ended, Status status) {
  // An abort's cause, set by withdraw_aborted, stands.
  if (attempt.outcome_.ok()) attempt.outcome_ = std::move(status);
  ended.add(&attempt);
}

void WaitingResource::settle(AttemptList& ended) {
  while (Attempt* const attempt = ended.first()) {
    ended.remove(attempt);
    // Off the step's list first: finished() may end the step.
    if (attempt->step_ && attempt->step_->remove(attempt)) attempt->drop();
    const Ref<WaitingResource> keep = attempt->resource_;
    attempt->finished(std::move(attempt->outcome_));
    attempt->drop();
  }
}

}  // namespace dtg
