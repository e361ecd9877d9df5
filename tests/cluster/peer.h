// A peer on a plain socket that says what it likes, for tests of servers.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace dtg {

// A peer that says what it likes.
class Peer {
 public:
  explicit Peer(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) { connect(path); }
  // On loopback TCP, below TLS.
  explicit Peer(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  // A unix socket that connects later.
  Peer() : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  bool connect(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    return connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Peer() { ::close(socket_); }
  bool connected() const { return connected_; }
  void say(std::string_view bytes) { (void)!::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  // What it hears until it is closed, or until nothing more comes for that long.
  std::string hear(int milliseconds, bool* closed) {
    std::string heard;
    *closed = false;
    for (;;) {
      pollfd poll{socket_, POLLIN, 0};
      if (::poll(&poll, 1, milliseconds) <= 0) return heard;
      char bytes[4096];
      const ssize_t got = ::recv(socket_, bytes, sizeof bytes, 0);
      if (got <= 0) {
        *closed = true;
        return heard;
      }
      heard.append(bytes, static_cast<size_t>(got));
    }
  }
  bool is_closed_within(int milliseconds) {
    bool closed = false;
    const int64_t end = system_clock().monotonic_ns() + int64_t{milliseconds} * 1'000'000;
    while (!closed && system_clock().monotonic_ns() < end) hear(milliseconds / 4, &closed);
    return closed;
  }

 private:
  const int socket_;
  bool connected_ = false;
};

}  // namespace dtg
