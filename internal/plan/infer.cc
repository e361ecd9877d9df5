// Infer: shapes for these feeds, and what constants and shapes alone decide. What was complete when a node was built stays as it is,
// because a feed can only be more exact; unless a value is fed that was known then, for what rests on it may be otherwise now.
#include <algorithm>

#include "graph/known.h"
#include "plan/evaluate.h"
#include "plan/passes.h"

namespace dtg {
namespace {

class IrValues final : public ValueContext {
 public:
  IrValues(const Ir& ir, const IrNode& node, std::span<const ValueInfo> outputs, std::span<Tensor> known)
      : ValueContext(*node.node, outputs, known), ir_(ir), node_(node) {}
  Tensor input(int i) const override {
    const IrValue& value = ir_.values[node_.inputs[static_cast<size_t>(i)]];
    return value.is_known() ? ir_.constant(value) : Tensor();
  }
  const ValueInfo& input_info(int i) const override { return *ir_.values[node_.inputs[static_cast<size_t>(i)]].info; }

 private:
  const Ir& ir_;
  const IrNode& node_;
};

class Inferrer {
 public:
  Inferrer(const PlanContext& context, Ir& ir) : context_(context), ir_(ir) {}

  Status run() {
    for (uint32_t n = 0; n < ir_.nodes.size(); ++n) {
      if (context_.is_checkpoint(n)) DTG_TRY(context_.check_time());
      IrNode& node = ir_.nodes[n];
      DTG_TRY(infer(node));
      DTG_TRY(check_sizes(node));
      note_gate(node);
      find_values(node);
      const auto dynamic = [&](uint32_t v) { return ir_.values[v].dynamic(); };
      node.dynamic = std::ranges::any_of(node.outputs, dynamic) || std::ranges::any_of(node.inputs, dynamic);
    }
    sweep(ir_);
    return {};
  }

 private:
  struct Known {
    const Ir* ir;
    const IrNode* node;
    static Tensor of(void* context, int i) {
      const auto* k = static_cast<const Known*>(context);
      const IrValue& value = k->ir->values[k->node->inputs[static_cast<size_t>(i)]];
      return value.is_known() ? k->ir->constant(value) : Tensor();
    }
  };

  Status infer(IrNode& node) {
    const bool unsure = std::ranges::any_of(node.inputs, [&](uint32_t v) { return ir_.values[v].unsure; });
    if (!unsure && !is_open(node)) return {};
    inputs_.clear();
    for (uint32_t input : node.inputs) inputs_.push_back(*ir_.values[input].info);
    auto* const outputs = ir_.arena.make<std::vector<ValueInfo>>();
    for (uint32_t output : node.outputs) {
      const ValueInfo& built = *ir_.values[output].info;
      if (unsure) outputs->push_back({built.dtype, built.held, PartialShape::unknown()});
      else outputs->push_back(built);
    }
    Known known{&ir_, &node};
    DTG_TRY(infer_node(*node.node, inputs_, *outputs, Known::of, &known));
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      ir_.values[node.outputs[o]].info = &(*outputs)[o];
      ir_.values[node.outputs[o]].unsure = unsure;
    }
    return {};
  }

  // Was anything open when the node was built that the feeds may have closed?
  bool is_open(const IrNode& node) const {
    if (std::ranges::any_of(node.outputs, [&](uint32_t v) { return !ir_.values[v].info->shape.complete(); })) return true;
    for (Value input : node.node->inputs) {
      if (!ir_.graph->info(input).shape.complete()) return true;
    }
    return false;
  }

  Status check_sizes(const IrNode& node) const {
    for (uint32_t v : node.outputs) {
      const ValueInfo& info = *ir_.values[v].info;
      if (dtype_size(info.dtype) == 0 || !info.shape.complete()) continue;
      auto shape = info.shape.to_shape();
      if (!shape.ok()) return shape.status().at_node(node.node->name);
      DTG_TRY(value_bytes(context_, *node.node, info.dtype, shape.value()).status());
    }
    return {};
  }

  void note_gate(IrNode& node) const {
    const auto gated = [&](uint32_t v) {
      const IrValue& value = ir_.values[v];
      return value.is_known() && value.producer != kNone && ir_.nodes[value.producer].gated;
    };
    node.gated = !node.controls.empty() || std::ranges::any_of(node.inputs, gated);
  }

  void find_values(const IrNode& node) {
    if (node.node->op->is_stateful() || node.outputs.empty()) return;
    // The common node has operands that nobody knows yet, and no value function.
    const ValueFn fn = node.node->op->value_fn();
    const bool computable = !node.inputs.empty() && std::ranges::all_of(node.inputs, [&](uint32_t v) { return ir_.values[v].is_known(); });
    if (!fn && !computable) return;
    known_.assign(node.outputs.size(), Tensor());
    outputs_.clear();
    for (uint32_t output : node.outputs) outputs_.push_back(*ir_.values[output].info);
    if (fn) {
      IrValues values(ir_, node, outputs_, known_);
      fn(values);
    }
    const bool found = std::ranges::all_of(known_, [](const Tensor& tensor) { return tensor.valid(); });
    // Later shapes may hang on what only a kernel can work out.
    if (!found && computable && is_small()) known_ = evaluate_node(context_, ir_, node);
    for (size_t o = 0; o < known_.size(); ++o) {
      if (known_[o].valid()) ir_.set_known(node.outputs[o], std::move(known_[o]));
    }
  }

  bool is_small() const {
    return std::ranges::all_of(outputs_, [](const ValueInfo& info) {
      if (!info.shape.complete()) return false;
      const auto shape = info.shape.to_shape();
      return shape.ok() && shape.value().count() <= ValueContext::kElementsMax;
    });
  }

  const PlanContext& context_;
  Ir& ir_;
  std::vector<ValueInfo> inputs_, outputs_;  // of the node at hand
  std::vector<Tensor> known_;
};

}  // namespace

Status infer(const PlanContext& context, Ir& ir) { return Inferrer(context, ir).run(); }

}  // namespace dtg
