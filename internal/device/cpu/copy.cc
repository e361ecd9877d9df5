// The loop nests behind copy.h. A walk is simplified once, when a plan is made; running it means an odometer
// over the outer dimensions around one of three inner loops: whole blocks, single elements with strides, or
// a transpose in small tiles that keeps both sides in the cache. Where an interrupt is up, all of them look at it on their way: the first
// touch of new memory takes longer than all copying.
#include "device/cpu/copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace dtg::cpu {
namespace {

constexpr int64_t kShardBytes = 128 << 10;
constexpr int64_t kPieceBytes = 256 << 10;  // copied between two looks
constexpr int64_t kShardsMax = 64;

struct Pair {
  uint64_t low, high;  // 16-byte elements
};

// One row of strided elements.
template <class T>
void row_of(int64_t count, const char* from, int64_t from_stride, char* to, int64_t to_stride) {
  if (from_stride == 0 && to_stride == sizeof(T)) {
    T value;
    std::memcpy(&value, from, sizeof value);
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_stride, &value, sizeof value);
    return;
  }
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, sizeof(T));
}

// Transposes a square of elements that fill one 8-byte word per row, inside registers: moving words keeps the
// loads and stores few, and no load waits for narrower stores before it.
template <class T>
void transpose_words(const char* from, int64_t from_stride, char* to, int64_t to_stride) {
  constexpr int side = 8 / static_cast<int>(sizeof(T));
  uint64_t word[side];
  for (int j = 0; j < side; ++j) std::memcpy(&word[j], from + j * from_stride, 8);
  // Swaps ever smaller squares across the diagonal; the masks keep the lanes whose number has bit `step` clear.
  for (int step = side / 2; step > 0; step /= 2) {
    const int shift = step * 8 * static_cast<int>(sizeof(T));
    const uint64_t lanes = shift == 32 ? 0x00000000ffffffffu : shift == 16 ? 0x0000ffff0000ffffu : 0x00ff00ff00ff00ffu;
    for (int j = 0; j < side; ++j) {
      if (j & step) continue;
      const uint64_t swap = (word[j] >> shift ^ word[j + step]) & lanes;
      word[j] ^= swap << shift;
      word[j + step] ^= swap;
    }
  }
  for (int i = 0; i < side; ++i) std::memcpy(to + i * to_stride, &word[i], 8);
}

// to[i][j] = from[i][j], where i runs in the source and j in the destination without gaps. In squares, so that the
// cache lines and pages of both sides stay in reach.
template <class T>
void plane_of(int64_t rows, int64_t columns, const char* from, int64_t from_stride, char* to, int64_t to_stride, Lookout& lookout) {
  constexpr int64_t width = sizeof(T), side = width < 8 ? 8 / width : 1, square = 256 / width;
  const auto patch = [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    for (int64_t i = i0; i < i1; ++i) {
      for (int64_t j = j0; j < j1; ++j) std::memcpy(to + i * to_stride + j * width, from + i * width + j * from_stride, sizeof(T));
    }
  };
  for (int64_t i0 = 0; i0 < rows; i0 += square) {
    const int64_t i1 = std::min(rows, i0 + square);
    for (int64_t j0 = 0; j0 < columns; j0 += square) {
      const int64_t j1 = std::min(columns, j0 + square);
      lookout.after((i1 - i0) * (j1 - j0) * width);
      if constexpr (side == 1) {
        patch(i0, i1, j0, j1);
      } else {
        const int64_t i_whole = i1 - (i1 - i0) % side, j_whole = j1 - (j1 - j0) % side;
        for (int64_t i = i0; i < i_whole; i += side) {
          for (int64_t j = j0; j < j_whole; j += side) {
            transpose_words<T>(from + i * width + j * from_stride, from_stride, to + i * to_stride + j * width, to_stride);
          }
        }
        patch(i0, i_whole, j_whole, j1);
        patch(i_whole, i1, j0, j1);
      }
    }
  }
}

using RowFn = void (*)(int64_t, const char*, int64_t, char*, int64_t);
using PlaneFn = void (*)(int64_t, int64_t, const char*, int64_t, char*, int64_t, Lookout&);

bool is_element_size(int64_t bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16; }

