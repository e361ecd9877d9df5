// The sweep (forward, gradient of the input) and the gradient of the filter, see conv.h.
#include "device/cpu/conv.h"

#include <algorithm>
#include <cstring>

#include "device/cpu/gemm.h"
#include "device/cpu/rows.h"
#include "tensor/buffer.h"

namespace dtg::cpu {
namespace {

constexpr int64_t kShardsMax = 16;
constexpr int64_t kShardFlops = 12 << 20;
constexpr int64_t kPartialBytes = 1 << 20;  // larger filters are split instead of summed from partial ones
constexpr int64_t kPlainPanelStride = 128;  // columns up to which a panel is read well without being packed

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Of so many floats, at least one; where that does not fit, the largest number, which the workspace of the plan keeps.
int64_t floor_bytes(Bytes floats) { return (std::max(floats, Bytes(1)) * 4).aligned(kBlockAlign).value(); }

int64_t wanted_shards(double flops) {
  int64_t wanted = 1;
  while (wanted < kShardsMax && flops >= 2.0 * static_cast<double>(wanted * kShardFlops)) wanted *= 2;
  return wanted;
}

// Reach of a filter over `out` positions.
int64_t reach(int64_t out, int64_t stride, int64_t filter, int64_t dilation) {
  if (out == 0) return 0;
  return (Bytes::of(std::max<int64_t>(out - 1, 0), stride) + Bytes::of(std::max<int64_t>(filter - 1, 0), dilation) + Bytes(1)).value();
}

struct Panel {
  int64_t first, count, width;
  bool wide;
};

Panel panel_at(const TileSet& tiles, int64_t columns, int64_t panel) {
  const int64_t lanes = tiles.lanes, first = panel * 2 * lanes, count = std::min(2 * lanes, columns - first);
  return {first, count, count > lanes ? 2 * lanes : lanes, count > lanes};
}

// One bordered row from source row `i`, which exists.
void copy_row(const Border& b, const float* image, int64_t i, float* out) {
  const int64_t c = b.channels;
  // Source columns whose place lies inside.
  const int64_t from = b.left >= 0 ? 0 : ceil_div(-b.left, b.spread_x);
  const int64_t to = std::min(b.width, b.columns > b.left ? (b.columns - b.left - 1) / b.spread_x + 1 : 0);
  if (b.nchw) {
    for (int64_t k = 0; k < c; ++k) {
      const float* line = image + (k * b.height + i) * b.width;
      look_in_stretches(from, to, 1, 1, [&](int64_t first, int64_t last) {
        for (int64_t j = first; j < last; ++j) out[(b.left + j * b.spread_x) * c + k] = line[j];
      });
    }
    return;
  }
  const float* line = image + i * b.width * b.source_step();
  if (from >= to) return;
  if (b.spread_x == 1 && b.source_step() == c) {
    look_in_stretches(from * c, to * c, 1, 1, [&](int64_t first, int64_t last) {
      std::memcpy(out + b.left * c + first, line + first, static_cast<size_t>(last - first) * 4);
    });
    return;
  }
  look_between(from, to, c, [&](int64_t j) {
    std::memcpy(out + (b.left + j * b.spread_x) * c, line + j * b.source_step(), static_cast<size_t>(c) * 4);
  });
}

// Bordered rows [row_begin, row_end) into `out`, whose first row is row_begin.
void fill_border(const Border& b, const float* image, int64_t row_begin, int64_t row_end, float* out) {
  const int64_t pitch = b.columns * b.channels;
  look_in_stretches(0, (row_end - row_begin) * pitch, 1, 1,
                    [&](int64_t from, int64_t to) { std::memset(out + from, 0, static_cast<size_t>(to - from) * 4); });
  look_between(row_begin, row_end, pitch, [&](int64_t row) {
    const int64_t at = row - b.top;
    if (at < 0 || at % b.spread_y != 0 || at / b.spread_y >= b.height) return;
    copy_row(b, image, at / b.spread_y, out + (row - row_begin) * pitch);
  });
}

// The filter as panels of [filter_height * filter_width * channels, width].
void pack_filter(const SweepPlan& p, int64_t panel, const float* filter, float* packed) {
  const int64_t depth = p.border.channels, taps = p.filter_height * p.filter_width;
  const Panel cols = panel_at(*p.tiles, p.out_channels, panel);
  float* out = packed + panel * taps * depth * 2 * p.tiles->lanes;
  if (!p.flipped) return pack_panel(filter + cols.first, p.filter_pitch, false, taps * depth, cols.count, cols.width, out);
  for (int64_t tap = 0; tap < taps; ++tap) {
    const float* from = filter + ((taps - 1 - tap) * p.out_channels + cols.first) * p.filter_pitch;
    pack_panel(from, p.filter_pitch, true, depth, cols.count, cols.width, out + tap * depth * cols.width);
  }
}

// A tile with the A and B steps of one filter row (or of the whole filter, where the rows follow each other
// at equal distance).
struct Steps {
  int64_t passes;  // tiles that are added up
  int64_t a_pass;  // between the starts of two passes
  Tile tile;
};

Steps sweep_steps(const SweepPlan& p) {
  const int64_t c = p.border.channels, pitch = p.border.pitch();
  Steps s{};
  s.tile.a_stride = p.stride_x * c;
  s.tile.c_stride = p.out_step;
  if (p.dilation_x == 1) {
    s.passes = 1;
    s.tile.runs = p.filter_height;
    s.tile.length = p.filter_width * c;
    s.tile.a_run = p.dilation_y * pitch;
  } else {
    s.passes = p.filter_height;
    s.a_pass = p.dilation_y * pitch;
    s.tile.runs = p.filter_width;
    s.tile.length = c;
    s.tile.a_run = p.dilation_x * c;
  }
  return s;
}

struct SweepRun {
  const float* packed;
  const float* bias;
  bool relu;
  Lookout& lookout;
};

// Output pixels [first, first + count) that lie `a_stride` apart from `a`, all panels.
void sweep_pixels(const SweepPlan& p, const Steps& steps, const SweepRun& run, const float* a, int64_t count, float* c) {
  const int64_t panels = ceil_div(p.out_channels, 2 * p.tiles->lanes);
  const int64_t taps_depth = p.filter_height * p.filter_width * p.border.channels;
  const EvenBlocks blocks(count, p.tiles->rows);
  const int64_t block_steps = p.tiles->rows * taps_depth * panels;
  Tile tile = steps.tile;
  for (int64_t block = 0; block < blocks.count; ++block) {
    const int64_t row = blocks.start(block), rows = blocks.start(block + 1) - row;
    for (int64_t panel = 0; panel < panels; ++panel) {
      const Panel cols = panel_at(*p.tiles, p.out_channels, panel);
      const float* b = run.packed + panel * taps_depth * 2 * p.tiles->lanes;
      tile.columns = cols.count;
      tile.b_stride = cols.width;
      for (int64_t pass = 0; pass < steps.passes; ++pass) {
        const bool last = pass + 1 == steps.passes;
        tile.accumulate = pass > 0;
        tile.bias = last && run.bias ? run.bias + cols.first : nullptr;
        tile.relu = last && run.relu;
        p.tiles->along_rows[cols.wide][rows - 1](tile, a + row * tile.a_stride + pass * steps.a_pass,
                                                 b + pass * tile.runs * tile.length * cols.width, c + row * tile.c_stride + cols.first);
      }
    }
    run.lookout.after(block_steps);
  }
}

void to_planes(const float* pixels, int64_t count, int64_t channels, int64_t plane, float* out) {
  look_between(0, channels, count, [&](int64_t k) {
    look_in_stretches(0, count, 1, 1, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) out[k * plane + i] = pixels[i * channels + k];
    });
  });
}

