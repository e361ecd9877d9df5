// The register tiles of tile.h, once per instruction set. The widest ones fill the register file: 14 rows by
// two vectors with 32 registers, 6 by two with 16.
#include "device/cpu/tile.h"

#include <cstring>

#include "device/cpu/targets.h"

// Scalable vectors cannot stand in arrays; the subsets left out here have the same tile as the one below.
#define HWY_DISABLED_TARGETS (DTG_SCALABLE_TARGETS | HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/tile.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// Loops over registers must be unrolled whole, or the registers become memory.
#undef DTG_UNROLL
#if defined(__clang__)
#define DTG_UNROLL _Pragma("clang loop unroll(full)")
#else
#define DTG_UNROLL _Pragma("GCC unroll 32")
#endif

HWY_BEFORE_NAMESPACE();
namespace dtg::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kRows = 14;
#else
constexpr int kRows = 6;
#endif

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));

constexpr int64_t kPrefetchSteps = 10;

// One step of the sum: R values of A times N vectors of B. `at(i)` is the value of row i.
template <int R, int N, class At>
HWY_INLINE void step_products(const At& at, const float* HWY_RESTRICT row, int64_t b_stride, V* HWY_RESTRICT acc) {
  const D d;
  // An unpacked panel jumps from page to page, which no hardware prefetcher follows.
  DTG_UNROLL
  for (int j = 0; j < N; ++j) __builtin_prefetch(row + kPrefetchSteps * b_stride + j * kLanes);
  V bv[N];
  DTG_UNROLL
  for (int j = 0; j < N; ++j) bv[j] = hn::LoadU(d, row + j * kLanes);
  DTG_UNROLL
  for (int i = 0; i < R; ++i) {
    const V av = hn::Set(d, at.value(i));
    DTG_UNROLL
    for (int j = 0; j < N; ++j) acc[i * N + j] = hn::MulAdd(av, bv[j], acc[i * N + j]);
  }
}

// Rows of A, `stride` apart: three share a base pointer, because an address can hold base + {0, 1, 2} * stride,
// and fourteen bases would not fit the registers.
template <int R>
struct Rows {
  static constexpr int kBases = (R + 2) / 3;
  const float* base[kBases];
  int64_t stride;

  HWY_INLINE Rows(const float* a, int64_t a_stride) : stride(a_stride) {
    DTG_UNROLL
    for (int g = 0; g < kBases; ++g) base[g] = a + 3 * g * a_stride;
  }
  HWY_INLINE float value(int i) const { return base[i / 3][(i % 3) * stride]; }
  HWY_INLINE void step() {
    DTG_UNROLL
    for (int g = 0; g < kBases; ++g) ++base[g];
  }
};

struct Column {
  const float* base;
  HWY_INLINE float value(int i) const { return base[i]; }
};

template <int R, int N>
HWY_INLINE void sum_along_rows(const Tile& t, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, V* HWY_RESTRICT acc) {
  const int64_t b_stride = t.b_stride;
  for (int64_t run = 0; run < t.runs; ++run) {
    Rows<R> rows(a + run * t.a_run, t.a_stride);
    for (int64_t k = t.length; k > 0; --k) {
      step_products<R, N>(rows, b, b_stride, acc);
      b += b_stride;
      rows.step();
    }
  }
}

// Stretches are short here (the width of an image), and the processor would guess the end of each wrong; so a
// tile with time to spare has one loop, and jumps to the next stretch by arithmetic.
template <int R, int N>
HWY_INLINE void sum_along_columns(const Tile& t, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, V* HWY_RESTRICT acc) {
  constexpr bool kOneLoop = R >= 8;
  const int64_t a_stride = t.a_stride, b_stride = t.b_stride, length = t.length;
  const int64_t jump = t.a_run - length * a_stride;
  int64_t left = length;
  for (int64_t run = kOneLoop ? 1 : t.runs; run > 0; --run) {
    for (int64_t k = kOneLoop ? t.runs * length : length; k > 0; --k) {
      // The next block of rows will want what lies just behind this one's.
      __builtin_prefetch(a + 2 * R - 1);
      step_products<R, N>(Column{a}, b, b_stride, acc);
      a += a_stride;
      b += b_stride;
      if constexpr (kOneLoop) {
        --left;
        const int64_t end = -static_cast<int64_t>(left == 0);
        a += end & jump;
        left += end & length;
      }
    }
    if constexpr (!kOneLoop) a += jump;
  }
}

