// One kernel by itself: operands are plain tensors, results too.
#include "plan/evaluate.h"

#include <algorithm>

#include "base/interrupt.h"
#include "exec/memory_pool.h"
#include "exec/step.h"
#include "plan/prepare.h"
#include "tensor/text.h"

namespace dtg {
namespace {

constexpr int64_t kFoldBytes = 1 << 16;

// A kernel that is run for a plan is left when the plan is wanted no more.
class PlanInterrupt final : public Interrupt {
 public:
  explicit PlanInterrupt(const PlanContext& context) : context_(context) {}
  bool is_due() override { return (outer_ && outer_->is_due()) || (context_.clock && context_.deadline.passed(*context_.clock)); }

 private:
  const PlanContext& context_;
  Interrupt* const outer_ = Interrupt::present();
};

class Evaluation {
 public:
  Evaluation(const PlanContext& context, const Ir& ir, const IrNode& node) : context_(context), ir_(ir), node_(node), kernel_(context) {}

  std::vector<Tensor> run() {
    const KernelRow* row = context_.kernels->find(*node_.node, "CPU");
    if (!row || row->mode == KernelMode::blocking || !is_small()) return {};
    if (!prepare(*row)) return {};
    const auto inputs = static_cast<uint32_t>(node_.inputs.size()), outputs = static_cast<uint32_t>(node_.outputs.size());
    MemoryPool memory(nullptr);
    Slots slots(inputs + outputs, 0, true, memory);
    for (uint32_t i = 0; i < inputs; ++i) {
      slots.bind(i, operand(i).data());
      slots.set_shape(i, operand(i).shape());
    }
    std::vector<Tensor> results;
    for (uint32_t o = 0; o < outputs; ++o) {
      auto shape = info(o).shape.to_shape();
      const int from = kernel_.alias_of(static_cast<int>(o));
      auto result = from >= 0 ? Result<Tensor>(operand(static_cast<uint32_t>(from)).reshaped(shape.value()))
                              : memory_for(info(o).dtype, shape.value());
      if (!result.ok()) return {};
      results.push_back(result.take());
      slots.bind(inputs + o, results.back().data());
    }
    if (kernel_.sync_fn() && !call(slots, inputs, outputs).ok()) return {};
    // Cells point at memory of the call, which ends here.
    for (uint32_t o = 0; o < outputs; ++o) {
      if (info(o).dtype != DType::string || kernel_.alias_of(static_cast<int>(o)) >= 0) continue;
      auto owned = make_texts(results[o].shape(), texts_of(results[o]));
      if (!owned.ok() || owned.value().buffer()->bytes() > kFoldBytes) return {};
      results[o] = owned.take();
    }
    return results;
  }

 private:
  static Result<Tensor> memory_for(DType dtype, const Shape& shape) {
    if (dtype != DType::string) return Tensor::allocate(dtype, shape);
    return make_texts(shape, std::vector<Text>(static_cast<size_t>(shape.count())));
  }
  const ValueInfo& info(uint32_t o) const { return *ir_.values[node_.outputs[o]].info; }
  const Tensor& operand(uint32_t i) const { return ir_.constant(ir_.values[node_.inputs[i]]); }

  bool is_small() const {
    return std::ranges::all_of(node_.outputs, [&](uint32_t v) {
      const ValueInfo& of = *ir_.values[v].info;
      if (!of.shape.complete() || cell_bytes(of.dtype) == 0) return false;
      const auto shape = of.shape.to_shape();
      return shape.ok() && shape.value().count() <= kFoldBytes / cell_bytes(of.dtype);
    });
  }

  bool prepare(const KernelRow& row) {
    kernel_.reset(*node_.node, "", nullptr, arena_);
    for (uint32_t input : node_.inputs) {
      if (!kernel_.add_input(*ir_.values[input].info).ok()) return false;
    }
    for (uint32_t output : node_.outputs) {
      if (!kernel_.add_output(*ir_.values[output].info).ok()) return false;
    }
    kernel_.constants([](void* self, int i) { return static_cast<const Evaluation*>(self)->operand(static_cast<uint32_t>(i)); }, this);
    return kernel_.prepare(row).ok() && !kernel_.async_fn() && kernel_.workspace_bytes() <= 16 * kFoldBytes;
  }

  Status call(Slots& slots, uint32_t inputs, uint32_t outputs) {
    std::vector<uint32_t> numbers(inputs + outputs);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<uint32_t>(i);
    Instruction instruction;
    instruction.args = kernel_.arguments();
    instruction.in = numbers.data();
    instruction.out = numbers.data() + inputs;
    instruction.workspace = 0;
    instruction.node = node_.node;
    DTG_ASSIGN(auto scratch, Buffer::allocate(kernel_.workspace_bytes()));
    Step step(0, Deadline::never());
    RunContext run(slots, static_cast<char*>(scratch->data()), step, *context_.pool);
    run.set_instruction(&instruction);
    PlanInterrupt interrupt(context_);
    const Interrupt::Scope scope(&interrupt);
    try {
      return kernel_.sync_fn()(run);
    } catch (const Interrupted&) {
      return cancelled("fold: interrupted");  // the pass asks why
    }
  }

  const PlanContext& context_;
  const Ir& ir_;
  const IrNode& node_;
  Arena arena_;
  NodePreparer kernel_;
};

}  // namespace

std::vector<Tensor> evaluate_node(const PlanContext& context, const Ir& ir, const IrNode& node) {
  if (node.inputs.empty() || !std::ranges::all_of(node.inputs, [&](uint32_t v) { return ir.values[v].is_known(); })) return {};
  if (!context.check_time().ok()) return {};
  return Evaluation(context, ir, node).run();
}

}  // namespace dtg
