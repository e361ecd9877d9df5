// Making and accompanying plans.
#include "cluster/driver.h"

#include <algorithm>

#include "base/json.h"
#include "cluster/task.h"
#include "wire/graph_codec.h"

namespace dtg {
namespace {

// Not a task of the cluster: nothing can be placed there, feeds enter and fetches leave.
constexpr const char* kHome = "/job:session/replica:0/task:0";

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
    if (op.capability() != Capability::pure && op.name() != "_Send" && op.name() != "_Recv" && op.name() != "_Join") return false;
  }
  return true;
}

}  // namespace

// Keeps the parts of one plan, and the edges of its runs.
class Driver::Attendance final : public Attendant {
 public:
  Attendance(Ref<Driver> driver, std::vector<Device> devices)
      : driver_(std::move(driver)), placer_(std::move(devices), driver_->host_.kernels, false) {}

  ~Attendance() override {
    for (const Worker::Part& part : parts_) {
      if (part.link->is_open()) part.link->send(wire::DropPart{part.id});
    }
  }

  Status begin(Frame& frame) override {
    if (parts_.empty()) return {};
    std::vector<Ref<Link>> links;
    for (const Worker::Part& part : parts_) links.push_back(part.link);
    const Step& step = frame.step();
    auto edges = make_ref<StepEdges>(*driver_->host_.loop, *driver_->host_.seams.budget, table_, std::move(links), step.sequence(), true);
    {
      const std::lock_guard lock(mutex_);
      running_.emplace_back(&frame, edges);
    }
    DTG_TRY(edges->enter());
    edges->begin(frame.step());
    wire::RunPart request;
    request.sequence = step.sequence();
    request.deadline_left_ns = step.deadline().left_ns(*driver_->host_.seams.clock);
    DTG_TRY(edges->start([&] {
      for (const Worker::Part& part : parts_) {
        request.part = part.id;
        part.link->queue(request);
      }
    }));
    for (const Worker::Part& part : parts_) part.link->kick();
    return {};
  }

  bool end(Frame& frame) override {
    Ref<StepEdges> edges;
    {
      const std::lock_guard lock(mutex_);
      const auto at = std::ranges::find(running_, &frame, &Running::first);
      if (at == running_.end()) return false;
      edges = std::move(at->second);
      running_.erase(at);
    }
    edges->end();
    if (frame.step().cause().code() != Code::aborted) return false;
    // A task that refused does not know its part any more, or something the part names is gone.
    stale_.store(true, std::memory_order_relaxed);
    return home_is_pure_ && edges->refused();
  }

  bool is_current() const override {
    return std::ranges::all_of(parts_, [](const Worker::Part& part) { return part.link->is_open(); }) &&
           !stale_.load(std::memory_order_relaxed);
  }

 private:
  friend class Driver;
  using Running = std::pair<Frame*, Ref<StepEdges>>;

  const Ref<Driver> driver_;
  Placer placer_;
  std::vector<Worker::Part> parts_;  // the peers of a run, by number
  Ref<EdgeTable> table_;             // of the home part
  bool home_is_pure_ = false;        // it changes nothing, so it may run again
  std::atomic<bool> stale_{false};
  std::mutex mutex_;
  std::vector<Running> running_;
};

Driver::Driver(const Host& host, Ref<RefCounted> owner) : owner_(std::move(owner)), host_(host), session_(host.seams.random->u64() | 1) {}

Driver::~Driver() { close(); }

Ref<Driver> Driver::create(Host host, const std::optional<Directory::Entry>& here, Ref<RefCounted> owner) {
  if (here) host.security = here->security;
  return Ref<Driver>::adopt(new Driver(host, std::move(owner)));
}

void Driver::close() {
  for (const Ref<Worker>& worker : workers_) worker->close();
}

Result<Ref<Driver>> Driver::connect(const Host& host, const Timing& timing, const Address& target, Deadline deadline,
                                    Ref<RefCounted> owner) {
  const auto here = find_here(host, target);
  auto driver = create(host, here, std::move(owner));
  DTG_TRY(here ? driver->learn_here(timing, *here, deadline) : driver->learn(timing, target, deadline));
  return driver;
}

Status Driver::add_devices(Worker& worker) {
  const std::vector<std::string> names = worker.devices();
  DTG_ASSIGN(const std::vector<Device> devices, parse_devices(names));
  for (const Device& device : devices) {
    if (task_of_device(device.text) != worker.name()) {
      return data_loss("%s says that it has the device %s", worker.name().c_str(), device.text.c_str());
    }
    map_.task_of_device.push_back(static_cast<uint32_t>(map_.tasks.size()));
    devices_.push_back(device);
  }
  map_.tasks.push_back(worker.name());
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
  auto driver = create(host, find_here(host, target), std::move(owner));
  DTG_TRY(driver->meet(timing, target, deadline));
  return driver->inspect(deadline);
}

// The task at the target, connected, and who else there is.
Status Driver::meet(const Timing& timing, const Address& target, Deadline deadline) {
  workers_.push_back(make_ref<RemoteWorker>(host_, timing, "", target, "", session_));
  DTG_TRY(workers_[0]->connect(deadline));
  DTG_ASSIGN(const ClusterSpec cluster, ClusterSpec::parse(workers_[0]->cluster()));
  return add_others(cluster, workers_[0]->name(), {}, timing);
}

