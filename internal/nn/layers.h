// Layers: functions that put nodes and variables into a model and return the output. Each opens a name scope, so a
// second layer of the same name becomes "dense_1". Images are [batch, height, width, channels]. The batch may be open
// when the graph is built; whatever decides the shape of a variable must be known. Called by the thread that builds the
// model.
#pragma once

#include <string_view>

#include "nn/model.h"

namespace dtg {

enum class Activation : int32_t { none, relu, relu6, elu, selu, softplus, sigmoid, tanh, softmax, gelu };
enum class Padding : int32_t { valid, same };

Value activate(Build& build, Value x, Activation activation);

// x[..., in] * kernel[in, units] + bias[units]; x of rank 2 or more.
struct DenseLayer {
  std::string_view name = "dense";
  int64_t units = 0;
  Activation activation = Activation::none;
  bool use_bias = true;
  Initializer kernel = Initializer::glorot_uniform();
  Initializer bias = Initializer::zeros();
  std::string_view weights_of = {};  // full name of a layer whose variables it uses; empty: it gets its own
};
Result<Value> dense(Model& model, Value x, const DenseLayer& layer);

// Cross-correlation with kernel[height, width, in, filters].
struct Conv2DLayer {
  std::string_view name = "conv2d";
  int64_t filters = 0;
  int64_t kernel_height = 3, kernel_width = 3;
  int64_t stride_height = 1, stride_width = 1;
  int64_t dilation_height = 1, dilation_width = 1;
  Padding padding = Padding::valid;
  Activation activation = Activation::none;
  bool use_bias = true;
  Initializer kernel = Initializer::glorot_uniform();
  Initializer bias = Initializer::zeros();
  std::string_view weights_of = {};
};
Result<Value> conv2d(Model& model, Value x, const Conv2DLayer& layer);

struct Pool2DLayer {
  std::string_view name = {};  // empty: from the op
  int64_t window_height = 2, window_width = 2;
  int64_t stride_height = 0, stride_width = 0;  // 0: like the window
  Padding padding = Padding::valid;
};
Result<Value> max_pool2d(Model& model, Value x, const Pool2DLayer& layer);
Result<Value> avg_pool2d(Model& model, Value x, const Pool2DLayer& layer);

// [batch, everything else].
Result<Value> flatten(Model& model, Value x);

// Zeroes a share `rate` of the elements and scales up the rest, anew for each value of `step` (an int64
// scalar, such as the global step), so that a run can be repeated. `training` (a bool scalar) false passes
// x through; an invalid value means always true.
Result<Value> dropout(Model& model, Value x, double rate, Value step, Value training);

// x[i] is row ids[i] of a table [rows, width]; gradients are rows too.
struct EmbeddingLayer {
  std::string_view name = "embedding";
  int64_t rows = 0;
  int64_t width = 0;
  Initializer table = Initializer::uniform(-0.05, 0.05);
  std::string_view weights_of = {};
};
Result<Value> embedding(Model& model, Value ids, const EmbeddingLayer& layer);

}  // namespace dtg
