// Maximum and average pooling over image windows, and their gradients. One output row is the unit of the
// forward kernels, one image that of the gradients (windows overlap). float32 with channels last goes through
// Highway. Registered once by the runtime; kernels run on any thread.
#include <algorithm>
#include <type_traits>

#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/pool.h"

namespace dtg::ops {

// The pooled shape of an image shape; windows over channels divide them (maximum only).
Result<PartialShape> pooled_shape(const Node& node, const Window& w, const PartialShape& image) {
  if (!image.has_rank()) return PartialShape::of_rank(4);
  PartialShape out = image;
  for (int i = 0; i < 2; ++i) {
    DTG_ASSIGN(const Extent extent, extent_of(node, w, i, image.dim(w.spatial_axis(i))));
    out.set_dim(w.spatial_axis(i), extent.out);
  }
  const int64_t channels = image.dim(w.channel_axis());
  if (w.outer_size[1] > 1 && channels >= 0) out.set_dim(w.channel_axis(), (channels - w.outer_size[1]) / w.outer_stride[1] + 1);
  return out;
}

Status set_pool(const Node& node, const Window& w, PoolArgs& a, const Shape& image) {
  a.nchw = w.nchw;
  a.batch = image.dim(0), a.channels = image.dim(w.channel_axis());
  a.height = image.dim(w.spatial_axis(0)), a.width = image.dim(w.spatial_axis(1));
  DTG_ASSIGN(const Extent y, extent_of(node, w, 0, a.height));
  DTG_ASSIGN(const Extent x, extent_of(node, w, 1, a.width));
  a.out_height = y.out, a.out_width = x.out, a.top = y.before, a.left = x.before;
  a.size_y = w.size[0], a.size_x = w.size[1], a.stride_y = w.stride[0], a.stride_x = w.stride[1];
  a.apart = a.size_y == a.stride_y && a.size_x == a.stride_x && a.top == 0 && a.left == 0 && a.out_height * a.size_y == a.height &&
            a.out_width * a.size_x == a.width;
  a.group = w.outer_size[1];
  a.positive = node.op->name() == "_MaxPoolGradRelu";
  const bool grouped = a.group > 1 || w.outer_stride[1] > 1;
  if (!grouped || (node.op->name() != "MaxPool" && node.op->name() != "MaxPoolV2")) {
    DTG_TRY(require_spatial(node, w));
  } else if (w.outer_size[0] != 1 || w.outer_stride[0] != 1 || a.size_y * a.size_x * a.stride_y * a.stride_x != 1 ||
             w.outer_stride[1] != a.group || a.channels % a.group != 0) {
    return unimplemented("MaxPool: windows over channels must have the stride as their size, divide the channels, and be 1 in "
                         "every other dimension");
  }
  const int64_t work = a.batch * a.out_height * a.out_width * a.channels * a.size_y * a.size_x * a.group;
  a.shards = std::clamp<int64_t>(work / 65536, 1, std::clamp<int64_t>(a.batch * a.out_height, 1, 16));
  return {};
}

namespace {

// ---- shapes ------------------------------------------------------------------------------------------------

Status pool_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 4));
  DTG_ASSIGN(const Window w, window_of(c.node()));
  for (int i = 0; i < 2; ++i) {
    const auto at = static_cast<size_t>(i);
    if (w.before[at] < w.size[at] && w.after[at] < w.size[at]) continue;
    return c.error("the padding %lld + %lld must be smaller than the window, %lld", static_cast<long long>(w.before[at]),
                   static_cast<long long>(w.after[at]), static_cast<long long>(w.size[at]));
  }
  DTG_ASSIGN(PartialShape out, pooled_shape(c.node(), w, c.input(0)));
  c.output(0, out);
  return {};
}