// A panel narrower than its vectors: nothing beyond it is touched. With masks where they cannot fault on what lies behind, elsewhere
// element by element; both do the same to each element.
HWY_NOINLINE void store_part(const Tile& t, const float* part, int64_t part_stride, int rows, float* c) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  const D d;
  for (int64_t j = 0; j < t.columns; j += kLanes) {
    const auto there = hn::FirstN(d, static_cast<size_t>(t.columns - j));
    const V bias = t.bias ? hn::MaskedLoad(there, d, t.bias + j) : hn::Zero(d);
    for (int i = 0; i < rows; ++i) {
      V value = hn::Load(d, part + i * part_stride + j);
      float* const to = c + i * t.c_stride + j;
      if (t.accumulate) value = hn::Add(value, hn::MaskedLoad(there, d, to));
      if (t.bias) value = hn::Add(value, bias);
      if (t.relu) value = hn::IfThenElse(hn::Lt(value, hn::Zero(d)), hn::Zero(d), value);
      hn::BlendedStore(value, there, d, to);
    }
  }
#else
  for (int i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < t.columns; ++j) {
      float value = part[i * part_stride + j];
      if (t.accumulate) value += c[i * t.c_stride + j];
      if (t.bias) value += t.bias[j];
      if (t.relu) value = value < 0.0f ? 0.0f : value;
      c[i * t.c_stride + j] = value;
    }
  }
#endif
}

template <int R, int N, bool kAlongRows>
void tile(const Tile& t, const float* a, const float* b, float* c) {
  const D d;
  V acc[R * N];
  DTG_UNROLL
  for (int i = 0; i < R * N; ++i) acc[i] = hn::Zero(d);
  if constexpr (kAlongRows) {
    sum_along_rows<R, N>(t, a, b, acc);
  } else {
    sum_along_columns<R, N>(t, a, b, acc);
  }
  if (t.columns < N * kLanes) {
    HWY_ALIGN float part[R * N * kLanes];
    DTG_UNROLL
    for (int i = 0; i < R * N; ++i) hn::Store(acc[i], d, part + i * kLanes);
    store_part(t, part, N * kLanes, R, c);
    return;
  }
  if (t.accumulate) {
    DTG_UNROLL
    for (int i = 0; i < R; ++i) {
      DTG_UNROLL
      for (int j = 0; j < N; ++j) acc[i * N + j] = hn::Add(acc[i * N + j], hn::LoadU(d, c + i * t.c_stride + j * kLanes));
    }
  }
  if (t.bias) {
    DTG_UNROLL
    for (int j = 0; j < N; ++j) {
      const V bias = hn::LoadU(d, t.bias + j * kLanes);
      DTG_UNROLL
      for (int i = 0; i < R; ++i) acc[i * N + j] = hn::Add(acc[i * N + j], bias);
    }
  }
  if (t.relu) {
    // Not Max: NaN must come through, as it does in the unfused op.
    DTG_UNROLL
    for (int i = 0; i < R * N; ++i) acc[i] = hn::IfThenElse(hn::Lt(acc[i], hn::Zero(d)), hn::Zero(d), acc[i]);
  }
  DTG_UNROLL
  for (int i = 0; i < R; ++i) {
    DTG_UNROLL
    for (int j = 0; j < N; ++j) hn::StoreU(acc[i * N + j], d, c + i * t.c_stride + j * kLanes);
  }
}

// Four columns by four steps at a time, in 128-bit registers.
HWY_INLINE void transpose_4x4(const float* b, int64_t stride, int64_t width, float* out) {
#if HWY_TARGET == HWY_SCALAR
  for (int j = 0; j < 4; ++j) {
    for (int k = 0; k < 4; ++k) out[k * width + j] = b[j * stride + k];
  }
#else
  const hn::CappedTag<float, 4> d;
  const hn::Repartition<double, decltype(d)> pairs;
  const auto r0 = hn::LoadU(d, b), r1 = hn::LoadU(d, b + stride);
  const auto r2 = hn::LoadU(d, b + 2 * stride), r3 = hn::LoadU(d, b + 3 * stride);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, out);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, out + width);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, out + 2 * width);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, out + 3 * width);
#endif
}

// Four by four, turned over in registers; what does not fill a block goes one by one.
void turn(const Turned& t, const float* part, float* c) {
  HWY_ALIGN float block[16];
  for (int64_t j = 0; j < t.columns; j += 4) {
    const int64_t columns = t.columns - j < 4 ? t.columns - j : 4;
    for (int64_t r = 0; r < t.rows; r += 4) {
      const int64_t rows = t.rows - r < 4 ? t.rows - r : 4;
      transpose_4x4(part + r * t.part_stride + j, t.part_stride, 4, block);
      for (int64_t k = 0; k < columns; ++k) {
        float* to = c + (j + k) * t.c_stride + r;
        for (int64_t i = 0; i < rows; ++i) {
          float value = block[k * 4 + i];
          if (t.accumulate) value += to[i];
          if (t.bias) value += t.bias[r + i];
          to[i] = t.relu && value < 0.0f ? 0.0f : value;
        }
      }
    }
  }
}

