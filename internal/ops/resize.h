// What the ops share that give images another size: the attributes, sizes that may come with the step, and where a sample lies.
// Part of a kernel's argument block; read-only once prepared, copied by a run whose sizes come with the step.
#pragma once

#include "graph/build.h"
#include "graph/infer.h"
#include "ops/integers.h"

namespace dtg::ops {

struct ResizeArgs {
  bool align = false, centers = false;    // align_corners, half_pixel_centers
  int64_t batch = 0, channels = 0;        // images have their channels last
  int64_t height = 0, width = 0;          // of what is sampled
  int64_t out_height = 0, out_width = 0;  // samples
  float scale_y = 1, scale_x = 1;
  int64_t shards = 1;
  Integers size;
  OutputSpec out;

  void set(const Node& node);
  void set_sizes(int64_t large_height, int64_t large_width, int64_t height_now, int64_t width_now);
  // Where sample `at` lies, in pixels.
  float place(int64_t at, float scale) const {
    return centers ? (static_cast<float>(at) + 0.5f) * scale - 0.5f : static_cast<float>(at) * scale;
  }
};

Status check_resize_flags(const Node& node);
// images [n, h, w, c] and size [2]; and for gradients: grads, original_image.
Status resize_shape(InferContext& c);
Status resize_grad_shape(InferContext& c);
Status prepare_resize(PrepareContext& c, ResizeArgs& a);
Status prepare_resize_grad(PrepareContext& c, ResizeArgs& a);
// Reads the size of this step, completes the arguments, gives the output's memory.
Result<char*> begin_resize(RunContext& c, ResizeArgs& a);
// Height and width, as the ops take them.
Value image_size(Build& b, Value images);
// The two attributes that they all have.
OpDef&& resize_def(OpDef&& def);

}  // namespace dtg::ops
