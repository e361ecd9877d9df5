// Conv2D, DepthwiseConv2dNative, their backprops and the convolution the planner fuses with a bias and an activation. float32
// goes through device/cpu/conv, in groups of channels through conv_grouped or, with a group for every channel, depthwise; other types
// and channel groups first take the plain loops.
// Registered once by the runtime; kernels run on any thread.
#include <algorithm>
#include <type_traits>

#include "device/cpu/conv_grouped.h"
#include "device/cpu/conv_plain.h"
#include "device/cpu/conv_strided.h"
#include "device/cpu/depthwise.h"
#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/window.h"

namespace dtg::ops {
namespace {

using cpu::ConvDims;

// ---- shapes ------------------------------------------------------------------------------------------------

// A depthwise filter is [height, width, channels, filters of each]: memory for memory that of a convolution in groups of one channel.
bool is_depthwise(const Node& node) { return node.op->name().starts_with("Depthwise"); }

Status check_depthwise(const Node& node, const Window& w, int64_t channels, const PartialShape& filter) {
  const char* name = node.op->name().c_str();
  if (w.stride[0] != w.stride[1]) {
    return invalid_argument("%s: strides must be the same along height and width, but are %lld and %lld", name,
                            static_cast<long long>(w.stride[0]), static_cast<long long>(w.stride[1]));
  }
  if (channels < 0 || !filter.has_rank() || filter.dim(2) < 0 || channels == filter.dim(2)) return {};
  return invalid_argument("%s: the input has %lld channels, but the filter is for %lld", name, static_cast<long long>(channels),
                          static_cast<long long>(filter.dim(2)));
}

// Output channels of a filter; -1 where they are not known.
Result<int64_t> channels_out(const Node& node, const PartialShape& filter) {
  if (!is_depthwise(node)) return filter.dim(3);
  if (filter.dim(2) < 0 || filter.dim(3) < 0) return int64_t{-1};
  const Bytes product = Bytes::of(filter.dim(2), filter.dim(3));
  if (product.is_overflow()) return invalid_argument("%s: the filter %s is too large", node.op->name().c_str(), filter.text().c_str());
  return product.value();
}

// A filter with fewer channels than the image works on groups of them.
Status check_groups(const Node& node, int64_t channels, const PartialShape& filter) {
  const int64_t depth = filter.dim(2);
  const char* name = node.op->name().c_str();
  if (channels >= 0 && depth == 0 && channels > 0) {
    return invalid_argument("%s: the filter %s has no input channels", name, filter.text().c_str());
  }
  if (channels >= 0 && depth > 0 && channels % depth != 0) {
    return invalid_argument("%s: the input has %lld channels, which the filter's %lld do not divide", name,
                            static_cast<long long>(channels), static_cast<long long>(depth));
  }
  if (channels > 0 && depth > 0 && filter.dim(3) >= 0 && filter.dim(3) % (channels / depth) != 0) {
    return invalid_argument("%s: %lld groups of channels do not divide the %lld output channels", name,
                            static_cast<long long>(channels / depth), static_cast<long long>(filter.dim(3)));
  }
  return {};
}

// Input, filter and output shapes belong together: the output's shape from the other two, or what is wrong.
Result<PartialShape> convolved_shape(const Node& node, const PartialShape& image, const PartialShape& filter) {
  DTG_ASSIGN(Window w, window_of(node));
  PartialShape out = PartialShape::of_rank(4);
  if (image.has_rank()) out.set_dim(0, image.dim(0));
  if (is_depthwise(node)) DTG_TRY(check_depthwise(node, w, image.has_rank() ? image.dim(w.channel_axis()) : -1, filter));
  if (!filter.has_rank()) return out;
  DTG_ASSIGN(const int64_t produced, channels_out(node, filter));
  out.set_dim(w.channel_axis(), produced);
  if (!image.has_rank()) return out;
  if (!is_depthwise(node)) DTG_TRY(check_groups(node, image.dim(w.channel_axis()), filter));
  for (int i = 0; i < 2; ++i) {
    if (filter.dim(i) < 0) continue;
    if (filter.dim(i) == 0) {
      return invalid_argument("%s: the filter %s is empty", node.op->name().c_str(), filter.text().c_str());
    }
    w.size[static_cast<size_t>(i)] = filter.dim(i);
    DTG_ASSIGN(const Extent extent, extent_of(node, w, i, image.dim(w.spatial_axis(i))));
    out.set_dim(w.spatial_axis(i), extent.out);
  }
  return out;
}

Status conv_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 4));
  DTG_TRY(c.require_rank(1, 4));
  DTG_ASSIGN(PartialShape out, convolved_shape(c.node(), c.input(0), c.input(1)));
  c.output(0, out);
  return {};
}

