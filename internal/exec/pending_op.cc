// Attempts: who ends one. Under the resource's lock an pending is either waiting or it is not; whoever takes it off
// the list owes its end, be it the resource or an abort. The reference for the abort is given back by remove() when
// no abort came, and by the abort itself otherwise.
#include "exec/pending_op.h"

namespace dtg {

void PendingOpList::add(PendingOp* pending) {
  pending->next_ = nullptr;
  pending->prev_ = last_;
  (last_ ? last_->next_ : first_) = pending;
  last_ = pending;
}

void PendingOpList::remove(PendingOp* pending) {
  (pending->prev_ ? pending->prev_->next_ : first_) = pending->next_;
  (pending->next_ ? pending->next_->prev_ : last_) = pending->prev_;
  pending->next_ = pending->prev_ = nullptr;
}

void PendingOp::drop() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void PendingOp::aborted(const Status& cause) {
  resource_->withdraw_aborted(*this, cause);
  drop();
}

void WaitingResource::start(PendingOp* pending, Step* step) {
  pending->resource_ = Ref<WaitingResource>::share(this);
  PendingOpList ended;
  {
    // Locked before the step knows, so that an abort finds the pending in its place and not on the way there.
    std::lock_guard hold(mutex_);
    pending->step_ = step;
    if (step) pending->refs_.store(2, std::memory_order_relaxed);
    if (step && !step->add(pending)) {
      pending->refs_.store(1, std::memory_order_relaxed);
      pending->step_ = nullptr;
      end(*pending, ended, step->cause());
    } else {
      enter(*pending, ended);
    }
  }
  settle(ended);
}

void WaitingResource::withdraw_aborted(PendingOp& pending, const Status& cause) {
  PendingOpList ended;
  {
    std::lock_guard hold(mutex_);
    if (pending.waiting_) {
      pending.outcome_ = cause;
      pending.step_ = nullptr;  // this call is the abort, there is nothing to take off the step's list
      withdraw(pending, ended);
    }
  }
  settle(ended);
}

void WaitingResource::wait(PendingOp& pending, PendingOpList& list) {
  pending.waiting_ = true;
  list.add(&pending);
}

void WaitingResource::end(PendingOp& pending, PendingOpList& list, PendingOpList& ended, Status status) {
  list.remove(&pending);
  pending.waiting_ = false;
  end(pending, ended, std::move(status));
}

void WaitingResource::end(PendingOp& pending, PendingOpList& ended, Status status) {
  // An abort's cause, set by withdraw_aborted, stands.
  if (pending.outcome_.ok()) pending.outcome_ = std::move(status);
  ended.add(&pending);
}

void WaitingResource::settle(PendingOpList& ended) {
  while (PendingOp* const pending = ended.first()) {
    ended.remove(pending);
    // Off the step's list first: finished() may end the step.
    if (pending->step_ && pending->step_->remove(pending)) pending->drop();
    const Ref<WaitingResource> keep = pending->resource_;
    pending->finished(std::move(pending->outcome_));
    pending->drop();
  }
}

}  // namespace dtg
