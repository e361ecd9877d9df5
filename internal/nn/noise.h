// Layers of chance other than dropout (layers.h): whole channels dropped, noise added, noise multiplied. As there, what is drawn is a
// function of the model's seed, the number of the layer and `step`. Called by the thread that builds the model.
#pragma once

#include "nn/model.h"

namespace dtg {

enum class Noise : int32_t {
  spatial_dropout,   // whole channels of x[batch, ..., channels], a share `amount`; rank 3 to 5
  gaussian_noise,    // x + amount * normal
  gaussian_dropout,  // x * (1 + sqrt(amount / (1 - amount)) * normal)
  alpha_dropout,     // a share `amount` becomes SELU's limit, and all is moved so that mean and variance stay
};

// `training` false passes x through; an invalid value means always true.
Result<Value> noise(Model& model, Value x, Noise kind, double amount, Value step, Value training);

}  // namespace dtg
