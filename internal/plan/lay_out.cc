// The order of segments, and writing down what the memory plan decided.
#include "plan/lay_out.h"

#include <algorithm>

namespace dtg {

SegmentOrder::SegmentOrder(const Ir& ir) : ir_(ir) {
  if (ir.segments.size() == 1) {
    walk_ = {0};
    enter_ = {0};
    leave_ = {1};
    return;
  }
  sort();
  grow_tree();
}

void SegmentOrder::sort() {
  const size_t count = ir_.segments.size();
  std::vector<uint32_t> missing(count);
  std::vector<std::vector<uint32_t>> after(count);
  const auto wait = [&](uint32_t first, uint32_t then) {
    if (first == then) return;
    after[first].push_back(then);
    ++missing[then];
  };
  for (uint32_t s = 0; s < count; ++s) {
    for (uint32_t before : ir_.segments[s].after) wait(before, s);
    for (uint32_t event : ir_.segments[s].events) wait(ir_.nodes[ir_.raisers[event]].segment, s);
  }
  for (uint32_t s = 0; s < count; ++s) {
    if (missing[s] == 0) walk_.push_back(s);
  }
  for (size_t i = 0; i < walk_.size(); ++i) {
    for (uint32_t then : after[walk_[i]]) {
      if (--missing[then] == 0) walk_.push_back(then);
    }
  }
}

// Under the latest of the segments whose end it waits for.
void SegmentOrder::grow_tree() {
  const size_t count = ir_.segments.size();
  std::vector<uint32_t> place(count);
  for (uint32_t i = 0; i < walk_.size(); ++i) place[walk_[i]] = i;
  std::vector<uint32_t> parent(count, kNone);
  std::vector<std::vector<uint32_t>> children(count);
  for (uint32_t s = 0; s < count; ++s) {
    const auto hang_under = [&](uint32_t before) {
      if (parent[s] == kNone || place[before] > place[parent[s]]) parent[s] = before;
    };
    for (uint32_t before : ir_.segments[s].after) hang_under(before);
    // What its last node raises is the end of a segment too, as far as memory goes.
    for (uint32_t event : ir_.segments[s].events) {
      const uint32_t before = ir_.nodes[ir_.raisers[event]].segment;
      if (ir_.segments[before].nodes.back() == ir_.raisers[event]) hang_under(before);
    }
    if (parent[s] != kNone) children[parent[s]].push_back(s);
  }
  enter_.assign(count, 0);
  leave_.assign(count, 0);
  uint32_t clock = 0;
  std::vector<std::pair<uint32_t, size_t>> stack;  // segment, children walked
  for (uint32_t root = 0; root < count; ++root) {
    if (parent[root] != kNone) continue;
    stack.emplace_back(root, 0);
    enter_[root] = clock++;
    while (!stack.empty()) {
      auto& [s, next] = stack.back();
      if (next < children[s].size()) {
        const uint32_t child = children[s][next++];
        enter_[child] = clock++;
        stack.emplace_back(child, 0);
      } else {
        leave_[s] = clock++;
        stack.pop_back();
      }
    }
  }
}

namespace {

// The largest value in a memory space, for an error.
uint32_t largest_in(const Ir& ir, uint32_t space, int64_t* most) {
  uint32_t largest = kNone;
  *most = -1;
  for (uint32_t n : ir.order) {
    for (uint32_t v : ir.nodes[n].outputs) {
      const ValueInfo& info = *ir.values[v].info;
      if (ir.values[v].space != space) continue;
      const auto shape = info.shape.complete() ? info.shape.to_shape() : Result<Shape>(Shape());
      const int64_t size = shape.ok() ? shape.value().count() * cell_bytes(info.dtype) : 0;
      if (size <= *most) continue;
      *most = size;
      largest = v;
    }
  }
  return largest;
}

Status too_much(const PlanContext& context, const Ir& ir, int64_t bytes) {
  int64_t most = -1;
  const uint32_t largest = largest_in(ir, 0, &most);
  const std::string name = largest == kNone ? "nothing" : ir.value_text(largest);
  return resource_exhausted(
      "plan: the values that a run needs at one time take %lld bytes, more than the memory limit of %lld; the largest is "
      "\"%s\" with %lld bytes; use smaller shapes, or raise memory_limit_bytes of the runtime",
      static_cast<long long>(bytes), static_cast<long long>(context.budget->limit()), name.c_str(), static_cast<long long>(most));
}

Status too_much_there(const Program::Part& part, int64_t most) {
  return resource_exhausted(
      "plan: the values that a run needs at one time on %s take %lld bytes, more than its %lld; the largest is \"%s\" with %lld bytes; use "
      "smaller shapes, or give the device more memory",
      part.device->name().c_str(), static_cast<long long>(part.bytes), static_cast<long long>(part.device->memory()->limit()),
      part.largest.c_str(), static_cast<long long>(most));
}

}  // namespace

Status lay_out(const PlanContext& context, const Ir& ir, const SegmentOrder& segments, const Emitter& emitter, MemoryPlan& memory,
               std::span<Instructions> chunks, Program& program) {
  DTG_TRY(memory.solve(segments.walk(), segments));
  DTG_TRY(context.check_time());
  program.frame_bytes = memory.bytes();
  if (context.budget && program.frame_bytes > context.budget->limit()) return too_much(context, ir, program.frame_bytes);
  for (uint32_t space = 1; space <= ir.spaces.size(); ++space) {
    int64_t most = -1;
    const uint32_t largest = largest_in(ir, space, &most);
    Program::Part& part = program.parts.emplace_back();
    part.device = ir.spaces[space - 1];
    part.bytes = memory.bytes(space);
    part.largest = largest == kNone ? "nothing" : ir.value_text(largest);
    if (part.bytes > part.device->memory()->limit()) return too_much_there(part, most);
  }
  memory.for_workspaces([&](uint32_t segment, uint32_t instruction, int64_t offset) { chunks[segment][instruction].workspace = offset; });
  const std::vector<uint32_t>& items = emitter.items();
  for (uint32_t slot = 0; slot < items.size(); ++slot) {
    if (items[slot] == kNone) continue;
    const int64_t offset = memory.offset(items[slot]);
    const uint32_t space = memory.space(items[slot]);
    if (offset >= 0) (space == 0 ? program.places : program.parts[space - 1].places).push_back({slot, offset});
  }
  return {};
}

}  // namespace dtg
