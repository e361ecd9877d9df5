// A loop that runs when the test says so, on a clock that the test moves. One thread.
#pragma once

#include <deque>

#include "net/loop.h"
#include "scratch.h"

namespace dtg {

class ManualLoop : public Loop {
 public:
  explicit ManualLoop(SteppedClock& clock) : Loop(clock), stepped_(clock) {}

  void post(std::function<void()> fn) override { posted_.push_back(std::move(fn)); }
  bool is_current() const override { return true; }
  // Everything that can happen now.
  void run() {
    for (;;) {
      ring_due();
      if (posted_.empty()) return;
      const auto fn = std::move(posted_.front());
      posted_.pop_front();
      fn();
    }
  }
  // Everything that happens until then, at its time.
  void run_for(int64_t ns) {
    const int64_t end = stepped_.now_ns + ns;
    for (run(); next_due() <= end; run()) stepped_.now_ns = std::max(stepped_.now_ns, next_due());
    stepped_.now_ns = end;
    run();
  }

 private:
  void rearm() override {}
  SteppedClock& stepped_;
  std::deque<std::function<void()>> posted_;
};

}  // namespace dtg
