// Adds the nodes of convolutions and of resizing layers. Called by the thread that builds the model.
#include "nn/convolution.h"

#include "nn/layer.h"
#include "nn/scope.h"

namespace dtg {
namespace {

// What all of them check and end with.
class Convolution {
 public:
  Convolution(Model& model, const ConvLayer& layer, const char* what, const char* fallback)
      : model_(model),
        layer_(layer),
        what_(what),
        name_(layer.name.empty() ? std::string_view(fallback) : layer.name),
        build_(model.graph()) {}

  // The input's channels; `dims` of its dimensions slide.
  Result<int64_t> check(Value x, int dims, bool has_filters) {
    DTG_ASSIGN(const int64_t in, channels_of(model_, x, what_, dims + 2, dims + 2));
    if (has_filters && layer_.filters < 1) {
      return invalid_argument("%s: %lld filters; at least 1 is needed", what_, static_cast<long long>(layer_.filters));
    }
    int64_t width = 0;
    if (layer_.multiplier < 1 || __builtin_mul_overflow(in, layer_.multiplier, &width)) {
      return invalid_argument("%s: a depth multiplier of %lld for %lld channels", what_, static_cast<long long>(layer_.multiplier),
                              static_cast<long long>(in));
    }
    for (int i = 0; i < dims; ++i) {
      const auto k = static_cast<size_t>(i);
      DTG_TRY(check_window(what_, slides_inside_ ? model_.graph().info(x).shape.dim(i + 1) : -1, layer_.kernel[k], layer_.stride[k],
                           layer_.dilation[k], layer_.padding));
    }
    return in;
  }
  // A transposed convolution's windows lie in the output, a causal one's reach before the input.
  void slide_outside() { slides_inside_ = false; }

  Result<Value> weight(std::string_view name, DType dtype, std::initializer_list<int64_t> dims) {
    DTG_ASSIGN(const Shape shape, Shape::make(std::span(dims.begin(), dims.size())));
    DTG_ASSIGN(const NamedVariable made,
               variable_of(model_, layer_.weights_of, {.name = name, .dtype = dtype, .shape = shape, .initializer = layer_.kernel_init}));
    return made.read;
  }

  Result<Value> finish(Value y, int64_t filters) {
    if (layer_.use_bias && build_.ok()) y = add_bias(model_, build_, y, filters, layer_.bias_init, layer_.weights_of);
    if (build_.ok()) y = activate(build_, y, layer_.activation);
    DTG_TRY(build_.status());
    return y;
  }

  std::vector<int64_t> strides() const { return {1, layer_.stride[0], layer_.stride[1], 1}; }
  std::vector<int64_t> dilations() const { return {1, layer_.dilation[0], layer_.dilation[1], 1}; }
  std::string_view name() const { return name_; }
  Build& build() { return build_; }

