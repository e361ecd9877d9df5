// The run path. A warm synchronous run: hash what is asked, find the plan, run it (cluster/run.h). No mutex and no allocation on
// that way.
#include "session/session.h"

#include <algorithm>
#include <mutex>

#include "base/whereabouts.h"
#include "plan/collectives.h"
#include "strategy/leaving.h"

namespace dtg {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
  return hash ^ (hash >> 29);
}

constexpr int64_t kPauseNs = 100'000'000;
// A run that has longer than this is not over before it has begun.
constexpr int64_t kNoHurryNs = 1'000'000;

bool same_request(const PartitionedPlan& plan, const RunArgs& args) {
  const PlanRequest& request = plan.request();
  if (request.at != args.at || !std::ranges::equal(request.fetches, args.fetches) || !std::ranges::equal(request.targets, args.targets))
    return false;
  if (request.feeds.size() != args.feeds.size()) return false;
  for (size_t i = 0; i < args.feeds.size(); ++i) {
    if (request.feeds[i].value != args.feeds[i]) return false;
  }
  return feeds_match(plan, args.feed_tensors);
}

}  // namespace

uint64_t Session::hash_of(const RunArgs& args) {
  uint64_t hash = mix(args.feeds.size(), args.fetches.size());
  for (size_t i = 0; i < args.feeds.size(); ++i) {
    const Tensor& tensor = *args.feed_tensors[i];
    hash = mix(mix(hash, args.feeds[i].id), static_cast<uint64_t>(tensor.dtype()));
    for (int64_t dim : tensor.shape().dims()) hash = mix(hash, static_cast<uint64_t>(dim));
  }
  for (Value fetch : args.fetches) hash = mix(hash, fetch.id);
  for (NodeId target : args.targets) hash = mix(hash, target);
  for (const char letter : args.at) hash = mix(hash, static_cast<unsigned char>(letter));
  return hash;
}

PlanRequest Session::request_of(const RunArgs& args) {
  PlanRequest request;
  for (size_t i = 0; i < args.feeds.size(); ++i)
    request.feeds.push_back({args.feeds[i], args.feed_tensors[i]->dtype(), args.feed_tensors[i]->shape()});
  request.fetches.assign(args.fetches.begin(), args.fetches.end());
  request.targets.assign(args.targets.begin(), args.targets.end());
  request.at = args.at;
  return request;
}

bool feeds_match(const PartitionedPlan& plan, std::span<const Tensor* const> tensors) {
  const auto& feeds = plan.home().feeds();
  if (feeds.size() != tensors.size()) return false;
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (feeds[i].dtype != tensors[i]->dtype() || !(feeds[i].shape == tensors[i]->shape())) return false;
  }
  return true;
}

SessionRun::SessionRun(Session& session, PartitionedPlan& plan, Caller caller, Deadline deadline, Cancellation* cancellation)
    : Run(plan.home(), session.runtime().clock(), caller, session.next_sequence(), deadline, cancellation),
      session_(session),
      partitioned_(plan) {}

// One that is told of its end is on the list from its start, because it may wait for a frame.
Status SessionRun::begun() {
  if (!listed_) DTG_TRY(session_.enter(*this));
  return partitioned_.begin(*this);
}

void SessionRun::left() {
  if (listed_) session_.leave(*this);
}

std::string SessionRun::fetch_name(size_t fetch) const { return partitioned_.graph().value_name(partitioned_.request().fetches[fetch]); }

Session::Session(Ref<Runtime> runtime, Ref<Graph> graph, const Options& options, Ref<Driver> driver)
    : runtime_(std::move(runtime)),
      graph_(std::move(graph)),
      options_(options),
      driver_(std::move(driver)),
      runs_(runtime_->counters().counter("dtg_runs_total", "Runs of sessions, asynchronous ones included.")),
      failures_(runtime_->counters().counter("dtg_run_failures_total", "Runs that ended with an error.")),
      plans_made_(runtime_->counters().counter("dtg_plans_total",
                                               "Plans made; a number that grows with the runs means shapes that never repeat.")) {
  plans_.reserve(kPlans + 1);
  driver_->task().add_observer(this);
}

