// Phases: which writes of a run may be committed together, and what is computed between one commit and the next. A write joins the
// earliest commit it can: all writes of one phase may take effect together, after all that they are made from. A phase ends where
// somebody waits for others, or computes on what was written. What arrives from another task belongs to the phase of whatever it was
// made from there.
//
// Owner: the passes that ask; one thread.
#pragma once

#include "base/lists.h"
#include "plan/effects.h"

namespace dtg {

// Notes at each live node the kernel that will run it.
void find_kernels(const PlanContext& context, Ir& ir);
// Who must come before each node: for its operands, by control edges, and for the sake of effects.
Lists find_before(const Ir& ir, const Effects& effects);
// Notes the phases, and who writes. `task_of_device` (empty: there is but one) says which devices a commit cannot span: whoever comes after
// a write of another task comes after its commit.
void number_phases(Ir& ir, const Effects& effects, const Lists& before, std::span<const uint32_t> task_of_device = {});

}  // namespace dtg
