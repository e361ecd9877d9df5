// Session: runs parts of a graph on devices. It finds the plan for what is asked, leases a frame, binds
// feeds and fetches, runs, and hands the values back.
//
// Shared: any thread may run at any time, any number of runs at once. Owner: the host, by count; runs under
// way and prepared callables hold it too. A local session is a cluster of one task with no socket; its
// variables live and die with it.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "cluster/task.h"
#include "exec/resource.h"
#include "plan/plan.h"
#include "session/runtime.h"

namespace dtg {

class AsyncRun;
class Driver;
class CompletionQueue;
class Session;

// What one run is given and asked. Tensors are borrowed until the run has ended.
struct RunArgs {
  std::span<const Value> feeds;
  std::span<const Tensor* const> feed_tensors;
  std::span<const Value> fetches;
  std::span<const NodeId> targets;
  int64_t timeout_ns = 0;  // 0: the session's default
};

// A run with feeds, fetches and targets fixed: no hashing and no strings on the way.
class Callable final : public RefCounted {
 public:
  Callable(Ref<Session> session, std::vector<Value> feeds, std::vector<Value> fetches, std::vector<NodeId> targets)
      : session_(std::move(session)), feeds_(std::move(feeds)), fetches_(std::move(fetches)), targets_(std::move(targets)) {}
  ~Callable() override;
  // A valid tensor in `fetched` on entry means: write there.
  Status run(std::span<const Tensor* const> feeds, std::span<Tensor> fetched, int64_t timeout_ns);
  const std::vector<Value>& feeds() const { return feeds_; }
  const std::vector<Value>& fetches() const { return fetches_; }

 private:
  const Ref<Session> session_;
  const std::vector<Value> feeds_;
  const std::vector<Value> fetches_;
  const std::vector<NodeId> targets_;
  // The plan of the last call; taken while a run checks it, so that two callers do not share the pointer.
  std::atomic<Plan*> last_{nullptr};
};

class Session final : public RefCounted, private Task::Lodger {
 public:
  struct Options {
    SecurityOptions security;  // of connections to other tasks
    int cpu_devices = 1;       // virtual CPU devices of a local session
    bool soft_placement = false;
    bool fusion = true;
    int64_t default_timeout_ns = int64_t{600} * 1'000'000'000;
    int64_t connect_timeout_ns = int64_t{30} * 1'000'000'000;  // to find all tasks of a cluster
  };
  // `target`: "" or "local" for this process alone, or the address of a task, which tells the rest of its cluster.
  static Result<Ref<Session>> connect(Ref<Runtime> runtime, std::string_view target, Ref<Graph> graph, const Options& options);
  ~Session() override;

  // On the caller's thread. A valid tensor in `fetched` on entry means: write there.
  Status run(const RunArgs& args, std::span<Tensor> fetched);
  // On the pool; the end is announced in `queue` with `tag`. Feeds are shared, not copied.
  Result<Ref<AsyncRun>> run_async(const RunArgs& args, Ref<CompletionQueue> queue, uint64_t tag);
  // Runs the targets again and again, until a run fails or the returned one is cancelled. `queue` may be null.
  Result<Ref<AsyncRun>> run_repeatedly(std::span<const NodeId> targets, Ref<CompletionQueue> queue, uint64_t tag);
  Result<Ref<Callable>> prepare(std::span<const Value> feeds, std::span<const Value> fetches, std::span<const NodeId> targets);
  // Refuses new runs, cancels those under way and waits for them. Idempotent.
  Status close(int64_t timeout_ns);
  // Drops the state in the named containers (none named: the default container).
  Status reset(const std::vector<std::string>& containers);
  // Of a cluster: tells the other tasks to stop; asks all of them what they are doing (a JSON list).
  Status end_job(int64_t timeout_ns);
  Result<std::string> inspect_cluster(int64_t timeout_ns);

  const std::vector<Device>& devices() const { return placer_.devices(); }
  Runtime& runtime() const { return *runtime_; }
  const Graph& graph() const { return *graph_; }
  ResourceStore& store() { return store_; }
  // The plan such a run would use; for tests and `dtg graph`.
  Result<Ref<Plan>> plan_for(const RunArgs& args);

 private:
  friend class Callable;
  friend class AsyncRun;
  // A run under way, so that close() can cancel it.
  struct Active {
    Frame* frame = nullptr;
    Active* prev = nullptr;
    Active* next = nullptr;
  };
  Session(Ref<Runtime> runtime, Ref<Graph> graph, const Options& options, std::vector<Device> devices, Ref<Driver> driver);
  static Result<Ref<Driver>> connect_driver(const Ref<Runtime>& runtime, std::string_view target, const Options& options);
  Status check(const RunArgs& args) const;
  Result<Ref<Plan>> find_plan(const RunArgs& args, Deadline until);
  Result<Ref<Plan>> make_plan(uint64_t hash, const RunArgs& args, Deadline until);
  Status wait_to_plan(std::unique_lock<std::mutex>& planning, Deadline until);
  // Runs the plan; where it turns out to be out of date, before anything was done, the one that is not.
  Status run_plan(Ref<Plan>& plan, const RunArgs& args, std::span<Tensor> fetched, Deadline until);
  Status attempt(Plan& plan, std::span<const Tensor* const> feeds, std::span<Tensor> fetched, Deadline until, bool* outdated);
  Result<Frame*> wait_for_frame(Plan& plan, Deadline deadline);
  Result<Deadline> deadline(int64_t timeout_ns) const;
  // The server of this process that the session lives at has stopped.
  void evicted(const Status& why) override;
  Status enter(Active& active);
  void leave(Active& active);
  void lock() const;
  void unlock() const { word_.clear(std::memory_order_release); }
  // Copies what the kernels did not write straight into the fetched tensors.
  static Status bind(Plan& plan, Frame& frame, std::span<const Tensor* const> feeds, std::span<Tensor> fetched);
  static Status collect(Plan& plan, Frame& frame, std::span<Tensor> fetched);

  static constexpr size_t kPlans = 128;
  struct Entry {
    uint64_t hash;
    Ref<Plan> plan;
  };

  const Ref<Runtime> runtime_;
  const Ref<Graph> graph_;
  const Options options_;
  ResourceStore store_;
  const Ref<Driver> driver_;  // of the tasks of a cluster; null for a local session
  std::mutex planning_;       // one plan is made at a time; guards placer_
  Placer placer_;
  std::atomic<uint64_t> sequence_{0};
  Counter& runs_;
  Counter& failures_;
  Counter& plans_made_;
  // Guards what follows; held for a few instructions.
  mutable std::atomic_flag word_ = ATOMIC_FLAG_INIT;
  std::vector<Entry> plans_;  // most recently used last
  Active* first_ = nullptr;
  Status refusal_;  // why no more runs begin: closed, or evicted
};

// Do the tensors fit a plan that was made for such feeds?
bool feeds_match(const Plan& plan, std::span<const Tensor* const> tensors);

}  // namespace dtg
