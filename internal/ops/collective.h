// What the collective ops share between definition and kernel: which collective a node is, and which of its operands is what. Pure
// functions; any thread.
#pragma once

#include "collective/call.h"
#include "exec/completion.h"
#include "graph/graph.h"

namespace dtg::ops {

// A node's part in a collective.
struct CollectivePart {
  Collective kind = Collective::barrier;
  Reduction reduction = Reduction::sum;
  bool sends = true;  // brings a tensor, which is operand 0
  int size_at = 0;    // operands: group_size, and behind it group_key and instance_key
};

// UNIMPLEMENTED where merge_op and final_op do not go together.
Result<CollectivePart> collective_part(const Node& node);

Status collective_prepare(PrepareContext& c);

}  // namespace dtg::ops
