// The order in which the stages of a pipeline compute: one forward, one backward. Stage s of S first does S - 1 - s forwards, then one
// forward and one backward by turns, then the backwards that are left; so it holds what S - s micro-batches need for their way back, and no
// more, however many there are. A pure function; any thread.
#pragma once

#include <cstdint>
#include <vector>

namespace dtg {

struct PipelineMove {
  bool backward = false;
  int64_t stage = 0;
  int64_t micro = 0;
};

// All moves, each behind what it needs and in the order of its stage; the forwards of the first micro-batch come in the order of the
// stages.
std::vector<PipelineMove> pipeline_moves(int64_t stages, int64_t micro_batches, bool forward_only);

// The backward that has to be over before that forward begins, a micro-batch of the same stage; negative: none.
inline int64_t pipeline_waits_for(int64_t stages, int64_t stage, int64_t micro) { return micro - (stages - stage); }

}  // namespace dtg
