// ResizeBilinear and ResizeNearestNeighbor with their gradients, over images with channels last. Where a sample lies is worked out
// once for a strip of columns and used for all rows. Registered once by the runtime; kernels run on any thread.
#include "ops/resize.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/watched.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/rows.h"

namespace dtg::ops {

// ---- what all resizing shares ------------------------------------------------------------------------------

Status check_resize_flags(const Node& node) {
  if (!node.attr<bool>("align_corners") || !node.attr<bool>("half_pixel_centers")) return {};
  return invalid_argument("%s: align_corners and half_pixel_centers exclude each other", node.op->name().c_str());
}

namespace {

Status check_size(int64_t height, int64_t width) {
  if (height >= 1 && width >= 1 && height <= INT32_MAX && width <= INT32_MAX) return {};
  return invalid_argument("the size is %lld x %lld; both must be at least 1", static_cast<long long>(height),
                          static_cast<long long>(width));
}

Status check_image(int64_t height, int64_t width) {
  if (height != 0 && width != 0) return {};
  return invalid_argument("an image of %lld x %lld pixels has nothing to sample", static_cast<long long>(height),
                          static_cast<long long>(width));
}

}  // namespace

Status resize_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 4));
  DTG_TRY(c.require_rank(1, 1));
  DTG_TRY(check_resize_flags(c.node()));
  const PartialShape& size = c.input(1);
  if (size.has_rank() && size.dim(0) >= 0 && size.dim(0) != 2) {
    return c.error("size must have 2 elements, height and width, but has shape %s", size.text().c_str());
  }
  PartialShape out = c.input(0).has_rank() ? c.input(0) : PartialShape::of_rank(4);
  const Status sampled = check_image(out.dim(1), out.dim(2));
  if (!sampled.ok()) return c.error("%s", sampled.message().c_str());
  const KnownIntegers known = known_integers(c, 1);
  if (known.known && known.count == 2) {
    const Status status = check_size(known.values[0], known.values[1]);
    if (!status.ok()) return c.error("%s", status.message().c_str());
  }
  for (int i = 0; i < 2; ++i) out.set_dim(1 + i, known.known ? known.values[static_cast<size_t>(i)] : -1);
  c.output(0, out);
  return {};
}

Status resize_grad_shape(InferContext& c) {
  for (int i = 0; i < 2; ++i) DTG_TRY(c.require_rank(i, 4));
  DTG_TRY(check_resize_flags(c.node()));
  PartialShape out = c.input(1).has_rank() ? c.input(1) : PartialShape::of_rank(4);
  for (int axis : {0, 3}) {
    if (!c.input(0).has_rank()) continue;
    const int64_t grad = c.input(0).dim(axis), own = out.dim(axis);
    if (grad >= 0 && own >= 0 && grad != own) {
      return c.error("grads %s and original_image %s must agree in batch and channels", c.input(0).text().c_str(),
                     c.input(1).text().c_str());
    }
    if (own < 0) out.set_dim(axis, grad);
  }
  const Status sampled = check_image(out.dim(1), out.dim(2));
  if (!sampled.ok()) return c.error("%s", sampled.message().c_str());
  c.output(0, out);
  return {};
}

void ResizeArgs::set(const Node& node) {
  align = node.attr<bool>("align_corners");
  centers = node.attr<bool>("half_pixel_centers");
}

void ResizeArgs::set_sizes(int64_t large_height, int64_t large_width, int64_t height_now, int64_t width_now) {
  height = large_height, width = large_width, out_height = height_now, out_width = width_now;
  const auto scale = [this](int64_t pixels, int64_t samples) {
    return align && samples > 1 ? static_cast<float>(pixels - 1) / static_cast<float>(samples - 1)
                                : static_cast<float>(pixels) / static_cast<float>(samples);
  };
  scale_y = scale(height, out_height);
  scale_x = scale(width, out_width);
  const int64_t work = batch * out_height * out_width * channels;
  shards = std::clamp<int64_t>(work / 16384, 1, std::clamp<int64_t>(batch * out_height, 1, 16));
}

Status prepare_resize(PrepareContext& c, ResizeArgs& a) {
  const Shape& image = c.input(0).shape;
  DTG_TRY(check_resize_flags(c.node()));
  a.set(c.node());
  a.batch = image.dim(0), a.channels = image.dim(3);
  a.height = image.dim(1), a.width = image.dim(2);
  a.out.prepare(c, 0);
  return a.size.prepare(c, 1);
}

Value image_size(Build& b, Value images) { return b.op("StridedSlice", {b.shape(images), b.ints({1}), b.ints({3}), b.ints({1})}); }

