// Who is last, the end of the body or whoever started it, goes on. See body_run.h.
#include "exec/body_run.h"

namespace dtg {

Status BodyRun::enter(const Ref<Body>& body, Frame& caller, const Instruction& call) {
  if (frame_ && body_ == body) {
    if (!fresh_) DTG_TRY(frame_->again());
    fresh_ = true;
    return {};
  }
  leave();
  DTG_ASSIGN(Frame* const frame, body->lease_frame());
  body_ = body;
  program_ = &body->program();
  frame_ = frame;
  fresh_ = true;
  return frame->begin_in(caller.step(), caller, call);
}

bool BodyRun::go() {
  fresh_ = false;
  if (program().straight) {
    outcome_ = frame_->run_straight();
    return true;
  }
  state_.store(running, std::memory_order_relaxed);
  frame_->run_here(this);
  return state_.exchange(left, std::memory_order_acq_rel) == ended;
}

void BodyRun::finished(Frame&) {
  if (state_.exchange(ended, std::memory_order_acq_rel) == left) owner_.body_ended();
}

void BodyRun::leave() {
  if (!frame_) return;
  body_->give_back(*std::exchange(frame_, nullptr));
  body_ = nullptr;
  program_ = nullptr;
}

}  // namespace dtg