RowFn row_fn(int64_t bytes) {
  switch (bytes) {
    case 1: return row_of<uint8_t>;
    case 2: return row_of<uint16_t>;
    case 4: return row_of<uint32_t>;
    case 8: return row_of<uint64_t>;
    default: return row_of<Pair>;
  }
}

PlaneFn plane_fn(int64_t bytes) {
  switch (bytes) {
    case 1: return plane_of<uint8_t>;
    case 2: return plane_of<uint16_t>;
    case 4: return plane_of<uint32_t>;
    case 8: return plane_of<uint64_t>;
    default: return plane_of<Pair>;
  }
}

}  // namespace

void Walk::add(int64_t dim, int64_t from_stride, int64_t to_stride) {
  if (dim == 1) return;
  if (rank_ > 0) {
    const auto last = static_cast<size_t>(rank_ - 1);
    if (from_[last] == from_stride * dim && to_[last] == to_stride * dim) {
      dims_[last] *= dim;
      from_[last] = from_stride;
      to_[last] = to_stride;
      return;
    }
  }
  const auto at = static_cast<size_t>(rank_++);
  dims_[at] = dim;
  from_[at] = from_stride;
  to_[at] = to_stride;
}

void Walk::finish() {
  if (rank_ > 0 && from_[static_cast<size_t>(rank_ - 1)] == block_ && to_[static_cast<size_t>(rank_ - 1)] == block_) {
    block_ *= dims_[static_cast<size_t>(--rank_)];
    return;
  }
  if (rank_ < 2 || !is_element_size(block_) || to_[static_cast<size_t>(rank_ - 1)] != block_) return;
  // A dimension along which the source has no gaps becomes the last but one.
  for (int k = 0; k + 1 < rank_; ++k) {
    if (from_[static_cast<size_t>(k)] != block_) continue;
    for (auto* list : {&dims_, &from_, &to_}) std::rotate(list->begin() + k, list->begin() + k + 1, list->begin() + rank_ - 1);
    transposed_ = true;
    return;
  }
}

int64_t Walk::bytes() const {
  int64_t total = block_;
  for (int i = 0; i < rank_; ++i) total *= dims_[static_cast<size_t>(i)];
  return total;
}

// How a walk is cut into shards: one extent, in whole units.
struct Cut {
  int dim = -1;  // -1: the block
  int64_t unit = 1;
  int64_t units = 1;
};

// Works on a copy of the walk that covers one shard.
struct WalkRunner {
  static void run_shard(Walk walk, const Cut& cut, int64_t i, int64_t n, const char* from, char* to) {
    int64_t& extent = cut.dim < 0 ? walk.block_ : walk.dims_[static_cast<size_t>(cut.dim)];
    const int64_t begin = cut.units * i / n * cut.unit;
    const int64_t end = i + 1 == n ? extent : cut.units * (i + 1) / n * cut.unit;
    extent = end - begin;
    from += begin * (cut.dim < 0 ? 1 : walk.from_[static_cast<size_t>(cut.dim)]);
    to += begin * (cut.dim < 0 ? 1 : walk.to_[static_cast<size_t>(cut.dim)]);
    run(walk, from, to);
  }

  static void run(const Walk& walk, const char* from, char* to) {
    const bool elements = is_element_size(walk.block_) && walk.rank_ > 0;
    const int inner = walk.transposed_ ? 2 : elements ? 1 : 0;
    const int outer = walk.rank_ - inner;
    std::array<int64_t, Walk::kRank> at{};
    Lookout lookout;
    while (true) {
      run_inner(walk, inner, outer, from, to, lookout);
      int d = outer - 1;
      for (; d >= 0; --d) {
        const auto i = static_cast<size_t>(d);
        from += walk.from_[i];
        to += walk.to_[i];
        lookout.after(jump_steps(walk.to_[i]));
        if (++at[i] < walk.dims_[i]) break;
        from -= walk.from_[i] * walk.dims_[i];
        to -= walk.to_[i] * walk.dims_[i];
        at[i] = 0;
      }
      if (d < 0) return;
    }
  }

  static void run_inner(const Walk& walk, int inner, int outer, const char* from, char* to, Lookout& lookout) {
    const auto i = static_cast<size_t>(outer);
    if (inner == 0) return run_block(walk.block_, from, to, lookout);
    if (inner == 1) return run_row(row_fn(walk.block_), walk.block_, walk.dims_[i], from, walk.from_[i], to, walk.to_[i], lookout);
    plane_fn(walk.block_)(walk.dims_[i], walk.dims_[i + 1], from, walk.from_[i + 1], to, walk.to_[i], lookout);
  }

