// Learning the cluster, and making plans for it.
#include "cluster/driver.h"

#include <algorithm>

#include "base/json.h"

namespace dtg {
namespace {

// Of a client that is no task of the cluster: nothing can be placed there, feeds enter and fetches leave.
constexpr const char* kClient = "/job:session/replica:0/task:0";
// The task of a session that knows no other.
constexpr const char* kLocal = "/job:localhost/replica:0/task:0";

// How long a round of connecting waits for one task; at least so long that one who is there can answer.
constexpr int64_t kRoundNs = 1'000'000'000;
constexpr int64_t kRoundLeastNs = 100'000'000;
// How long a run looks for a task that went away, which may just be starting anew.
constexpr int64_t kReturnNs = 30'000'000'000;

// The server of this process at that target, if there is one.
std::optional<Directory::Entry> find_here(const Host& host, const Address& target) {
  return host.directory ? host.directory->find(target.text()) : std::nullopt;
}

bool is_pure(const Graph& graph) {
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const OpDef& op = *graph.node(id).op;
    const bool edge = op.role() == Role::send || op.role() == Role::receive || op.role() == Role::join;
    if (op.capability() != Capability::pure && !edge) return false;
  }
  return true;
}

}  // namespace

Driver::Driver(const Host& host, const Planning& planning, Ref<RefCounted> owner)
    : owner_(std::move(owner)), host_(host), planning_(planning), session_(host.seams.random->u64() | 1) {}

Driver::~Driver() { close(); }

Ref<Driver> Driver::create(Host host, const Planning& planning, const std::optional<Directory::Entry>& here, Ref<RefCounted> owner) {
  if (here) host.security = here->security;
  return Ref<Driver>::adopt(new Driver(host, planning, std::move(owner)));
}

void Driver::close() {
  for (const Ref<Worker>& worker : workers_) worker->close();
}

Result<Ref<Driver>> Driver::connect(const Host& host, const Planning& planning, const Timing& timing, const Address& target,
                                    Deadline deadline, Ref<RefCounted> owner) {
  const auto here = find_here(host, target);
  auto driver = create(host, planning, here, std::move(owner));
  DTG_TRY(here ? driver->learn_here(timing, *here, deadline) : driver->learn(timing, target, deadline));
  driver->placer_.emplace(driver->devices_, host.kernels, planning.soft_placement);
  return driver;
}

Result<Ref<Driver>> Driver::local(const Host& host, const Planning& planning, int cpu_devices, Ref<RefCounted> owner) {
  auto driver = create(host, planning, std::nullopt, owner);
  driver->is_local_ = true;
  driver->live_at(make_ref<Task>(host, kLocal, cpu_devices, std::move(owner)));
  DTG_TRY(driver->add_devices(0));
  return driver;
}

// This task is home. The last of the workers, as its number is known when the others are.
void Driver::live_at(Ref<Task> task) {
  home_ = make_ref<LocalWorker>(std::move(task), planning_);
  map_.home = static_cast<uint32_t>(workers_.size());
  workers_.push_back(Ref<Worker>::share(home_.get()));
  for (const Ref<Worker>& worker : workers_) map_.tasks.push_back(worker->name());
}

Status Driver::add_devices(uint32_t task) {
  Worker& worker = *workers_[task];
  const std::vector<std::string> names = worker.devices();
  DTG_ASSIGN(const std::vector<Device> devices, parse_devices(names));
  for (const Device& device : devices) {
    if (task_of_device(device.text) != worker.name()) {
      return data_loss("%s says that it has the device %s", worker.name().c_str(), device.text.c_str());
    }
    map_.task_of_device.push_back(task);
    devices_.push_back(device);
  }
  return {};
}

