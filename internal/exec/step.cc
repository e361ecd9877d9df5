// Step: the list of those who wait on its behalf, and its sticky end. A step that never waits takes no lock.
#include "exec/step.h"

namespace dtg {

Status Step::cause() const {
  if (!aborted()) return {};
  std::lock_guard hold(mutex_);
  return cause_;
}

void Step::abort(const Status& cause) { end(cause, false); }

void Step::fail(const Status& cause) { end(cause, true); }

bool Step::seal() {
  std::lock_guard hold(mutex_);
  if (aborted_.load(std::memory_order_relaxed)) return false;
  sealed_ = true;
  return true;
}

void Step::unseal() {
  Status cause;
  {
    std::lock_guard hold(mutex_);
    sealed_ = false;
    cause = std::exchange(held_back_, Status());
  }
  if (!cause.ok()) fail(cause);
}

// Whether the step is sealed and what becomes of it are decided under one lock, so that no seal comes in between.
void Step::end(const Status& cause, bool sealed_too) {
  Waiter* waiting = nullptr;
  Status first;
  {
    std::lock_guard hold(mutex_);
    if (aborted_.load(std::memory_order_relaxed)) return;
    if (sealed_ && !sealed_too) {
      if (held_back_.ok()) held_back_ = cause.ok() ? cancelled("abort a step: no cause was given") : cause;
      return;
    }
    cause_ = cause.ok() ? cancelled("abort a step: no cause was given") : cause;
    first = cause_;
    aborted_.store(true, std::memory_order_release);
    waiting = std::exchange(first_, nullptr);
    for (Waiter* each = waiting; each; each = each->next_) each->listed_ = false;
  }
  // A waiter may be gone as soon as its aborted() was entered, so the way on is read before.
  while (waiting) {
    Waiter* const next = waiting->next_;
    try {
      waiting->aborted(first);
    } catch (const std::bad_alloc&) {
      // The others hear of it all the same.
    }
    waiting = next;
  }
}

bool Step::add(Waiter* waiter) {
  std::lock_guard hold(mutex_);
  if (aborted_.load(std::memory_order_relaxed)) return false;
  waiter->prev_ = nullptr;
  waiter->next_ = first_;
  if (first_) first_->prev_ = waiter;
  first_ = waiter;
  waiter->listed_ = true;
  return true;
}

bool Step::remove(Waiter* waiter) {
  std::lock_guard hold(mutex_);
  if (!waiter->listed_) return false;
  waiter->listed_ = false;
  if (waiter->prev_) waiter->prev_->next_ = waiter->next_;
  if (waiter->next_) waiter->next_->prev_ = waiter->prev_;
  if (first_ == waiter) first_ = waiter->next_;
  return true;
}

void Step::explain_lateness(const Status& why) {
  std::lock_guard hold(mutex_);
  if (cause_.code() != Code::deadline_exceeded || why.code() != Code::deadline_exceeded || std::exchange(explained_, true)) return;
  if (cause_.message().find(why.message()) != std::string::npos) return;
  const Origin& known = cause_.origin();
  cause_ = Status(cause_.code(), cause_.message() + "; " + why.message(), why.origin())
               .at_node(known.node)
               .at_task(known.task)
               .at_peer(known.peer)
               .in_phase(known.phase);
}

void Step::restart(uint64_t sequence, Deadline deadline) {
  sequence_ = sequence;
  deadline_ = deadline;
  edges_ = nullptr;
  commits_ = nullptr;
  rights_ = nullptr;
  debts_ = nullptr;
  explained_ = false;
  skips_writes_ = false;
  sealed_ = false;
  held_back_ = Status();
  cause_ = Status();
  first_ = nullptr;
  aborted_.store(false, std::memory_order_release);
}

}  // namespace dtg
