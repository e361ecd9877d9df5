// DatasetObject: the pipeline behind a dtg_dataset, owned by its handle. Shared by data.cc, which builds and reads, and checkpoint.cc,
// which keeps positions. One thread at a time uses it.
#pragma once

#include <atomic>
#include <string>

#include "capi/objects.h"
#include "capi/owner.h"
#include "data/json_lines.h"
#include "data/position.h"
#include "dtg/data.h"

namespace dtg::capi {

// A pipeline and the runtime it was made for. After a failed transform there is no pipeline any more, only why.
class DatasetObject final : public RefCounted {
 public:
  DatasetObject(Ref<Runtime> r, DatasetPtr d) : runtime(std::move(r)), reading(std::move(d)) {}
  const Ref<Runtime> runtime;
  std::vector<Ref<Runtime>> lent;  // of the data sets that it is made of, whose disks and budgets it goes on using
  Reading reading;
  Status broken;
  std::string schema;  // of a CSV file or JSON lines
  BadRows bad;         // that its source passed over
  Owner owner;
  // The trainer whose fit reads it, until that is over; null: none.
  std::atomic<const void*> fit{nullptr};

  // A transform failed and took the pipeline with it.
  Status give_up(Status why) {
    reading.lose();
    return broken = std::move(why);
  }
  // Nobody else may read or change it then: the fit would go on with other elements than it thinks.
  Status check_apart(const char* attempted) const {
    if (!fit.load(std::memory_order_relaxed)) return {};
    return failed_precondition("%s: the data set is read by the fit that is under way; make a second one, it may share the same tensors",
                               attempted);
  }
  // Why it cannot be used. A transform that ran out of memory may have left neither pipeline nor reason.
  Status usable() const {
    if (reading.valid() || !broken.ok()) return broken;
    return failed_precondition("the data set was lost: an earlier transform ran out of memory; make it anew");
  }
};

}  // namespace dtg::capi
