// See conv_grouped.h.
#include "device/cpu/conv_grouped.h"

#include <algorithm>

#include "device/cpu/copy.h"
#include "tensor/buffer.h"

namespace dtg::cpu {
namespace {

ConvDims one_group(const ConvDims& d) {
  ConvDims one = d;
  one.groups = 1;
  one.channels = d.channels / d.groups;
  one.out_channels = d.out_channels / d.groups;
  return one;
}

// `rows` stretches of `columns` floats, at a distance of `from_step` and `to_step`.
void copy_columns(Pool& pool, const float* from, int64_t rows, int64_t columns, int64_t from_step, float* to, int64_t to_step) {
  Walk walk(4);
  walk.add(rows, from_step * 4, to_step * 4);
  walk.add(columns, 4, 4);
  walk.finish();
  copy_walk(pool, walk, from, to);
}

int64_t room(int64_t rows, int64_t columns) { return (Bytes::of(rows, columns) * 4).aligned(kBlockAlign).value(); }

int64_t taps(const ConvDims& d) { return d.filter_height * d.filter_width; }

}  // namespace

bool is_grouped(const ConvDims& d) {
  return !d.nchw && d.groups > 1 && d.channels % d.groups == 0 && d.out_channels % d.groups == 0 && d.out_channels > 0;
}

GroupedSweep grouped_forward_plan(const ConvDims& d) {
  const ConvDims one = one_group(d);
  SweepPlan p = conv_forward_plan(one);
  p.border.step = d.channels;
  p.filter_pitch = d.out_channels;
  p.out_step = d.out_channels;
  p.out_pitch = d.out_width * d.out_channels;
  p.out_image = d.out_height * d.out_width * d.out_channels;
  return {d.groups, one.channels, one.out_channels, one.out_channels, finish_sweep(p)};
}

GroupedSweep grouped_input_plan(const ConvDims& d) {
  const ConvDims one = one_group(d);
  SweepPlan p = conv_input_plan(one);
  p.border.step = d.out_channels;
  p.filter_pitch = d.out_channels;
  p.out_step = d.channels;
  p.out_pitch = d.width * d.channels;
  p.out_image = d.height * d.width * d.channels;
  return {d.groups, one.out_channels, one.out_channels, one.channels, finish_sweep(p)};
}

GroupedFilter grouped_filter_plan(const ConvDims& d) {
  GroupedFilter p;
  p.dims = d;
  const ConvDims one = one_group(d);
  p.filter = conv_filter_plan(one);
  p.image_bytes = room(d.batch * d.height * d.width, one.channels);
  p.grad_bytes = room(d.batch * d.out_height * d.out_width, one.out_channels);
  p.filter_bytes = room(taps(d) * one.channels, one.out_channels);
  return p;
}

void grouped_sweep(const GroupedSweep& p, Pool& pool, const float* x, const float* filter, float* y, void* workspace) {
  for (int64_t g = 0; g < p.groups; ++g) {
    conv_sweep(p.sweep, pool, x + g * p.in_channels, filter + g * p.filter_columns, nullptr, false, y + g * p.out_channels, workspace);
  }
}

void grouped_filter(const GroupedFilter& p, Pool& pool, const float* x, const float* dy, float* df, void* workspace) {
  const ConvDims &d = p.dims, &one = p.filter.dims;
  char* memory = static_cast<char*>(workspace);
  auto* image = reinterpret_cast<float*>(memory);
  auto* grad = reinterpret_cast<float*>(memory + p.image_bytes);
  auto* part = reinterpret_cast<float*>(memory + p.image_bytes + p.grad_bytes);
  char* rest = memory + p.image_bytes + p.grad_bytes + p.filter_bytes;
  for (int64_t g = 0; g < d.groups; ++g) {
    copy_columns(pool, x + g * one.channels, d.batch * d.height * d.width, one.channels, d.channels, image, one.channels);
    copy_columns(pool, dy + g * one.out_channels, d.batch * d.out_height * d.out_width, one.out_channels, d.out_channels, grad,
                 one.out_channels);
    conv_filter(p.filter, pool, image, grad, part, rest);
    copy_columns(pool, part, taps(d) * one.channels, one.out_channels, one.out_channels, df + g * one.out_channels, d.out_channels);
  }
}

}  // namespace dtg::cpu