Status fused_conv_shape(InferContext& c) {
  DTG_TRY(conv_shape(c));
  return c.require_rank(2, 1);
}

Status check_gradient(InferContext& c, const PartialShape& image, const PartialShape& filter) {
  DTG_TRY(c.require_rank(2, 4));
  DTG_ASSIGN(const PartialShape want, convolved_shape(c.node(), image, filter));
  auto merged = PartialShape::merge(want, c.input(2), "output shape");
  if (!merged.ok()) return c.error("out_backprop: %s", merged.status().message().c_str());
  return {};
}

// input_sizes may leave batch and channels to the other inputs: [height, width].
Result<PartialShape> given_image(InferContext& c) {
  DTG_ASSIGN(PartialShape sizes, c.shape_from_input(0));
  if (!sizes.has_rank()) return PartialShape::of_rank(4);
  if (sizes.rank() == 4) return sizes;
  if (sizes.rank() != 2 || is_depthwise(c.node()))
    return c.error("input_sizes must have 4 elements (or 2: height and width), but has %d", sizes.rank());
  DTG_ASSIGN(const Window w, window_of(c.node()));
  PartialShape image = PartialShape::of_rank(4);
  for (int i = 0; i < 2; ++i) image.set_dim(w.spatial_axis(i), sizes.dim(i));
  if (c.input(2).has_rank()) image.set_dim(0, c.input(2).dim(0));
  if (c.input(1).has_rank()) image.set_dim(w.channel_axis(), c.input(1).dim(2));
  return image;
}

Status conv_input_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 4));
  DTG_TRY(c.require_rank(2, 4));
  DTG_ASSIGN(PartialShape image, given_image(c));
  DTG_TRY(check_gradient(c, image, c.input(1)));
  c.output(0, image);
  return {};
}

Status conv_filter_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 4));
  DTG_ASSIGN(PartialShape filter, c.shape_from_input(1));
  if (filter.has_rank() && filter.rank() != 4) return c.error("filter_sizes must have 4 elements, but has %d", filter.rank());
  if (!filter.has_rank()) filter = PartialShape::of_rank(4);
  DTG_TRY(check_gradient(c, c.input(0), filter));
  c.output(0, filter);
  return {};
}

// ---- gradients ---------------------------------------------------------------------------------------------

Value like_this(GradContext& c, std::string_view op, std::initializer_list<Value> inputs) {
  static constexpr std::string_view kNames[] = {"strides", "use_cudnn_on_gpu", "padding", "explicit_paddings", "data_format", "dilations"};
  const auto attrs = window_attrs(c.node(), kNames);
  return c.b().op(op, std::span(inputs.begin(), inputs.size()), std::span<const Attr>(attrs));
}

// The op of the same kind for a way.
std::string of_kind(GradContext& c, const char* way) {
  return (is_depthwise(c.node()) ? "DepthwiseConv2dNative" : "Conv2D") + std::string(way);
}

// The three ops are the three ways to use one trilinear form of (input, filter, output), so each is the
// gradient of the others.
Status conv_grad(GradContext& c) {
  const Value x = c.input(0), filter = c.input(1), dy = c.dy();
  c.dx(0, like_this(c, of_kind(c, "BackpropInput"), {c.b().shape(x), filter, dy}));
  c.dx(1, like_this(c, of_kind(c, "BackpropFilter"), {x, c.b().shape(filter), dy}));
  return {};
}

