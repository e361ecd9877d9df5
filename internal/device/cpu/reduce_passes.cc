// One pass of a reduction, for every type: [a, r, b] -> [a, b]. Constant data, any thread.
//
// r is cut into pieces; the results of a row's pieces are joined as a binary tree. Inside a piece at most
// some hundred elements are added one after the other, so that the error of a float32 sum stays near that
// of its last rounding. 16-bit floats are accumulated as float32.
#include <algorithm>
#include <cmath>
#include <limits>

#include "device/cpu/element_loops.h"
#include "device/cpu/reduce.h"

namespace dtg::cpu {
namespace {

constexpr int64_t kTile = kReduceTile;
constexpr int64_t kRunBlock = 4096;  // contiguous elements joined without a tree

struct Sum {
  static constexpr Reduction kind = Reduction::sum;
  template <class C>
  static C join(C a, C b) {
    return wrap_add(a, b);
  }
};
struct Prod {
  static constexpr Reduction kind = Reduction::prod;
  template <class C>
  static C join(C a, C b) {
    return wrap_mul(a, b);
  }
};
// A NaN stays once it is met: nothing compares with it, and it differs from itself.
struct Max {
  static constexpr Reduction kind = Reduction::max;
  template <class C>
  static C join(C a, C b) {
    return b > a || b != b ? b : a;
  }
};
struct Min {
  static constexpr Reduction kind = Reduction::min;
  template <class C>
  static C join(C a, C b) {
    return b < a || b != b ? b : a;
  }
};
struct And {
  static constexpr Reduction kind = Reduction::all;
  template <class C>
  static C join(C a, C b) {
    return static_cast<C>(a & b);
  }
};
struct Or {
  static constexpr Reduction kind = Reduction::any;
  template <class C>
  static C join(C a, C b) {
    return static_cast<C>(a | b);
  }
};

template <class In, class Op>
constexpr bool kHasSimd = std::is_floating_point_v<In> &&
                          (Op::kind == Reduction::sum || Op::kind == Reduction::max || Op::kind == Reduction::min);

template <class T>
const ReduceSimd<T>& simd(Reduction reduction) {
  if constexpr (std::is_same_v<T, float>) return reduce_simd_f32(reduction);
  else return reduce_simd_f64(reduction);
}

// The functions that a pass calls, fetched once per pass.
template <class In, class Acc, class Op>
struct Leaf {
  Leaf() {
    if constexpr (kHasSimd<In, Op>) forms = simd<In>(Op::kind);
  }

  Acc block(const In* in, int64_t n) const {
    if constexpr (kHasSimd<In, Op>) {
      return forms.run(in, n);
    } else {
      Acc part[8];
      const int64_t width = std::min<int64_t>(n, 8);
      for (int64_t j = 0; j < width; ++j) part[j] = static_cast<Acc>(in[j]);
      int64_t i = 8;
      for (; i + 8 <= n; i += 8) {
        for (int64_t j = 0; j < 8; ++j) part[j] = Op::join(part[j], static_cast<Acc>(in[i + j]));
      }
      for (; i < n; ++i) part[i & 7] = Op::join(part[i & 7], static_cast<Acc>(in[i]));
      for (int64_t j = 1; j < width; ++j) part[0] = Op::join(part[0], part[j]);
      return part[0];
    }
  }

  // n > 0 contiguous elements, as a tree of blocks.
  Acc run(const In* in, int64_t n) const {
    if (n <= kRunBlock) return block(in, n);
    const int64_t half = (n / 2 + kRunBlock - 1) / kRunBlock * kRunBlock;
    return Op::join(run(in, half), run(in + half, n - half));
  }

  // `out` may be the first row.
  void rows(const In* in, int64_t rows, int64_t width, int64_t stride, Acc* out) const {
    if constexpr (kHasSimd<In, Op>) {
      forms.rows(in, rows, width, stride, out);
    } else {
      for (int64_t j = 0; j < width; ++j) out[j] = static_cast<Acc>(in[j]);
      for (int64_t i = 1; i < rows; ++i) {
        const In* row = in + i * stride;
        for (int64_t j = 0; j < width; ++j) out[j] = Op::join(out[j], static_cast<Acc>(row[j]));
      }
    }
  }

  // Rows too short for vectors are taken several at a time as one wide row, which is folded in the end.
  void narrow_rows(const In* in, int64_t count, int64_t width, Acc* out) const {
    constexpr int64_t kWide = 128;
    const int64_t together = kWide / width, times = together < 2 ? 0 : count / together;
    if (times < 4) return rows(in, count, width, width, out);
    Acc wide[kWide];
    rows(in, times, together * width, together * width, wide);
    Leaf<Acc, Acc, Op>().rows(wide, together, width, width, out);
    for (int64_t i = times * together; i < count; ++i) {
      for (int64_t j = 0; j < width; ++j) out[j] = Op::join(out[j], static_cast<Acc>(in[i * width + j]));
    }
  }

