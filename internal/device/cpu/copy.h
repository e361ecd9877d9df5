// Copies between strided views of memory: one loop nest serves slices, pads, tiles, transposes, broadcasts,
// concatenations and splits of every element type, because only the size of an element matters to them.
// Pure functions; any thread. The order of the writes is free, so a walk must not write a place twice.
#pragma once

#include <array>
#include <cstdint>

#include "base/interrupt.h"
#include "base/pool.h"
#include "tensor/shape.h"

namespace dtg::cpu {

// A loop nest, outermost dimension first. Strides are in bytes; 0 repeats the source, negative walks back.
class Walk {
 public:
  // Tiling splits each dimension in two.
  static constexpr int kRank = 2 * kRankMax;

  Walk() = default;
  explicit Walk(int64_t element_bytes) : block_(element_bytes) {}
  // Appends the next inner dimension.
  void add(int64_t dim, int64_t from_stride, int64_t to_stride);
  // Merges what lies together, and picks the innermost loops. Call once, after the last add.
  void finish();
  // Bytes written.
  int64_t bytes() const;

 private:
  friend void copy_walk(Pool& pool, const Walk& walk, const void* from, void* to);
  friend struct WalkRunner;
  int rank_ = 0;
  bool transposed_ = false;  // the last two dimensions: the source runs along the first of them
  int64_t block_ = 1;        // bytes that lie together on both sides
  std::array<int64_t, kRank> dims_{};
  std::array<int64_t, kRank> from_{};
  std::array<int64_t, kRank> to_{};
};

// Runs a finished walk. Large ones are cut into shards whose number depends on the walk alone.
void copy_walk(Pool& pool, const Walk& walk, const void* from, void* to);

// `count` copies of one value of `size` bytes (at most 16).
void fill(Pool& pool, void* to, int64_t count, int64_t size, const void* value);
// Zero bytes.
void clear(Pool& pool, void* to, int64_t bytes);

// memcpy for short rows: known sizes become plain moves.
inline void copy_row(char* to, const char* from, int64_t bytes) {
  switch (bytes) {
    case 0: return;
    case 1: *to = *from; return;
    case 2: __builtin_memcpy(to, from, 2); return;
    case 4: __builtin_memcpy(to, from, 4); return;
    case 8: __builtin_memcpy(to, from, 8); return;
    case 16: __builtin_memcpy(to, from, 16); return;
    default: __builtin_memcpy(to, from, static_cast<size_t>(bytes));
  }
}

// The same for rows that may be long: the interrupt is looked at on the way.
inline void copy_row(char* to, const char* from, int64_t bytes, Lookout& lookout) {
  constexpr int64_t kStretch = int64_t{1} << 18;
  for (; bytes > kStretch; to += kStretch, from += kStretch, bytes -= kStretch) {
    __builtin_memcpy(to, from, kStretch);
    lookout.after(kStretch / 4);
  }
  copy_row(to, from, bytes);
  lookout.after(4 + bytes / 4);
}

// How many shards work that touches so many bytes deserves; 1 for little.
int64_t shards_for_bytes(int64_t bytes);

}  // namespace dtg::cpu
