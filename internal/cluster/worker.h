// Worker: a task as a session sees it: somebody who takes a part of a graph once and then runs it. The task of this process is
// one like the others; where a task is and how it is reached is the business of who implements this.
#pragma once

#include <string>
#include <vector>

#include "cluster/answer.h"
#include "cluster/step_edges.h"
#include "plan/plan.h"
#include "wire/messages.h"

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
    bool knows_writes = false;  // a run that is repeated under its first number writes once there
    bool keeps_state = false;   // it comes back with what its variables held
  };
  // Runs a part on behalf of `run`. In this process: as the run says, until its end or not. Elsewhere: asks for it, and the
  // run's edges hear of the end.
  virtual Status run(const Part& part, Run& run) = 0;
  virtual bool is_current(const Part& part) const = 0;
  // It will not be run any more.
  virtual void drop(const Part& part) = 0;

  // These ask and return at once. They are answered by the deadline, or when it is certain that they fail.
  // Connects where that is needed; not on the loop's thread, because it may have to read a key. ABORTED, once, when the task has
  // lost its state since the last connection.
  virtual void connect(Deadline deadline, Done done) = 0;
  // The same for a question that needs nothing of what variables hold: a loss is no error of it, and is left to be told to the next
  // who connects.
  virtual void reach(Deadline deadline, Done done) = 0;
  virtual void register_part(Ref<Graph> graph, PlanRequest request, Deadline deadline, Answer<Part> answer) = 0;
  virtual void reset(const std::vector<std::string>& containers, Deadline deadline, Done done) = 0;
  // Tells the task to stop.
  virtual void end_job(Deadline deadline, Done done) = 0;
  // At a barrier of the workers, which the task keeps; on behalf of that session.
  virtual void arrive(uint64_t session, const wire::Arrive& question, Deadline deadline, Answer<wire::ArriveReply> answer) = 0;
  // What the task says of itself, as JSON; where `write` is not 0, of that run of this session only.
  virtual void inspect(uint64_t write, Deadline deadline, Answer<std::string> answer) = 0;
  // Known after connect().
  virtual std::vector<std::string> devices() const = 0;
  // It can be asked now. And which life of it that is: with another number, what its variables held is gone.
  virtual bool is_there() const = 0;
  virtual uint64_t life() const = 0;
  virtual std::string cluster() const = 0;
  // Does it come back with what its variables held?
  virtual bool keeps_state() const { return false; }
  // It was there, is not, and does not.
  bool is_lost() const { return !is_there() && life() != 0 && !keeps_state(); }
  // Says goodbye; the session is over.
  virtual void close() = 0;
};

}  // namespace dtg
