// Counting calls and members.
#include "plan/collectives.h"

#include <algorithm>
#include <map>

#include "graph/device_name.h"

namespace dtg {
namespace {

std::optional<int32_t> known(const Ir& ir, const IrNode& node, std::string_view name) {
  const std::span<const ArgDef> args = node.op->inputs();
  const auto at = static_cast<size_t>(std::ranges::find(args, name, &ArgDef::name) - args.begin());
  if (at >= args.size() || at >= node.inputs.size() || !ir.values[node.inputs[at]].is_known()) return {};
  return static_cast<int32_t>(ir.constant(ir.values[node.inputs[at]]).int_at(0));
}

// The calls of one instance in a run.
struct Instance {
  const IrNode* first = nullptr;
  int32_t size = 0;                   // as the first says
  std::map<uint32_t, int32_t> calls;  // by device

  // Every device calls as often as the others, and there are so many of them.
  bool is_from(size_t devices) const {
    return calls.size() == devices && std::ranges::all_of(calls, [&](const auto& each) { return each.second == calls.begin()->second; });
  }
};

// All calls under one key.
struct Calls {
  Ref<CollectiveGroup> group;  // null: devices of this process meet
  const IrNode* first = nullptr;
  int32_t size = 0;
  uint32_t count = 0;
  bool loose = false;  // some instance is known only when it runs
  std::map<int32_t, Instance> instances;
};

std::string name_of(const IrNode& node) { return "\"" + std::string(node.node->name) + "\""; }

// Nothing speaks against it.
bool may_be_on(const Node& node, const std::string& task) {
  const auto device = DeviceName::parse(node.device), here = DeviceName::parse(task);
  return device.ok() && here.ok() && DeviceName::intersect(device.value(), here.value()).ok();
}

class DutyFinder {
 public:
  DutyFinder(const PlanContext& context, const Ir& ir) : context_(context), ir_(ir) {}

  Status run(CollectiveDuties* duties) {
    for (const IrNode& node : ir_.nodes) {
      if (!node.dead && is_collective(node)) DTG_TRY(take(node, duties));
    }
    for (const auto& [key, calls] : keys_) {
      DTG_TRY(calls.group ? owe(key, calls, duties) : meet(key, calls));
    }
    return {};
  }

 private:
  static Status error(const IrNode& node, Status status) {
    const std::string location = node.node->location.empty() ? "" : " (made at " + std::string(node.node->location) + ")";
    return status.with_context("plan " + name_of(node) + location).at_node(node.node->name).in_phase("prepare");
  }

  Status take(const IrNode& node, CollectiveDuties* duties) {
    if (ir_.request->body)
      return error(node, unimplemented("a collective inside a function; call it in the graph that calls the function"));
    if (!duties->where) {
      duties->where = Collectives::of(*context_.store);
      duties->joins = duties->where->joins();
    }
    const CollectiveKeys keys = collective_keys(ir_, node);
    if (!keys.group || !keys.size) return {};  // its kernel says what is wrong
    Calls& calls = keys_[*keys.group];
    if (!calls.first) {
      DTG_ASSIGN(calls.group, duties->where->find(*keys.group));
      calls.first = &node;
      calls.size = *keys.size;
    }
    if (calls.group) DTG_TRY(check_size(node, *keys.size, *calls.first, calls.size));
    ++calls.count;
    if (!keys.instance) {
      calls.loose = true;
      return {};
    }
    Instance& instance = calls.instances[*keys.instance];
    if (!instance.first) instance = {&node, *keys.size, {}};
    DTG_TRY(check_size(node, *keys.size, *instance.first, instance.size));
    ++instance.calls[node.device];
    return {};
  }

  Status check_size(const IrNode& node, int32_t size, const IrNode& first, int32_t first_size) const {
    if (size == first_size) return {};
    return error(node, invalid_argument("its group_size is %d on %s, but that of %s on %s is %d, in one group; all members say the same",
                                        static_cast<int>(size), device_of(node).c_str(), name_of(first).c_str(), device_of(first).c_str(),
                                        static_cast<int>(first_size)));
  }

  const std::string& device_of(const IrNode& node) const { return context_.placer->devices()[node.device].text; }

