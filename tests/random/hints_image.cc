// Hints for batch norm, volumes, resizing, blocks of images, mirrors and recurrent cells: sizes that fit each other.
#include "random/hints.h"

namespace dtg::random {
namespace {

using Dims = std::vector<int64_t>;

// Arguments in order, each of the type that its attribute says, with these dimensions.
void tensors(Ask& a, std::initializer_list<std::pair<const char*, Dims>> list) {
  for (const auto& [name, dims] : list) a.put(name, a.w.wanted(a.dtype(name), with_dims(dims)));
}

// A size along one axis and what a window of `k` with stride `s` makes of it.
struct Axis {
  int64_t in, k, s;
  bool same;
  Axis(Draw& draw, bool pads) : in(draw.between(3, 5)), k(draw.between(1, 3)), s(draw.between(1, 2)), same(pads) {}
  int64_t out() const { return same ? (in + s - 1) / s : (in - k + s) / s; }
};

void norm(Ask& a) {
  Draw& draw = a.w.draw;
  const bool gradient = a.op.name().find("Grad") != std::string::npos, first = draw.chance(25), training = draw.chance(50);
  a.set("data_format", first ? "NCHW" : "NHWC");
  a.set("is_training", training);
  if (a.op.find_attr("U")) a.set("U", DType::f32);
  const int64_t c = draw.between(1, 5), n = draw.between(1, 3);
  const Dims image = first ? Dims{n, c, 2, 3} : Dims{n, 2, 3, c};
  if (!gradient) {
    const bool averages = draw.chance(40);
    a.set("exponential_avg_factor", averages ? 0.25 : 1.0);
    const Dims moments = {training && !averages ? 0 : c};
    return tensors(a, {{"x", image}, {"scale", {c}}, {"offset", {c}}, {"mean", moments}, {"variance", moments}});
  }
  tensors(a, {{"y_backprop", image}, {"x", image}, {"scale", {c}}, {"reserve_space_1", {c}}, {"reserve_space_2", {c}}});
  if (a.op.name() == "FusedBatchNormGradV3") tensors(a, {{"reserve_space_3", {0}}});
}

void lrn(Ask& a) {
  const Dims image = {a.w.draw.between(1, 2), 2, 3, a.w.draw.between(1, 6)};
  a.set("depth_radius", a.w.draw.between(0, 3));
  for (const ArgDef& arg : a.op.inputs()) tensors(a, {{arg.name.c_str(), image}});
}

void depthwise(Ask& a) {
  Draw& draw = a.w.draw;
  const bool same = draw.chance(50);
  Axis y(draw, same), x(draw, same);
  x.s = y.s;
  const int64_t n = draw.between(1, 2), c = draw.between(1, 3), m = draw.between(1, 2);
  a.set("strides", Dims{1, y.s, y.s, 1});
  a.set("padding", same ? "SAME" : "VALID");
  a.set("explicit_paddings", Dims());
  a.set("data_format", "NHWC");
  a.set("dilations", Dims{1, 1, 1, 1});
  const Dims image = {n, y.in, x.in, c}, filter = {y.k, x.k, c, m}, out = {n, y.out(), x.out(), c * m};
  for (const ArgDef& arg : a.op.inputs()) {
    const std::string& name = arg.name;
    if (name == "input_sizes") a.numbers(name, image);
    else if (name == "filter_sizes") a.numbers(name, filter);
    else tensors(a, {{name.c_str(), name == "input" ? image : name == "filter" ? filter : out}});
  }
}

void volume(Ask& a) {
  Draw& draw = a.w.draw;
  const bool same = draw.chance(50), first = draw.chance(20), pools = a.op.find_attr("ksize") != nullptr;
  const Axis z(draw, same), y(draw, same), x(draw, same);
  const int64_t n = draw.between(1, 2), c = draw.between(1, 3), o = pools ? c : draw.between(1, 3);
  const auto order = [&](int64_t d, int64_t h, int64_t w, int64_t channels, int64_t batch) {
    return first ? Dims{batch, channels, d, h, w} : Dims{batch, d, h, w, channels};
  };
  a.set("strides", order(z.s, y.s, x.s, 1, 1));
  a.set("padding", same ? "SAME" : "VALID");
  a.set("data_format", first ? "NCDHW" : "NDHWC");
  if (pools) a.set("ksize", order(z.k, y.k, x.k, 1, 1));
  if (a.op.find_attr("dilations")) a.set("dilations", Dims{1, 1, 1, 1, 1});
  if (a.op.find_attr("TInput")) a.set("TInput", a.type("T"));
  const Dims in = order(z.in, y.in, x.in, c, n), out = order(z.out(), y.out(), x.out(), o, n), filter = {z.k, y.k, x.k, c, o};
  for (const ArgDef& arg : a.op.inputs()) {
    const std::string& name = arg.name;
    if (name == "input_sizes" || name == "orig_input_shape") a.numbers(name, in);
    else if (name == "filter_sizes") a.numbers(name, filter);
    else if (name == "filter") tensors(a, {{"filter", filter}});
    else if (name == "out_backprop" || name == "orig_output") tensors(a, {{name.c_str(), out}});
    else if (name == "grad") tensors(a, {{"grad", a.op.name() == "MaxPool3DGradGrad" ? in : out}});
    else tensors(a, {{name.c_str(), in}});
  }
}

void dilation(Ask& a) {
  Draw& draw = a.w.draw;
  const bool same = draw.chance(50);
  const Axis y(draw, same), x(draw, same);
  const int64_t c = draw.between(1, 3);
  a.set("strides", Dims{1, y.s, x.s, 1});
  a.set("rates", Dims{1, 1, 1, 1});
  a.set("padding", same ? "SAME" : "VALID");
  tensors(a, {{"input", {2, y.in, x.in, c}}, {"filter", {y.k, x.k, c}}});
  if (a.op.inputs().size() > 2) tensors(a, {{"out_backprop", {2, y.out(), x.out(), c}}});
}

// MaxPoolV2 and the ops that name places: windows as inputs or attributes.
void places(Ask& a) {
  Draw& draw = a.w.draw;
  const bool same = draw.chance(50), inputs = a.op.name().ends_with("V2"), second = a.op.name().starts_with("MaxPoolGradGrad");
  const Axis y(draw, same), x(draw, same);
  const int64_t n = draw.between(1, 2), c = draw.between(1, 3);
  const Dims size = {1, y.k, x.k, 1}, strides = {1, y.s, x.s, 1}, image = {n, y.in, x.in, c}, out = {n, y.out(), x.out(), c};
  a.set("padding", same ? "SAME" : "VALID");
  if (inputs) a.set("data_format", "NHWC");
  if (!inputs) a.set("ksize", size), a.set("strides", strides);
  for (const ArgDef& arg : a.op.inputs()) {
    const std::string& name = arg.name;
    if (name == "ksize") a.numbers(name, size);
    else if (name == "strides") a.numbers(name, strides);
    else if (name == "argmax") a.numbers(name, indices(draw, with_dims(out).count(), y.in * x.in * c), with_dims(out));
    else if (name == "orig_output") tensors(a, {{"orig_output", out}});
    else if (name == "grad") tensors(a, {{"grad", second ? image : out}});
    else tensors(a, {{name.c_str(), image}});
  }
}

void resize(Ask& a) {
  Draw& draw = a.w.draw;
  const int flags = static_cast<int>(draw.below(3));
  a.set("align_corners", flags == 1);
  a.set("half_pixel_centers", flags == 2);
  const int64_t n = draw.between(1, 2), c = draw.between(1, 3);
  const Dims image = {n, draw.between(1, 4), draw.between(1, 4), c}, other = {n, draw.between(1, 5), draw.between(1, 5), c};
  for (const ArgDef& arg : a.op.inputs()) {
    if (arg.name == "size") a.numbers("size", {other[1], other[2]});
    else tensors(a, {{arg.name.c_str(), arg.name == "original_image" ? other : image}});
  }
}

void crop(Ask& a) {
  Draw& draw = a.w.draw;
  const int64_t boxes = draw.between(1, 3), c = draw.between(1, 2);
  const Dims image = {2, 3, 4, c}, crops = {boxes, 2, 3, c};
  for (const ArgDef& arg : a.op.inputs()) {
    const std::string& name = arg.name;
    if (name == "boxes") tensors(a, {{"boxes", {boxes, 4}}});
    else if (name == "box_ind") a.numbers(name, indices(draw, boxes, 2));
    else if (name == "crop_size") a.numbers(name, {2, 3});
    else if (name == "image_size") a.numbers(name, image);
    else tensors(a, {{name.c_str(), name == "grads" ? crops : image}});
  }
}

void space(Ask& a) {
  Draw& draw = a.w.draw;
  const std::string& name = a.op.name();
  const bool to_batch = name.starts_with("SpaceToBatch"), batch = to_batch || name.starts_with("BatchToSpace"),
             four = !name.ends_with("ND");
  const int64_t block = draw.between(2, 3), c = draw.between(1, 2), edge = draw.below(2);
  if (four) a.set("block_size", block);
  if (!batch) {
    const bool deep = name == "DepthToSpace", first = draw.chance(30);
    a.set("data_format", first ? "NCHW" : "NHWC");
    const int64_t side = deep ? 2 : 2 * block, channels = deep ? c * block * block : c;
    return tensors(a, {{"input", first ? Dims{1, channels, side, side} : Dims{1, side, side, channels}}});
  }
  tensors(a, {{"input", to_batch ? Dims{1, 2 * block - edge, block - edge, c} : Dims{2 * block * block, 2, 2, c}}});
  if (!four) a.numbers("block_shape", {block, block});
  a.numbers(to_batch ? "paddings" : "crops", {edge, 0, 0, edge}, with_dims({2, 2}));
}

void format_map(Ask& a) {
  a.set("src_format", "NHWC");
  a.set("dst_format", "NCHW");
  if (a.op.name() == "DataFormatDimMap") a.numbers("x", indices(a.w.draw, 3, 4));
  else a.numbers("x", {1, 5, 7, 9});
}

void mirror(Ask& a) {
  Draw& draw = a.w.draw;
  const int64_t before = draw.below(3), after = draw.below(3);
  a.set("mode", draw.chance(50) ? "REFLECT" : "SYMMETRIC");
  const bool gradient = a.op.name() == "MirrorPadGrad";
  tensors(a, {{"input", {gradient ? 3 + before + after : 3, 2}}});
  a.numbers("paddings", {before, after, 0, 0}, with_dims({2, 2}));
}

void patches(Ask& a) {
  Draw& draw = a.w.draw;
  const bool same = draw.chance(50);
  const Axis y(draw, same), x(draw, same);
  a.set("ksizes", Dims{1, y.k, x.k, 1});
  a.set("strides", Dims{1, y.s, x.s, 1});
  a.set("rates", Dims{1, 1, 1, 1});
  a.set("padding", same ? "SAME" : "VALID");
  tensors(a, {{"images", {2, y.in, x.in, draw.between(1, 2)}}});
}

void lstm(Ask& a) {
  Draw& draw = a.w.draw;
  const bool sequence = a.op.name().starts_with("Block");
  const int64_t steps = draw.between(1, 3), batch = draw.between(1, 2), in = draw.between(1, 3), cell = draw.between(1, 3);
  for (const ArgDef& arg : a.op.inputs()) {
    const std::string& name = arg.name;
    if (name == "seq_len_max") a.numbers(name, {draw.between(0, steps)}, true);
    else if (name == "x") tensors(a, {{"x", sequence ? Dims{steps, batch, in} : Dims{batch, in}}});
    else if (name == "cs_prev" || name == "h_prev") tensors(a, {{name.c_str(), {batch, cell}}});
    else if (name == "w") tensors(a, {{"w", {in + cell, 4 * cell}}});
    else if (name == "b") tensors(a, {{"b", {4 * cell}}});
    else if (name.starts_with("wc")) tensors(a, {{name.c_str(), {cell}}});
    else tensors(a, {{name.c_str(), sequence ? Dims{steps, batch, cell} : Dims{batch, cell}}});
  }
}

void gru(Ask& a) {
  const int64_t batch = a.w.draw.between(1, 2), in = a.w.draw.between(1, 3), cell = a.w.draw.between(1, 3);
  tensors(a, {{"x", {batch, in}}, {"h_prev", {batch, cell}}, {"w_ru", {in + cell, 2 * cell}}, {"w_c", {in + cell, cell}}});
  tensors(a, {{"b_ru", {2 * cell}}, {"b_c", {cell}}});
  if (a.op.name() == "GRUBlockCell") return;
  for (const char* name : {"r", "u", "c", "d_h"}) tensors(a, {{name, {batch, cell}}});
}

constexpr HintRow kRows[] = {
    {"AvgPool3D", volume},
    {"AvgPool3DGrad", volume},
    {"BatchToSpace", space},
    {"BatchToSpaceND", space},
    {"BlockLSTM", lstm},
    {"BlockLSTMGrad", lstm},
    {"BlockLSTMGradV2", lstm},
    {"BlockLSTMV2", lstm},
    {"Conv3D", volume},
    {"Conv3DBackpropFilterV2", volume},
    {"Conv3DBackpropInputV2", volume},
    {"CropAndResize", crop},
    {"CropAndResizeGradBoxes", crop},
    {"CropAndResizeGradImage", crop},
    {"DataFormatDimMap", format_map},
    {"DataFormatVecPermute", format_map},
    {"DepthToSpace", space},
    {"DepthwiseConv2dNative", depthwise},
    {"DepthwiseConv2dNativeBackpropFilter", depthwise},
    {"DepthwiseConv2dNativeBackpropInput", depthwise},
    {"Dilation2D", dilation},
    {"Dilation2DBackpropFilter", dilation},
    {"Dilation2DBackpropInput", dilation},
    {"ExtractImagePatches", patches},
    {"FusedBatchNorm", norm},
    {"FusedBatchNormGrad", norm},
    {"FusedBatchNormGradV2", norm},
    {"FusedBatchNormGradV3", norm},
    {"FusedBatchNormV2", norm},
    {"FusedBatchNormV3", norm},
    {"GRUBlockCell", gru},
    {"GRUBlockCellGrad", gru},
    {"LRN", lrn},
    {"LRNGrad", lrn},
    {"LSTMBlockCell", lstm},
    {"LSTMBlockCellGrad", lstm},
    {"MaxPool3D", volume},
    {"MaxPool3DGrad", volume},
    {"MaxPool3DGradGrad", volume},
    {"MaxPoolGradGradV2", places},
    {"MaxPoolGradGradWithArgmax", places},
    {"MaxPoolGradV2", places},
    {"MaxPoolGradWithArgmax", places},
    {"MaxPoolV2", places},
    {"MaxPoolWithArgmax", places},
    {"MirrorPad", mirror},
    {"MirrorPadGrad", mirror},
    {"ResizeBicubic", resize},
    {"ResizeBicubicGrad", resize},
    {"ResizeBilinear", resize},
    {"ResizeBilinearGrad", resize},
    {"ResizeNearestNeighbor", resize},
    {"ResizeNearestNeighborGrad", resize},
    {"SpaceToBatch", space},
    {"SpaceToBatchND", space},
    {"SpaceToDepth", space},
};

}  // namespace

std::span<const HintRow> image_hints() { return kRows; }

}  // namespace dtg::random