Result<char*> begin_resize(RunContext& c, ResizeArgs& a) {
  Integers::Buffer buffer;
  const auto size = a.size.get(c, buffer);
  Status status = size.size() == 2 ? check_size(size[0], size[1]) : invalid_argument("size must have 2 elements, but has %zu", size.size());
  if (status.ok()) status = check_image(a.height, a.width);
  if (!status.ok()) return c.error("%s", status.message().c_str());
  const std::array<int64_t, 4> dims = {a.batch, size[0], size[1], a.channels};
  const auto shape = Shape::make(dims);
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  a.set_sizes(a.height, a.width, size[0], size[1]);
  return a.out.memory(c, shape.value());
}

Status prepare_resize_grad(PrepareContext& c, ResizeArgs& a) {
  DTG_TRY(check_resize_flags(c.node()));
  a.set(c.node());
  const Shape &grad = c.input(0).shape, &image = c.output(0).shape;
  a.batch = image.dim(0), a.channels = image.dim(3);
  a.set_sizes(image.dim(1), image.dim(2), grad.dim(1), grad.dim(2));
  return {};
}

// ---- kernels -----------------------------------------------------------------------------------------------

namespace {

constexpr int64_t kStrip = 128;  // columns whose samples are worked out at a time

template <class T>
using WideOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Between which two pixels a sample lies, and how far from the first.
struct Between {
  int64_t low, high;
  float lerp;
};

Between between(const ResizeArgs& a, int64_t at, float scale, int64_t limit) {
  const float place = a.place(at, scale), floor = std::floor(place);
  Between b{};
  b.high = std::min(static_cast<int64_t>(std::ceil(place)), limit - 1);
  b.low = std::min(std::max(static_cast<int64_t>(floor), int64_t{0}), b.high);
  b.lerp = place - floor;
  return b;
}

int64_t nearest(const ResizeArgs& a, int64_t at, float scale, int64_t limit) {
  const float place = a.centers ? (static_cast<float>(at) + 0.5f) * scale : static_cast<float>(at) * scale;
  const auto index = static_cast<int64_t>(a.align ? std::round(place) : std::floor(place));
  return std::clamp<int64_t>(index, 0, limit - 1);
}

template <class Fn>
void for_rows(RunContext& c, const ResizeArgs& a, Fn fn) {
  const int64_t rows = a.batch * a.out_height;
  c.pool().parallel_for(a.shards, [&](int64_t shard) { fn(rows * shard / a.shards, rows * (shard + 1) / a.shards); });
}

// value = top + (bottom - top) * y, and top and bottom likewise along x
template <class T>
void bilinear_pixel(const T* top_left, const T* top_right, const T* low_left, const T* low_right, int64_t n, float x, float y, float* out) {
  for (int64_t k = 0; k < n; ++k) {
    const auto a = static_cast<float>(top_left[k]), b = static_cast<float>(top_right[k]);
    const auto c = static_cast<float>(low_left[k]), d = static_cast<float>(low_right[k]);
    const float top = a + (b - a) * x, low = c + (d - c) * x;
    out[k] = top + (low - top) * y;
  }
}

template <class T>
Status bilinear_run(RunContext& c) {
  ResizeArgs a = c.args<ResizeArgs>();
  DTG_ASSIGN(char* memory, begin_resize(c, a));
  auto* out = reinterpret_cast<float*>(memory);
  for_rows(c, a, [&](int64_t first_row, int64_t last_row) {
    Between columns[kStrip];
    Lookout lookout;
    for (int64_t x0 = 0; x0 < a.out_width; x0 += kStrip) {
      const int64_t count = std::min(kStrip, a.out_width - x0);
      for (int64_t i = 0; i < count; ++i) columns[i] = between(a, x0 + i, a.scale_x, a.width);
      for (int64_t row = first_row; row < last_row; ++row) {
        const Between y = between(a, row % a.out_height, a.scale_y, a.height);
        const T* image = c.in<T>(0) + row / a.out_height * a.height * a.width * a.channels;
        const T *top = image + y.low * a.width * a.channels, *low = image + y.high * a.width * a.channels;
        float* to = out + (row * a.out_width + x0) * a.channels;
        for (int64_t i = 0; i < count; ++i, to += a.channels) {
          const int64_t left = columns[i].low * a.channels, right = columns[i].high * a.channels;
          bilinear_pixel(top + left, top + right, low + left, low + right, a.channels, columns[i].lerp, y.lerp, to);
        }
        lookout.after(count * a.channels);
      }
    }
  });
  return {};
}

// Images are independent of each other; inside one, samples share pixels, so their order is kept. fn(n, lookout)
template <class Fn>
void for_images(RunContext& c, const ResizeArgs& a, Fn fn) {
  const int64_t shards = std::clamp<int64_t>(a.batch, 1, a.shards);
  c.pool().parallel_for(shards, [&](int64_t shard) {
    Lookout lookout;
    for (int64_t n = a.batch * shard / shards; n < a.batch * (shard + 1) / shards; ++n) fn(n, lookout);
  });
}

template <class T>
Status bilinear_grad_run(RunContext& c) {
  const auto& a = c.args<ResizeArgs>();
  using Wide = WideOf<T>;
  for_images(c, a, [&](int64_t n, Lookout& lookout) {
    const int64_t pitch = a.width * a.channels;
    T* image = c.out<T>(0) + n * a.height * pitch;
    watched_fill(image, image + a.height * pitch, T());
    const float* grad = c.in<float>(0) + n * a.out_height * a.out_width * a.channels;
    for (int64_t oy = 0; oy < a.out_height; ++oy) {
      const Between y = between(a, oy, a.scale_y, a.height);
      for (int64_t ox = 0; ox < a.out_width; ++ox, grad += a.channels) {
        const Between x = between(a, ox, a.scale_x, a.width);
        const Wide weights[4] = {Wide((1 - y.lerp) * (1 - x.lerp)), Wide((1 - y.lerp) * x.lerp), Wide(y.lerp * (1 - x.lerp)),
                                 Wide(y.lerp * x.lerp)};
        T* to[4] = {image + y.low * pitch + x.low * a.channels, image + y.low * pitch + x.high * a.channels,
                    image + y.high * pitch + x.low * a.channels, image + y.high * pitch + x.high * a.channels};
        for (int corner = 0; corner < 4; ++corner) {
          for (int64_t k = 0; k < a.channels; ++k) {
            to[corner][k] = static_cast<T>(static_cast<Wide>(to[corner][k]) + static_cast<Wide>(grad[k]) * weights[corner]);
          }
        }
        lookout.after(4 + 4 * a.channels);
      }
    }
  });
  return {};
}

template <class T>
Status nearest_run(RunContext& c) {
  ResizeArgs a = c.args<ResizeArgs>();
  DTG_ASSIGN(char* out, begin_resize(c, a));
  const int64_t pixel = a.channels * static_cast<int64_t>(sizeof(T));
  for_rows(c, a, [&](int64_t first_row, int64_t last_row) {
    int64_t columns[kStrip];
    Lookout lookout;
    for (int64_t x0 = 0; x0 < a.out_width; x0 += kStrip) {
      const int64_t count = std::min(kStrip, a.out_width - x0);
      for (int64_t i = 0; i < count; ++i) columns[i] = nearest(a, x0 + i, a.scale_x, a.width);
      for (int64_t row = first_row; row < last_row; ++row) {
        const int64_t y = nearest(a, row % a.out_height, a.scale_y, a.height);
        const char* from = c.in<char>(0) + (row / a.out_height * a.height + y) * a.width * pixel;
        char* to = out + (row * a.out_width + x0) * pixel;
        for (int64_t i = 0; i < count; ++i) cpu::copy_row(to + i * pixel, from + columns[i] * pixel, pixel);
        lookout.after(count * (4 + pixel / 8));
      }
    }
  });
  return {};
}

// `size` is that of the image whose gradient is wanted; the gradient that came is larger or smaller.
template <class T>
Status nearest_grad_run(RunContext& c) {
  ResizeArgs a = c.args<ResizeArgs>();
  const int64_t out_height = a.height, out_width = a.width;
  DTG_ASSIGN(char* memory, begin_resize(c, a));
  T* out = reinterpret_cast<T*>(memory);
  a.set_sizes(a.out_height, a.out_width, out_height, out_width);
  for_images(c, a, [&](int64_t n, Lookout& lookout) {
    T* image = out + n * a.height * a.width * a.channels;
    watched_fill(image, image + a.height * a.width * a.channels, T());
    const T* grad = c.in<T>(0) + n * a.out_height * a.out_width * a.channels;
    for (int64_t oy = 0; oy < a.out_height; ++oy) {
      T* row = image + nearest(a, oy, a.scale_y, a.height) * a.width * a.channels;
      for (int64_t ox = 0; ox < a.out_width; ++ox, grad += a.channels) {
        T* to = row + nearest(a, ox, a.scale_x, a.width) * a.channels;
        for (int64_t k = 0; k < a.channels; ++k) to[k] = sum_of<T>(to[k], grad[k]);
        lookout.after(2 + a.channels);
      }
    }
  });
  return {};
}

template <SyncFn kRun>
Status forward_prepare(PrepareContext& c) {
  DTG_TRY(prepare_resize(c, *c.args<ResizeArgs>()));
  return c.sync(kRun);
}

template <class T>
Status bilinear_grad_prepare(PrepareContext& c) {
  DTG_TRY(prepare_resize_grad(c, *c.args<ResizeArgs>()));
  return c.sync(bilinear_grad_run<T>);
}

// ---- gradients ---------------------------------------------------------------------------------------------

std::array<Attr, 2> flags(GradContext& c) {
  return {{{"align_corners", c.attr<bool>("align_corners")}, {"half_pixel_centers", c.attr<bool>("half_pixel_centers")}}};
}

Status bilinear_grad(GradContext& c) {
  if (!dtype_is_floating(c.input_info(0).dtype)) return {};
  const Value inputs[] = {c.dy(), c.input(0)};
  c.dx(0, c.b().op("ResizeBilinearGrad", inputs, flags(c)));
  return {};
}

Status nearest_grad(GradContext& c) {
  Build& b = c.b();
  const Value size = image_size(b, c.input(0));
  const Value inputs[] = {c.dy(), size};
  c.dx(0, b.op("ResizeNearestNeighborGrad", inputs, flags(c)));
  return {};
}

// They are linear, and what they are the transpose of is the resizing itself.
Status resize_again(GradContext& c, const char* op) {
  Build& b = c.b();
  const Value size = image_size(b, c.input(0));
  const Value inputs[] = {c.dy(), size};
  c.dx(0, b.op(op, inputs, flags(c)));
  return {};
}
Status bilinear_grad_grad(GradContext& c) { return resize_again(c, "ResizeBilinear"); }
Status nearest_grad_grad(GradContext& c) { return resize_again(c, "ResizeNearestNeighbor"); }

// ---- definitions -------------------------------------------------------------------------------------------

constexpr const char* kImage = "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}";

template <class T>
void add_forward(KernelTable& kernels) {
  const KernelRow::TypeClause type{"T", DTypeSet{dtype_of<T>}};
  kernels.add({.op = "ResizeBilinear", .types = {type}, .prepare = forward_prepare<bilinear_run<T>>});
  kernels.add({.op = "ResizeNearestNeighbor", .types = {type}, .prepare = forward_prepare<nearest_run<T>>});
}

template <class T>
void add_nearest_grad(KernelTable& kernels) {
  kernels.add(
      {.op = "ResizeNearestNeighborGrad", .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = forward_prepare<nearest_grad_run<T>>});
}

template <class T>
void add_floating(KernelTable& kernels) {
  kernels.add({.op = "ResizeBilinearGrad", .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = bilinear_grad_prepare<T>});
  add_nearest_grad<T>(kernels);
}

void add_kernels(KernelTable& kernels) {
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
  add_floating<float>(kernels);
  add_floating<double>(kernels);
  add_floating<Half>(kernels);
  add_floating<BFloat16>(kernels);
  add_nearest_grad<int8_t>(kernels);
  add_nearest_grad<uint8_t>(kernels);
  add_nearest_grad<int32_t>(kernels);
}

}  // namespace

