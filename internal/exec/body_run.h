// BodyRun: one function being called, once or round after round in the same frame. What can run at once runs on the thread that asks; a
// body that must wait holds no thread, and its owner hears of the end.
//
// Owner: the instruction that calls. One thread at a time, but for the end, which comes from whoever brings it.
#pragma once

#include <atomic>

#include "exec/body.h"
#include "exec/frame.h"

namespace dtg {

class BodyRun final : private Frame::Watcher {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // The body has ended, after go() had said that it had not.
    virtual void body_ended() = 0;
  };
  explicit BodyRun(Owner& owner) : owner_(owner) {}
  ~BodyRun() override { leave(); }

  // A frame for `body`, as part of the step of `caller`; keeps what it has where that is the same. Then bind arguments and results.
  Status enter(const Ref<Body>& body, Frame& caller, const Instruction& call);
  bool entered() const { return frame_ != nullptr; }
  const Program& program() const { return *program_; }
  Frame& frame() const { return *frame_; }
  // True: it has ended, in outcome(). False: the owner will hear.
  bool go();
  Status outcome() const { return program().straight ? outcome_ : frame_->outcome(); }
  // The frame goes back, and with it what the body's results lie in.
  void leave();

 private:
  void finished(Frame& frame) override;

  enum State : int { running, left, ended };
  Owner& owner_;
  Ref<Body> body_;
  const Program* program_ = nullptr;  // of the body
  Frame* frame_ = nullptr;
  bool fresh_ = false;  // entered, and no round was run yet
  Status outcome_;
  std::atomic<int> state_{running};
};

}  // namespace dtg
