// Depthwise: f32 convolution where every channel has filters of its own, NHWC, and its two gradients. There is no product of matrices
// in it: every output is a few multiplications, so the loops run along the channels of a strip of pixels and keep the filter's
// vectors for four pixels at a time. Where a channel has several filters, the input's channels are repeated first.
//
// All decisions are taken in the plan; the run functions allocate nothing. A plan is immutable and may be run by many threads at
// once, each with its own workspace. Shards and the order of sums depend on the sizes alone.
#pragma once

#include "base/pool.h"
#include "base/size.h"
#include "device/cpu/conv.h"

namespace dtg::cpu {

struct DepthwisePlan {
  ConvDims dims;       // groups == channels
  int64_t repeat = 1;  // filters of a channel
  int64_t shards = 1;
  int64_t shard_floats = 0;  // of the workspace
  Bytes workspace() const { return Bytes(shard_floats) * shards * 4; }
};

// Can these loops run it?
bool is_depthwise(const ConvDims& dims);

DepthwisePlan depthwise_forward_plan(const ConvDims& dims);
DepthwisePlan depthwise_input_plan(const ConvDims& dims);
DepthwisePlan depthwise_filter_plan(const ConvDims& dims);
void depthwise_forward(const DepthwisePlan& plan, Pool& pool, const float* x, const float* filter, float* y, void* workspace);
void depthwise_input(const DepthwisePlan& plan, Pool& pool, const float* dy, const float* filter, float* dx, void* workspace);
void depthwise_filter(const DepthwisePlan& plan, Pool& pool, const float* x, const float* dy, float* df, void* workspace);

// The inner loops, by themselves (depthwise_simd.cc). `taps` pointers, each to n channels of a pixel and of the filter; pixel p of the
// strip lies p * x_step further, its result p * y_step.
struct Strip {
  int64_t taps = 0, pixels = 0, n = 0, x_step = 0, y_step = 0;
};
inline constexpr int64_t kTapsMax = 64;  // larger windows go in parts, which are added
// y (+)= sum over the taps of x * filter
void depthwise_strip(const Strip& strip, const float* const* x, const float* const* filter, bool add, float* y);
// df[tap] += sum over the pixels of x[tap] * dy; y_step is that of dy.
void depthwise_strip_filter(const Strip& strip, const float* const* x, const float* dy, float* const* df);

}  // namespace dtg::cpu
