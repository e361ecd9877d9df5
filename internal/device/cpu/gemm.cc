// Blocking, packing and sharding around the register tiles. Order of loops in a shard: stretches of k, then
// panels of columns, then blocks of rows. A packed panel stays in the second-level cache while the rows
// stream past it.
#include "device/cpu/gemm.h"

#include <utility>

#include "base/interrupt.h"
#include "tensor/buffer.h"

namespace dtg::cpu {
namespace {

constexpr int64_t kShardsMax = 16;
constexpr int64_t kShardFlops = 12 << 20;    // about 60 us: less is not worth another thread
constexpr int64_t kDepthMax = 512;           // a block of A of that depth stays in the first-level cache
constexpr int64_t kDepthTurned = 264;        // a panel turned over on the way stays in it, too
constexpr int64_t kPackedBytes = 512 << 10;  // panels packed at a time: half of a small second-level cache
// Plain panels are as fast as packed ones until many blocks of rows pass over them; when A is read along its
// columns the first-level cache has no room for both, and packing pays at once.
constexpr int64_t kPackRows = 320;
constexpr int64_t kPackRowsTransposed = 40;
constexpr int64_t kSharedBytes = 768 << 10;  // B packed as a whole, once for all shards
constexpr int64_t kNarrow = 14;              // columns that make one block of rows when swapped
constexpr int64_t kPanelsTogether = 4;       // panels side by side make long stretches of B and C

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Columns {
  int64_t first, count, width;  // width: of the panel, a whole number of vectors
  bool wide;
};

Columns panel_columns(const GemmPlan& p, int64_t panel) {
  const int64_t lanes = p.tiles->lanes;
  const int64_t first = panel * 2 * lanes;
  const int64_t count = std::min(2 * lanes, p.n - first);
  const bool wide = count > lanes;
  return {first, count, wide ? 2 * lanes : lanes, wide};
}

// Block of rows by block of rows over a few panels, so that a block of A stays in the first-level cache and
// C is written in long stretches.
struct Stretch {
  int64_t k_from, depth;
  int64_t row_begin, row_end;
  int64_t panel_begin, panel_end;
};

const float* panel_source(const GemmPlan& p, const float* b, const Columns& cols, int64_t k_from) {
  return p.transpose_b ? b + cols.first * p.k + k_from : b + k_from * p.n + cols.first;
}

bool is_packed(const GemmPlan& p, const Columns& cols) { return p.pack_b || cols.count < cols.width; }

// Where a packed panel lies: in the copy of all of B, in the group's, or alone (the one panel that is not full).
float* panel_place(const GemmPlan& p, const Stretch& s, int64_t panel, float* packed) {
  const int64_t width = 2 * p.tiles->lanes;
  if (p.share_packed) return packed + (s.k_from * p.panels + panel * s.depth) * width;
  return packed + (p.pack_b ? (panel - s.panel_begin) * s.depth * width : 0);
}

void pack_panels(const GemmPlan& p, const Stretch& s, const float* b, float* packed) {
  for (int64_t panel = s.panel_begin; panel < s.panel_end; ++panel) {
    const Columns cols = panel_columns(p, panel);
    if (!is_packed(p, cols)) continue;
    pack_panel(panel_source(p, b, cols, s.k_from), p.transpose_b ? p.k : p.n, p.transpose_b, s.depth, cols.count, cols.width,
               panel_place(p, s, panel, packed));
  }
}

// A tile of a swapped plan holds columns of C: it is finished beside C and turned over when it is stored.
void run_turned(const GemmPlan& p, Tile tile, TileFn fn, int64_t rows, const float* a, const float* b, Turned turned, const float* bias,
                float* c) {
  alignas(64) float part[16 * 2 * TileSet::kLanesMax];
  turned.rows = rows;
  turned.columns = tile.columns;
  turned.bias = bias;
  turned.relu = tile.relu;
  turned.accumulate = tile.accumulate;
  turned.part_stride = tile.c_stride = tile.columns = 2 * p.tiles->lanes;
  tile.accumulate = tile.relu = false;
  tile.bias = nullptr;
  fn(tile, a, b, part);
  store_turned(turned, part, c);
}

void run_tiles(const GemmPlan& p, const Stretch& s, const float* a, const float* b, float* packed, const float* bias, bool relu, float* c,
               Lookout& lookout) {
  Tile tile;
  tile.length = s.depth;
  tile.a_stride = p.transpose_a ? p.m : p.k;
  tile.c_stride = p.n;
  tile.accumulate = s.k_from > 0;
  const bool last = s.k_from + s.depth == p.k;
  tile.relu = relu && last;
  if (!last) bias = nullptr;
  const EvenBlocks blocks(s.row_end - s.row_begin, p.tiles->rows);
  const auto& fns = p.transpose_a ? p.tiles->along_columns : p.tiles->along_rows;
  const int64_t block_steps = p.tiles->rows * s.depth * (s.panel_end - s.panel_begin);
  for (int64_t i = 0; i < blocks.count; ++i) {
    const int64_t row = s.row_begin + blocks.start(i), rows = blocks.start(i + 1) - blocks.start(i);
    const float* at = p.transpose_a ? a + s.k_from * p.m + row : a + row * p.k + s.k_from;
    for (int64_t panel = s.panel_begin; panel < s.panel_end; ++panel) {
      const Columns cols = panel_columns(p, panel);
      const bool copy = is_packed(p, cols);
      tile.columns = cols.count;
      tile.b_stride = copy ? cols.width : p.n;
      const float* bt = copy ? panel_place(p, s, panel, packed) : panel_source(p, b, cols, s.k_from);
      if (p.swapped) {
        const Turned turned = {.c_stride = p.m};
        run_turned(p, tile, fns[cols.wide][rows - 1], rows, at, bt, turned, bias ? bias + row : nullptr, c + cols.first * p.m + row);
        continue;
      }
      tile.bias = bias ? bias + cols.first : nullptr;
      fns[cols.wide][rows - 1](tile, at, bt, c + row * p.n + cols.first);
    }
    lookout.after(block_steps);
  }
}

// A power of two of shards, cut by columns while the pieces stay wide, then by rows.
void choose_groups(GemmPlan& p) {
  const double flops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  int64_t wanted = 1;
  while (wanted < kShardsMax && flops >= 2.0 * static_cast<double>(wanted * kShardFlops)) wanted *= 2;
  p.column_groups = std::clamp<int64_t>(p.panels / kPanelsTogether, 1, wanted);
  p.row_groups = std::clamp<int64_t>(p.m / (8 * p.tiles->rows), 1, wanted / p.column_groups);
  p.column_groups = std::max<int64_t>(1, std::min(p.panels, wanted / p.row_groups));
}

// A product with few columns fills the vectors better the other way round, where A lies ready as the panels.
bool should_swap(int64_t m, int64_t n, bool transpose_a, bool transpose_b) { return transpose_a && !transpose_b && n <= kNarrow && m > n; }

void choose_memory(GemmPlan& p) {
  const int64_t width = 2 * p.tiles->lanes;
  const Bytes all = Bytes::of(p.panels, width * 4) * p.k;
  p.share_packed = p.pack_b && !p.transpose_b && all <= Bytes(kSharedBytes);
  const int64_t shard_panels = std::max<int64_t>(ceil_div(p.panels, p.column_groups), 1);
  p.panel_group = p.transpose_b ? 1 : std::clamp<int64_t>(kPackedBytes / (p.k_block * width * 4), 1, shard_panels);
  if (p.share_packed) {
    p.shared_workspace = align_up(all.value());
  } else if (p.pack_b) {
    p.shard_workspace = align_up(p.panel_group * p.k_block * width * 4);
  } else if (p.n % p.tiles->lanes != 0) {
    p.shard_workspace = align_up(p.k_block * width * 4);
  }
}

// All of B, before the shards begin.
void pack_all(const GemmPlan& p, int64_t panel_begin, int64_t panel_end, const float* b, float* packed) {
  for (int64_t from = 0; from < p.k; from += p.k_block) {
    pack_panels(p, {from, std::min(p.k_block, p.k - from), 0, 0, panel_begin, panel_end}, b, packed);
  }
}

GemmPlan plan_as_given(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b, bool parallel) {
  GemmPlan p;
  p.m = m, p.n = n, p.k = k;
  p.transpose_a = transpose_a, p.transpose_b = transpose_b;
  p.tiles = &tile_set();
  p.panels = ceil_div(n, 2 * p.tiles->lanes);
  p.pack_b = transpose_b || m >= (transpose_a ? kPackRowsTransposed : kPackRows);
  const int64_t depth = std::max<int64_t>(k, 1), most = transpose_b ? kDepthTurned : kDepthMax;
  p.k_block = ceil_div(depth, ceil_div(depth, most));
  if (parallel) choose_groups(p);
  choose_memory(p);
  return p;
}

void run_shard(const GemmPlan& p, int64_t shard, const float* a, const float* b, const float* bias, bool relu, float* c, void* workspace) {
  const int64_t column_group = shard % p.column_groups, row_group = shard / p.column_groups;
  const int64_t row_begin = p.m * row_group / p.row_groups, row_end = p.m * (row_group + 1) / p.row_groups;
  const int64_t panel_begin = p.panels * column_group / p.column_groups;
  const int64_t panel_end = p.panels * (column_group + 1) / p.column_groups;
  float* packed = reinterpret_cast<float*>(static_cast<char*>(workspace) + shard * p.shard_workspace);
  if (row_begin == row_end) return;
  Lookout lookout;
  int64_t from = 0;
  do {  // once even for k = 0, which stores zeros
    Stretch s = {from, std::min(p.k_block, p.k - from), row_begin, row_end, 0, 0};
    for (s.panel_begin = panel_begin; s.panel_begin < panel_end; s.panel_begin = s.panel_end) {
      s.panel_end = std::min(s.panel_begin + p.panel_group, panel_end);
      if (!p.share_packed) pack_panels(p, s, b, packed);
      run_tiles(p, s, a, b, packed, bias, relu, c, lookout);
    }
    from += s.depth;
  } while (from < p.k);
}

}  // namespace

GemmPlan gemm_plan(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b, bool parallel) {
  if (!should_swap(m, n, transpose_a, transpose_b)) return plan_as_given(m, n, k, transpose_a, transpose_b, parallel);
  GemmPlan p = plan_as_given(n, m, k, transpose_a, transpose_b, parallel);
  p.swapped = true;
  return p;
}

void gemm_run_alone(const GemmPlan& p, const float* a, const float* b, const float* bias, bool relu, float* c, void* workspace) {
  if (p.swapped) std::swap(a, b);
  if (p.share_packed) pack_all(p, 0, p.panels, b, static_cast<float*>(workspace));
  for (int64_t shard = 0; shard < p.shards(); ++shard) run_shard(p, shard, a, b, bias, relu, c, workspace);
}

void gemm_run(const GemmPlan& p, Pool& pool, const float* a, const float* b, const float* bias, bool relu, float* c, void* workspace) {
  if (p.shards() <= 1) return gemm_run_alone(p, a, b, bias, relu, c, workspace);
  if (p.swapped) std::swap(a, b);
  if (p.share_packed) {
    pool.parallel_for(p.panels, [&](int64_t panel) { pack_all(p, panel, panel + 1, b, static_cast<float*>(workspace)); });
  }
  pool.parallel_for(p.shards(), [&](int64_t shard) { run_shard(p, shard, a, b, bias, relu, c, workspace); });
}

}  // namespace dtg::cpu