Status conv_input_grad(GradContext& c) {
  const Value filter = c.input(1), out = c.input(2), dy = c.dy();
  c.dx(1, like_this(c, of_kind(c, "BackpropFilter"), {dy, c.b().shape(filter), out}));
  c.dx(2, like_this(c, of_kind(c, ""), {dy, filter}));
  return {};
}

Status conv_filter_grad(GradContext& c) {
  const Value x = c.input(0), out = c.input(2), dy = c.dy();
  c.dx(0, like_this(c, of_kind(c, "BackpropInput"), {c.b().shape(x), dy, out}));
  c.dx(2, like_this(c, of_kind(c, ""), {x, dy}));
  return {};
}

// ---- kernels -----------------------------------------------------------------------------------------------

struct ConvArgs {
  ConvDims dims;
  cpu::SweepPlan sweep;
  cpu::FilterPlan filter;
  cpu::DepthwisePlan depthwise;
  cpu::GroupedSweep grouped;
  cpu::GroupedFilter grouped_filter;
  bool bias = false, relu = false;
  int64_t shards = 1;  // of the plain loops
};

Result<ConvDims> conv_dims(const Node& node, const Shape& image, const Shape& filter) {
  DTG_ASSIGN(Window w, window_of(node));
  DTG_TRY(require_spatial(node, w));
  ConvDims d;
  d.nchw = w.nchw;
  d.batch = image.dim(0), d.channels = image.dim(w.channel_axis());
  d.height = image.dim(w.spatial_axis(0)), d.width = image.dim(w.spatial_axis(1));
  d.filter_height = filter.dim(0), d.filter_width = filter.dim(1);
  d.out_channels = is_depthwise(node) ? filter.dim(2) * filter.dim(3) : filter.dim(3);
  d.groups = is_depthwise(node)  ? std::max<int64_t>(d.channels, 1)
             : filter.dim(2) > 0 ? std::max<int64_t>(d.channels / filter.dim(2), 1)
                                 : 1;
  w.size = {d.filter_height, d.filter_width};
  DTG_ASSIGN(const Extent y, extent_of(node, w, 0, d.height));
  DTG_ASSIGN(const Extent x, extent_of(node, w, 1, d.width));
  d.out_height = y.out, d.out_width = x.out, d.top = y.before, d.left = x.before;
  d.stride_y = w.stride[0], d.stride_x = w.stride[1];
  d.dilation_y = w.dilation[0], d.dilation_x = w.dilation[1];
  return d;
}

int64_t plain_steps(const ConvDims& d) {
  const double steps = static_cast<double>(d.batch * d.out_height * d.out_width * d.out_channels) *
                       static_cast<double>(d.filter_height * d.filter_width * d.filter_depth());
  return static_cast<int64_t>(std::min(steps, 1e18));
}

int64_t plain_shards(const ConvDims& d, int64_t units) {
  return std::clamp<int64_t>(plain_steps(d) >> 17, 1, std::clamp<int64_t>(units, 1, 16));
}

template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, double>, double, std::conditional_t<std::is_integral_v<T>, uint64_t, float>>;

template <class Fn>
void for_units(Pool& pool, const ConvDims& d, int64_t units, int64_t shards, Fn fn) {
  const int64_t each = plain_steps(d) / std::max<int64_t>(units, 1);
  pool.parallel_for(shards, [&](int64_t shard) { look_between(units * shard / shards, units * (shard + 1) / shards, each, fn); });
}

template <class T>
Status forward_plain_run(RunContext& c) {
  const auto& a = c.args<ConvArgs>();
  for_units(c.pool(), a.dims, cpu::plain_forward_units(a.dims), a.shards,
            [&](int64_t unit) { cpu::plain_conv_forward<T, SumOf<T>>(a.dims, c.in<T>(0), c.in<T>(1), c.out<T>(0), unit); });
  return {};
}

template <class T>
Status input_plain_run(RunContext& c) {
  const auto& a = c.args<ConvArgs>();
  for_units(c.pool(), a.dims, cpu::plain_input_units(a.dims), a.shards,
            [&](int64_t unit) { cpu::plain_conv_input<T, SumOf<T>>(a.dims, c.in<T>(2), c.in<T>(1), c.out<T>(0), unit); });
  return {};
}

