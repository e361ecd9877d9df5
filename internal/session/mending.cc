// From try to try, and from run to run.
#include "session/mending.h"

#include <algorithm>

#include "session/async_run.h"

namespace dtg {
namespace {

constexpr int64_t kFirstPauseNs = 5'000'000, kLastPauseNs = 500'000'000;
// One of the runs, none of which waits for anybody but the tasks that it needs.
constexpr int64_t kPartNs = int64_t{60} * 1'000'000'000;

}  // namespace

Mending::Mending(Ref<Session> session, Remedy remedy, Deadline until, bool keeps_state, int64_t pause_ns, std::function<void(Status)> told)
    : session_(std::move(session)),
      remedy_(std::move(remedy)),
      until_(until),
      keeps_state_(keeps_state),
      pause_ns_(pause_ns),
      told_(std::move(told)) {}

void Mending::start() {
  if (pause_ns_ == 0) begin();
  else rest();
}

void Mending::stop(const Status& cause) {
  Ref<AsyncRun> part;
  int64_t rests_until_ns = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!cause_.ok()) return;
    cause_ = cause;
    part = part_;
    rests_until_ns = rests_until_ns_;
  }
  // A part that ends finds the cause; a pause has nothing to end for.
  if (part) part->cancel();
  if (rests_until_ns == 0) return;
  session_->runtime().timer().cancel(*this, rests_until_ns);
  end(cause);
}

Status Mending::cause() {
  const std::lock_guard lock(mutex_);
  rests_until_ns_ = 0;
  return cause_;
}

void Mending::begin() {
  if (Status stopped = cause(); !stopped.ok()) return end(std::move(stopped));
  levelling_.emplace(remedy_);
  go_on({});
}

void Mending::go_on(const std::vector<Tensor>& fetched) {
  auto wanted = levelling_->next(fetched);
  if (!wanted.ok()) return end(wanted.status());
  if (wanted.value().is_nothing()) return end({});
  const Deadline part_until{std::min(until_.at_ns, Deadline::after(session_->runtime().clock(), kPartNs).at_ns)};
  auto part = make_ref<AsyncRun>(session_, std::vector<Tensor>(), part_until, nullptr, 0);
  part->tell([self = Ref<Mending>::share(this)](AsyncRun& ended) { self->part_ended(ended); });
  Status stopped;
  {
    const std::lock_guard lock(mutex_);
    stopped = cause_;
    if (stopped.ok()) part_ = part;
  }
  if (!stopped.ok()) return end(std::move(stopped));
  part->start({}, wanted.value().fetches, wanted.value().targets);
}

void Mending::part_ended(AsyncRun& part) {
  Status status;
  {
    const std::lock_guard lock(mutex_);
    part_ = nullptr;
    status = cause_;
  }
  if (!status.ok()) return end(std::move(status));
  if (!part.outcome().ok()) return failed(part.outcome());
  last_ = part.plan();
  std::vector<Tensor> fetched;
  for (size_t i = 0; i < part.result_count(); ++i) {
    auto value = part.take(i);
    if (!value.ok()) return end(value.status());
    fetched.push_back(value.take());
  }
  go_on(fetched);
}

// One that has come back with nothing in it will not do better the next time.
void Mending::failed(Status status) {
  const Code code = status.code();
  const bool may_pass = code == Code::unavailable || code == Code::deadline_exceeded || (code == Code::aborted && keeps_state_);
  if (!may_pass || session_->is_over() || until_.passed(session_->runtime().clock())) return end(std::move(status));
  rest();
}

void Mending::rest() {
  pause_ns_ = std::clamp(2 * pause_ns_, kFirstPauseNs, kLastPauseNs);
  const int64_t at_ns = Deadline::after(session_->runtime().clock(), pause_ns_).at_ns;
  Status stopped;
  {
    const std::lock_guard lock(mutex_);
    stopped = cause_;
    if (stopped.ok()) rests_until_ns_ = at_ns;
  }
  if (!stopped.ok()) return end(std::move(stopped));
  session_->runtime().timer().schedule(at_ns, Ref<Timer::Timeout>::share(this));
}

void Mending::end(Status status) {
  std::function<void(Status)> told;
  {
    const std::lock_guard lock(mutex_);
    told = std::exchange(told_, nullptr);
  }
  if (told) told(std::move(status));
}

}  // namespace dtg
