// Task: what a server keeps whoever is connected: its name and incarnation, its devices, and the state that lives on
// them. Parts that were registered with it are prepared here; sessions that register the same part share it. Any
// thread.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "base/condition.h"
#include "cluster/attendance.h"
#include "cluster/commit_log.h"
#include "cluster/host.h"
#include "cluster/ledger.h"
#include "cluster/rights.h"
#include "cluster/shared_parts.h"
#include "cluster/step_edges.h"
#include "plan/plan.h"

namespace dtg {

class Task;

// A part, ready to run.
class ServedPart final : public RefCounted, private WritesKeeper {
 public:
  ServedPart(Ref<Task> task, std::vector<Device> devices);
  ~ServedPart() override;

  Plan& plan() const { return *plan_; }
  const Ref<EdgeTable>& edges() const { return edges_; }
  // Another task that a value comes from, or goes to, without the session in between.
  struct Neighbour {
    std::string task;
    bool incoming = false;
    bool operator==(const Neighbour&) const = default;
  };
  // The peers of its edges from number 1 on; 0 is the session.
  const std::vector<Neighbour>& neighbours() const { return neighbours_; }
  Task& task() const { return *task_; }
  // What is logged of a gate's writes, by the number that the gate has of them; null where nothing is.
  const LoggedWrites* logged(int64_t record) const;

 private:
  friend class SharedParts;
  friend class Task;
  Result<int64_t> keep(const IrCommit& writes) override;

  const Ref<Task> task_;
  Placer placer_;
  Ref<Plan> plan_;
  Ref<EdgeTable> edges_;
  std::vector<Neighbour> neighbours_;
  std::string graph_;  // what it was made from
  std::vector<uint32_t> targets_;
  int64_t reserved_ = 0;
  bool attaches_ = true;             // it may have made the resources that it names
  mutable std::mutex logged_mutex_;  // guards what follows
  std::deque<LoggedWrites> logged_;  // stay where they are
};

class Task final : public RefCounted {
 public:
  // Whoever uses the task without a connection: a session of the same process.
  class Observer {
   public:
    virtual ~Observer() = default;
    // The server has stopped. Once, from the stopping thread.
    virtual void task_stopped(const Status& why) = 0;
    // Nothing of its runs goes on. From any thread.
    virtual bool is_idle() const = 0;
  };
  Task(const Host& host, std::string name, std::vector<Device> devices, Ref<RefCounted> owner);

  const std::string& name() const { return name_; }
  uint64_t incarnation() const { return incarnation_; }
  const std::vector<Device>& devices() const { return devices_; }
  ResourceStore& store() { return store_; }
  Ledger& ledger() { return ledger_; }
  // What is committed here is kept there; null: it lives as long as the task. To be set before the first part is prepared, with the
  // number of the state, which outlives the process.
  CommitLog* log() const { return log_.get(); }
  void keep_in(Ref<CommitLog> log, uint64_t incarnation);
  const Host& host() const { return host_; }
  // Of the workers of the job, where this task keeps it; null elsewhere. To be set before anybody can connect.
  Attendance* attendance() const { return attendance_.get(); }
  void keep_attendance(Ref<Attendance> attendance) { attendance_ = std::move(attendance); }
  // The chief has said so.
  bool job_has_ended() const { return job_has_ended_.load(std::memory_order_acquire); }
  void job_ended() { job_has_ended_.store(true, std::memory_order_release); }

  // From graph bytes of a peer: verified, held against what graphs of others may hold, placed and planned. Takes long;
  // never on the loop, and no longer than the deadline. The same part is prepared once, also for peers of other rights: those belong to
  // its runs. While another prepares it this returns at once, and the request is told by whoever does; what failed there for a reason
  // that need not be this one's, such as its time, is tried again.
  void prepare(const Ref<PartRequest>& request);
  // How often a part was prepared; a counter for the curious.
  uint64_t preparations() const { return parts_.makings(); }
  // An observer that comes too late is told at once. After remove_observer() it is not called any more.
  void add_observer(Observer* observer);
  void remove_observer(Observer* observer);
  // The server has stopped.
  void stopped(const Status& why);
  // Waits until no observer has a run under way; false when the deadline passed before. Observers say when they became idle.
  bool wait_for_observers(Deadline deadline);
  void observer_left() {
    quiet_.change([] {});
  }
  // Forgets the parts that nobody has registered any more.
  void trim() { parts_.trim(); }
  // The server stops: none is kept any more.
  void close_parts() { parts_.close(); }

 private:
  Status check_keepable(const Graph& graph) const;
  Result<Ref<ServedPart>> make_part(const PartRequest& request);

  const Ref<RefCounted> owner_;  // keeps the host's parts
  const Host host_;
  const std::string name_;
  uint64_t incarnation_;
  std::vector<Device> devices_;
  ResourceStore store_;
  Ledger ledger_;
  Ref<CommitLog> log_;
  Ref<Attendance> attendance_;
  std::atomic<bool> job_has_ended_{false};
  std::mutex observers_mutex_;  // guards observers_ and gone_; held while an observer is told
  std::vector<Observer*> observers_;
  Status gone_;
  Condition quiet_;  // an observer is idle, or gone
  SharedParts parts_;
};

// The devices that a task is to have.
struct DeviceWish {
  static constexpr int kMost = 256;  // of a type
  int cpu = 1;
  int emu = 0;
  int64_t emu_memory_bytes = 0;  // of each; 0: the default
  Accelerator::Mutant mutant = Accelerator::Mutant::none;
  // `who` asks, in an error.
  Status check(const char* who) const;
};
// CPUs first. UNIMPLEMENTED for accelerators of a runtime that has no threads.
Result<std::vector<Device>> make_devices(const Host& host, const std::string& task, const DeviceWish& wish);
Result<std::vector<Device>> parse_devices(std::span<const std::string> names);

}  // namespace dtg
