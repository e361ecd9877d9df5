// The end of a remote value, and who waits for it.
#include "train/remote_value.h"

namespace dtg {

Status RemoteValue::wait(const Clock& clock, Deadline deadline, Cancellation* cancellation) {
  Status outcome;
  const bool over = wait_for(told_, clock, deadline, cancellation, [&] {
    if (ended_) outcome = outcome_;
    return ended_;
  });
  if (over) return outcome;
  if (cancellation && cancellation->is_cancelled()) return cancellation->status();
  return deadline_exceeded("fetch a remote value: its closure has not ended yet; give it more time, or cancel what was scheduled")
      .in_phase("schedule");
}

bool RemoteValue::ended() const {
  bool ended = false;
  told_.change([&] { ended = ended_; });
  return ended;
}

Result<std::vector<Tensor>> RemoteValue::values() const {
  std::vector<Tensor> values;
  Status outcome;
  told_.change([&] {
    if (!ended_) outcome = failed_precondition("take the values of a closure that has not ended; fetch waits for it");
    else outcome = outcome_;
    if (outcome.ok()) values = values_;
  });
  if (!outcome.ok()) return outcome;
  return values;
}

bool RemoteValue::read_inputs(std::vector<Tensor>* inputs) const {
  bool ended = false;
  told_.change([&] {
    ended = ended_;
    *inputs = inputs_;
  });
  return !ended;
}

void RemoteValue::end(Status outcome, std::vector<Tensor> values) {
  std::vector<Tensor> dropped;
  told_.change([&] {
    ended_ = true;
    outcome_ = outcome;
    values_ = std::move(values);
    dropped.swap(inputs_);
  });
  if (queue_) queue_->push(tag_, std::move(outcome));
}

}  // namespace dtg
