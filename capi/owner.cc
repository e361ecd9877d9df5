// Entering and leaving, and the names of threads as the kernel keeps them. See owner.h for threads.
#include "capi/owner.h"

#include <unistd.h>

#include <string>

#include "base/disk.h"

namespace dtg::capi {
namespace {

std::string name_of(int32_t thread) {
  auto name = system_disk().read_file("/proc/self/task/" + std::to_string(thread) + "/comm", 64);
  std::string text = name.ok() ? name.take() : std::string();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.empty() ? "?" : text;
}

}  // namespace

int32_t this_thread() {
  static constinit thread_local int32_t number = 0;  // a system call the first time only
  if (number == 0) number = gettid();
  return number;
}

uint64_t Owner::inside_by(Use use) {
  const auto mine = static_cast<uint64_t>(static_cast<uint32_t>(this_thread())) << 32;
  return mine | (use == Use::read ? 1 : use == Use::change ? kChanging : kChanging | kGlancing);
}

int32_t Owner::enter(Use use) {
  const uint64_t mine = inside_by(use);
  uint64_t now = 0;
  // Readers beside readers keep what the word says of others.
  while (!inside_.compare_exchange_weak(now, mine + (now & (kAwaited | kReaders)), std::memory_order_acquire)) {
    // Nobody is refused for whoever glances, nor for whoever still waits: nobody is inside then.
    if ((now & kGlancing) || (now != 0 && (now & (kChanging | kReaders)) == 0)) return await(use), 0;
    if (now != 0 && (use != Use::read || (now & kChanging))) return static_cast<int32_t>(now >> 32);
  }
  return 0;
}

// Where somebody waits, it stays his: who comes again and again would be first each time.
void Owner::leave(Use use) {
  const auto after = [](uint64_t now) { return (now & kAwaited) != 0 ? now & ~(kChanging | kGlancing | kReaders) : 0; };
  uint64_t now = inside_.load(std::memory_order_relaxed), next = 0;
  do next = use != Use::read || (now & kReaders) == 1 ? after(now) : now - 1;
  while (!inside_.compare_exchange_weak(now, next, std::memory_order_release, std::memory_order_relaxed));
  if ((next & kAwaited) != 0 && (next & kReaders) == 0) inside_.notify_all();
}

// Nobody who waits goes away without having been inside.
void Owner::await(Use use) {
  const uint64_t inside = inside_by(use);
  for (;;) {
    uint64_t now = inside_.load(std::memory_order_relaxed);
    if ((now & (kChanging | kReaders)) == 0) {
      if (inside_.compare_exchange_strong(now, inside, std::memory_order_acquire)) return;
    } else if ((now & kAwaited) != 0 || inside_.compare_exchange_strong(now, now | kAwaited, std::memory_order_relaxed)) {
      inside_.wait(now | kAwaited);
    }
  }
}

int32_t Owner::enter_after(Use use, const std::atomic<bool>& refuses) {
  const int32_t other = enter(use);
  if (other == 0 || refuses.load()) return other;
  await(use);
  return 0;
}

Status Owner::Turn::refused(const char* noun) const {
  const int32_t mine = this_thread();
  // Goroutines, and what a call has called, share a thread.
  if (mine == other_) {
    return failed_precondition(
        "the %s is used while an earlier call on it is under way, in this thread (\"%s\", %d) too: by what that call "
        "has called, or by another of the program's tasks; one at a time may: give each its own, or put a lock "
        "around the calls",
        noun, name_of(mine).c_str(), mine);
  }
  return failed_precondition(
      "thread \"%s\" (%d) uses the %s while thread \"%s\" (%d) is inside it; one thread at a time may: give each thread "
      "its own, or put a lock around the calls",
      name_of(mine).c_str(), mine, noun, name_of(other_).c_str(), other_);
}

}  // namespace dtg::capi
