// CropAndResize and its two gradients: boxes cut out of images and brought to one size. A box is (y1, x1, y2, x2) in parts of the
// image, from the first pixel's center (0) to the last one's (1). Registered once by the runtime; kernels run on any thread.
#include <algorithm>
#include <cmath>

#include "base/watched.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/integers.h"

namespace dtg::ops {
namespace {

// boxes [n,4] and box_ind [n] at inputs `boxes` and boxes + 1; n, or -1.
Result<int64_t> box_count(InferContext& c, int boxes) {
  DTG_TRY(c.require_rank(boxes, 2));
  DTG_TRY(c.require_rank(boxes + 1, 1));
  const PartialShape &shape = c.input(boxes), &index = c.input(boxes + 1);
  if (shape.has_rank() && shape.dim(1) >= 0 && shape.dim(1) != 4)
    return c.error("boxes must have 4 columns, but have shape %s", shape.text().c_str());
  const int64_t rows = shape.has_rank() ? shape.dim(0) : -1, indices = index.has_rank() ? index.dim(0) : -1;
  if (rows >= 0 && indices >= 0 && rows != indices) {
    return c.error("%lld boxes, but %lld indices of their images", static_cast<long long>(rows), static_cast<long long>(indices));
  }
  return std::max(rows, indices);
}

Status crop_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 4));
  DTG_ASSIGN(const int64_t count, box_count(c, 1));
  DTG_TRY(c.require_rank(3, 1));
  if (c.input(3).has_rank() && c.input(3).dim(0) >= 0 && c.input(3).dim(0) != 2) {
    return c.error("crop_size must have 2 elements, but has shape %s", c.input(3).text().c_str());
  }
  PartialShape out = PartialShape::of_rank(4);
  out.set_dim(0, count);
  const KnownIntegers size = known_integers(c, 3);
  for (int i = 0; i < 2 && size.known; ++i) {
    if (size.values[static_cast<size_t>(i)] < 1) return c.error("crop_size must be positive");
    out.set_dim(1 + i, size.values[static_cast<size_t>(i)]);
  }
  out.set_dim(3, c.input(0).has_rank() ? c.input(0).dim(3) : -1);
  c.output(0, out);
  return {};
}

Status agree_grads(InferContext& c, int64_t boxes) {
  DTG_TRY(c.require_rank(0, 4));
  const int64_t count = c.input(0).has_rank() ? c.input(0).dim(0) : -1;
  if (count >= 0 && boxes >= 0 && count != boxes) {
    return c.error("%lld gradients of crops, but %lld boxes", static_cast<long long>(count), static_cast<long long>(boxes));
  }
  return {};
}

Status image_grad_shape(InferContext& c) {
  DTG_ASSIGN(const int64_t boxes, box_count(c, 1));
  DTG_TRY(agree_grads(c, boxes));
  DTG_ASSIGN(PartialShape image, c.shape_from_input(3));
  if (image.has_rank() && image.rank() != 4) return c.error("image_size must have 4 elements, but has %d", image.rank());
  if (!image.has_rank()) image = PartialShape::of_rank(4);
  if (c.input(0).has_rank() && c.input(0).dim(3) >= 0 && image.dim(3) >= 0 && c.input(0).dim(3) != image.dim(3)) {
    return c.error("grads %s and image_size %s differ in channels", c.input(0).text().c_str(), image.text().c_str());
  }
  c.output(0, image);
  return {};
}

Status boxes_grad_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 4));
  DTG_ASSIGN(const int64_t boxes, box_count(c, 2));
  DTG_TRY(agree_grads(c, boxes));
  if (c.input(0).has_rank() && c.input(1).has_rank() && c.input(0).dim(3) >= 0 && c.input(1).dim(3) >= 0 &&
      c.input(0).dim(3) != c.input(1).dim(3)) {
    return c.error("grads %s and image %s differ in channels", c.input(0).text().c_str(), c.input(1).text().c_str());
  }
  PartialShape out = PartialShape::of_rank(2);
  out.set_dim(0, boxes);
  out.set_dim(1, 4);
  c.output(0, out);
  return {};
}

// The gradient by the boxes is that of bilinear sampling whatever the method, as in TensorFlow.
Status crop_grad(GradContext& c) {
  Build& b = c.b();
  const DType dtype = c.input_info(0).dtype;
  if (dtype_is_floating(dtype)) {
    c.dx(0, b.op("CropAndResizeGradImage", {c.dy(), c.input(1), c.input(2), b.shape(c.input(0))},
                 {{"T", dtype}, {"method", c.attr<std::string>("method")}}));
  }
  c.dx(1, b.op("CropAndResizeGradBoxes", {c.dy(), c.input(0), c.input(1), c.input(2)}));
  return {};
}

