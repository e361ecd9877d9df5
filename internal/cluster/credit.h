// Credit: what one step may still send to one task before that task has memory for it, and the frames that wait for
// more. Whoever begins a step has its own memory ready, so it takes everything; the run of a part may have to wait for a
// thread or for its turn, and until it grants more it is sent no more than a window (wire::kEagerBytes).
//
// Owner: StepEdges, whose lock guards it. Any thread.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "net/channel.h"

namespace dtg {

class Credit {
 public:
  static constexpr uint64_t kUnlimited = UINT64_MAX;
  using Frames = std::vector<std::unique_ptr<OutFrame>>;

  explicit Credit(uint64_t bytes) : left_(bytes) {}

  // Takes the frame's payload out of the credit; or keeps the frame, because there is too little or others wait already.
  bool admit(std::unique_ptr<OutFrame>& frame, uint64_t bytes) {
    if (left_ == kUnlimited) return true;
    if (!waiting_.empty() || bytes > left_) {
      waiting_.push_back(std::move(frame));
      return false;
    }
    left_ -= bytes;
    return true;
  }
  // The task has memory for all of the step now: what waited, in its order.
  Frames grant() {
    left_ = kUnlimited;
    return std::exchange(waiting_, {});
  }
  // The step is over; to be destroyed without the lock, as frames tell their owners.
  Frames drop() { return std::exchange(waiting_, {}); }
  size_t waiting() const { return waiting_.size(); }

 private:
  uint64_t left_;
  Frames waiting_;
};

}  // namespace dtg
