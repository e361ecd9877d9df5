// Worker: a task as a session sees it: somebody who takes a part of a graph once and then runs it. The task of this process is
// one like the others; where a task is and how it is reached is the business of who implements this.
#pragma once

#include <string>
#include <vector>

#include "cluster/step_edges.h"
#include "plan/plan.h"

namespace dtg {

class Run;

class Worker : public RefCounted {
 public:
  // "/job:ps/replica:0/task:0"
  virtual const std::string& name() const = 0;
  // A part that this worker has prepared. Of one in this process it is a plan; of another the number it has there, good as
  // long as the link is.
  struct Part {
    Ref<RefCounted> keeps;  // what the plan needs
    Ref<Plan> plan;
    uint64_t id = 0;
    Ref<Link> link;
    // Tasks that the part would send to, and that cannot be reached from there. Then nothing was registered.
    std::vector<std::string> unreachable;
  };
  // Runs a part on behalf of `run`. In this process: as the run says, until its end or not. Elsewhere: asks for it, and the
  // run's edges hear of the end.
  virtual Status run(const Part& part, Run& run) = 0;
  virtual bool is_current(const Part& part) const = 0;
  // It will not be run any more.
  virtual void drop(const Part& part) = 0;

  // The calls wait, until the deadline or until it is certain that they fail. Never on the loop.
  // Connects where that is needed. ABORTED, once, when the task has lost its state since the last connection.
  virtual Status connect(Deadline deadline) = 0;
  virtual Result<Part> register_part(Ref<Graph> graph, PlanRequest request, Deadline deadline) = 0;
  virtual Status reset(const std::vector<std::string>& containers, Deadline deadline) = 0;
  // Tells the task to stop.
  virtual Status end_job(Deadline deadline) = 0;
  // What the task says of itself, as JSON.
  virtual Result<std::string> inspect(Deadline deadline) = 0;
  // Known after connect().
  virtual std::vector<std::string> devices() const = 0;
  virtual std::string cluster() const = 0;
  // Says goodbye; the session is over.
  virtual void close() = 0;
};

}  // namespace dtg
