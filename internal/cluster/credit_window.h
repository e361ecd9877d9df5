// CreditWindow: what one step may still send to one task before that task has memory for it, and the frames that wait for
// more. Whoever begins a step has its own memory ready, so it takes everything; the run of a part may have to wait for a
// thread or for its turn, and until it grants more its session sends no more than a window (wire::kEagerBytes), and
// another task, whose words do not come after the session's, nothing.
//
// Owner: StepEdges, whose lock guards it. Any thread.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "net/channel.h"

namespace dtg {

class CreditWindow {
 public:
  static constexpr uint64_t kUnlimited = UINT64_MAX;
  using Frames = std::vector<std::unique_ptr<OutFrame>>;

  explicit CreditWindow(uint64_t bytes) : left_(bytes) {}
  static CreditWindow none() {
    CreditWindow credit(0);
    credit.open_ = false;
    return credit;
  }

  // So much may leave at once.
  bool covers(uint64_t bytes) const { return open_ && waiting_.empty() && bytes <= left_; }
  // Takes the frame's payload out of the credit; or keeps the frame, because there is too little or others wait already.
  bool admit(std::unique_ptr<OutFrame>& frame, uint64_t bytes) {
    if (!covers(bytes)) {
      waiting_.push_back(std::move(frame));
      return false;
    }
    if (left_ != kUnlimited) left_ -= bytes;
    return true;
  }
  // The task has memory for all of the step now: what waited, in its order.
  Frames grant() {
    open_ = true;
    left_ = kUnlimited;
    return std::exchange(waiting_, {});
  }
  // The step is over; to be destroyed without the lock, as frames tell their owners.
  Frames drop() { return std::exchange(waiting_, {}); }
  size_t waiting() const { return waiting_.size(); }

 private:
  uint64_t left_;
  bool open_ = true;
  Frames waiting_;
};

}  // namespace dtg
