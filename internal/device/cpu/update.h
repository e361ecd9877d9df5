// Update loops: what an optimizer does to one element of a variable and of its slots, over a range of elements.
// The variable's memory before (`old`) and after (`data`) may be the same or two versions; every element of every
// variable is written, also where a rule leaves it as it is. No fused multiply-add: an element's result depends
// neither on its place nor on the machine's vectors. Pure functions; any thread.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace dtg::cpu {

// In comments: var and slots in the order of `data`, then the scalars in the order of `scalar`.
enum class UpdateRule : uint8_t {
  add,                        // var;
  subtract,                   // var;
  multiply,                   // var;
  gradient_descent,           // var; alpha
  proximal_gradient_descent,  // var; alpha l1 l2
  momentum,                   // var accum; lr momentum; option: Nesterov
  keras_momentum,             // var accum; lr momentum; option: Nesterov
  adam,                       // var m v; beta1_power beta2_power lr beta1 beta2 epsilon; option: Nesterov
  adam_w,                     // var m v; as adam, then weight_decay; lr * weight_decay * var is taken off as well
  adam_amsgrad,               // var m v vhat; as adam
  ada_max,                    // var m v; beta1_power lr beta1 beta2 epsilon
  adagrad,                    // var accum; lr; option: the slot is updated
  adagrad_v2,                 // var accum; lr epsilon; option: the slot is updated
  adagrad_da,                 // var sum sum_of_squares; lr l1 l2 global_step
  proximal_adagrad,           // var accum; lr l1 l2
  adadelta,                   // var accum accum_update; lr rho epsilon
  rms_prop,                   // var ms mom; lr rho momentum epsilon
  centered_rms_prop,          // var mg ms mom; lr rho momentum epsilon
  add_sign,                   // var m; lr alpha sign_decay beta
  power_sign,                 // var m; lr logbase sign_decay beta
  ftrl,                       // var accum linear; lr l1 l2 l2_shrinkage lr_power order; option: linear is times lr
                              // order 0: linear + (gradient - shift), 1: (linear + gradient) - shift
  average,                    // var mean; momentum overwrite; no gradient. With overwrite > 0 var becomes the mean
};

inline constexpr int kUpdateVariables = 4;
inline constexpr int kUpdateScalars = 7;

struct UpdateLoop {
  UpdateRule rule = UpdateRule::add;
  DType dtype = DType::f32;  // f16, bf16 (computed in float), f32 or f64
  int variables = 1;
  bool option = false;
  double scalar[kUpdateScalars] = {};
};

struct UpdateMemory {
  const void* old[kUpdateVariables] = {};
  void* data[kUpdateVariables] = {};
  const void* grad = nullptr;
};

// Elements [from, to).
void update_elements(const UpdateLoop& loop, const UpdateMemory& memory, int64_t from, int64_t to);

}  // namespace dtg::cpu
