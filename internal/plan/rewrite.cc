// Counting readers, replacing nodes, forwarding values.
#include "plan/rewrite.h"

#include <algorithm>
#include <numeric>

namespace dtg {

IrRewriter::IrRewriter(const PlanContext& context, Ir& ir)
    : context_(context), ir_(ir), readers_(ir.values.size()), stands_for_(ir.values.size()) {
  std::iota(stands_for_.begin(), stands_for_.end(), 0u);
  for (uint32_t n = 0; n < ir.nodes.size(); ++n) {
    if (ir.nodes[n].dead) continue;
    for (uint32_t input : ir.nodes[n].inputs) read(input, n);
  }
}

void IrRewriter::read(uint32_t value, uint32_t n) {
  ++readers_[value].count;
  readers_[value].mix ^= n;
}

void IrRewriter::unread(uint32_t value, uint32_t n) {
  --readers_[value].count;
  readers_[value].mix ^= n;
}

Tensor IrRewriter::known(uint32_t value) const {
  const IrValue& v = ir_.values[value];
  return v.is_known() ? ir_.constant(v) : Tensor();
}

uint32_t IrRewriter::producer(uint32_t value) const {
  const IrValue& v = ir_.values[value];
  if (v.producer == kNone || v.is_known() || ir_.nodes[v.producer].dead) return kNobody;
  // Who looks through a node leaves out what it waits for.
  const IrNode& made = ir_.nodes[v.producer];
  if (!made.controls.empty() || std::ranges::any_of(made.inputs, [&](uint32_t input) { return is_gate(input); })) return kNobody;
  return v.producer;
}

uint32_t IrRewriter::sole_producer(uint32_t value, uint32_t reader) const {
  const IrValue& v = ir_.values[value];
  const uint32_t n = v.producer;
  if (n == kNone || v.is_known() || ir_.nodes[n].dead) return kNobody;
  if (readers_[value].count != 1 || v.fetches > 0 || v.dynamic()) return kNobody;
  const IrNode& made = ir_.nodes[n];
  if (!is_free(made) || made.device != ir_.nodes[reader].device) return kNobody;
  return n;
}

uint32_t IrRewriter::sole_reader(uint32_t value) const { return readers_[value].count == 1 ? readers_[value].mix : kNobody; }

// Of operands that go: the control edges that came with them.
void IrRewriter::keep_gates(IrNode& node, std::span<const uint32_t> old, std::vector<uint32_t>& controls) const {
  for (uint32_t input : old) {
    if (is_gate(input) && std::ranges::find(node.inputs, input) == node.inputs.end()) controls.push_back(ir_.values[input].producer);
  }
}

void IrRewriter::replace(uint32_t n, const OpDef& op, std::span<const uint32_t> operands, std::vector<Attr> attrs,
                         std::span<const uint32_t> absorbed) {
  IrNode& node = ir_.nodes[n];
  Node* const made = ir_.arena.make<Node>(*node.node);
  made->op = &op;
  made->attrs = ir_.attr_lists.keep(op, attrs);
  made->inputs = {};
  made->controls = {};
  made->known = {};
  node.stand_for(made, true);
  node.row = nullptr;
  for (uint32_t gone : absorbed) {
    for (uint32_t input : ir_.nodes[gone].inputs) unread(input, gone);
    ir_.nodes[gone].dead = true;
  }
  for (uint32_t input : node.inputs) unread(input, n);
  const std::span<const uint32_t> old = node.inputs;
  node.inputs = ir_.arena.copy(operands);
  for (uint32_t input : node.inputs) read(input, n);
  std::vector<uint32_t> controls(node.controls.begin(), node.controls.end());
  keep_gates(node, old, controls);
  for (uint32_t gone : absorbed) keep_gates(node, ir_.nodes[gone].inputs, controls);
  if (controls.size() != node.controls.size()) node.controls = ir_.arena.copy(std::span<const uint32_t>(controls));
  changed_ = true;
}

bool IrRewriter::forward(uint32_t n, uint32_t value) {
  IrNode& node = ir_.nodes[n];
  if (!is_free(node) || node.outputs.size() != 1) return false;
  IrValue& from = ir_.values[node.outputs[0]];
  const IrValue& to = ir_.values[value];
  if (from.info->dtype != to.info->dtype || !from.info->shape.complete() || !(from.info->shape == to.info->shape)) return false;
  if (std::ranges::any_of(node.inputs, [&](uint32_t input) { return input != value && is_gate(input); })) return false;
  // A fetch copies out of a value's memory at the end, which for a variable's would be its next value.
  if (from.fetches > 0) return false;
  for (uint32_t input : node.inputs) unread(input, n);
  // Its readers are moved one by one as the pass comes to them; they count from now on.
  readers_[value].count += readers_[node.outputs[0]].count;
  readers_[value].mix ^= readers_[node.outputs[0]].mix;
  stands_for_[node.outputs[0]] = value;
  node.dead = true;
  changed_ = true;
  return true;
}

void IrRewriter::resolve_operands(uint32_t n) {
  // What a value stands for was itself resolved before, so one step is enough.
  for (uint32_t& input : ir_.nodes[n].inputs) input = stands_for_[input];
}

}  // namespace dtg
