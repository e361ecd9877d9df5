// Unix sockets: checks paths and owners, and removes sockets that processes which are gone have left behind. Any
// thread.
#include "net/unix_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/private_file.h"

namespace dtg {
namespace {

constexpr int kSocketBuffer = 4 << 20;
constexpr int kBacklog = 256;

Status make_address(const std::string& path, sockaddr_un* address) {
  std::memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address->sun_path) {
    return invalid_argument("unix socket path \"%s\" has %zu bytes; from 1 to %zu are possible, so choose a shorter directory",
                            path.c_str(), path.size(), sizeof address->sun_path - 1);
  }
  std::memcpy(address->sun_path, path.data(), path.size());
  return {};
}

int new_socket() { return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Status check_unix_peer(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return permission_denied("the process at the other end cannot be told: %s", socket_problem(errno).c_str());
  }
  if (peer.uid == ::geteuid()) return {};
  return permission_denied(
      "the process at the other end (pid %d) belongs to user %u, not to %u; unix sockets connect processes of one user",
      static_cast<int>(peer.pid), static_cast<unsigned>(peer.uid), static_cast<unsigned>(::geteuid()));
}

void size_unix_buffers(int socket) {
  // What the kernel does not grant it cuts; both are hints.
  ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kSocketBuffer, sizeof kSocketBuffer);
  ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &kSocketBuffer, sizeof kSocketBuffer);
}

void remove_unix(const std::string& path) { unlink(path.c_str()); }

Result<Descriptor> listen_unix(const std::string& path) {
  sockaddr_un address;
  DTG_TRY(make_address(path, &address));
  DTG_TRY(private_directory(directory_of(path)).with_context("listen on unix:" + path));
  Descriptor socket(new_socket());
  if (socket.get() < 0) return resource_exhausted("make a socket: %s", socket_problem(errno).c_str());
  const auto* const where = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(socket.get(), where, sizeof address) != 0) {
    if (errno != EADDRINUSE) return failed_precondition("listen on unix:%s: %s", path.c_str(), socket_problem(errno).c_str());
    // The name is there: of a process that lives, or left behind by one that does not.
    const Descriptor probe(new_socket());
    if (::connect(probe.get(), where, sizeof address) == 0 || errno == EAGAIN) {
      return already_exists("listen on unix:%s: another process listens there", path.c_str());
    }
    if (errno != ECONNREFUSED || unlink(path.c_str()) != 0 || ::bind(socket.get(), where, sizeof address) != 0) {
      return failed_precondition("listen on unix:%s: the path is taken: %s", path.c_str(), socket_problem(errno).c_str());
    }
  }
  if (::listen(socket.get(), kBacklog) != 0)
    return failed_precondition("listen on unix:%s: %s", path.c_str(), socket_problem(errno).c_str());
  return socket;
}

Result<Descriptor> connect_unix(const std::string& path) {
  sockaddr_un address;
  DTG_TRY(make_address(path, &address));
  Descriptor socket(new_socket());
  if (socket.get() < 0) return resource_exhausted("make a socket: %s", socket_problem(errno).c_str());
  size_unix_buffers(socket.get());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return unavailable("connect to unix:%s: %s", path.c_str(), socket_problem(errno).c_str());
  }
  DTG_TRY(check_unix_peer(socket.get()));
  return socket;
}

}  // namespace dtg
