// Leasing and giving back.
#include "exec/frame_pool.h"

#include <algorithm>

namespace dtg {

Result<Frame*> FramePool::lease(Waiter* waiter) {
  for (auto& cell : free_) {
    if (!cell.load(std::memory_order_relaxed)) continue;
    if (Frame* frame = cell.exchange(nullptr, std::memory_order_acq_rel)) return frame;
  }
  const std::lock_guard lock(mutex_);
  if (!spare_.empty()) {
    Frame* const frame = spare_.back();
    spare_.pop_back();
    return frame;
  }
  if (frames_.size() < limit_) {
    spare_.reserve(frames_.size() + 1);  // giving back must not fail
    frames_.push_back(std::make_unique<Frame>(around_));
    return frames_.back().get();
  }
  // Who gives a frame back looks at waiting_ after it has freed the cell, and we look at the cells after
  // we have raised it, so one of the two sees the other.
  if (waiter) waiters_.push_back(waiter);  // what may fail comes first
  waiting_.fetch_add(1);
  for (auto& cell : free_) {
    if (Frame* frame = cell.exchange(nullptr)) {
      if (waiter) waiters_.pop_back();
      waiting_.fetch_sub(1);
      return frame;
    }
  }
  if (!waiter) waiting_.fetch_sub(1);
  return nullptr;
}

bool FramePool::withdraw(Waiter* waiter) {
  const std::lock_guard lock(mutex_);
  const auto at = std::ranges::find(waiters_, waiter);
  if (at == waiters_.end()) return false;
  waiters_.erase(at);
  waiting_.fetch_sub(1);
  return true;
}

// More frames than cells were needed at one time; those that nobody is in any more go.
std::vector<std::unique_ptr<Frame>> FramePool::drop_spare() {
  std::vector<std::unique_ptr<Frame>> dropped;
  try {
    dropped.reserve(spare_.size());
  } catch (const std::bad_alloc&) {
    return {};
  }
  std::erase_if(spare_, [&](Frame* frame) {
    if (frame->visited()) return false;
    const auto at = std::ranges::find(frames_, frame, &std::unique_ptr<Frame>::get);
    dropped.push_back(std::move(*at));
    frames_.erase(at);
    return true;
  });
  return dropped;
}

void FramePool::give_back(Frame& frame) {
  frame.end();
  if (waiting_.load() == 0) {
    for (auto& cell : free_) {
      Frame* none = nullptr;
      if (!cell.compare_exchange_strong(none, &frame)) continue;
      if (waiting_.load() == 0) return;
      // A waiter came just now; take the frame out again for it, unless somebody was faster.
      Frame* mine = &frame;
      if (!cell.compare_exchange_strong(mine, nullptr)) return;
      break;
    }
  }
  Waiter* next = nullptr;
  std::vector<std::unique_ptr<Frame>> dropped;  // destroyed after the lock
  {
    const std::lock_guard lock(mutex_);
    if (!waiters_.empty()) {
      next = waiters_.front();
      waiters_.pop_front();
      waiting_.fetch_sub(1);
    } else {
      bool kept = false;
      for (auto& cell : free_) {
        Frame* none = nullptr;
        kept = kept || cell.compare_exchange_strong(none, &frame);
      }
      if (!kept) {
        spare_.push_back(&frame);
        dropped = drop_spare();
      }
    }
  }
  if (next) next->granted(frame);
}

}  // namespace dtg
