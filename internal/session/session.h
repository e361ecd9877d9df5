// Session: runs parts of a graph on devices. It finds the plan for what is asked, leases a frame, binds
// feeds and fetches, runs, and hands the values back.
//
// Shared: any thread may run at any time, any number of runs at once. Owner: the host, by count; runs under
// way and prepared callables hold it too. A local session is a cluster of one task with no socket; its
// variables live and die with it.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/condition.h"
#include "base/spin_lock.h"
#include "base/turns.h"
#include "cluster/driver.h"
#include "session/runtime.h"
#include "session/session_run.h"

namespace dtg {

class AsyncPlan;
class AsyncRun;
class CompletionQueue;
class PlanMaking;
class Session;

// What one run is given and asked. Tensors are borrowed until the run has ended.
struct RunArgs {
  std::span<const Value> feeds;
  std::span<const Tensor* const> feed_tensors;
  std::span<const Value> fetches;
  std::span<const NodeId> targets;
  int64_t timeout_ns = 0;                // 0: the session's default
  Cancellation* cancellation = nullptr;  // ends it, where its caller waits; null: none
  std::string_view at = {};              // PlanRequest::at
  // Null, or the number that the run's updates are known by: the library's answer; on entry not 0, it is that of an earlier run of the
  // session, of which this is a repetition: what took place of it is not made again.
  uint64_t* write = nullptr;
};

// A run with feeds, fetches and targets fixed: no hashing and no strings on the way.
class Callable final : public RefCounted {
 public:
  Callable(Ref<Session> session, std::vector<Value> feeds, std::vector<Value> fetches, std::vector<NodeId> targets)
      : session_(std::move(session)), feeds_(std::move(feeds)), fetches_(std::move(fetches)), targets_(std::move(targets)) {}
  ~Callable() override;
  // A valid tensor in `fetched` on entry means: write there. `cancellation` may be null.
  Status run(std::span<const Tensor* const> feeds, std::span<Tensor> fetched, int64_t timeout_ns, Cancellation* cancellation = nullptr);
  const std::vector<Value>& feeds() const { return feeds_; }
  const std::vector<Value>& fetches() const { return fetches_; }

 private:
  const Ref<Session> session_;
  const std::vector<Value> feeds_;
  const std::vector<Value> fetches_;
  const std::vector<NodeId> targets_;
  // The plan of the last call; taken while a run checks it, so that two callers do not share the pointer.
  std::atomic<PartitionedPlan*> last_{nullptr};
};

class Session final : public RefCounted, private Task::Observer {
 public:
  struct Options {
    SecurityOptions security;  // of connections to other tasks
    DeviceWish devices;        // of a local session
    bool soft_placement = false;
    bool fusion = true;
    Committing committing = Committing::singly;  // of what the session's own task writes
    int64_t default_timeout_ns = int64_t{600} * 1'000'000'000;
    int64_t plan_bytes = int64_t{64} << 20;                    // what kept plans may take together; the newest is kept whatever it takes
    int64_t connect_timeout_ns = int64_t{30} * 1'000'000'000;  // to find all tasks of a cluster
  };
  // `target`: "" or "local" for this process alone, or the address of a task, which tells the rest of its cluster.
  static Result<Ref<Session>> connect(Ref<Runtime> runtime, std::string_view target, Ref<Graph> graph, const Options& options);
  ~Session() override;

  // On the caller's thread. A valid tensor in `fetched` on entry means: write there.
  Status run(const RunArgs& args, std::span<Tensor> fetched);
  // The same where that is known to take no more than some ten microseconds and to wait for nobody: then *ran. Otherwise nothing has
  // happened.
  Status run_if_brief(const RunArgs& args, std::span<Tensor> fetched, bool* ran);
  // On the pool; the end is announced in `queue` with `tag`. Feeds are shared, not copied.
  Result<Ref<AsyncRun>> run_async(const RunArgs& args, Ref<CompletionQueue> queue, uint64_t tag);
  // For who gives out work to several tasks that can stand in for each other: one attempt at a run, at args.at. `write`: the number that
  // an earlier attempt had, which may have been elsewhere; 0: there was none. The end is told once, from whatever thread.
  Result<Ref<AsyncRun>> run_at(const RunArgs& args, uint64_t write, std::function<void(AsyncRun&)> told);
  // Runs the targets again and again, until a run fails or the returned one is cancelled. `queue` may be null. One target for which there
  // is a remedy (strategy/remedy.h) also goes on after a loss, and takes the place of one that is under way.
  Result<Ref<AsyncRun>> run_repeatedly(std::span<const NodeId> targets, Ref<CompletionQueue> queue, uint64_t tag);
  // The one that runs just this again and again and can go on after a loss; null: there is none.
  Ref<AsyncRun> repeated_run(NodeId target);
  Result<Ref<Callable>> prepare(std::span<const Value> feeds, std::span<const Value> fetches, std::span<const NodeId> targets);
  // Refuses new runs, cancels those under way and waits for them. Idempotent.
  Status close(int64_t timeout_ns);
  // Drops the state in the named containers (none named: the default container).
  Status reset(const std::vector<std::string>& containers);
  // Waits for the other workers at a barrier. A local session is the only worker there is.
  Status meet_workers(const std::string& barrier, int64_t timeout_ns);
  // Of a cluster: the work of this worker is done; waits until that of all others is, or they are gone. The chief then tells the other
  // tasks to stop.
  Status end_job(int64_t timeout_ns);
  // Does not wait for anybody. The chief's.
  Status end_job_now(int64_t timeout_ns);
  // What became of a run of this session, by the number of its updates.
  Result<Driver::Outcome> outcome(uint64_t write, int64_t timeout_ns);
  // Asks all tasks what they are doing (a JSON list).
  Result<std::string> inspect_cluster(int64_t timeout_ns);