Session::~Session() {
  driver_->task().remove_observer(this);
  plans_.clear();
  driver_->close();
}

// A target that is no local session names a task, which tells the rest of the cluster.
Result<Ref<Driver>> Session::drive(const Ref<Runtime>& runtime, std::string_view target, const Options& options) {
  const Planning planning{&runtime->tracer(), options.fusion, options.soft_placement, options.committing};
  if (target == "local") return Driver::local(runtime->local_host(), planning, options.devices, runtime);
  // Such as of a variable of the environment that is not set: nobody trains apart from the rest by that.
  if (target.empty()) {
    return invalid_argument("connect a session: the target is empty; \"local\" is this process alone, and the address of a task, such as "
                            "\"unix:/tmp/ps0\" or \"10.0.0.1:2222\", a cluster");
  }
  if (options.connect_timeout_ns <= 0) return invalid_argument("connect a session: the connect timeout must be positive");
  auto parsed = Address::parse(target);
  if (!parsed.ok())
    return parsed.status().with_context("connect a session: a target is \"local\", for this process alone, or the address of a task");
  const Address address = parsed.take();
  DTG_ASSIGN(Host host, runtime->host());
  host.security = options.security;
  const Deadline until = Deadline::after(runtime->clock(), options.connect_timeout_ns);
  auto driver = Driver::connect(host, planning, {}, address, until, runtime);
  if (driver.ok() || !names_whereabouts(driver.status().code())) return driver;
  return driver.status().at_peer(address.text()).in_phase("connect");
}

Result<Ref<Session>> Session::connect(Ref<Runtime> runtime, std::string_view target, Ref<Graph> graph, const Options& options) {
  DTG_TRY(options.devices.check("connect a session"));
  if (options.default_timeout_ns <= 0) return invalid_argument("connect a session: the default timeout must be positive");
  DTG_ASSIGN(Ref<Driver> driver, drive(runtime, target, options));
  return Ref<Session>::adopt(new Session(std::move(runtime), std::move(graph), options, std::move(driver)));
}

Status Session::enter(SessionRun& run) {
  const std::lock_guard lock(lock_);
  // It was accepted before.
  if (closing_.load(std::memory_order_relaxed)) return cancelled("the session was closed while this run was about to begin");
  if (!refusal_.ok()) return refusal_;
  run.prev_ = nullptr;  // a repeated run comes more than once
  run.next_ = first_;
  if (first_) first_->prev_ = &run;
  first_ = &run;
  run.listed_ = true;
  return {};
}

void Session::leave(SessionRun& run) {
  const auto unlink = [&] {
    const std::lock_guard lock(lock_);
    if (run.held_ > 0) return false;
    (run.prev_ ? run.prev_->next_ : first_) = run.next_;
    if (run.next_) run.next_->prev_ = run.prev_;
    run.listed_ = false;
    return true;
  };
  if (!unlink()) idle_.wait(runtime_->clock(), Deadline::never(), unlink);
  if (!refuses_.load()) return;
  idle_.change([] {});
  driver_->task().observer_left();
}

// Stops them with the lock given up, since an abort calls whoever waits on behalf of the step. A run that is held stays in its
// place on the list meanwhile.
void Session::stop_runs(const Status& cause) {
  lock_.lock();
  SessionRun* run = first_;
  if (run) ++run->held_;
  while (run) {
    lock_.unlock();
    run->stop(cause);
    lock_.lock();
    SessionRun* const next = run->next_;
    if (next) ++next->held_;
    --run->held_;
    run = next;
  }
  lock_.unlock();
  idle_.change([] {});
}

void Session::task_stopped(const Status& why) {
  refuse(why);
  stop_repeated(why);
  stop_plans(why);
  stop_runs(why);
}

bool Session::is_idle() const {
  const std::lock_guard lock(lock_);
  return first_ == nullptr && first_plan_ == nullptr && repeated_.empty();
}

void Session::refuse(const Status& why) {
  const std::lock_guard lock(lock_);
  if (refusal_.ok()) refusal_ = why;
  refuses_.store(true);
}

Status Session::check_open() const {
  if (!refuses_.load(std::memory_order_relaxed)) return {};
  const std::lock_guard lock(lock_);
  return refusal_;
}

