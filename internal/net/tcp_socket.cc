// TCP sockets: connecting within a deadline, listening, and the socket options. Any thread; connecting waits.
#include "net/tcp_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace dtg {
namespace {

constexpr int kBacklog = 1024;

Descriptor new_socket(int family) { return Descriptor(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP)); }

Status not_loopback(const Address& address) {
  return failed_precondition(
      "%s resolves to an address beyond this machine, for which a job key is needed: run `dtg keygen job.key` once, give every task and "
      "session that file and set key_file to it",
      address.text().c_str());
}

SocketAddress own_end(int socket) {
  SocketAddress own;
  own.size = sizeof own.storage;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&own.storage), &own.size) != 0) own.size = 0;
  return own;
}

Status wait_until_connected(int socket, const Clock& clock, Deadline deadline) {
  for (;;) {
    const int64_t left = deadline.left_ns(clock);
    if (left == 0) return unavailable("nobody answered in time");
    pollfd wait{socket, POLLOUT, 0};
    const int found = ::poll(&wait, 1, static_cast<int>(std::min<int64_t>(left / 1'000'000 + 1, 1000)));
    if (found > 0) break;
    if (found < 0 && errno != EINTR) return unavailable("%s", socket_problem(errno).c_str());
  }
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  return error == 0 ? Status() : unavailable("%s", socket_problem(error).c_str());
}

Result<Descriptor> connect_number(const SocketAddress& number, const Clock& clock, Deadline deadline) {
  Descriptor socket = new_socket(number.storage.ss_family);
  if (socket.get() < 0) return unavailable("make a socket: %s", socket_problem(errno).c_str());
  if (::connect(socket.get(), number.get(), number.size) != 0) {
    if (errno != EINPROGRESS) return unavailable("%s", socket_problem(errno).c_str());
    DTG_TRY(wait_until_connected(socket.get(), clock, deadline));
  }
  // A port of the range that the system takes its own ends from may meet itself where nobody listens.
  const SocketAddress own = own_end(socket.get());
  if (own.size == number.size && own.port() == number.port() && number.is_loopback()) return unavailable("Connection refused");
  return socket;
}

}  // namespace

void tune_tcp(int socket, int64_t dead_ns) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const auto dead_ms = static_cast<unsigned>(std::clamp<int64_t>(dead_ns / 1'000'000, 1, INT32_MAX));
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead_ms, sizeof dead_ms);
}

Result<Descriptor> listen_tcp(Address* address, bool loopback_only, const Clock& clock, Deadline deadline) {
  const std::string what = "listen on " + address->text();
  auto numbers = resolve(*address, clock, deadline);
  if (!numbers.ok()) return numbers.status().with_context(what);
  const SocketAddress& number = numbers.value().front();
  if (loopback_only && !number.is_loopback()) return not_loopback(*address).with_context(what);
  Descriptor socket = new_socket(number.storage.ss_family);
  if (socket.get() < 0) return resource_exhausted("%s: make a socket: %s", what.c_str(), socket_problem(errno).c_str());
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // "[::]" is what was written, not "0.0.0.0" too.
  if (number.storage.ss_family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(socket.get(), number.get(), number.size) != 0 || ::listen(socket.get(), kBacklog) != 0) {
    const int error = errno;
    if (error == EADDRINUSE) return already_exists("%s: another process listens there", what.c_str());
    return failed_precondition("%s: %s", what.c_str(), socket_problem(error).c_str());
  }
  if (address->port == 0) address->port = own_end(socket.get()).port();
  return socket;
}

Result<Descriptor> connect_tcp(const Address& address, bool loopback_only, const Clock& clock, Deadline deadline) {
  const std::string what = "connect to " + address.text();
  auto numbers = resolve(address, clock, deadline);
  if (!numbers.ok()) return numbers.status().with_context(what);
  Status last;
  for (const SocketAddress& number : numbers.value()) {
    if (loopback_only && !number.is_loopback()) return not_loopback(address).with_context(what);
    auto socket = connect_number(number, clock, deadline);
    if (socket.ok()) return socket;
    last = socket.status();
  }
  return last.with_context(what);
}

}  // namespace dtg