 private:
  Model& model_;
  const ConvLayer& layer_;
  const char* const what_;
  const std::string_view name_;
  bool slides_inside_ = true;
  Build build_;
};

// TensorFlow's kernels take one stride for both directions; it is what the op says, so say it before anything is added.
Status check_square(const ConvLayer& layer, const char* what) {
  if (layer.stride[0] == layer.stride[1]) return {};
  return invalid_argument("%s: strides of %lld and %lld; they must be equal", what, static_cast<long long>(layer.stride[0]),
                          static_cast<long long>(layer.stride[1]));
}

}  // namespace

Result<Value> conv1d(Model& model, Value x, const ConvLayer& layer) {
  Convolution conv(model, layer, "conv1d layer", "conv1d");
  if (layer.causal) conv.slide_outside();
  DTG_ASSIGN(const int64_t in, conv.check(x, 1, true));
  const NameScope scope(model.graph(), conv.name());
  Build& b = conv.build();
  DTG_ASSIGN(const Value kernel, conv.weight("kernel", b.info(x).dtype, {layer.kernel[0], in, layer.filters}));
  if (layer.causal) {
    const int64_t before = layer.dilation[0] * (layer.kernel[0] - 1);
    x = b.op("Pad", {x, b.reshape(b.ints({0, 0, before, 0, 0, 0}), b.ints({3, 2}))});
  }
  // An image of one row.
  const Value row = b.op("ExpandDims", {x, b.integer(1)}), window = b.op("ExpandDims", {kernel, b.integer(0)});
  const Padding padding = layer.causal ? Padding::valid : layer.padding;
  const Value y = b.op("Conv2D", {row, window},
                       {{"strides", std::vector<int64_t>{1, 1, layer.stride[0], 1}},
                        {"dilations", std::vector<int64_t>{1, 1, layer.dilation[0], 1}},
                        {"padding", padding_name(padding)}});
  return conv.finish(b.op("Squeeze", {y}, {{"squeeze_dims", std::vector<int64_t>{1}}}), layer.filters);
}

Result<Value> conv3d(Model& model, Value x, const ConvLayer& layer) {
  Convolution conv(model, layer, "conv3d layer", "conv3d");
  DTG_ASSIGN(const int64_t in, conv.check(x, 3, true));
  const NameScope scope(model.graph(), conv.name());
  Build& b = conv.build();
  const auto& [deep, high, wide] = layer.kernel;
  DTG_ASSIGN(const Value kernel, conv.weight("kernel", b.info(x).dtype, {deep, high, wide, in, layer.filters}));
  const auto along = [](const std::array<int64_t, 3>& each) { return std::vector<int64_t>{1, each[0], each[1], each[2], 1}; };
  const Value y = b.op("Conv3D", {x, kernel},
                       {{"strides", along(layer.stride)}, {"dilations", along(layer.dilation)}, {"padding", padding_name(layer.padding)}});
  return conv.finish(y, layer.filters);
}

Result<Value> conv2d_transpose(Model& model, Value x, const ConvLayer& layer) {
  constexpr const char* kWhat = "conv2d transpose layer";
  Convolution conv(model, layer, kWhat, "conv2d_transpose");
  conv.slide_outside();
  DTG_ASSIGN(const int64_t in, conv.check(x, 2, true));
  if (layer.dilation[0] != 1 || layer.dilation[1] != 1) return unimplemented("%s: a dilation other than 1", kWhat);
  const NameScope scope(model.graph(), conv.name());
  Build& b = conv.build();
  DTG_ASSIGN(const Value kernel, conv.weight("kernel", b.info(x).dtype, {layer.kernel[0], layer.kernel[1], layer.filters, in}));
  const Value shape = b.shape(x);
  std::vector<Value> sizes = {dimension(b, shape, 0)};
  for (int i = 0; i < 2; ++i) {
    const auto k = static_cast<size_t>(i);
    // Where windows do not overlap, the pixels between them belong to the output too.
    const int64_t beyond = layer.padding == Padding::valid ? std::max<int64_t>(layer.kernel[k] - layer.stride[k], 0) : 0;
    sizes.push_back(b.add(b.mul(dimension(b, shape, i + 1), b.integer(layer.stride[k])), b.integer(beyond)));
  }
  sizes.push_back(b.integer(layer.filters));
  const Value y = b.op("Conv2DBackpropInput", {b.op("Pack", sizes), kernel, x},
                       {{"strides", conv.strides()}, {"padding", padding_name(layer.padding)}});
  return conv.finish(y, layer.filters);
}

Result<Value> depthwise_conv2d(Model& model, Value x, const ConvLayer& layer) {
  constexpr const char* kWhat = "depthwise conv2d layer";
  Convolution conv(model, layer, kWhat, "depthwise_conv2d");
  DTG_ASSIGN(const int64_t in, conv.check(x, 2, false));
  DTG_TRY(check_square(layer, kWhat));
  const NameScope scope(model.graph(), conv.name());
  Build& b = conv.build();
  DTG_ASSIGN(const Value kernel, conv.weight("kernel", b.info(x).dtype, {layer.kernel[0], layer.kernel[1], in, layer.multiplier}));
  const Value y = b.op("DepthwiseConv2dNative", {x, kernel},
                       {{"strides", conv.strides()}, {"dilations", conv.dilations()}, {"padding", padding_name(layer.padding)}});
  return conv.finish(y, in * layer.multiplier);
}

Result<Value> separable_conv2d(Model& model, Value x, const ConvLayer& layer) {
  constexpr const char* kWhat = "separable conv2d layer";
  Convolution conv(model, layer, kWhat, "separable_conv2d");
  DTG_ASSIGN(const int64_t in, conv.check(x, 2, true));
  DTG_TRY(check_square(layer, kWhat));
  const NameScope scope(model.graph(), conv.name());
  Build& b = conv.build();
  const DType dtype = b.info(x).dtype;
  const int64_t middle = in * layer.multiplier;
  DTG_ASSIGN(const Value depthwise, conv.weight("depthwise_kernel", dtype, {layer.kernel[0], layer.kernel[1], in, layer.multiplier}));
  DTG_ASSIGN(const Value pointwise, conv.weight("pointwise_kernel", dtype, {1, 1, middle, layer.filters}));
  const Value each = b.op("DepthwiseConv2dNative", {x, depthwise},
                          {{"strides", conv.strides()}, {"dilations", conv.dilations()}, {"padding", padding_name(layer.padding)}});
  const Value y = b.op("Conv2D", {each, pointwise}, {{"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", "VALID"}});
  return conv.finish(y, layer.filters);
}

Result<Value> global_pool(Model& model, Value x, GlobalPool kind, bool keep_dims) {
  DTG_TRY(channels_of(model, x, "global pooling", 3, 5).status());
  const NameScope scope(model.graph(), kind == GlobalPool::max ? "global_max_pool" : "global_average_pool");
  Build build(model.graph());
  std::vector<int64_t> axes;
  for (int i = 1; i + 1 < build.info(x).shape.rank(); ++i) axes.push_back(i);
  const Value y = build.op(kind == GlobalPool::max ? "Max" : "Mean", {x, build.ints(axes)}, {{"keep_dims", keep_dims}});
  DTG_TRY(build.status());
  return y;
}

namespace {

// Along one dimension: the entries of each window, the first one again where a window has fewer than the widest.
Value windows(Build& b, Value x, int axis, int64_t in, int64_t out, bool max) {
  std::vector<int64_t> entries;
  std::vector<double> shares;
  int64_t widest = 0;
  const auto start = [&](int64_t i) { return i * in / out; };
  const auto end = [&](int64_t i) { return ((i + 1) * in + out - 1) / out; };
  for (int64_t i = 0; i < out; ++i) widest = std::max(widest, end(i) - start(i));
  for (int64_t i = 0; i < out; ++i) {
    const int64_t count = end(i) - start(i);
    for (int64_t k = 0; k < widest; ++k) {
      entries.push_back(start(i) + (k < count ? k : 0));
      shares.push_back(k < count ? 1.0 / static_cast<double>(count) : 0);
    }
  }
  const Value wanted = b.reshape(b.ints(entries), b.ints({out, widest}));
  const Value parts = b.op("GatherV2", {x, wanted, b.integer(axis)});  // [..., out, widest, ...]
  if (max || !b.ok()) return b.op("Max", {parts, b.ints({axis + 1})});
  auto weights = Tensor::of<double>(Shape::of({out * widest}), std::span<const double>(shares));
  if (!weights.ok()) b.fail(weights.status());
  if (!b.ok()) return {};
  std::vector<int64_t> beside = {out, widest};
  beside.resize(beside.size() + static_cast<size_t>(b.info(x).shape.rank() - axis - 1), 1);
  const Value factors = b.reshape(b.cast(b.constant(weights.take()), b.info(x).dtype), b.ints(beside));
  return b.sum(b.mul(parts, factors), b.ints({axis + 1}));
}

}  // namespace

Result<Value> adaptive_pool(Model& model, Value given, GlobalPool kind, std::span<const int64_t> sizes) {
  Value x = given;
  constexpr const char* kWhat = "adaptive pooling";
  constexpr int64_t kMost = int64_t{1} << 20;
  DTG_TRY(channels_of(model, x, kWhat, 3, 5).status());
  const PartialShape shape = model.graph().info(x).shape;
  const auto between = static_cast<size_t>(shape.rank() - 2);
  if (sizes.size() != between) {
    return invalid_argument("%s: %zu sizes for the input %s; %zu are needed", kWhat, sizes.size(), described(model, x).c_str(), between);
  }
  for (size_t i = 0; i < between; ++i) {
    const int64_t in = shape.dim(static_cast<int>(i) + 1);
    if (sizes[i] >= 1 && sizes[i] <= kMost && in >= 1 && in <= kMost) continue;
    return invalid_argument("%s: size %lld of the input %s; sizes from 1 and known dimensions of the input, not 0, are needed", kWhat,
                            static_cast<long long>(sizes[i]), described(model, x).c_str());
  }
  const bool max = kind == GlobalPool::max;
  const NameScope scope(model.graph(), max ? "adaptive_max_pool" : "adaptive_average_pool");
  Build b(model.graph());
  for (size_t i = 0; i < between; ++i) {
    const int axis = static_cast<int>(i) + 1;
    if (shape.dim(axis) != sizes[i]) x = windows(b, x, axis, shape.dim(axis), sizes[i], max);
  }
  // Also where nothing is to be done it is a value of its own.
  if (x == given) x = b.op("Identity", {x});
  DTG_TRY(b.status());
  return x;
}

Result<Value> up_sampling2d(Model& model, Value x, int64_t high, int64_t wide, bool bilinear) {
  constexpr const char* kWhat = "up-sampling";
  DTG_TRY(channels_of(model, x, kWhat, 4, 4).status());
  if (high < 1 || wide < 1 || high > INT32_MAX || wide > INT32_MAX) {
    return invalid_argument("%s: %lld times as high and %lld times as wide; at least 1 of each is needed", kWhat,
                            static_cast<long long>(high), static_cast<long long>(wide));
  }
  const NameScope scope(model.graph(), "up_sampling2d");
  Build build(model.graph());
  const Value shape = build.shape(x);
  const Value times = build.ints({high, wide});
  const Value size = build.mul(build.op("StridedSlice", {shape, build.ints({1}), build.ints({3}), build.ints({1})}), times);
  Value y =
      build.op(bilinear ? "ResizeBilinear" : "ResizeNearestNeighbor", {x, size}, {{"align_corners", false}, {"half_pixel_centers", true}});
  // Between pixels TensorFlow computes in float32.
  if (build.ok()) y = build.cast(y, build.info(x).dtype);
  DTG_TRY(build.status());
  return y;
}

}  // namespace dtg
