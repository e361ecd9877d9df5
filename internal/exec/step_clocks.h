// StepClocks: how many steps each of several workers has made, where none may be more than so many ahead of the slowest that is there. A
// worker at clock c begins its next step when every other one has a clock of at least c - staleness. Who is gone is not waited for; who
// comes, or comes back after the others have gone on, begins where the slowest of them is.
//
// The clocks themselves are a variable beside this, so that they are logged, saved and counted once like all else that a step writes. What
// is here is who waits, who is there, and the clocks as they were when somebody looked last: a worker looks after each of its own steps, so
// nobody waits for what has happened already.
//
// Any thread. Owner: the resource store and the plans bound to it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "exec/pending_op.h"
#include "exec/presence.h"
#include "exec/worker_place.h"

namespace dtg {

class StepClocks final : public WaitingResource {
 public:
  static constexpr std::string_view kKind = "step clocks";
  static constexpr int64_t kNobody = -1;  // the clock of a worker that has not come yet, or has left
  static constexpr int64_t kWorkersMost = 4096;
  // Steps that one worker may have under way at once, each with an older look at its clock than the one before.
  static constexpr int64_t kRunsAtOnceMost = 16;

  // A worker that wants to begin its next step.
  class Wait : public PendingOp {
   public:
    int64_t worker = 0;
    int64_t staleness = 0;
    uint64_t session = Presence::kOwn;
    std::vector<int64_t> clocks;  // as they are now; by worker
    Step* step = nullptr;         // hears what was waited for if its time is over
    int64_t clock = 0;            // answered: its own
  };

  StepClocks(std::string name, int64_t workers, Ref<const Presence::Roll> roll);
  const char* kind() const override { return kKind.data(); }
  void destroy(const Status& reason) override;

  int64_t workers() const { return static_cast<int64_t>(members_.size()); }
  // As they were when somebody looked last; by worker.
  std::vector<int64_t> clocks() const;
  // Before it is heard of as that worker, by a session of a task ("" where that speaks for none). FAILED_PRECONDITION: another task is it.
  Status claim(int64_t worker, uint64_t session, std::string_view task);
  // The worker is there from now on; the clock that it begins with.
  int64_t join(int64_t worker, uint64_t session, std::span<const int64_t> clocks);
  // Nobody waits for it any more.
  void leave(int64_t worker);
  // Somebody has gone. False: it was destroyed.
  bool review();

 private:
  struct Member {
    bool known = false;  // since this task began: it has joined, or asked
    bool gone = false;   // since then; that its session is connected again says nothing of where it is
    uint64_t session = Presence::kOwn;
    int64_t clock = kNobody;
    int64_t begun = kNobody;  // the clock with which it was let go last
  };
  void enter(PendingOp& pending, PendingOpList& ended) override;
  void withdraw(PendingOp& pending, PendingOpList& ended) override;
  void look(std::span<const int64_t> clocks);
  bool is_there(const Member& member) const;
  Status admit(const Wait& wait);
  // The slowest of those that the worker would have to wait for; null: it may go on.
  const Member* behind(const Wait& wait) const;
  int64_t slowest(int64_t but) const;
  void serve(PendingOpList& ended);
  Status lateness(const Wait& wait) const;

  const Ref<const Presence::Roll> roll_;
  std::vector<Member> members_;
  std::vector<WorkerPlace> places_;  // by worker
  PendingOpList waiting_;
  bool destroyed_ = false;
};

}  // namespace dtg
