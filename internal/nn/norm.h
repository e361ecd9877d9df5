// Normalization layers, with the formulas and defaults of tf.keras: what they add to a model stands under the layer's name, as with the
// layers of layers.h. Statistics are computed in float32 for 16-bit inputs. Called by the thread that builds the model.
#pragma once

#include <string_view>

#include "nn/model.h"

namespace dtg {

// Over all dimensions but the last: the batch's mean and variance while training, and those that followed them (Model::follow)
// otherwise. `training` is a bool scalar; an invalid value means always true.
struct BatchNormLayer {
  std::string_view name = "batch_normalization";
  double momentum = 0.99;  // share of the moving statistics that stays
  double epsilon = 1e-3;
  bool center = true;  // beta
  bool scale = true;   // gamma
  std::string_view weights_of = {};
};
Result<Value> batch_norm(Model& model, Value x, const BatchNormLayer& layer, Value training);

// Each vector along the last dimension by itself: layer normalization, and without the mean (`rms`) its cheaper form.
struct LayerNormLayer {
  std::string_view name = {};  // empty: "layer_normalization" or "rms_normalization"
  bool rms = false;
  double epsilon = 0;  // 0: 1e-3, rms 1e-6
  bool center = true;  // not rms
  bool scale = true;
  std::string_view weights_of = {};
};
Result<Value> layer_norm(Model& model, Value x, const LayerNormLayer& layer);

// Each example and each of `groups` equal groups of channels by itself. x[batch, ..., channels].
struct GroupNormLayer {
  std::string_view name = "group_normalization";
  int64_t groups = 32;
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  std::string_view weights_of = {};
};
Result<Value> group_norm(Model& model, Value x, const GroupNormLayer& layer);

}  // namespace dtg