// Output rows [from, to) of one image.
void sweep_image(const SweepPlan& p, const SweepRun& run, const float* x, int64_t from, int64_t to, float* y, float* bordered,
                 float* result) {
  const Steps steps = sweep_steps(p);
  const int64_t pitch = p.border.pitch(), row_begin = from * p.stride_y;
  const float* a = x + row_begin * pitch;
  if (p.border.copies()) {
    const int64_t row_end = (to - 1) * p.stride_y + (p.filter_height - 1) * p.dilation_y + 1;
    fill_border(p.border, x, row_begin, row_end, bordered);
    a = bordered;
  }
  const int64_t width = p.out_width;
  float* c = p.border.nchw ? result : y + from * p.out_pitch;
  if (p.stride_y * pitch == width * steps.tile.a_stride &&
      p.out_pitch == width * p.out_step) {  // the pixels of all rows are equally far apart
    sweep_pixels(p, steps, run, a, (to - from) * width, c);
  } else {
    for (int64_t row = 0; row < to - from; ++row) {
      sweep_pixels(p, steps, run, a + row * p.stride_y * pitch, width, c + row * p.out_pitch);
    }
  }
  if (p.border.nchw) {
    to_planes(result, (to - from) * width, p.out_channels, p.out_height * width, y + from * width);
  }
}

}  // namespace