void turn_plain(const Turned& t, const float* part, float* c) {
#if HWY_TARGET != HWY_SCALAR
  if (!t.accumulate && !t.bias && !t.relu && t.columns % 4 == 0) {
    const int64_t rows4 = t.rows / 4 * 4;
    for (int64_t j = 0; j < t.columns; j += 4) {
      for (int64_t r = 0; r < rows4; r += 4) {
        transpose_4x4(part + r * t.part_stride + j, t.part_stride, t.c_stride, c + j * t.c_stride + r);
      }
    }
    if (rows4 == t.rows) return;
    Turned rest = t;
    rest.rows = t.rows - rows4;
    return turn(rest, part + rows4 * t.part_stride, c + rows4);
  }
#endif
  turn(t, part, c);
}

// Sixteen steps at a time: that many of every column are one cache line, and what is written stays near.
void pack_transposed(const float* b, int64_t stride, int64_t steps, int64_t columns, int64_t width, float* out) {
  const int64_t steps4 = steps / 4 * 4, columns4 = columns / 4 * 4;
  for (int64_t from = 0; from < steps4; from += 16) {
    const int64_t to = from + 16 < steps4 ? from + 16 : steps4;
    for (int64_t j = 0; j < columns4; j += 4) {
      for (int64_t i = j; i < j + 4; ++i) __builtin_prefetch(b + i * stride + from + 48);
      for (int64_t k = from; k < to; k += 4) transpose_4x4(b + j * stride + k, stride, width, out + k * width + j);
    }
    for (int64_t j = columns4; j < columns; ++j) {
      for (int64_t k = from; k < to; ++k) out[k * width + j] = b[j * stride + k];
    }
  }
  for (int64_t k = steps4; k < steps; ++k) {
    for (int64_t j = 0; j < columns; ++j) out[k * width + j] = b[j * stride + k];
  }
  if (columns == width) return;
  for (int64_t k = 0; k < steps; ++k) std::memset(out + k * width + columns, 0, static_cast<size_t>(width - columns) * 4);
}

// Whole vectors, also where the panel is narrower: what stands beyond it in memory is never stored to C.
// Only the last steps, whose vectors would pass the end of B, are copied exactly.
void pack_straight(const float* b, int64_t stride, int64_t steps, int64_t columns, int64_t width, float* out) {
  const D d;
  int64_t whole = steps;
  while (whole > 0 && (whole - 1) * stride + width > (steps - 1) * stride + columns) --whole;
  for (int64_t k = 0; k < whole; ++k) {
    for (int64_t j = 0; j < width; j += kLanes) hn::Store(hn::LoadU(d, b + k * stride + j), d, out + k * width + j);
  }
  for (int64_t k = whole; k < steps; ++k) {
    std::memcpy(out + k * width, b + k * stride, static_cast<size_t>(columns) * 4);
    std::memset(out + k * width + columns, 0, static_cast<size_t>(width - columns) * 4);
  }
}

template <int N, bool kAlongRows, int R = kRows>
constexpr void fill(TileFn* table) {
  table[R - 1] = &tile<R, N, kAlongRows>;
  if constexpr (R > 1) fill<N, kAlongRows, R - 1>(table);
}

struct Table {
  TileFn fn[4][TileSet::kRowsMax] = {};
  constexpr Table() {
    fill<1, true>(fn[0]);
    fill<2, true>(fn[1]);
    fill<1, false>(fn[2]);
    fill<2, false>(fn[3]);
  }
};
constexpr Table kTable;
constexpr TileSet kTiles = {kLanes, kRows, {kTable.fn[0], kTable.fn[1]}, {kTable.fn[2], kTable.fn[3]}};

const TileSet* tiles() { return &kTiles; }

}  // namespace HWY_NAMESPACE
}  // namespace dtg::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dtg::cpu {

HWY_EXPORT(tiles);
HWY_EXPORT(pack_transposed);
HWY_EXPORT(pack_straight);
HWY_EXPORT(turn_plain);

const TileSet& tile_set() { return *HWY_DYNAMIC_DISPATCH(tiles)(); }

void store_turned(const Turned& turned, const float* part, float* c) { HWY_DYNAMIC_DISPATCH(turn_plain)(turned, part, c); }

void pack_panel(const float* b, int64_t stride, bool transposed, int64_t steps, int64_t columns, int64_t width, float* out) {
  if (transposed) return HWY_DYNAMIC_DISPATCH(pack_transposed)(b, stride, steps, columns, width, out);
  HWY_DYNAMIC_DISPATCH(pack_straight)(b, stride, steps, columns, width, out);
}

}  // namespace dtg::cpu
#endif
