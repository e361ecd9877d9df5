// The end of a collective, for whoever wants to know.
#include "session/collective_run.h"

#include "base/whereabouts.h"

namespace dtg {

void CollectiveRun::start(CollectiveCall what, Deadline deadline) {
  if (queue_) queue_->expect();
  call_ = make_ref<GroupCall>(
      std::move(what), 0, deadline,
      [self = Ref<CollectiveRun>::share(this)](const Status& status, const Tensor& result) { self->ended(status, result); });
  group_->start(call_);
}

void CollectiveRun::ended(const Status& why, const Tensor& result) {
  const Status status = told_by(why, group_->self_task(), "run");
  changed_.change([&] {
    over_ = true;
    outcome_ = status;
    if (status.ok()) result_ = result;
    told_.store(true, std::memory_order_release);
  });
  if (queue_) queue_->push(tag_, status);
}

Status CollectiveRun::wait(const Clock& clock) {
  // Mostly the others are here as well, and what they send is on its way.
  const auto is_told = [this] { return told_.load(std::memory_order_acquire); };
  if (!group_->loop().poll_until(is_told)) changed_.wait(clock, Deadline::never(), [this] { return over_; });
  return outcome_;
}

void CollectiveRun::cancel() { group_->cancel(call_); }

Result<Tensor> CollectiveRun::take() {
  Tensor taken;
  Status status = failed_precondition("take the result of a collective: it is still under way");
  changed_.change([&] {
    if (!over_) return;
    status = outcome_;
    if (!status.ok()) return;
    taken = std::exchange(result_, Tensor());
    if (!taken.valid()) status = failed_precondition("take the result of a collective: it was taken already, or there is none");
  });
  DTG_TRY(status);
  return taken;
}

// The group ends it by the deadline.
Status form_and_wait(Group& group, size_t least, const Clock& clock, Deadline deadline) {
  struct Forming final : RefCounted {
    Condition changed;
    bool over = false;
    Status status;
  };
  const auto forming = make_ref<Forming>();
  group.form(least, deadline, [forming](const Status& status) {
    forming->changed.change([&] {
      forming->over = true;
      forming->status = status;
    });
  });
  forming->changed.wait(clock, Deadline::never(), [&] { return forming->over; });
  return forming->status;
}

}  // namespace dtg
