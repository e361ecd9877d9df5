// Lists of tensors: what the files of the family share. Definitions are in list.cc, kernels in list_run.cc, gradients in list_grad.cc.
#pragma once

#include "exec/kernel.h"
#include "exec/tensor_list.h"
#include "graph/gradient.h"
#include "graph/infer.h"

namespace dtg::ops {

struct ListKernel {
  const char* op;
  PrepareFn prepare;
};
std::span<const ListKernel> list_kernels();
GradFn list_gradient(std::string_view op);  // null: none

// The list in a slot.
Result<const TensorList*> list_at(const RunContext& c, int input);

// Rows of ZerosLike and AddN for lists: element by element.
Status zeros_like_list_prepare(PrepareContext& c);
Status add_lists_prepare(PrepareContext& c);

}  // namespace dtg::ops
