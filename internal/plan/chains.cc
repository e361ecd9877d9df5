// Finding who follows whom.
#include "plan/chains.h"

namespace dtg {

Chains::Chains(const Ir& ir, const std::vector<bool>& cut) : chain_of_(ir.segments.size(), kNone) {
  const auto count = static_cast<uint32_t>(ir.segments.size());
  // Most plans, and nearly all bodies, are one segment.
  if (count == 1) {
    chain_of_[0] = 0;
    chains_ = Lists(1, [](auto&& add) { add(0, 0); });
    return;
  }
  std::vector<uint32_t> waiting(count), next(count, kNone);
  for (const IrSegment& segment : ir.segments) {
    for (uint32_t before : segment.after) ++waiting[before];
  }
  std::vector<bool> follows(count);
  for (uint32_t s = 0; s < count; ++s) {
    if (ir.segments[s].after.size() != 1 || ir.segments[s].space != 0) continue;
    const uint32_t before = ir.segments[s].after[0];
    if (waiting[before] != 1 || cut[before]) continue;
    next[before] = s;
    follows[s] = true;
  }
  std::vector<uint32_t> heads;
  for (uint32_t s = 0; s < count; ++s) {
    if (!follows[s]) heads.push_back(s);
  }
  // Along the way that they run, which is not that of their numbers: a segment has its number from the first of its nodes.
  chains_ = Lists(heads.size(), [&](auto&& add) {
    for (uint32_t chain = 0; chain < heads.size(); ++chain) {
      for (uint32_t member = heads[chain]; member != kNone; member = next[member]) {
        chain_of_[member] = chain;
        add(chain, member);
      }
    }
  });
}

}  // namespace dtg
