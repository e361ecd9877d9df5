// Emitter: turns draft nodes into the instructions of one chunk. The same code serves a plan in the making
// (shapes known beforehand) and a later chunk (shapes taken from a frame that runs).
//
// Lives while a chunk is made; one thread.
#pragma once

#include <unordered_map>
#include <vector>

#include "exec/frame.h"
#include "plan/draft.h"
#include "plan/memory.h"
#include "plan/prepare.h"

namespace dtg {

// Where the slot's memory was laid out.
struct Home {
  uint32_t segment = kNone;
  uint32_t item = 0;  // number in that segment's layout
};

class Emitter {
 public:
  struct Sink {
    Arena* arena;                               // argument blocks and operand lists
    std::vector<Tensor>* tensors;               // constants that must stay
    std::vector<Ref<RefCounted>>* resources;    // bound resources
    std::vector<Program::Constant>* constants;  // slots with a fixed address; null in a later chunk
  };
  enum class Verdict { done, cut_before, cut_after };

  // `frame` is null while the plan is made.
  Emitter(const PlanContext& context, Draft& draft, Sink sink, Frame* frame)
      : context_(context), draft_(draft), sink_(sink), frame_(frame), homes_(draft.values.size()) {}

  // Appends what node `n` needs to the chunk of its segment, or says that the chunk ends here.
  Result<Verdict> emit(uint32_t n, uint32_t segment, Chunk& chunk, MemoryPlan& memory);
  // A value of a laid-out slot is read outside of its chunk.
  std::vector<Home>& homes() { return homes_; }
  // Run-time values that were looked at while preparing: slot and bytes.
  const std::vector<std::pair<uint32_t, std::vector<char>>>& consulted() const { return consulted_; }

 private:
  struct Lookup {
    Emitter* emitter;
    const DraftNode* node;
  };
  static Tensor constant(void* lookup, int input);
  Tensor runtime_value(uint32_t value);
  ValueInfo info(uint32_t value);
  uint32_t slot(uint32_t value) const { return draft_.values[value].slot; }
  Status check_ranks(const DraftNode& node, const std::vector<ValueInfo>& inputs) const;
  Result<Verdict> infer(const DraftNode& node, const std::vector<ValueInfo>& inputs, std::vector<ValueInfo>& outputs);
  Status prepare(uint32_t n, const std::vector<ValueInfo>& inputs, const std::vector<ValueInfo>& outputs, uint32_t segment, Chunk& chunk,
                 MemoryPlan& memory);
  void place_operands(const DraftNode& node, const NodePreparer& kernel, const std::vector<ValueInfo>& outputs, uint32_t segment,
                      uint32_t at, MemoryPlan& memory);
  void bind_outputs(const DraftNode& node, const NodePreparer& kernel, Chunk& chunk);
  void alias_outputs(const DraftNode& node, const NodePreparer& kernel, const std::vector<ValueInfo>& outputs, Chunk& chunk);
  void append(Chunk& chunk, SyncFn fn, const void* args, std::span<const uint32_t> in, std::span<const uint32_t> out, const Node* node);
  void append_unpins(const DraftNode& node, Chunk& chunk);
  void append_signals(uint32_t n, Chunk& chunk);

  const PlanContext& context_;
  Draft& draft_;
  const Sink sink_;
  Frame* const frame_;
  std::vector<Home> homes_;                        // by slot
  std::unordered_map<uint32_t, ValueInfo> infos_;  // values whose shape the draft does not know
  std::vector<bool> made_here_;                    // values this chunk computes
  std::vector<std::pair<uint32_t, std::vector<char>>> consulted_;
  bool wanted_unknown_ = false;
};

}  // namespace dtg
