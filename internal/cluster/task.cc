// Preparing parts.
#include "cluster/task.h"

#include <algorithm>
#include <cstring>

#include "base/sha256.h"
#include "device/emu/emu.h"
#include "exec/task_log.h"
#include "wire/graph_codec.h"

namespace dtg {

Status DeviceWish::check(const char* who) const {
  if (cpu < 1 || cpu > kMost) return invalid_argument("%s: cpu_devices is %d; from 1 to %d are possible", who, cpu, kMost);
  if (emu < 0 || emu > kMost) return invalid_argument("%s: emu_devices is %d; from 0 to %d are possible", who, emu, kMost);
  constexpr int64_t kMostBytes = int64_t{1} << 40;
  if (emu_memory_bytes >= 0 && emu_memory_bytes <= kMostBytes) return {};
  return invalid_argument("%s: emu_memory_bytes is %lld; up to %lld are possible, and 0 for the default", who,
                          static_cast<long long>(emu_memory_bytes), static_cast<long long>(kMostBytes));
}

Result<std::vector<Device>> make_devices(const Host& host, const std::string& task, const DeviceWish& wish) {
  std::vector<Device> devices;
  const auto add = [&](const std::string& type, int id) -> Status {
    Device& device = devices.emplace_back();
    device.text = task + "/device:" + type + ":" + std::to_string(id);
    device.type = type;
    DTG_ASSIGN(device.name, DeviceName::parse(device.text));
    return {};
  };
  for (int i = 0; i < wish.cpu; ++i) DTG_TRY(add("CPU", i));
  if (wish.emu > 0 && !host.pool->has_threads()) return unimplemented("emulated devices in a runtime without threads of its own");
  for (int i = 0; i < wish.emu; ++i) {
    DTG_TRY(add(Emu::kType, i));
    Emu::Options options;
    if (wish.emu_memory_bytes > 0) options.memory_bytes = wish.emu_memory_bytes;
    options.mutant = wish.mutant;
    DTG_ASSIGN(Ref<Emu> emu, Emu::create(devices.back().text, options));
    devices.back().accelerator = std::move(emu);
  }
  return devices;
}

Result<std::vector<Device>> parse_devices(std::span<const std::string> names) {
  std::vector<Device> devices;
  for (const std::string& text : names) {
    DTG_ASSIGN(DeviceName name, DeviceName::parse(text));
    if (!name.is_full()) return data_loss("\"%s\" is not the full name of a device", text.c_str());
    const std::string type = *name.type;
    devices.push_back({std::move(name), text, type, nullptr});
  }
  return devices;
}

ServedPart::ServedPart(Ref<Task> task, std::vector<Device> devices)
    : task_(std::move(task)), placer_(std::move(devices), task_->host().kernels, false) {}

namespace {

Result<LoggedWrites> logged_writes(const IrCommit& commit, const wire::Limits& limits) {
  LoggedWrites writes;
  DTG_ASSIGN(writes.graph, encode_graph(*commit.graph, limits));
  for (const Value& fed : commit.fed) writes.fed.push_back({fed.node(), fed.output()});
  writes.writes = commit.writes;
  // Nobody can make a graph that passes for another's.
  const Sha256Digest hash = sha256(writes.graph);
  std::memcpy(&writes.key, hash.bytes.data(), sizeof writes.key);
  return writes;
}

}  // namespace

// Bodies are planned again and again for the same writes.
Result<int64_t> ServedPart::keep(const IrCommit& commit) {
  DTG_ASSIGN(LoggedWrites writes, logged_writes(commit, task_->host().limits));
  const std::lock_guard lock(logged_mutex_);
  const auto at = std::ranges::find(logged_, writes.key, &LoggedWrites::key);
  if (at != logged_.end()) return at - logged_.begin();
  logged_.push_back(std::move(writes));
  return static_cast<int64_t>(logged_.size()) - 1;
}

const LoggedWrites* ServedPart::logged(int64_t record) const {
  const std::lock_guard lock(logged_mutex_);
  return record < 0 || static_cast<size_t>(record) >= logged_.size() ? nullptr : &logged_[static_cast<size_t>(record)];
}

ServedPart::~ServedPart() { task_->host().seams.budget->release(reserved_); }

Task::Task(const Host& host, std::string name, std::vector<Device> devices, Ref<RefCounted> owner)
    : owner_(std::move(owner)),
      host_(host),
      name_(std::move(name)),
      incarnation_(host.seams.random->u64() | 1),
      devices_(std::move(devices)) {
  TaskLog::put(store_, *host_.seams.log);
}

namespace {

// As many runs of a part as sessions may have under way: one that waits in a dequeue must not keep another from starting.
constexpr int kServedFrames = 4096;

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

namespace {

// What one request ran into and another need not: its time, its rights, that nobody waits for it, that a resource was destroyed.
bool may_be_its_own(const Status& status) {
  const Code code = status.code();
  return code == Code::deadline_exceeded || code == Code::permission_denied || code == Code::cancelled || code == Code::aborted;
}

// Whoever cannot be told for want of memory runs out of time; others are told.
void tell(PartRequest& request, const Result<Ref<ServedPart>>& part) {
  try {
    request.prepared(part);
  } catch (const std::exception&) {
  }
}

void hand_over(PartRequest& request, const Ref<ServedPart>& part) {
  const Status status = check_graph(part->plan().graph(), *request.rights());
  if (status.ok()) tell(request, part);
  else tell(request, status);
}

}  // namespace

void Task::keep_in(Ref<CommitLog> log, uint64_t incarnation) {
  log_ = std::move(log);
  incarnation_ = incarnation;
}

// Variables are kept, and one that was destroyed would be there again after a restart. Queues and accumulators come back empty: what is
// in them is on its way, and whoever waits for it is told of the loss.
Status Task::check_keepable(const Graph& graph) const {
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Access access = node.op->access_of(i);
      if (access != Access::destroy) continue;
      return unimplemented("register a part: \"%.*s\" (%s) is for tasks that keep their state in memory; %s keeps it in a log, which knows "
                           "of no end of a variable",
                           static_cast<int>(node.name.size()), node.name.data(), node.op->name().c_str(), name_.c_str())
          .at_node(node.name);
    }
  }
  return {};
}

