// Best fit over one walk through the segments, each after those it waits for.
#include "plan/memory.h"

#include <algorithm>

#include "tensor/buffer.h"

namespace dtg {
namespace {

// A walk over free blocks that fit in size but not in time ends after so many.
constexpr int kCandidates = 32;
// Blocks that wait for more than so many segments and events are not joined with others.
constexpr size_t kConditionsMax = 8;

}  // namespace

uint32_t MemoryPlan::value(int64_t bytes, uint32_t segment, uint32_t instruction) {
  Item& item = values_.emplace_back();
  item.bytes = align_up(std::max<int64_t>(bytes, 1));
  item.segment = item.reader = segment;
  item.from = item.last = item.reader_last = instruction;
  return static_cast<uint32_t>(values_.size() - 1);
}

void MemoryPlan::used(uint32_t value, uint32_t segment, uint32_t instruction) {
  Item& item = values_[value];
  if (segment == item.segment) {
    item.last = std::max(item.last, instruction);
    return;
  }
  item.elsewhere = true;
  uses_.push_back({value, segment, instruction});
}

void MemoryPlan::used_until(uint32_t value, uint32_t event) {
  values_[value].elsewhere = true;
  uses_.push_back({value, event, kUntilEvent});
}

void MemoryPlan::workspace(int64_t bytes, uint32_t segment, uint32_t instruction) {
  if (bytes > 0) workspaces_.push_back({align_up(bytes), segment, instruction, -1});
}

void MemoryPlan::may_overwrite(uint32_t in, uint32_t out, uint32_t segment, uint32_t instruction) {
  overwrites_.push_back({in, out, segment, instruction});
}

bool MemoryPlan::is_over(const Conditions& conditions, uint32_t segment, const SegmentReach& reach) const {
  return std::ranges::all_of(conditions, [&](Condition condition) {
    if (condition.event) return reach.happened(condition.number, segment);
    return condition.number == segment || reach.ended(condition.number, segment);
  });
}

MemoryPlan::Conditions MemoryPlan::conditions_of(uint32_t value) const {
  Conditions conditions = {{values_[value].segment, false}};
  if (!values_[value].elsewhere) return conditions;
  for (auto use = std::ranges::lower_bound(uses_, value, {}, &Use::value); use != uses_.end() && use->value == value; ++use) {
    const Condition condition{use->segment, use->instruction == kUntilEvent};
    if (std::ranges::find(conditions, condition) == conditions.end()) conditions.push_back(condition);
  }
  return conditions;
}

void MemoryPlan::forget(std::map<int64_t, Free>::iterator block) {
  const auto [from, to] = by_size_.equal_range(block->second.bytes);
  for (auto at = from; at != to; ++at) {
    if (at->second != block->first) continue;
    by_size_.erase(at);
    break;
  }
  free_.erase(block);
}

void MemoryPlan::note(int64_t offset, int64_t bytes, Conditions after) {
  by_size_.emplace(bytes, offset);
  free_.emplace(offset, Free{bytes, std::move(after)});
}

// The smallest free block that holds it; otherwise the top grows, swallowing a free block that touches it.
int64_t MemoryPlan::take(int64_t bytes, uint32_t segment, const SegmentReach& reach) {
  int tries = 0;
  for (auto at = by_size_.lower_bound(bytes); at != by_size_.end() && tries < kCandidates; ++at, ++tries) {
    const auto block = free_.find(at->second);
    if (!is_over(block->second.after, segment, reach)) continue;
    const int64_t offset = block->first, size = block->second.bytes;
    Conditions rest = std::move(block->second.after);
    free_.erase(block);
    by_size_.erase(at);
    if (size > bytes) note(offset + bytes, size - bytes, std::move(rest));
    return offset;
  }
  int64_t offset = top_;
  if (!free_.empty()) {
    const auto last = std::prev(free_.end());
    if (last->first + last->second.bytes == top_ && is_over(last->second.after, segment, reach)) {
      offset = last->first;
      const int64_t rest = last->second.bytes - bytes;
      Conditions after = last->second.after;
      forget(last);
      // Large enough by itself, where too many others fit in size but not in time: the top stays where it is.
      if (rest > 0) note(offset + bytes, rest, std::move(after));
    }
  }
  top_ = std::max(top_, offset + bytes);
  return offset;
}

void MemoryPlan::give(int64_t offset, int64_t bytes, Conditions after) {
  const auto join = [&](std::map<int64_t, Free>::iterator block) {
    Conditions both = after;
    for (Condition condition : block->second.after) {
      if (std::ranges::find(both, condition) == both.end()) both.push_back(condition);
    }
    if (both.size() > kConditionsMax) return false;
    after = std::move(both);
    offset = std::min(offset, block->first);
    bytes += block->second.bytes;
    forget(block);
    return true;
  };
  if (const auto next = free_.find(offset + bytes); next != free_.end()) join(next);
  const auto next = free_.lower_bound(offset);
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second.bytes == offset) join(before);
  }
  note(offset, bytes, std::move(after));
}

