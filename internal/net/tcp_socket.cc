// TCP sockets: connecting within a deadline, listening, and the socket options. See tcp_socket.h for threads.
#include "net/tcp_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace dtg {
namespace {

constexpr int kBacklog = 4096;  // a crowd that comes at once is taken in, and sorted, here and not in the kernel

Descriptor new_socket(int family) { return Descriptor(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP)); }

Status not_loopback(const Address& address) {
  return failed_precondition(
      "%s resolves to an address beyond this machine, for which a job key is needed: run `dtg keygen job.key` once, give every task and "
      "session that file and set key_file, or DTG_KEY_FILE in its environment, to it",
      address.text().c_str());
}

SocketAddress own_end(int socket) {
  SocketAddress own;
  own.size = sizeof own.storage;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&own.storage), &own.size) != 0) own.size = 0;
  return own;
}

}  // namespace

bool met_itself(int socket, const SocketAddress& number) {
  const SocketAddress own = own_end(socket);
  if (own.size != number.size || own.port() != number.port() || !number.is_loopback()) return false;
  // A farewell would keep the address for a minute from whoever is to listen there.
  const linger none{1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  return true;
}

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
    if (error == EADDRINUSE)
      return already_exists("%s: the address is in use: another process listens there, or a connection from that port has just ended",
                            what.c_str());
    return failed_precondition("%s: %s", what.c_str(), socket_problem(error).c_str());
  }
  if (address->port == 0) address->port = own_end(socket.get()).port();
  return socket;
}

TcpDial::TcpDial(UvLoop& loop, Address address, bool loopback_only)
    : loop_(loop), address_(std::move(address)), loopback_only_(loopback_only), alarm_([this] { end(last_); }) {}

TcpDial::~TcpDial() {
  loop_.cancel(alarm_);
  stop_watching();
}

void TcpDial::start(Deadline deadline, Connected connected) {
  connected_ = std::move(connected);
  loop_.set(alarm_, deadline.at_ns);
  lookup_.start(loop_, address_, [this](Result<std::vector<SocketAddress>> numbers) {
    if (!numbers.ok()) return end(numbers.status());
    numbers_ = numbers.take();
    try_next();
  });
}

void TcpDial::try_next() {
  while (next_ < numbers_.size()) {
    const SocketAddress& number = numbers_[next_++];
    if (loopback_only_ && !number.is_loopback()) return end(not_loopback(address_));
    if (!try_number(number)) return;
    if (last_.ok()) return end(std::move(socket_));
  }
  end(last_);
}

bool TcpDial::try_number(const SocketAddress& number) {
  socket_ = new_socket(number.storage.ss_family);
  last_ = socket_.get() < 0 ? unavailable("make a socket: %s", socket_problem(errno).c_str()) : Status();
  if (!last_.ok()) return true;
  if (::connect(socket_.get(), number.get(), number.size) == 0) {
    if (met_itself(socket_.get(), number)) last_ = unavailable("Connection refused");
    return true;
  }
  last_ = unavailable("%s", socket_problem(errno).c_str());
  if (errno != EINPROGRESS) return true;
  auto poll = loop_.watch(socket_.get(), this);
  last_ = poll.ok() ? unavailable("nobody answered in time") : poll.status();
  if (!poll.ok()) return true;
  poll_ = poll.value();
  loop_.want(poll_, false, true);
  return false;
}

// The socket is connected, or never will be.
void TcpDial::ready(bool, bool) {
  stop_watching();
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error == 0 && met_itself(socket_.get(), numbers_[next_ - 1])) error = ECONNREFUSED;
  if (error == 0) return end(std::move(socket_));
  last_ = unavailable("%s", socket_problem(error).c_str());
  try_next();
}

void TcpDial::stop_watching() {
  if (poll_) loop_.unwatch(std::exchange(poll_, nullptr));
}

void TcpDial::end(Result<Descriptor> result) {
  loop_.cancel(alarm_);
  stop_watching();
  const Connected connected = std::exchange(connected_, nullptr);
  if (!connected) return;
  if (result.ok()) connected(std::move(result));
  else connected(result.status().with_context("connect to " + address_.text()));
}

}  // namespace dtg
