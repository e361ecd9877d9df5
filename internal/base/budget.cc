// Budget accounting and the default limit from the machine and its cgroup. Any thread.
#include "base/budget.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/disk.h"

namespace dtg {

Status MemoryBudget::reserve(int64_t bytes, const char* what) {
  if (bytes < 0) return invalid_argument("reserve memory for %s: negative size %lld", what, static_cast<long long>(bytes));
  int64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit_ - used) {
      return resource_exhausted(
          "reserve %lld bytes for %s: %lld of %lld bytes are in use; raise the runtime's memory_limit or free tensors",
          static_cast<long long>(bytes), what, static_cast<long long>(used), static_cast<long long>(limit_));
    }
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_acq_rel));
  return {};
}

namespace {
// A cgroup file holds one number or "max"; anything else reads as "no limit".
int64_t cgroup_limit(const char* path) {
  auto text = system_disk().read_file(path, 64);
  if (!text.ok() || text.value().empty() || text.value()[0] < '0' || text.value()[0] > '9') return INT64_MAX;
  int64_t value = 0;
  for (char c : text.value()) {
    if (c < '0' || c > '9') break;
    if (value > INT64_MAX / 10 - 10) return INT64_MAX;
    value = value * 10 + (c - '0');
  }
  return value;
}
}  // namespace

int64_t default_budget_bytes() {
  const int64_t physical = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  const int64_t limit =
      std::min({physical, cgroup_limit("/sys/fs/cgroup/memory.max"), cgroup_limit("/sys/fs/cgroup/memory/memory.limit_in_bytes")});
  return limit / 2;
}

}  // namespace dtg
