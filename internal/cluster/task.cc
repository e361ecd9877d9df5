// Preparing parts.
#include "cluster/task.h"

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

ServedPart::~ServedPart() { task_->host().seams.budget->release(reserved_); }

Task::Task(const Host& host, std::string name, int cpu_count, Ref<RefCounted> owner)
    : owner_(std::move(owner)), host_(host), name_(std::move(name)), incarnation_(host.seams.random->u64() | 1), devices_(cpu_devices(name_, cpu_count)) {}

namespace {

// What a peer may make this process do: compute, and change the state of this task.
Status check_rights(const Graph& graph) {
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    const Capability capability = node.op->capability();
    if (capability == Capability::pure || capability == Capability::state) continue;
    return permission_denied("register a part: \"%.*s\" (%s) touches files or the network, which graphs from other processes may not",
                             int(node.name.size()), node.name.data(), node.op->name().c_str())
        .at_node(node.name);
  }
  return {};
}

Result<uint32_t> only_session(const std::string& peer) {
  if (peer.empty()) return 0u;
  return unimplemented("an edge to %s: values travel between a session and a task; edges between two tasks are not built in", peer.c_str());
}

}  // namespace

Result<Ref<ServedPart>> Task::prepare(std::string_view bytes, std::span<const uint32_t> targets) {
  auto part = make_ref<ServedPart>(Ref<Task>::share(this), devices_);
  DTG_ASSIGN(const int64_t memory, graph_memory(bytes, host_.limits));
  DTG_TRY(host_.seams.budget->reserve(memory, "a part of a graph"));
  part->reserved_ = memory;
  DTG_ASSIGN(Ref<Graph> graph, Graph::create(host_.ops));
  DTG_TRY(decode_graph(bytes, *graph, *host_.seams.budget, host_.limits));
  DTG_TRY(check_rights(*graph));
  DTG_ASSIGN(part->edges_, EdgeTable::make(*graph, only_session));
  PlanContext context;
  context.kernels = host_.kernels;
  context.ops = host_.ops;
  context.pool = host_.pool;
  context.store = &store_;
  context.placer = &part->placer_;
  context.clock = host_.seams.clock;
  PlanRequest request;
  for (uint32_t target : targets) request.targets.push_back(target);
  DTG_ASSIGN(part->plan_, Plan::make(context, std::move(graph), std::move(request)));
  return part;
}

}  // namespace dtg