OpDef&& resize_def(OpDef&& def) { return std::move(def).attr("align_corners: bool = false").attr("half_pixel_centers: bool = false"); }

void register_resize(OpTable& ops, KernelTable& kernels) {
  ops.add(resize_def(OpDef::make("ResizeBilinear")
                         .input("images: T", {.rank = 4})
                         .input("size: int32", {.rank = 1})
                         .output("resized_images: float")
                         .attr(kImage))
              .shape(resize_shape)
              .gradient(bilinear_grad)
              .doc("Images in another size; each pixel is interpolated between the four around its place."));
  ops.add(resize_def(OpDef::make("ResizeBilinearGrad")
                         .input("grads: float", {.rank = 4})
                         .input("original_image: T", {.rank = 4})
                         .output("output: T")
                         .attr("T: {float, bfloat16, half, double}"))
              .shape(resize_grad_shape)
              .gradient(bilinear_grad_grad)
              .doc("Gradient of ResizeBilinear."));
  ops.add(resize_def(OpDef::make("ResizeNearestNeighbor")
                         .input("images: T", {.rank = 4})
                         .input("size: int32", {.rank = 1})
                         .output("resized_images: T")
                         .attr(kImage))
              .shape(resize_shape)
              .gradient(nearest_grad)
              .doc("Images in another size; each pixel is the one nearest to its place."));
  ops.add(resize_def(OpDef::make("ResizeNearestNeighborGrad")
                         .input("grads: T", {.rank = 4})
                         .input("size: int32", {.rank = 1})
                         .output("output: T")
                         .attr("T: {uint8, int8, int32, half, float, bfloat16, double}"))
              .shape(resize_shape)
              .gradient(nearest_grad_grad)
              .doc("Gradient of ResizeNearestNeighbor, for images of the given size."));
  add_kernels(kernels);
}

void register_image(OpTable& ops, KernelTable& kernels) {
  register_resize(ops, kernels);
  register_bicubic(ops, kernels);
  register_crop(ops, kernels);
  register_space(ops, kernels);
  register_mirror_pad(ops, kernels);
  register_patches(ops, kernels);
}

}  // namespace dtg::ops
