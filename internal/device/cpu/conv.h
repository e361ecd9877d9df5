// Conv: f32 two-dimensional convolution and its two gradients, from the same register tiles as the matrix
// product. A filter row over NHWC pixels is one stretch of memory, so the input is read where it lies once
// the border is in place: per image, the padded image is copied into the shard's workspace (a few dozen
// kilobytes), the filter is packed once per run, and no im2col is ever written.
//
// All decisions are taken in the plan functions; the run functions allocate nothing. A plan is immutable and
// may be run by many threads at once, each with its own workspace. Shards and the order of sums depend on
// the sizes alone. Other element types and grouped channels take the plain loops of conv_plain.h.
#pragma once

#include <cstdint>

#include "base/pool.h"
#include "base/size.h"
#include "device/cpu/tile.h"

namespace dtg::cpu {

struct ConvDims {
  int64_t batch = 0;
  int64_t height = 0, width = 0, channels = 0;  // of the input
  int64_t filter_height = 0, filter_width = 0;
  int64_t out_height = 0, out_width = 0, out_channels = 0;
  int64_t stride_y = 1, stride_x = 1, dilation_y = 1, dilation_x = 1;
  int64_t top = 0, left = 0;  // padding before
  int64_t groups = 1;
  bool nchw = false;  // of input and output; filters are always [height, width, channels / groups, out_channels]
  int64_t filter_depth() const { return groups > 0 ? channels / groups : 0; }
};

// An image with its border: where source pixels come to lie, and how large it is.
struct Border {
  int64_t height = 0, width = 0, channels = 0;  // of the source
  int64_t top = 0, left = 0;                    // may be negative: rows cut off
  int64_t spread_y = 1, spread_x = 1;           // distance between source pixels
  int64_t rows = 0, columns = 0;                // with the border
  bool nchw = false;
  int64_t step = 0;  // between source pixels, where more lies there than these channels (a group of them); 0: they are dense
  bool copies() const;
  int64_t source_step() const { return step ? step : channels; }
  int64_t pitch() const { return (copies() ? columns : width) * channels; }
};

// A convolution swept over bordered images: the forward pass, and the gradient of the input.
struct SweepPlan {
  Border border;
  int64_t batch = 0;
  int64_t filter_height = 0, filter_width = 0;
  int64_t out_height = 0, out_width = 0, out_channels = 0;
  int64_t stride_y = 1, stride_x = 1, dilation_y = 1, dilation_x = 1;
  bool flipped = false;     // filter turned around and its channels exchanged: the gradient of the input
  int64_t image_parts = 1;  // an image's output rows are cut into that many units
  int64_t shards = 1;
  int64_t packed_bytes = 0, image_bytes = 0, result_bytes = 0;
  int64_t filter_pitch = 0;  // between rows of the filter; 0: they are dense
  // Distances in the output, where it is not dense: of pixels, rows and images. Channels last only.
  int64_t out_step = 0, out_pitch = 0, out_image = 0;
  const TileSet* tiles = nullptr;
  Bytes workspace() const { return Bytes(packed_bytes) + (Bytes(image_bytes) + Bytes(result_bytes)) * shards; }
};

SweepPlan conv_forward_plan(const ConvDims& dims);
SweepPlan conv_input_plan(const ConvDims& dims);
// Works out shards and memory of a sweep whose sizes are there.
SweepPlan finish_sweep(SweepPlan plan);
// `x` is the input, or the gradient of the output; bias and relu for the forward pass only.
void conv_sweep(const SweepPlan& plan, Pool& pool, const float* x, const float* filter, const float* bias, bool relu, float* y,
                void* workspace);

// The gradient of the filter.
struct FilterPlan {
  ConvDims dims;
  Border border;
  bool split_filter = false;  // shards own parts of the filter; otherwise images, with partial sums
  int64_t shards = 1;
  int64_t partial_bytes = 0, image_bytes = 0, packed_bytes = 0;  // per shard
  const TileSet* tiles = nullptr;
  Bytes workspace() const { return (Bytes(partial_bytes) + Bytes(image_bytes) + Bytes(packed_bytes)) * shards; }
};

FilterPlan conv_filter_plan(const ConvDims& dims);
void conv_filter(const FilterPlan& plan, Pool& pool, const float* x, const float* dy, float* df, void* workspace);

}  // namespace dtg::cpu
