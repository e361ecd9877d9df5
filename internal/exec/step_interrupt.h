// StepInterrupt: the end of a step while a kernel runs on its behalf, or while a body is planned for it. Whether it is over is the step's
// to say: one that is sealed goes on although its time is up, and so does the kernel. On the stack of who runs the kernel; asked from any
// thread.
#pragma once

#include <atomic>

#include "base/clock.h"
#include "base/interrupt.h"
#include "exec/step.h"

namespace dtg {

inline Status too_late() {
  return deadline_exceeded("the run's deadline passed; give it more time, or cancel what it waits for").in_phase("run");
}

class StepInterrupt final : public Interrupt {
 public:
  StepInterrupt(Step& step, const Clock& clock) : step_(step), clock_(clock) {}
  bool is_due() override {
    if (step_.aborted()) return true;
    if (told_.load(std::memory_order_relaxed) || !step_.deadline().passed(clock_) || told_.exchange(true)) return false;
    step_.abort(too_late());
    return step_.aborted();
  }

 private:
  Step& step_;
  const Clock& clock_;
  std::atomic<bool> told_{false};  // that it is late
};

}  // namespace dtg