bool Border::copies() const {
  return nchw || source_step() != channels || top != 0 || left != 0 || spread_x != 1 || spread_y != 1 || rows > height || columns > width;
}

SweepPlan finish_sweep(SweepPlan p) {
  p.tiles = &tile_set();
  if (p.filter_pitch == 0) p.filter_pitch = p.flipped ? p.border.channels : p.out_channels;
  if (p.out_step == 0) p.out_step = p.out_channels;
  if (p.out_pitch == 0) p.out_pitch = p.out_width * p.out_step;
  if (p.out_image == 0) p.out_image = p.out_height * p.out_width * p.out_channels;
  const int64_t taps_depth = p.filter_height * p.filter_width * p.border.channels;
  const int64_t panels = ceil_div(p.out_channels, 2 * p.tiles->lanes);
  const double flops = 2.0 * static_cast<double>(p.batch * p.out_height * p.out_width) * static_cast<double>(p.out_channels) *
                       static_cast<double>(taps_depth);
  const int64_t wanted = wanted_shards(flops);
  if (p.batch > 0 && p.batch < wanted) {
    p.image_parts = std::clamp<int64_t>(ceil_div(wanted, p.batch), 1, std::max<int64_t>(p.out_height, 1));
  }
  p.shards = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(p.batch * p.image_parts, 1));
  p.packed_bytes = floor_bytes(Bytes::of(panels, 2 * p.tiles->lanes) * taps_depth);
  if (p.border.copies()) p.image_bytes = floor_bytes(Bytes::of(p.border.rows, p.border.columns) * p.border.channels);
  if (p.border.nchw) p.result_bytes = floor_bytes(Bytes::of(p.out_height, p.out_width) * p.out_channels);
  return p;
}

SweepPlan conv_forward_plan(const ConvDims& d) {
  SweepPlan p;
  p.border = {.height = d.height, .width = d.width, .channels = d.channels, .top = d.top, .left = d.left, .nchw = d.nchw};
  p.border.rows = reach(d.out_height, d.stride_y, d.filter_height, d.dilation_y);
  p.border.columns = reach(d.out_width, d.stride_x, d.filter_width, d.dilation_x);
  p.batch = d.batch;
  p.filter_height = d.filter_height, p.filter_width = d.filter_width;
  p.out_height = d.out_height, p.out_width = d.out_width, p.out_channels = d.out_channels;
  p.stride_y = d.stride_y, p.stride_x = d.stride_x;
  p.dilation_y = d.dilation_y, p.dilation_x = d.dilation_x;
  return finish_sweep(p);
}

