// One walk in the order in which the nodes were made, which every edge respects.
#include "plan/phases.h"

#include "graph/function.h"

#include <algorithm>

namespace dtg {
namespace {

// Does whoever comes after it wait for others? Not for what is sent, which goes as the peer takes it, nor for what arrives, whose
// phase is known. A loop that writes is a row of units of its own.
bool ends_a_phase(const IrNode& node) {
  const Role role = node.node->op->role();
  if (node.write && node.node->op->is_repeating()) return true;
  return node.blocking() && role != Role::send && role != Role::receive;
}

uint32_t first_phase(const IrNode& node) {
  return node.node->op->role() == Role::receive ? static_cast<uint32_t>(node.node->attr<int64_t>("phase")) : 0;
}

// Whether a body waits is asked often and never changes.
struct Waits final : RefCounted {
  explicit Waits(bool it_does) : waits(it_does) {}
  const bool waits;
};

bool calls_what_waits(const PlanContext& context, const Node& node) {
  bool waits = false;
  for_each_function(node, [&](const Function& function) {
    constexpr int kKey = 0;
    Ref<const RefCounted> known = function.memo().find(kKey);
    if (!known) {
      bool here = false;
      for (NodeId id : function.needed()) {
        const Node& inside = function.graph().node(id);
        const KernelRow* const row = context.kernels->find(inside, "CPU");
        here = here || (row && row->mode == KernelMode::blocking) || calls_what_waits(context, inside);
      }
      known = function.memo().keep(kKey, make_ref<Waits>(here));
    }
    waits |= static_cast<const Waits&>(*known).waits;
  });
  return waits;
}

}  // namespace

void find_kernels(const PlanContext& context, Ir& ir) {
  for (IrNode& node : ir.nodes) {
    if (node.dead || node.barrier) continue;
    node.row = context.kernels->find(*node.node, context.placer->devices()[node.device].type);
    node.waits = (node.row && node.row->mode == KernelMode::blocking) || calls_what_waits(context, *node.node);
  }
}

Lists find_before(const Ir& ir, const Effects& effects) {
  return Lists(ir.nodes.size(), [&](auto&& add) {
    for (uint32_t n = 0; n < ir.nodes.size(); ++n) {
      const IrNode& node = ir.nodes[n];
      if (node.dead) continue;
      for (uint32_t input : node.inputs) {
        if (ir.waits_for(node, ir.values[input])) add(n, ir.values[input].producer);
      }
      for (uint32_t control : node.controls) {
        if (!ir.nodes[control].dead) add(n, control);
      }
    }
    for (const auto& [first, then] : effects.edges) add(then, first);
  });
}

void number_phases(Ir& ir, const Effects& effects, const Lists& before, std::span<const uint32_t> task_of_device) {
  const auto apart = [&](const IrNode& one, const IrNode& other) {
    return !task_of_device.empty() && task_of_device[one.device] != task_of_device[other.device];
  };
  for (uint32_t n = 0; n < ir.nodes.size(); ++n) {
    IrNode& node = ir.nodes[n];
    if (node.dead) continue;
    node.write = effects.writes[n];
    node.phase = first_phase(node);
    for (uint32_t b : before[n]) {
      const bool ends = ends_a_phase(ir.nodes[b]) || (ir.nodes[b].write && (!node.write || apart(ir.nodes[b], node)));
      node.phase = std::max(node.phase, ir.nodes[b].phase + (ends ? 1 : 0));
    }
  }
}

}  // namespace dtg
