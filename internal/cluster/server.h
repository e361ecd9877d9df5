// Server: a task that listens. It holds the variables of its task, takes parts of graphs from sessions and runs
// them. There is no master and no parameter server among them: a parameter server is a server that holds variables.
//
// Owner: the host. Connections live on the loop; start and stop are called from any other thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/condition.h"
#include "base/json.h"
#include "cluster/departures.h"
#include "cluster/fence.h"
#include "cluster/spec.h"
#include "cluster/task.h"
#include "wire/messages.h"

namespace dtg {

class Connection;
class Group;

class Server final : public RefCounted {
 public:
  struct Options {
    ClusterSpec cluster;
    std::string job;
    int task = 0;
    DeviceWish devices;
    std::vector<std::string> filters;  // devices that sessions of this server see; none: all
    SecurityOptions security;          // for addresses that are no unix sockets
    // Where what is committed here is kept, so that a server that is started anew with the same one goes on with it; empty: nowhere.
    std::string state_directory;
    int64_t set_bytes = CommitLog::kSetBytes;  // so much of a log is worth a set
    bool waits_for_disk = true;                // before an update is told to have taken place
    AcceptLimits accept;
    bool shared_memory = true;  // with processes of this host and user, over unix sockets
    Timing timing;
  };
  // Listens when it returns. `owner` keeps what `host` points to.
  static Result<Ref<Server>> start(const Host& host, Options options, Ref<RefCounted> owner);
  ~Server() override;

  // Takes no more connections, ends those there are, and waits for the runs to end. Idempotent.
  Status stop(int64_t timeout_ns);
  // Waits until it has stopped, or the chief has ended the job.
  Status join(Deadline deadline);
  // What it is doing; on the loop.
  Json state() const;
  Result<std::string> inspect();
  // Takes part in a group from now on, whose members are these tasks of the cluster in the order of their ranks; none: the tasks of the
  // server's own job. Graph ops find it by its key, and their calls take
  // `call_ns` at most where they say nothing. Nothing is agreed on yet. Any thread but the loop's.
  Result<Ref<Group>> join_group(std::string name, std::vector<std::string> members, int32_t key, int64_t call_ns, Ref<RefCounted> owner);
  // What a session connects to.
  const std::string& target() const { return target_; }
  Task& task() { return *task_; }

 private:
  friend class Connection;
  Server(const Host& host, Options options, Ref<Task> task, std::string target);
  void take_attendance();
  Status listen(const ClusterSpec::Task& self);
  void accepted(Ref<Channel> channel);
  void end(bool by_chief);
  void leave_groups(const Status& reason, Deadline deadline);
  // All sessions of workers that are connected here.
  void tell_workers(const wire::Roll& roll);
  // Of that name; null where this task has not joined it.
  Ref<Group> group(const std::string& name) const;
  // The connection of that session; null when it has none here.
  Connection* session(uint64_t number) const;

  static constexpr size_t kConnectionsMax = 4096;
  const Host host_;
  const Options options_;
  const Ref<Task> task_;
  std::string target_;      // constant once it listens
  Condition over_changed_;  // guards over_ and by_chief_
  bool over_ = false;
  bool by_chief_ = false;
  std::atomic<bool> told_{false};  // the log knows that it stops
  // Loop thread.
  const Ref<Fence> fence_ = make_ref<Fence>();
  Departures departures_;
  std::unique_ptr<Listener> listener_;
  std::vector<Connection*> connections_;  // as they came
  std::map<std::string, Ref<Group>> groups_;
  std::unordered_map<uint64_t, Connection*> sessions_;  // those of them that are no neighbours
};

}  // namespace dtg
