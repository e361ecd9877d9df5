// MemoryPlan: offsets for the values and workspaces of a program. A value lives from the instruction that makes it to the last ones that
// read it; a block that became free is used again by whoever surely comes later, also across segments; an element-wise result may take
// the place of an operand that dies. Relies on nothing but the order that segments and events imply. Pure; one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "base/status.h"

namespace dtg {

// What comes surely before a segment.
class SegmentReach {
 public:
  virtual ~SegmentReach() = default;
  // Has segment `first` ended when `then` begins? May say no where the answer is not cheap.
  virtual bool ended(uint32_t first, uint32_t then) const = 0;
  virtual bool happened(uint32_t event, uint32_t then) const = 0;
};

class MemoryPlan {
 public:
  // A value of `bytes`, made by that instruction, in that memory space. Returns its number.
  uint32_t value(int64_t bytes, uint32_t segment, uint32_t instruction, uint32_t space = 0);
  // Read by that instruction; or by one that goes on until `event`.
  void used(uint32_t value, uint32_t segment, uint32_t instruction);
  void used_until(uint32_t value, uint32_t event);
  void keep(uint32_t value) { values_[value].kept = true; }     // needed until the run ends
  void drop(uint32_t value) { values_[value].dropped = true; }  // lives elsewhere: gets no offset here
  void workspace(int64_t bytes, uint32_t segment, uint32_t instruction, uint32_t space = 0);
  // `out` (made by that instruction) may be written over `in`, which is one operand of it only.
  void may_overwrite(uint32_t in, uint32_t out, uint32_t segment, uint32_t instruction);

  // Decides all offsets. `segments`: all that have instructions, each after those it waits for.
  Status solve(const std::vector<uint32_t>& segments, const SegmentReach& reach);
  int64_t bytes(uint32_t space = 0) const { return space < areas_.size() ? areas_[space].top : 0; }
  bool is_dropped(uint32_t value) const { return values_[value].dropped; }
  int64_t bytes_of(uint32_t value) const { return values_[value].bytes; }
  int64_t offset(uint32_t value) const { return values_[value].offset; }
  uint32_t space(uint32_t value) const { return values_[value].space; }
  // Calls fn(segment, instruction, offset) for each workspace.
  template <class Fn>
  void for_workspaces(Fn&& fn) const {
    for (const Work& work : workspaces_) fn(work.segment, work.instruction, work.offset);
  }

 private:
  // Who must be over before a block is free: a segment, or an event.
  struct Condition {
    uint32_t number;
    bool event;
    bool operator==(const Condition&) const = default;
  };
  // At least one; mostly one, which costs no allocation.
  struct Conditions {
    Condition first;
    std::vector<Condition> more;
    void add(Condition condition) {
      if (!(first == condition) && std::ranges::find(more, condition) == more.end()) more.push_back(condition);
    }
  };
  struct Item {
    int64_t bytes = 0;
    uint32_t segment = 0;
    uint32_t space = 0;
    uint32_t from = 0;
    uint32_t last = 0;    // read in its own segment
    uint32_t reader = 0;  // the segment in which it is read last, as solve() walks them
    uint32_t reader_last = 0;
    bool elsewhere = false;  // read in other segments, or until events: see uses_
    bool kept = false;
    bool dropped = false;
    bool given = false;  // its block went to an output written over it
    int64_t offset = -1;
  };
  struct Use {
    uint32_t value;
    uint32_t segment;      // or the event
    uint32_t instruction;  // kUntilEvent for an event
  };
  struct Work {
    int64_t bytes;
    uint32_t segment, instruction;
    int64_t offset;
    uint32_t space;
  };
  struct Overwrite {
    uint32_t in, out, segment, instruction;
  };
  struct Free {
    int64_t bytes;
    Conditions after;
  };
  // A memory space, as far as it is laid out. Blocks come and go with each value, so their places in the maps are used again.
  struct Area {
    using Blocks = std::map<int64_t, Free>;
    using Sizes = std::set<std::pair<int64_t, int64_t>>;
    Blocks free;    // by offset
    Sizes by_size;  // bytes, offset
    std::vector<Blocks::node_type> spare_blocks;
    std::vector<Sizes::node_type> spare_sizes;
    int64_t top = 0;
  };
  static constexpr uint32_t kUntilEvent = UINT32_MAX;

  class Clock;
  void sort_uses(const Clock& clock);
  bool is_over(const Conditions& conditions, uint32_t segment, const SegmentReach& reach) const;
  Conditions conditions_of(uint32_t value) const;
  int64_t take(Area& area, int64_t bytes, uint32_t segment, const SegmentReach& reach);
  static void give(Area& area, int64_t offset, int64_t bytes, Conditions after);
  static void forget(Area& area, std::map<int64_t, Free>::iterator block);
  static void note(Area& area, int64_t offset, int64_t bytes, Conditions after);
  void need_space(uint32_t space) {
    if (space >= areas_.size()) areas_.resize(space + 1);
  }
  bool overwrite(uint32_t value, const SegmentReach& reach);

  std::vector<Item> values_;
  std::vector<Use> uses_;  // beyond the own segment; sorted by value in solve()
  std::vector<Work> workspaces_;
  std::vector<Overwrite> overwrites_;
  std::vector<Area> areas_ = std::vector<Area>(1);  // by space
};

}  // namespace dtg
