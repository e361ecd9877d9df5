// Commits: how the writes of a run become one unit. The planner puts a gate before the writes that may take effect together, and a
// point behind them (plan/commit.cc); what happens there is the business of who implements this: taking a number, writing a log,
// knowing a repetition. Kernels see only this.
//
// Owner: whoever runs the step; it outlives the run. Any thread, one phase at a time, phases in order. No call blocks: each ends by its
// completion.
#pragma once

#include <cstdint>
#include <span>

#include "exec/completion.h"

namespace dtg {

// The arguments of a gate, for whoever keeps its operands.
struct CommitArgs {
  uint32_t phase = 0;
  std::span<const PrepareContext::Operand> values;
};

class Commits {
 public:
  virtual ~Commits() = default;
  // Who makes them: the session that asked for the run.
  virtual uint64_t writer() const = 0;
  // Everything that the writes of the phase need is there. After success they take place, all of them, whatever happens outside,
  // unless Step::skips_writes(): then they took place before. The operands of the instruction are what the writes are made from,
  // where the plan was made so that it can be kept.
  virtual void enter(uint32_t phase, Completion done) = 0;
  // They have taken place.
  virtual void leave(uint32_t phase, Completion done) = 0;

  // The same for one round of a loop that writes, whose number among the loops of its plan is `loop`; rounds in order, from 0. Between two
  // rounds the run may be aborted. Both are over when they return.
  virtual Status enter_round(uint32_t loop, int64_t round, Step& step) = 0;
  virtual void leave_round(uint32_t loop, int64_t round, Step& step) = 0;
};

}  // namespace dtg