Status Session::check(const RunArgs& args) const {
  if (Status closed = check_open(); !closed.ok()) return refuse_run(std::move(closed), args);
  if (args.feeds.size() != args.feed_tensors.size())
    return invalid_argument("run: %zu feeds, but %zu tensors", args.feeds.size(), args.feed_tensors.size());
  for (const Tensor* tensor : args.feed_tensors) {
    if (!tensor || !tensor->valid()) return invalid_argument("run: a fed tensor is missing");
  }
  return {};
}

Result<Deadline> Session::deadline(int64_t timeout_ns) const {
  if (timeout_ns < 0)
    return invalid_argument("run: the timeout is %g s; it may not be negative, and 0 means the session's default",
                            static_cast<double>(timeout_ns) * 1e-9);
  return Deadline::of_call(runtime_->clock(), timeout_ns ? timeout_ns : options_.default_timeout_ns);
}

// A run so brief that nothing in it looks at the clock has a deadline too. A long one cannot have passed while a plan was found, and making
// one looks itself; so only short ones cost a look.
Status Session::check_time(const RunArgs& args, Deadline until) const {
  const int64_t time_ns = args.timeout_ns ? args.timeout_ns : options_.default_timeout_ns;
  if (time_ns >= kNoHurryNs || !until.passed(runtime_->clock())) return {};
  return refuse_run(
      deadline_exceeded("run: its time, %g s, was over before it could begin; nothing has run", static_cast<double>(time_ns) * 1e-9)
          .in_phase("run"),
      args);
}

Status Session::check_cancelled(const RunArgs& args) const {
  const Status status = args.cancellation ? args.cancellation->status() : Status();
  return status.ok() ? status : refuse_run(status, args);
}

Result<Ref<PartitionedPlan>> Session::find_plan(const RunArgs& args, Deadline until) {
  auto plan = seek_plan(args, until);
  if (plan.ok()) return plan;
  return refuse_run(told_by(plan.status(), driver_->task().name(), "prepare"), args);
}

Status Session::refuse_run(Status why, std::span<const Value> feeds, std::span<const Value> fetches,
                           std::span<const NodeId> targets) const {
  why = told_by(std::move(why), driver_->task().name(), "run");
  const Ref<Collectives> collectives = Collectives::of(driver_->task().store());
  if (collectives->joins() > 0) collectives->run_refused(called_groups(*graph_, fetches, targets, feeds, driver_->task().name()), why);
  return why;
}

Result<Ref<PartitionedPlan>> Session::seek_plan(const RunArgs& args, Deadline until) {
  const uint64_t hash = hash_of(args);
  if (Ref<PartitionedPlan> found = find_kept(hash, args)) return found;
  const Deadline back = planning_end(until);
  const int64_t wanted_ns = runtime_->clock().monotonic_ns();
  Status lost;
  for (;;) {
    auto made = make_plan(hash, args, until, wanted_ns);
    // Who was lost is told rather than that the time is over.
    if (made.status().code() == Code::deadline_exceeded && !lost.ok()) return lost;
    if (!may_plan_again(made.status(), back)) return made;
    lost = made.status();
    DTG_TRY(pause(back, args.cancellation));
  }
}

Deadline Session::planning_end(Deadline until) const {
  return {std::min(Deadline::after(runtime_->clock(), kReturnNs).at_ns, until.at_ns)};
}

bool Session::may_plan_again(const Status& made, Deadline end) const {
  return made.code() == Code::unavailable && driver_->may_be_whole_again() && !end.passed(runtime_->clock());
}

// Not longer than until the session refuses runs, or the caller wants no more.
Status Session::pause(Deadline until, Cancellation* cancellation) {
  const Deadline end{std::min(Deadline::after(runtime_->clock(), kPauseNs).at_ns, until.at_ns)};
  wait_for(idle_, runtime_->clock(), end, cancellation, [this] { return refuses_.load(); });
  DTG_TRY(check_open());
  return cancellation ? cancellation->status() : Status();
}

