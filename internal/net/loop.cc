// Alarms in order of time, and calls that wait.
#include "net/loop.h"

#include <condition_variable>
#include <memory>
#include <mutex>

namespace dtg {

void Loop::set(Alarm& alarm, int64_t at_ns) {
  cancel(alarm);
  alarm.set_ = true;
  alarm.at_ns_ = at_ns;
  const auto at = alarms_.emplace(at_ns, &alarm);
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
    due.ring();
  }
}

bool Loop::call(const std::function<void()>& fn) {
  if (is_current()) {
    fn();
    return true;
  }
  struct Wait {
    std::mutex mutex;
    std::condition_variable changed;
    bool ran = false;
    bool over = false;
  };
  auto wait = std::make_shared<Wait>();
  // The loop drops what it does not run, and with it this, so that nobody waits for a loop that has stopped.
  struct Ticket {
    std::shared_ptr<Wait> wait;
    ~Ticket() {
      const std::lock_guard lock(wait->mutex);
      wait->over = true;
      wait->changed.notify_all();
    }
  };
  auto ticket = std::make_shared<Ticket>();
  ticket->wait = wait;
  post([ticket = std::move(ticket), &fn] {
    fn();
    ticket->wait->ran = true;
  });
  std::unique_lock lock(wait->mutex);
  wait->changed.wait(lock, [&] { return wait->over; });
  return wait->ran;
}

}  // namespace dtg
