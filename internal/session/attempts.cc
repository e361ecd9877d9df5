// The attempts at a run that somebody waits for: on a plan that is not out of date, and where a task was lost, once more. See session.h
// for threads.
#include <algorithm>

#include "base/whereabouts.h"
#include "session/session.h"

namespace dtg {

// A run whose caller waits for it. On the caller's stack.
class Session::WaitingRun final : public SessionRun {
 public:
  WaitingRun(Session& session, PartitionedPlan& plan, Deadline deadline, Cancellation* cancellation)
      : SessionRun(session, plan, Caller::waits, deadline, cancellation) {}
  using Run::give;

 private:
  void ended(Status) override {}
};

Status Session::run_plan(Ref<PartitionedPlan>& plan, const RunArgs& args, std::span<Tensor> fetched, Deadline until) {
  Attempts attempts;
  if (args.write && *args.write != 0) {
    DTG_TRY(check_repetition(*plan, *args.write));
    attempts.write = *args.write;
  }
  if (plan->may_be_made_afresh()) attempts.given = given_of(fetched);
  for (;;) {
    Status status = run_once(*plan, args, fetched, until, attempts);
    if (attempts.remedy == PartitionedPlan::Remedy::afresh) status = run_first(*plan, args, until, attempts, std::move(status));
    if (attempts.remedy == PartitionedPlan::Remedy::once_more) attempts.begin_anew(fetched);
    if (attempts.remedy == PartitionedPlan::Remedy::none) {
      count_run(status);
      if (status.ok()) return status;
      status = told_by(std::move(status), driver_->task().name(), "run");
      return with_write(with_absentees(with_first_ill(std::move(status), args, until)), *plan, attempts.write);
    }
    if (attempts.remedy == PartitionedPlan::Remedy::again && attempts.back.at_ns == 0) attempts.back = return_of(*plan, until);
    auto next = plan_again(args, until, attempts);
    if (!next.ok()) {
      count_run(next.status());
      if (attempts.remedy != PartitionedPlan::Remedy::again) return next.status();
      status = told_by(outcome_unknown(*plan, next.status(), status), driver_->task().name(), "run");
      return with_write(std::move(status), *plan, attempts.write);
    }
    plan = next.take();
  }
}

// Which of them are the caller's to be written into.
uint64_t Session::given_of(std::span<const Tensor> fetched) {
  uint64_t given = 0;
  for (size_t i = 0; i < fetched.size() && i < 64; ++i) given |= uint64_t{fetched[i].valid()} << i;
  return given;
}

// It is another run, by another number. What the last one gave may be memory that is in use elsewhere, so it is not written into.
void Session::Attempts::begin_anew(std::span<Tensor> fetched) {
  write = 0;
  count = 0;
  back = {0};
  for (size_t i = 0; i < fetched.size() && i < 64; ++i) {
    if ((given >> i & 1) == 0) fetched[i] = Tensor();
  }
}

// Then the run may be made once more. An error: it may not, as who was lost has not come back, or not with what it held.
Status Session::run_first(const PartitionedPlan& plan, const RunArgs& args, Deadline until, Attempts& attempts, Status status) {
  const bool keeps_state = plan.lost_keep_state();
  if (attempts.back.at_ns == 0) attempts.back = return_of(plan, until);
  for (;;) {
    const int64_t left_ns = std::max<int64_t>(1, attempts.back.left_ns(runtime_->clock()));
    const Status made = run({{}, {}, {}, {&attempts.first, 1}, left_ns, args.cancellation}, {});
    attempts.remedy = made.ok() ? PartitionedPlan::Remedy::once_more : PartitionedPlan::Remedy::none;
    if (made.ok()) return status;
    const bool may_pass = made.code() == Code::unavailable || (made.code() == Code::aborted && keeps_state);
    if (!may_pass || attempts.back.passed(runtime_->clock())) return outcome_unknown(plan, made, status);
    if (Status stopped = pause(attempts.back, args.cancellation); !stopped.ok()) return stopped;
  }
}

Status Session::run_once(PartitionedPlan& plan, const RunArgs& args, std::span<Tensor> fetched, Deadline until, Attempts& attempts) {
  WaitingRun run(*this, plan, until, args.cancellation);
  ++attempts.count;
  if (attempts.write == 0) attempts.write = run.sequence();
  else run.repeat(attempts.write);
  if (args.write) *args.write = attempts.write;
  run.give(args.feed_tensors, fetched);
  Status status = plan.run(run);
  attempts.remedy = plan.ended(run, status);
  if (attempts.remedy == PartitionedPlan::Remedy::afresh) attempts.first = plan.first(run);
  const bool often = attempts.remedy == PartitionedPlan::Remedy::anew && attempts.count > kAttemptsAnew;
  const bool too_many = attempts.remedy >= PartitionedPlan::Remedy::afresh && fetched.size() > 64;
  if (often || too_many) attempts.remedy = PartitionedPlan::Remedy::none;
  return status;
}

// What only reads has updated nothing, however it ended.
Status Session::outcome_unknown(const PartitionedPlan& plan, const Status& status, const Status& before) {
  const bool writes = plan.writes_elsewhere();
  // That a task did not come back is told by how it went.
  const bool absent = status.code() == Code::unavailable || status.code() == Code::deadline_exceeded;
  if (absent) {
    return before.with_context(writes ? "run, whose updates may have taken place and which could not be repeated in time"
                                      : "run, which could not be repeated in time");
  }
  return status.with_context("repeat a run that was cut short (" + before.message() + ")" +
                             (writes ? ", whose updates may have taken place" : ""));
}

Deadline Session::return_of(const PartitionedPlan& plan, Deadline until) const {
  return {std::min(Deadline::after(runtime_->clock(), plan.lost_keep_state() ? kReturnNs : kReturnEmptyNs).at_ns, until.at_ns)};
}

// From the second attempt on with a pause, so that a task that is lost again and again is not asked without end.
Result<Ref<PartitionedPlan>> Session::plan_again(const RunArgs& args, Deadline until, const Attempts& attempts) {
  const bool lost = attempts.remedy == PartitionedPlan::Remedy::again;
  if (!lost) return find_plan(args, until);
  if (attempts.count > 1) DTG_TRY(pause(attempts.back, args.cancellation));
  if (attempts.back.passed(runtime_->clock())) return unavailable("nobody came back in time");
  return find_plan(args, attempts.back);
}

}  // namespace dtg
