// The timer's thread.
#include "session/timer.h"

#include <signal.h>

#include <exception>
#include <new>

namespace dtg {

Timer::~Timer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Timer::start() {
  // Signals belong to the host.
  sigset_t all, before;
  sigfillset(&all);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::exception&) {
    // No thread is left, or no memory for one: the same to the caller.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!thread_.joinable()) throw std::bad_alloc();
}

void Timer::schedule(int64_t at_ns, Ref<Timeout> timeout) {
  if (at_ns == INT64_MAX) return;
  const std::lock_guard lock(mutex_);
  if (own_thread_ && !thread_.joinable()) start();
  timeouts_.emplace(at_ns, std::move(timeout));
  if (at_ns < wakes_at_) changed_.notify_one();
}

void Timer::cancel(const Timeout& timeout, int64_t at_ns) {
  Ref<Timeout> dropped;  // released after the lock
  const std::lock_guard lock(mutex_);
  const auto [from, to] = timeouts_.equal_range(at_ns);
  for (auto at = from; at != to; ++at) {
    if (at->second.get() != &timeout) continue;
    dropped = std::move(at->second);
    timeouts_.erase(at);
    return;
  }
}

void Timer::work() {
  own_id_.store(std::this_thread::get_id(), std::memory_order_release);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (ring_one(lock)) continue;
    wakes_at_ = timeouts_.empty() ? INT64_MAX : timeouts_.begin()->first;
    clock_.wait(changed_, lock, wakes_at_);
    wakes_at_ = INT64_MIN;
  }
}

// False when none is due.
bool Timer::ring_one(std::unique_lock<std::mutex>& lock) {
  if (timeouts_.empty() || timeouts_.begin()->first > clock_.monotonic_ns()) return false;
  Ref<Timeout> timeout = std::move(timeouts_.begin()->second);
  timeouts_.erase(timeouts_.begin());
  lock.unlock();
  timeout->ring();
  timeout = nullptr;
  lock.lock();
  return true;
}

bool Timer::ring_due() {
  std::unique_lock lock(mutex_);
  bool rang = false;
  while (!own_thread_ && ring_one(lock)) rang = true;
  return rang;
}

int64_t Timer::next_due() {
  const std::lock_guard lock(mutex_);
  return timeouts_.empty() ? INT64_MAX : timeouts_.begin()->first;
}

}  // namespace dtg
