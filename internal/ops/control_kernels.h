// The kernels and gradients of the ops that call functions, by their file: control_run.cc, while_run.cc, control_grad.cc. For control.cc.
#pragma once

#include "exec/kernel.h"
#include "graph/gradient.h"
#include "graph/infer.h"

namespace dtg::ops {

Status call_prepare(PrepareContext& c);
Status while_prepare(PrepareContext& c);
Status call_grad(GradContext& c);
Status while_grad(GradContext& c);

// "While: " before an error about one of its functions.
Status in_function(const InferContext& c, Status status);

// Of a node that calls functions: what is known of its arguments, for BodySource::find.
std::vector<ValueInfo> call_arguments(const PrepareContext& c, int first);

// TensorFlow's notion of a condition: a scalar that is not zero, or a tensor with elements.
bool is_true(DType dtype, const Shape& shape, const void* data);

}  // namespace dtg::ops
