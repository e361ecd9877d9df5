// Best fit over one walk through the segments, each after those it waits for.
#include "plan/memory.h"

#include "base/lists.h"
#include "tensor/buffer.h"

namespace dtg {
namespace {

// A walk over free blocks that fit in size but not in time ends after so many.
constexpr int kCandidates = 32;
// Blocks that wait for more than so many segments and events are not joined with others.
constexpr size_t kConditionsMax = 8;

}  // namespace

uint32_t MemoryPlan::value(int64_t bytes, uint32_t segment, uint32_t instruction, uint32_t space) {
  need_space(space);
  if (values_.capacity() == 0) values_.reserve(16);
  Item& item = values_.emplace_back();
  item.space = space;
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

void MemoryPlan::workspace(int64_t bytes, uint32_t segment, uint32_t instruction, uint32_t space) {
  need_space(space);
  if (bytes > 0) workspaces_.push_back({align_up(bytes), segment, instruction, -1, space});
}

void MemoryPlan::may_overwrite(uint32_t in, uint32_t out, uint32_t segment, uint32_t instruction) {
  overwrites_.push_back({in, out, segment, instruction});
}

bool MemoryPlan::is_over(const Conditions& conditions, uint32_t segment, const SegmentReach& reach) const {
  const auto over = [&](Condition condition) {
    if (condition.event) return reach.happened(condition.number, segment);
    return condition.number == segment || reach.ended(condition.number, segment);
  };
  return over(conditions.first) && std::ranges::all_of(conditions.more, over);
}

MemoryPlan::Conditions MemoryPlan::conditions_of(uint32_t value) const {
  Conditions conditions = {{values_[value].segment, false}, {}};
  if (!values_[value].elsewhere) return conditions;
  for (auto use = std::ranges::lower_bound(uses_, value, {}, &Use::value); use != uses_.end() && use->value == value; ++use) {
    conditions.add({use->segment, use->instruction == kUntilEvent});
  }
  return conditions;
}

void MemoryPlan::forget(Area& area, std::map<int64_t, Free>::iterator block) {
  area.spare_sizes.push_back(area.by_size.extract({block->second.bytes, block->first}));
  area.spare_blocks.push_back(area.free.extract(block));
}

void MemoryPlan::note(Area& area, int64_t offset, int64_t bytes, Conditions after) {
  if (area.spare_blocks.empty()) {
    area.by_size.emplace(bytes, offset);
    area.free.emplace(offset, Free{bytes, std::move(after)});
    return;
  }
  area.spare_sizes.back().value() = {bytes, offset};
  area.by_size.insert(std::move(area.spare_sizes.back()));
  area.spare_blocks.back().key() = offset;
  area.spare_blocks.back().mapped() = {bytes, std::move(after)};
  area.free.insert(std::move(area.spare_blocks.back()));
  area.spare_sizes.pop_back();
  area.spare_blocks.pop_back();
}

// The smallest free block that holds it; otherwise the top grows, swallowing a free block that touches it.
int64_t MemoryPlan::take(Area& area, int64_t bytes, uint32_t segment, const SegmentReach& reach) {
  int tries = 0;
  for (auto at = area.by_size.lower_bound({bytes, INT64_MIN}); at != area.by_size.end() && tries < kCandidates; ++at, ++tries) {
    const auto block = area.free.find(at->second);
    if (!is_over(block->second.after, segment, reach)) continue;
    const int64_t offset = block->first, size = block->second.bytes;
    Conditions rest = std::move(block->second.after);
    forget(area, block);
    if (size > bytes) note(area, offset + bytes, size - bytes, std::move(rest));
    return offset;
  }
  int64_t offset = area.top;
  if (!area.free.empty()) {
    const auto last = std::prev(area.free.end());
    if (last->first + last->second.bytes == area.top && is_over(last->second.after, segment, reach)) {
      offset = last->first;
      const int64_t rest = last->second.bytes - bytes;
      Conditions after = last->second.after;
      forget(area, last);
      // Large enough by itself, where too many others fit in size but not in time: the top stays where it is.
      if (rest > 0) note(area, offset + bytes, rest, std::move(after));
    }
  }
  area.top = std::max(area.top, offset + bytes);
  return offset;
}

void MemoryPlan::give(Area& area, int64_t offset, int64_t bytes, Conditions after) {
  const auto join = [&](std::map<int64_t, Free>::iterator block) {
    Conditions both = after;
    both.add(block->second.after.first);
    for (Condition condition : block->second.after.more) both.add(condition);
    if (both.more.size() >= kConditionsMax) return false;
    after = std::move(both);
    offset = std::min(offset, block->first);
    bytes += block->second.bytes;
    forget(area, block);
    return true;
  };
  if (const auto next = area.free.find(offset + bytes); next != area.free.end()) join(next);
  const auto next = area.free.lower_bound(offset);
  if (next != area.free.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second.bytes == offset) join(before);
  }
  note(area, offset, bytes, std::move(after));
}

bool MemoryPlan::overwrite(uint32_t value, const SegmentReach& reach) {
  Item& out = values_[value];
  // No std::ranges::equal_range: clang 14 cannot compile libstdc++'s subranges.
  auto at = std::ranges::lower_bound(overwrites_, value, {}, &Overwrite::out);
  for (; at != overwrites_.end() && at->out == value; ++at) {
    Item& in = values_[at->in];
    if (in.kept || in.given || in.offset < 0 || in.bytes != out.bytes || in.space != out.space) continue;
    // It dies here: read last by this very instruction, and whoever else reads it is over.
    if (in.reader != at->segment || in.reader_last != at->instruction) continue;
    if (in.elsewhere && !is_over(conditions_of(at->in), at->segment, reach)) continue;
    in.given = true;
    out.offset = in.offset;
    return true;
  }
  return false;
}

// Numbers the instructions of all segments in the order of the walk, without gaps.
class MemoryPlan::Clock {
 public:
  Clock(const MemoryPlan& plan, const std::vector<uint32_t>& segments) {
    const uint32_t count = segments.empty() ? 0 : std::ranges::max(segments) + 1;
    std::vector<uint32_t> lengths(count);
    const auto see = [&](uint32_t segment, uint32_t instruction) { lengths[segment] = std::max(lengths[segment], instruction + 1); };
    for (const Item& item : plan.values_) {
      see(item.segment, item.from);
      see(item.segment, item.last);
    }
    for (const Use& use : plan.uses_) {
      if (use.instruction != kUntilEvent) see(use.segment, use.instruction);
    }
    for (const Work& work : plan.workspaces_) see(work.segment, work.instruction);
    first_.resize(count);
    for (uint32_t segment : segments) {
      first_[segment] = static_cast<uint32_t>(segments_.size());
      segments_.insert(segments_.end(), lengths[segment], segment);
    }
  }
  uint32_t when(uint32_t segment, uint32_t instruction) const { return first_[segment] + instruction; }
  uint32_t end() const { return static_cast<uint32_t>(segments_.size()); }
  uint32_t segment_at(uint32_t now) const { return segments_[now]; }

