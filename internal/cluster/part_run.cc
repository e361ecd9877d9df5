// From the request to the reply.
#include "cluster/part_run.h"

namespace dtg {

PartRun::PartRun(Ref<ServedPart> part, Ref<StepEdges> edges, Deadline deadline, Ended ended)
    : part_(std::move(part)), edges_(std::move(edges)), deadline_(deadline), ended_(std::move(ended)) {}

void PartRun::start() {
  retain();  // until finish()
  part_->task().host().pool->submit(this);
}

void PartRun::run() {
  auto frame = part_->plan().lease(this);
  if (!frame.ok()) return finish(frame.status());
  if (frame.value()) granted(*frame.value());
}

void PartRun::granted(Frame& frame) {
  frame.begin(edges_->sequence(), deadline_);
  edges_->begin(frame.step());
  frame.start(this);
}

void PartRun::finished(Frame& frame) {
  const Status status = frame.step().cause();
  edges_->end();
  part_->plan().give_back(frame);
  finish(status);
}

void PartRun::finish(const Status& status) {
  const Ended ended = std::move(ended_);
  ended(status);
  release();
}

void PartRun::stop(const Status& cause) {
  edges_->give_up(cause);
  if (part_->plan().withdraw(this)) {
    edges_->end();
    finish(cause);
  }
}

}  // namespace dtg