// Three images: the input, and two of one pooled shape (MaxPoolGrad), or of the input's (MaxPoolGradGrad).
Status check_images(InferContext& c, int pooled, int other, bool other_is_pooled) {
  for (int i = 0; i < 3; ++i) DTG_TRY(c.require_rank(i, 4));
  DTG_ASSIGN(const Window w, window_of(c.node()));
  DTG_ASSIGN(const PartialShape want, pooled_shape(c.node(), w, c.input(0)));
  auto merged = PartialShape::merge(want, c.input(pooled), "pooled shape");
  if (!merged.ok()) return c.error("orig_output: %s", merged.status().message().c_str());
  merged = PartialShape::merge(other_is_pooled ? want : c.input(0), c.input(other), "shape");
  if (!merged.ok()) return c.error("grad: %s", merged.status().message().c_str());
  return {};
}

Status max_grad_shape(InferContext& c) {
  DTG_TRY(check_images(c, 1, 2, true));
  c.output(0, c.input(0).has_rank() ? c.input(0) : PartialShape::of_rank(4));
  return {};
}

Status max_grad_grad_shape(InferContext& c) {
  DTG_TRY(check_images(c, 1, 2, false));
  DTG_ASSIGN(const Window w, window_of(c.node()));
  DTG_ASSIGN(PartialShape out, pooled_shape(c.node(), w, c.input(0)));
  c.output(0, out);
  return {};
}

Status avg_grad_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 4));
  DTG_ASSIGN(const Window w, window_of(c.node()));
  DTG_ASSIGN(PartialShape image, c.shape_from_input(0));
  if (image.has_rank() && image.rank() != 4) return c.error("orig_input_shape must have 4 elements, but has %d", image.rank());
  if (!image.has_rank()) image = PartialShape::of_rank(4);
  DTG_ASSIGN(const PartialShape want, pooled_shape(c.node(), w, image));
  auto merged = PartialShape::merge(want, c.input(1), "pooled shape");
  if (!merged.ok()) return c.error("grad: %s", merged.status().message().c_str());
  c.output(0, image);
  return {};
}

// ---- gradients ---------------------------------------------------------------------------------------------

constexpr std::string_view kWindow[] = {"ksize", "strides", "padding", "data_format"};
constexpr std::string_view kWindowPadded[] = {"ksize", "strides", "padding", "explicit_paddings", "data_format"};

Value like_this(GradContext& c, std::string_view op, std::initializer_list<Value> inputs, std::span<const std::string_view> names) {
  const auto attrs = window_attrs(c.node(), names);
  return c.b().op(op, std::span(inputs.begin(), inputs.size()), std::span<const Attr>(attrs));
}

// The gradient of a window's maximum goes to the first pixel that has it.
Status max_pool_grad(GradContext& c) {
  c.dx(0, like_this(c, "MaxPoolGrad", {c.input(0), c.output(0), c.dy()}, kWindowPadded));
  return {};
}

// Linear in `grad`: picks what max_pool_grad placed. Nothing flows to the images that only decide where.
Status max_pool_grad_grad(GradContext& c) {
  if (c.node().attr<std::string>("padding") == "EXPLICIT") {
    return unimplemented("gradient of MaxPoolGrad: padding EXPLICIT is not supported; pad the image with Pad first");
  }
  c.dx(0, c.b().zeros_like(c.input(0)));
  c.dx(1, c.b().zeros_like(c.input(1)));
  c.dx(2, like_this(c, "MaxPoolGradGrad", {c.input(0), c.input(1), c.dy()}, kWindow));
  return {};
}

Status max_pool_grad_grad_grad(GradContext& c) {
  c.dx(0, c.b().zeros_like(c.input(0)));
  c.dx(1, c.b().zeros_like(c.input(1)));
  c.dx(2, like_this(c, "MaxPoolGrad", {c.input(0), c.input(1), c.dy()}, kWindow));
  return {};
}

