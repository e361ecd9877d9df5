// IrRewriter: how the rules of the ops (graph/rewriter.h) see and change an Ir. Keeps count of who reads what while rules apply.
//
// Lives for one pass; one thread.
#pragma once

#include "graph/rewriter.h"
#include "plan/passes.h"

namespace dtg {

class IrRewriter final : public Rewriter {
 public:
  IrRewriter(const PlanContext& context, Ir& ir);

  const Node& node(uint32_t n) const override { return *ir_.nodes[n].node; }
  size_t operand_count(uint32_t n) const override { return ir_.nodes[n].inputs.size(); }
  uint32_t operand(uint32_t n, size_t input) const override { return ir_.nodes[n].inputs[input]; }
  uint32_t result(uint32_t n, size_t output) const override { return ir_.nodes[n].outputs[output]; }
  const ValueInfo& info(uint32_t value) const override { return *ir_.values[value].info; }
  Tensor known(uint32_t value) const override;
  uint32_t producer(uint32_t value) const override;
  uint32_t sole_producer(uint32_t value, uint32_t reader) const override;
  uint32_t sole_reader(uint32_t value) const override;
  void replace(uint32_t n, const OpDef& op, std::span<const uint32_t> operands, std::vector<Attr> attrs,
               std::span<const uint32_t> absorbed) override;
  bool forward(uint32_t n, uint32_t value) override;
  const OpTable& ops() const override { return *context_.ops; }

  // Operands of `n` that were forwarded become what they stand for. Rules see a node after this.
  void resolve_operands(uint32_t n);
  bool changed() const { return changed_; }
  bool is_read_once(uint32_t value) const { return readers_[value].count == 1; }

 private:
  // Who reads a value: how many operands, and all readers' numbers combined by exclusive or, which is the reader when there is one.
  struct Readers {
    uint32_t count = 0;
    uint32_t mix = 0;
  };
  // It is known, but control edges say when it may be used.
  bool is_gate(uint32_t value) const {
    const IrValue& v = ir_.values[value];
    return v.is_known() && v.producer != kNone && ir_.nodes[v.producer].gated && !ir_.nodes[v.producer].dead;
  }
  void keep_gates(IrNode& node, std::span<const uint32_t> old, std::vector<uint32_t>& controls) const;
  void read(uint32_t value, uint32_t n);
  void unread(uint32_t value, uint32_t n);
  // Nothing but its readers would notice if the node were another.
  bool is_free(const IrNode& node) const {
    return !node.dead && !node.target && !node.controlled && node.controls.empty() && !node.barrier;
  }

  const PlanContext& context_;
  Ir& ir_;
  std::vector<Readers> readers_;      // by value
  std::vector<uint32_t> stands_for_;  // by value: itself, or what it was forwarded to
  bool changed_ = false;
};

}  // namespace dtg
