// Attempt: an operation on a shared object (a queue, an accumulator) that may have to wait for others. It is an
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

class Attempt : public Step::Waiter {
 protected:
  // The end, called exactly once, with nothing locked; the step may be gone when it returns.
  virtual void finished(Status status) = 0;

 private:
  friend class WaitingResource;
  friend class AttemptList;
  void aborted(const Status& cause) final;
  void drop();

  Attempt* next_ = nullptr;
  Attempt* prev_ = nullptr;
  Step* step_ = nullptr;
  Ref<WaitingResource> resource_;
  Status outcome_;
  bool waiting_ = false;      // on a list of the resource, under its lock
  std::atomic<int> refs_{1};  // the resource's, and one for an abort that may come
};

// First come, first served. Not thread-safe.
class AttemptList {
 public:
  bool empty() const { return first_ == nullptr; }
  Attempt* first() const { return first_; }
  static Attempt* after(const Attempt* attempt) { return attempt->next_; }
  void add(Attempt* attempt);
  void remove(Attempt* attempt);

 private:
  Attempt* first_ = nullptr;
  Attempt* last_ = nullptr;
};

class WaitingResource : public Resource {
 public:
  using Resource::Resource;
  // Takes the attempt over; it ends now or later. A null step never aborts.
  void start(Attempt* attempt, Step* step);

 protected:
  // Both with the lock held. What has ended goes to `ended`.
  virtual void enter(Attempt& attempt, AttemptList& ended) = 0;
  virtual void withdraw(Attempt& attempt, AttemptList& ended) = 0;

  static void wait(Attempt& attempt, AttemptList& list);
  static void end(Attempt& attempt, AttemptList& list, AttemptList& ended, Status status);
  // Never waited.
  static void end(Attempt& attempt, AttemptList& ended, Status status);
  // After unlocking.
  static void settle(AttemptList& ended);

  mutable std::mutex mutex_;

 private:
  friend class Attempt;
  void withdraw_aborted(Attempt& attempt, const Status& cause);
};

}  // namespace dtg
