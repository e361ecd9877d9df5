// Preparing one node.
#include "plan/prepare.h"

#include "plan/bodies.h"

namespace dtg {

NodePreparer::NodePreparer(const PlanContext& plan) : plan_(plan) {
  pool_ = plan.pool;
  store_ = plan.store;
  rights_ = plan.rights.get();
  kernels_ = plan.kernels;
}

void NodePreparer::reset(const Node& node, std::string_view device, DeviceMemory* memory, Arena& arena, uint32_t pin) {
  node_ = &node;
  device_ = device;
  device_memory_ = memory;
  arena_ = &arena;
  pin_ = pin;
  args_ = nullptr;
  workspace_ = 0;
  sync_ = nullptr;
  async_ = nullptr;
  inputs_.clear();
  outputs_.clear();
  bound_.clear();
  overwrites_.clear();
  aliases_.clear();
  brought_.clear();
  kept_.clear();
  constant_fn_ = nullptr;
  handles_ = nullptr;
}

Status NodePreparer::add(std::vector<Operand>& list, const ValueInfo& info) {
  if (list.capacity() == 0) list.reserve(4);  // as many as nearly all nodes have
  Operand& operand = list.emplace_back();
  operand.dtype = info.dtype;
  operand.held = info.held;
  if (is_holder(info.dtype)) operand.holds = info.shape;
  if (info.shape.to_small_shape(operand.shape)) return {};
  operand.shape = {};
  if (info.shape.complete()) {
    DTG_ASSIGN(operand.shape, info.shape.to_shape());
  } else {
    operand.dynamic = true;  // of a resource: what it holds has an open shape
  }
  return {};
}

// An output that lies in an operand's memory although nobody declared it would be overwritten while it is read.
Status NodePreparer::check() const {
  for (const Pair& pair : aliases_) {
    if (node_->op->forwards(static_cast<size_t>(pair.in), static_cast<size_t>(pair.out))) continue;
    return internal_error("the kernel of %s hands input %d on as output %d, which its definition does not declare",
                          node_->op->name().c_str(), pair.in, pair.out);
  }
  if (workspace_ < 0) return resource_exhausted("the kernel of %s needs more scratch than any memory has", node_->op->name().c_str());
  return {};
}

Status NodePreparer::prepare(const KernelRow& row) {
  Status status = row.prepare ? row.prepare(*this) : Status();
  if (status.ok()) status = check();
  if (status.ok()) return status;
  std::string where = "prepare \"" + std::string(node_->name) + "\"";
  if (!node_->location.empty()) where += " (made at " + std::string(node_->location) + ")";
  return status.with_context(where).at_node(node_->name).in_phase("prepare");
}

int NodePreparer::alias_of(int o) const {
  // Mostly each output is some input's, in their order.
  const auto at = static_cast<size_t>(o);
  if (aliases_.empty() || (at < aliases_.size() && aliases_[at].out == o)) return aliases_.empty() ? -1 : aliases_[at].in;
  for (const Pair& pair : aliases_) {
    if (pair.out == o) return pair.in;
  }
  return -1;
}

Result<Ref<BodySource>> NodePreparer::bodies(const Function& function) {
  return Ref<BodySource>(make_ref<BodyPlans>(plan_, Ref<const Function>::share(&function), *node_, device_, handles_));
}

Ref<RefCounted> NodePreparer::bound_to(int o) const {
  for (const Bound& bound : bound_) {
    if (bound.out == o) return bound.resource;
  }
  return nullptr;
}

Result<const KernelRow*> find_kernel(const PlanContext& plan, const Node& node, const Device& device) {
  if (const KernelRow* row = plan.kernels->find(node, device.type)) return row;
  return unimplemented("prepare \"%.*s\": no kernel of %s for these types on %s; there is: %s", int(node.name.size()), node.name.data(),
                       node.op->name().c_str(), device.text.c_str(), plan.kernels->describe(node.op->name()).c_str())
      .at_node(node.name)
      .in_phase("prepare");
}

}  // namespace dtg
