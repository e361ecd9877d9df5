// Endpoints: how channels between processes come to be, whatever carries them. A unix address gives a unix socket and a
// check of the other process's user; any other gives TCP, on which TLS proves who both ends are. Nothing unauthenticated
// exists. Connecting and listening wait (for names, for the other end), so never on the loop's thread.
#pragma once

#include <memory>

#include "net/network.h"
#include "net/uv_loop.h"

namespace dtg {

// The network of a process that is not simulated, on a loop with a thread of its own.
Result<std::unique_ptr<Network>> start_sockets(const Clock& clock);

// What it does. What TLS finds wrong is said when the channel is open: UNAUTHENTICATED.
Result<Ref<Channel>> connect_channel(UvLoop& loop, const Address& address, const Credentials& credentials, const EndpointLimits& limits,
                                     Deadline deadline);
// The end of the listener removes the name of a unix socket.
Result<std::unique_ptr<Listener>> listen(UvLoop& loop, const Address& address, const Credentials& credentials, const EndpointLimits& limits,
                                         Network::Accepted accepted);

}  // namespace dtg
