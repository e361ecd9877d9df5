// Switching stacks, and telling the sanitizers of it.
#include "fiber.h"

#include <sys/mman.h>

#include <cstdlib>
#include <utility>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DTG_SIM_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define DTG_SIM_TSAN 1
#endif
#endif
#ifdef DTG_SIM_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef DTG_SIM_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace dtg::sim {
namespace {

constexpr size_t kStackBytes = size_t{512} << 10, kGuardBytes = 4096;
Fiber* running = nullptr;

}  // namespace

Fiber* Fiber::current() { return running; }

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)) {
  void* const memory =
      mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  mprotect(memory, kGuardBytes, PROT_NONE);
  stack_ = static_cast<char*>(memory);
  getcontext(&here_);
  here_.uc_stack.ss_sp = stack_ + kGuardBytes;
  here_.uc_stack.ss_size = kStackBytes;
  here_.uc_link = nullptr;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&here_, reinterpret_cast<void (*)()>(&Fiber::enter), 2, static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
#ifdef DTG_SIM_TSAN
  sanitizer_fiber_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
  munmap(stack_, kStackBytes + kGuardBytes);
#ifdef DTG_SIM_TSAN
  __tsan_destroy_fiber(sanitizer_fiber_);
#endif
}

void Fiber::enter(unsigned high, unsigned low) { reinterpret_cast<Fiber*>(static_cast<uintptr_t>(high) << 32 | low)->run(); }

void Fiber::run() {
#ifdef DTG_SIM_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &outside_stack_, &outside_bytes_);
#endif
  body_();
  ended_ = true;
  switch_back();
}

void Fiber::resume() {
  Fiber* const before = std::exchange(running, this);
#ifdef DTG_SIM_TSAN
  sanitizer_thread_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(sanitizer_fiber_, 0);
#endif
#ifdef DTG_SIM_ASAN
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, stack_ + kGuardBytes, kStackBytes);
#endif
  swapcontext(&there_, &here_);
#ifdef DTG_SIM_ASAN
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  running = before;
}

void Fiber::switch_back() {
#ifdef DTG_SIM_TSAN
  __tsan_switch_to_fiber(sanitizer_thread_, 0);
#endif
#ifdef DTG_SIM_ASAN
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(ended_ ? nullptr : &fake, outside_stack_, outside_bytes_);
#endif
  swapcontext(&here_, &there_);
#ifdef DTG_SIM_ASAN
  __sanitizer_finish_switch_fiber(fake, &outside_stack_, &outside_bytes_);
#endif
}

void Fiber::pause() { running->switch_back(); }

}  // namespace dtg::sim
