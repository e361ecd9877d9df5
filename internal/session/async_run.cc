// The life of an asynchronous run: wait for a frame, run on the pool, collect, announce.
#include "session/async_run.h"

namespace dtg {
namespace {

// What fails for lack of memory on a thread of our own is the end of the run, not of the process.
template <class Fn>
Status contained(Fn&& fn) {
  try {
    return fn();
  } catch (const std::bad_alloc&) {
    return resource_exhausted("run: out of memory");
  }
}

}  // namespace

AsyncRun::AsyncRun(Ref<Session> session, Ref<Plan> plan, std::vector<Tensor> feeds, Deadline deadline, Ref<CompletionQueue> queue,
                   uint64_t tag, bool repeated)
    : session_(std::move(session)),
      plan_(std::move(plan)),
      feeds_(std::move(feeds)),
      deadline_(deadline),
      queue_(std::move(queue)),
      tag_(tag),
      repeated_(repeated),
      results_(plan_->fetches().size()) {}

void AsyncRun::start() {
  // First what may fail while the run is still nobody's promise.
  if (queue_) queue_->expect();
  if (!repeated_) session_->runtime_->timer().schedule(deadline_.at_ns, Ref<Timer::Alarm>::share(this));
  retain();  // dropped in end()
  Frame* frame = nullptr;
  Status status = contained([&]() -> Status {
    DTG_ASSIGN(frame, plan_->lease(this));
    return {};
  });
  if (!status.ok()) return end(std::move(status));
  if (frame) launch(*frame);
}

void AsyncRun::granted(Frame& frame) { launch(frame); }

void AsyncRun::launch(Frame& frame) {
  frame.begin(session_->sequence_.fetch_add(1, std::memory_order_relaxed), deadline_);
  active_.frame = &frame;
  Status status = session_->enter(active_);
  // Between two runs nothing is under way that the close could have cancelled; the end is the same.
  if (again_ && status.code() == Code::failed_precondition) status = cancelled("the session was closed");
  if (status.ok()) {
    status = contained([&] {
      std::vector<const Tensor*> feeds;
      for (const Tensor& feed : feeds_) feeds.push_back(&feed);
      return Session::bind(*plan_, frame, feeds, results_);
    });
    if (!status.ok()) session_->leave(active_);
  }
  if (status.ok()) {
    const std::lock_guard lock(mutex_);
    if (stop_cause_.ok()) frame_ = &frame;
    else frame.step().abort(stop_cause_);
  }
  if (status.ok()) {
    status = contained([&]() -> Status {
      frame.start(this);
      return {};
    });
    if (status.ok()) return;
    const std::lock_guard lock(mutex_);
    frame_ = nullptr;
    session_->leave(active_);
  }
  plan_->give_back(frame);
  end(status);
}

void AsyncRun::finished(Frame& frame) {
  {
    const std::lock_guard lock(mutex_);
    frame_ = nullptr;  // from here on nobody cancels into a frame that serves another run
  }
  Status status = frame.step().aborted() ? frame.step().cause() : Status();
  if (status.ok()) status = contained([&] { return Session::collect(*plan_, frame, results_); });
  session_->leave(active_);
  plan_->give_back(frame);
  if (repeated_ && status.ok() && again()) return;
  end(std::move(status));
}

// The next of repeated runs; false when it cannot begin, and the end is announced instead.
bool AsyncRun::again() {
  again_ = true;
  session_->runs_.add();
  Frame* frame = nullptr;
  Status status = contained([&]() -> Status {
    {
      const std::lock_guard lock(mutex_);
      DTG_TRY(stop_cause_);
    }
    if (!plan_->is_current()) return aborted("run again: a connection or a resource that the run uses is gone; start it anew");
    DTG_ASSIGN(frame, plan_->lease(this));
    return {};
  });
  if (!status.ok()) end(std::move(status));
  else if (frame) launch(*frame);
  return true;
}

void AsyncRun::end(Status status) {
  session_->runs_.add();
  if (!status.ok()) session_->failures_.add();
  if (!repeated_) session_->runtime_->timer().cancel(*this, deadline_.at_ns);
  {
    const std::lock_guard lock(results_mutex_);
    outcome_ = status;
    if (!status.ok()) results_.assign(results_.size(), Tensor());
    finished_.store(true, std::memory_order_release);
  }
  if (queue_) queue_->push(tag_, std::move(status));
  release();
}

void AsyncRun::stop(const Status& cause) {
  bool queued = false;
  {
    const std::lock_guard lock(mutex_);
    if (!stop_cause_.ok()) return;
    stop_cause_ = cause;
    if (frame_) frame_->step().abort(cause);
    else queued = !finished();
  }
  // A run that still waits for a frame has nothing to abort: it leaves the queue and ends here.
  if (queued && plan_->withdraw(this)) end(cause);
}

void AsyncRun::cancel() { stop(cancelled("the run was cancelled by its caller")); }
void AsyncRun::ring() { stop(deadline_exceeded("the run's deadline passed; raise timeout_ns, or cancel what it waits for")); }

Result<Tensor> AsyncRun::take(size_t i) {
  const std::lock_guard lock(results_mutex_);
  if (!finished()) return failed_precondition("take a result: the run has not ended; wait for its completion");
  if (!outcome_.ok()) return outcome_;
  if (i >= results_.size()) return invalid_argument("take result %zu: the run has %zu", i, results_.size());
  if (!results_[i].valid()) return failed_precondition("take result %zu: it was taken already", i);
  return std::exchange(results_[i], Tensor());
}

Result<Ref<AsyncRun>> Session::run_async(const RunArgs& args, Ref<CompletionQueue> queue, uint64_t tag) {
  DTG_TRY(check(args));
  DTG_ASSIGN(const Deadline until, deadline(args.timeout_ns));
  DTG_ASSIGN(Ref<Plan> plan, find_plan(args, until));
  std::vector<Tensor> feeds;
  for (const Tensor* tensor : args.feed_tensors) feeds.push_back(*tensor);
  auto run = make_ref<AsyncRun>(Ref<Session>::share(this), std::move(plan), std::move(feeds), until, std::move(queue), tag);
  run->start();
  return run;
}

Result<Ref<AsyncRun>> Session::run_repeatedly(std::span<const NodeId> targets, Ref<CompletionQueue> queue, uint64_t tag) {
  if (targets.empty()) return invalid_argument("run repeatedly: nothing is asked for; name at least one target");
  RunArgs args;
  args.targets = targets;
  DTG_ASSIGN(const Deadline until, deadline(0));
  DTG_ASSIGN(Ref<Plan> plan, find_plan(args, until));
  auto run =
      make_ref<AsyncRun>(Ref<Session>::share(this), std::move(plan), std::vector<Tensor>(), Deadline::never(), std::move(queue), tag, true);
  run->start();
  return run;
}

}  // namespace dtg
