// Counting calls and members.
#include "plan/collectives.h"

#include <algorithm>
#include <map>

namespace dtg {
namespace {

std::optional<int32_t> known(const Ir& ir, const IrNode& node, std::string_view name) {
  const std::span<const ArgDef> args = node.node->op->inputs();
  const auto at = static_cast<size_t>(std::ranges::find(args, name, &ArgDef::name) - args.begin());
  if (at >= args.size() || at >= node.inputs.size() || !ir.values[node.inputs[at]].is_known()) return {};
  return static_cast<int32_t>(ir.constant(ir.values[node.inputs[at]]).int_at(0));
}

// Devices that meet in one run.
struct Round {
  const IrNode* first = nullptr;
  int32_t size = 0;
  std::map<uint32_t, int32_t> calls;  // by device

  // Every device calls as often as the others, and there are enough of them.
  bool complete() const {
    return calls.size() == static_cast<size_t>(std::max(size, 1)) &&
           std::ranges::all_of(calls, [&](const auto& each) { return each.second == calls.begin()->second; });
  }
};

}  // namespace

CollectiveKeys collective_keys(const Ir& ir, const IrNode& node) {
  return {known(ir, node, "group_size"), known(ir, node, "group_key"), known(ir, node, "instance_key")};
}

Status find_duties(const PlanContext& context, const Ir& ir, CollectiveDuties* duties) {
  std::map<std::pair<int32_t, int32_t>, Round> rounds;
  Ref<Collectives> collectives;
  for (const IrNode& node : ir.nodes) {
    if (node.dead || !is_collective(node)) continue;
    if (ir.request->body) {
      return unimplemented("plan \"%s\": a collective inside a function; call it in the graph that calls the function",
                           std::string(node.node->name).c_str())
          .at_node(node.node->name)
          .in_phase("prepare");
    }
    const CollectiveKeys keys = collective_keys(ir, node);
    if (!keys.group || !keys.size) continue;  // its kernel says what is wrong
    if (!collectives) collectives = Collectives::of(*context.store);
    DTG_ASSIGN(const Ref<CollectiveGroup> group, collectives->find(*keys.group));
    if (group) {
      duties->where = collectives;
      ++duties->calls;
      if (std::ranges::find(duties->keys, *keys.group) == duties->keys.end()) duties->keys.push_back(*keys.group);
    } else if (keys.instance) {
      Round& round = rounds[{*keys.group, *keys.instance}];
      if (!round.first) round = {&node, *keys.size, {}};
      ++round.calls[node.device];
    }
  }
  for (const auto& [key, round] : rounds) {
    if (round.complete()) continue;
    std::string devices;
    for (const auto& [device, calls] : round.calls)
      devices += (devices.empty() ? "" : ", ") + context.placer->devices()[device].text + (calls > 1 ? format(" (%d times)", calls) : "");
    return failed_precondition("plan \"%s\": group_size is %d, but instance %d is called in this run by %s, and this task has joined no "
                               "group with the key %d; run the calls of all devices together, each on its own, or join the group",
                               std::string(round.first->node->name).c_str(), static_cast<int>(round.size), static_cast<int>(key.second),
                               devices.c_str(), static_cast<int>(key.first))
        .at_node(round.first->node->name)
        .in_phase("prepare");
  }
  return {};
}

}  // namespace dtg
