// What an asynchronous run adds to one that is waited for: a deadline of its own, a place for the results, an announcement.
#include "session/async_run.h"

#include "base/whereabouts.h"
#include "exec/step_interrupt.h"
#include "session/mending.h"

namespace dtg {
namespace {

// How often in a row a repeated run is mended at once; after that it rests before.
constexpr int kAtOnce = 2;
constexpr int64_t kRestNs = 200'000'000;

}  // namespace

AsyncRun::AsyncRun(Ref<Session> session, std::vector<Tensor> feeds, Deadline deadline, Ref<CompletionQueue> queue, uint64_t tag,
                   bool repeated)
    : session_(std::move(session)),
      feeds_(std::move(feeds)),
      deadline_(deadline),
      queue_(std::move(queue)),
      tag_(tag),
      repeated_(repeated) {
  for (const Tensor& feed : feeds_) feed_list_.push_back(&feed);
}

// First what may fail while the run is still nobody's promise. Once the timer has it, it may ring, and the run may end.
void AsyncRun::expect_end() {
  if (queue_) queue_->expect();
  retain();  // dropped in announce()
  try {
    session_->runtime().timer().schedule(deadline_.at_ns, Ref<Timer::Timeout>::share(this));
  } catch (...) {
    release();
    throw;
  }
}

void AsyncRun::start(Ref<PartitionedPlan> plan) {
  results_.resize(plan->request().fetches.size());
  expect_end();
  if (Status status = begin(std::move(plan)); !status.ok()) ended(std::move(status));
}

void AsyncRun::start(std::span<const Value> feeds, std::span<const Value> fetches, std::span<const NodeId> targets, std::string at) {
  results_.resize(fetches.size());
  AsyncPlan::Wanted wanted;
  wanted.feeds.assign(feeds.begin(), feeds.end());
  wanted.tensors = feeds_;
  wanted.fetches.assign(fetches.begin(), fetches.end());
  wanted.targets.assign(targets.begin(), targets.end());
  wanted.at = std::move(at);
  const Ref<AsyncPlan> planning = planning_ =
      make_ref<AsyncPlan>(session_, std::move(wanted), deadline_,
                          [self = Ref<AsyncRun>::share(this)](Result<Ref<PartitionedPlan>> plan) { self->planned(std::move(plan)); });
  expect_end();
  planning->start();
}

void AsyncRun::refuse(Status why) {
  expect_end();
  end(std::move(why));
}

void AsyncRun::planned(Result<Ref<PartitionedPlan>> plan) {
  Status status = plan.ok() ? begin(plan.take()) : told_by(plan.status(), session_->driver().task().name(), "prepare");
  if (status.ok()) return;
  may_repeat_ = once_;  // nothing has begun
  // Whoever has stopped the run says why it ends.
  end(cut_short_.ok() || stopped_.load() ? std::move(status) : Session::outcome_unknown(*plan_, status, cut_short_));
}

// An error where nothing has begun.
Status AsyncRun::begin(Ref<PartitionedPlan> plan) {
  {
    const std::lock_guard lock(begin_mutex_);
    planning_ = nullptr;
    plan_ = std::move(plan);
    body_.emplace(*this, *plan_);
    if (again_) DTG_TRY(session_->check_repetition(*plan_, write_));
    ++attempts_;
    if (write_ == 0) write_ = body_->sequence();
    else body_->repeat(write_);
    body_->give(feed_list_, results_);
    if (!stopped_early_.ok()) body_->stop(stopped_early_);
    // Asked for while a mending was under way that may have begun too early for that.
    else if (wanted_ > mended_.load()) body_->stop(aborted("what the run needs is looked after"));
    // What was mended is gone, and what came in its place knows nothing of that.
    else if (mended_on_ && !mended_on_->is_connected()) body_->stop(aborted("what the run needs was lost again"));
    mended_on_ = nullptr;
  }
  const PlanRequest& request = plan_->request();
  if (Status status = session_->enter(*body_); !status.ok()) {
    std::vector<Value> feeds;
    for (const FeedSpec& feed : request.feeds) feeds.push_back(feed.value);
    return session_->refuse_run(std::move(status), feeds, request.fetches, request.targets);
  }
  (void)plan_->run(*body_).ok();  // how it ends is told to ended()
  return {};
}

void AsyncRun::ended(Status status) {
  if (!remedy_) {
    if (try_again(status)) return;
  } else {
    (void)plan_->ended(*body_, status);  // a plan that a task does not hold to any more is not found again
  }
  // One that came to nothing, when there is no time to make it once more.
  if (status.ok() && stopped_.load() && plan_->ended(*body_, status) != PartitionedPlan::Remedy::none) {
    const std::lock_guard lock(begin_mutex_);
    status = stopped_early_;
  }
  end(std::move(status));
}

void AsyncRun::end(Status status) {
  if (!told_ || once_) session_->count_run(status);
  if (repeated_ && status.ok()) {
    losses_ = 0;
    status = again();
    if (status.ok()) return;  // the next one is under way, or this has gone with it already
  }
  if (remedy_ && mends(status)) return;
  if (!told_ && look_for_ill(status)) return;
  conclude(std::move(status));
}

void AsyncRun::conclude(Status status) {
  status = session_->with_absentees(std::move(status));
  if (remedy_) say_ended(status);
  announce(plan_ && attempts_ > 0 && !told_ ? Session::with_write(std::move(status), *plan_, write_) : std::move(status));
}

// As Session::with_first_ill, but that nobody waits: each part of the search is a run like this one, and the next begins when it has ended.
bool AsyncRun::look_for_ill(const Status& status) {
  if (status.ok() || !plan_) return false;
  for (const FeedSpec& feed : plan_->request().feeds) ill_feeds_.push_back(feed.value);
  search_ = IllSearch::of(session_->graph(), status, ill_feeds_, feed_list_, plan_->request().targets);
  if (!search_) return false;
  search_end_ = {std::min(deadline_.at_ns, Deadline::after(session_->runtime().clock(), IllSearch::kTimeNs).at_ns)};
  look_on();
  return true;
}

void AsyncRun::look_on() {
  Ref<AsyncRun> part;
  const std::span<const Value> wanted = search_->wanted();
  if (!wanted.empty()) {
    part = make_ref<AsyncRun>(session_, feeds_, search_end_, nullptr, 0);
    part->tell([self = Ref<AsyncRun>::share(this)](AsyncRun& ended) {
      std::vector<Tensor> values(ended.result_count());
      bool all = ended.outcome().ok();
      for (size_t i = 0; all && i < values.size(); ++i) {
        auto value = ended.take(i);
        if ((all = value.ok())) values[i] = value.take();
      }
      if (all) self->search_->take(values);
      else self->search_->give_up();
      self->look_on();
    });
  }
  {
    const std::lock_guard lock(begin_mutex_);
    // Who has stopped the run does not wait for reasons.
    if (!stopped_early_.ok()) part = nullptr;
    aside_ = part;
  }
  if (part) part->start(ill_feeds_, wanted, {});
  else announce(search_->answer());
}

// As Session::run_plan, but that nobody waits.
bool AsyncRun::try_again(const Status& status) {
  using What = PartitionedPlan::Remedy;
  const What remedy = plan_->ended(*body_, status);
  if (once_ && (remedy == What::again || (remedy == What::anew && attempts_ > Session::kAttemptsAnew))) {
    may_repeat_ = true;
    return false;
  }
  if (remedy == What::none || stopped_.load() || (remedy == What::anew && attempts_ > Session::kAttemptsAnew)) return false;
  if (once_ && remedy != What::anew) return false;
  if (remedy == What::again || remedy == What::afresh) {
    cut_short_ = status;
    if (back_.at_ns == 0) back_ = session_->return_of(*plan_, deadline_);
    if (back_.passed(session_->runtime().clock())) return false;
  }
  if (remedy == What::afresh) return mend_first(status);
  {
    const std::lock_guard lock(begin_mutex_);
    if (!stopped_early_.ok()) return false;
    body_.reset();
    if (remedy == What::once_more) write_ = 0, results_.assign(results_.size(), Tensor());
  }
  plan_again(remedy == What::again ? back_ : deadline_);
  return true;
}

// Body and planning_ are as they were before the first attempt.
void AsyncRun::plan_again(Deadline until) {
  const PlanRequest& request = plan_->request();
  AsyncPlan::Wanted wanted;
  for (const FeedSpec& feed : request.feeds) wanted.feeds.push_back(feed.value);
  wanted.tensors = feeds_;
  wanted.fetches = request.fetches;
  wanted.targets = request.targets;
  wanted.at = request.at;
  const auto planning = make_ref<AsyncPlan>(session_, std::move(wanted), until,
                                            [self = Ref<AsyncRun>::share(this)](auto plan) { self->planned(std::move(plan)); });
  Status stopped;
  {
    const std::lock_guard lock(begin_mutex_);
    stopped = stopped_early_;
    planning_ = planning;
  }
  planning->start();
  // It was too late for whoever stopped the run to find it.
  if (!stopped.ok()) planning->stop(stopped);
}

// ---- after a loss ---------------------------------------------------------------------------------------------

// False: it was stopped before.
bool AsyncRun::start_mending(Remedy remedy, Deadline until, bool keeps_state, int64_t pause_ns, std::function<void(Status)> told) {
  const auto mending = make_ref<Mending>(session_, std::move(remedy), until, keeps_state, pause_ns, std::move(told));
  {
    const std::lock_guard lock(begin_mutex_);
    if (!stopped_early_.ok()) return false;
    body_.reset();
    mending_ = mending;
    mending_for_ = wanted_;
  }
  mending->start();
  return true;
}

// A run that is made afresh is another one, by another number.
bool AsyncRun::mend_first(const Status& status) {
  Remedy remedy;
  remedy.first = plan_->first(*body_);
  return start_mending(std::move(remedy), back_, plan_->lost_keep_state(), 0, [self = Ref<AsyncRun>::share(this), status](Status mended) {
    {
      const std::lock_guard lock(self->begin_mutex_);
      self->mending_ = nullptr;
    }
    if (!mended.ok()) {
      self->end(self->stopped_.load() ? std::move(mended) : Session::outcome_unknown(*self->plan_, mended, status));
      return;
    }
    self->back_ = {0};
    self->write_ = 0;
    self->results_.assign(self->results_.size(), Tensor());
    self->plan_again(self->deadline_);
  });
}

void AsyncRun::start(Ref<PartitionedPlan> plan, Remedy remedy, const Ref<AsyncRun>& behind) {
  plan_ = std::move(plan);
  remedy_ = std::move(remedy);
  target_ = plan_->request().targets[0];
  expect_end();
  session_->enter(*this);
  if (behind && behind->let_follow(*this)) return;
  if (Status status = begin(plan_); !status.ok()) ended(std::move(status));
}

// False: it has ended.
bool AsyncRun::let_follow(AsyncRun& next) {
  const std::lock_guard lock(begin_mutex_);
  if (has_announced_) return false;
  behind_ = Ref<AsyncRun>::share(&next);
  return true;
}

int AsyncRun::mend() {
  const std::lock_guard lock(begin_mutex_);
  ++wanted_;
  if (body_) body_->stop(aborted("what the run needs is looked after"));
  return wanted_;
}

// Whether a repeated run goes on after this. One that was lost with its tasks' state comes back with that whenever they do.
bool AsyncRun::mends(const Status& status) {
  bool asked = false;
  {
    const std::lock_guard lock(begin_mutex_);
    if (!stopped_early_.ok() || session_->is_over()) return false;
    asked = wanted_ > mended_.load();
  }
  if (!asked && status.code() != Code::unavailable && status.code() != Code::aborted) return false;
  const int64_t now_ns = session_->runtime().clock().monotonic_ns();
  if (losses_++ == 0) lost_at_ns_ = now_ns, cut_short_ = status;
  const bool keeps_state = plan_->lost_keep_state();
  const int64_t time_ns = keeps_state ? Session::kReturnNs : Session::kReturnEmptyNs;
  const bool without_end = keeps_state && status.code() == Code::unavailable;
  if (!asked && !without_end && now_ns - lost_at_ns_ > time_ns) return false;
  const Deadline until = keeps_state ? Deadline::never() : Deadline{now_ns + time_ns};
  return start_mending(*remedy_, until, keeps_state, losses_ > kAtOnce ? kRestNs : 0,
                       [self = Ref<AsyncRun>::share(this)](Status mended) { self->healed(std::move(mended)); });
}

void AsyncRun::healed(Status status) {
  {
    const std::lock_guard lock(begin_mutex_);
    const Ref<Mending> mending = std::exchange(mending_, nullptr);
    if (status.ok()) {
      mended_.store(mending_for_);
      mended_on_ = mending->last();
    }
    write_ = 0;  // what comes is another update, not an attempt at the one that was lost
  }
  if (!status.ok()) {
    if (!stopped_.load()) status = Session::outcome_unknown(*plan_, status, cut_short_);
    return conclude(std::move(status));
  }
  plan_again(Deadline::never());
}

// What ended the other is of no account; what it left half made is completed first.
void AsyncRun::begin_behind() {
  losses_ = 1;
  lost_at_ns_ = session_->runtime().clock().monotonic_ns();
  const bool starts = start_mending(*remedy_, Deadline::never(), plan_->lost_keep_state(), 0,
                                    [self = Ref<AsyncRun>::share(this)](Status mended) { self->healed(std::move(mended)); });
  if (starts) return;
  Status stopped;
  {
    const std::lock_guard lock(begin_mutex_);
    stopped = stopped_early_;
  }
  conclude(std::move(stopped));
}

// Nobody may be looking at the queue in which the end is announced, and others wait for what does not come any more.
void AsyncRun::say_ended(const Status& status) const {
  if (stopped_.load() || session_->is_over() || status.code() == Code::cancelled) return;
  LogSink* const log = session_->runtime().seams().log;
  if (!log) return;
  log->write(LogLevel::warn, "session",
             "the repeated run of \"" + std::string(session_->graph().node(target()).name) +
                 "\" has ended, and workers may wait for it in vain: " + status.message() +
                 "; recover the model, and run it repeatedly again");
}

// The next of repeated runs; an error when it cannot begin.
Status AsyncRun::again() {
  DTG_TRY(body_->stopped_by());
  if (!plan_->is_current()) return aborted("run again: a connection, a resource or a group that the run uses has changed; start it anew");
  body_->renew(session_->next_sequence());
  attempts_ = 1;
  back_ = {0};
  write_ = body_->sequence();
  return plan_->run(*body_);
}

void AsyncRun::announce(Status status) {
  status = told_by(std::move(status), session_->driver().task().name(), "run");
  if (stopped_.exchange(true)) session_->count_stopped(-1);
  session_->runtime().timer().cancel(*this, deadline_.at_ns);
  if (remedy_) session_->leave(*this);
  {
    const std::lock_guard lock(results_mutex_);
    outcome_ = status;
    if (!status.ok()) results_.assign(results_.size(), Tensor());
    finished_.store(true, std::memory_order_release);
  }
  if (queue_) queue_->push(tag_, std::move(status));
  if (const auto told = std::exchange(told_, nullptr)) told(*this);
  Ref<AsyncRun> behind;
  {
    const std::lock_guard lock(begin_mutex_);
    has_announced_ = true;
    behind = std::exchange(behind_, nullptr);
  }
  if (behind) behind->begin_behind();
  release();
}

void AsyncRun::cancel() { stop_early(cancelled("the run was cancelled by its caller")); }
void AsyncRun::give_way() { stop_early(aborted("the same is run repeatedly anew")); }
void AsyncRun::ring() { stop_early(too_late()); }

void AsyncRun::stop_early(const Status& cause) {
  Ref<AsyncPlan> planning;
  Ref<Mending> mending;
  Ref<AsyncRun> aside;
  {
    // Whoever sees that it was stopped, finds why.
    const std::lock_guard lock(begin_mutex_);
    if (stopped_.exchange(true)) return;  // before, or it has ended
    session_->count_stopped(1);
    planning = planning_;
    mending = mending_;
    aside = aside_;
    stopped_early_ = cause;
    if (body_) body_->stop(cause);
  }
  if (planning) planning->stop(cause);
  if (mending) mending->stop(cause);
  if (aside) aside->cancel();
}

Result<Tensor> AsyncRun::take(size_t i) {
  const std::lock_guard lock(results_mutex_);
  if (!finished()) return failed_precondition("take a result: the run has not ended; wait for its completion");
  if (!outcome_.ok()) return outcome_;
  if (i >= results_.size()) return invalid_argument("take result %zu: the run has %zu", i, results_.size());
  if (!results_[i].valid()) return failed_precondition("take result %zu: it was taken already", i);
  return std::exchange(results_[i], Tensor());
}

void Session::count_stopped(int change) {
  const int now = stopped_.fetch_add(change) + change;
  if (change < 0 && now == kStopped / 2) fewer_stopped_.change([] {});
}

// A stopped run ends on the pool. Whoever starts runs that are stopped faster than that would fill the memory with them.
Status Session::wait_for_stopped(Deadline until) {
  if (stopped_.load(std::memory_order_relaxed) < kStopped) return {};
  const Pool& pool = runtime_->pool();
  if (!pool.has_threads() || pool.is_own_thread()) return {};
  if (fewer_stopped_.wait(runtime_->clock(), until, [this] { return stopped_.load() <= kStopped / 2; })) return {};
  return deadline_exceeded("run: %d runs of the session that were cancelled or late did not end until the deadline passed", kStopped)
      .at_task(driver_->task().name())
      .in_phase("run");
}

Result<Ref<AsyncRun>> Session::run_async(const RunArgs& args, Ref<CompletionQueue> queue, uint64_t tag) {
  DTG_TRY(check(args));
  DTG_ASSIGN(const Deadline until, deadline(args.timeout_ns));
  DTG_TRY(wait_for_stopped(until));
  std::vector<Tensor> feeds;
  for (const Tensor* tensor : args.feed_tensors) feeds.push_back(*tensor);
  Ref<PartitionedPlan> plan = find_kept(hash_of(args), args);
  // What a local session plans, it plans at once; what a cluster has to be asked for, nobody waits for.
  if (!plan && driver_->is_local()) {
    DTG_ASSIGN(plan, find_plan(args, until));
  }
  auto run = make_ref<AsyncRun>(Ref<Session>::share(this), std::move(feeds), until, std::move(queue), tag);
  if (args.write) {
    const bool again = *args.write != 0;
    if (!again) *args.write = next_sequence();
    run->known_by(*args.write, again);
  }
  if (Status late = check_time(args, until); !late.ok()) run->refuse(std::move(late));
  else if (plan) run->start(std::move(plan));
  else run->start(args.feeds, args.fetches, args.targets);
  return run;
}

Result<Ref<AsyncRun>> Session::run_at(const RunArgs& args, uint64_t write, std::function<void(AsyncRun&)> told) {
  DTG_TRY(check(args));
  DTG_ASSIGN(const Deadline until, deadline(args.timeout_ns));
  std::vector<Tensor> feeds;
  for (const Tensor* tensor : args.feed_tensors) feeds.push_back(*tensor);
  auto run = make_ref<AsyncRun>(Ref<Session>::share(this), std::move(feeds), until, nullptr, 0);
  run->tell(std::move(told));
  run->attempt_once(write);
  if (Ref<PartitionedPlan> plan = find_kept(hash_of(args), args)) run->start(std::move(plan));
  else run->start(args.feeds, args.fetches, args.targets, std::string(args.at));
  return run;
}

Result<Ref<AsyncRun>> Session::run_repeatedly(std::span<const NodeId> targets, Ref<CompletionQueue> queue, uint64_t tag) {
  if (targets.empty()) return invalid_argument("run repeatedly: nothing is asked for; name at least one target");
  DTG_TRY(told_by(check_open(), driver_->task().name(), "run"));
  RunArgs args;
  args.targets = targets;
  DTG_ASSIGN(const Deadline until, deadline(0));
  DTG_ASSIGN(Ref<PartitionedPlan> plan, find_plan(args, until));
  auto run = make_ref<AsyncRun>(Ref<Session>::share(this), std::vector<Tensor>(), Deadline::never(), std::move(queue), tag, true);
  auto remedy = targets.size() == 1 && !driver_->is_local() ? remedy_of(*graph_, targets[0]) : std::nullopt;
  if (!remedy) {
    run->start(std::move(plan));
    return run;
  }
  // Two at once would take from each other what each of them needs all of.
  const Ref<AsyncRun> before = repeated_run(targets[0]);
  run->start(std::move(plan), std::move(*remedy), before);
  if (before) before->give_way();
  return run;
}

void Session::enter(AsyncRun& run) {
  const std::lock_guard lock(lock_);
  repeated_.push_back(&run);
}

void Session::leave(AsyncRun& run) {
  {
    const std::lock_guard lock(lock_);
    std::erase(repeated_, &run);
  }
  if (!refuses_.load()) return;
  idle_.change([] {});
  driver_->task().observer_left();
}

// Between two of its runs one may be on no other list.
void Session::stop_repeated(const Status& cause) {
  std::vector<Ref<AsyncRun>> runs;
  {
    const std::lock_guard lock(lock_);
    for (AsyncRun* run : repeated_) runs.push_back(Ref<AsyncRun>::share(run));
  }
  for (const Ref<AsyncRun>& run : runs) run->stop_early(cause);
}

Ref<AsyncRun> Session::repeated_run(NodeId target) {
  const std::lock_guard lock(lock_);
  for (AsyncRun* run : repeated_) {
    if (run->target() == target && !run->is_stopped()) return Ref<AsyncRun>::share(run);
  }
  return {};
}

}  // namespace dtg