Status Driver::learn(const Timing& timing, const Address& target, Deadline deadline) {
  DTG_TRY(meet(timing, target, deadline));
  DTG_TRY(connect_all(deadline));
  for (const Ref<Worker>& worker : workers_) DTG_TRY(add_devices(*worker));
  map_.home = static_cast<uint32_t>(map_.tasks.size());
  map_.tasks.push_back(kHome);
  return {};
}

Status Driver::learn_here(const Timing& timing, const Directory::Entry& here, Deadline deadline) {
  here_ = here.task;
  DTG_TRY(add_others(here.cluster, here_->name(), here.filters, timing));
  DTG_TRY(connect_all(deadline));
  map_.home = static_cast<uint32_t>(workers_.size());
  for (const Device& device : here_->devices()) {
    map_.task_of_device.push_back(map_.home);
    devices_.push_back(device);
  }
  for (const Ref<Worker>& worker : workers_) DTG_TRY(add_devices(*worker));
  map_.tasks.push_back(here_->name());
  return {};
}

// A task is seen if it matches one of the filters, or there are none.
Status Driver::add_others(const ClusterSpec& cluster, const std::string& self, const std::vector<std::string>& filters,
                          const Timing& timing) {
  std::vector<DeviceName> wanted;
  for (const std::string& filter : filters) {
    DTG_ASSIGN(DeviceName name, DeviceName::parse(filter));
    wanted.push_back(std::move(name));
  }
  for (const ClusterSpec::Task& task : cluster.tasks()) {
    if (task.name() == self) continue;
    DTG_ASSIGN(const DeviceName name, DeviceName::parse(task.name()));
    const bool seen =
        wanted.empty() || std::ranges::any_of(wanted, [&](const DeviceName& filter) { return DeviceName::intersect(filter, name).ok(); });
    if (seen) workers_.push_back(make_ref<RemoteWorker>(host_, timing, task.name(), task.address, here_ ? here_->name() : "", session_));
  }
  return {};
}

Result<Ref<Driver::Attendance>> Driver::register_parts(const Partition& parts, Deadline deadline) {
  auto attendance = make_ref<Attendance>(Ref<Driver>::share(this), here_ ? here_->devices() : cpu_devices(kHome, 1));
  std::vector<std::string> peers;
  const Deadline back{std::min(Deadline::after(*host_.seams.clock, kReturnNs).at_ns, deadline.at_ns)};
  // All of them before the first part: a task that sends to another tells it for whom.
  for (const Part& part : parts.others) DTG_TRY(workers_[part.task]->connect(back));
  for (const Part& part : parts.others) {
    Worker& worker = *workers_[part.task];
    DTG_ASSIGN(const std::string graph, encode_graph(*part.graph, host_.limits));
    DTG_ASSIGN(Worker::Part registered, worker.register_part(graph, part.request.targets, deadline));
    if (!registered.unreachable.empty()) {
      DTG_TRY(keep_apart(part.task, registered.unreachable));
      return Ref<Attendance>();
    }
    attendance->parts_.push_back(std::move(registered));
    peers.push_back(worker.name());
  }
  const auto peer_of = [&](const std::string& peer, bool) -> Result<uint32_t> {
    const auto at = std::ranges::find(peers, peer);
    if (at == peers.end()) return internal_error("partition: an edge to %s, which has no part", peer.c_str());
    return static_cast<uint32_t>(at - peers.begin());
  };
  DTG_ASSIGN(attendance->table_, EdgeTable::make(*parts.home.graph, peer_of));
  attendance->home_is_pure_ = is_pure(*parts.home.graph);
  return attendance;
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

Result<Ref<Plan>> Driver::make_plan(const PlanContext& context, Ref<Graph> graph, PlanRequest request, Deadline deadline) {
  Partition parts;
  Ref<Attendance> attendance;
  while (!attendance) {
    DTG_ASSIGN(parts, partition(context, *graph, request, map_));
    DTG_ASSIGN(attendance, register_parts(parts, deadline));
  }
  PlanContext home = context;
  home.store = here_ ? &here_->store() : &home_store_;
  home.placer = &attendance->placer_;
  DTG_ASSIGN(Ref<Plan> plan, Plan::make(home, std::move(parts.home.graph), std::move(parts.home.request)));
  plan->attend(std::move(attendance), std::move(graph), std::move(request));
  return plan;
}

Status Driver::end_job(Deadline deadline) {
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
  const Clock& clock = *host_.seams.clock;
  std::string list;
  for (const Ref<Worker>& worker : workers_) {
    Status status = worker->connect(Deadline{std::min(Deadline::after(clock, kRoundNs).at_ns, deadline.at_ns)});
    Result<std::string> text = status.ok() ? worker->inspect(deadline) : Result<std::string>(status);
    list += list.empty() ? "" : ",";
    list += text.ok() ? text.value() : Json(Json::Object{{"task", worker->name()}, {"error", text.status().message()}}).text();
  }
  return "[" + list + "]";
}

Status Driver::reset(const std::vector<std::string>& containers, Deadline deadline) {
  if (here_) here_->store().reset(containers);
  for (const Ref<Worker>& worker : workers_) {
    DTG_TRY(worker->connect(deadline));
    DTG_TRY(worker->reset(containers, deadline));
  }
  return {};
}

}  // namespace dtg
