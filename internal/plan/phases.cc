// One walk in the order in which the nodes were made, which every edge respects.
#include "plan/phases.h"

#include "graph/function.h"

#include <algorithm>

namespace dtg {
namespace {

// Does whoever comes after it wait for others? Not for what is sent, which goes as the peer takes it, nor for what arrives, whose
// phase is known. A strand that writes is a row of units of its own.
bool ends_a_phase(const IrNode& node) {
  const Role role = node.op->role();
  if (node.write && node.strand) return true;
  return node.blocking() && role != Role::send && role != Role::receive;
}

uint32_t first_phase(const IrNode& node) {
  return node.op->role() == Role::receive ? static_cast<uint32_t>(node.node->attr<int64_t>("phase")) : 0;
}

struct Inside {
  bool waits = false;
  bool apart = false;  // its writes cannot be one unit with what is around the call
};
// What is inside a body is asked often and never changes.
struct Known final : RefCounted {
  Inside inside;
};

// What is logged of a unit is its operands: it must do the same with them again.
bool gives_something_else(const Node& node) {
  return node.op->is_stateful() && !calls_functions(node) && !node.outputs.empty() && node.op->role() != Role::argument &&
         node.op->access_of(0) == Access::undeclared;
}

Inside look_inside(const PlanContext& context, const Node& call);

Ref<const RefCounted> look_at(const PlanContext& context, const Function& function) {
  constexpr int kKey = 0;
  if (auto there = function.memo().find(kKey)) return there;
  auto known = make_ref<Known>();
  Inside& found = known->inside;
  for (NodeId id : function.needed()) {
    const Node& node = function.graph().node(id);
    const KernelRow* const row = context.kernels->find(node, "CPU");
    const Inside further = look_inside(context, node);
    found.waits |= further.waits || (row && row->mode == KernelMode::blocking);
    found.apart |= further.apart || gives_something_else(node);
  }
  found.apart |= found.waits;
  return function.memo().keep(kKey, known);
}

Inside look_inside(const PlanContext& context, const Node& call) {
  Inside all;
  for_each_function(call, [&](const Function& function) {
    const Ref<const RefCounted> known = look_at(context, function);
    const Inside& one = static_cast<const Known&>(*known).inside;
    all.waits |= one.waits;
    all.apart |= one.apart || call.op->is_repeating();
  });
  return all;
}

// The commit pass says so, and that is why there are gates inside.
bool was_told(const Node& node) {
  const AttrValue* const number = node.find_attr(OpDef::kCommitAttr);
  return number && *number->get<int64_t>() >= 0;
}

}  // namespace

void find_kernels(const PlanContext& context, Ir& ir) {
  for (IrNode& node : ir.nodes) {
    if (node.dead || node.barrier) continue;
    node.row = context.kernels->find(*node.node, context.placer->devices()[node.device].type);
    node.waits = node.row && node.row->mode == KernelMode::blocking;
    if (!calls_functions(node)) continue;
    const Inside inside = look_inside(context, *node.node);
    node.strand = inside.apart;
    node.waits |= inside.waits || was_told(*node.node);
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
