// From the request to the reply.
#include "cluster/part_run.h"

namespace dtg {

PartRun::PartRun(Ref<ServedPart> part, Ref<const Rights> rights, Ref<StepEdges> edges, const WriteId& write, Deadline deadline,
                 Ended ended)
    : Run(part->plan(), *part->task().host().seams.clock, Caller::is_told, edges->sequence(), deadline),
      part_(std::move(part)),
      rights_(std::move(rights)),
      commits_(*part_, write),
      ended_(std::move(ended)) {
  set_edges(std::move(edges));
}

void PartRun::start() {
  retain();  // until ended()
  part_->task().host().pool->submit(this);
}

void PartRun::run() { (void)execute().ok(); }

Status PartRun::begun() {
  frame().step().set_rights(rights_.get());
  frame().step().set_commits(&commits_);
  edges()->begin(frame().step());
  return {};
}

void PartRun::ended(Status status) {
  commits_.end(status);
  const Ended ended = std::move(ended_);
  ended(status);
  release();
}

}  // namespace dtg
