// Network: how a process reaches others: its loop, channels to addresses and listeners at them. The runtime is handed one,
// or starts sockets on a loop of libuv (net/endpoint.h); a simulator brings its own, with all tasks in one thread.
#pragma once

#include <functional>
#include <memory>

#include "net/admission.h"
#include "net/channel.h"
#include "net/credentials.h"

namespace dtg {

struct EndpointLimits {
  wire::Limits wire;
  int64_t dead_ns = 5'000'000'000;  // a peer that acknowledges nothing for so long is given up
  AcceptLimits accept;
};

// Listens as long as it lives. Destroyed on the loop's thread.
class Listener {
 public:
  virtual ~Listener() = default;
  // Where it listens, with the port that was chosen.
  virtual const Address& address() const = 0;
};

class Network {
 public:
  using Accepted = std::function<void(Ref<Channel>)>;
  // Ends the loop; nothing of it runs any more then.
  virtual ~Network() = default;
  virtual Loop& loop() = 0;
  using Connected = std::function<void(Result<Ref<Channel>>)>;
  // Loop thread. `connected` is called there, once, by the deadline, and maybe before this returns. UNAVAILABLE while nobody
  // listens there.
  virtual void connect(const Address& address, const Credentials& credentials, const EndpointLimits& limits, Deadline deadline,
                       Connected connected) = 0;
  // May wait for names, so never on a loop that has a thread. `accepted` is called on the loop's thread.
  virtual Result<std::unique_ptr<Listener>> listen(const Address& address, const Credentials& credentials, const EndpointLimits& limits,
                                                   Accepted accepted) = 0;
};

}  // namespace dtg