// In rounds, so that a task that is missing takes no time from the others and the error names exactly those who are.
Status Driver::connect_all(Deadline deadline) {
  const Clock& clock = *host_.seams.clock;
  for (;;) {
    std::string missing;
    Status first;
    bool hopeless = false;
    for (const Ref<Worker>& worker : workers_) {
      const Status status = worker->connect(Deadline::after(clock, std::min(kRoundNs, std::max(deadline.left_ns(clock), kRoundLeastNs))));
      if (status.ok()) continue;
      missing += (missing.empty() ? "" : "; ") + status.message();
      if (first.ok()) first = status;
      hopeless |= status.code() != Code::unavailable && status.code() != Code::deadline_exceeded;
    }
    if (first.ok()) return {};
    if (hopeless || deadline.passed(clock)) {
      return Status(first.code(), "connect to the cluster: " + missing, first.origin());
    }
  }
}

Result<std::string> Driver::look(const Host& host, const Timing& timing, const Address& target, Deadline deadline, Ref<RefCounted> owner) {
  auto driver = create(host, {}, find_here(host, target), std::move(owner));
  DTG_TRY(driver->meet(timing, target, deadline));
  return driver->inspect(deadline);
}

// The task at the target, connected, and who else there is.
Status Driver::meet(const Timing& timing, const Address& target, Deadline deadline) {
  workers_.push_back(make_ref<RemoteWorker>(host_, timing, "", target, "", session_));
  DTG_TRY(workers_[0]->connect(deadline));
  DTG_ASSIGN(const ClusterSpec cluster, ClusterSpec::parse(workers_[0]->cluster()));
  return add_others(cluster, workers_[0]->name(), "", {}, timing);
}

Status Driver::learn(const Timing& timing, const Address& target, Deadline deadline) {
  DTG_TRY(meet(timing, target, deadline));
  DTG_TRY(connect_all(deadline));
  // Its own task has a device for the home parts, which nothing is placed on.
  live_at(make_ref<Task>(host_, kClient, 1, owner_));
  for (uint32_t task = 0; task < map_.home; ++task) DTG_TRY(add_devices(task));
  return {};
}

Status Driver::learn_here(const Timing& timing, const Directory::Entry& here, Deadline deadline) {
  DTG_TRY(add_others(here.cluster, here.task->name(), here.task->name(), here.filters, timing));
  DTG_TRY(connect_all(deadline));
  live_at(here.task);
  DTG_TRY(add_devices(map_.home));
  for (uint32_t task = 0; task < map_.home; ++task) DTG_TRY(add_devices(task));
  return {};
}

// All but `known`. A task is seen if it matches one of the filters, or there are none. The session speaks for `self`.
Status Driver::add_others(const ClusterSpec& cluster, const std::string& known, const std::string& self,
                          const std::vector<std::string>& filters, const Timing& timing) {
  std::vector<DeviceName> wanted;
  for (const std::string& filter : filters) {
    DTG_ASSIGN(DeviceName name, DeviceName::parse(filter));
    wanted.push_back(std::move(name));
  }
  for (const ClusterSpec::Task& task : cluster.tasks()) {
    if (task.name() == known) continue;
    DTG_ASSIGN(const DeviceName name, DeviceName::parse(task.name()));
    const bool seen =
        wanted.empty() || std::ranges::any_of(wanted, [&](const DeviceName& filter) { return DeviceName::intersect(filter, name).ok(); });
    if (seen) workers_.push_back(make_ref<RemoteWorker>(host_, timing, task.name(), task.address, self, session_));
  }
  return {};
}

// False where tasks turned out to be apart.
Result<bool> Driver::register_parts(Partition& parts, PartitionedPlan& plan, Deadline deadline) {
  const Deadline back{std::min(Deadline::after(*host_.seams.clock, kReturnNs).at_ns, deadline.at_ns)};
  // All of them before the first part: a task that sends to another tells it for whom.
  for (const Part& part : parts.others) DTG_TRY(workers_[part.task]->connect(back));
  for (Part& part : parts.others) {
    const Ref<Worker>& worker = workers_[part.task];
    DTG_ASSIGN(Worker::Part registered, worker->register_part(part.graph, std::move(part.request), deadline));
    if (!registered.unreachable.empty()) {
      DTG_TRY(keep_apart(part.task, registered.unreachable));
      return false;
    }
    plan.others_.push_back({worker, std::move(registered)});
  }
  const auto peer_of = [&](const std::string& peer, bool) -> Result<uint32_t> {
    const auto at = std::ranges::find_if(plan.others_, [&](const PartitionedPlan::Piece& piece) { return piece.worker->name() == peer; });
    if (at == plan.others_.end()) return internal_error("partition: an edge to %s, which has no part", peer.c_str());
    return static_cast<uint32_t>(at - plan.others_.begin());
  };
  DTG_ASSIGN(plan.edges_, EdgeTable::make(*parts.home.graph, peer_of));
  plan.home_is_pure_ = is_pure(*parts.home.graph);
  return true;
}

