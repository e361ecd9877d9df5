// Driver: knows the tasks of a session's cluster, each by its worker, and makes plans whose parts they run. The task of this
// process is one of them; a local session drives a cluster of that one, with no network.
//
// Owner: the session and its plans. Threads of hosts, whose calls wait; plans are made one at a time.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>

#include "cluster/directory.h"
#include "cluster/local_worker.h"
#include "cluster/partitioned_plan.h"
#include "cluster/remote_worker.h"
#include "plan/explain.h"

namespace dtg {

class Driver final : public RefCounted {
 public:
  // Learns the cluster from the task at `target` and connects to all of it. A server of this process is not connected to:
  // its task becomes home. `owner` keeps what the host points to.
  static Result<Ref<Driver>> connect(const Host& host, const Planning& planning, const Timing& timing, const Address& target,
                                     Deadline deadline, Ref<RefCounted> owner);
  // A cluster of one task, which lives as long as its sessions.
  static Result<Ref<Driver>> local(const Host& host, const Planning& planning, const DeviceWish& devices, Ref<RefCounted> owner);
  // What inspect() tells, from a cluster of which any number of tasks but the one at `target` may be gone. Over the network
  // even where the target is a server of this process.
  static Result<std::string> look(const Host& host, const Timing& timing, const Address& target, Deadline deadline, Ref<RefCounted> owner);
  ~Driver() override;

  // The task of this process: the one that the session speaks for, or one of its own.
  Task& task() const { return home_->task(); }
  // All devices of the cluster, those of the target first.
  const std::vector<Device>& devices() const { return devices_; }
  bool is_local() const { return is_local_; }
  // What the session is to the others: the chief, where it is alone.
  Party party() const { return party_; }
  // Is there a task that comes back with what its variables held, when it is lost, and none lost that does not?
  bool may_be_whole_again() const {
    return std::ranges::any_of(workers_, [](const Ref<Worker>& worker) { return worker->keeps_state(); }) &&
           std::ranges::none_of(workers_, [](const Ref<Worker>& worker) { return worker->is_lost(); });
  }
  // Waits for the other tasks, until `cancellation` (may be null) is used; PlanMaking is for who may not.
  // As the plans of runs for that task place it (PlanRequest::at). One plan is made at a time.
  Result<Placer*> placer_for(const std::string& task);
  Result<Ref<PartitionedPlan>> make_plan(Ref<Graph> graph, PlanRequest request, Deadline deadline, int64_t wanted_ns,
                                         Cancellation* cancellation = nullptr);
  // How the same would be planned: on a cluster of one, page by page to the program; otherwise up to `place`, and a page "parts" with
  // what each task would get. No task is asked anything, and nothing is left behind. Not at the same time as make_plan.
  Result<PlanPages> explain(Ref<Graph> graph, PlanRequest request, Deadline deadline) const;
  Status reset(const std::vector<std::string>& containers, Deadline deadline);
  // Tells all other tasks to stop; who is gone already is no error.
  Status end_job(Deadline deadline);
  // Waits for the other workers at the barrier of that name, or, without one, until the work of all is done (cluster/attendance.h).
  // At that end, with `those_there`, workers that never came are not waited for. `pause` rests a moment between two attempts, and says
  // when the session wants no more.
  using Pause = std::function<Status(Deadline)>;
  Status meet_workers(const std::string& barrier, bool those_there, Deadline deadline, const Pause& pause);
  // The workers that are gone, for people; empty where none is known to be.
  std::string absentees() const;
  // A task as who gives out work to it sees it: can it be asked, and which life of it was met last? With another number, what its
  // variables held is gone. NOT_FOUND where the session sees no such task.
  struct Presence {
    bool there = false;
    uint64_t life = 0;
  };
  Result<Presence> presence(const std::string& task) const;
  std::vector<std::string> tasks() const { return map_.tasks; }
  const std::string& home() const { return map_.tasks[map_.home]; }
  // Connects to it where that is needed, and tells, by the deadline. ABORTED, once: it has lost its state since.
  void look_for(const std::string& task, Deadline deadline, Done done);
  // What each of the others says of itself, as a JSON list.
  Result<std::string> inspect(Deadline deadline);
  // Whether updates of a run of this session took place on other tasks; none of them may be away.
  enum class Outcome : uint8_t { nothing, updated, forgotten };
  Result<Outcome> outcome(uint64_t write, Deadline deadline);
  void close();

 private:
  friend class PlanMaking;
  Driver(const Host& host, const Planning& planning, Ref<RefCounted> owner);
  static Ref<Driver> create(Host host, const Planning& planning, const std::optional<Directory::Entry>& here, Ref<RefCounted> owner);
  Status meet(const Timing& timing, const Address& target, Deadline deadline);
  Status learn(const Timing& timing, const Address& target, Deadline deadline);
  Status learn_here(const Timing& timing, const Directory::Entry& here, Deadline deadline);
  Status add_others(const ClusterSpec& cluster, const std::string& known, const std::string& self, const std::vector<std::string>& filters,
                    const Timing& timing);
  Status connect_all(Deadline deadline);
  void live_at(Ref<Task> task);
  Status add_devices(uint32_t task);
  Result<wire::ArriveReply> ask_attendance(Worker& home, const wire::Arrive& question, Deadline deadline);
  Status keep_apart(uint32_t from, const std::vector<std::string>& others);
  // Until when a task is looked for by a run that has been wanted since then: runs wait for their plans one behind the other, and each
  // would look as long again.
  Deadline looked_for(int64_t wanted_ns, int64_t time_ns, Deadline deadline) const;
  // The moment so far from now, or the deadline, whichever comes first.
  Deadline within(int64_t time_ns, Deadline deadline) const;

  const Ref<RefCounted> owner_;
  const Host host_;
  const Planning planning_;
  const uint64_t session_;
  bool is_local_ = false;
  Party party_ = Party::chief;
  std::string self_;                  // the task that the session speaks for; empty: none
  std::vector<Ref<Worker>> workers_;  // by task of map_; the last is home
  Ref<LocalWorker> home_;
  std::vector<Device> devices_;
  TaskMap map_;
  std::optional<Placer> placer_;           // on all of them; where there are others
  std::map<std::string, Placer> placers_;  // for one task each
  std::string attendance_home_;            // the task that keeps the attendance of the workers
  const Ref<Absentees> absentees_;
  std::atomic<uint64_t> tickets_{0};
};

}  // namespace dtg
