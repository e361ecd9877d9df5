// Tokens of strict steps as private ops. See step_tokens.cc.
#pragma once

#include "exec/kernel.h"
#include "graph/op_def.h"

namespace dtg::ops {

[[gnu::cold]] void register_step_tokens(OpTable& ops, KernelTable& kernels);  // _TokenRoll _TakeToken

}  // namespace dtg::ops
