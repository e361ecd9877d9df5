// Pinned read: the read of a variable as a plan runs it. The value is the variable's own memory, pinned for as long as the plan needs
// it; nothing is copied. Immutable once prepared; any thread.
#pragma once

#include "exec/variable.h"

namespace dtg {

// Makes the instruction a read through pin `c.pin()` of the run, of the variable behind input 0. `open` says that the shape is known only
// when it is read.
Status prepare_pinned_read(PrepareContext& c, bool open);

}  // namespace dtg