  ReduceSimd<std::conditional_t<std::is_floating_point_v<In>, In, float>> forms{};
};

// Joins the pieces of one tile of one row of a, as a tree, into `out`.
template <class Acc, class Op>
void join_pieces(Acc* parts, int64_t pieces, int64_t b, int64_t width, Acc* out) {
  const Leaf<Acc, Acc, Op> leaf;
  for (int64_t step = 1; step < pieces; step *= 2) {
    for (int64_t p = 0; p + step < pieces; p += 2 * step) leaf.rows(parts + p * b, 2, width, step * b, parts + p * b);
  }
  std::copy_n(parts, width, out);
}

// One tile of a piece: `rows` rows of `width` elements that lie `stride` apart.
template <class In, class Acc, class Op>
void run_tile(const Leaf<In, Acc, Op>& leaf, const ReducePass& pass, const In* from, int64_t rows, int64_t width, int64_t stride, Acc* to) {
  if (pass.b == 1) *to = leaf.run(from, rows);
  else if (pass.tiles == 1) leaf.narrow_rows(from, rows, width, to);
  else leaf.rows(from, rows, width, stride, to);
}

template <class In, class Acc, class Op>
void run_pass(const ReducePass& pass, Pool& pool, const void* in_data, void* out_data, void* scratch) {
  const In* in = static_cast<const In*>(in_data);
  Acc* out = static_cast<Acc*>(out_data);
  Acc* parts = pass.pieces > 1 ? static_cast<Acc*>(scratch) : out;
  const Leaf<In, Acc, Op> leaf;
  const int64_t units = pass.a * pass.pieces * pass.tiles;
  const auto unit = [&](int64_t u) {
    const int64_t tile = u % pass.tiles, piece = u / pass.tiles % pass.pieces, a = u / pass.tiles / pass.pieces;
    const int64_t first = piece * pass.rows, rows = std::min(pass.rows, pass.r - first);
    const int64_t column = tile * kTile, width = std::min(kTile, pass.b - column);
    run_tile(leaf, pass, in + (a * pass.r + first) * pass.b + column, rows, width, pass.b,
             parts + (a * pass.pieces + piece) * pass.b + column);
  };
  pool.parallel_for((units + pass.units_per_shard - 1) / pass.units_per_shard, [&](int64_t shard) {
    const int64_t end = std::min(units, (shard + 1) * pass.units_per_shard);
    for (int64_t u = shard * pass.units_per_shard; u < end; ++u) unit(u);
  });
  if (pass.pieces == 1) return;
  pool.parallel_for(pass.a * pass.tiles, [&](int64_t i) {
    const int64_t tile = i % pass.tiles, a = i / pass.tiles, column = tile * kTile;
    join_pieces<Acc, Op>(parts + a * pass.pieces * pass.b + column, pass.pieces, pass.b, std::min(kTile, pass.b - column),
                         out + a * pass.b + column);
  });
}

template <class T, class Op>
constexpr TileReduce kTiles{sizeof(T),
                            [](const ReducePass& pass, const void* tile, int64_t rows, int64_t width, void* to) {
                              run_tile(Leaf<T, T, Op>(), pass, static_cast<const T*>(tile), rows, width, width, static_cast<T*>(to));
                            },
                            [](const ReducePass& pass, void* parts, int64_t width, void* out) {
                              join_pieces<T, Op>(static_cast<T*>(parts), pass.pieces, pass.b, width, static_cast<T*>(out));
                            }};

template <class Op>
const TileReduce* tiles_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return &kTiles<float, Op>;
    case DType::f64: return &kTiles<double, Op>;
    case DType::i32: return &kTiles<int32_t, Op>;
    case DType::i64: return &kTiles<int64_t, Op>;
    default: return nullptr;
  }
}

template <class Op>
PassFn number_pass(DType dtype) {
  switch (dtype) {
    case DType::f32: return run_pass<float, float, Op>;
    case DType::f64: return run_pass<double, double, Op>;
    case DType::f16: return run_pass<Half, float, Op>;
    case DType::bf16: return run_pass<BFloat16, float, Op>;
    case DType::i8: return run_pass<int8_t, int8_t, Op>;
    case DType::i16: return run_pass<int16_t, int16_t, Op>;
    case DType::i32: return run_pass<int32_t, int32_t, Op>;
    case DType::i64: return run_pass<int64_t, int64_t, Op>;
    case DType::u8: return run_pass<uint8_t, uint8_t, Op>;
    case DType::u16: return run_pass<uint16_t, uint16_t, Op>;
    case DType::u32: return run_pass<uint32_t, uint32_t, Op>;
    case DType::u64: return run_pass<uint64_t, uint64_t, Op>;
    default: return nullptr;
  }
}

}  // namespace

const TileReduce* find_tile(Reduction reduction, DType dtype) {
  switch (reduction) {
    case Reduction::sum:
    case Reduction::mean: return tiles_of<Sum>(dtype);
    case Reduction::max: return tiles_of<Max>(dtype);
    case Reduction::min: return tiles_of<Min>(dtype);
    default: return nullptr;
  }
}

PassFn find_pass(Reduction reduction, DType dtype) {
  switch (reduction) {
    case Reduction::sum:
    case Reduction::mean: return number_pass<Sum>(dtype);
    case Reduction::prod: return number_pass<Prod>(dtype);
    case Reduction::max: return number_pass<Max>(dtype);
    case Reduction::min: return number_pass<Min>(dtype);
    case Reduction::all: return run_pass<uint8_t, uint8_t, And>;
    case Reduction::any: return run_pass<uint8_t, uint8_t, Or>;
  }
  return nullptr;
}

}  // namespace dtg::cpu
