// Runs of a simulated host: no thread waits for one, its end comes by a queue, and one that ends later than it may is noted. The fiber of
// the process.
#pragma once

#include <utility>
#include <vector>

#include "process.h"
#include "session/async_run.h"

namespace dtg::sim {

class TimedRuns final {
 public:
  explicit TimedRuns(Process& process) : process_(process), clock_(process.clock()) {}

  // What may take `args.timeout_ns`; late by more than 100 ms is an error of its own.
  Status run(Session& session, const RunArgs& args, std::vector<Tensor>* fetched) {
    const Status status = make(session, args, fetched);
    process_.hears(status);
    return status;
  }
  // Since it was asked last.
  bool was_late() { return std::exchange(late_, false); }
  // A run that is not made here was.
  void note_late() { late_ = true; }

 private:
  Status make(Session& session, const RunArgs& args, std::vector<Tensor>* fetched) {
    const int64_t began = clock_.monotonic_ns();
    DTG_ASSIGN(const Ref<AsyncRun> run, session.run_async(args, queue_, ++tag_));
    CompletionQueue::Event event;
    while (queue_->next({&event, 1}, clock_, Deadline::after(clock_, args.timeout_ns + kSecond)) == 0) {
      late_ = true;
      run->cancel();
    }
    if (clock_.monotonic_ns() - began > args.timeout_ns + 100 * kMillisecond) late_ = true;
    for (size_t i = 0; fetched && event.status.ok() && i < args.fetches.size(); ++i) fetched->push_back(run->take(i).take());
    return event.status;
  }

  Process& process_;
  const Clock& clock_;
  const Ref<CompletionQueue> queue_ = CompletionQueue::create().take();
  uint64_t tag_ = 0;
  bool late_ = false;
};

}  // namespace dtg::sim
