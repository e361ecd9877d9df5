// Futex: sleeping until a word of memory is told to have changed. The one place that asks the kernel for it; who waits polls first, as long
// as it may be worth it, and then sleeps here. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace dtg {

inline constexpr int64_t kNoTimeout = -1;

// What the kernel can compare.
template <class T>
concept FutexWord = sizeof(std::atomic<T>) == sizeof(uint32_t);

// Sleeps while the word at that address is `seen`, until it is woken or the time is over. It may return for nothing: the caller looks
// again.
void futex_wait(const void* word, uint32_t seen, int64_t timeout_ns);
void futex_wake(const void* word, int sleepers);

template <FutexWord T>
void futex_wait(const std::atomic<T>& word, T seen, int64_t timeout_ns = kNoTimeout) {
  futex_wait(static_cast<const void*>(&word), static_cast<uint32_t>(seen), timeout_ns);
}
template <FutexWord T>
void futex_wake_one(const std::atomic<T>& word) {
  futex_wake(static_cast<const void*>(&word), 1);
}
template <FutexWord T>
void futex_wake_all(const std::atomic<T>& word) {
  futex_wake(static_cast<const void*>(&word), INT32_MAX);
}

}  // namespace dtg
