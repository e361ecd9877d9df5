// Lay out: offsets in the block of memory that a run works in, for all values of the chunks that are prepared with the plan. Pure; one
// thread.
#pragma once

#include <vector>

#include "exec/program.h"
#include "plan/emit.h"

namespace dtg {

// The order of segments, as far as memory may rely on it.
class SegmentOrder final : public SegmentReach {
 public:
  explicit SegmentOrder(const Ir& ir);
  // Each after those it waits for.
  const std::vector<uint32_t>& walk() const { return walk_; }
  // Along a tree in which each segment hangs under one that it waits for, so a "no" may be too careful.
  bool ended(uint32_t first, uint32_t then) const override {
    return enter_[first] <= enter_[then] && leave_[then] <= leave_[first] && first != then;
  }
  bool happened(uint32_t event, uint32_t then) const override { return ir_.sets->contains(ir_.segments[then].set, event); }

 private:
  void sort();
  void grow_tree();

  const Ir& ir_;
  std::vector<uint32_t> walk_;
  std::vector<uint32_t> enter_, leave_;  // of a walk through the tree
};

// Solves the memory plan and writes places and workspaces down. Fails where the whole does not fit into the budget.
Status lay_out(const PlanContext& context, const Ir& ir, const SegmentOrder& segments, const Emitter& emitter, MemoryPlan& memory,
               std::span<Instructions> chunks, Program& program);

}  // namespace dtg
