// FreeCpu: whether a thread that polls would take the CPU from one that works, as far as the system tells. Polling is worth more than
// sleeping only where nobody else wants that CPU: with more threads that could run than CPUs it is ruinous. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace dtg {

class FreeCpu final {
 public:
  enum class Answer : uint8_t { measured, always, never };
  // True: no more threads want to run than there are CPUs for this process, the caller among them. What was found holds for a millisecond.
  bool exists(int64_t now_ns) noexcept;
  // For tests: what exists() says from now on.
  void pretend(Answer answer) { answer_.store(answer, std::memory_order_relaxed); }

 private:
  static constexpr int64_t kHoldsNs = 1'000'000;
  std::atomic<Answer> answer_{Answer::measured};
  std::atomic<int64_t> until_ns_{0};
  std::atomic<bool> found_{false};
};

// The threads of the whole machine that run or could, as the kernel counts them; -1 where it does not say.
int running_threads() noexcept;

}  // namespace dtg