 private:
  std::vector<uint32_t> first_;     // by segment
  std::vector<uint32_t> segments_;  // by number of the instruction
};

// When each value is read last, in the order of the walk.
void MemoryPlan::sort_uses(const Clock& clock) {
  std::ranges::sort(uses_, {}, [](const Use& use) { return std::pair(use.value, use.segment); });
  for (Item& item : values_) item.reader_last = item.last;
  for (const Use& use : uses_) {
    Item& item = values_[use.value];
    if (use.instruction == kUntilEvent) continue;
    if (clock.when(use.segment, use.instruction) > clock.when(item.reader, item.reader_last)) {
      item.reader = use.segment;
      item.reader_last = use.instruction;
    }
  }
}

Status MemoryPlan::solve(const std::vector<uint32_t>& segments, const SegmentReach& reach) {
  const Clock clock(*this, segments);
  sort_uses(clock);
  std::ranges::sort(overwrites_, {}, &Overwrite::out);
  const Lists births(clock.end(), [&](auto&& add) {
    for (uint32_t v = 0; v < values_.size(); ++v) {
      if (!values_[v].dropped) add(clock.when(values_[v].segment, values_[v].from), v);
    }
  });
  const Lists deaths(clock.end(), [&](auto&& add) {
    for (uint32_t v = 0; v < values_.size(); ++v) {
      if (!values_[v].dropped && !values_[v].kept) add(clock.when(values_[v].reader, values_[v].reader_last), v);
    }
  });
  const Lists works(clock.end(), [&](auto&& add) {
    for (uint32_t w = 0; w < workspaces_.size(); ++w) add(clock.when(workspaces_[w].segment, workspaces_[w].instruction), w);
  });
  for (uint32_t now = 0; now < clock.end(); ++now) {
    const uint32_t segment = clock.segment_at(now);
    for (uint32_t v : births[now]) {
      if (!overwrite(v, reach)) values_[v].offset = take(areas_[values_[v].space], values_[v].bytes, segment, reach);
    }
    for (uint32_t w : works[now]) {
      Work& space = workspaces_[w];
      space.offset = take(areas_[space.space], space.bytes, segment, reach);
      give(areas_[space.space], space.offset, space.bytes, {{segment, false}, {}});
    }
    for (uint32_t v : deaths[now]) {
      if (!values_[v].given) give(areas_[values_[v].space], values_[v].offset, values_[v].bytes, conditions_of(v));
    }
    for (const Area& area : areas_) {
      if (area.top < 0 || area.top > INT64_MAX / 4) return resource_exhausted("plan: the values of a run take more than any memory");
    }
  }
  return {};
}

}  // namespace dtg
