// Emitter: turns nodes into the instructions of one chunk and tells the memory plan what lives when. The same code serves a plan in the
// making (shapes known beforehand) and a later chunk (shapes taken from a run that is under way).
//
// Lives while chunks are made; one thread.
#pragma once

#include <unordered_map>
#include <vector>

#include "exec/program.h"
#include "plan/memory.h"
#include "plan/passes.h"
#include "plan/prepare.h"

namespace dtg {

class Emitter {
 public:
  struct Output {
    Arena* arena;                               // argument blocks and operand lists
    std::vector<Tensor>* tensors;               // constants that must stay
    std::vector<Ref<RefCounted>>* resources;    // bound resources
    std::vector<Program::Constant>* constants;  // slots with a fixed address; null in a later chunk
  };
  // `slots` is null while the plan is made; then aliases share a slot, which the Ir is told.
  Emitter(const PlanContext& context, Ir& ir, MemoryPlan& memory, Output output) : Emitter(context, ir, &ir, memory, output, nullptr) {}
  Emitter(const PlanContext& context, const Ir& ir, MemoryPlan& memory, Output output, const Slots& slots)
      : Emitter(context, ir, nullptr, memory, output, &slots) {}

  // Appends what the nodes of a segment need to its chunk, from position `from` on and as far as their shapes are known. Returns where
  // that ends. Each segment comes after those it waits for.
  Result<uint32_t> emit(std::span<const uint32_t> nodes, uint32_t from, Instructions& chunk);
  // What the planner puts around kernels itself: "alias", "bind", "unpin" or "signal"; null for a kernel's instruction.
  static const char* own_name(const Instruction& instruction);
  // The memory plan's number of what lies in a slot, or kNone.
  const std::vector<uint32_t>& items() const { return items_; }
  // Slots of values that kernels keep beyond the run, of a plan in the making; some more than once.
  const std::vector<uint32_t>& kept() const { return kept_; }
  // What the nodes so far give to slots whose shape was not known.
  std::vector<Typed> take_shapes() { return std::move(shapes_); }
  // Run-time values that were looked at while preparing: slot and bytes.
  const std::vector<std::pair<uint32_t, std::vector<char>>>& consulted() const { return consulted_; }

 private:
  enum class Verdict { done, cut_before, cut_after };
  Emitter(const PlanContext& context, const Ir& ir, Ir* making, MemoryPlan& memory, Output output, const Slots* slots)
      : context_(context),
        ir_(ir),
        making_(making),
        memory_(memory),
        output_(output),
        slots_(slots),
        kernel_(context),
        items_(ir.values.size(), kNone) {}
  struct Lookup {
    Emitter* emitter;
    const IrNode* node;
  };
  static Tensor constant(void* lookup, int input);
  Tensor runtime_value(uint32_t value);
  const ValueInfo& info(uint32_t value);
  uint32_t slot(uint32_t value) const { return ir_.values[value].slot; }
  uint32_t item_of(uint32_t value) const { return items_[slot(value)]; }
  Result<Verdict> emit_node(uint32_t n, Instructions& chunk);
  Result<Verdict> infer(const IrNode& node);
  struct Touched {
    int64_t bytes = 0;
    bool texts = false;  // it takes strings
    bool open = false;   // how much it gives is not known yet
  };
  Touched touched() const;
  bool is_worth_a_look(uint32_t segment, const Touched& here);
  bool may_be_cut(const IrNode& node, const Touched& here) const;
  Status check_made(const IrNode& node);
  bool is_made(const Node* node) const { return &ir_.graph->node(node->id) != node; }
  const Node* lasting(const Node* node);
  Status note_shapes(const IrNode& node);
  Status prepare(uint32_t n, Instructions& chunk);
  Status check_device(const IrNode& node, int output, int64_t bytes, const Accelerator& device) const;
  Status place_operands(const IrNode& node, uint32_t at);
  void note_kept(const IrNode& node);
  const std::vector<uint32_t>& repeated_items(const IrNode& node);
  void bind_outputs(const IrNode& node, Instructions& chunk);
  void alias_outputs(const IrNode& node, Instructions& chunk);
  uint32_t* make_room(Instruction& instruction, size_t inputs, size_t outputs);
  void append(Instructions& chunk, SyncFn fn, const void* args, std::span<const uint32_t> in, std::span<const uint32_t> out,
              const Node* node);
  void append_unpins(const IrNode& node, Instructions& chunk);
  void append_signals(uint32_t n, Instructions& chunk);

  const PlanContext& context_;
  const Ir& ir_;
  Ir* const making_;  // the same, where it may be changed
  MemoryPlan& memory_;
  const Output output_;
  const Slots* const slots_;
  NodePreparer kernel_;
  std::vector<uint32_t> items_;  // by slot
  std::vector<uint32_t> homes_;  // by item: the slot that it was made for
  std::vector<uint32_t> kept_;
  std::vector<Typed> shapes_;
  std::vector<int64_t> touched_;                    // by segment: bytes since an instruction last looked at the clock
  std::unordered_map<uint32_t, ValueInfo> infos_;   // values whose shape the Ir does not know
  std::vector<bool> made_here_;                     // values this chunk computes
  std::vector<const ValueInfo*> inputs_, outputs_;  // of the node at hand
  std::vector<ValueInfo> open_inputs_, inferred_;   // of a node whose shapes are open
  std::vector<std::pair<uint32_t, std::vector<char>>> consulted_;
  std::vector<uint32_t> items_here_;  // scratch
  bool wanted_unknown_ = false;
};

}  // namespace dtg
