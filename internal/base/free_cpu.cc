// Asking the kernel how many threads want to run. See free_cpu.h.
#include "base/free_cpu.h"

#include <cstdlib>
#include <new>

#include "base/disk.h"
#include "base/pool.h"

namespace dtg {
namespace {

constexpr int64_t kTextMost = 128;

}  // namespace

// "0.52 0.58 0.59 3/467 11402": the number before the stroke is of this moment, not an average.
int running_threads() noexcept {
  try {
    const auto text = system_disk().read_file("/proc/loadavg", kTextMost);
    const size_t stroke = text.ok() ? text.value().find('/') : std::string::npos;
    if (stroke == std::string::npos) return -1;
    return std::atoi(text.value().c_str() + text.value().rfind(' ', stroke) + 1);
  } catch (const std::bad_alloc&) {
    return -1;  // whoever has no memory left sleeps
  }
}

bool FreeCpu::exists(int64_t now_ns) noexcept {
  const Answer answer = answer_.load(std::memory_order_relaxed);
  if (answer != Answer::measured) return answer == Answer::always;
  int64_t until = until_ns_.load(std::memory_order_acquire);
  if (now_ns < until) return found_.load(std::memory_order_relaxed);
  // One of those who come now asks; the others take what was found before.
  if (!until_ns_.compare_exchange_strong(until, now_ns + kHoldsNs)) return found_.load(std::memory_order_relaxed);
  static const int cpus = usable_cpus();
  const int running = running_threads();
  found_.store(cpus > 1 && running > 0 && running <= cpus, std::memory_order_relaxed);
  return found_.load(std::memory_order_relaxed);
}

}  // namespace dtg
