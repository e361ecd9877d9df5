// Asking the kernel how many threads want to run. See free_cpu.h.
#include "base/free_cpu.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/pool.h"

namespace dtg {

// "0.52 0.58 0.59 3/467 11402": the number before the stroke is of this moment, not an average.
int running_threads() {
  const int file = ::open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  char text[128] = {};
  const ssize_t bytes = ::read(file, text, sizeof text - 1);
  ::close(file);
  const char* at = bytes > 0 ? std::strchr(text, '/') : nullptr;
  if (!at) return -1;
  while (at > text && at[-1] >= '0' && at[-1] <= '9') --at;
  return std::atoi(at);
}

bool FreeCpu::exists(int64_t now_ns) {
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
