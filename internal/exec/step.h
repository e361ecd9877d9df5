// Step: one run of one session. It carries the identity, the deadline and the first cause of failure;
// abort is sticky and wakes everyone who waits on behalf of the step.
//
// Owner: the run, until every instruction and every edge let go of it. Any thread may abort or look.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/seams.h"
#include "base/status.h"

namespace dtg {

class CollectiveDebts;
class Commits;
class Edges;
class Rights;

class Step {
 public:
  // Somebody who waits for something on behalf of the step (a blocked dequeue, a pending receive).
  class Waiter {
   public:
    virtual ~Waiter() = default;
    // Called once, from the aborting thread, without locks held. The waiter is off the list already.
    virtual void aborted(const Status& cause) = 0;

   private:
    friend class Step;
    Waiter* prev_ = nullptr;
    Waiter* next_ = nullptr;
    bool listed_ = false;
  };

  Step(uint64_t sequence, Deadline deadline) : sequence_(sequence), deadline_(deadline) {}

  uint64_t sequence() const { return sequence_; }
  Deadline deadline() const { return deadline_; }

  bool aborted() const { return aborted_.load(std::memory_order_acquire); }
  // The first cause; ok while not aborted.
  Status cause() const;
  // From outside of the run. Keeps the first cause and wakes all waiters; later calls change nothing. A sealed step hears of it when
  // the seal is off.
  void abort(const Status& cause);
  // From inside, where the run cannot go on: at once, sealed or not.
  void fail(const Status& cause);
  // While its writes take place a step cannot be aborted from outside: all of them do. False when it was aborted before.
  bool seal();
  void unseal();
  // False when the step is aborted already: the waiter must not wait. Otherwise aborted() may come until
  // remove() has returned true.
  bool add(Waiter* waiter);
  // True when the waiter was still listed, so that aborted() will not be called; false when the abort
  // has taken it (aborted() was called or is being called).
  bool remove(Waiter* waiter);

  // The way to other tasks, when the run has any; it outlives the run.
  void set_edges(Edges* edges) { edges_ = edges; }
  Edges* edges() const { return edges_; }
  // What commits the writes of the run; it outlives the run. Null: they take place one by one.
  void set_commits(Commits* commits) { commits_ = commits; }
  Commits* commits() const { return commits_; }
  // The writes from here on took place in an earlier run, of which this is a repetition.
  void skip_writes(bool skip) { skips_writes_ = skip; }
  bool skips_writes() const { return skips_writes_; }
  // Of the peer that asked for the run; they outlive it. Null, as after restart(): the run is the task's own and may do everything.
  void set_rights(const Rights* rights) { rights_ = rights; }
  const Rights* rights() const { return rights_; }

  // What it owes to groups of tasks; it outlives the run. Null: nothing.
  void set_debts(CollectiveDebts* debts) { debts_ = debts; }
  CollectiveDebts* debts() const { return debts_; }
  // What it waited for when its time was over, from whoever knows; the first to say so is heard. Before the run has ended.
  void explain_lateness(const Status& why);

  // For reuse by a recycled run; nobody may hold the step.
  void restart(uint64_t sequence, Deadline deadline);

 private:
  void end(const Status& cause, bool sealed_too);

  uint64_t sequence_;  // within its session
  Deadline deadline_;
  Edges* edges_ = nullptr;
  Commits* commits_ = nullptr;
  const Rights* rights_ = nullptr;
  CollectiveDebts* debts_ = nullptr;
  bool skips_writes_ = false;
  std::atomic<bool> aborted_{false};
  mutable std::mutex mutex_;  // guards what follows; a step without waits never takes it
  Status cause_;
  bool explained_ = false;
  bool sealed_ = false;
  Status held_back_;  // an abort that came while it was
  Waiter* first_ = nullptr;
};

}  // namespace dtg
