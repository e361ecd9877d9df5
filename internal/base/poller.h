// Poller: what somebody who waits can do meanwhile, so that what he waits for comes sooner than by a wake-up. A loop of the network is
// one: whoever waits for what comes over it can be the loop himself. Any thread, within what the poller says.
#pragma once

namespace dtg {

class Poller {
 public:
  using Holds = bool (*)(const void* what);
  virtual ~Poller() = default;
  // Until `holds`, which is asked often and by the calling thread, or until it is not worth while. True: it holds. False: sleep now,
  // you will be told.
  virtual bool poll(Holds holds, const void* what) = 0;
  template <class Fn>
  bool poll_until(const Fn& holds) {
    return poll([](const void* what) { return (*static_cast<const Fn*>(what))(); }, &holds);
  }
};

}  // namespace dtg
