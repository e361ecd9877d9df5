// Clock: the seam through which the library learns the time. Deadlines and leases use the monotonic
// side only; wall time is for labels in logs and event files. Waiting goes through it too, so that a virtual clock, as the
// simulator hands in, decides how long a wait takes. Any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace dtg {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t monotonic_ns() const = 0;
  // The same, or up to kCoarseNs more where that is cheaper; never less.
  virtual int64_t coarse_ns() const { return monotonic_ns(); }
  static constexpr int64_t kCoarseNs = 10'000'000;
  virtual double wall_seconds() const = 0;
  // Waits with `lock` given up until `changed` is notified or it is `until_ns` (INT64_MAX: never); it may also return for no
  // reason, so the caller looks whether what it waits for is there.
  virtual void wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, int64_t until_ns) const = 0;
};

// The real clock of this machine; lives as long as the process.
const Clock& system_clock();

// A moment on the monotonic clock after which a wait gives up. max() never comes.
struct Deadline {
  int64_t at_ns = INT64_MAX;
  static Deadline never() { return {}; }
  static Deadline after(const Clock& clock, int64_t timeout_ns) {
    const int64_t now = clock.monotonic_ns();
    return {timeout_ns > INT64_MAX - now ? INT64_MAX : now + timeout_ns};
  }
  // For the timeout of a call, of which there may be millions in a second: never early, and late by no more than a hundredth.
  static Deadline of_call(const Clock& clock, int64_t timeout_ns) {
    if (timeout_ns < 100 * Clock::kCoarseNs) return after(clock, timeout_ns);
    const int64_t now = clock.coarse_ns();
    return {timeout_ns > INT64_MAX - now ? INT64_MAX : now + timeout_ns};
  }
  bool is_never() const { return at_ns == INT64_MAX; }
  bool passed(const Clock& clock) const { return !is_never() && clock.monotonic_ns() >= at_ns; }
  // Nanoseconds left, 0 when passed.
  int64_t left_ns(const Clock& clock) const {
    if (is_never()) return INT64_MAX;
    const int64_t left = at_ns - clock.monotonic_ns();
    return left > 0 ? left : 0;
  }
};

}  // namespace dtg
