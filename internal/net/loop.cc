// What all loops share: alarms in order of time, and calls of other threads that wait for the loop. See loop.h for
// threads.
#include "net/loop.h"

#include <memory>
#include <new>

#include "base/condition.h"

namespace dtg {

void Loop::set(Alarm& alarm, int64_t at_ns) {
  cancel(alarm);
  if (at_ns == INT64_MAX) return;
  const auto at = alarms_.emplace(at_ns, &alarm);  // may find no memory
  alarm.set_ = true;
  alarm.at_ns_ = at_ns;
  if (at == alarms_.begin()) rearm();
}

void Loop::cancel(Alarm& alarm) {
  if (!alarm.set_) return;
  alarm.set_ = false;
  const auto [from, to] = alarms_.equal_range(alarm.at_ns_);
  for (auto at = from; at != to; ++at) {
    if (at->second != &alarm) continue;
    alarms_.erase(at);
    return;
  }
}

void Loop::ring_due() {
  const int64_t now = clock_.monotonic_ns();
  while (!alarms_.empty() && alarms_.begin()->first <= now) {
    Alarm& due = *alarms_.begin()->second;
    alarms_.erase(alarms_.begin());
    due.set_ = false;
    contain([&] { due.ring(); });
  }
}

bool Loop::call(const std::function<void()>& fn) {
  if (is_current()) {
    fn();
    return true;
  }
  struct Wait {
    Condition changed;
    bool ran = false;
    bool no_memory = false;
    bool over = false;
  };
  auto wait = std::make_shared<Wait>();
  // The loop drops what it does not run, and with it this, so that nobody waits for a loop that has stopped.
  struct Ticket {
    std::shared_ptr<Wait> wait;
    ~Ticket() {
      wait->changed.change([this] { wait->over = true; });
    }
  };
  auto ticket = std::make_shared<Ticket>();
  ticket->wait = wait;
  post([ticket = std::move(ticket), &fn] {
    ticket->wait->ran = true;
    try {
      fn();
    } catch (const std::bad_alloc&) {
      ticket->wait->no_memory = true;
      throw;
    }
  });
  wait->changed.wait(clock_, Deadline::never(), [&] { return wait->over; });
  // What was called has not done its work, and who called must not take it for done.
  if (wait->no_memory) throw std::bad_alloc();
  return wait->ran;
}

}  // namespace dtg
