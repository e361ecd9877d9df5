// Huge: values that no memory holds, made of one number by five nodes. The truth refuses them by sizes that it computes in 128 bits;
// a planner whose sizes wrap around goes on. One thread, that of the workshop.
#pragma once

#include "random/workshop.h"

namespace dtg::random {

// Adds such nodes, which nobody executes now, behind everything else, and a run that asks for them.
void add_huge(Workshop& workshop);

}  // namespace dtg::random
