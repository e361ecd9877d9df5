// Resolves host names to socket addresses. Numeric ones are parsed on the spot; names are looked up on a thread of
// their own, never the loop's and never libuv's pool, and a caller waits for it no longer than its deadline. Any thread
// that may wait.
#pragma once

#include <sys/socket.h>

#include <vector>

#include "base/clock.h"
#include "net/address.h"

namespace dtg {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  bool is_loopback() const;
  uint16_t port() const;
};

// All numbers of the host, best first; at least one. UNAVAILABLE when the name is not known (yet).
Result<std::vector<SocketAddress>> resolve(const Address& address, const Clock& clock, Deadline deadline);

}  // namespace dtg
