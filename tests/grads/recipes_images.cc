// The recipes of images, volumes, batch norm and recurrent cells; see recipe.h.
#include "recipe.h"

namespace dtg::grads {
namespace {

Setting text(const char* name, const char* value) { return set_text(name, value); }

void add_norm(std::vector<Recipe>& list) {
  const Input image = num({2, 3, 2, 2}), first = num({2, 2, 3, 2}), channels = num({2}), none = num({0}), variance = num({2}, 0.5, 2);
  const Setting given = set_flag("is_training", false), nchw = text("data_format", "NCHW");
  for (const char* op : {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}) {
    list.push_back({op, {image, channels, channels, none, none}, {}, 1, {}, true});
    list.push_back({op, {first, channels, channels, none, none}, {nchw, set_real("epsilon", 0.1)}, 1, {}, true});
    list.push_back({op, {image, channels, channels, channels, variance}, {given}, 1, {3, 4}, true});
  }
  // While training, the moments belong to x: it cannot move alone.
  for (const char* op : {"FusedBatchNormGrad", "FusedBatchNormGradV2"}) {
    list.push_back({op, {image, image, channels, channels, variance}, {given}, 3, {3, 4}, true});
  }
  list.push_back({"FusedBatchNormGradV3", {first, first, channels, channels, variance, none}, {given, nchw}, 3, {3, 4, 5}, true});
  // Mean and variance of x, so that the op computes what its gradient differentiates.
  const Input x = exact({1, 2, 2, 1}, {1, 2, 3, 6}), mean = exact({1}, {3}), spread = exact({1}, {3.5});
  list.push_back({"FusedBatchNormGrad", {num({1, 2, 2, 1}), x, num({1}), mean, spread}, {}, 3, {1, 3, 4}, true});
  list.push_back({"LRN", {num({1, 2, 2, 5})}, {set("depth_radius", 1), set_real("beta", 0.75)}, -1, {}, true});
  list.push_back({"LRN", {num({2, 1, 1, 3})}, {set_real("bias", 2), set_real("beta", 0.6)}, -1, {}, true});
}

void add_convolutions(std::vector<Recipe>& list) {
  const std::vector<Setting> step = {set_ints("strides", {1, 2, 2, 1}), text("padding", "SAME")};
  const Input image = num({2, 4, 3, 2}), filter = num({2, 3, 2, 2}), out = num({2, 2, 2, 4});
  list.push_back({"DepthwiseConv2dNative", {image, filter}, step});
  list.push_back({"DepthwiseConv2dNativeBackpropFilter", {image, ints({2, 3, 2, 2}), out}, step});
  list.push_back({"DepthwiseConv2dNativeBackpropInput", {ints({2, 4, 3, 2}), filter, out}, step});
  const std::vector<Setting> step3 = {set_ints("strides", {1, 1, 2, 1, 1}), text("padding", "SAME")};
  const Input volume = num({1, 2, 3, 2, 2}), filter3 = num({2, 2, 1, 2, 2}), out3 = num({1, 2, 2, 2, 2});
  list.push_back({"Conv3D", {volume, filter3}, step3});
  list.push_back({"Conv3D", {num({1, 7, 2, 8, 2}), num({1, 2, 2, 2, 2})}, {set_ints("strides", {1, 4, 1, 5, 1}), text("padding", "SAME")}});
  list.push_back({"Conv3DBackpropFilterV2", {volume, ints({2, 2, 1, 2, 2}), out3}, step3});
  list.push_back({"Conv3DBackpropInputV2", {ints({1, 2, 3, 2, 2}), filter3, out3}, step3});
  const std::vector<Setting> wide = {set_ints("strides", {1, 1, 1, 1}), set_ints("rates", {1, 2, 1, 1}), text("padding", "SAME")};
  list.push_back({"Dilation2D", {num({1, 4, 4, 2}), num({2, 2, 2}, -0.5, 0.5)}, wide});
}

void add_pooling(std::vector<Recipe>& list) {
  const Setting valid = text("padding", "VALID"), same = text("padding", "SAME");
  list.push_back({"MaxPoolV2", {num({1, 4, 3, 1}), ints({1, 2, 2, 1}), ints({1, 2, 1, 1})}, {same}});
  // The largest elements of each window are known here, so that input and output of the pooling agree.
  const Input before = exact({1, 4, 2, 1}, {1, 5, 4, 2, 7, 3, 6, 8}), after = exact({1, 2, 2, 1}, {4, 5, 7, 8});
  const Input size = ints({1, 2, 1, 1});
  list.push_back({"MaxPoolGradV2", {before, after, num({1, 2, 2, 1}), size, size}, {valid}, -1, {0, 1}});
  list.push_back({"MaxPoolGradGradV2", {before, after, num({1, 4, 2, 1}), size, size}, {valid}, -1, {0, 1}});
  const std::vector<Setting> window = {set_ints("ksize", {1, 2, 1, 1}), set_ints("strides", {1, 2, 1, 1}), valid};
  const Input places = longs({1, 2, 2, 1}, {2, 1, 4, 7});
  list.push_back({"MaxPoolWithArgmax", {num({2, 4, 2, 1})}, window});
  list.push_back({"MaxPoolGradWithArgmax", {before, num({1, 2, 2, 1}), places}, window});
  list.push_back({"MaxPoolGradGradWithArgmax", {before, num({1, 4, 2, 1}), places}, window});
  const std::vector<Setting> window3 = {set_ints("ksize", {1, 1, 2, 1, 1}), set_ints("strides", {1, 1, 2, 1, 1}), valid};
  const Input before3 = exact({1, 1, 4, 2, 1}, before.values), after3 = exact({1, 1, 2, 2, 1}, after.values);
  list.push_back({"MaxPool3D", {num({1, 2, 4, 2, 1})}, window3, -1, {}, true});
  list.push_back({"MaxPool3DGrad", {before3, after3, num({1, 1, 2, 2, 1})}, window3, -1, {0, 1}, true});
  list.push_back({"MaxPool3DGradGrad", {before3, after3, num({1, 1, 4, 2, 1})}, window3, -1, {0, 1}, true});
  const std::vector<Setting> around = {set_ints("ksize", {1, 2, 2, 2, 1}), set_ints("strides", {1, 1, 2, 1, 1}), same};
  list.push_back({"AvgPool3D", {num({1, 2, 3, 2, 2})}, around});
  list.push_back({"AvgPool3DGrad", {ints({1, 2, 3, 2, 2}), num({1, 2, 2, 2, 2})}, around});
}

void add_images(std::vector<Recipe>& list) {
  const Setting align = set_flag("align_corners"), centers = set_flag("half_pixel_centers");
  for (const char* op : {"ResizeBilinear", "ResizeBicubic"}) {
    list.push_back({op, {num({1, 3, 4, 2}), ints({5, 3})}, {}, -1, {}, true});
    list.push_back({op, {num({2, 4, 3, 1}), ints({2, 6})}, {align}, -1, {}, true});
    list.push_back({op, {num({1, 4, 4, 1}), ints({3, 7})}, {centers}, -1, {}, true});
  }
  list.push_back({"ResizeNearestNeighbor", {num({1, 3, 4, 2}), ints({5, 3})}, {centers}});
  // By what comes back only: the image gives them its shape.
  for (const char* op : {"ResizeBilinearGrad", "ResizeBicubicGrad"}) {
    list.push_back({op, {num({1, 5, 3, 2}), num({1, 3, 4, 2})}, {centers}, -1, {}, true});
  }
  list.push_back({"ResizeNearestNeighborGrad", {num({1, 5, 3, 2}), ints({3, 4})}, {align}});
  // The second box reaches over the edge; no sample lies on a pixel, where the slope changes.
  const Input boxes = exact({2, 4}, {0.11, 0.12, 0.87, 0.91, -0.35, 0.22, 0.57, 1.4});
  list.push_back({"CropAndResize", {num({2, 4, 5, 1}), boxes, ints({1, 0}), ints({3, 3})}, {}, -1, {}, true});
  for (const char* format : {"NHWC", "NCHW"}) {
    list.push_back({"SpaceToDepth", {num({1, 4, 4, 2})}, {set("block_size", 2), text("data_format", format)}});
    list.push_back({"DepthToSpace", {num({1, 4, 2, 4})}, {set("block_size", 2), text("data_format", format)}});
  }
  const Input edges = ints({2, 2}, {1, 0, 0, 1});
  list.push_back({"SpaceToBatchND", {num({2, 3, 2, 2}), ints({2, 3}), edges}, {}});
  list.push_back({"BatchToSpaceND", {num({6, 2, 2, 1}), ints({2, 3}), edges}, {}});
  list.push_back({"SpaceToBatch", {num({1, 3, 3, 2}), edges}, {set("block_size", 2)}});
  list.push_back({"BatchToSpace", {num({4, 2, 2, 1}), edges}, {set("block_size", 2)}});
  for (const char* mode : {"REFLECT", "SYMMETRIC"}) {
    list.push_back({"MirrorPad", {num({3, 4}), ints({2, 2}, {1, 2, 0, 3})}, {text("mode", mode)}});
    list.push_back({"MirrorPadGrad", {num({6, 7}), ints({2, 2}, {1, 2, 0, 3})}, {text("mode", mode)}});
  }
  list.push_back(
      {"ExtractImagePatches",
       {num({1, 4, 5, 2})},
       {set_ints("ksizes", {1, 2, 3, 1}), set_ints("strides", {1, 1, 2, 1}), set_ints("rates", {1, 2, 1, 1}), text("padding", "SAME")}});
}

void add_cells(std::vector<Recipe>& list) {
  const Input x = num({2, 3}), state = num({2, 2}, -1, 1), w = num({5, 8}, -0.5, 0.5), peep = num({2}, -0.5, 0.5),
              bias = num({8}, -0.5, 0.5);
  for (const bool peephole : {false, true}) {
    const std::vector<Setting> settings = {set_flag("use_peephole", peephole)};
    list.push_back({"LSTMBlockCell", {x, state, state, w, peep, peep, peep, bias}, settings, -1, {}, true, {1, 6}});
    for (const char* op : {"BlockLSTM", "BlockLSTMV2"}) {
      const Input steps = longs({}, {peephole ? 2.0 : 3.0});
      list.push_back({op, {steps, num({3, 2, 3}), state, state, w, peep, peep, peep, bias}, settings, -1, {}, true, {1, 6}});
    }
  }
  list.push_back(
      {"GRUBlockCell", {x, state, num({5, 4}, -0.5, 0.5), num({5, 2}, -0.5, 0.5), num({4}, -0.5, 0.5), peep}, {}, -1, {}, true, {3}});
}

// Alone, causal, and with what hides keys: one query that sees nothing is among them.
void add_attention(std::vector<Recipe>& list) {
  const Input q = num({2, 3, 2, 2}), k = num({2, 4, 2, 2}), v = num({2, 4, 2, 3}), dy = num({2, 3, 2, 3});
  const Input mask = flags({2, 3, 4}, {1, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 1}), lengths = ints({3, 0});
  const Setting scale = set_real("scale", 0.5), causal = set_flag("causal"), masked = set("masks", 1), counted = set("counts", 1),
                bare = set("masks", 0), all = set("counts", 0);
  for (const bool gradient : {false, true}) {
    const char* const op = gradient ? "DotProductAttentionGrad" : "DotProductAttention";
    std::vector<Input> in = {q, k, v};
    if (gradient) in.push_back(dy);
    list.push_back({op, in, {scale, bare, all}});
    list.push_back({op, in, {scale, causal, bare, all}});
    in.push_back(mask);
    list.push_back({op, in, {scale, masked, all}});
    in.push_back(lengths);
    list.push_back({op, in, {scale, masked, counted, causal}});
    in.erase(in.end() - 2);
    list.push_back({op, in, {scale, bare, counted}});
  }
}

}  // namespace

void add_image_recipes(std::vector<Recipe>& list) {
  add_norm(list);
  add_convolutions(list);
  add_pooling(list);
  add_images(list);
  add_cells(list);
  add_attention(list);
}

}  // namespace dtg::grads
