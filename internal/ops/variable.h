// What the files of the variable family share.
#pragma once

#include "exec/kernel.h"
#include "graph/infer.h"

namespace dtg::ops {

// The variable behind `input` must hold what the type attribute `attr` says, as far as that is known.
Status check_held(InferContext& c, int input, const char* attr);
// A value met at run time: its type, and its shape where the plan relied on one (may be null).
Status check_tensor(const RunContext& c, const Tensor& tensor, DType dtype, const Shape* shape);

// ResourceGather and the scatter ops, in variable_rows.cc.
void register_variable_rows(OpTable& ops, KernelTable& kernels);

}  // namespace dtg::ops