bool MemoryPlan::overwrite(uint32_t value, const SegmentReach& reach) {
  Item& out = values_[value];
  // No std::ranges::equal_range: clang 14 cannot compile libstdc++'s subranges.
  auto at = std::ranges::lower_bound(overwrites_, value, {}, &Overwrite::out);
  for (; at != overwrites_.end() && at->out == value; ++at) {
    Item& in = values_[at->in];
    if (in.kept || in.given || in.offset < 0 || in.bytes != out.bytes) continue;
    // It dies here: read last by this very instruction, and whoever else reads it is over.
    if (in.reader != at->segment || in.reader_last != at->instruction) continue;
    if (in.elsewhere && !is_over(conditions_of(at->in), at->segment, reach)) continue;
    in.given = true;
    out.offset = in.offset;
    return true;
  }
  return false;
}

// When each value is read last, in the order of the walk.
void MemoryPlan::sort_uses(const std::vector<uint32_t>& place) {
  std::ranges::sort(uses_, {}, [](const Use& use) { return std::pair(use.value, use.segment); });
  for (Item& item : values_) item.reader_last = item.last;
  for (const Use& use : uses_) {
    Item& item = values_[use.value];
    if (use.instruction == kUntilEvent) continue;
    const auto now = std::pair(place[item.reader], item.reader_last), then = std::pair(place[use.segment], use.instruction);
    if (then > now) {
      item.reader = use.segment;
      item.reader_last = use.instruction;
    }
  }
}

Status MemoryPlan::solve(const std::vector<uint32_t>& segments, const SegmentReach& reach) {
  std::vector<uint32_t> place;  // segment -> when it is walked through
  for (uint32_t i = 0; i < segments.size(); ++i) {
    if (place.size() <= segments[i]) place.resize(segments[i] + 1);
    place[segments[i]] = i;
  }
  sort_uses(place);
  const auto when = [&](uint32_t segment, uint32_t instruction) { return uint64_t{place[segment]} << 32 | instruction; };
  // Births, workspaces and deaths in the order of the walk.
  std::vector<std::pair<uint64_t, uint32_t>> births, deaths;
  for (uint32_t v = 0; v < values_.size(); ++v) {
    const Item& item = values_[v];
    if (item.dropped) continue;
    births.emplace_back(when(item.segment, item.from), v);
    if (!item.kept) deaths.emplace_back(when(item.reader, item.reader_last), v);
  }
  std::ranges::sort(births);
  std::ranges::sort(deaths);
  std::ranges::sort(workspaces_, {}, [&](const Work& work) { return when(work.segment, work.instruction); });
  std::ranges::sort(overwrites_, {}, &Overwrite::out);
  size_t born = 0, work = 0, dead = 0;
  while (born < births.size() || work < workspaces_.size() || dead < deaths.size()) {
    const auto at = [](const auto& list, size_t i, auto key) { return i < list.size() ? key(list[i]) : UINT64_MAX; };
    const auto first = [](const auto& entry) { return entry.first; };
    const uint64_t now = std::min({at(births, born, first), at(deaths, dead, first),
                                   at(workspaces_, work, [&](const Work& w) { return when(w.segment, w.instruction); })});
    const uint32_t segment = segments[now >> 32];
    for (; born < births.size() && births[born].first == now; ++born) {
      Item& item = values_[births[born].second];
      if (!overwrite(births[born].second, reach)) item.offset = take(item.bytes, segment, reach);
    }
    if (work < workspaces_.size() && when(workspaces_[work].segment, workspaces_[work].instruction) == now) {
      Work& space = workspaces_[work++];
      space.offset = take(space.bytes, segment, reach);
      give(space.offset, space.bytes, {{segment, false}});
    }
    for (; dead < deaths.size() && deaths[dead].first == now; ++dead) {
      const Item& item = values_[deaths[dead].second];
      if (!item.given) give(item.offset, item.bytes, conditions_of(deaths[dead].second));
    }
    if (top_ < 0 || top_ > INT64_MAX / 4) return resource_exhausted("plan: the values of a run take more than any memory");
  }
  return {};
}

}  // namespace dtg
