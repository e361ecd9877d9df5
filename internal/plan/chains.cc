// Finding who follows whom.
#include "plan/chains.h"

namespace dtg {

Chains::Chains(const Ir& ir, const std::vector<bool>& cut) : chain_of_(ir.segments.size(), kNone) {
  const auto count = static_cast<uint32_t>(ir.segments.size());
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
  uint32_t chains = 0;
  for (uint32_t s = 0; s < count; ++s) {
    if (follows[s]) continue;
    for (uint32_t member = s; member != kNone; member = next[member]) chain_of_[member] = chains;
    ++chains;
  }
  // The numbers of segments rise along a chain, for each was made when the one before was there.
  chains_ = Lists(chains, [&](auto&& add) {
    for (uint32_t s = 0; s < count; ++s) add(chain_of_[s], s);
  });
}

}  // namespace dtg