template <class T>
Status filter_plain_run(RunContext& c) {
  const auto& a = c.args<ConvArgs>();
  for_units(c.pool(), a.dims, cpu::plain_filter_units(a.dims), a.shards,
            [&](int64_t unit) { cpu::plain_conv_filter<T, SumOf<T>>(a.dims, c.in<T>(0), c.in<T>(2), c.out<T>(0), unit); });
  return {};
}

Status forward_run(RunContext& c) {
  const auto& a = c.args<ConvArgs>();
  const float* bias = a.bias ? c.in<float>(2) : nullptr;
  cpu::conv_sweep(a.sweep, c.pool(), c.in<float>(0), c.in<float>(1), bias, a.relu, c.out<float>(0), c.workspace());
  return {};
}

Status input_run(RunContext& c) {
  const auto& a = c.args<ConvArgs>();
  cpu::conv_sweep(a.sweep, c.pool(), c.in<float>(2), c.in<float>(1), nullptr, false, c.out<float>(0), c.workspace());
  return {};
}

Status input_strided_run(RunContext& c) {
  cpu::strided_input(c.args<cpu::StridedInputPlan>(), c.pool(), c.in<float>(2), c.in<float>(1), c.out<float>(0), c.workspace());
  return {};
}

Status filter_run(RunContext& c) {
  const auto& a = c.args<ConvArgs>();
  cpu::conv_filter(a.filter, c.pool(), c.in<float>(0), c.in<float>(2), c.out<float>(0), c.workspace());
  return {};
}

Status forward_depthwise_run(RunContext& c) {
  cpu::depthwise_forward(c.args<ConvArgs>().depthwise, c.pool(), c.in<float>(0), c.in<float>(1), c.out<float>(0), c.workspace());
  return {};
}

Status input_depthwise_run(RunContext& c) {
  cpu::depthwise_input(c.args<ConvArgs>().depthwise, c.pool(), c.in<float>(2), c.in<float>(1), c.out<float>(0), c.workspace());
  return {};
}

Status filter_depthwise_run(RunContext& c) {
  cpu::depthwise_filter(c.args<ConvArgs>().depthwise, c.pool(), c.in<float>(0), c.in<float>(2), c.out<float>(0), c.workspace());
  return {};
}

template <class T>
bool is_fast_depthwise(const ConvDims& d) {
  return std::is_same_v<T, float> && cpu::is_depthwise(d) && !cpu::reaches_far(d);
}

Status set_depthwise(PrepareContext& c, ConvArgs& args, const cpu::DepthwisePlan& plan, SyncFn run) {
  args.depthwise = plan;
  c.workspace(plan.workspace());
  return c.sync(run);
}

Status forward_grouped_run(RunContext& c) {
  cpu::grouped_sweep(c.args<ConvArgs>().grouped, c.pool(), c.in<float>(0), c.in<float>(1), c.out<float>(0), c.workspace());
  return {};
}

Status input_grouped_run(RunContext& c) {
  cpu::grouped_sweep(c.args<ConvArgs>().grouped, c.pool(), c.in<float>(2), c.in<float>(1), c.out<float>(0), c.workspace());
  return {};
}

Status filter_grouped_run(RunContext& c) {
  cpu::grouped_filter(c.args<ConvArgs>().grouped_filter, c.pool(), c.in<float>(0), c.in<float>(2), c.out<float>(0), c.workspace());
  return {};
}

template <class T>
bool is_fast_grouped(const ConvDims& d) {
  return std::is_same_v<T, float> && cpu::is_grouped(d) && !cpu::reaches_far(d);
}

Status set_grouped(PrepareContext& c, ConvArgs& args, const cpu::GroupedSweep& plan, SyncFn run) {
  args.grouped = plan;
  c.workspace(plan.workspace());
  return c.sync(run);
}

template <class T>
bool is_fast(const ConvDims& d) {
  return std::is_same_v<T, float> && d.groups == 1 && !cpu::reaches_far(d);
}

