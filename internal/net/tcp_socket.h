// TCP sockets, connected and listening: without delay, closed on exec, given up when the peer acknowledges nothing for its
// time. Any thread; connecting waits, so never the loop's.
#pragma once

#include "net/resolve.h"
#include "net/socket_channel.h"

namespace dtg {

// Binds exactly the given host (of a name: its first number), and no other than a loopback one if so asked.
// `address` gets the port that the system chose when it was 0.
Result<Descriptor> listen_tcp(Address* address, bool loopback_only, const Clock& clock, Deadline deadline);

// Tries the numbers of the host in order.
Result<Descriptor> connect_tcp(const Address& address, bool loopback_only, const Clock& clock, Deadline deadline);

// No delay, and the end of a connection whose other end acknowledges nothing for so long.
void tune_tcp(int socket, int64_t dead_ns);

}  // namespace dtg
