// Entering and leaving, and the names of threads as the kernel keeps them. See owner.h for threads.
#include "capi/owner.h"

#include <unistd.h>

#include <string>

#include "base/disk.h"

namespace dtg::capi {
namespace {

int32_t this_thread() {
  static constinit thread_local int32_t number = 0;  // a system call the first time only
  if (number == 0) number = gettid();
  return number;
}

std::string name_of(int32_t thread) {
  auto name = system_disk().read_file("/proc/self/task/" + std::to_string(thread) + "/comm", 64);
  std::string text = name.ok() ? name.take() : std::string();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.empty() ? "?" : text;
}

}  // namespace

int32_t Owner::enter(Use use) {
  const auto mine = static_cast<uint64_t>(static_cast<uint32_t>(this_thread())) << 32;
  uint64_t now = 0;
  if (use == Use::change) {
    return inside_.compare_exchange_strong(now, mine | kChanging, std::memory_order_acquire) ? 0 : static_cast<int32_t>(now >> 32);
  }
  uint64_t next = mine | 1;
  while (!inside_.compare_exchange_weak(now, next, std::memory_order_acquire)) {
    if (now & kChanging) return static_cast<int32_t>(now >> 32);
    next = mine | (now & kAwaited) | ((now & kReaders) + 1);
  }
  return 0;
}

void Owner::leave(Use use) {
  uint64_t now = 0, next = 0;
  if (use == Use::change) {
    now = inside_.exchange(0, std::memory_order_release);
  } else {
    now = inside_.load(std::memory_order_relaxed);
    do next = (now & kReaders) == 1 ? 0 : now - 1;
    while (!inside_.compare_exchange_weak(now, next, std::memory_order_release));
  }
  if (next == 0 && (now & kAwaited) != 0) inside_.notify_all();
}

void Owner::come_back() {
  for (;;) {
    uint64_t now = 0;
    const auto mine = static_cast<uint64_t>(static_cast<uint32_t>(this_thread())) << 32;
    if (inside_.compare_exchange_strong(now, mine | kChanging, std::memory_order_acquire)) return;
    if (inside_.compare_exchange_strong(now, now | kAwaited, std::memory_order_relaxed)) inside_.wait(now | kAwaited);
  }
}

Status Owner::Turn::refused(const char* noun) const {
  const int32_t mine = this_thread();
  return failed_precondition(
      "thread \"%s\" (%d) uses the %s while thread \"%s\" (%d) is inside it; one thread at a time may: give each thread "
      "its own, or put a lock around the calls",
      name_of(mine).c_str(), mine, noun, name_of(other_).c_str(), other_);
}

}  // namespace dtg::capi
