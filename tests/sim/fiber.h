// Fiber: a host's thread in a simulated process: it runs until it waits, and goes on when the world says so. One real thread.
#pragma once

#include <ucontext.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace dtg::sim {

class Fiber final {
 public:
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // From outside: runs until the next pause, or the end.
  void resume();
  bool ended() const { return ended_; }
  // From inside: back to whoever resumed it.
  static void pause();
  // The one that runs now; null outside of all.
  static Fiber* current();
  // Until when it would rather not be resumed.
  int64_t wakes_at_ns = 0;

 private:
  static void enter(unsigned high, unsigned low);
  void run();
  void switch_back();

  const std::function<void()> body_;
  char* stack_ = nullptr;
  ucontext_t here_{}, there_{};
  bool ended_ = false;
  void* sanitizer_fiber_ = nullptr;                       // of ThreadSanitizer
  void* sanitizer_thread_ = nullptr;                      // the same of who resumed it
  [[maybe_unused]] const void* outside_stack_ = nullptr;  // of AddressSanitizer
  [[maybe_unused]] size_t outside_bytes_ = 0;
};

}  // namespace dtg::sim
