// Convolutions in groups of channels, f32, channels last: one convolution per group over its channels where they lie. The gradient of
// the filter copies a group's channels together first. Plans are immutable; the run functions allocate nothing.
#pragma once

#include "device/cpu/conv.h"

namespace dtg::cpu {

// All groups are alike; group g's pointers lie g times its channels further.
struct GroupedSweep {
  int64_t groups = 1, in_channels = 0, filter_columns = 0, out_channels = 0;  // of one group, in what the sweep reads and writes
  SweepPlan sweep;
  Bytes workspace() const { return sweep.workspace(); }
};

struct GroupedFilter {
  ConvDims dims;
  FilterPlan filter;
  int64_t image_bytes = 0, grad_bytes = 0, filter_bytes = 0;
  Bytes workspace() const { return Bytes(image_bytes) + Bytes(grad_bytes) + Bytes(filter_bytes) + filter.workspace(); }
};

bool is_grouped(const ConvDims& dims);
GroupedSweep grouped_forward_plan(const ConvDims& dims);
GroupedSweep grouped_input_plan(const ConvDims& dims);
GroupedFilter grouped_filter_plan(const ConvDims& dims);
void grouped_sweep(const GroupedSweep& plan, Pool& pool, const float* x, const float* filter, float* y, void* workspace);
void grouped_filter(const GroupedFilter& plan, Pool& pool, const float* x, const float* dy, float* df, void* workspace);

}  // namespace dtg::cpu