// Every input pixel gathers from the output pixels that saw it: a convolution of the output's gradient,
// spread by the stride, with the filter turned around.
SweepPlan conv_input_plan(const ConvDims& d) {
  SweepPlan p;
  p.border = {.height = d.out_height,
              .width = d.out_width,
              .channels = d.out_channels,
              .top = (d.filter_height - 1) * d.dilation_y - d.top,
              .left = (d.filter_width - 1) * d.dilation_x - d.left,
              .spread_y = d.stride_y,
              .spread_x = d.stride_x,
              .nchw = d.nchw};
  p.border.rows = reach(d.height, 1, d.filter_height, d.dilation_y);
  p.border.columns = reach(d.width, 1, d.filter_width, d.dilation_x);
  p.batch = d.batch;
  p.filter_height = d.filter_height, p.filter_width = d.filter_width;
  p.out_height = d.height, p.out_width = d.width, p.out_channels = d.channels;
  p.dilation_y = d.dilation_y, p.dilation_x = d.dilation_x;
  p.flipped = true;
  return finish_sweep(p);
}

void conv_sweep(const SweepPlan& p, Pool& pool, const float* x, const float* filter, const float* bias, bool relu, float* y,
                void* workspace) {
  if (p.batch * p.out_height * p.out_width * p.out_channels == 0) return;
  char* memory = static_cast<char*>(workspace);
  float* packed = reinterpret_cast<float*>(memory);
  const int64_t panels = ceil_div(p.out_channels, 2 * p.tiles->lanes);
  // Packing is a copy: another thread is worth waking only for a large filter.
  if (p.packed_bytes < (256 << 10)) {
    for (int64_t panel = 0; panel < panels; ++panel) pack_filter(p, panel, filter, packed);
  } else {
    pool.parallel_for(panels, [&](int64_t panel) { pack_filter(p, panel, filter, packed); });
  }
  const int64_t units = p.batch * p.image_parts;
  const int64_t in_image = p.border.height * p.border.width * p.border.source_step();
  pool.parallel_for(p.shards, [&](int64_t shard) {
    Lookout lookout;
    const SweepRun run = {packed, bias, relu, lookout};
    char* own = memory + p.packed_bytes + shard * (p.image_bytes + p.result_bytes);
    float* bordered = reinterpret_cast<float*>(own);
    float* result = reinterpret_cast<float*>(own + p.image_bytes);
    for (int64_t unit = units * shard / p.shards; unit < units * (shard + 1) / p.shards; ++unit) {
      const int64_t image = unit / p.image_parts, part = unit % p.image_parts;
      const int64_t from = p.out_height * part / p.image_parts, to = p.out_height * (part + 1) / p.image_parts;
      if (from < to) sweep_image(p, run, x + image * in_image, from, to, y + image * p.out_image, bordered, result);
    }
  });
}

// ---- the gradient of the filter ------------------------------------------------------------------------------

