// PartRun: one run of a part that a session asked for over its connection. Started by the connection on the loop, it
// waits for a frame and runs on the pool, and tells its end to whoever made it.
//
// Owner: the connection, and itself while it is under way.
#pragma once

#include "cluster/task.h"

namespace dtg {

class PartRun final : public RefCounted, private Pool::Task, private Frame::Watcher, private Plan::FrameWaiter {
 public:
  // `ended` is called once, from a thread of the pool, when nothing of the run is left.
  using Ended = std::function<void(const Status&)>;
  PartRun(Ref<ServedPart> part, Ref<StepEdges> edges, Deadline deadline, Ended ended);

  void start();
  // Sticky; a run that has ended stays as it is. Any thread.
  void stop(const Status& cause);
  StepEdges& edges() const { return *edges_; }

 private:
  void run() override;
  void granted(Frame& frame) override;
  void finished(Frame& frame) override;
  void finish(const Status& status);

  const Ref<ServedPart> part_;
  const Ref<StepEdges> edges_;
  const Deadline deadline_;
  Ended ended_;
};

}  // namespace dtg
