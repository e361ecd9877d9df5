// What the files of the reduction family share: reading axes, and the registration of its parts.
#pragma once

#include "exec/kernel.h"
#include "graph/op_def.h"

namespace dtg::ops {

// Bit d is set for every axis d; negative ones count from the end. Refuses axes out of range and axes
// given twice; the message has no node name.
Result<uint32_t> read_axes(const void* values, DType dtype, int64_t count, int rank);
// One axis, made positive.
Result<int> read_axis(int64_t axis, int rank);

void register_argmax(OpTable& ops, KernelTable& kernels);   // ArgMax ArgMin
void register_scan(OpTable& ops, KernelTable& kernels);     // Cumsum Cumprod
void register_l2_loss(OpTable& ops, KernelTable& kernels);  // L2Loss

}  // namespace dtg::ops