struct CropArgs {
  int64_t batch = 0, height = 0, width = 0, channels = 0, boxes = 0;
  int64_t crop_height = 0, crop_width = 0;
  bool nearest = false;
  float outside = 0;
  Integers size;
  OutputSpec out;
};

// Where the rows (columns) of one box lie.
struct Line {
  float first, step, length;
  int64_t limit;
  Line(float low, float high, int64_t dim, int64_t count) : length(static_cast<float>(dim - 1)), limit(dim) {
    step = count > 1 ? (high - low) * length / static_cast<float>(count - 1) : 0;
    first = count > 1 ? low * length : 0.5f * (low + high) * length;
  }
  float at(int64_t i) const { return first + static_cast<float>(i) * step; }
  bool inside(float place) const { return place >= 0 && place <= length; }
};

struct Box {
  int64_t image;
  Line y, x;
  Box(const CropArgs& a, const float* boxes, const int32_t* index, int64_t i)
      : image(index[i]),
        y(boxes[4 * i], boxes[4 * i + 2], a.height, a.crop_height),
        x(boxes[4 * i + 1], boxes[4 * i + 3], a.width, a.crop_width) {}
};

Status check_indices(RunContext& c, const CropArgs& a, const int32_t* index) {
  for (int64_t i = 0; i < a.boxes; ++i) {
    if (index[i] >= 0 && index[i] < a.batch) continue;
    return out_of_range("%s: box_ind[%lld] is %d, not in [0, %lld)", c.node().op->name().c_str(), static_cast<long long>(i), index[i],
                        static_cast<long long>(a.batch));
  }
  return {};
}

// fn(offset of the crop's pixel, y, x) for every pixel of box i that lies inside the image; outside(offset) for the others.
template <class Fn, class Outside>
void for_samples(const CropArgs& a, const Box& box, int64_t i, Lookout& lookout, Fn fn, Outside outside) {
  for (int64_t y = 0; y < a.crop_height; ++y) {
    for (int64_t x = 0; x < a.crop_width; ++x) {
      const int64_t at = ((i * a.crop_height + y) * a.crop_width + x) * a.channels;
      const float in_y = box.y.at(y), in_x = box.x.at(x);
      if (box.y.inside(in_y) && box.x.inside(in_x)) fn(at, in_y, in_x, y, x);
      else outside(at);
      lookout.after(4 * (1 + a.channels));
    }
  }
}

struct Corners {
  int64_t at[4];  // top left, top right, low left, low right
  float y, x;     // how far from the first
  Corners(const CropArgs& a, int64_t image, float in_y, float in_x) {
    const auto top = static_cast<int64_t>(std::floor(in_y)), low = static_cast<int64_t>(std::ceil(in_y));
    const auto left = static_cast<int64_t>(std::floor(in_x)), right = static_cast<int64_t>(std::ceil(in_x));
    const auto offset = [&](int64_t row, int64_t column) { return ((image * a.height + row) * a.width + column) * a.channels; };
    at[0] = offset(top, left), at[1] = offset(top, right), at[2] = offset(low, left), at[3] = offset(low, right);
    y = in_y - static_cast<float>(top), x = in_x - static_cast<float>(left);
  }
};

int64_t nearest_at(const CropArgs& a, int64_t image, float in_y, float in_x) {
  return ((image * a.height + static_cast<int64_t>(std::round(in_y))) * a.width + static_cast<int64_t>(std::round(in_x))) * a.channels;
}

template <class T>
void crop_box(const CropArgs& a, const T* images, const Box& box, int64_t i, Lookout& lookout, float* out) {
  const auto sample = [&](int64_t to, float in_y, float in_x, int64_t, int64_t) {
    if (a.nearest) {
      const T* from = images + nearest_at(a, box.image, in_y, in_x);
      for (int64_t k = 0; k < a.channels; ++k) out[to + k] = static_cast<float>(from[k]);
      return;
    }
    const Corners corners(a, box.image, in_y, in_x);
    for (int64_t k = 0; k < a.channels; ++k) {
      const auto at = [&](int corner) { return static_cast<float>(images[corners.at[corner] + k]); };
      const float top = at(0) + (at(1) - at(0)) * corners.x, low = at(2) + (at(3) - at(2)) * corners.x;
      out[to + k] = top + (low - top) * corners.y;
    }
  };
  for_samples(a, box, i, lookout, sample, [&](int64_t to) { std::fill(out + to, out + to + a.channels, a.outside); });
}

int64_t shards_of(const CropArgs& a) {
  return std::clamp<int64_t>(a.boxes * a.crop_height * a.crop_width * a.channels / 16384, 1, std::clamp<int64_t>(a.boxes, 1, 16));
}

