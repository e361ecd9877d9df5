// Effects: the edges that keep the effects of a run on its resources in order. Where neither data nor control orders two of them, the
// order in which their nodes were made does: a read sees the writes that were made before it and none that came after.
//
// A read hands out the variable's own memory and pins it. The first write after it may work in place only when the pin is gone, so
// it waits for everyone who still looks at that memory, and unpins. Where that cannot be known (the value is fetched, or somebody
// made after the write looks at it) the pin stays and the write works on a copy: slower, never wrong.
//
// Owner: the order pass; one thread.
#pragma once

#include <utility>
#include <vector>

#include "plan/passes.h"

namespace dtg {

struct Effects {
  using Edge = std::pair<uint32_t, uint32_t>;  // first, then
  std::vector<Edge> edges;
  std::vector<bool> writes;  // by node
};

// Numbers the pins too, and notes at each write which reads it unpins.
Effects find_effects(const PlanContext& context, Ir& ir);

}  // namespace dtg
