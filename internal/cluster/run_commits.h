// RunCommits: the commits of one run of a part. Each phase is entered once, in order: its writes are found in the task's ledger and
// skipped, or the step is sealed until they have taken place and a row of the ledger says so.
//
// Owner: the run. The threads of its segments, one at a time.
#pragma once

#include "cluster/ledger.h"
#include "exec/commits.h"

namespace dtg {

class RunCommits final : public Commits {
 public:
  RunCommits(Ledger& ledger, const WriteId& write) : ledger_(ledger), write_(write) {}

  void enter(uint32_t phase, Completion done) override;
  void leave(uint32_t phase, Completion done) override;
  // Nothing of the run goes on; what was entered and not left has failed.
  void end(const Status& status);

 private:
  Ledger& ledger_;
  const WriteId write_;
  int64_t open_ = -1;  // the phase that was entered
};

}  // namespace dtg
