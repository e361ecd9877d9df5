// MemoryBudget: every size that comes from outside (wire, file, a caller's shape) is reserved here before
// it is committed, because malloc of 20 GiB succeeds on a machine that has half of that. Lock-free; any
// thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/status.h"

namespace dtg {

class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t limit_bytes) : limit_(limit_bytes) {}

  // Reserves or says what was asked, what is left and what to change. `what` names the thing.
  Status reserve(int64_t bytes, const char* what);
  void release(int64_t bytes) { used_.fetch_sub(bytes, std::memory_order_acq_rel); }
  int64_t used() const { return used_.load(std::memory_order_acquire); }
  int64_t limit() const { return limit_; }

 private:
  const int64_t limit_;
  std::atomic<int64_t> used_{0};
};

// Half of what this process may use: the smaller of the machine's memory and its cgroup's limit.
int64_t default_budget_bytes();

}  // namespace dtg
