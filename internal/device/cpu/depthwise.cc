// Plans and rows of the depthwise convolution, see depthwise.h.
#include "device/cpu/depthwise.h"

#include <algorithm>
#include <cstring>

namespace dtg::cpu {
namespace {

constexpr int64_t kShardsMax = 16;
constexpr double kShardSteps = 1 << 18;

int64_t reach(const ConvDims& d) { return (d.filter_height - 1) * d.dilation_y + 1; }

DepthwisePlan plan_for(const ConvDims& d, int64_t units) {
  DepthwisePlan p;
  p.dims = d;
  p.repeat = d.out_channels / d.channels;
  const double steps = static_cast<double>(d.batch * d.out_height * d.out_width) * static_cast<double>(d.out_channels) *
                       static_cast<double>(d.filter_height * d.filter_width);
  p.shards = std::clamp<int64_t>(static_cast<int64_t>(steps / kShardSteps), 1, std::clamp<int64_t>(units, 1, kShardsMax));
  return p;
}

// Taps along one axis for output positions that look at [first - before, ...): which of them exist.
struct Taps {
  int64_t begin, end;
};

int64_t ceil_div(int64_t a, int64_t b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }

// The k for which 0 <= first + k * step < size.
Taps taps_inside(int64_t first, int64_t step, int64_t size, int64_t count) {
  const int64_t begin = first < 0 ? ceil_div(-first, step) : 0;
  const int64_t end = first < size ? (size - 1 - first) / step + 1 : 0;
  return {std::min(begin, count), std::max(std::min(end, count), std::min(begin, count))};
}

// Input rows with each channel repeated, kept while the rows below still look at them.
class RepeatedRows {
 public:
  // Without repetition the rows are read where they lie, and there need not be memory.
  RepeatedRows(const DepthwisePlan& p, float* memory) : p_(p), slots_(reach(p.dims)) {
    if (p.repeat == 1) return;
    rows_ = memory + 2 * slots_;
    numbers_ = reinterpret_cast<int64_t*>(memory);
    std::fill(numbers_, numbers_ + slots_, -1);
  }
  static Bytes floats(const DepthwisePlan& p) { return (Bytes::of(p.dims.width, p.dims.out_channels) + Bytes(2)) * reach(p.dims); }

  // Row `number` of all images, counted through.
  const float* row(const float* x, int64_t number) {
    const ConvDims& d = p_.dims;
    const float* from = x + number * d.width * d.channels;
    if (p_.repeat == 1) return from;
    const int64_t slot = number % slots_;
    float* to = rows_ + slot * d.width * d.out_channels;
    if (numbers_[slot] == number) return to;
    numbers_[slot] = number;
    look_in_stretches(0, d.width * d.channels, p_.repeat, 1, [&](int64_t begin, int64_t end) {
      float* at = to + begin * p_.repeat;
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t m = 0; m < p_.repeat; ++m) *at++ = from[i];
      }
    });
    return to;
  }

 private:
  const DepthwisePlan& p_;
  int64_t slots_;
  int64_t* numbers_ = nullptr;
  float* rows_ = nullptr;
};

// Output columns whose windows lie inside, [begin, end); the others are done one by one.
struct Interior {
  int64_t begin, end;
};

Interior interior_columns(const ConvDims& d) {
  const int64_t begin = std::min(ceil_div(d.left, d.stride_x), d.out_width);
  const int64_t room = d.width - 1 - (d.filter_width - 1) * d.dilation_x + d.left;
  const int64_t end = room < 0 ? 0 : std::min(room / d.stride_x + 1, d.out_width);
  return {begin, std::max(begin, end)};
}

// A pixel, in steps of eight elements.
int64_t pixel_steps(const ConvDims& d) { return d.out_channels * d.filter_height * d.filter_width / 8 + 1; }

// Long strips come in stretches of so many pixels, a multiple of those that the loops take at a time.
template <class Fn>
void in_stretches(const ConvDims& d, Interior pixels, Fn fn) {
  if (pixels.end > pixels.begin) look_in_stretches(pixels.begin, pixels.end, pixel_steps(d), 16, fn);
}

// fn(first output column, count, taps along x that exist) for a row of output.
template <class Fn>
void for_strips(const ConvDims& d, Fn fn) {
  const Interior inside = interior_columns(d);
  const auto alone = [&](int64_t from, int64_t to) {
    look_between(from, to, pixel_steps(d),
                 [&](int64_t ox) { fn(ox, 1, taps_inside(ox * d.stride_x - d.left, d.dilation_x, d.width, d.filter_width)); });
  };
  alone(0, inside.begin);
  in_stretches(d, inside, [&](int64_t from, int64_t to) { fn(from, to - from, Taps{0, d.filter_width}); });
  alone(inside.end, d.out_width);
}

void clear_pixels(const Strip& s, float* y) {
  for (int64_t p = 0; p < s.pixels; ++p) std::memset(y + p * s.y_step, 0, static_cast<size_t>(s.n) * sizeof(float));
}

