// The other convolutions, beside conv2d of layers.h: over sequences and volumes, transposed, by channel, and in two halves; and what makes
// images smaller to a point or larger. Formulas, variables and defaults are those of tf.keras, channels last. Called by the thread that
// builds the model.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "nn/layers.h"

namespace dtg {

struct ConvLayer {
  std::string_view name = {};  // empty: from the kind
  int64_t filters = 0;         // not of depthwise
  int64_t multiplier = 1;      // depthwise and separable: outputs of each channel
  std::array<int64_t, 3> kernel{3, 3, 3};
  std::array<int64_t, 3> stride{1, 1, 1};
  std::array<int64_t, 3> dilation{1, 1, 1};
  Padding padding = Padding::valid;
  bool causal = false;  // conv1d: zeros before the first step only, so that no output sees a later input
  Activation activation = Activation::none;
  bool use_bias = true;
  Initializer kernel_init = Initializer::glorot_uniform();
  Initializer bias_init = Initializer::zeros();
  std::string_view weights_of = {};
};

// x[batch, steps, in]; kernel [kernel, in, filters].
Result<Value> conv1d(Model& model, Value x, const ConvLayer& layer);
// x[batch, depth, height, width, in]; kernel [.., .., .., in, filters].
Result<Value> conv3d(Model& model, Value x, const ConvLayer& layer);
// The gradient of a convolution as a layer: x[batch, height, width, in] becomes larger by the strides; kernel [.., .., filters, in].
Result<Value> conv2d_transpose(Model& model, Value x, const ConvLayer& layer);
// Each channel by itself; kernel [.., .., in, multiplier], out[..., in * multiplier].
Result<Value> depthwise_conv2d(Model& model, Value x, const ConvLayer& layer);
// The same and then a product over the channels: "depthwise_kernel" and "pointwise_kernel".
Result<Value> separable_conv2d(Model& model, Value x, const ConvLayer& layer);

// x[batch, ..., channels] as [batch, channels], or with dimensions of 1 between them.
enum class GlobalPool : int32_t { mean, max };
Result<Value> global_pool(Model& model, Value x, GlobalPool kind, bool keep_dims);

// x[batch, ..., channels] with so many entries along each dimension between: entry i is the mean, or the greatest, of those from
// floor(i in / out) to ceil((i + 1) in / out).
Result<Value> adaptive_pool(Model& model, Value x, GlobalPool kind, std::span<const int64_t> sizes);

// x[batch, height, width, channels] so many times as high and wide: each pixel repeated, or between them (half-pixel centres).
Result<Value> up_sampling2d(Model& model, Value x, int64_t high, int64_t wide, bool bilinear);

}  // namespace dtg
