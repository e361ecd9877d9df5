// Commits: how the writes of a run become one unit. The planner puts a gate before the writes that may take effect together, and a
// point behind them (plan/commit.cc); what happens there is the business of who implements this: taking a number, writing a log,
// knowing a repetition. Kernels see only this.
//
// Functions whose writes cannot be one unit (a loop's, those of a body that waits) have gates of their own. The outermost call of such
// functions is a strand: its units come one after the other and are told apart by their number in it.
//
// Owner: whoever runs the step; it outlives the run. Any thread. No call blocks: each ends by its completion.
#pragma once

#include <cstdint>
#include <span>

#include "exec/completion.h"
#include "exec/step.h"

namespace dtg {

// The arguments of a gate and of the point behind its writes.
struct CommitArgs {
  uint32_t phase = 0;
  int64_t strand = -1;  // in whose functions it stands; -1: in none
  int64_t record = -1;  // where writes are logged: by which number whoever keeps it knows what makes them again (plan/passes.h)
  std::span<const PrepareContext::Operand> values;
};

class Commits {
 public:
  virtual ~Commits() = default;
  // Who makes them: the session that asked for the run.
  virtual uint64_t writer() const = 0;
  // Everything that the writes behind the gate need is there. After success they take place, all of them, whatever happens outside,
  // unless Step::skips_writes(): then they took place before. The operands of the instruction are what the writes are made from,
  // where the plan was made so that it can be kept. One unit of a run is entered at a time; others wait for it.
  virtual void enter(const CommitArgs& gate, Completion done) = 0;
  // They have taken place.
  virtual void leave(const CommitArgs& point, Completion done) = 0;
  // Something took place that is in no unit: what the run put into a queue, or took from an accumulator. Before the instruction ends,
  // that the run has not ended before it is known; once or more often.
  virtual void changed() = 0;
};

// For the kernels of such.
inline void note_change(const Step& step) {
  if (Commits* const commits = step.commits()) commits->changed();
}

}  // namespace dtg
