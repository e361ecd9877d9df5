// See conv_strided.h.
#include "device/cpu/conv_strided.h"

#include <algorithm>
#include <cstring>

#include "tensor/buffer.h"

namespace dtg::cpu {
namespace {

// Along one axis: pixels first, first + stride, ... whose taps are tap, tap + stride, ...
struct Along {
  int64_t first, count;  // pixels
  int64_t tap, taps;
  int64_t above;  // how far the first pixel's first tap looks into the output's gradient
};

Along along(int64_t residue, int64_t pixels, int64_t filter, int64_t stride, int64_t before) {
  Along a{};
  a.tap = residue;
  a.taps = filter > residue ? (filter - residue + stride - 1) / stride : 0;
  a.first = ((residue - before) % stride + stride) % stride;
  a.count = a.first < pixels ? (pixels - a.first + stride - 1) / stride : 0;
  a.above = (a.first + before - residue) / stride;
  return a;
}

SweepPlan class_sweep(const ConvDims& d, const Along& y, const Along& x) {
  SweepPlan p;
  p.border = {.height = d.out_height,
              .width = d.out_width,
              .channels = d.out_channels,
              .top = y.taps - 1 - y.above,
              .left = x.taps - 1 - x.above,
              .rows = y.count + y.taps - 1,
              .columns = x.count + x.taps - 1};
  p.batch = d.batch;
  p.filter_height = y.taps, p.filter_width = x.taps;
  p.out_height = y.count, p.out_width = x.count, p.out_channels = d.channels;
  p.out_step = d.stride_x * d.channels;
  p.out_pitch = d.stride_y * d.width * d.channels;
  p.out_image = d.height * d.width * d.channels;
  p.flipped = true;
  return finish_sweep(p);
}

// The taps that a class sees, next to each other.
void gather_taps(const ConvDims& d, const StridedInputPlan::Class& one, const float* filter, float* out) {
  const int64_t tap = d.channels * d.out_channels;
  for (int64_t y = 0; y < one.taps_y; ++y) {
    for (int64_t x = 0; x < one.taps_x; ++x, out += tap) {
      const int64_t from = (one.first_y + y * d.stride_y) * d.filter_width + one.first_x + x * d.stride_x;
      std::memcpy(out, filter + from * tap, static_cast<size_t>(tap) * sizeof(float));
    }
  }
}

void clear_class(const ConvDims& d, const StridedInputPlan::Class& one, float* dx) {
  for (int64_t n = 0; n < d.batch; ++n) {
    for (int64_t y = one.row; y < d.height; y += d.stride_y) {
      for (int64_t x = one.column; x < d.width; x += d.stride_x) {
        std::memset(dx + ((n * d.height + y) * d.width + x) * d.channels, 0, static_cast<size_t>(d.channels) * sizeof(float));
      }
    }
  }
}

}  // namespace

bool is_strided(const ConvDims& d) {
  return !d.nchw && d.groups == 1 && d.dilation_y == 1 && d.dilation_x == 1 && d.stride_y * d.stride_x > 1 &&
         d.stride_y * d.stride_x <= StridedInputPlan::kClassesMax;
}

StridedInputPlan strided_input_plan(const ConvDims& d) {
  StridedInputPlan p;
  p.dims = d;
  for (int64_t ry = 0; ry < d.stride_y; ++ry) {
    const Along y = along(ry, d.height, d.filter_height, d.stride_y, d.top);
    for (int64_t rx = 0; rx < d.stride_x; ++rx) {
      const Along x = along(rx, d.width, d.filter_width, d.stride_x, d.left);
      if (y.count == 0 || x.count == 0) continue;
      StridedInputPlan::Class& one = p.list[static_cast<size_t>(p.classes++)];
      one.row = y.first, one.column = x.first, one.first_y = y.tap, one.first_x = x.tap;
      one.taps_y = y.taps, one.taps_x = x.taps;
      if (y.taps == 0 || x.taps == 0) continue;
      one.sweep = class_sweep(d, y, x);
      const Bytes filter = (Bytes::of(y.taps, x.taps) * d.channels * d.out_channels * 4).aligned(kBlockAlign);
      p.filter_bytes = std::max(p.filter_bytes, filter.value());
      p.sweep_bytes = std::max(p.sweep_bytes, one.sweep.workspace().value());
    }
  }
  return p;
}

void strided_input(const StridedInputPlan& p, Pool& pool, const float* dy, const float* filter, float* dx, void* workspace) {
  auto* taps = static_cast<float*>(workspace);
  char* rest = static_cast<char*>(workspace) + p.filter_bytes;
  for (int i = 0; i < p.classes; ++i) {
    const StridedInputPlan::Class& one = p.list[static_cast<size_t>(i)];
    if (one.taps_y == 0 || one.taps_x == 0) {
      clear_class(p.dims, one, dx);
      continue;
    }
    gather_taps(p.dims, one, filter, taps);
    conv_sweep(one.sweep, pool, dy, taps, nullptr, false, dx + (one.row * p.dims.width + one.column) * p.dims.channels, rest);
  }
}

}  // namespace dtg::cpu
