// Preparing parts.
#include "cluster/task.h"

#include <algorithm>

#include "wire/graph_codec.h"

namespace dtg {

std::vector<Device> cpu_devices(const std::string& task, int count) {
  std::vector<Device> devices;
  for (int i = 0; i < count; ++i) {
    Device device;
    device.text = task + "/device:CPU:" + std::to_string(i);
    auto name = DeviceName::parse(device.text);
    if (name.ok()) device.name = name.take();
    device.type = "CPU";
    devices.push_back(std::move(device));
  }
  return devices;
}

Result<std::vector<Device>> parse_devices(std::span<const std::string> names) {
  std::vector<Device> devices;
  for (const std::string& text : names) {
    DTG_ASSIGN(DeviceName name, DeviceName::parse(text));
    if (!name.is_full()) return data_loss("\"%s\" is not the full name of a device", text.c_str());
    const std::string type = *name.type;
    devices.push_back({std::move(name), text, type});
  }
  return devices;
}

ServedPart::ServedPart(Ref<Task> task, std::vector<Device> devices)
    : task_(std::move(task)), placer_(std::move(devices), task_->host().kernels, false) {}

const LoggedWrites* ServedPart::logged(uint32_t phase) const {
  const auto at = std::ranges::find(logged_, phase, &std::pair<uint32_t, LoggedWrites>::first);
  return at == logged_.end() ? nullptr : &at->second;
}

ServedPart::~ServedPart() { task_->host().seams.budget->release(reserved_); }

Task::Task(const Host& host, std::string name, int cpu_count, Ref<RefCounted> owner)
    : owner_(std::move(owner)),
      host_(host),
      name_(std::move(name)),
      incarnation_(host.seams.random->u64() | 1),
      devices_(cpu_devices(name_, cpu_count)) {}

namespace {

// As many runs of a part as sessions may have under way: one that waits in a dequeue must not keep another from starting.
constexpr int kServedFrames = 4096;
constexpr size_t kSharedParts = 1024;

Result<LoggedWrites> logged_writes(const IrCommit& commit, const wire::Limits& limits) {
  LoggedWrites writes;
  DTG_ASSIGN(writes.graph, encode_graph(*commit.graph, limits));
  for (const Value& fed : commit.fed) writes.fed.push_back({fed.node(), fed.output()});
  writes.writes = commit.writes;
  const Hash128 hash = hash_content(writes.graph);
  writes.key = hash.low;
  return writes;
}

}  // namespace

void Task::add_observer(Observer* observer) {
  const std::lock_guard lock(observers_mutex_);
  if (gone_.ok()) observers_.push_back(observer);
  else observer->task_stopped(gone_);
}

bool Task::wait_for_observers(Deadline deadline) {
  return quiet_.wait(*host_.seams.clock, deadline, [this] {
    const std::lock_guard lock(observers_mutex_);
    return std::ranges::all_of(observers_, [](const Observer* observer) { return observer->is_idle(); });
  });
}

void Task::remove_observer(Observer* observer) {
  {
    const std::lock_guard lock(observers_mutex_);
    std::erase(observers_, observer);
  }
  observer_left();
}

void Task::stopped(const Status& why) {
  const std::lock_guard lock(observers_mutex_);
  if (!gone_.ok()) return;
  gone_ = why;
  for (Observer* observer : observers_) observer->task_stopped(why);
}

void Task::trim(bool all) {
  std::vector<std::pair<Hash128, Ref<ServedPart>>> dropped;  // after the lock
  const std::lock_guard lock(parts_mutex_);
  const auto keep = [&](const auto& entry) { return !all && entry.second->ref_count() > 1 && entry.second->plan().is_current(); };
  const auto from = std::stable_partition(parts_.begin(), parts_.end(), keep);
  dropped.assign(std::make_move_iterator(from), std::make_move_iterator(parts_.end()));
  parts_.erase(from, parts_.end());
}

Ref<ServedPart> Task::shared_part(Hash128 hash, std::string_view graph, std::span<const uint32_t> targets, bool attaches) {
  const std::lock_guard lock(parts_mutex_);
  for (const auto& [key, part] : parts_) {
    if (key == hash && part->attaches_ == attaches && part->graph_ == graph && std::ranges::equal(part->targets_, targets) &&
        part->plan().is_current())
      return part;
  }
  return {};
}

void Task::keep_in(Ref<CommitLog> log, uint64_t incarnation) {
  log_ = std::move(log);
  incarnation_ = incarnation;
}

// Variables are kept; what else changes would be gone after a restart, or there again, and nobody would know.
Status Task::check_keepable(const Graph& graph) const {
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Access access = node.op->access_of(i);
      const bool accumulates = node.op->name().find("Accumulator") != std::string::npos && access != Access::ask;
      if (access != Access::destroy && !accumulates) continue;
      return unimplemented("register a part: \"%.*s\" (%s) is for tasks that keep their state in memory; %s keeps it in a log, which holds "
                           "variables only",
                           static_cast<int>(node.name.size()), node.name.data(), node.op->name().c_str(), name_.c_str())
          .at_node(node.name);
    }
  }
  return {};
}

