// What pooling over windows of an image shares: the window in numbers, the pixels of one position, and the loops of the maximum and its
// gradients. One output row is the unit of what looks into windows, one image that of what adds into them (windows overlap); the end of
// the run is looked for within both. Values and pure functions; any thread.
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "base/watched.h"
#include "device/cpu/conv_plain.h"
#include "device/cpu/rows.h"
#include "exec/kernel.h"
#include "ops/window.h"

namespace dtg::ops {

using cpu::PixelLayout;

struct PoolArgs {
  int64_t batch = 0, height = 0, width = 0, channels = 0, out_height = 0, out_width = 0;
  int64_t size_y = 1, size_x = 1, stride_y = 1, stride_x = 1, top = 0, left = 0;
  int64_t group = 1;  // channels per window, where windows lie along the channels
  bool nchw = false;
  bool apart = false;     // windows neither overlap nor leave anything out
  bool positive = false;  // _MaxPoolGradRelu: nothing flows where the maximum is not above zero
  int64_t shards = 1;
  // How many pixels a window has.
  int64_t window() const { return std::max<int64_t>(1, std::min(size_y, height) * std::min(size_x, width)); }
  PixelLayout in() const { return {nchw, height, width, channels}; }
  PixelLayout out() const { return {nchw, out_height, out_width, channels}; }
};

// Pixels of a window between two looks. Smaller windows have none: whoever goes from one to the next looks there.
inline constexpr int64_t kWindowStretch = 10'000;

// The pixels of one window that exist.
struct Clip {
  int64_t y0, y1, x0, x1;
  Clip(const PoolArgs& a, int64_t oy, int64_t ox)
      : y0(std::max<int64_t>(oy * a.stride_y - a.top, 0)),
        y1(std::min(oy * a.stride_y - a.top + a.size_y, a.height)),
        x0(std::max<int64_t>(ox * a.stride_x - a.left, 0)),
        x1(std::min(ox * a.stride_x - a.left + a.size_x, a.width)) {}
  int64_t count() const { return std::max<int64_t>(y1 - y0, 0) * std::max<int64_t>(x1 - x0, 0); }
  // Calls fn(y, from, to) for its rows, those of a large window in stretches; `lookout` is told of each, of so many steps a pixel.
  template <class Fn>
  void rows(int64_t steps, Lookout& lookout, Fn fn) const {
    if (count() <= kWindowStretch) {
      for (int64_t y = y0; y < y1; ++y) fn(y, x0, x1);
      return;
    }
    for (int64_t y = y0; y < y1; ++y) {
      for (int64_t from = x0; from < x1; from += kWindowStretch) {
        const int64_t to = std::min(x1, from + kWindowStretch);
        fn(y, from, to);
        lookout.after(steps * (to - from));
      }
    }
  }
};

// Most pixels of a window that the Highway loops take; larger windows go the plain way.
inline constexpr int64_t kPixelsMax = 64;

template <class T>
int64_t gather_pixels(const Clip& clip, const PixelLayout& in, int64_t n, T* x, T** pixels) {
  int64_t count = 0;
  for (int64_t y = clip.y0; y < clip.y1; ++y) {
    for (int64_t i = clip.x0; i < clip.x1; ++i) pixels[count++] = x + in.at(n, y, i);
  }
  return count;
}

template <class T>
T lowest() {
  if constexpr (std::is_same_v<T, Half>) return Half(-65504.0f);
  if constexpr (std::is_same_v<T, BFloat16>) return BFloat16(-3.3895314e38f);
  if constexpr (std::is_arithmetic_v<T>) return std::numeric_limits<T>::lowest();
}

// As below, for large windows.
template <class T>
[[gnu::noinline]] int64_t first_largest_of_many(const Clip& clip, const PixelLayout& in, int64_t n, int64_t channel, const T* x,
                                                Lookout& lookout) {
  int64_t best = -1;
  clip.rows(2, lookout, [&](int64_t y, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      const int64_t at = in.at(n, y, i) + channel * in.channel;
      if (best < 0 || x[best] < x[at]) best = at;
    }
  });
  return best;
}