  // "a", "b" (2 times)
  std::string callers(const Instance& instance) const {
    std::string text;
    for (const auto& [device, calls] : instance.calls) {
      text += (text.empty() ? "" : ", ") + context_.placer->devices()[device].text;
      if (calls > 1) text += format(" (%d times)", calls);
    }
    return text;
  }
  std::string nodes_of(int32_t key, int32_t instance) const {
    std::string text;
    for (const IrNode& node : ir_.nodes) {
      if (node.dead || !is_collective(node)) continue;
      const CollectiveKeys keys = collective_keys(ir_, node);
      if (keys.group == key && keys.instance == instance) text += (text.empty() ? "" : ", ") + name_of(node) + " on " + device_of(node);
    }
    return text;
  }

  // A group of tasks: each call is made by so many devices of this one.
  Status owe(int32_t key, const Calls& calls, CollectiveDuties* duties) const {
    const int members = calls.group->standing().members;
    size_t devices = 0;
    if (!calls.instances.empty()) devices = calls.instances.begin()->second.calls.size();
    else if (members > 0) devices = static_cast<size_t>(std::max(calls.size / members, 1));
    for (const auto& [number, instance] : calls.instances) {
      const auto wanted = members > 0 ? static_cast<size_t>(std::max(calls.size / members, 1)) : devices;
      const bool fits = members == 0 || static_cast<int64_t>(wanted) * members == calls.size;
      if (fits && instance.is_from(wanted) && wanted == devices) continue;
      return error(*instance.first, misfit(key, number, calls, members));
    }
    if (devices == 0) devices = 1;
    duties->groups.push_back({key, calls.size, static_cast<int32_t>(devices), calls.count, calls.first->node});
    return {};
  }

  Status misfit(int32_t key, int32_t number, const Calls& calls, int members) const {
    return invalid_argument(
        "group_size is %d, and the group \"%s\" with the key %d has %d members, but of this task instance %d is called by "
        "%s; group_size has to be the members times the devices of each that make the call together, each as often "
        "as the others",
        static_cast<int>(calls.size), calls.group->name().c_str(), static_cast<int>(key), members, static_cast<int>(number),
        nodes_of(key, number).c_str());
  }

  // Devices of this process: they all have to be in the run.
  Status meet(int32_t key, const Calls& calls) const {
    for (const auto& [number, instance] : calls.instances) {
      if (instance.is_from(static_cast<size_t>(std::max(instance.size, 1)))) continue;
      return error(
          *instance.first,
          failed_precondition("group_size is %d, but instance %d is called in this run by %s, and this task has joined no group with "
                              "the key %d; run the calls of all devices together, each on its own, or join the group",
                              static_cast<int>(instance.size), static_cast<int>(number), callers(instance).c_str(), static_cast<int>(key)));
    }
    return {};
  }

  const PlanContext& context_;
  const Ir& ir_;
  std::map<int32_t, Calls> keys_;
};

}  // namespace

CollectiveKeys collective_keys(const Ir& ir, const IrNode& node) {
  return {known(ir, node, "group_size"), known(ir, node, "group_key"), known(ir, node, "instance_key")};
}

Status find_duties(const PlanContext& context, const Ir& ir, CollectiveDuties* duties) { return DutyFinder(context, ir).run(duties); }

std::vector<int32_t> called_groups(const Graph& graph, std::span<const Value> fetches, std::span<const NodeId> targets,
                                   std::span<const Value> feeds, const std::string& task) {
  std::vector<int32_t> keys;
  std::vector<bool> seen(graph.node_count());
  std::vector<NodeId> open;
  const auto follow = [&](Value value) {
    if (graph.check(value).ok() && std::ranges::find(feeds, value) == feeds.end()) open.push_back(value.node());
  };
  std::ranges::for_each(fetches, follow);
  for (const NodeId target : targets) {
    if (graph.check_node(target).ok()) open.push_back(target);
  }
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    // What was added meanwhile is no part of the run.
    if (id >= seen.size() || seen[id]) continue;
    seen[id] = true;
    const Node& node = graph.node(id);
    std::ranges::for_each(node.inputs, follow);
    open.insert(open.end(), node.controls.begin(), node.controls.end());
    if (node.op->capability() != Capability::net || !may_be_on(node, task)) continue;
    const std::span<const ArgDef> args = node.op->inputs();
    const auto at = static_cast<size_t>(std::ranges::find(args, "group_key", &ArgDef::name) - args.begin());
    const Tensor key = at < node.inputs.size() ? graph.constant_value(node.inputs[at]) : Tensor();
    if (key.valid() && key.count() == 1) keys.push_back(static_cast<int32_t>(key.int_at(0)));
  }
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

}  // namespace dtg