template <class T>
Status forward_prepare(PrepareContext& c) {
  auto& args = *c.args<ConvArgs>();
  DTG_ASSIGN(args.dims, conv_dims(c.node(), c.input(0).shape, c.input(1).shape));
  if (is_fast<T>(args.dims)) {
    args.sweep = cpu::conv_forward_plan(args.dims);
    c.workspace(args.sweep.workspace());
    return c.sync(forward_run);
  }
  if (is_fast_depthwise<T>(args.dims)) return set_depthwise(c, args, cpu::depthwise_forward_plan(args.dims), forward_depthwise_run);
  if (is_fast_grouped<T>(args.dims)) return set_grouped(c, args, cpu::grouped_forward_plan(args.dims), forward_grouped_run);
  args.shards = plain_shards(args.dims, cpu::plain_forward_units(args.dims));
  return c.sync(forward_plain_run<T>);
}

// Bias and activation ride along in the fast kernel only, so the planner must not fuse grouped channels.
Status fused_prepare(PrepareContext& c) {
  auto& args = *c.args<ConvArgs>();
  args.bias = true;
  args.relu = c.attr<std::string>("activation") == "Relu";
  DTG_ASSIGN(args.dims, conv_dims(c.node(), c.input(0).shape, c.input(1).shape));
  if (args.dims.groups != 1) return unimplemented("_FusedConv2D: channel groups are not supported; use Conv2D and BiasAdd");
  if (c.input(2).shape.count() != args.dims.out_channels) {
    return c.error("bias %s does not fit %lld output channels", c.input(2).shape.text().c_str(),
                   static_cast<long long>(args.dims.out_channels));
  }
  args.sweep = cpu::conv_forward_plan(args.dims);
  c.workspace(args.sweep.workspace());
  return c.sync(forward_run);
}

// A shape that came with the step: read, checked against the gradient's, and run by the plain loops, which
// need no workspace. Axis 0 of the two: which input holds the sizes, and what the other shape is.
Result<Shape> shape_now(RunContext& c, int input) {
  const int32_t* sizes = c.in<int32_t>(input);
  const std::array<int64_t, 4> dims = {sizes[0], sizes[1], sizes[2], sizes[3]};
  return Shape::make(dims);
}

struct LateArgs {
  Shape known, grad;  // of the filter (the input), and of out_backprop
};

Result<ConvDims> late_dims(RunContext& c, const Shape& image, const Shape& filter, const Shape& grad) {
  DTG_ASSIGN(const PartialShape want, convolved_shape(c.node(), image, filter));
  if (!want.admits(grad)) {
    return c.error("input %s and filter %s give output %s, but out_backprop is %s", image.text().c_str(), filter.text().c_str(),
                   want.text().c_str(), grad.text().c_str());
  }
  return conv_dims(c.node(), image, filter);
}

template <class T>
Status input_late_run(RunContext& c) {
  const auto& late = c.args<LateArgs>();
  DTG_ASSIGN(const Shape image, shape_now(c, 0));
  DTG_ASSIGN(const ConvDims d, late_dims(c, image, late.known, late.grad));
  DTG_ASSIGN(void* dx, c.lease_output(0, dtype_of<T>, image));
  const int64_t units = cpu::plain_input_units(d);
  for_units(c.pool(), d, units, plain_shards(d, units),
            [&](int64_t unit) { cpu::plain_conv_input<T, SumOf<T>>(d, c.in<T>(2), c.in<T>(1), static_cast<T*>(dx), unit); });
  return {};
}

template <class T>
Status filter_late_run(RunContext& c) {
  const auto& late = c.args<LateArgs>();
  DTG_ASSIGN(const Shape filter, shape_now(c, 1));
  DTG_ASSIGN(const ConvDims d, late_dims(c, late.known, filter, late.grad));
  DTG_ASSIGN(void* df, c.lease_output(0, dtype_of<T>, filter));
  const int64_t units = cpu::plain_filter_units(d);
  for_units(c.pool(), d, units, plain_shards(d, units),
            [&](int64_t unit) { cpu::plain_conv_filter<T, SumOf<T>>(d, c.in<T>(0), c.in<T>(2), static_cast<T*>(df), unit); });
  return {};
}

