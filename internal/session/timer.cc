// The timer's thread.
#include "session/timer.h"

#include <signal.h>

#include <new>
#include <system_error>

namespace dtg {

Timer::~Timer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Timer::schedule(int64_t at_ns, Ref<Alarm> alarm) {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) {
    // Signals belong to the host.
    sigset_t all, before;
    sigfillset(&all);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this] { work(); });
    } catch (const std::system_error&) {
      // No thread is left: to the caller that is like no memory.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!thread_.joinable()) throw std::bad_alloc();
  }
  alarms_.emplace(at_ns, std::move(alarm));
  if (alarms_.begin()->first == at_ns) changed_.notify_one();
}

void Timer::cancel(const Alarm& alarm, int64_t at_ns) {
  Ref<Alarm> dropped;  // released after the lock
  const std::lock_guard lock(mutex_);
  const auto [from, to] = alarms_.equal_range(at_ns);
  for (auto at = from; at != to; ++at) {
    if (at->second.get() != &alarm) continue;
    dropped = std::move(at->second);
    alarms_.erase(at);
    return;
  }
}

void Timer::work() {
  own_id_.store(std::this_thread::get_id(), std::memory_order_release);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (alarms_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const int64_t left = alarms_.begin()->first - clock_.monotonic_ns();
    if (left > 0) {
      changed_.wait_for(lock, std::chrono::nanoseconds(left));
      continue;
    }
    const Ref<Alarm> alarm = std::move(alarms_.begin()->second);
    alarms_.erase(alarms_.begin());
    lock.unlock();
    alarm->ring();
    lock.lock();
  }
}

}  // namespace dtg