  const std::vector<Device>& devices() const { return driver_->devices(); }
  Runtime& runtime() const { return *runtime_; }
  // Until when a call may take; 0: the session's default.
  Result<Deadline> time_limit(int64_t timeout_ns) const { return deadline(timeout_ns); }
  Driver& driver() const { return *driver_; }
  Party party() const { return driver_->party(); }
  // Does a run of that target call groups of tasks, as far as the graph says?
  bool calls_groups(NodeId target) const;
  const Graph& graph() const { return *graph_; }
  ResourceStore& store() { return driver_->task().store(); }
  // The plan such a run would use; for tests.
  Result<Ref<PartitionedPlan>> plan_for(const RunArgs& args);
  // How such a run would be planned, as text (plan/explain.h). Nothing is kept, and no other task hears of it. Where neither fetches nor
  // targets are asked for: all that the graph is for.
  Result<PlanPages> explain(PlanRequest request, int64_t timeout_ns);

 private:
  friend class Callable;
  friend class AsyncPlan;
  friend class AsyncRun;
  friend class Mending;
  friend class SessionRun;
  class WaitingRun;
  Session(Ref<Runtime> runtime, Ref<Graph> graph, const Options& options, Ref<Driver> driver);
  static Result<Ref<Driver>> drive(const Ref<Runtime>& runtime, std::string_view target, const Options& options);
  Status check(const RunArgs& args) const;
  // Whether a run that may last so long may still begin.
  Status check_time(const RunArgs& args, Deadline until) const;
  Status check_cancelled(const RunArgs& args) const;
  // An error has been told to the groups that the run would have called.
  Result<Ref<PartitionedPlan>> find_plan(const RunArgs& args, Deadline until);
  Result<Ref<PartitionedPlan>> seek_plan(const RunArgs& args, Deadline until);
  // A run that cannot begin; returns why. Groups that would wait for it hear it too.
  Status refuse_run(Status why, std::span<const Value> feeds, std::span<const Value> fetches, std::span<const NodeId> targets) const;
  Status refuse_run(Status why, const RunArgs& args) const { return refuse_run(std::move(why), args.feeds, args.fetches, args.targets); }
  Ref<PartitionedPlan> find_kept(uint64_t hash, const RunArgs& args);
  Result<Ref<PartitionedPlan>> make_plan(uint64_t hash, const RunArgs& args, Deadline until, int64_t wanted_ns);
  // Whose turn to plan it is, from a begin_planning() that went well to the end of the scope.
  struct Turn {
    Session& session;
    ~Turn();
  };
  Status begin_planning(Deadline until, Cancellation* cancellation = nullptr);
  // Of everything that decides the plan.
  static uint64_t hash_of(const RunArgs& args);
  static PlanRequest request_of(const RunArgs& args);
  Ref<PlanMaking> start_plan(const RunArgs& args, Deadline until, int64_t wanted_ns);
  void keep_plan(uint64_t hash, const RunArgs& args, const Ref<PartitionedPlan>& plan);
  // What is known of the attempts at one run.
  struct Attempts {
    int count = 0;
    uint64_t write = 0;                                              // the number of the first
    Deadline back{0};                                                // until when whoever was lost is waited for; 0: nobody was
    PartitionedPlan::Remedy remedy = PartitionedPlan::Remedy::none;  // for the last
    NodeId first = kNoNode;                                          // before it is made afresh
    uint64_t given = 0;                                              // of a run that may be made afresh: given_of() what it fetches
    void begin_anew(std::span<Tensor> fetched);
  };
  static uint64_t given_of(std::span<const Tensor> fetched);
  // Runs the plan. Where it turns out to be out of date before anything was done, the one that is not; where a connection was lost, as
  // often as that is safe and the deadline allows.
  Status run_plan(Ref<PartitionedPlan>& plan, const RunArgs& args, std::span<Tensor> fetched, Deadline until);
  Status run_once(PartitionedPlan& plan, const RunArgs& args, std::span<Tensor> fetched, Deadline until, Attempts& attempts);
  Result<Ref<PartitionedPlan>> plan_again(const RunArgs& args, Deadline until, const Attempts& attempts);
  Status pause(Deadline until, Cancellation* cancellation);
  // What has to be run before a run that was cut short is made afresh has been.
  Status run_first(const PartitionedPlan& plan, const RunArgs& args, Deadline until, Attempts& attempts, Status status);
  // The list of repeated runs that can go on after a loss.
  void enter(AsyncRun& run);
  void leave(AsyncRun& run);
  void stop_repeated(const Status& cause);
  // Nothing is lost any more that anybody should wait for.
  bool is_over() const { return ends_job_.load() || refuses_.load(); }
  // Whether the run of that number may be repeated by this plan.
  Status check_repetition(const PartitionedPlan& plan, uint64_t write) const;
  // Says in an error after which nobody knows what a run has updated by which number it is known.
  static Status with_write(Status status, const PartitionedPlan& plan, uint64_t write);
  // Of a run that was cut short by `before` and could not be repeated.
  static Status outcome_unknown(const PartitionedPlan& plan, const Status& status, const Status& before);
  // How long the tasks whose loss cut a run short are looked for.
  Deadline return_of(const PartitionedPlan& plan, Deadline until) const;
  Result<Deadline> deadline(int64_t timeout_ns) const;
  uint64_t next_sequence() { return sequence_.fetch_add(1, std::memory_order_relaxed); }
  // Of a run that failed because a loss was not finite: which value was the first, found by computing once more what the loss is made
  // from, without an effect. As it was, where that cannot be told.
  Status with_first_ill(Status status, const RunArgs& args, Deadline until);
  // A run whose plan is not kept.
  Status run_aside(const RunArgs& args, std::span<Tensor> fetched, Deadline until);
  // A deadline that passed while workers are gone says who.
  Status with_absentees(Status status) const;
  void count_run(const Status& status);
  void count_stopped(int change);
  Status wait_for_stopped(Deadline until);
  // The server of this process that the session lives at has stopped.
  void task_stopped(const Status& why) override;
  bool is_idle() const override;
  void refuse(const Status& why);
  // Why nothing begins any more, if so.
  Status check_open() const;
  // The list of plans that nobody waits for.
  Status enter(AsyncPlan& plan);
  void leave(AsyncPlan& plan);
  void stop_plans(const Status& cause);
  // The list of runs under way. A run that is being stopped stays on it until that is over.
  Status enter(SessionRun& run);
  void leave(SessionRun& run);
  void stop_runs(const Status& cause);

