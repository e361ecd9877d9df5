// The slow side of the lock. An unlocker stores and then looks for sleepers without a fence between; whoever is about to sleep
// announces himself and then has the kernel run that fence on every CPU of the process (membarrier). So either the unlocker sees the
// sleeper, or the sleeper sees the lock free.
#include "base/spin_lock.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/futex.h"

namespace dtg {
namespace {

constexpr int64_t kSoonNs = 1'000'000;
constexpr int kTurns = 200;  // some microseconds, a hundred times what the lock is held for

// False where the kernel has no such fence, or a sandbox forbids it.
bool fence_everywhere() {
  static const bool registered = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  return registered && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

}  // namespace

void SpinLock::wait() {
  for (int turn = 0; turn < kTurns; ++turn) {
    if (word_.load(std::memory_order_relaxed) == kFree && try_lock()) return;
    spin_pause();
  }
  sleepers_.fetch_add(1);
  // Without the fence an unlocker may miss us; then we look again by ourselves.
  const int64_t longest = fence_everywhere() ? kNoTimeout : kSoonNs;
  while (!try_lock()) futex_wait(word_, kHeld, longest);
  sleepers_.fetch_sub(1);
}

// All, because who is woken may find the lock taken again, and would have to pass the wake on.
void SpinLock::wake() { futex_wake_all(word_); }

}  // namespace dtg
