// Task: what a server keeps whoever is connected: its name and incarnation, its devices, and the state that lives on
// them. Parts that were registered with it are prepared here; sessions that register the same part share it. Any
// thread.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "base/condition.h"
#include "base/hash.h"
#include "cluster/commit_log.h"
#include "cluster/host.h"
#include "cluster/ledger.h"
#include "cluster/rights.h"
#include "cluster/step_edges.h"
#include "plan/plan.h"

namespace dtg {

class Task;

// A part, ready to run.
class ServedPart final : public RefCounted {
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
  // What is logged of a phase; null where nothing is.
  const LoggedWrites* logged(uint32_t phase) const;

 private:
  friend class Task;
  const Ref<Task> task_;
  Placer placer_;
  Ref<Plan> plan_;
  Ref<EdgeTable> edges_;
  std::vector<Neighbour> neighbours_;
  std::string graph_;  // what it was made from
  std::vector<uint32_t> targets_;
  std::vector<std::pair<uint32_t, LoggedWrites>> logged_;  // by phase
  int64_t reserved_ = 0;
  bool attaches_ = true;  // it may have made the resources that it names
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
  Task(const Host& host, std::string name, int cpu_devices, Ref<RefCounted> owner);

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

  // From graph bytes of a peer: verified, held against what graphs of others may hold, placed and planned. Takes long;
  // never on the loop, and no longer than the deadline. The same part is prepared once, also for peers of other rights: those belong to
  // its runs.
  Result<Ref<ServedPart>> prepare(std::string_view graph, std::span<const uint32_t> targets, const Ref<const Rights>& rights,
                                  Deadline deadline);
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
  // Forgets the parts that nobody has registered any more; with `all`, those in use too.
  void trim(bool all = false);

 private:
  Status check_keepable(const Graph& graph) const;
  Ref<ServedPart> shared_part(Hash128 hash, std::string_view graph, std::span<const uint32_t> targets, bool attaches);

  const Ref<RefCounted> owner_;  // keeps the host's parts
  const Host host_;
  const std::string name_;
  uint64_t incarnation_;
  std::vector<Device> devices_;
  ResourceStore store_;
  Ledger ledger_;
  Ref<CommitLog> log_;
  std::mutex observers_mutex_;  // guards observers_ and gone_; held while an observer is told
  std::vector<Observer*> observers_;
  Status gone_;
  Condition quiet_;         // an observer is idle, or gone
  std::mutex parts_mutex_;  // guards parts_
  std::vector<std::pair<Hash128, Ref<ServedPart>>> parts_;
};

// The CPU devices of a task.
std::vector<Device> cpu_devices(const std::string& task, int count);
Result<std::vector<Device>> parse_devices(std::span<const std::string> names);

}  // namespace dtg
