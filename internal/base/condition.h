// Condition: something that a host's thread waits for inside a call, until a deadline. Whoever makes it true does so in
// change(); the wait goes through the clock of the seam, so that it ends with that clock's time and a simulator can go on
// meanwhile. Threads of the library never wait so. Any thread; it may go as soon as the wait has returned.
//
//   Condition arrived;                                   // with `frame`, which it guards
//   arrived.change([&] { frame = &granted; });           // the one side
//   arrived.wait(clock, deadline, [&] { return frame != nullptr; });  // the other
#pragma once

#include <condition_variable>
#include <mutex>

#include "base/clock.h"

namespace dtg {

class Condition {
 public:
  // Runs `fn` under the lock and has whoever waits look again.
  template <class Fn>
  void change(Fn&& fn) {
    const std::lock_guard lock(mutex_);
    fn();
    changed_.notify_all();
  }
  // Until `holds`, which is asked under the lock. False: the deadline passed before.
  template <class Fn>
  bool wait(const Clock& clock, Deadline deadline, Fn&& holds) {
    std::unique_lock lock(mutex_);
    while (!holds()) {
      if (deadline.passed(clock)) return false;
      clock.wait(changed_, lock, deadline.at_ns);
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace dtg