namespace {

struct FilterTask {
  int64_t tap_begin, tap_end;  // filter rows (or taps, where the filter is dilated sideways)
  int64_t panel_begin, panel_end;
};

// A stretch of the filter that lies in one piece of a bordered image row, as rows of the tile: a whole filter
// row, or one tap where the filter is dilated sideways.
struct Pieces {
  int64_t count, rows;
};

Pieces filter_pieces(const ConvDims& d) {
  if (d.dilation_x == 1) return {d.filter_height, d.filter_width * d.channels};
  return {d.filter_height * d.filter_width, d.channels};
}

int64_t piece_offset(const FilterPlan& p, int64_t piece) {
  const ConvDims& d = p.dims;
  if (d.dilation_x == 1) return piece * d.dilation_y * p.border.pitch();
  return piece / d.filter_width * d.dilation_y * p.border.pitch() + piece % d.filter_width * d.dilation_x * d.channels;
}

bool packs_gradient(const FilterPlan& p, const Panel& cols) {
  return p.dims.nchw || cols.count < cols.width || p.dims.out_channels > kPlainPanelStride;
}

// Calls fn(row, column, tile) for parts of the output image that a tile adds up in some ten milliseconds at most, where they begin; all
// but the first add to what is there. An image of no more pixels is one part.
template <class Fn>
void for_tile_parts(const ConvDims& d, Tile tile, Fn fn) {
  constexpr int64_t kPixels = 1 << 20;
  const int64_t length = std::min(d.out_width, kPixels), runs = std::max<int64_t>(kPixels / d.out_width, 1);
  for (int64_t row = 0; row < d.out_height; row += runs) {
    for (int64_t column = 0; column < d.out_width; column += length) {
      tile.runs = std::min(runs, d.out_height - row);
      tile.length = std::min(length, d.out_width - column);
      fn(row, column, tile);
      tile.accumulate = true;
    }
  }
}

// Adds (or, for the first image, stores) one image's part of the filter's gradient.
void filter_image(const FilterPlan& p, const FilterTask& task, const float* a, const float* dy, bool first, float* df, float* packed,
                  Lookout& lookout) {
  const ConvDims& d = p.dims;
  const Pieces pieces = filter_pieces(d);
  const int64_t pixels = d.out_height * d.out_width;
  Tile tile;
  tile.a_stride = d.stride_x * d.channels;
  tile.a_run = d.stride_y * p.border.pitch();
  tile.c_stride = d.out_channels;
  tile.accumulate = !first;
  const EvenBlocks blocks(pieces.rows, p.tiles->rows);
  for (int64_t panel = task.panel_begin; panel < task.panel_end; ++panel) {
    const Panel cols = panel_at(*p.tiles, d.out_channels, panel);
    tile.columns = cols.count;
    tile.b_stride = d.out_channels;
    const float* b = dy + cols.first;
    if (packs_gradient(p, cols)) {
      const float* from = d.nchw ? dy + cols.first * pixels : b;
      look_in_stretches(0, pixels, cols.width, 16, [&](int64_t begin, int64_t end) {
        pack_panel(from + begin * (d.nchw ? 1 : d.out_channels), d.nchw ? pixels : d.out_channels, d.nchw, end - begin, cols.count,
                   cols.width, packed + begin * cols.width);
      });
      tile.b_stride = cols.width;
      b = packed;
    }
    for (int64_t piece = task.tap_begin; piece < task.tap_end; ++piece) {
      const float* at = a + piece_offset(p, piece);
      for (int64_t block = 0; block < blocks.count; ++block) {
        const int64_t row = blocks.start(block), rows = blocks.start(block + 1) - row;
        float* const to = df + (piece * pieces.rows + row) * d.out_channels + cols.first;
        for_tile_parts(d, tile, [&](int64_t y, int64_t x, const Tile& part) {
          p.tiles->along_columns[cols.wide][rows - 1](part, at + row + y * part.a_run + x * part.a_stride,
                                                      b + (y * d.out_width + x) * part.b_stride, to);
          lookout.after(rows * part.runs * part.length);
        });
      }
    }
  }
}

void filter_images(const FilterPlan& p, const FilterTask& task, int64_t from, int64_t to, const float* x, const float* dy, float* df,
                   float* bordered, float* packed) {
  const ConvDims& d = p.dims;
  Lookout lookout;
  for (int64_t image = from; image < to; ++image) {
    const float* a = x + image * d.height * d.width * d.channels;
    if (p.border.copies()) {
      fill_border(p.border, a, 0, p.border.rows, bordered);
      a = bordered;
    }
    filter_image(p, task, a, dy + image * d.out_height * d.out_width * d.out_channels, image == from, df, packed, lookout);
  }
}

// df = partial 0 + partial 1 + ..., in that order for every element.
void sum_partials(const FilterPlan& p, Pool& pool, int64_t stride, const char* memory, int64_t count, float* df) {
  constexpr int64_t kSlice = 4096;
  pool.parallel_for(ceil_div(count, kSlice), [&](int64_t slice) {
    const int64_t from = slice * kSlice, to = std::min(count, from + kSlice);
    for (int64_t shard = 0; shard < p.shards; ++shard) {
      const float* part = reinterpret_cast<const float*>(memory + shard * stride);
      if (shard == 0) {
        std::memcpy(df + from, part + from, static_cast<size_t>(to - from) * 4);
      } else {
        add_to_rows(df + from, part + from, df + from, 1, to - from);
      }
    }
  });
}

}  // namespace

