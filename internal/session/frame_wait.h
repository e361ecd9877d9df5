// FrameWait: a synchronous caller that found all frames of its plan taken. Lives on the caller's stack.
#pragma once

#include <condition_variable>
#include <mutex>

#include "base/clock.h"
#include "plan/plan.h"

namespace dtg {

class FrameWait final : public Plan::FrameWaiter {
 public:
  void granted(Frame& frame) override {
    const std::lock_guard lock(mutex_);
    frame_ = &frame;
    changed_.notify_one();
  }

  // The frame, or null when the deadline passed.
  Frame* until(const Clock& clock, Deadline deadline) {
    std::unique_lock lock(mutex_);
    while (!frame_) {
      if (deadline.passed(clock)) return nullptr;
      // At most a second at a time: the clock of the seam need not run like the system's.
      changed_.wait_for(lock, std::chrono::nanoseconds(std::min<int64_t>(deadline.left_ns(clock), 1'000'000'000)));
    }
    return frame_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Frame* frame_ = nullptr;
};

}  // namespace dtg
