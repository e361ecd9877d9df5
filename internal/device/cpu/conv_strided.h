// The gradient of a strided f32 convolution by its input, channels last. Input pixels whose distance is a multiple of the stride see
// the same taps of the filter: each such class is a gradient without stride, of a part of the filter, written with gaps. No zeros are
// inserted, so the work is that of the forward pass. Plans are immutable; the run allocates nothing.
#pragma once

#include <array>

#include "device/cpu/conv.h"

namespace dtg::cpu {

struct StridedInputPlan {
  static constexpr int kClassesMax = 16;
  struct Class {
    int64_t row = 0, column = 0;       // of its first pixel
    int64_t first_y = 0, first_x = 0;  // of the taps it sees: these, and every stride further
    int64_t taps_y = 0, taps_x = 0;    // none: its pixels are zeros
    SweepPlan sweep;
  };
  ConvDims dims;
  int classes = 0;
  std::array<Class, kClassesMax> list;
  int64_t filter_bytes = 0, sweep_bytes = 0;  // of the largest class
  Bytes workspace() const { return Bytes(filter_bytes) + Bytes(sweep_bytes); }
};

// Is there a stride, and can it be done this way?
bool is_strided(const ConvDims& dims);
StridedInputPlan strided_input_plan(const ConvDims& dims);
void strided_input(const StridedInputPlan& plan, Pool& pool, const float* dy, const float* filter, float* dx, void* workspace);

}  // namespace dtg::cpu
