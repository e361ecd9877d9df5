// Lets every stage do its next move as soon as that can be. See pipeline.h.
#include "strategy/pipeline.h"

#include <algorithm>

namespace dtg {
namespace {

std::vector<PipelineMove> moves_of(int64_t stages, int64_t stage, int64_t micro_batches, bool forward_only) {
  std::vector<PipelineMove> moves;
  const int64_t ahead = forward_only ? micro_batches : std::min(micro_batches, stages - 1 - stage);
  for (int64_t k = 0; k < ahead; ++k) moves.push_back({false, stage, k});
  if (forward_only) return moves;
  for (int64_t k = 0; k < micro_batches; ++k) {
    if (k + ahead < micro_batches) moves.push_back({false, stage, k + ahead});
    moves.push_back({true, stage, k});
  }
  return moves;
}

}  // namespace

std::vector<PipelineMove> pipeline_moves(int64_t stages, int64_t micro_batches, bool forward_only) {
  std::vector<std::vector<PipelineMove>> left;
  for (int64_t s = 0; s < stages; ++s) left.push_back(moves_of(stages, s, micro_batches, forward_only));
  std::vector<size_t> at(static_cast<size_t>(stages), 0);
  std::vector<int64_t> forwards(static_cast<size_t>(stages), 0), backwards(static_cast<size_t>(stages), 0);
  std::vector<PipelineMove> all;
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t s = 0; s < left.size(); ++s) {
      if (at[s] == left[s].size()) continue;
      const PipelineMove next = left[s][at[s]];
      const bool first = s == 0, last = s + 1 == left.size();
      const bool ready = next.backward ? last || backwards[s + 1] > next.micro : first || forwards[s - 1] > next.micro;
      if (!ready) continue;
      ++(next.backward ? backwards[s] : forwards[s]);
      all.push_back(next);
      ++at[s];
      moved = true;
    }
  }
  return all;
}

}  // namespace dtg
