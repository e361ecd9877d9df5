// ResizeBicubic and its gradient: each pixel a weighted sum of the 4 x 4 around its place, with the weights of a cubic convolution
// (Keys). As in TensorFlow, places are rounded to 1/1024 of a pixel, the steepness is -0.75 with repeated borders, and -0.5 with
// weights that leave out what lies outside where pixels have their centers at halves. Registered once; kernels run on any thread.
#include <algorithm>
#include <cmath>

#include "base/watched.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/resize.h"

namespace dtg::ops {
namespace {

constexpr int64_t kStrip = 64;  // columns whose samples are worked out at a time
constexpr double kSteps = 1024;

struct Taps {
  int64_t at[4];
  float weight[4];
};

// The weight of a pixel at distance x from the sample: one cubic up to 1, another up to 2.
float near_weight(double a, double x) { return static_cast<float>(((a + 2) * x - (a + 3)) * x * x + 1); }
float far_weight(double a, double x) { return static_cast<float>(((a * x - 5 * a) * x + 8 * a) * x - 4 * a); }

Taps taps_of(const ResizeArgs& r, int64_t sample, float scale, int64_t limit) {
  const float place = r.place(sample, scale);
  const auto first = static_cast<int64_t>(std::floor(place));
  const double a = r.centers ? -0.5 : -0.75;
  const double delta = static_cast<double>(std::lrint((place - static_cast<float>(first)) * static_cast<float>(kSteps))) / kSteps;
  Taps taps{{first - 1, first, first + 1, first + 2},
            {far_weight(a, 1 + delta), near_weight(a, delta), near_weight(a, 1 - delta), far_weight(a, 2 - delta)}};
  float sum = 0;
  for (int i = 0; i < 4; ++i) {
    const int64_t inside = std::clamp<int64_t>(taps.at[i], 0, limit - 1);
    if (r.centers && inside != taps.at[i]) taps.weight[i] = 0;
    taps.at[i] = inside;
    sum += taps.weight[i];
  }
  if (r.centers && std::fabs(sum) >= 1000.0f * std::numeric_limits<float>::min()) {
    for (float& weight : taps.weight) weight /= sum;
  }
  return taps;
}

template <class T>
Status bicubic_run(RunContext& c) {
  ResizeArgs a = c.args<ResizeArgs>();
  DTG_ASSIGN(char* memory, begin_resize(c, a));
  auto* out = reinterpret_cast<float*>(memory);
  const int64_t rows = a.batch * a.out_height;
  c.pool().parallel_for(a.shards, [&](int64_t shard) {
    Taps columns[kStrip];
    Lookout lookout;
    for (int64_t x0 = 0; x0 < a.out_width; x0 += kStrip) {
      const int64_t count = std::min(kStrip, a.out_width - x0);
      for (int64_t i = 0; i < count; ++i) columns[i] = taps_of(a, x0 + i, a.scale_x, a.width);
      for (int64_t row = rows * shard / a.shards; row < rows * (shard + 1) / a.shards; ++row) {
        const Taps y = taps_of(a, row % a.out_height, a.scale_y, a.height);
        const T* image = c.in<T>(0) + row / a.out_height * a.height * a.width * a.channels;
        for (int64_t i = 0; i < count; ++i) {
          float* to = out + (row * a.out_width + x0 + i) * a.channels;
          for (int64_t k = 0; k < a.channels; ++k) {
            float sum = 0;
            for (int v = 0; v < 4; ++v) {
              const T* line = image + y.at[v] * a.width * a.channels + k;
              float along = 0;
              for (int h = 0; h < 4; ++h) along += columns[i].weight[h] * static_cast<float>(line[columns[i].at[h] * a.channels]);
              sum += y.weight[v] * along;
            }
            to[k] = sum;
          }
        }
        lookout.after(8 * count * a.channels);
      }
    }
  });
  return {};
}

// One image's gradient: every sample gives each of its 16 pixels its share.
template <class T>
void bicubic_grad_image(const ResizeArgs& a, const float* grad, T* image, Lookout& lookout) {
  const int64_t pitch = a.width * a.channels;
  watched_fill(image, image + a.height * pitch, T());
  for (int64_t oy = 0; oy < a.out_height; ++oy) {
    const Taps y = taps_of(a, oy, a.scale_y, a.height);
    for (int64_t ox = 0; ox < a.out_width; ++ox, grad += a.channels) {
      const Taps x = taps_of(a, ox, a.scale_x, a.width);
      for (int v = 0; v < 4; ++v) {
        for (int h = 0; h < 4; ++h) {
          T* to = image + y.at[v] * pitch + x.at[h] * a.channels;
          const T weight = static_cast<T>(y.weight[v] * x.weight[h]);
          for (int64_t k = 0; k < a.channels; ++k) to[k] += static_cast<T>(grad[k]) * weight;
        }
      }
      lookout.after(16 * (1 + a.channels));
    }
  }
}

template <class T>
Status bicubic_grad_run(RunContext& c) {
  const auto& a = c.args<ResizeArgs>();
  const int64_t shards = std::clamp<int64_t>(a.batch, 1, a.shards);
  c.pool().parallel_for(shards, [&](int64_t shard) {
    Lookout lookout;
    for (int64_t n = a.batch * shard / shards; n < a.batch * (shard + 1) / shards; ++n) {
      bicubic_grad_image(a, c.in<float>(0) + n * a.out_height * a.out_width * a.channels, c.out<T>(0) + n * a.height * a.width * a.channels,
                         lookout);
    }
  });
  return {};
}

template <class T>
Status bicubic_prepare(PrepareContext& c) {
  DTG_TRY(prepare_resize(c, *c.args<ResizeArgs>()));
  return c.sync(bicubic_run<T>);
}

template <class T>
Status bicubic_grad_prepare(PrepareContext& c) {
  DTG_TRY(prepare_resize_grad(c, *c.args<ResizeArgs>()));
  return c.sync(bicubic_grad_run<T>);
}

// The gradient op knows float and double only.
Status bicubic_grad(GradContext& c) {
  const DType dtype = c.input_info(0).dtype;
  if (dtype != DType::f32 && dtype != DType::f64) return {};
  c.dx(0, c.b().op("ResizeBicubicGrad", {c.dy(), c.input(0)},
                   {{"align_corners", c.attr<bool>("align_corners")}, {"half_pixel_centers", c.attr<bool>("half_pixel_centers")}}));
  return {};
}

// It is linear, and what it is the transpose of is the resizing itself.
Status bicubic_grad_grad(GradContext& c) {
  Build& b = c.b();
  const Value size = image_size(b, c.input(0));
  const Value again = b.op("ResizeBicubic", {c.dy(), size},
                           {{"align_corners", c.attr<bool>("align_corners")}, {"half_pixel_centers", c.attr<bool>("half_pixel_centers")}});
  c.dx(0, again);
  return {};
}

template <class T>
void add_forward(KernelTable& kernels) {
  kernels.add({.op = "ResizeBicubic", .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = bicubic_prepare<T>});
}

}  // namespace

void register_bicubic(OpTable& ops, KernelTable& kernels) {
  ops.add(resize_def(OpDef::make("ResizeBicubic")
                         .input("images: T", {.rank = 4})
                         .input("size: int32", {.rank = 1})
                         .output("resized_images: float")
                         .attr("T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}"))
              .shape(resize_shape)
              .gradient(bicubic_grad)
              .doc("Images in another size; each pixel is a cubic interpolation of the 4 x 4 around its place."));
  ops.add(resize_def(OpDef::make("ResizeBicubicGrad")
                         .input("grads: float", {.rank = 4})
                         .input("original_image: T", {.rank = 4})
                         .output("output: T")
                         .attr("T: {float, double}"))
              .shape(resize_grad_shape)
              .gradient(bicubic_grad_grad)
              .doc("Gradient of ResizeBicubic."));
  add_forward<float>(kernels);
  add_forward<double>(kernels);
  add_forward<Half>(kernels);
  add_forward<BFloat16>(kernels);
  add_forward<int8_t>(kernels);
  add_forward<int16_t>(kernels);
  add_forward<int32_t>(kernels);
  add_forward<int64_t>(kernels);
  add_forward<uint8_t>(kernels);
  add_forward<uint16_t>(kernels);
  kernels.add({.op = "ResizeBicubicGrad", .types = {{"T", DTypeSet{DType::f32}}}, .prepare = bicubic_grad_prepare<float>});
  kernels.add({.op = "ResizeBicubicGrad", .types = {{"T", DTypeSet{DType::f64}}}, .prepare = bicubic_grad_prepare<double>});
}

}  // namespace dtg::ops