  // A task that keeps its state may be lost while it is given its part, and back soon; one that is not there at all was waited for long
  // enough.
  Deadline planning_end(Deadline until) const;
  bool may_plan_again(const Status& made, Deadline end) const;

  static constexpr size_t kPlans = 128;
  static constexpr int kStopped = 1024;
  static constexpr int kAttemptsAnew = 1;
  // How long a task whose connection was lost is looked for: one that comes back with what it held, and one that can only have been out
  // of reach, or its state is gone.
  static constexpr int64_t kReturnNs = int64_t{30} * 1'000'000'000;
  static constexpr int64_t kReturnEmptyNs = int64_t{1} * 1'000'000'000;
  struct Entry {
    uint64_t hash;
    Ref<PartitionedPlan> plan;
    int64_t bytes;
  };

  const Ref<Runtime> runtime_;
  const Ref<Graph> graph_;
  const Options options_;
  const Ref<Driver> driver_;
  Turns turns_;                       // one plan is made at a time
  Condition idle_;                    // a run has left, or may leave now
  std::atomic<bool> closing_{false};  // its host has closed it
  std::atomic<bool> ends_job_{false};
  std::atomic<bool> refuses_{false};  // refusal_ says why; somebody may wait for runs to leave
  std::atomic<int> stopped_{0};       // runs that were cancelled or late and have not ended; more than kStopped only if they run already
  Condition fewer_stopped_;
  std::atomic<uint64_t> sequence_{1};  // 0 is none
  Counter& runs_;
  Counter& failures_;
  Counter& plans_made_;
  mutable SpinLock lock_;     // guards what follows
  std::vector<Entry> plans_;  // most recently used last
  int64_t plan_bytes_ = 0;    // of all of them
  SessionRun* first_ = nullptr;
  AsyncPlan* first_plan_ = nullptr;
  std::vector<AsyncRun*> repeated_;  // those that go on after a loss
  Status refusal_;                   // why no more runs begin: closed, or evicted
};

// Do the tensors fit a plan that was made for such feeds?
bool feeds_match(const PartitionedPlan& plan, std::span<const Tensor* const> tensors);

}  // namespace dtg
