// Turns: whose turn it is. First come, first served; who waits may be a thread in a call, or be told. Nothing waits here, and nobody
// is told with the lock held. Any thread.
#pragma once

#include <mutex>

#include "base/spin_lock.h"

namespace dtg {

class Turns final {
 public:
  class Waiter {
   public:
    // It is, from whoever gave the turn back; must not wait.
    virtual void your_turn() = 0;

   protected:
    ~Waiter() = default;

   private:
    friend class Turns;
    Waiter* prev_ = nullptr;
    Waiter* next_ = nullptr;
    bool in_line_ = false;
  };

  // True: it is at once. Otherwise the waiter stands in line until its turn comes, or it withdraws.
  bool take(Waiter& waiter) {
    const std::lock_guard lock(lock_);
    if (!taken_) return taken_ = true;
    waiter.prev_ = last_;
    (last_ ? last_->next_ : first_) = &waiter;
    last_ = &waiter;
    waiter.in_line_ = true;
    return false;
  }
  // False: it is its turn already.
  bool withdraw(Waiter& waiter) {
    const std::lock_guard lock(lock_);
    if (!waiter.in_line_) return false;
    leave(waiter);
    return true;
  }
  void give_back() {
    Waiter* next = nullptr;
    {
      const std::lock_guard lock(lock_);
      next = first_;
      if (next) leave(*next);
      taken_ = next != nullptr;
    }
    if (next) next->your_turn();
  }

 private:
  void leave(Waiter& waiter) {
    (waiter.prev_ ? waiter.prev_->next_ : first_) = waiter.next_;
    (waiter.next_ ? waiter.next_->prev_ : last_) = waiter.prev_;
    waiter.prev_ = waiter.next_ = nullptr;
    waiter.in_line_ = false;
  }

  SpinLock lock_;  // guards what follows
  bool taken_ = false;
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
};

}  // namespace dtg
