// Timer: one thread that aborts what has passed its deadline. It exists for asynchronous runs, which no
// thread waits for; it starts with the first of them that has a deadline. Without a thread of its own, whoever drives the
// runtime calls ring_due(). Any thread may schedule and cancel.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/ref.h"

namespace dtg {

class Timer {
 public:
  class Timeout : public RefCounted {
   public:
    // Called once, from the timer's thread, unless it was cancelled in time. Must not block.
    virtual void ring() = 0;
  };

  Timer(const Clock& clock, bool own_thread) : clock_(clock), own_thread_(own_thread) {}
  ~Timer();
  // Rings at `at_ns` of the monotonic clock or soon after; at INT64_MAX never.
  void schedule(int64_t at_ns, Ref<Timeout> timeout);
  // After it, it does not ring any more, or has begun to.
  void cancel(const Timeout& timeout, int64_t at_ns);
  // For a timer without a thread: rings what is due. False: nothing was.
  bool ring_due();
  // When the next is due; INT64_MAX: there is none.
  int64_t next_due();
  // The calling thread is ours, so it may not be the one that destroys the timer.
  bool is_own_thread() const { return std::this_thread::get_id() == own_id_.load(std::memory_order_acquire); }

 private:
  void start();
  void work();
  bool ring_one(std::unique_lock<std::mutex>& lock);
  const Clock& clock_;
  const bool own_thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<int64_t, Ref<Timeout>> timeouts_;
  std::thread thread_;
  std::atomic<std::thread::id> own_id_{};
  int64_t wakes_at_ = INT64_MIN;  // until when the thread sleeps; what is due later than that need not wake it
  bool stopping_ = false;
};

}  // namespace dtg
