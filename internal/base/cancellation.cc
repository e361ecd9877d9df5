// The list, and telling those on it one after the other.
#include "base/cancellation.h"

#include <mutex>

namespace dtg {

Status Cancellation::status() const { return is_cancelled() ? dtg::cancelled("the run was cancelled by its caller") : Status(); }

void Cancellation::cancel() {
  if (cancelled_.exchange(true)) return;
  for (;;) {
    Listener* next = nullptr;
    {
      const std::lock_guard lock(lock_);
      next = first_;
      if (!next) return;
      first_ = next->next_;
      if (first_) first_->prev_ = nullptr;
      next->listed_ = false;
      told_.store(next);
    }
    next->cancelled();
    told_.store(nullptr);
    told_.notify_all();
  }
}

bool Cancellation::add(Listener& listener) {
  const std::lock_guard lock(lock_);
  // Whoever cancels looks at the list afterwards, under the lock.
  if (cancelled_.load()) return false;
  listener.prev_ = nullptr;
  listener.next_ = first_;
  if (first_) first_->prev_ = &listener;
  first_ = &listener;
  listener.listed_ = true;
  return true;
}

void Cancellation::remove(Listener& listener) {
  {
    const std::lock_guard lock(lock_);
    if (listener.listed_) {
      (listener.prev_ ? listener.prev_->next_ : first_) = listener.next_;
      if (listener.next_) listener.next_->prev_ = listener.prev_;
      listener.listed_ = false;
      return;
    }
  }
  while (told_.load() == &listener) told_.wait(&listener);
}

}  // namespace dtg
