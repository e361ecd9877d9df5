// PendingOp: an operation on a shared object (a queue, an accumulator) that may have to wait for others. It is an
// object on a list, not a blocked thread: whoever makes it possible ends it, and the abort of its step withdraws it.
//
// Owner: the WaitingResource from start() until finished() has been called. Any thread.
#pragma once

#include <atomic>
#include <mutex>

#include "exec/resource.h"
#include "exec/step.h"

namespace dtg {

class WaitingResource;

class PendingOp : public Step::Waiter {
 protected:
  // The end, called exactly once, with nothing locked; the step may be gone when it returns.
  virtual void finished(Status status) = 0;

 private:
  friend class WaitingResource;
  friend class PendingOpList;
  void aborted(const Status& cause) final;
  void drop();

  PendingOp* next_ = nullptr;
  PendingOp* prev_ = nullptr;
  Step* step_ = nullptr;
  Ref<WaitingResource> resource_;
  Status outcome_;
  bool waiting_ = false;      // on a list of the resource, under its lock
  std::atomic<int> refs_{1};  // the resource's, and one for an abort that may come
};

// First come, first served. Not thread-safe.
class PendingOpList {
 public:
  bool empty() const { return first_ == nullptr; }
  PendingOp* first() const { return first_; }
  static PendingOp* after(const PendingOp* pending) { return pending->next_; }
  void add(PendingOp* pending);
  void remove(PendingOp* pending);

 private:
  PendingOp* first_ = nullptr;
  PendingOp* last_ = nullptr;
};

class WaitingResource : public Resource {
 public:
  using Resource::Resource;
  // Takes the pending over; it ends now or later. A null step never aborts.
  void start(PendingOp* pending, Step* step);

 protected:
  // Both with the lock held. What has ended goes to `ended`.
  virtual void enter(PendingOp& pending, PendingOpList& ended) = 0;
  virtual void withdraw(PendingOp& pending, PendingOpList& ended) = 0;

  static void wait(PendingOp& pending, PendingOpList& list);
  static void end(PendingOp& pending, PendingOpList& list, PendingOpList& ended, Status status);
  // Never waited.
  static void end(PendingOp& pending, PendingOpList& ended, Status status);
  // After unlocking.
  static void settle(PendingOpList& ended);

  mutable std::mutex mutex_;

 private:
  friend class PendingOp;
  void withdraw_aborted(PendingOp& pending, const Status& cause);
};

}  // namespace dtg
