// Leasing and giving back.
#include "exec/frame_pool.h"

#include <utility>

namespace dtg {

Result<Frame*> FramePool::lease(Waiter* waiter) {
  for (auto& cell : free_) {
    if (!cell.load(std::memory_order_relaxed)) continue;
    if (Frame* frame = cell.exchange(nullptr, std::memory_order_acq_rel)) return frame;
  }
  const std::lock_guard lock(mutex_);
  if (spare_) return std::exchange(spare_, spare_->next_spare_);
  if (frames_.size() < limit_) {
    frames_.push_back(std::make_unique<Frame>(around_));
    frames_.back()->place_ = frames_.size() - 1;
    return frames_.back().get();
  }
  // Who gives a frame back looks at waiting_ after it has freed the cell, and we look at the cells after
  // we have raised it, so one of the two sees the other.
  if (waiter) {
    DTG_TRY(waiter->stop_cause());
    enqueue(waiter);
  }
  waiting_.fetch_add(1);
  for (auto& cell : free_) {
    if (Frame* frame = cell.exchange(nullptr)) {
      if (waiter) dequeue(waiter);
      waiting_.fetch_sub(1);
      return frame;
    }
  }
  if (!waiter) waiting_.fetch_sub(1);
  return nullptr;
}

void FramePool::enqueue(Waiter* waiter) {
  waiter->prev_ = last_waiter_;
  waiter->next_ = nullptr;
  (last_waiter_ ? last_waiter_->next_ : first_waiter_) = waiter;
  last_waiter_ = waiter;
  waiter->queued_ = true;
}

void FramePool::dequeue(Waiter* waiter) {
  (waiter->prev_ ? waiter->prev_->next_ : first_waiter_) = waiter->next_;
  (waiter->next_ ? waiter->next_->prev_ : last_waiter_) = waiter->prev_;
  waiter->queued_ = false;
}

bool FramePool::withdraw(Waiter* waiter) {
  const std::lock_guard lock(mutex_);
  if (!waiter->queued_) return false;
  dequeue(waiter);
  waiting_.fetch_sub(1);
  return true;
}

// More frames than cells were needed at one time; those that nobody is in any more go, to be deleted without the lock.
Frame* FramePool::take_unused() {
  Frame* unused = nullptr;
  for (Frame** at = &spare_; Frame* const frame = *at;) {
    if (frame->visited()) {
      at = &frame->next_spare_;
      continue;
    }
    *at = std::exchange(frame->next_spare_, unused);
    unused = frames_[frame->place_].release();
    if (frame->place_ + 1 < frames_.size()) {
      frames_[frame->place_] = std::move(frames_.back());
      frames_[frame->place_]->place_ = frame->place_;
    }
    frames_.pop_back();
  }
  return unused;
}

// One after the other, not one inside the other: of thousands of runs that wait, all may find that their session is closed.
void FramePool::give_back(Frame& frame) {
  for (;;) {
    frame.end();
    Frame* unused = nullptr;
    Waiter* const next = park(frame, &unused);
    while (unused) delete std::exchange(unused, unused->next_spare_);
    if (!next || next->granted(frame)) return;
  }
}

// Who gets the frame; null when it is free now.
FramePool::Waiter* FramePool::park(Frame& frame, Frame** unused) {
  if (waiting_.load() == 0) {
    for (auto& cell : free_) {
      Frame* none = nullptr;
      if (!cell.compare_exchange_strong(none, &frame)) continue;
      if (waiting_.load() == 0) return nullptr;
      // A waiter came just now; take the frame out again for it, unless somebody was faster.
      Frame* mine = &frame;
      if (!cell.compare_exchange_strong(mine, nullptr)) return nullptr;
      break;
    }
  }
  const std::lock_guard lock(mutex_);
  if (Waiter* const next = first_waiter_) {
    dequeue(next);
    waiting_.fetch_sub(1);
    return next;
  }
  bool kept = false;
  for (auto& cell : free_) {
    Frame* none = nullptr;
    kept = kept || cell.compare_exchange_strong(none, &frame);
  }
  if (!kept) {
    frame.next_spare_ = std::exchange(spare_, &frame);
    *unused = take_unused();
  }
  return nullptr;
}

}  // namespace dtg
