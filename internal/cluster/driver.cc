// Making and accompanying plans.
#include "cluster/driver.h"

#include <algorithm>

#include "cluster/task.h"
#include "wire/graph_codec.h"

namespace dtg {
namespace {

// Not a task of the cluster: nothing can be placed there, feeds enter and fetches leave.
constexpr const char* kHome = "/job:session/replica:0/task:0";

// How long a round of connecting waits for one task; at least so long that one who is there can answer.
constexpr int64_t kRoundNs = 1'000'000'000;
constexpr int64_t kRoundLeastNs = 100'000'000;

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
    std::vector<Ref<Link>> links;
    for (const Worker::Part& part : parts_) links.push_back(part.link);
    const Step& step = frame.step();
    auto edges = make_ref<StepEdges>(*driver_->host_.loop, *driver_->host_.seams.budget, table_, std::move(links), step.sequence(), true);
    {
      const std::lock_guard lock(mutex_);
      running_.emplace_back(&frame, edges);
    }
    for (const Worker::Part& part : parts_) DTG_TRY(part.link->add_step(step.sequence(), edges));
    edges->begin(frame.step());
    wire::RunPart request;
    request.sequence = step.sequence();
    request.deadline_left_ns = step.deadline().left_ns(*driver_->host_.seams.clock);
    return edges->start([&] {
      for (const Worker::Part& part : parts_) {
        request.part = part.id;
        part.link->send(request);
      }
    });
  }

  void end(Frame& frame) override {
    Ref<StepEdges> edges;
    {
      const std::lock_guard lock(mutex_);
      const auto at = std::ranges::find(running_, &frame, &Running::first);
      if (at == running_.end()) return;
      edges = std::move(at->second);
      running_.erase(at);
    }
    edges->end();
    // A task that refused does not know its part any more, or something the part names is gone.
    if (frame.step().cause().code() == Code::aborted) stale_.store(true, std::memory_order_relaxed);
  }

  bool is_current() const override {
    return std::ranges::all_of(parts_, [](const Worker::Part& part) { return part.link->is_open(); }) && !stale_.load(std::memory_order_relaxed);
  }

 private:
  friend class Driver;
  using Running = std::pair<Frame*, Ref<StepEdges>>;

  const Ref<Driver> driver_;
  Placer placer_;
  std::vector<Worker::Part> parts_;  // the peers of a run, by number
  Ref<EdgeTable> table_;             // of the home part
  std::atomic<bool> stale_{false};
  std::mutex mutex_;
  std::vector<Running> running_;
};

Driver::Driver(const Host& host, Ref<RefCounted> owner) : owner_(std::move(owner)), host_(host), session_(host.seams.random->u64() | 1) {}

Driver::~Driver() { close(); }

void Driver::close() {
  for (const Ref<Worker>& worker : workers_) worker->close();
}

Result<Ref<Driver>> Driver::connect(const Host& host, const Timing& timing, const Address& target, Deadline deadline, Ref<RefCounted> owner) {
  auto driver = Ref<Driver>::adopt(new Driver(host, std::move(owner)));
  DTG_TRY(driver->learn(timing, target, deadline));
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

Status Driver::learn(const Timing& timing, const Address& target, Deadline deadline) {
  workers_.push_back(make_ref<RemoteWorker>(host_, timing, "", target, session_));
  DTG_TRY(workers_[0]->connect(deadline));
  DTG_ASSIGN(const ClusterSpec cluster, ClusterSpec::parse(workers_[0]->cluster()));
  for (const ClusterSpec::Task& task : cluster.tasks()) {
    if (task.name() != workers_[0]->name()) workers_.push_back(make_ref<RemoteWorker>(host_, timing, task.name(), task.address, session_));
  }
  DTG_TRY(connect_all(deadline));
  for (const Ref<Worker>& worker : workers_) DTG_TRY(add_devices(*worker));
  map_.home = static_cast<uint32_t>(map_.tasks.size());
  map_.tasks.push_back(kHome);
  return {};
}

Result<Ref<Driver::Attendance>> Driver::register_parts(const Partition& parts, Deadline deadline) {
  auto attendance = make_ref<Attendance>(Ref<Driver>::share(this), cpu_devices(kHome, 1));
  std::vector<std::string> peers;
  for (const Part& part : parts.others) {
    Worker& worker = *workers_[part.task];
    DTG_TRY(worker.connect(deadline));
    DTG_ASSIGN(const std::string graph, encode_graph(*part.graph, host_.limits));
    DTG_ASSIGN(Worker::Part registered, worker.register_part(graph, part.request.targets, deadline));
    attendance->parts_.push_back(std::move(registered));
    peers.push_back(worker.name());
  }
  const auto peer_of = [&](const std::string& peer) -> Result<uint32_t> {
    const auto at = std::ranges::find(peers, peer);
    if (at == peers.end()) return internal_error("partition: an edge to %s, which has no part", peer.c_str());
    return static_cast<uint32_t>(at - peers.begin());
  };
  DTG_ASSIGN(attendance->table_, EdgeTable::make(*parts.home.graph, peer_of));
  return attendance;
}

Result<Ref<Plan>> Driver::make_plan(const PlanContext& context, Ref<Graph> graph, PlanRequest request, Deadline deadline) {
  DTG_ASSIGN(Partition parts, partition(context, *graph, request, map_));
  for (const Edge& edge : parts.edges) {
    if (edge.from == map_.home || edge.to == map_.home) continue;
    return unimplemented("run: a value goes from %s to %s; values travel between the session and a task, edges between two other tasks are not "
                         "built in, so place the ends together or fetch and feed it",
                         map_.tasks[edge.from].c_str(), map_.tasks[edge.to].c_str());
  }
  DTG_ASSIGN(Ref<Attendance> attendance, register_parts(parts, deadline));
  PlanContext home = context;
  home.store = &home_store_;
  home.placer = &attendance->placer_;
  DTG_ASSIGN(Ref<Plan> plan, Plan::make(home, std::move(parts.home.graph), std::move(parts.home.request)));
  plan->attend(std::move(attendance), std::move(graph), std::move(request));
  return plan;
}

Status Driver::reset(const std::vector<std::string>& containers, Deadline deadline) {
  for (const Ref<Worker>& worker : workers_) {
    DTG_TRY(worker->connect(deadline));
    DTG_TRY(worker->reset(containers, deadline));
  }
  return {};
}

}  // namespace dtg
