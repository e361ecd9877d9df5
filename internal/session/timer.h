// Timer: one thread that aborts what has passed its deadline. It exists for asynchronous runs, which no
// thread waits for; it starts with the first of them. Any thread may schedule and cancel.
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
  class Alarm : public RefCounted {
   public:
    // Called once, from the timer's thread, unless it was cancelled in time. Must not block.
    virtual void ring() = 0;
  };

  explicit Timer(const Clock& clock) : clock_(clock) {}
  ~Timer();
  // Rings at `at_ns` of the monotonic clock or soon after.
  void schedule(int64_t at_ns, Ref<Alarm> alarm);
  // After it, the alarm does not ring any more, or has begun to.
  void cancel(const Alarm& alarm, int64_t at_ns);
  // The calling thread is ours, so it may not be the one that destroys the timer.
  bool is_own_thread() const { return std::this_thread::get_id() == own_id_.load(std::memory_order_acquire); }

 private:
  void work();
  const Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<int64_t, Ref<Alarm>> alarms_;
  std::thread thread_;
  std::atomic<std::thread::id> own_id_{};
  bool stopping_ = false;
};

}  // namespace dtg