// What one of these makes for the other goes through home from now on.
Status Driver::keep_apart(uint32_t from, const std::vector<std::string>& others) {
  for (const std::string& other : others) {
    const auto at = std::ranges::find(map_.tasks, other);
    const auto to = static_cast<uint32_t>(at - map_.tasks.begin());
    if (at == map_.tasks.end() || !map_.apart.insert({from, to}).second) {
      return data_loss("%s cannot reach %s, to which it has nothing to send", map_.tasks[from].c_str(), other.c_str());
    }
  }
  return {};
}

Result<Ref<PartitionedPlan>> Driver::make_plan(Ref<Graph> graph, PlanRequest request, Deadline deadline) {
  Part home{map_.home, graph, request};
  Ref<PartitionedPlan> plan;
  for (bool done = false; !done;) {
    plan = make_ref<PartitionedPlan>(Ref<RefCounted>::share(this), host_, graph, request);
    if (workers_.size() == 1) break;
    DTG_ASSIGN(Partition parts, partition(home_->context(*placer_, deadline), *graph, request, map_));
    DTG_ASSIGN(done, register_parts(parts, *plan, deadline));
    home = std::move(parts.home);
  }
  plan->home_.worker = workers_[map_.home];
  DTG_ASSIGN(plan->home_.part, home_->register_part(std::move(home.graph), std::move(home.request), deadline));
  return plan;
}

Result<PlanPages> Driver::explain(Ref<Graph> graph, PlanRequest request, Deadline deadline) const {
  if (workers_.size() == 1) return home_->explain(std::move(graph), std::move(request), deadline);
  Placer placer = *placer_;
  return explain_parts(home_->context(placer, deadline), *graph, request, map_);
}

Status Driver::end_job(Deadline deadline) {
  if (is_local_) return failed_precondition("end the job: this session is local, there are no other tasks");
  const Clock& clock = *host_.seams.clock;
  Status first;
  for (const Ref<Worker>& worker : workers_) {
    // A task that left already is not waited for.
    Status status = worker->connect(Deadline{std::min(Deadline::after(clock, kRoundLeastNs).at_ns, deadline.at_ns)});
    if (status.ok()) status = worker->end_job(deadline);
    const bool gone = status.code() == Code::unavailable || status.code() == Code::aborted;
    if (!status.ok() && !gone && first.ok()) first = status;
  }
  return first;
}

Result<std::string> Driver::inspect(Deadline deadline) {
  if (is_local_) return failed_precondition("inspect the cluster: this session is local, there are no other tasks");
  const Clock& clock = *host_.seams.clock;
  std::string list;
  for (const Ref<Worker>& worker : workers_) {
    if (home_ && worker.get() == home_.get()) continue;  // it can ask itself
    Status status = worker->connect(Deadline{std::min(Deadline::after(clock, kRoundNs).at_ns, deadline.at_ns)});
    Result<std::string> text = status.ok() ? worker->inspect(deadline) : Result<std::string>(status);
    list += list.empty() ? "" : ",";
    list += text.ok() ? text.value() : Json(Json::Object{{"task", worker->name()}, {"error", text.status().message()}}).text();
  }
  return "[" + list + "]";
}

Status Driver::reset(const std::vector<std::string>& containers, Deadline deadline) {
  for (const Ref<Worker>& worker : workers_) {
    DTG_TRY(worker->connect(deadline));
    DTG_TRY(worker->reset(containers, deadline));
  }
  return {};
}

}  // namespace dtg
