// From the request to the reply.
#include "cluster/part_run.h"

namespace dtg {

PartRun::PartRun(Ref<ServedPart> part, Ref<const Rights> rights, Ref<StepEdges> edges, const WriteId& write, Deadline deadline, Ended ended)
    : Run(part->plan(), *part->task().host().seams.clock, Caller::is_told, edges->sequence(), deadline),
      part_(std::move(part)),
      rights_(std::move(rights)),
      commits_(*part_, write),
      loop_first_(edges->loop(), *part_->task().host().pool),
      ended_(std::move(ended)) {
  set_edges(std::move(edges));
  if (stays_on_loop()) run_with(&loop_first_);
}

// A commit that is logged writes to a file, and may have to take a set of everything.
bool PartRun::stays_on_loop() const { return part_->plan().is_light() && !part_->task().log(); }

void PartRun::start(bool is_first) {
  retain();  // until ended()
  begin_here(Begins::here);
  if (stays_on_loop()) return loop_first_.submit(this);
  if (!is_first) return part_->task().host().pool->submit(this);
  begin_here(Begins::receiving);
  run();
}

void PartRun::run() { (void)execute().ok(); }

Status PartRun::begun() {
  frame().step().set_rights(rights_.get());
  frame().step().set_commits(&commits_);
  edges()->begin(frame().step());
  return {};
}

// On the loop somebody may be in the midst of his list of runs.
void PartRun::ended(Status status) {
  commits_.end(status);
  end_ = std::move(status);
  if (edges()->loop().is_current()) loop_first_.submit(&told_);
  else tell();
}

void PartRun::tell() {
  const Ended ended = std::move(ended_);
  ended(end_);
  release();
}

}  // namespace dtg