// Every pixel of a window gets its share.
Status avg_pool_grad(GradContext& c) {
  c.dx(0, like_this(c, "AvgPoolGrad", {c.b().shape(c.input(0)), c.dy()}, kWindow));
  return {};
}

Status avg_pool_grad_grad(GradContext& c) {
  c.dx(1, like_this(c, "AvgPool", {c.dy()}, kWindow));
  return {};
}

// ---- kernels -----------------------------------------------------------------------------------------------

template <class T>
Status max_run(RunContext& c) {
  max_rows(c.pool(), c.args<PoolArgs>(), c.in<T>(0), c.out<T>(0));
  return {};
}

template <class T>
Status max_channels_run(RunContext& c) {
  max_channels(c.pool(), c.args<PoolArgs>(), c.in<T>(0), c.out<T>(0));
  return {};
}

template <class T>
Status max_grad_run(RunContext& c) {
  max_grad_images(c.pool(), c.args<PoolArgs>(), c.in<T>(0), c.in<T>(2), c.out<T>(0));
  return {};
}

template <class T>
Status max_grad_grad_run(RunContext& c) {
  max_grad_grad_rows(c.pool(), c.args<PoolArgs>(), c.in<T>(0), c.in<T>(2), c.out<T>(0));
  return {};
}

template <class T>
using WideOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Windows of more pixels are added up in double: one float after the other would swallow what is small beside their sum.
constexpr int64_t kFloatMost = 512;

template <class T>
void average_wide(const PoolArgs& a, const T* x, const Clip& clip, int64_t n, T* to, Lookout& lookout) {
  constexpr int64_t kColumns = 64;  // sums held at a time
  const PixelLayout in = a.in(), out = a.out();
  for (int64_t first = 0; first < a.channels; first += kColumns) {
    const int64_t count = std::min(kColumns, a.channels - first);
    double sum[kColumns] = {};
    clip.rows(count, lookout, [&](int64_t y, int64_t from, int64_t end) {
      for (int64_t i = from; i < end; ++i) {
        const T* const pixel = x + in.at(n, y, i) + first * in.channel;
        for (int64_t k = 0; k < count; ++k) sum[k] += static_cast<double>(pixel[k * in.channel]);
      }
    });
    for (int64_t k = 0; k < count; ++k)
      to[(first + k) * out.channel] = static_cast<T>(static_cast<WideOf<T>>(sum[k] / static_cast<double>(clip.count())));
  }
}

template <class T>
Status avg_run(RunContext& c) {
  using Wide = WideOf<T>;
  const auto& a = c.args<PoolArgs>();
  const PixelLayout in = a.in(), out = a.out();
  const T* x = c.in<T>(0);
  for_output_rows(c.pool(), a, [&](int64_t n, int64_t oy, int64_t first, int64_t last) {
    Lookout lookout;
    for (int64_t ox = first; ox < last; ++ox) {
      const Clip clip(a, oy, ox);
      T* to = c.out<T>(0) + out.at(n, oy, ox);
      if (clip.count() > kFloatMost) {
        average_wide(a, x, clip, n, to, lookout);
        continue;
      }
      const Wide share = Wide(1) / static_cast<Wide>(clip.count());
      if constexpr (std::is_same_v<T, float>) {
        if (!a.nchw) {
          std::fill(to, to + a.channels, 0.0f);
          for (int64_t y = clip.y0; y < clip.y1; ++y) {
            for (int64_t i = clip.x0; i < clip.x1; ++i) cpu::add_to_rows(to, x + in.at(n, y, i), to, 1, a.channels);
          }
          cpu::scale_row(to, a.channels, share);
          continue;
        }
      }
      for (int64_t k = 0; k < a.channels; ++k) {
        Wide sum(0);
        for (int64_t y = clip.y0; y < clip.y1; ++y) {
          for (int64_t i = clip.x0; i < clip.x1; ++i) sum += static_cast<Wide>(x[in.at(n, y, i) + k * in.channel]);
        }
        to[k * out.channel] = static_cast<T>(sum * share);
      }
    }
  });
  return {};
}