// Null where there is none, or none that still holds.
Ref<PartitionedPlan> Session::find_kept(uint64_t hash, const RunArgs& args) {
  Ref<PartitionedPlan> found;
  lock_.lock();
  for (size_t i = plans_.size(); i-- > 0;) {
    if (plans_[i].hash != hash || !same_request(*plans_[i].plan, args)) continue;
    found = plans_[i].plan;
    if (i + 1 < plans_.size() && i + 16 < plans_.size())
      std::rotate(plans_.begin() + static_cast<std::ptrdiff_t>(i), plans_.begin() + static_cast<std::ptrdiff_t>(i) + 1, plans_.end());
    break;
  }
  lock_.unlock();
  return found && found->is_current() ? found : Ref<PartitionedPlan>();
}

// Whoever plans for a cluster may wait for other tasks; who comes after waits no longer than its own deadline.
Status Session::begin_planning(Deadline until, Cancellation* cancellation) {
  struct Standing final : Turns::Waiter {
    Condition told;
    bool mine = false;
    void your_turn() override {
      told.change([this] { mine = true; });
    }
  } standing;
  const auto is_mine = [&] { return standing.mine; };
  if (turns_.take(standing) || wait_for(standing.told, runtime_->clock(), until, cancellation, is_mine)) return {};
  if (!turns_.withdraw(standing)) {
    standing.told.wait(runtime_->clock(), Deadline::never(), is_mine);
    return {};
  }
  if (cancellation && cancellation->is_cancelled()) return cancellation->status();
  return deadline_exceeded("run: another run of the session was being planned until the deadline passed").in_phase("prepare");
}

Session::Turn::~Turn() { session.turns_.give_back(); }

Result<PlanPages> Session::explain(PlanRequest request, int64_t timeout_ns) {
  const auto explained = [&]() -> Result<PlanPages> {
    DTG_TRY(check_open());
    DTG_ASSIGN(const Deadline until, deadline(timeout_ns));
    if (request.fetches.empty() && request.targets.empty()) ask_for_everything(*graph_, request);
    DTG_TRY(begin_planning(until));
    const Turn turn{*this};
    return driver_->explain(graph_, std::move(request), until);
  };
  return told_by(explained(), driver_->task().name(), "prepare");
}

Result<Ref<PartitionedPlan>> Session::make_plan(uint64_t hash, const RunArgs& args, Deadline until, int64_t wanted_ns) {
  DTG_TRY(begin_planning(until, args.cancellation));
  const Turn turn{*this};
  // Who waited for the turn may find that it was for the same.
  if (Ref<PartitionedPlan> found = find_kept(hash, args)) return found;
  DTG_ASSIGN(Ref<PartitionedPlan> plan, driver_->make_plan(graph_, request_of(args), until, wanted_ns, args.cancellation));
  plans_made_.add();
  keep_plan(hash, args, plan);
  return plan;
}

// Bounded by count and by bytes: plans of a thousand shapes that never come again must not fill the memory.
void Session::keep_plan(uint64_t hash, const RunArgs& args, const Ref<PartitionedPlan>& plan) {
  const int64_t bytes = plan->home().bytes();
  std::vector<Ref<PartitionedPlan>> dropped;  // destroyed outside of the lock
  dropped.reserve(kPlans);
  const std::lock_guard lock(lock_);
  const auto drop = [&](Entry& entry) {
    plan_bytes_ -= entry.bytes;
    dropped.push_back(std::move(entry.plan));
  };
  // Those that are kept may have grown with the shapes that they met.
  for (Entry& entry : plans_) {
    const int64_t now = entry.plan->home().bytes();
    plan_bytes_ += now - std::exchange(entry.bytes, now);
  }
  std::erase_if(plans_, [&](Entry& entry) {
    const bool stale = entry.hash == hash && same_request(*entry.plan, args);
    if (stale) drop(entry);
    return stale;
  });
  while (!plans_.empty() && (plans_.size() >= kPlans || plan_bytes_ + bytes > options_.plan_bytes)) {
    drop(plans_.front());
    plans_.erase(plans_.begin());
  }
  plans_.push_back({hash, plan, bytes});
  plan_bytes_ += bytes;
}

Result<Ref<PartitionedPlan>> Session::plan_for(const RunArgs& args) {
  DTG_TRY(check(args));
  DTG_ASSIGN(const Deadline until, deadline(args.timeout_ns));
  return find_plan(args, until);
}

