// The shared tree.
#include "plan/event_set.h"

#include <algorithm>

namespace dtg {
namespace {

uint64_t pair(uint32_t a, uint32_t b) { return uint64_t{a} << 32 | b; }

}  // namespace

EventSets::EventSets(uint32_t count) : parts_(1) {
  while ((uint64_t{64} << height_) < count) ++height_;
}

uint32_t EventSets::leaf(uint64_t bits) {
  const auto [at, fresh] = leaves_.emplace(bits, static_cast<uint32_t>(parts_.size()));
  if (fresh) parts_.push_back({bits, 0, 0});
  return *at;
}

uint32_t EventSets::inner(uint32_t left, uint32_t right) {
  const auto [at, fresh] = inners_.emplace(pair(left, right), static_cast<uint32_t>(parts_.size()));
  if (fresh) parts_.push_back({0, left, right});
  return *at;
}

uint32_t EventSets::with(uint32_t set, uint32_t event, int height) {
  if (height == 0) return leaf(parts_[set].bits | uint64_t{1} << (event % 64));
  const uint32_t left = parts_[set].left, right = parts_[set].right;
  if ((event / 64) >> (height - 1) & 1) return inner(left, with(right, event, height - 1));
  return inner(with(left, event, height - 1), right);
}

// Mostly one of them came before the other and is a part of it, which shows itself without a look into a table. Unions are remembered but
// at the lowest level, where it takes as long to ask as to unite.
uint32_t EventSets::unite(uint32_t a, uint32_t b, int height) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  // The parts are read before anything is added, which may move them.
  const Part x = parts_[a], y = parts_[b];
  if (height == 0) {
    const uint64_t both = x.bits | y.bits;
    return both == x.bits ? a : both == y.bits ? b : leaf(both);
  }
  const bool is_remembered = height > 1;
  const uint64_t key = pair(std::min(a, b), std::max(a, b));
  if (const uint32_t* known = is_remembered ? unions_.find(key) : nullptr) return *known;
  const uint32_t left = unite(x.left, y.left, height - 1), right = unite(x.right, y.right, height - 1);
  const auto is = [&](const Part& part) { return part.left == left && part.right == right; };
  const uint32_t both = is(x) ? a : is(y) ? b : inner(left, right);
  if (is_remembered) unions_.emplace(key, both);
  return both;
}

bool EventSets::contains(uint32_t set, uint32_t event) const {
  for (int level = height_; level-- > 0 && set != 0;) set = (event / 64) >> level & 1 ? parts_[set].right : parts_[set].left;
  return set != 0 && (parts_[set].bits >> (event % 64) & 1) != 0;
}

}  // namespace dtg
