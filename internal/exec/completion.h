// Completion: the exactly-once token of an asynchronous instruction. Whoever holds it owes one call of
// done(); dropping it unfired reports INTERNAL, so that a lost token is an error and never a hang.
// Move-only; done() may be called from any thread. A kernel that answers true ("done already") calls
// dismiss() first and says its outcome by RunContext::set_status.
#pragma once

#include <utility>

#include "exec/kernel.h"

namespace dtg {

class Frame;

class Completion {
 public:
  Completion() = default;
  Completion(Frame* frame, uint32_t segment, const Instruction* instruction)
      : frame_(frame), instruction_(instruction), segment_(segment) {}
  Completion(Completion&& other) noexcept
      : frame_(std::exchange(other.frame_, nullptr)), instruction_(other.instruction_), segment_(other.segment_) {}
  Completion& operator=(Completion&& other) noexcept {
    std::swap(frame_, other.frame_);
    std::swap(instruction_, other.instruction_);
    std::swap(segment_, other.segment_);
    return *this;
  }
  ~Completion() {
    if (frame_) lost();
  }

  explicit operator bool() const { return frame_ != nullptr; }
  // The operands of the instruction, for writing outputs before done(); without a workspace. Valid until
  // done().
  RunContext context() const;
  Step& step() const;
  // Where the instruction runs, while it has not ended.
  Frame& frame() const { return *frame_; }
  // Ends the instruction. What depends on it is handed on, never run inside this call.
  void done(Status status);
  // The kernel answers true: nothing is owed any more.
  void dismiss() { frame_ = nullptr; }

 private:
  void lost();
  Frame* frame_ = nullptr;
  const Instruction* instruction_ = nullptr;
  uint32_t segment_ = 0;
};

}  // namespace dtg
