// Bounded staleness as private ops. See step_clocks.cc.
#pragma once

#include "exec/kernel.h"
#include "graph/op_def.h"

namespace dtg::ops {

[[gnu::cold]] void register_step_clocks(OpTable& ops, KernelTable& kernels);  // _StepClocks _JoinClocks _AwaitClocks _LeaveClocks

}  // namespace dtg::ops