template <class T>
Status crop_run(RunContext& c) {
  CropArgs a = c.args<CropArgs>();
  Integers::Buffer buffer;
  const auto size = a.size.get(c, buffer);
  if (size.size() != 2 || size[0] < 1 || size[1] < 1) return c.error("crop_size must be two positive numbers");
  if ((a.height == 0 || a.width == 0) && a.boxes > 0) return c.error("images without pixels cannot be cropped");
  a.crop_height = size[0], a.crop_width = size[1];
  const std::array<int64_t, 4> dims = {a.boxes, size[0], size[1], a.channels};
  const auto shape = Shape::make(dims);
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  DTG_ASSIGN(char* memory, a.out.memory(c, shape.value()));
  const int32_t* index = c.in<int32_t>(2);
  DTG_TRY(check_indices(c, a, index));
  const int64_t shards = shards_of(a);
  c.pool().parallel_for(shards, [&](int64_t shard) {
    Lookout lookout;
    for (int64_t i = a.boxes * shard / shards; i < a.boxes * (shard + 1) / shards; ++i) {
      crop_box(a, c.in<T>(0), Box(a, c.in<float>(1), index, i), i, lookout, reinterpret_cast<float*>(memory));
    }
  });
  return {};
}

// Boxes overlap, so they are added one after the other.
template <class T>
Status image_grad_run(RunContext& c) {
  CropArgs a = c.args<CropArgs>();
  Integers::Buffer buffer;
  const auto size = a.size.get(c, buffer);
  const auto shape = Shape::make(size);
  if (!shape.ok() || size.size() != 4) return c.error("image_size must be the shape of images");
  if (size[3] != a.channels)
    return c.error("grads have %lld channels, image_size %s", static_cast<long long>(a.channels), shape.value().text().c_str());
  a.batch = size[0], a.height = size[1], a.width = size[2];
  if ((a.height == 0 || a.width == 0) && a.boxes > 0) return c.error("images without pixels cannot be cropped");
  DTG_ASSIGN(char* memory, a.out.memory(c, shape.value()));
  T* out = reinterpret_cast<T*>(memory);
  const int32_t* index = c.in<int32_t>(2);
  DTG_TRY(check_indices(c, a, index));
  watched_fill(out, out + shape.value().count(), T());
  Lookout lookout;
  const float* grads = c.in<float>(0);
  for (int64_t i = 0; i < a.boxes; ++i) {
    const Box box(a, c.in<float>(1), index, i);
    const auto add = [&](int64_t to, int64_t from, float weight) {
      for (int64_t k = 0; k < a.channels; ++k) out[to + k] = static_cast<T>(static_cast<float>(out[to + k]) + weight * grads[from + k]);
    };
    const auto sample = [&](int64_t from, float in_y, float in_x, int64_t, int64_t) {
      if (a.nearest) return add(nearest_at(a, box.image, in_y, in_x), from, 1);
      const Corners corners(a, box.image, in_y, in_x);
      add(corners.at[0], from, (1 - corners.y) * (1 - corners.x));
      add(corners.at[1], from, (1 - corners.y) * corners.x);
      add(corners.at[2], from, corners.y * (1 - corners.x));
      add(corners.at[3], from, corners.y * corners.x);
    };
    for_samples(a, box, i, lookout, sample, [](int64_t) {});
  }
  return {};
}

// How a crop changes when an edge of its box moves: the slope of the image there, times how far the sample moves with the edge.
template <class T>
void box_gradient(const CropArgs& a, const T* images, const float* grads, const Box& box, int64_t i, Lookout& lookout, float* out) {
  std::fill(out, out + 4, 0.0f);
  const auto sample = [&](int64_t from, float in_y, float in_x, int64_t y, int64_t x) {
    const Corners corners(a, box.image, in_y, in_x);
    for (int64_t k = 0; k < a.channels; ++k) {
      const auto at = [&](int corner) { return static_cast<float>(images[corners.at[corner] + k]); };
      const float slope_y = (1 - corners.x) * (at(2) - at(0)) + corners.x * (at(3) - at(1));
      const float slope_x = (1 - corners.y) * (at(1) - at(0)) + corners.y * (at(3) - at(2));
      const float dy = slope_y * grads[from + k] * box.y.length, dx = slope_x * grads[from + k] * box.x.length;
      const float share_y = a.crop_height > 1 ? static_cast<float>(y) / static_cast<float>(a.crop_height - 1) : 0.5f;
      const float share_x = a.crop_width > 1 ? static_cast<float>(x) / static_cast<float>(a.crop_width - 1) : 0.5f;
      out[0] += dy * (1 - share_y);
      out[1] += dx * (1 - share_x);
      out[2] += dy * share_y;
      out[3] += dx * share_x;
    }
  };
  for_samples(a, box, i, lookout, sample, [](int64_t) {});
}

