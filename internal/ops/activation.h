// The activations: a part of the unary family with a file of its own.
#pragma once

#include "exec/kernel.h"
#include "graph/op_def.h"

namespace dtg::ops {

void register_activation(OpTable& ops, KernelTable& kernels);

}  // namespace dtg::ops