void Task::prepare(const Ref<PartRequest>& request) {
  if (!request->is_wanted()) return tell(*request, cancelled("register a part: nobody waits for it any more"));
  Ref<ServedPart> present;
  const SharedParts::Found found = parts_.ask(request, &present);
  if (found == SharedParts::Found::present) return hand_over(*request, present);
  if (found == SharedParts::Found::awaited) return;
  const auto made = [&]() -> Result<Ref<ServedPart>> {
    try {
      return make_part(*request);
    } catch (const std::exception& problem) {
      return resource_exhausted("register a part: %s", problem.what());
    }
  }();
  const auto waiting = parts_.made(*request, made.ok() ? made.value() : nullptr);
  tell(*request, made);
  for (const Ref<PartRequest>& other : waiting) {
    if (made.ok()) hand_over(*other, made.value());
    else if (may_be_its_own(made.status())) other->submit();
    else tell(*other, made.status());
  }
}

Result<Ref<ServedPart>> Task::make_part(const PartRequest& request) {
  const std::string_view bytes = request.graph();
  const Rights& rights = *request.rights();
  if (request.deadline().passed(*host_.seams.clock))
    return deadline_exceeded("register a part: its time was over before %s came to it", name_.c_str()).in_phase("prepare");
  auto part = make_ref<ServedPart>(Ref<Task>::share(this), devices_);
  DTG_ASSIGN(const int64_t decoded, graph_memory(bytes, host_.limits));
  const int64_t memory = decoded + static_cast<int64_t>(bytes.size());
  DTG_TRY(host_.seams.budget->reserve(memory, "a part of a graph"));
  part->reserved_ = memory;
  part->attaches_ = rights.allows(Verb::attach);
  part->graph_ = bytes;
  part->targets_ = request.targets();
  DTG_ASSIGN(Ref<Graph> graph, Graph::create(host_.ops));
  DTG_TRY(decode_graph(bytes, *graph, *host_.seams.budget, host_.limits));
  DTG_TRY(check_graph(*graph, rights));
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
  context.deadline = request.deadline();
  context.rights = request.rights();
  context.committing = log_ ? Committing::logged : Committing::joined;
  context.keeper = part.get();
  PlanRequest asked;
  asked.targets.assign(request.targets().begin(), request.targets().end());
  DTG_ASSIGN(part->plan_, Plan::make(context, std::move(graph), std::move(asked)));
  return part;
}

}  // namespace dtg