// The first pixel with the largest value, as an offset from x; -1 where the window is empty.
template <class T>
int64_t first_largest(const Clip& clip, const PixelLayout& in, int64_t n, int64_t channel, const T* x, Lookout& lookout) {
  if (clip.count() > kWindowStretch) return first_largest_of_many(clip, in, n, channel, x, lookout);
  int64_t best = -1;
  for (int64_t y = clip.y0; y < clip.y1; ++y) {
    for (int64_t i = clip.x0; i < clip.x1; ++i) {
      const int64_t at = in.at(n, y, i) + channel * in.channel;
      if (best < 0 || x[best] < x[at]) best = at;
    }
  }
  return best;
}

template <class T>
void max_row(const PoolArgs& a, const T* x, T* y, int64_t n, int64_t oy, int64_t first, int64_t last) {
  Lookout lookout;
  const PixelLayout in = a.in(), out = a.out();
  for (int64_t ox = first; ox < last; ++ox) {
    const Clip clip(a, oy, ox);
    T* to = y + out.at(n, oy, ox);
    if constexpr (std::is_same_v<T, float>) {
      if (!a.nchw && clip.count() <= kPixelsMax) {
        const float* pixels[kPixelsMax];
        const int64_t count = gather_pixels(clip, in, n, x, pixels);
        cpu::largest_pixel(pixels, count, a.channels, false, to);
        continue;
      }
    }
    for (int64_t k = 0; k < a.channels; ++k) {
      T best = lowest<T>();
      clip.rows(1, lookout, [&](int64_t iy, int64_t from, int64_t end) {
        for (int64_t ix = from; ix < end; ++ix) {
          const T value = x[in.at(n, iy, ix) + k * in.channel];
          if (best < value) best = value;
        }
      });
      to[k * out.channel] = best;
    }
  }
}

// A window counts as no more than that between two looks at output rows: larger ones look by themselves.
inline int64_t position_steps(const PoolArgs& a) { return std::max<int64_t>(a.channels * std::min(a.window(), kWindowStretch), 1); }

// Calls fn(n, oy, first, last) for the output rows [begin, end) of all images: for all of a row, or for one stretch of it after the other.
template <class Fn>
void each_output_row(const PoolArgs& a, int64_t begin, int64_t end, Fn fn) {
  const int64_t steps = position_steps(a);
  for (const int64_t row : watched(begin, end, a.out_width * steps)) {
    look_in_stretches(0, a.out_width, steps, 1,
                      [&](int64_t first, int64_t last) { fn(row / a.out_height, row % a.out_height, first, last); });
  }
}

template <class Fn>
void for_output_rows(Pool& pool, const PoolArgs& a, Fn fn) {
  const int64_t rows = a.batch * a.out_height;
  pool.parallel_for(a.shards, [&](int64_t shard) { each_output_row(a, rows * shard / a.shards, rows * (shard + 1) / a.shards, fn); });
}

template <class Fn>
void for_images(Pool& pool, const PoolArgs& a, Fn fn) {
  const int64_t shards = std::clamp<int64_t>(a.batch, 1, a.shards), steps = a.out_height * a.out_width * position_steps(a);
  pool.parallel_for(shards, [&](int64_t shard) {
    for (const int64_t n : watched(a.batch * shard / shards, a.batch * (shard + 1) / shards, steps)) fn(n);
  });
}

template <class T>
void max_rows(Pool& pool, const PoolArgs& a, const T* x, T* y) {
  for_output_rows(pool, a, [&](int64_t n, int64_t oy, int64_t first, int64_t last) { max_row(a, x, y, n, oy, first, last); });
}