Status Session::run(const RunArgs& args, std::span<Tensor> fetched) {
  DTG_TRY(check(args));
  DTG_ASSIGN(const Deadline until, deadline(args.timeout_ns));
  DTG_TRY(check_cancelled(args));
  DTG_ASSIGN(Ref<PartitionedPlan> plan, find_plan(args, until));
  DTG_TRY(check_time(args, until));
  return run_plan(plan, args, fetched, until);
}

// A plan that has to be made for several tasks is nothing brief; a local one is made here, as for any run.
Status Session::run_if_brief(const RunArgs& args, std::span<Tensor> fetched, bool* ran) {
  *ran = false;
  DTG_TRY(check(args));
  DTG_TRY(check_cancelled(args));
  DTG_ASSIGN(const Deadline until, deadline(args.timeout_ns));
  Ref<PartitionedPlan> plan = find_kept(hash_of(args), args);
  if (!plan && driver_->is_local()) {
    DTG_ASSIGN(plan, find_plan(args, until));
  }
  if (!plan || !plan->is_brief()) return {};
  DTG_TRY(check_time(args, until));
  *ran = true;
  const Ref<PartitionedPlan> measured = plan;
  const int64_t began = runtime_->clock().monotonic_ns();
  const Status status = run_plan(plan, args, fetched, until);
  measured->home().took(runtime_->clock().monotonic_ns() - began);
  return status;
}

void Session::count_run(const Status& status) {
  runs_.add();
  if (!status.ok()) failures_.add();
}

Result<Ref<Callable>> Session::prepare(std::span<const Value> feeds, std::span<const Value> fetches, std::span<const NodeId> targets) {
  for (Value feed : feeds) DTG_TRY(graph_->check(feed).with_context("prepare, feed"));
  for (Value fetch : fetches) DTG_TRY(graph_->check(fetch).with_context("prepare, fetch"));
  for (NodeId target : targets) DTG_TRY(graph_->check_node(target).with_context("prepare, target"));
  if (fetches.empty() && targets.empty()) return invalid_argument("prepare: nothing is asked for; name at least one fetch or target");
  return make_ref<Callable>(Ref<Session>::share(this), std::vector<Value>(feeds.begin(), feeds.end()),
                            std::vector<Value>(fetches.begin(), fetches.end()), std::vector<NodeId>(targets.begin(), targets.end()));
}

Callable::~Callable() {
  if (PartitionedPlan* plan = last_.exchange(nullptr)) plan->release();
}

Status Callable::run(std::span<const Tensor* const> feeds, std::span<Tensor> fetched, int64_t timeout_ns, Cancellation* cancellation) {
  if (feeds.size() != feeds_.size() || fetched.size() != fetches_.size()) {
    return invalid_argument("call: prepared with %zu feeds and %zu fetches, called with %zu and %zu", feeds_.size(), fetches_.size(),
                            feeds.size(), fetched.size());
  }
  for (const Tensor* tensor : feeds) {
    if (!tensor || !tensor->valid()) return invalid_argument("call: a fed tensor is missing");
  }
  const RunArgs args{feeds_, feeds, fetches_, targets_, timeout_ns, cancellation};
  if (Status closed = session_->check_open(); !closed.ok()) return session_->refuse_run(std::move(closed), args);
  if (cancellation) DTG_TRY(session_->check_cancelled(args));
  DTG_ASSIGN(const Deadline until, session_->deadline(timeout_ns));
  Ref<PartitionedPlan> plan = Ref<PartitionedPlan>::adopt(last_.exchange(nullptr, std::memory_order_acq_rel));
  if (!plan || !feeds_match(*plan, feeds) || !plan->is_current()) {
    DTG_ASSIGN(plan, session_->find_plan(args, until));
  }
  Status status = session_->check_time(args, until);
  if (status.ok()) status = session_->run_plan(plan, args, fetched, until);
  // Back into the cell, unless another call has put one there meanwhile.
  PartitionedPlan* none = nullptr;
  PartitionedPlan* const mine = plan.leak();
  if (!last_.compare_exchange_strong(none, mine, std::memory_order_acq_rel)) mine->release();
  return status;
}

