// Tile: the innermost loop of every matrix product and convolution, a small block of C = A * B held in
// registers, compiled once per instruction set with Highway. Everything around it (packing, blocking,
// sharding) is in gemm and conv. Pure functions; any thread.
//
// One tile is `rows` x one panel of columns. The sum runs over `runs` stretches of `length` steps each, so
// that a convolution reads its input in place: a stretch is one row of the filter, and the next stretch
// starts `a_run` further. A is read either along its rows (step 1, rows `a_stride` apart) or along its
// columns (rows next to each other, steps `a_stride` apart).
#pragma once

#include <cstdint>

namespace dtg::cpu {

struct Tile {
  int64_t runs = 1;
  int64_t length = 0;
  int64_t a_stride = 0;         // see above
  int64_t a_run = 0;            // between the starts of two stretches of A
  int64_t b_stride = 0;         // between two steps of B, also from one stretch to the next
  int64_t c_stride = 0;         // between two rows of C
  int64_t columns = 0;          // valid columns of C; the panel is read in full width
  bool accumulate = false;      // C += rather than C =
  bool relu = false;            // after all else
  const float* bias = nullptr;  // one per column, added once, or null
};

using TileFn = void (*)(const Tile& tile, const float* a, const float* b, float* c);

// The tiles of this machine: `narrow` is one vector of columns wide, `wide` two; fn[r - 1] does r rows.
struct TileSet {
  static constexpr int kRowsMax = 14;
  static constexpr int kLanesMax = 16;
  int lanes = 0;                     // columns of a narrow panel
  int rows = 0;                      // most rows at once, <= kRowsMax
  const TileFn* along_rows[2] = {};  // [narrow, wide][rows - 1]
  const TileFn* along_columns[2] = {};
};

const TileSet& tile_set();

// A finished tile of the transposed product: part[r * part_stride + j] goes to c[j * c_stride + r].
struct Turned {
  int64_t rows = 0, columns = 0;  // of the part; its memory is that of whole blocks of 4
  int64_t part_stride = 0;
  int64_t c_stride = 0;
  bool accumulate = false, relu = false;
  const float* bias = nullptr;  // one per row of the part, or null
};

void store_turned(const Turned& turned, const float* part, float* c);

// Copies a panel of B into steps of `width` columns next to each other; out is 64-byte aligned and
// undefined beyond `columns`: out[k * width + j] = b[k * stride + j], or b[j * stride + k] when `transposed`.
void pack_panel(const float* b, int64_t stride, bool transposed, int64_t steps, int64_t columns, int64_t width, float* out);

}  // namespace dtg::cpu
