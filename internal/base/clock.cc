// The system's clock behind the Clock seam: CLOCK_MONOTONIC and CLOCK_REALTIME. The only file that asks the kernel for
// the time. Any thread.
#include "base/clock.h"

#include <algorithm>
#include <chrono>
#include <ctime>

namespace dtg {
namespace {

// No longer at once: what the system adds to its own time must not overflow.
constexpr int64_t kWaitMostNs = int64_t{3600} * 1'000'000'000;

class SystemClock final : public Clock {
 public:
  int64_t monotonic_ns() const override {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
  }
  // As of the last tick of the kernel, of which there are a hundred or more in a second.
  int64_t coarse_ns() const override {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec + kCoarseNs;
  }
  double wall_seconds() const override {
    timespec t{};
    clock_gettime(CLOCK_REALTIME, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
  }
  void wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, int64_t until_ns) const override {
    const int64_t left = until_ns == INT64_MAX ? kWaitMostNs : until_ns - monotonic_ns();
    if (left > 0) changed.wait_for(lock, std::chrono::nanoseconds(std::min(left, kWaitMostNs)));
  }
};

}  // namespace

const Clock& system_clock() {
  static const SystemClock* const clock = new SystemClock;  // leaked: no destructor at exit
  return *clock;
}

}  // namespace dtg