Result<Ref<ServedPart>> Task::prepare(std::string_view bytes, std::span<const uint32_t> targets, const Ref<const Rights>& rights,
                                      Deadline deadline) {
  const Hash128 hash = hash_content(bytes);
  const bool attaches = rights->allows(Verb::attach);
  if (Ref<ServedPart> present = shared_part(hash, bytes, targets, attaches)) {
    DTG_TRY(check_graph(present->plan().graph(), *rights));
    return present;
  }
  if (deadline.passed(*host_.seams.clock))
    return deadline_exceeded("register a part: its time was over before %s came to it", name_.c_str());
  auto part = make_ref<ServedPart>(Ref<Task>::share(this), devices_);
  DTG_ASSIGN(const int64_t decoded, graph_memory(bytes, host_.limits));
  const int64_t memory = decoded + static_cast<int64_t>(bytes.size());
  DTG_TRY(host_.seams.budget->reserve(memory, "a part of a graph"));
  part->reserved_ = memory;
  part->attaches_ = attaches;
  part->graph_ = bytes;
  part->targets_.assign(targets.begin(), targets.end());
  DTG_ASSIGN(Ref<Graph> graph, Graph::create(host_.ops));
  DTG_TRY(decode_graph(bytes, *graph, *host_.seams.budget, host_.limits));
  DTG_TRY(check_graph(*graph, *rights));
  if (log_) DTG_TRY(check_keepable(*graph));
  const auto peer_of = [&](const std::string& peer, bool incoming) -> Result<uint32_t> {
    if (peer.empty()) return 0u;
    if (peer == name_) return invalid_argument("an edge from %s to itself is impossible", peer.c_str());
    const ServedPart::Neighbour neighbour{peer, incoming};
    auto at = std::ranges::find(part->neighbours_, neighbour);
    if (at == part->neighbours_.end()) at = part->neighbours_.insert(at, neighbour);
    return static_cast<uint32_t>(at - part->neighbours_.begin()) + 1;
  };
  DTG_ASSIGN(part->edges_, EdgeTable::make(*graph, peer_of));
  PlanContext context;
  context.kernels = host_.kernels;
  context.ops = host_.ops;
  context.pool = host_.pool;
  context.store = &store_;
  context.placer = &part->placer_;
  context.clock = host_.seams.clock;
  context.frames = kServedFrames;
  context.memory = host_.memory;
  context.budget = host_.seams.budget;
  context.deadline = deadline;
  context.rights = rights;
  context.committing = log_ ? Committing::logged : Committing::joined;
  PlanRequest request;
  for (uint32_t target : targets) request.targets.push_back(target);
  DTG_ASSIGN(part->plan_, Plan::make(context, std::move(graph), std::move(request)));
  for (const IrCommit& commit : part->plan_->commits()) {
    DTG_ASSIGN(LoggedWrites writes, logged_writes(commit, host_.limits));
    part->logged_.emplace_back(commit.phase, std::move(writes));
  }
  const std::lock_guard lock(parts_mutex_);
  if (parts_.size() < kSharedParts) parts_.emplace_back(hash, part);
  return part;
}

}  // namespace dtg
