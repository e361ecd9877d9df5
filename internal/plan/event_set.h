// EventSets: sets of events, each stored once and shared where they agree, so that thousands of nodes that come after thousands of events
// cost little. A set is a number; equal sets have equal numbers; 0 is the empty one. A bitmap as a binary tree of 64-bit words whose
// equal parts are one: union, difference and membership look only at parts that differ.
//
// Owner: the pass that orders; one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/flat_map.h"

namespace dtg {

class EventSets {
 public:
  // For events below `count`.
  explicit EventSets(uint32_t count);

  // `set` and that event.
  uint32_t with(uint32_t set, uint32_t event) { return contains(set, event) ? set : with(set, event, height_); }
  uint32_t unite(uint32_t a, uint32_t b) { return unite(a, b, height_); }
  bool contains(uint32_t set, uint32_t event) const;

 private:
  struct Part {
    uint64_t bits = 0;  // of a leaf
    uint32_t left = 0;
    uint32_t right = 0;
  };
  uint32_t leaf(uint64_t bits);
  uint32_t inner(uint32_t left, uint32_t right);
  uint32_t with(uint32_t set, uint32_t event, int height);
  uint32_t unite(uint32_t a, uint32_t b, int height);

  int height_ = 0;  // of the tree above the words
  std::vector<Part> parts_;
  FlatMap<uint32_t> leaves_;  // by their bits
  FlatMap<uint32_t> inners_;  // by both halves
  FlatMap<uint32_t> unions_;  // by what was united
};

}  // namespace dtg
