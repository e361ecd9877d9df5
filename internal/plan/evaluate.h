// Evaluating one pure node while a plan is made, by its CPU kernel. Lives for one call; one thread.
#pragma once

#include <vector>

#include "plan/passes.h"

namespace dtg {

// Values of the outputs, or nothing where an operand is not known, a result would be large, or it cannot be done at once.
std::vector<Tensor> evaluate_node(const PlanContext& context, const Ir& ir, const IrNode& node);

}  // namespace dtg