// Input pixels gather from the windows that hold them, so 16-bit sums are rounded once. Pixels [begin, end) of row y. By itself, because
// within the loop over stretches it is compiled into a slower one.
template <class T>
[[gnu::noinline]] void avg_grad_pixels(const PoolArgs& a, const T* dy, T* dx, int64_t n, int64_t y, int64_t begin, int64_t end) {
  using Wide = WideOf<T>;
  const PixelLayout in = a.in(), out = a.out();
  // The first window that reaches a pixel, and one past the last.
  const auto first = [](int64_t at, int64_t size, int64_t stride) { return at < size ? 0 : (at - size) / stride + 1; };
  const int64_t oy0 = first(y + a.top, a.size_y, a.stride_y), oy1 = std::min((y + a.top) / a.stride_y + 1, a.out_height);
  for (int64_t x = begin; x < end; ++x) {
    const int64_t ox0 = first(x + a.left, a.size_x, a.stride_x), ox1 = std::min((x + a.left) / a.stride_x + 1, a.out_width);
    for (int64_t k = 0; k < a.channels; ++k) {
      Wide sum(0);
      for (int64_t oy = oy0; oy < oy1; ++oy) {
        Wide row(0);  // of windows: where many hold a pixel, one sum would swallow the later ones
        for (int64_t ox = ox0; ox < ox1; ++ox) {
          row += static_cast<Wide>(dy[out.at(n, oy, ox) + k * out.channel]) / static_cast<Wide>(Clip(a, oy, ox).count());
        }
        sum += row;
      }
      dx[in.at(n, y, x) + k * in.channel] = static_cast<T>(sum);
    }
  }
}

template <class T>
void avg_grad_image(const PoolArgs& a, const T* dy, T* dx, int64_t n) {
  // Windows that hold a pixel, along one axis.
  const auto holders = [](int64_t size, int64_t stride, int64_t windows) { return std::min((size - 1) / stride + 1, windows); };
  const int64_t windows = holders(a.size_y, a.stride_y, a.out_height) * holders(a.size_x, a.stride_x, a.out_width);
  const int64_t steps = (4 * windows + 1) * std::max<int64_t>(a.channels, 1);
  const int64_t stretch = 100'000 / steps + 1;
  Lookout lookout;
  for (int64_t y = 0; y < a.height; ++y) {
    for (int64_t x = 0; x < a.width; x += stretch) {
      avg_grad_pixels(a, dy, dx, n, y, x, std::min(x + stretch, a.width));
      lookout.after(std::min(stretch, a.width) * steps);
    }
  }
}

template <class T>
Status avg_grad_run(RunContext& c) {
  const auto& a = c.args<PoolArgs>();
  for_images(c.pool(), a, [&](int64_t n) { avg_grad_image(a, c.in<T>(1), c.out<T>(0), n); });
  return {};
}

Status set_pool(PrepareContext& c, PoolArgs& a, const Shape& image) {
  DTG_ASSIGN(const Window w, window_of(c.node()));
  return ops::set_pool(c.node(), w, a, image);
}

template <class T>
Status max_prepare(PrepareContext& c) {
  auto& args = *c.args<PoolArgs>();
  DTG_TRY(set_pool(c, args, c.input(0).shape));
  return c.sync(args.group > 1 ? max_channels_run<T> : max_run<T>);
}

template <class T, SyncFn kRun>
Status image_prepare(PrepareContext& c) {
  DTG_TRY(set_pool(c, *c.args<PoolArgs>(), c.input(0).shape));
  return c.sync(kRun);
}

// orig_input_shape may be known only now; then everything is worked out in run from the node's attributes.
struct LatePoolArgs {
  PoolArgs pool;
  Window window;
  Shape grad;
};

