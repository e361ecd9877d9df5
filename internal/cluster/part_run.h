// PartRun: one run of a part that a session asked for over its connection. Started by the connection on the loop, it goes over
// to the pool as soon as it has begun to receive, so that what comes is read to where it belongs, and tells its end to whoever made it. A
// light one (Program::light), where the task keeps no log, stays on the loop, where it begins, goes on and ends behind the call that
// brought what it waited for: the thread that reads is there, and waking another takes longer than the run.
//
// Owner: the connection, and itself while it is under way.
#pragma once

#include "cluster/run.h"
#include "cluster/run_commits.h"
#include "cluster/task.h"

namespace dtg {

class PartRun final : public RefCounted, public Run, private Pool::Task {
 public:
  // `ended` is called once, when nothing of the run is left: from a thread of the pool, or on the loop in a call of its own.
  using Ended = std::function<void(const Status&)>;
  PartRun(Ref<ServedPart> part, Ref<const Rights> rights, Ref<StepEdges> edges, const WriteId& write, Deadline deadline, Ended ended);

  // `is_first`: nothing for it can have come yet.
  void start(bool is_first);

 private:
  // On the loop, where that can be and the loop is not kept too long; else on the pool.
  class LoopFirst final : public Frame::Executor {
   public:
    LoopFirst(Loop& loop, Pool& pool) : loop_(loop), pool_(pool) {}
    void submit(Pool::Task* task) override {
      if (loop_.is_current()) loop_.defer(task, pool_);
      else pool_.submit(task);
    }

   private:
    Loop& loop_;
    Pool& pool_;
  };

  // Tells the end.
  class Told final : public Pool::Task {
   public:
    explicit Told(PartRun& run) : run_(run) {}
    void run() override { run_.tell(); }

   private:
    PartRun& run_;
  };

  bool stays_on_loop() const;
  void run() override;
  Status begun() override;
  void left() override {}
  void ended(Status status) override;
  void tell();

  const Ref<ServedPart> part_;
  const Ref<const Rights> rights_;  // of the session
  RunCommits commits_;
  LoopFirst loop_first_;
  Told told_{*this};
  Status end_;
  Ended ended_;
};

}  // namespace dtg
