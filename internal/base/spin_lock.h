// SpinLock: the one lock of the library that is held for a few instructions only: a list is linked, a pointer is taken. Who finds
// it taken polls for a bounded number of turns and then sleeps until it is free, so that a holder who lost his CPU gets it back.
// Uncontended it makes no system call and is no mutex, and letting go of it is a plain store; nothing that may wait, allocate or
// call out happens under it. Any thread; works with std::lock_guard, and in constant initialisation.
#pragma once

#include <atomic>

namespace dtg {

// One polite turn of a poll, which its caller bounds.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

class SpinLock {
 public:
  constexpr SpinLock() = default;
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

  void lock() {
    if (!try_lock()) wait();
  }
  bool try_lock() {
    int free = kFree;
    return word_.compare_exchange_strong(free, kHeld, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void unlock() {
    word_.store(kFree, std::memory_order_release);
    // The CPU may look before others see the store. Who goes to sleep rules that out for both (wait()).
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_relaxed) != 0) wake();
  }

 private:
  static constexpr int kFree = 0;
  static constexpr int kHeld = 1;
  void wait();
  void wake();
  std::atomic<int> word_{kFree};
  std::atomic<int> sleepers_{0};
};

}  // namespace dtg