Status Session::reset(const std::vector<std::string>& containers) {
  const auto done = [&]() -> Status {
    DTG_TRY(check_open());
    DTG_ASSIGN(const Deadline until, deadline(0));
    return driver_->reset(containers, until);
  };
  return told_by(done(), driver_->task().name(), "ask");
}

bool Session::calls_groups(NodeId target) const {
  return !driver_->is_local() && !called_groups(*graph_, {}, {&target, 1}, {}, driver_->task().name()).empty();
}

Status Session::meet_workers(const std::string& barrier, int64_t timeout_ns) {
  const auto met = [&]() -> Status {
    DTG_TRY(check_open());
    DTG_ASSIGN(const Deadline until, deadline(timeout_ns));
    if (barrier.empty()) return invalid_argument("wait for the other workers: the barrier has no name");
    if (driver_->is_local()) return {};
    return driver_->meet_workers(barrier, false, until, [this](Deadline end) { return pause(end, nullptr); });
  };
  return told_by(met(), driver_->task().name(), "meet");
}

Status Session::end_job(int64_t timeout_ns) {
  const auto ended = [&]() -> Status {
    DTG_TRY(check_open());
    DTG_ASSIGN(const Deadline until, deadline(timeout_ns));
    if (driver_->is_local()) return driver_->end_job(until);
    // Who waits here makes no more steps, and nobody shall wait for one.
    const std::optional<Leaving> leaving = leaving_of(*graph_);
    if (leaving) {
      const RunArgs leave{.targets = {&leaving->target, 1}, .timeout_ns = std::max<int64_t>(until.left_ns(runtime_->clock()), 1)};
      DTG_TRY(run(leave, {}).with_context("end the job: leave the steps of the others"));
    }
    const bool those_there = leaving && leaving->is_elastic;
    DTG_TRY(driver_->meet_workers({}, those_there, until, [this](Deadline end) { return pause(end, nullptr); }));
    if (driver_->party() != Party::chief) return {};
    ends_job_ = true;
    return driver_->end_job(until);
  };
  return told_by(ended(), driver_->task().name(), "end");
}

Status Session::end_job_now(int64_t timeout_ns) {
  const auto ended = [&]() -> Status {
    DTG_TRY(check_open());
    DTG_ASSIGN(const Deadline until, deadline(timeout_ns));
    ends_job_ = driver_->party() == Party::chief;
    return driver_->end_job(until);
  };
  return told_by(ended(), driver_->task().name(), "end");
}

// Who waits for a token may wait for somebody who is gone.
Status Session::with_absentees(Status status) const {
  if (status.code() != Code::deadline_exceeded && status.code() != Code::cancelled) return status;
  const std::string gone = driver_->absentees();
  return gone.empty() ? status : Status(status.code(), status.message() + "; gone: " + gone, status.origin());
}

Result<std::string> Session::inspect_cluster(int64_t timeout_ns) {
  const auto asked = [&]() -> Result<std::string> {
    DTG_TRY(check_open());
    DTG_ASSIGN(const Deadline until, deadline(timeout_ns));
    return driver_->inspect(until);
  };
  return told_by(asked(), driver_->task().name(), "ask");
}

Status Session::close(int64_t timeout_ns) {
  if (timeout_ns < 0) return invalid_argument("close: the timeout may not be negative");
  const Deadline until = Deadline::after(runtime_->clock(), timeout_ns ? timeout_ns : options_.default_timeout_ns);
  const Status closed = failed_precondition("the session is closed");
  lock_.lock();
  refusal_ = closed;
  lock_.unlock();
  closing_ = true;
  refuses_ = true;
  idle_.change([] {});
  const Status over = cancelled("the session was closed while this run was under way");
  stop_repeated(over);
  stop_plans(over);
  stop_runs(over);
  if (!idle_.wait(runtime_->clock(), until, [this] { return is_idle(); }))
    return deadline_exceeded("close: runs are still under way; they were cancelled and will end on their own")
        .at_task(driver_->task().name())
        .in_phase("end");
  driver_->close();
  return {};
}

}  // namespace dtg
