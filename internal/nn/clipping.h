// Clipping: gradients made smaller before they are applied, by value, by the norm of each or by the norm over all of them. Formulas are
// those of Keras' clipvalue, clipnorm and global_clipnorm. What is no weight (VariableGradient::share) is left alone.
// Functions over a model; the thread that builds.
#pragma once

#include <span>

#include "nn/optimizer.h"

namespace dtg {

// Equal indices added up, so that each row comes once: squares, limits and moving means are not linear.
void merge_rows(Build& build, Gradient& gradient);
// sqrt of the sum of squares over all of them. Rows with equal indices are merged first.
Result<Value> global_norm(Model& model, std::span<VariableGradient> gradients);
// Whether the optimizer clips at all, and whether by something that depends on the order of rows: a sum over them.
bool clips(const Optimizer& optimizer);
bool clips_by_norm(const Optimizer& optimizer);
// As the optimizer says; in `body`, unless that is null, in place of the model's graph; gradients that are to be
// accumulated are clipped only there. The norm over all of them, before, is left in
// `norm`, unless that is null or nothing clips by it. A norm that is not finite makes all that it clips NaN, so that it does not go
// unnoticed.
Status clip_gradients(Model& model, const Optimizer& optimizer, std::span<VariableGradient> gradients, Value* norm, Graph* body = nullptr);

}  // namespace dtg
