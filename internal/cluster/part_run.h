// PartRun: one run of a part that a session asked for over its connection. Started by the connection on the loop, it goes over
// to the pool there and then, and tells its end to whoever made it.
//
// Owner: the connection, and itself while it is under way.
#pragma once

#include "cluster/run.h"
#include "cluster/run_commits.h"
#include "cluster/task.h"

namespace dtg {

class PartRun final : public RefCounted, public Run, private Pool::Task {
 public:
  // `ended` is called once, from a thread of the pool, when nothing of the run is left.
  using Ended = std::function<void(const Status&)>;
  PartRun(Ref<ServedPart> part, Ref<const Rights> rights, Ref<StepEdges> edges, const WriteId& write, Deadline deadline,
          Ended ended);

  void start();

 private:
  void run() override;
  Status begun() override;
  void left() override {}
  void ended(Status status) override;

  const Ref<ServedPart> part_;
  const Ref<const Rights> rights_;  // of the session
  RunCommits commits_;
  Ended ended_;
};

}  // namespace dtg
