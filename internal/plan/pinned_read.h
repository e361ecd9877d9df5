// Pinned read: ReadVariableOp as a plan runs it. The value is the variable's own memory, pinned for as long
// as the plan needs it; nothing is copied. Only where the planner finds that a write of the same step comes
// in between does the op's copying kernel run instead.
#pragma once

#include "exec/variable.h"

namespace dtg {

// `pin` numbers the pin in the frame; `open` says that the shape is known only when it is read.
Status prepare_pinned_read(PrepareContext& c, uint32_t pin, bool open);
bool pinned_read(RunContext& c, Completion done);

}  // namespace dtg
