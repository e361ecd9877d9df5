// Plain loops for convolutions, for the element types and channel groups that the fast ones of conv.h leave
// out, and their oracle in tests. Sums are taken in Acc and rounded once. Each function does one unit of
// work, numbered [0, units), so that the caller shards as it likes. Pure functions; any thread.
#pragma once

#include <algorithm>

#include "device/cpu/conv.h"

namespace dtg::cpu {

// Taps so far apart that no two of an axis meet the image. The fast loops would make an image with a border of that size; the plain ones
// look only at what is there.
inline bool reaches_far(const ConvDims& d) {
  const auto far = [](int64_t taps, int64_t dilation, int64_t in, int64_t out, int64_t stride) {
    return taps > 1 && Bytes(dilation) > Bytes(in) + Bytes::of(out, stride);
  };
  return far(d.filter_height, d.dilation_y, d.height, d.out_height, d.stride_y) ||
         far(d.filter_width, d.dilation_x, d.width, d.out_width, d.stride_x);
}

// Where pixel channels lie, in either layout.
struct PixelLayout {
  int64_t image, row, column, channel;  // distances
  PixelLayout(bool nchw, int64_t height, int64_t width, int64_t channels)
      : image(height * width * channels),
        row(nchw ? width : width * channels),
        column(nchw ? 1 : channels),
        channel(nchw ? height * width : 1) {}
  int64_t at(int64_t n, int64_t y, int64_t x) const { return n * image + y * row + x * column; }
};

inline PixelLayout input_layout(const ConvDims& d) { return {d.nchw, d.height, d.width, d.channels}; }
inline PixelLayout output_layout(const ConvDims& d) { return {d.nchw, d.out_height, d.out_width, d.out_channels}; }

inline constexpr int64_t kPlainColumns = 64;  // sums held at a time

inline int64_t plain_forward_units(const ConvDims& d) { return d.batch * d.out_height; }

// A pixel of output or input, in steps.
inline int64_t plain_pixel_steps(const ConvDims& d, int64_t channels, int64_t taps_depth) {
  return 4 + channels * d.filter_height * d.filter_width * taps_depth;
}

// Pixels [begin, end) of a row of output.
template <class T, class Acc>
void plain_forward_pixels(const ConvDims& d, const T* x, const T* filter, T* y, int64_t unit, int64_t begin, int64_t end) {
  const PixelLayout in = input_layout(d), out = output_layout(d);
  const int64_t n = unit / d.out_height, oy = unit % d.out_height;
  const int64_t depth = d.filter_depth(), group_width = d.out_channels / d.groups;
  Acc sum[kPlainColumns];
  for (int64_t ox = begin; ox < end; ++ox) {
    for (int64_t first = 0; first < d.out_channels;) {
      const int64_t group = first / group_width;
      const int64_t count = std::min(kPlainColumns, (group + 1) * group_width - first);
      std::fill(sum, sum + count, Acc());
      for (int64_t ky = 0; ky < d.filter_height; ++ky) {
        const int64_t iy = oy * d.stride_y + ky * d.dilation_y - d.top;
        if (iy < 0 || iy >= d.height) continue;
        for (int64_t kx = 0; kx < d.filter_width; ++kx) {
          const int64_t ix = ox * d.stride_x + kx * d.dilation_x - d.left;
          if (ix < 0 || ix >= d.width) continue;
          const T* pixel = x + in.at(n, iy, ix) + group * depth * in.channel;
          const T* tap = filter + (ky * d.filter_width + kx) * depth * d.out_channels + first;
          for (int64_t k = 0; k < depth; ++k) {
            const Acc value = static_cast<Acc>(pixel[k * in.channel]);
            for (int64_t j = 0; j < count; ++j) sum[j] += value * static_cast<Acc>(tap[k * d.out_channels + j]);
          }
        }
      }
      T* to = y + out.at(n, oy, ox) + first * out.channel;
      for (int64_t j = 0; j < count; ++j) to[j * out.channel] = static_cast<T>(sum[j]);
      first += count;
    }
  }
}

// One row of output pixels.
template <class T, class Acc>
void plain_conv_forward(const ConvDims& d, const T* x, const T* filter, T* y, int64_t unit) {
  look_in_stretches(0, d.out_width, plain_pixel_steps(d, d.out_channels, d.filter_depth()), 1,
                    [&](int64_t begin, int64_t end) { plain_forward_pixels<T, Acc>(d, x, filter, y, unit, begin, end); });
}

inline int64_t plain_input_units(const ConvDims& d) { return d.batch * d.height; }

// Pixels [begin, end) of a row of the input's gradient.
template <class T, class Acc>
void plain_input_pixels(const ConvDims& d, const T* dy, const T* filter, T* dx, int64_t unit, int64_t begin, int64_t end) {
  const PixelLayout in = input_layout(d), out = output_layout(d);
  const int64_t n = unit / d.height, iy = unit % d.height;
  const int64_t depth = d.filter_depth(), group_width = d.out_channels / d.groups;
  for (int64_t ix = begin; ix < end; ++ix) {
    for (int64_t c = 0; c < d.channels; ++c) {
      const int64_t group = c / depth;
      Acc sum = Acc();
      for (int64_t ky = 0; ky < d.filter_height; ++ky) {
        const int64_t py = iy + d.top - ky * d.dilation_y;
        if (py < 0 || py % d.stride_y != 0 || py / d.stride_y >= d.out_height) continue;
        for (int64_t kx = 0; kx < d.filter_width; ++kx) {
          const int64_t px = ix + d.left - kx * d.dilation_x;
          if (px < 0 || px % d.stride_x != 0 || px / d.stride_x >= d.out_width) continue;
          const T* pixel = dy + out.at(n, py / d.stride_y, px / d.stride_x);
          const T* tap = filter + ((ky * d.filter_width + kx) * depth + c % depth) * d.out_channels;
          for (int64_t o = group * group_width; o < (group + 1) * group_width; ++o) {
            sum += static_cast<Acc>(pixel[o * out.channel]) * static_cast<Acc>(tap[o]);
          }
        }
      }
      dx[in.at(n, iy, ix) + c * in.channel] = static_cast<T>(sum);
    }
  }
}

// One row of the input's gradient.
template <class T, class Acc>
void plain_conv_input(const ConvDims& d, const T* dy, const T* filter, T* dx, int64_t unit) {
  look_in_stretches(0, d.width, plain_pixel_steps(d, d.channels, d.out_channels / d.groups), 1,
                    [&](int64_t begin, int64_t end) { plain_input_pixels<T, Acc>(d, dy, filter, dx, unit, begin, end); });
}

inline int64_t plain_filter_units(const ConvDims& d) { return d.filter_height * d.filter_width * d.filter_depth(); }

// What pixels [begin, end) of a row of output give the filter's gradient: `x` is the image's row at one input channel, `dy` the output's
// at the first of `count` channels.
template <class T, class Acc>
void plain_filter_pixels(const ConvDims& d, const T* x, const T* dy, int64_t kx, int64_t count, int64_t begin, int64_t end, Acc* sum) {
  const PixelLayout in = input_layout(d), out = output_layout(d);
  for (int64_t ox = begin; ox < end; ++ox) {
    const int64_t ix = ox * d.stride_x + kx * d.dilation_x - d.left;
    if (ix < 0 || ix >= d.width) continue;
    const Acc value = static_cast<Acc>(x[ix * in.column]);
    const T* pixel = dy + ox * out.column;
    for (int64_t j = 0; j < count; ++j) sum[j] += value * static_cast<Acc>(pixel[j * out.channel]);
  }
}

// One row of the filter's gradient: a tap and an input channel, all output channels.
template <class T, class Acc>
void plain_conv_filter(const ConvDims& d, const T* x, const T* dy, T* df, int64_t unit) {
  constexpr int64_t kStretch = 2048;  // pixels of a row between two looks
  const PixelLayout in = input_layout(d), out = output_layout(d);
  const int64_t depth = d.filter_depth(), group_width = d.out_channels / d.groups;
  const int64_t k = unit % depth, kx = unit / depth % d.filter_width, ky = unit / depth / d.filter_width;
  Acc sum[kPlainColumns];
  Lookout lookout;
  for (int64_t first = 0; first < d.out_channels;) {
    const int64_t group = first / group_width;
    const int64_t count = std::min(kPlainColumns, (group + 1) * group_width - first);
    std::fill(sum, sum + count, Acc());
    for (int64_t n = 0; n < d.batch; ++n) {
      for (int64_t oy = 0; oy < d.out_height; ++oy) {
        const int64_t iy = oy * d.stride_y + ky * d.dilation_y - d.top;
        if (iy < 0 || iy >= d.height) continue;
        const T *row = x + in.at(n, iy, 0) + (group * depth + k) * in.channel, *from = dy + out.at(n, oy, 0) + first * out.channel;
        for (int64_t begin = 0; begin < d.out_width; begin += kStretch) {
          const int64_t end = std::min(begin + kStretch, d.out_width);
          plain_filter_pixels<T, Acc>(d, row, from, kx, count, begin, end, sum);
          lookout.after(4 + (end - begin) * count);
        }
      }
    }
    T* to = df + unit * d.out_channels + first;
    for (int64_t j = 0; j < count; ++j) to[j] = static_cast<T>(sum[j]);
    first += count;
  }
}

}  // namespace dtg::cpu
