// Fold: pure nodes whose operands are all known are computed while the plan is made, where the result is small.
#include "plan/evaluate.h"
#include "plan/passes.h"

namespace dtg {

Status fold(const PlanContext& context, Ir& ir) {
  bool folded = false;
  for (uint32_t n = 0; n < ir.nodes.size(); ++n) {
    if (context.is_checkpoint(n)) DTG_TRY(context.check_time());
    IrNode& node = ir.nodes[n];
    if (node.dead || node.outputs.empty() || ir.all_known(node)) continue;
    if (node.op->is_stateful()) continue;
    std::vector<Tensor> known = evaluate_node(context, ir, node);
    for (size_t o = 0; o < known.size(); ++o) {
      if (!known[o].valid()) continue;
      ir.set_known(node.outputs[o], std::move(known[o]));
      folded = true;
    }
  }
  if (folded) sweep(ir);
  return {};
}

}  // namespace dtg
