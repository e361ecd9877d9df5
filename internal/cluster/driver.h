// Driver: runs plans that have parts on other tasks, on behalf of a session. It knows the tasks of the cluster, cuts
// requests, registers the parts, and accompanies each run: it starts the other parts and gives the home part its
// edges. The home part runs like any local plan.
//
// Owner: the session and its plans. Any thread but the loop's.
#pragma once

#include "cluster/directory.h"
#include "cluster/remote_worker.h"
#include "plan/partition.h"
#include "plan/plan.h"

namespace dtg {

class Driver final : public RefCounted {
 public:
  // Learns the cluster from the task at `target` and connects to all of it. A server of this process is not connected to:
  // its task becomes home. `owner` keeps what the host points to.
  static Result<Ref<Driver>> connect(const Host& host, const Timing& timing, const Address& target, Deadline deadline,
                                     Ref<RefCounted> owner);
  // What inspect() tells, from a cluster of which any number of tasks but the one at `target` may be gone. Over the network
  // even where the target is a server of this process.
  static Result<std::string> look(const Host& host, const Timing& timing, const Address& target, Deadline deadline, Ref<RefCounted> owner);
  ~Driver() override;

  // The task of this process that the session speaks for, or null.
  Task* here() const { return here_.get(); }
  // All devices of the cluster, those of the target first.
  const std::vector<Device>& devices() const { return devices_; }
  // `context` places on these devices.
  Result<Ref<Plan>> make_plan(const PlanContext& context, Ref<Graph> graph, PlanRequest request, Deadline deadline);
  Status reset(const std::vector<std::string>& containers, Deadline deadline);
  // Tells all other tasks to stop; who is gone already is no error.
  Status end_job(Deadline deadline);
  // What each task says of itself, as a JSON list.
  Result<std::string> inspect(Deadline deadline);
  void close();

 private:
  class Attendance;
  Driver(const Host& host, Ref<RefCounted> owner);
  static Ref<Driver> create(Host host, const std::optional<Directory::Entry>& here, Ref<RefCounted> owner);
  Status meet(const Timing& timing, const Address& target, Deadline deadline);
  Status learn(const Timing& timing, const Address& target, Deadline deadline);
  Status learn_here(const Timing& timing, const Directory::Entry& here, Deadline deadline);
  Status add_others(const ClusterSpec& cluster, const std::string& self, const std::vector<std::string>& filters, const Timing& timing);
  Status connect_all(Deadline deadline);
  Status add_devices(Worker& worker);
  Status keep_apart(uint32_t from, const std::vector<std::string>& others);
  // Null where tasks turned out to be apart, which map_ knows then: the request has to be cut anew.
  Result<Ref<Attendance>> register_parts(const Partition& parts, Deadline deadline);

  const Ref<RefCounted> owner_;
  const Host host_;
  const uint64_t session_;
  std::vector<Ref<Worker>> workers_;  // by task of map_; the last task is home
  Ref<Task> here_;                    // the task that is home; null for a client that is no task
  std::vector<Device> devices_;
  TaskMap map_;
  ResourceStore home_store_;
};

}  // namespace dtg