template <class T>
Status avg_grad_late_run(RunContext& c) {
  const auto& late = c.args<LatePoolArgs>();
  const int32_t* sizes = c.in<int32_t>(0);
  const std::array<int64_t, 4> dims = {sizes[0], sizes[1], sizes[2], sizes[3]};
  auto shape = Shape::make(dims);
  if (!shape.ok()) return c.error("orig_input_shape: %s", shape.status().message().c_str());
  PoolArgs a = late.pool;
  const Window& w = late.window;
  a.batch = dims[0], a.channels = dims[static_cast<size_t>(w.channel_axis())];
  a.height = dims[static_cast<size_t>(w.spatial_axis(0))], a.width = dims[static_cast<size_t>(w.spatial_axis(1))];
  DTG_ASSIGN(const Extent y, extent_of(c.node(), w, 0, a.height));
  DTG_ASSIGN(const Extent x, extent_of(c.node(), w, 1, a.width));
  a.out_height = y.out, a.out_width = x.out, a.top = y.before, a.left = x.before;
  const Shape& grad = late.grad;
  if (grad.dim(0) != a.batch || grad.dim(w.channel_axis()) != a.channels || grad.dim(w.spatial_axis(0)) != y.out ||
      grad.dim(w.spatial_axis(1)) != x.out) {
    return c.error("an image of shape %s does not pool to grad, %s", shape.value().text().c_str(), grad.text().c_str());
  }
  DTG_ASSIGN(void* dx, c.lease_output(0, dtype_of<T>, shape.value()));
  for (const int64_t n : watched(a.batch, a.height * a.width * a.channels)) avg_grad_image(a, c.in<T>(1), static_cast<T*>(dx), n);
  return {};
}

template <class T>
Status avg_grad_prepare(PrepareContext& c) {
  if (!c.output(0).dynamic) {
    DTG_TRY(set_pool(c, *c.args<PoolArgs>(), c.output(0).shape));
    return c.sync(avg_grad_run<T>);
  }
  auto& late = *c.args<LatePoolArgs>();
  DTG_ASSIGN(late.window, window_of(c.node()));
  DTG_TRY(require_spatial(c.node(), late.window));
  if (c.input(0).shape.count() != 4)
    return c.error("orig_input_shape must have 4 elements, but has shape %s", c.input(0).shape.text().c_str());
  late.grad = c.input(1).shape;
  late.pool.nchw = late.window.nchw;
  late.pool.size_y = late.window.size[0], late.pool.size_x = late.window.size[1];
  late.pool.stride_y = late.window.stride[0], late.pool.stride_x = late.window.stride[1];
  return c.sync(avg_grad_late_run<T>);
}

template <class T>
void add_max(KernelTable& kernels) {
  const KernelRow::TypeClause type{"T", DTypeSet{dtype_of<T>}};
  kernels.add({.op = "MaxPool", .types = {type}, .prepare = max_prepare<T>});
  kernels.add({.op = "MaxPoolGrad", .types = {type}, .prepare = image_prepare<T, max_grad_run<T>>});
  kernels.add({.op = "MaxPoolGradGrad", .types = {type}, .prepare = image_prepare<T, max_grad_grad_run<T>>});
}

template <class T>
void add_avg(KernelTable& kernels) {
  const KernelRow::TypeClause type{"T", DTypeSet{dtype_of<T>}};
  kernels.add({.op = "AvgPool", .types = {type}, .prepare = image_prepare<T, avg_run<T>>});
  kernels.add({.op = "AvgPoolGrad", .types = {type}, .prepare = avg_grad_prepare<T>});
}

constexpr const char* kSize = "ksize: list(int) >= 4";
constexpr const char* kStrides = "strides: list(int) >= 4";
constexpr const char* kFormat = "data_format: {'NHWC','NCHW'} = 'NHWC'";
constexpr const char* kReal = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64} = float";
constexpr const char* kFractions = "T: {half, bfloat16, float, double}";