  static void run_block(int64_t bytes, const char* from, char* to, Lookout& lookout) {
    for (int64_t at = 0; at < bytes; at += kPieceBytes) {
      const int64_t piece = std::min(bytes - at, kPieceBytes);
      copy_row(to + at, from + at, piece);
      lookout.after(piece / 4);
    }
  }

  // What lies between two writes may be new memory, which comes in pages of up to 2 MB.
  static int64_t jump_steps(int64_t stride) { return std::min(std::abs(stride), int64_t{1} << 20) / 64; }

  static void run_row(RowFn row, int64_t size, int64_t count, const char* from, int64_t from_stride, char* to, int64_t to_stride,
                      Lookout& lookout) {
    const int64_t most = std::max<int64_t>(8, kPieceBytes / std::max(size, std::abs(to_stride)));
    for (int64_t at = 0; at < count; at += most) {
      const int64_t piece = std::min(count - at, most);
      row(piece, from + at * from_stride, from_stride, to + at * to_stride, to_stride);
      lookout.after(piece * (1 + jump_steps(to_stride)));
    }
  }

  static Cut cut_at(const Walk& walk, int dim, int64_t unit) {
    const int64_t extent = dim < 0 ? walk.block_ : walk.dims_[static_cast<size_t>(dim)];
    return {dim, unit, (extent + unit - 1) / unit};
  }

  // An outer dimension of some length, if there is one. A plane is cut into strips that are wide enough for its
  // squares, best along the destination: then the source is read row by row. Otherwise the longest extent.
  static Cut pick_cut(const Walk& walk) {
    constexpr int64_t kEnough = 8, kStrip = 64, kBlock = 4096;
    const int outer = walk.rank_ - (walk.transposed_ ? 2 : 0);
    for (int d = 0; d < outer; ++d) {
      if (walk.dims_[static_cast<size_t>(d)] >= kEnough) return cut_at(walk, d, 1);
    }
    if (walk.transposed_) {
      const Cut columns = cut_at(walk, outer + 1, kStrip), rows = cut_at(walk, outer, kStrip);
      return columns.units >= kEnough || columns.units >= rows.units ? columns : rows;
    }
    Cut longest = cut_at(walk, -1, kBlock);
    for (int d = 0; d < outer; ++d) {
      const Cut cut = cut_at(walk, d, 1);
      if (cut.units > longest.units) longest = cut;
    }
    return longest;
  }
};

void copy_walk(Pool& pool, const Walk& walk, const void* from, void* to) {
  const int64_t bytes = walk.bytes();
  if (bytes == 0) return;
  const auto* source = static_cast<const char*>(from);
  auto* target = static_cast<char*>(to);
  int64_t shards = shards_for_bytes(bytes);
  if (shards == 1) return WalkRunner::run(walk, source, target);
  const Cut cut = WalkRunner::pick_cut(walk);
  shards = std::min(shards, cut.units);
  pool.parallel_for(shards, [&](int64_t i) { WalkRunner::run_shard(walk, cut, i, shards, source, target); });
}

void fill(Pool& pool, void* to, int64_t count, int64_t size, const void* value) {
  Walk walk(size);
  walk.add(count, 0, size);
  copy_walk(pool, walk, value, to);
}

void clear(Pool& pool, void* to, int64_t bytes) {
  const int64_t shards = shards_for_bytes(bytes);
  if (bytes == 0) return;
  pool.parallel_for(shards, [&](int64_t i) {
    const int64_t begin = bytes / shards * i, end = i + 1 == shards ? bytes : bytes / shards * (i + 1);
    Lookout lookout;
    for (int64_t at = begin; at < end; at += kPieceBytes) {
      const int64_t piece = std::min(end - at, kPieceBytes);
      std::memset(static_cast<char*>(to) + at, 0, static_cast<size_t>(piece));
      lookout.after(piece / 4);
    }
  });
}

int64_t shards_for_bytes(int64_t bytes) { return std::clamp<int64_t>(bytes / kShardBytes, 1, kShardsMax); }

}  // namespace dtg::cpu