Status set_late(PrepareContext& c, int sizes) {
  if (c.input(sizes).shape.count() != 4) {
    return c.error("the sizes are not known before the step and must have 4 elements, but have shape %s",
                   c.input(sizes).shape.text().c_str());
  }
  auto& late = *c.args<LateArgs>();
  late.known = c.input(1 - sizes).shape;
  late.grad = c.input(2).shape;
  return {};
}

template <class T>
Status input_prepare(PrepareContext& c) {
  if (c.output(0).dynamic) {
    DTG_TRY(set_late(c, 0));
    return c.sync(input_late_run<T>);
  }
  DTG_ASSIGN(const ConvDims dims, conv_dims(c.node(), c.output(0).shape, c.input(1).shape));
  if (is_fast<T>(dims) && cpu::is_strided(dims)) {
    auto& plan = *c.args<cpu::StridedInputPlan>();
    plan = cpu::strided_input_plan(dims);
    c.workspace(plan.workspace());
    return c.sync(input_strided_run);
  }
  auto& args = *c.args<ConvArgs>();
  args.dims = dims;
  if (is_fast<T>(args.dims)) {
    args.sweep = cpu::conv_input_plan(args.dims);
    c.workspace(args.sweep.workspace());
    return c.sync(input_run);
  }
  if (is_fast_depthwise<T>(args.dims)) return set_depthwise(c, args, cpu::depthwise_input_plan(args.dims), input_depthwise_run);
  if (is_fast_grouped<T>(args.dims)) return set_grouped(c, args, cpu::grouped_input_plan(args.dims), input_grouped_run);
  args.shards = plain_shards(args.dims, cpu::plain_input_units(args.dims));
  return c.sync(input_plain_run<T>);
}

template <class T>
Status filter_prepare(PrepareContext& c) {
  if (c.output(0).dynamic) {
    DTG_TRY(set_late(c, 1));
    return c.sync(filter_late_run<T>);
  }
  auto& args = *c.args<ConvArgs>();
  DTG_ASSIGN(args.dims, conv_dims(c.node(), c.input(0).shape, c.output(0).shape));
  if (is_fast<T>(args.dims)) {
    args.filter = cpu::conv_filter_plan(args.dims);
    c.workspace(args.filter.workspace());
    return c.sync(filter_run);
  }
  if (is_fast_depthwise<T>(args.dims)) return set_depthwise(c, args, cpu::depthwise_filter_plan(args.dims), filter_depthwise_run);
  if (is_fast_grouped<T>(args.dims)) {
    args.grouped_filter = cpu::grouped_filter_plan(args.dims);
    c.workspace(args.grouped_filter.workspace());
    return c.sync(filter_grouped_run);
  }
  args.shards = plain_shards(args.dims, cpu::plain_filter_units(args.dims));
  return c.sync(filter_plain_run<T>);
}

template <class T>
void add_kernels(KernelTable& kernels) {
  const KernelRow::TypeClause type{"T", DTypeSet{dtype_of<T>}};
  kernels.add({.op = "Conv2D", .types = {type}, .prepare = forward_prepare<T>});
  kernels.add({.op = "Conv2DBackpropInput", .types = {type}, .prepare = input_prepare<T>});
  if constexpr (!std::is_integral_v<T>) {
    kernels.add({.op = "Conv2DBackpropFilter", .types = {type}, .prepare = filter_prepare<T>});
    kernels.add({.op = "DepthwiseConv2dNative", .types = {type}, .prepare = forward_prepare<T>});
    kernels.add({.op = "DepthwiseConv2dNativeBackpropInput", .types = {type}, .prepare = input_prepare<T>});
    kernels.add({.op = "DepthwiseConv2dNativeBackpropFilter", .types = {type}, .prepare = filter_prepare<T>});
  }
}

OpDef&& window_def(OpDef&& def, bool cudnn = true) {
  std::move(def).attr("strides: list(int)");
  if (cudnn) std::move(def).attr("use_cudnn_on_gpu: bool = true");
  return std::move(def)
      .attr("padding: {'SAME','VALID','EXPLICIT'}")
      .attr("explicit_paddings: list(int) = []")
      .attr("data_format: {'NHWC','NCHW'} = 'NHWC'")
      .attr("dilations: list(int) = [1, 1, 1, 1]");
}

