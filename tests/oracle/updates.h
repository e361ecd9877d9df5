// The update rules of the training cases as nodes: what an optimizer adds behind the gradients. One thread.
#pragma once

#include <string>
#include <vector>

#include "program.h"

namespace dtg::oracle {

// A trained variable of a case.
struct Parameter {
  std::string name;
  dtg_dtype dtype = DTG_F32;
  std::vector<int64_t> shape;
  dtg_value handle{};
  dtg_gradient gradient{};
  std::map<std::string, dtg_value> slots;  // handles
};

// Nodes of one update step; see add_updates.
struct Updates {
  std::vector<dtg_value> targets;
  dtg_value global_norm{};  // before clipping; invalid without clipping
  std::string beyond;       // why the rule cannot be written with this library's ops
};

// Adds slots and update nodes for `parameters` by the case's "optimizer". They wait for `reads` (the loss) and for every
// gradient, so that all reads of a step come before all its writes.
Outcome add_updates(Program& program, const Json& optimizer, dtg_value reads, std::vector<Parameter>& parameters, Updates* out);

}  // namespace dtg::oracle