// A list of taps that is run whenever it is full.
class TapList {
 public:
  TapList(const Strip& strip, float* y) : strip_(strip), y_(y) {}
  void push(const float* x, const float* filter) {
    x_[strip_.taps] = x, filter_[strip_.taps] = filter;
    if (++strip_.taps == kTapsMax) flush();
  }
  void finish() {
    if (strip_.taps > 0) flush();
    if (!added_) clear_pixels(strip_, y_);
  }

 private:
  void flush() {
    depthwise_strip(strip_, x_, filter_, added_, y_);
    added_ = true;
    strip_.taps = 0;
  }
  Strip strip_;
  float* y_;
  bool added_ = false;
  const float* x_[kTapsMax];
  const float* filter_[kTapsMax];
};

void forward_row(const DepthwisePlan& p, RepeatedRows& rows, const float* x, const float* filter, float* y, int64_t unit) {
  const ConvDims& d = p.dims;
  const int64_t n = unit / d.out_height, oy = unit % d.out_height, c = d.out_channels, first = oy * d.stride_y - d.top;
  const Taps down = taps_inside(first, d.dilation_y, d.height, d.filter_height);
  float* to = y + unit * d.out_width * c;
  for_strips(d, [&](int64_t ox, int64_t count, Taps along) {
    TapList list({0, count, c, d.stride_x * c, c}, to + ox * c);
    for (int64_t ky = down.begin; ky < down.end; ++ky) {
      const float* row = rows.row(x, n * d.height + first + ky * d.dilation_y);
      for (int64_t kx = along.begin; kx < along.end; ++kx) {
        list.push(row + (ox * d.stride_x - d.left + kx * d.dilation_x) * c, filter + (ky * d.filter_width + kx) * c);
      }
    }
    list.finish();
  });
}

// Pixels `first`, first + stride, ... of a row of the input's gradient, `count` of them: the same taps reach all of them.
struct Class {
  int64_t first, count;
};

void input_strip(const DepthwisePlan& p, const float* dy, const float* filter, int64_t n, int64_t iy, Class pixels, float* row) {
  const ConvDims& d = p.dims;
  const int64_t c = d.out_channels;
  TapList list({0, pixels.count, c, c, d.stride_x * c}, row + pixels.first * c);
  for (int64_t ky = 0; ky < d.filter_height; ++ky) {
    const int64_t py = iy + d.top - ky * d.dilation_y;
    if (py < 0 || py % d.stride_y != 0 || py / d.stride_y >= d.out_height) continue;
    for (int64_t kx = 0; kx < d.filter_width; ++kx) {
      const int64_t px = pixels.first + d.left - kx * d.dilation_x;
      if (px < 0 || px % d.stride_x != 0 || px / d.stride_x >= d.out_width) continue;
      list.push(dy + ((n * d.out_height + py / d.stride_y) * d.out_width + px / d.stride_x) * c, filter + (ky * d.filter_width + kx) * c);
    }
  }
  list.finish();
}

// The pixels of one class between which no tap falls off the output: [begin, end) of its numbers.
Interior interior_class(const ConvDims& d, int64_t first, int64_t count) {
  int64_t begin = 0, end = count;
  for (int64_t kx = 0; kx < d.filter_width; ++kx) {
    const int64_t px = first + d.left - kx * d.dilation_x;
    if (((px % d.stride_x) + d.stride_x) % d.stride_x != 0) continue;
    const int64_t ox = px / d.stride_x;  // exact
    begin = std::max(begin, -ox);
    end = std::min(end, d.out_width - ox);
  }
  begin = std::min(begin, count);
  return {begin, std::max(begin, end)};
}

void input_row(const DepthwisePlan& p, const float* dy, const float* filter, float* dx, float* buffer, int64_t unit) {
  const ConvDims& d = p.dims;
  const int64_t n = unit / d.height, iy = unit % d.height;
  float* row = p.repeat == 1 ? dx + unit * d.width * d.channels : buffer;
  for (int64_t first = 0; first < std::min(d.stride_x, d.width); ++first) {
    const int64_t count = (d.width - first + d.stride_x - 1) / d.stride_x;
    const Interior inside = interior_class(d, first, count);
    const auto alone = [&](int64_t from, int64_t to) {
      look_between(from, to, pixel_steps(d), [&](int64_t j) { input_strip(p, dy, filter, n, iy, {first + j * d.stride_x, 1}, row); });
    };
    alone(0, inside.begin);
    in_stretches(d, inside, [&](int64_t from, int64_t to) {
      input_strip(p, dy, filter, n, iy, {first + from * d.stride_x, to - from}, row);
    });
    alone(inside.end, count);
  }
  if (p.repeat == 1) return;
  float* to = dx + unit * d.width * d.channels;
  look_in_stretches(0, d.width * d.channels, p.repeat, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float sum = 0;
      for (int64_t m = 0; m < p.repeat; ++m) sum += buffer[i * p.repeat + m];
      to[i] = sum;
    }
  });
}

