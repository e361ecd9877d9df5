// Walking back along what hands memory on.
#include "plan/named_handle.h"

#include "graph/function.h"
#include "plan/passes.h"

namespace dtg {

uint32_t origin_of_handle(const Ir& ir, uint32_t value) {
  uint32_t at = value;
  while (at != kNone && ir.values[at].producer != kNone) {
    const IrValue& now = ir.values[at];
    const IrNode& from = ir.nodes[now.producer];
    if (from.op->role() == Role::handle && from.inputs.empty()) return at;
    uint32_t next = kNone;
    bool several = false;
    for_each_source(*from.node, from.inputs.size(), now.output, [&](size_t i) {
      several = several || (next != kNone && next != from.inputs[i]);
      next = from.inputs[i];
    });
    at = several ? kNone : next;
  }
  return at;
}

NamedHandle name_handle(const PlanContext& context, const Ir& ir, uint32_t value) {
  const uint32_t at = origin_of_handle(ir, value);
  if (at == kNone) return {};
  const IrValue& origin = ir.values[at];
  if (origin.producer == kNone) {
    const auto fed = static_cast<size_t>(origin.feed);
    return context.handles && origin.feed >= 0 && fed < context.handles->of.size() ? context.handles->of[fed] : NamedHandle();
  }
  const IrNode& maker = ir.nodes[origin.producer];
  NamedHandle handle;
  handle.op = maker.op;
  handle.node = maker.node->name;
  handle.device = context.placer->devices()[maker.device].text;
  handle.location = maker.node->location;
  handle.attrs.assign(maker.node->attrs.begin(), maker.node->attrs.end());
  return handle;
}

Ref<const NamedHandles> name_arguments(const PlanContext& context, const Ir& ir, const IrNode& call) {
  size_t arguments = 0;
  for_each_function(*call.node, [&](const Function& function) { arguments = function.arguments().size(); });
  auto handles = make_ref<NamedHandles>();
  handles->of.resize(arguments);
  const size_t first = call.inputs.size() - arguments;
  for (size_t i = 0; i < arguments; ++i) {
    const uint32_t input = call.inputs[first + i];
    if (ir.values[input].info->dtype == DType::resource) handles->of[i] = name_handle(context, ir, input);
  }
  return handles;
}

}  // namespace dtg
