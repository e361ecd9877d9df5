// The slow side of the lock.
#include "base/spin_lock.h"

namespace dtg {
namespace {
constexpr int kTurns = 200;  // some microseconds, a hundred times what the lock is held for
}

void SpinLock::wait() {
  for (int turn = 0; turn < kTurns; ++turn) {
    if (word_.load(std::memory_order_relaxed) == kFree && try_lock()) return;
    spin_pause();
  }
  // Whoever comes this way leaves the mark behind, as others may sleep too; one wake too many does no harm.
  while (word_.exchange(kWanted, std::memory_order_acquire) != kFree) word_.wait(kWanted, std::memory_order_relaxed);
}

}  // namespace dtg