// Windows along the channels: every `group` of them becomes one.
template <class T>
void max_channels(Pool& pool, const PoolArgs& a, const T* x, T* y) {
  const PixelLayout in = a.in(), out{a.nchw, a.height, a.width, a.channels / a.group};
  for_output_rows(pool, a, [&](int64_t n, int64_t oy, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      for (int64_t k = 0; k < a.channels / a.group; ++k) {
        T best = lowest<T>();
        for (int64_t g = 0; g < a.group; ++g) {
          const T value = x[in.at(n, oy, i) + (k * a.group + g) * in.channel];
          if (best < value) best = value;
        }
        y[out.at(n, oy, i) + k * out.channel] = best;
      }
    }
  });
}

template <class T>
void add_to(T& to, T value) {
  if constexpr (std::is_integral_v<T>) {
    to = static_cast<T>(static_cast<uint64_t>(to) + static_cast<uint64_t>(value));
  } else if constexpr (std::is_same_v<T, double>) {
    to += value;
  } else {
    to = static_cast<T>(static_cast<float>(to) + static_cast<float>(value));
  }
}

template <class T>
void max_grad_image(const PoolArgs& a, const T* x, const T* dy, T* dx, int64_t n) {
  const PixelLayout in = a.in(), out = a.out();
  const bool fast = std::is_same_v<T, float> && !a.nchw && a.size_y * a.size_x <= kPixelsMax;
  if (!(fast && a.apart)) watched_fill(dx + n * in.image, dx + (n + 1) * in.image, T());
  each_output_row(a, n * a.out_height, (n + 1) * a.out_height, [&](int64_t, int64_t oy, int64_t first, int64_t last) {
    Lookout lookout;
    for (int64_t ox = first; ox < last; ++ox) {
      const Clip clip(a, oy, ox);
      if (clip.count() == 0) continue;
      const T* from = dy + out.at(n, oy, ox);
      if constexpr (std::is_same_v<T, float>) {
        if (fast) {
          const float* pixels[kPixelsMax];
          float* places[kPixelsMax];
          const int64_t count = gather_pixels(clip, in, n, x, pixels);
          gather_pixels(clip, in, n, dx, places);
          cpu::largest_pixel_gradient(pixels, places, count, a.channels, from, {.add = !a.apart, .positive = a.positive});
          continue;
        }
      }
      for (int64_t k = 0; k < a.channels; ++k) {
        const int64_t at = first_largest(clip, in, n, k, x, lookout);
        if (!a.positive || x[at] > T()) add_to(dx[at], from[k * out.channel]);
      }
    }
  });
}

template <class T>
void max_grad_images(Pool& pool, const PoolArgs& a, const T* x, const T* dy, T* dx) {
  for_images(pool, a, [&](int64_t n) { max_grad_image(a, x, dy, dx, n); });
}

// Of each window, what `g` has at the first pixel that holds the maximum.
template <class T>
void max_grad_grad_rows(Pool& pool, const PoolArgs& a, const T* x, const T* g, T* to) {
  const PixelLayout in = a.in(), out = a.out();
  for_output_rows(pool, a, [&](int64_t n, int64_t oy, int64_t first, int64_t last) {
    Lookout lookout;
    for (int64_t ox = first; ox < last; ++ox) {
      const Clip clip(a, oy, ox);
      for (int64_t k = 0; k < a.channels; ++k) {
        const int64_t at = first_largest(clip, in, n, k, x, lookout);
        to[out.at(n, oy, ox) + k * out.channel] = at < 0 ? T() : g[at];
      }
    }
  });
}

// The pooled shape of an image shape; windows over channels divide them (maximum only).
Result<PartialShape> pooled_shape(const Node& node, const Window& w, const PartialShape& image);
// Fills in what a window makes of images of that shape.
Status set_pool(const Node& node, const Window& w, PoolArgs& a, const Shape& image);

}  // namespace dtg::ops
