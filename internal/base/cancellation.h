// Cancellation: a host's wish that calls end, told by another thread. It is used once and stays used. Calls that wait or run on its
// behalf are on its list and hear of it; it holds none of them, and keeps nothing alive.
//
// Owner: the host's handle and the calls under way, by count. Any thread.
#pragma once

#include <atomic>

#include "base/condition.h"
#include "base/ref.h"
#include "base/spin_lock.h"
#include "base/status.h"

namespace dtg {

class Cancellation final : public RefCounted {
 public:
  class Listener {
   public:
    // Called once at most, from the thread that cancels, with nothing locked. Must not wait, nor remove() itself.
    virtual void cancelled() = 0;

   protected:
    ~Listener() = default;

   private:
    friend class Cancellation;
    Listener* prev_ = nullptr;
    Listener* next_ = nullptr;
    bool listed_ = false;
  };

  bool is_cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  // The error of what it ends; ok while it was not used.
  Status status() const;
  // The first time tells all who listen; later it does nothing.
  void cancel();
  // False: it was used already, and the listener is not on the list.
  bool add(Listener& listener);
  // When it returns, cancelled() is not being called and will not be. Of one that is not on the list, the same.
  void remove(Listener& listener);

 private:
  std::atomic<bool> cancelled_{false};
  std::atomic<Listener*> told_{nullptr};  // whose cancelled() is being called
  SpinLock lock_;                         // guards the list
  Listener* first_ = nullptr;
};

// As Condition::wait, but it also ends, with false, when `cancellation` is used; null: nobody can.
template <class Fn>
bool wait_for(Condition& condition, const Clock& clock, Deadline deadline, Cancellation* cancellation, Fn&& holds) {
  if (!cancellation) return condition.wait(clock, deadline, holds);
  struct Waker final : Cancellation::Listener {
    explicit Waker(Condition& c) : condition(c) {}
    void cancelled() override {
      condition.change([] {});
    }
    Condition& condition;
  } waker(condition);
  bool held = false;
  cancellation->add(waker);
  condition.wait(clock, deadline, [&] {
    held = holds();
    return held || cancellation->is_cancelled();
  });
  cancellation->remove(waker);
  return held;
}

}  // namespace dtg
