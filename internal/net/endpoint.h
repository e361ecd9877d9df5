// Endpoints: how channels between processes come to be, whatever carries them. A unix address gives a unix socket and a
// check of the other process's user; any other gives TCP, on which TLS proves who both ends are. Nothing unauthenticated
// exists. Connecting and listening wait (for names, for the other end), so never on the loop's thread.
#pragma once

#include <memory>

#include "net/acceptor.h"
#include "net/credentials.h"

namespace dtg {

struct EndpointLimits {
  wire::Limits wire;
  int64_t dead_ns = 5'000'000'000;  // a peer that acknowledges nothing for so long is given up
  AcceptLimits accept;
};

// UNAVAILABLE while nobody listens there. What TLS finds wrong is said when the channel is open: UNAUTHENTICATED.
Result<Ref<Channel>> connect_channel(UvLoop& loop, const Address& address, const Credentials& credentials, const EndpointLimits& limits,
                                     Deadline deadline);

class Listener {
 public:
  // Where it listens, with the port that the system chose.
  const Address& address() const { return address_; }
  // On the loop's thread. Removes the name of a unix socket.
  ~Listener();

 private:
  friend Result<std::unique_ptr<Listener>> listen(UvLoop& loop, const Address& address, const Credentials& credentials,
                                                  const EndpointLimits& limits, Acceptor::Accepted accepted);
  Listener() = default;
  Address address_;
  std::unique_ptr<Acceptor> acceptor_;
};

// `accepted` is called on the loop's thread.
Result<std::unique_ptr<Listener>> listen(UvLoop& loop, const Address& address, const Credentials& credentials, const EndpointLimits& limits,
                                         Acceptor::Accepted accepted);

}  // namespace dtg
