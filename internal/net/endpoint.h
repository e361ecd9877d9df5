// Endpoints: how channels between processes come to be, whatever carries them. A unix address gives a unix socket and a
// check of the other process's user; any other gives TCP, on which TLS proves who both ends are. Nothing unauthenticated
// exists.
#pragma once

#include <map>
#include <memory>

#include "net/network.h"
#include "net/tcp_socket.h"
#include "net/uv_loop.h"

namespace dtg {

// The network of a process that is not simulated, on a loop with a thread of its own.
Result<std::unique_ptr<Network>> start_sockets(const Clock& clock);

// How it listens, on a loop that somebody else has. The end of the listener removes the name of a unix socket.
Result<std::unique_ptr<Listener>> listen(UvLoop& loop, const Address& address, const Credentials& credentials, const EndpointLimits& limits,
                                         Network::Accepted accepted);

// How it connects. Loop thread; what is under way when it goes fails.
class Dialling final {
 public:
  explicit Dialling(UvLoop& loop) : loop_(loop) {}
  ~Dialling();
  // What TLS finds wrong is said when the channel is open: UNAUTHENTICATED.
  void connect(const Address& address, const Credentials& credentials, const EndpointLimits& limits, Deadline deadline,
               Network::Connected connected);

 private:
  UvLoop& loop_;
  std::map<uint64_t, std::unique_ptr<TcpDial>> dials_;
  uint64_t last_ = 0;
};

}  // namespace dtg
