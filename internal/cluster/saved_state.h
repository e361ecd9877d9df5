// What a task's variables and ledger held at one commit, on its way to a set and back. Pure functions; any thread.
#pragma once

#include "checkpoint/restore.h"
#include "cluster/ledger.h"
#include "exec/resource.h"

namespace dtg {

struct SavedState {
  std::vector<ShardTensor> tensors;  // share memory with the variables, whose next writers leave it alone
  SetExtras extras;
  int64_t bytes = 0;  // that a set of it takes, about
};

// Nobody may write meanwhile; where somebody does all the same, UNAVAILABLE.
Result<SavedState> take_state(const ResourceStore& store, const Ledger& ledger);
// Makes the variables that a set holds, with its values, and the ledger's rows.
Status put_state(const RestoredSet& set, ResourceStore& store, Ledger& ledger);

}  // namespace dtg