void register_depthwise_ops(OpTable& ops) {
  constexpr const char* kType = "T: {half, bfloat16, float, double}";
  ops.add(window_def(OpDef::make("DepthwiseConv2dNative")
                         .input("input: T", {.rank = 4})
                         .input("filter: T", {.rank = 4})
                         .output("output: T")
                         .attr(kType),
                     false)
              .shape(conv_shape)
              .gradient(conv_grad)
              .doc("Two-dimensional convolution of each channel with filters of its own."));
  ops.add(window_def(OpDef::make("DepthwiseConv2dNativeBackpropInput")
                         .input("input_sizes: int32", {.rank = 1})
                         .input("filter: T", {.rank = 4})
                         .input("out_backprop: T", {.rank = 4})
                         .output("output: T")
                         .attr(kType),
                     false)
              .shape(conv_input_shape)
              .gradient(conv_input_grad)
              .doc("Gradient of DepthwiseConv2dNative with respect to its input."));
  ops.add(window_def(OpDef::make("DepthwiseConv2dNativeBackpropFilter")
                         .input("input: T", {.rank = 4})
                         .input("filter_sizes: int32", {.rank = 1})
                         .input("out_backprop: T", {.rank = 4})
                         .output("output: T")
                         .attr(kType),
                     false)
              .shape(conv_filter_shape)
              .gradient(conv_filter_grad)
              .doc("Gradient of DepthwiseConv2dNative with respect to its filter."));
}

}  // namespace

void register_conv(OpTable& ops, KernelTable& kernels) {
  register_depthwise_ops(ops);
  register_conv3d(ops, kernels);
  register_dilation(ops, kernels);
  ops.add(window_def(OpDef::make("Conv2D")
                         .input("input: T", {.rank = 4})
                         .input("filter: T", {.rank = 4})
                         .output("output: T")
                         .attr("T: {half, bfloat16, float, double, int32}"))
              .shape(conv_shape)
              .gradient(conv_grad)
              .doc("Two-dimensional convolution (cross-correlation); a filter with fewer channels works on groups of them."));
  ops.add(window_def(OpDef::make("Conv2DBackpropInput")
                         .input("input_sizes: int32", {.rank = 1})
                         .input("filter: T", {.rank = 4})
                         .input("out_backprop: T", {.rank = 4})
                         .output("output: T")
                         .attr("T: {half, bfloat16, float, double, int32}"))
              .shape(conv_input_shape)
              .gradient(conv_input_grad)
              .doc("Gradient of Conv2D with respect to its input."));
  ops.add(window_def(OpDef::make("Conv2DBackpropFilter")
                         .input("input: T", {.rank = 4})
                         .input("filter_sizes: int32", {.rank = 1})
                         .input("out_backprop: T", {.rank = 4})
                         .output("output: T")
                         .attr("T: {half, bfloat16, float, double}"))
              .shape(conv_filter_shape)
              .gradient(conv_filter_grad)
              .doc("Gradient of Conv2D with respect to its filter."));
  ops.add(window_def(OpDef::make("_FusedConv2D")
                         .input("input: T", {.rank = 4})
                         .input("filter: T", {.rank = 4})
                         .input("bias: T", {.rank = 1})
                         .output("output: T")
                         .attr("T: {float}"))
              .attr("activation: {'','Relu'} = ''")
              .shape(fused_conv_shape)
              .no_gradient()
              .doc("Conv2D, BiasAdd and an activation in one pass. Made by the planner."));
  kernels.add({.op = "_FusedConv2D", .types = {{"T", DTypeSet{DType::f32}}}, .prepare = fused_prepare});
  add_kernels<float>(kernels);
  add_kernels<double>(kernels);
  add_kernels<Half>(kernels);
  add_kernels<BFloat16>(kernels);
  add_kernels<int32_t>(kernels);
}

}  // namespace dtg::ops
