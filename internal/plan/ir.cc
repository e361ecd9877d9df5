// What all passes share: letting go of what is not needed, and the text form.
#include "plan/ir.h"

#include <algorithm>

namespace dtg {

bool Ir::all_known(const IrNode& node) const {
  return !node.outputs.empty() && std::ranges::all_of(node.outputs, [&](uint32_t o) { return values[o].is_known(); });
}

bool Ir::waits_for(const IrNode& node, const IrValue& operand) const {
  if (operand.producer == kNone || nodes[operand.producer].dead) return false;
  return node.barrier || !operand.is_known() || nodes[operand.producer].gated;
}

std::string Ir::value_text(uint32_t v) const {
  const IrValue& value = values[v];
  if (value.producer == kNone) return "feed " + std::to_string(value.feed);
  return std::string(nodes[value.producer].node->name) + ":" + std::to_string(value.output);
}

void sweep(Ir& ir) {
  for (IrValue& value : ir.values) value.uses = 0;
  for (IrNode& node : ir.nodes) node.controlled = false;
  for (size_t n = ir.nodes.size(); n-- > 0;) {
    IrNode& node = ir.nodes[n];
    if (node.dead) continue;
    const bool waited_for = node.target || node.controlled;
    const bool read = std::ranges::any_of(node.outputs, [&](uint32_t o) {
      const IrValue& value = ir.values[o];
      return value.uses > 0 || (value.fetches > 0 && (node.gated || !value.is_known()));
    });
    if (!waited_for && !read && !node.op->is_stateful()) {
      node.dead = true;
      continue;
    }
    node.barrier = node.op->role() == Role::nothing || is_given(node.op->role()) || ir.all_known(node);
    for (uint32_t input : node.inputs) {
      if (ir.waits_for(node, ir.values[input])) ++ir.values[input].uses;
    }
    for (uint32_t control : node.controls) ir.nodes[control].controlled = true;
  }
}

namespace {

std::string type_text(const ValueInfo& info) { return std::string(dtype_name(info.dtype)) + info.shape.text(); }

void append_operand(std::string& text, const Ir& ir, uint32_t v) {
  const IrValue& value = ir.values[v];
  text += "%" + std::to_string(v);
  if (value.is_known()) text += "=known";
  else if (value.feed >= 0) text += "=feed" + std::to_string(value.feed);
}

void append_node(std::string& text, const Ir& ir, uint32_t n) {
  const IrNode& node = ir.nodes[n];
  text += std::to_string(n) + ": ";
  for (size_t o = 0; o < node.outputs.size(); ++o) {
    text += (o ? ", %" : "%") + std::to_string(node.outputs[o]) + " " + type_text(*ir.values[node.outputs[o]].info);
    if (ir.values[node.outputs[o]].space != 0) text += " in space " + std::to_string(ir.values[node.outputs[o]].space);
    if (ir.values[node.outputs[o]].is_known()) text += " known";
    if (ir.values[node.outputs[o]].fetches > 0) text += " fetched";
  }
  text += (node.outputs.empty() ? "" : " = ") + node.op->name() + "(";
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (i) text += ", ";
    append_operand(text, ir, node.inputs[i]);
  }
  text += ")";
  for (uint32_t control : node.controls) text += " ^" + std::to_string(control);
  text += " \"" + std::string(node.node->name) + "\" device " + std::to_string(node.device);
  if (!ir.spaces.empty() && node.lane != node.device) text += " on " + std::to_string(node.lane);
  if (node.segment != kNone) text += " segment " + std::to_string(node.segment);
  if (node.write) text += " commit " + std::to_string(node.phase);
  else if (node.phase > 0) text += " phase " + std::to_string(node.phase);
  if (node.event >= 0) text += " event " + std::to_string(node.event);
  if (node.pin != kNone) text += " pin " + std::to_string(node.pin);
  for (uint32_t read : ir.unpins_of(node)) text += " unpins " + std::to_string(ir.nodes[read].pin);
  if (node.target) text += " target";
  if (node.barrier) text += " barrier";
  if (node.dynamic) text += " dynamic";
  text += "\n";
}

}  // namespace

std::string Ir::text() const {
  std::string text;
  for (size_t i = 0; i < feeds.size(); ++i)
    text += "feed " + std::to_string(i) + ": %" + std::to_string(feeds[i]) + " " + type_text(*values[feeds[i]].info) + "\n";
  if (order.empty()) {
    for (uint32_t n = 0; n < nodes.size(); ++n) {
      if (!nodes[n].dead) append_node(text, *this, n);
    }
  } else {
    for (uint32_t n : order) append_node(text, *this, n);
  }
  for (size_t s = 0; s < segments.size(); ++s) {
    text += "segment " + std::to_string(s) + ": " + std::to_string(segments[s].nodes.size()) + " nodes, device " +
            std::to_string(segments[s].device);
    for (uint32_t before : segments[s].after) text += ", after segment " + std::to_string(before);
    for (uint32_t event : segments[s].events) text += ", after event " + std::to_string(event);
    text += "\n";
  }
  for (size_t i = 0; i < fetches.size(); ++i) text += "fetch " + std::to_string(i) + ": %" + std::to_string(fetches[i]) + "\n";
  return text;
}

}  // namespace dtg
