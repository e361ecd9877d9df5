// Preparing one node, and evaluating one at plan time for constant folding.
#include "plan/prepare.h"

#include "exec/step.h"

namespace dtg {

NodePreparer::NodePreparer(const Node& node, const PlanContext& plan, std::string_view device, Arena& arena) {
  node_ = &node;
  arena_ = &arena;
  pool_ = plan.pool;
  store_ = plan.store;
  kernels_ = plan.kernels;
  device_ = device;
}

Status NodePreparer::add_input(const ValueInfo& info) {
  Operand operand{info.dtype, Shape(), info.held, false};
  if (info.shape.complete()) {
    DTG_ASSIGN(operand.shape, info.shape.to_shape());
  } else {
    operand.dynamic = true;  // of a resource: what it holds has an open shape
  }
  inputs_.push_back(std::move(operand));
  return {};
}

Status NodePreparer::add_output(const ValueInfo& info) {
  Operand operand{info.dtype, Shape(), info.held, false};
  if (info.shape.complete()) {
    DTG_ASSIGN(operand.shape, info.shape.to_shape());
  } else {
    operand.dynamic = true;
  }
  outputs_.push_back(std::move(operand));
  return {};
}

Status NodePreparer::prepare(const KernelRow& row) {
  Status status = row.prepare ? row.prepare(*this) : Status();
  if (status.ok()) return status;
  std::string where = "prepare \"" + std::string(node_->name) + "\"";
  if (!node_->location.empty()) where += " (made at " + std::string(node_->location) + ")";
  return status.with_context(where).at_node(node_->name).in_phase("prepare");
}

int NodePreparer::alias_of(int o) const {
  for (const Pair& pair : aliases_) {
    if (pair.out == o) return pair.in;
  }
  return -1;
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

namespace {

constexpr int64_t kFoldBytes = 1 << 16;

// Outputs of a folded node are plain tensors; a kernel that leases (data-dependent shape) gets one too.
class FoldSlots final : public DynamicSlots {
 public:
  explicit FoldSlots(size_t count) : slots(count), tensors(count) {}
  Result<void*> lease(uint32_t slot, DType dtype, const Shape& shape) override {
    DTG_ASSIGN(tensors[slot], Tensor::allocate(dtype, shape));
    slots[slot].data = tensors[slot].data();
    return slots[slot].data;
  }
  const Shape& shape(uint32_t slot) const override { return tensors[slot].shape(); }
  void hold(uint32_t, void*, const Shape&, Ref<RefCounted>) override {}

  std::vector<Slot> slots;
  std::vector<Tensor> tensors;
};

Status run_once(NodePreparer& prepared, FoldSlots& memory, size_t num_inputs, size_t num_outputs, Pool& pool) {
  std::vector<uint32_t> numbers(num_inputs + num_outputs);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<uint32_t>(i);
  Instruction instruction;
  instruction.args = prepared.arguments();
  instruction.in = numbers.data();
  instruction.out = numbers.data() + num_inputs;
  instruction.workspace = 0;
  instruction.node = &prepared.node();
  DTG_ASSIGN(auto scratch, Buffer::allocate(prepared.workspace_bytes()));
  Step step(0, Deadline::never());
  RunContext run(memory, memory.slots.data(), static_cast<char*>(scratch->data()), step, pool);
  run.set_instruction(&instruction);
  return prepared.sync_fn()(run);
}

}  // namespace

std::vector<Tensor> evaluate_node(const PlanContext& plan, const Node& node, std::span<const Tensor> inputs,
                                  std::span<const ValueInfo> input_infos, std::span<const ValueInfo> output_infos) {
  for (const ValueInfo& info : output_infos) {
    auto shape = info.shape.complete() ? info.shape.to_shape() : Result<Shape>(invalid_argument("open"));
    if (!shape.ok() || shape.value().count() * dtype_size(info.dtype) > kFoldBytes) return {};
  }
  const KernelRow* row = plan.kernels->find(node, "CPU");
  if (!row || row->mode == KernelMode::blocking) return {};
  Arena arena;
  NodePreparer prepared(node, plan, "", arena);
  for (const ValueInfo& info : input_infos) {
    if (!prepared.add_input(info).ok()) return {};
  }
  for (const ValueInfo& info : output_infos) {
    if (!prepared.add_output(info).ok()) return {};
  }
  prepared.constants([](void* c, int i) { return (*static_cast<std::span<const Tensor>*>(c))[static_cast<size_t>(i)]; }, &inputs);
  if (!prepared.prepare(*row).ok() || prepared.async_fn()) return {};
  FoldSlots memory(inputs.size() + output_infos.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    memory.tensors[i] = inputs[i];
    memory.slots[i].data = inputs[i].data();
  }
  for (size_t o = 0; o < output_infos.size(); ++o) {
    const size_t slot = inputs.size() + o;
    const auto shape = output_infos[o].shape.to_shape();
    if (const int from = prepared.alias_of(static_cast<int>(o)); from >= 0) {
      memory.tensors[slot] = inputs[static_cast<size_t>(from)].reshaped(shape.value());
      memory.slots[slot].data = memory.tensors[slot].data();
    } else if (!memory.lease(static_cast<uint32_t>(slot), output_infos[o].dtype, shape.value()).ok()) {
      return {};
    }
  }
  if (prepared.sync_fn() && !run_once(prepared, memory, inputs.size(), output_infos.size(), *plan.pool).ok()) return {};
  return {memory.tensors.begin() + static_cast<std::ptrdiff_t>(inputs.size()), memory.tensors.end()};
}

}  // namespace dtg
