// Loop: one thread that moves bytes and rings alarms. It runs no kernels, never blocks and holds no lock while it
// calls out. Channels, links and servers belong to a loop: their state is touched by its thread only, and everyone
// else posts. What something that the loop calls throws ends there: the loop goes on. The simulator and the tests bring a loop of their own
// that stands on a stepped clock.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>

#include "base/clock.h"
#include "base/poller.h"
#include "base/pool.h"

namespace dtg {

class Loop : public Poller {
 public:
  // Something that happens at a time. Belongs to whoever sets it, who cancels it before it goes.
  class Alarm {
   public:
    Alarm() = default;
    Alarm(const Alarm&) = delete;
    Alarm& operator=(const Alarm&) = delete;
    virtual ~Alarm() = default;
    virtual void ring() = 0;

   private:
    friend class Loop;
    bool set_ = false;
    int64_t at_ns_ = 0;
  };

  explicit Loop(const Clock& clock) : clock_(clock) {}
  ~Loop() override = default;
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  const Clock& clock() const { return clock_; }
  // Runs `fn` on the loop's thread, after everything that was posted before. Any thread. What is posted to a loop
  // that has stopped is dropped.
  virtual void post(std::function<void()> fn) = 0;
  // As post(), but where the loop's thread sleeps the caller may take its turn, and `fn` has run when this returns: that
  // saves a thread switch. The caller holds no lock that anything on the loop takes.
  virtual void post_now(std::function<void()> fn) { post(std::move(fn)); }
  // For a thread of the host that waits for something that comes over this loop: it may be the loop meanwhile. It holds no lock that
  // anything on the loop takes. A loop that cannot be had says at once that the caller shall sleep.
  bool poll(Holds, const void*) override { return false; }
  // Loop thread only: runs the task when what the loop has called out for has returned, so with nothing locked. For what takes
  // microseconds: where the loop has been kept for long, the pool runs it. Takes no memory on a loop of its own thread.
  virtual void defer(Pool::Task* task, Pool&) {
    post([task] { task->run(); });
  }
  // On the loop's thread, or in a turn taken from it.
  virtual bool is_current() const = 0;
  // Runs `fn` on the loop's thread and waits until it is over: also when it throws, which is a mishap there, since what it
  // has handed to the loop before may still need what waits here. False when the loop has stopped.
  bool call(const std::function<void()>& fn);

  // Loop thread only. Setting a set alarm moves it; at INT64_MAX it never rings.
  void set(Alarm& alarm, int64_t at_ns);
  void cancel(Alarm& alarm);

  // How often something has thrown that had nobody nearer to catch it, such as a channel. Any thread.
  uint64_t mishaps() const { return mishaps_.load(std::memory_order_relaxed); }

 protected:
  // Every call out of the loop.
  template <class Fn>
  void contain(Fn&& fn) noexcept {
    try {
      fn();
    } catch (...) {
      mishaps_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  // INT64_MAX when nothing is due.
  int64_t next_due() const { return alarms_.empty() ? INT64_MAX : alarms_.begin()->first; }
  void ring_due();
  // The first alarm has changed.
  virtual void rearm() = 0;

 private:
  const Clock& clock_;
  std::multimap<int64_t, Alarm*> alarms_;
  std::atomic<uint64_t> mishaps_{0};
};

// An alarm that calls a function.
class AlarmCall final : public Loop::Alarm {
 public:
  explicit AlarmCall(std::function<void()> fn) : fn_(std::move(fn)) {}
  void ring() override { fn_(); }

 private:
  std::function<void()> fn_;
};

}  // namespace dtg