FilterPlan conv_filter_plan(const ConvDims& d) {
  FilterPlan p;
  p.dims = d;
  p.tiles = &tile_set();
  p.border = {.height = d.height, .width = d.width, .channels = d.channels, .top = d.top, .left = d.left, .nchw = d.nchw};
  p.border.rows = reach(d.out_height, d.stride_y, d.filter_height, d.dilation_y);
  p.border.columns = reach(d.out_width, d.stride_x, d.filter_width, d.dilation_x);
  const int64_t filter = d.filter_height * d.filter_width * d.channels * d.out_channels;
  const double flops = 2.0 * static_cast<double>(d.batch * d.out_height * d.out_width) * static_cast<double>(filter);
  const int64_t wanted = wanted_shards(flops);
  p.split_filter = filter * 4 > kPartialBytes || d.batch < wanted;
  const int64_t panels = ceil_div(d.out_channels, 2 * p.tiles->lanes);
  const int64_t most = p.split_filter ? filter_pieces(d).count * panels : d.batch;
  p.shards = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(most, 1));
  if (p.border.copies()) p.image_bytes = floor_bytes(Bytes::of(p.border.rows, p.border.columns) * p.border.channels);
  p.packed_bytes = floor_bytes(Bytes::of(d.out_height, d.out_width) * (2 * p.tiles->lanes));
  if (!p.split_filter && p.shards > 1) p.partial_bytes = floor_bytes(Bytes(filter));
  return p;
}

void conv_filter(const FilterPlan& p, Pool& pool, const float* x, const float* dy, float* df, void* workspace) {
  const ConvDims& d = p.dims;
  const int64_t filter = d.filter_height * d.filter_width * d.channels * d.out_channels;
  if (d.batch * d.out_height * d.out_width == 0 || filter == 0) {
    std::memset(df, 0, static_cast<size_t>(filter) * 4);
    return;
  }
  const int64_t stride = p.partial_bytes + p.image_bytes + p.packed_bytes;
  const int64_t panels = ceil_div(d.out_channels, 2 * p.tiles->lanes), pieces = filter_pieces(d).count;
  char* memory = static_cast<char*>(workspace);
  pool.parallel_for(p.shards, [&](int64_t shard) {
    char* own = memory + shard * stride;
    float* sums = p.partial_bytes ? reinterpret_cast<float*>(own) : df;
    float* bordered = reinterpret_cast<float*>(own + p.partial_bytes);
    float* packed = reinterpret_cast<float*>(own + p.partial_bytes + p.image_bytes);
    if (!p.split_filter) {
      const FilterTask all = {0, pieces, 0, panels};
      filter_images(p, all, d.batch * shard / p.shards, d.batch * (shard + 1) / p.shards, x, dy, sums, bordered, packed);
      return;
    }
    const int64_t units = panels * pieces;
    for (int64_t unit = units * shard / p.shards; unit < units * (shard + 1) / p.shards;) {
      // Pieces of one panel that fall to this shard go together.
      const int64_t panel = unit / pieces, piece = unit % pieces;
      const int64_t end = std::min(units * (shard + 1) / p.shards, (panel + 1) * pieces);
      filter_images(p, {piece, piece + end - unit, panel, panel + 1}, 0, d.batch, x, dy, df, bordered, packed);
      unit = end;
    }
  });
  if (p.partial_bytes) sum_partials(p, pool, stride, memory, filter, df);
}

}  // namespace dtg::cpu
