// Entering and leaving.
#include "cluster/run_commits.h"

namespace dtg {

void RunCommits::enter(uint32_t phase, Completion done) {
  Step& step = done.step();
  const auto had = ledger_.has(write_, phase);
  if (!had.ok()) return done.done(had.status());
  if (had.value()) {
    step.skip_writes(true);
    return done.done({});
  }
  if (!step.seal()) return done.done(step.cause());
  open_ = phase;
  done.done({});
}

void RunCommits::leave(uint32_t phase, Completion done) {
  Step& step = done.step();
  if (step.skips_writes()) {
    step.skip_writes(false);
    return done.done({});
  }
  ledger_.enter(write_, phase);
  open_ = -1;
  step.unseal();
  done.done({});
}

void RunCommits::end(const Status& status) {
  if (open_ < 0) return;
  ledger_.enter(write_, static_cast<uint32_t>(open_), status.ok() ? internal_error("a commit was not ended") : status);
}

}  // namespace dtg