// The attributes of windows that may have any padding, and of those that may not.
OpDef&& any_windows(OpDef&& def) {
  return std::move(def).attr(kSize).attr(kStrides).attr("padding: {'SAME','VALID','EXPLICIT'}").attr("explicit_paddings: list(int) = []");
}
OpDef&& windows(OpDef&& def) { return std::move(def).attr(kSize).attr(kStrides).attr("padding: {'SAME','VALID'}").attr(kFormat); }

// What the gradients of a maximum look at: which pixel it was, and what to send or to fetch there.
OpDef&& three_images(OpDef&& def) {
  return std::move(def)
      .input("orig_input: T", {.rank = 4})
      .input("orig_output: T", {.rank = 4})
      .input("grad: T", {.rank = 4})
      .output("output: T");
}

void register_max(OpTable& ops) {
  constexpr const char* kAny = "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = float";
  ops.add(any_windows(OpDef::make("MaxPool").input("input: T", {.rank = 4}).output("output: T").attr(kAny))
              .attr("data_format: {'NHWC','NCHW','NCHW_VECT_C'} = 'NHWC'")
              .shape(pool_shape)
              .gradient(max_pool_grad)
              .doc("The largest value of each window."));
  ops.add(any_windows(three_images(OpDef::make("MaxPoolGrad")))
              .attr(kFormat)
              .attr(kReal)
              .shape(max_grad_shape)
              .gradient(max_pool_grad_grad)
              .doc("Gradient of MaxPool: each window's gradient at the first pixel that holds its maximum."));
  // ReluGrad of MaxPoolGrad over the same image; made by the planner.
  ops.add(any_windows(three_images(OpDef::make("_MaxPoolGradRelu")))
              .attr(kFormat)
              .attr("T: {float}")
              .shape(max_grad_shape)
              .no_gradient()
              .doc("MaxPoolGrad and the ReluGrad after it."));
  ops.add(windows(three_images(OpDef::make("MaxPoolGradGrad")))
              .attr(kReal)
              .shape(max_grad_grad_shape)
              .gradient(max_pool_grad_grad_grad)
              .doc("Gradient of MaxPoolGrad: of each window, the value at the first pixel that holds its maximum."));
}

void register_avg(OpTable& ops) {
  ops.add(windows(OpDef::make("AvgPool").input("value: T", {.rank = 4}).output("output: T"))
              .attr(kFractions)
              .shape(pool_shape)
              .gradient(avg_pool_grad)
              .doc("The average of each window; padding does not count."));
  ops.add(
      windows(OpDef::make("AvgPoolGrad").input("orig_input_shape: int32", {.rank = 1}).input("grad: T", {.rank = 4}).output("output: T"))
          .attr(kFractions)
          .shape(avg_grad_shape)
          .gradient(avg_pool_grad_grad)
          .doc("Gradient of AvgPool: each window's gradient shared out equally."));
}

}  // namespace

void register_pool(OpTable& ops, KernelTable& kernels) {
  register_max(ops);
  register_avg(ops);
  register_pool_places(ops, kernels);
  register_pool3d(ops, kernels);
  kernels.add({.op = "_MaxPoolGradRelu", .types = {{"T", DTypeSet{DType::f32}}}, .prepare = image_prepare<float, max_grad_run<float>>});
  add_max<float>(kernels);
  add_max<double>(kernels);
  add_max<Half>(kernels);
  add_max<BFloat16>(kernels);
  add_max<int8_t>(kernels);
  add_max<int16_t>(kernels);
  add_max<int32_t>(kernels);
  add_max<int64_t>(kernels);
  add_max<uint8_t>(kernels);
  add_max<uint16_t>(kernels);
  add_avg<float>(kernels);
  add_avg<double>(kernels);
  add_avg<Half>(kernels);
  add_avg<BFloat16>(kernels);
}

}  // namespace dtg::ops
