// Best fit over one pass of the instructions.
#include "plan/memory.h"

#include <algorithm>

#include "tensor/buffer.h"

namespace dtg {

uint32_t MemoryPlan::value(int64_t bytes, uint32_t from) {
  values_.push_back({align_up(std::max<int64_t>(bytes, 1)), from, from, false, false, false, -1});
  return static_cast<uint32_t>(values_.size() - 1);
}

void MemoryPlan::used(uint32_t value, uint32_t instruction) { values_[value].last = std::max(values_[value].last, instruction); }
void MemoryPlan::keep(uint32_t value) { values_[value].kept = true; }
void MemoryPlan::drop(uint32_t value) { values_[value].dropped = true; }

void MemoryPlan::workspace(int64_t bytes, uint32_t instruction) {
  if (bytes > 0) workspaces_.push_back({align_up(bytes), instruction, instruction, false, false, false, -1});
}

void MemoryPlan::may_overwrite(uint32_t in, uint32_t out, uint32_t instruction) { overwrites_.push_back({in, out, instruction}); }

// The smallest free block that holds it; otherwise the top grows, swallowing a free block that touches it.
int64_t MemoryPlan::take(int64_t bytes) {
  auto best = free_.end();
  for (auto at = free_.begin(); at != free_.end(); ++at) {
    if (at->second >= bytes && (best == free_.end() || at->second < best->second)) best = at;
  }
  if (best == free_.end()) {
    int64_t offset = top_;
    if (!free_.empty()) {
      const auto last = std::prev(free_.end());
      if (last->first + last->second == top_) {
        offset = last->first;
        free_.erase(last);
      }
    }
    top_ = offset + bytes;
    return offset;
  }
  const auto [offset, size] = *best;
  free_.erase(best);
  if (size > bytes) free_.emplace(offset + bytes, size - bytes);
  return offset;
}

void MemoryPlan::give(int64_t offset, int64_t bytes) {
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  free_.emplace(offset, bytes);
}

bool MemoryPlan::overwrite(uint32_t value) {
  Item& out = values_[value];
  // No std::ranges::equal_range: clang 14 cannot compile libstdc++'s subranges.
  auto at = std::ranges::lower_bound(overwrites_, value, {}, &Overwrite::out);
  for (; at != overwrites_.end() && at->out == value; ++at) {
    const Overwrite& candidate = *at;
    Item& in = values_[candidate.in];
    if (in.kept || in.given || in.offset < 0 || in.last != candidate.instruction || in.bytes != out.bytes) continue;
    in.given = true;
    out.offset = in.offset;
    return true;
  }
  return false;
}

int64_t MemoryPlan::solve(uint32_t instruction_count) {
  std::vector<std::vector<uint32_t>> born(instruction_count + 1), dying(instruction_count + 1);
  for (uint32_t v = 0; v < values_.size(); ++v) {
    born[values_[v].from].push_back(v);
    if (!values_[v].kept && !values_[v].dropped) dying[values_[v].last].push_back(v);
  }
  // Sorted, so that overwrite() finds its candidates without looking at all of them.
  std::ranges::sort(overwrites_, {}, &Overwrite::out);
  size_t next_workspace = 0;
  std::ranges::sort(workspaces_, {}, &Item::from);
  for (uint32_t i = 0; i <= instruction_count; ++i) {
    for (uint32_t v : born[i]) {
      if (!values_[v].dropped && !overwrite(v)) values_[v].offset = take(values_[v].bytes);
    }
    if (next_workspace < workspaces_.size() && workspaces_[next_workspace].from == i) {
      Item& space = workspaces_[next_workspace++];
      space.offset = take(space.bytes);
      give(space.offset, space.bytes);
    }
    for (uint32_t v : dying[i]) {
      if (!values_[v].given) give(values_[v].offset, values_[v].bytes);
    }
  }
  return top_;
}

int64_t MemoryPlan::workspace_offset(uint32_t instruction) const {
  const auto at = std::ranges::lower_bound(workspaces_, instruction, {}, &Item::from);
  return at != workspaces_.end() && at->from == instruction ? at->offset : -1;
}

}  // namespace dtg
