// What became of a run that updates other tasks: who may repeat it, what an error says of it, and what the cluster knows. See session.h for
// threads.
#include "base/whereabouts.h"
#include "session/session.h"

namespace dtg {

Status Session::check_repetition(const PartitionedPlan& plan, uint64_t write) const {
  if (write >= sequence_.load(std::memory_order_relaxed)) {
    return invalid_argument("repeat the run of write %llu: this session has made no such run", static_cast<unsigned long long>(write));
  }
  if (plan.is_repeatable()) return {};
  return failed_precondition(
      "repeat the run of write %llu: only runs that update variables of other tasks, and nothing of this one, can be repeated; it puts into "
      "queues or accumulators, fetches what an update gives, or needs no other task",
      static_cast<unsigned long long>(write));
}

Status Session::with_write(Status status, const PartitionedPlan& plan, uint64_t write) {
  const Code code = status.code();
  const bool unknown = code == Code::deadline_exceeded || code == Code::unavailable || code == Code::cancelled || code == Code::aborted;
  if (!unknown || !plan.writes_elsewhere()) return status;
  return {code,
          status.message() + format("; its outcome is unknown: write %llu%s", static_cast<unsigned long long>(write),
                                    plan.is_repeatable() ? ", which may be repeated" : ""),
          status.origin()};
}

Result<Driver::Outcome> Session::outcome(uint64_t write, int64_t timeout_ns) {
  DTG_TRY(told_by(check_open(), driver_->task().name(), "ask"));
  DTG_ASSIGN(const Deadline until, deadline(timeout_ns));
  if (write == 0) {
    return invalid_argument(
        "ask for the outcome of write 0: that is no run; a run whose write is 0 still has failed before it asked another task, and has "
        "changed nothing");
  }
  if (write >= sequence_.load(std::memory_order_relaxed)) {
    return invalid_argument("ask for the outcome of write %llu: this session has made no such run", static_cast<unsigned long long>(write));
  }
  return told_by(driver_->outcome(write, until), driver_->task().name(), "ask");
}

}  // namespace dtg