void filter_row(const DepthwisePlan& p, RepeatedRows& rows, const float* x, const float* dy, float* df, int64_t unit) {
  const ConvDims& d = p.dims;
  const int64_t n = unit / d.out_height, oy = unit % d.out_height, c = d.out_channels, first = oy * d.stride_y - d.top;
  const Taps down = taps_inside(first, d.dilation_y, d.height, d.filter_height);
  for_strips(d, [&](int64_t ox, int64_t count, Taps along) {
    const float* from[kTapsMax];
    float* to[kTapsMax];
    Strip strip{0, count, c, d.stride_x * c, c};
    const auto flush = [&] {
      depthwise_strip_filter(strip, from, dy + (unit * d.out_width + ox) * c, to);
      strip.taps = 0;
    };
    for (int64_t ky = down.begin; ky < down.end; ++ky) {
      const float* row = rows.row(x, n * d.height + first + ky * d.dilation_y);
      for (int64_t kx = along.begin; kx < along.end; ++kx) {
        from[strip.taps] = row + (ox * d.stride_x - d.left + kx * d.dilation_x) * c;
        to[strip.taps] = df + (ky * d.filter_width + kx) * c;
        if (++strip.taps == kTapsMax) flush();
      }
    }
    if (strip.taps > 0) flush();
  });
}

template <class Fn>
void for_units(const DepthwisePlan& p, Pool& pool, int64_t units, void* workspace, Fn fn) {
  pool.parallel_for(p.shards, [&](int64_t shard) {
    fn(static_cast<float*>(workspace) + shard * p.shard_floats, units * shard / p.shards, units * (shard + 1) / p.shards);
  });
}

// A row of output or input pixels, in steps of eight elements.
int64_t row_steps(const DepthwisePlan& p) {
  const ConvDims& d = p.dims;
  return std::max(d.width, d.out_width) * d.out_channels * d.filter_height * d.filter_width / 8;
}

// Even, so that the numbers of the rows lie on their own boundaries.
int64_t even(Bytes floats) { return floats.aligned(2).value(); }
Bytes filter_floats(const ConvDims& d) { return Bytes(d.filter_height) * d.filter_width * d.out_channels; }

}  // namespace

bool is_depthwise(const ConvDims& d) { return !d.nchw && d.groups > 1 && d.groups == d.channels && d.out_channels % d.channels == 0; }

DepthwisePlan depthwise_forward_plan(const ConvDims& d) {
  DepthwisePlan p = plan_for(d, d.batch * d.out_height);
  if (p.repeat > 1) p.shard_floats = even(RepeatedRows::floats(p));
  return p;
}

DepthwisePlan depthwise_input_plan(const ConvDims& d) {
  DepthwisePlan p = plan_for(d, d.batch * d.height);
  if (p.repeat > 1) p.shard_floats = d.width * d.out_channels;
  return p;
}

DepthwisePlan depthwise_filter_plan(const ConvDims& d) {
  DepthwisePlan p = plan_for(d, d.batch * d.out_height);
  p.shard_floats = even(filter_floats(d) + (p.repeat > 1 ? RepeatedRows::floats(p) : Bytes()) + Bytes(1));
  return p;
}

void depthwise_forward(const DepthwisePlan& p, Pool& pool, const float* x, const float* filter, float* y, void* workspace) {
  for_units(p, pool, p.dims.batch * p.dims.out_height, workspace, [&](float* memory, int64_t from, int64_t to) {
    RepeatedRows rows(p, memory);
    look_between(from, to, row_steps(p), [&](int64_t unit) { forward_row(p, rows, x, filter, y, unit); });
  });
}

void depthwise_input(const DepthwisePlan& p, Pool& pool, const float* dy, const float* filter, float* dx, void* workspace) {
  for_units(p, pool, p.dims.batch * p.dims.height, workspace, [&](float* memory, int64_t from, int64_t to) {
    look_between(from, to, row_steps(p), [&](int64_t unit) { input_row(p, dy, filter, dx, memory, unit); });
  });
}

void depthwise_filter(const DepthwisePlan& p, Pool& pool, const float* x, const float* dy, float* df, void* workspace) {
  const int64_t count = p.dims.filter_height * p.dims.filter_width * p.dims.out_channels;
  for_units(p, pool, p.dims.batch * p.dims.out_height, workspace, [&](float* memory, int64_t from, int64_t to) {
    std::fill(memory, memory + count, 0.0f);
    RepeatedRows rows(p, memory + even(Bytes(count)));
    look_between(from, to, row_steps(p), [&](int64_t unit) { filter_row(p, rows, x, dy, memory, unit); });
  });
  const auto* parts = static_cast<const float*>(workspace);
  for (int64_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int64_t shard = 0; shard < p.shards; ++shard) sum += parts[shard * p.shard_floats + i];
    df[i] = sum;
  }
}

}  // namespace dtg::cpu
