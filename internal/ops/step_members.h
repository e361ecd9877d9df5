// Elastic steps as private ops. See step_members.cc and contribution.cc.
#pragma once

#include "exec/kernel.h"
#include "graph/op_def.h"

namespace dtg::ops {

[[gnu::cold]] void register_step_members(
    OpTable& ops,
    KernelTable& kernels);  // _StepMembers _ArriveAtStep _GatherStep _BeginStep _LeaveSteps _AskElement
[[gnu::cold]] void register_contribution(OpTable& ops, KernelTable& kernels);  // _TakeContribution _TakeRowsContribution

}  // namespace dtg::ops
