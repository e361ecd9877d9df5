// _Remedy: a note in the graph, which never has anything to do: what may be done when a run of a target was cut short, by the names of
// nodes (strategy/remedy.h). A node so that it goes wherever the graph goes. Registered once; see all.h.
#include "exec/kernel.h"
#include "graph/infer.h"
#include "ops/all.h"

namespace dtg::ops {

void register_remedy(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("_Remedy")
              .attr("first: string = ''")
              .attr("first_if_made: string = ''")
              .attr("effects: list(string) = []")
              .attr("units: list(string) = []")
              .attr("begin_units: string = ''")
              .role(Role::nothing)
              .shape(no_outputs)
              .no_gradient()
              .doc("Private: says what may be done when a run of a target was cut short."));
  kernels.add({.op = "_Remedy", .prepare = [](PrepareContext&) { return Status(); }});
}

}  // namespace dtg::ops