template <class T>
Status boxes_grad_run(RunContext& c) {
  const auto& a = c.args<CropArgs>();
  const int32_t* index = c.in<int32_t>(3);
  DTG_TRY(check_indices(c, a, index));
  const int64_t shards = shards_of(a);
  c.pool().parallel_for(shards, [&](int64_t shard) {
    Lookout lookout;
    for (int64_t i = a.boxes * shard / shards; i < a.boxes * (shard + 1) / shards; ++i) {
      box_gradient(a, c.in<T>(1), c.in<float>(0), Box(a, c.in<float>(2), index, i), i, lookout, c.out<float>(0) + 4 * i);
    }
  });
  return {};
}

void set_image(CropArgs& a, const Shape& image) {
  a.batch = image.dim(0), a.height = image.dim(1), a.width = image.dim(2), a.channels = image.dim(3);
}

template <class T>
Status crop_prepare(PrepareContext& c) {
  auto& a = *c.args<CropArgs>();
  set_image(a, c.input(0).shape);
  a.boxes = c.input(1).shape.dim(0);
  a.nearest = c.attr<std::string>("method") == "nearest";
  a.outside = static_cast<float>(c.attr<double>("extrapolation_value"));
  a.out.prepare(c, 0);
  DTG_TRY(a.size.prepare(c, 3));
  return c.sync(crop_run<T>);
}

template <class T>
Status image_grad_prepare(PrepareContext& c) {
  auto& a = *c.args<CropArgs>();
  const Shape& grads = c.input(0).shape;
  a.boxes = grads.dim(0), a.crop_height = grads.dim(1), a.crop_width = grads.dim(2), a.channels = grads.dim(3);
  a.nearest = c.attr<std::string>("method") == "nearest";
  a.out.prepare(c, 0);
  DTG_TRY(a.size.prepare(c, 3));
  return c.sync(image_grad_run<T>);
}

template <class T>
Status boxes_grad_prepare(PrepareContext& c) {
  auto& a = *c.args<CropArgs>();
  set_image(a, c.input(1).shape);
  const Shape& grads = c.input(0).shape;
  a.boxes = grads.dim(0), a.crop_height = grads.dim(1), a.crop_width = grads.dim(2);
  if ((a.height == 0 || a.width == 0) && a.boxes > 0) return c.error("images without pixels cannot be cropped");
  return c.sync(boxes_grad_run<T>);
}

constexpr const char* kImage = "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}";

template <class T>
void add_kernels(KernelTable& kernels) {
  const KernelRow::TypeClause type{"T", DTypeSet{dtype_of<T>}};
  kernels.add({.op = "CropAndResize", .types = {type}, .prepare = crop_prepare<T>});
  kernels.add({.op = "CropAndResizeGradBoxes", .types = {type}, .prepare = boxes_grad_prepare<T>});
  if constexpr (!std::is_integral_v<T>) kernels.add({.op = "CropAndResizeGradImage", .types = {type}, .prepare = image_grad_prepare<T>});
}

}  // namespace

void register_crop(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("CropAndResize")
              .input("image: T", {.rank = 4})
              .input("boxes: float", {.rank = 2})
              .input("box_ind: int32", {.rank = 1})
              .input("crop_size: int32", {.rank = 1})
              .output("crops: float")
              .attr(kImage)
              .attr("method: {'bilinear','nearest'} = 'bilinear'")
              .attr("extrapolation_value: float = 0.0")
              .shape(crop_shape)
              .gradient(crop_grad)
              .doc("Boxes cut out of images and brought to one size."));
  ops.add(OpDef::make("CropAndResizeGradImage")
              .input("grads: float", {.rank = 4})
              .input("boxes: float", {.rank = 2})
              .input("box_ind: int32", {.rank = 1})
              .input("image_size: int32", {.rank = 1})
              .output("output: T")
              .attr("T: {float, half, double}")
              .attr("method: {'bilinear','nearest'} = 'bilinear'")
              .shape(image_grad_shape)
              .gradient(nullptr)
              .doc("Gradient of CropAndResize by the images."));
  ops.add(OpDef::make("CropAndResizeGradBoxes")
              .input("grads: float", {.rank = 4})
              .input("image: T", {.rank = 4})
              .input("boxes: float", {.rank = 2})
              .input("box_ind: int32", {.rank = 1})
              .output("output: float")
              .attr(kImage)
              .attr("method: {'bilinear'} = 'bilinear'")
              .shape(boxes_grad_shape)
              .gradient(nullptr)
              .doc("Gradient of CropAndResize by the edges of the boxes."));
  add_kernels<float>(kernels);
  add_kernels<double>(kernels);
  add_kernels<Half>(kernels);
  add_kernels<int8_t>(kernels);
  add_kernels<int16_t>(kernels);
  add_kernels<int32_t>(kernels);
  add_kernels<int64_t>(kernels);
  add_kernels<uint8_t>(kernels);
  add_kernels<uint16_t>(kernels);
}

}  // namespace dtg::ops
