// The real clock: CLOCK_MONOTONIC and CLOCK_REALTIME. The only file that asks the kernel for the time.
#include "base/clock.h"

#include <ctime>

namespace dtg {
namespace {
class SystemClock final : public Clock {
 public:
  int64_t monotonic_ns() const override {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
  }
  double wall_seconds() const override {
    timespec t{};
    clock_gettime(CLOCK_REALTIME, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
  }
};
}  // namespace

const Clock& system_clock() {
  static const SystemClock* const clock = new SystemClock;  // leaked: no destructor at exit
  return *clock;
}

}  // namespace dtg
