// A peer on a plain socket that says what it likes, for tests of servers.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "wire/messages.h"

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
  // All of it, or as much as the other end takes: the kernel may well take a part of a long text only.
  void say(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t taken = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (taken < 0 && errno == EINTR) continue;
      if (taken <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(taken));
    }
  }
  // The header of the next frame of that kind; empty when none comes. Others are passed over.
  std::string hear(wire::Kind kind) {
    for (;;) {
      const auto prefix = wire::read_prefix(heard_, {});
      if (heard_.size() >= wire::kPrefixBytes && !prefix.ok()) return {};
      const size_t bytes = heard_.size() < wire::kPrefixBytes ? SIZE_MAX : wire::kPrefixBytes + prefix.value().header_bytes;
      if (heard_.size() < bytes) {
        if (!read(kPatienceMs)) return {};
        continue;
      }
      const std::string header = heard_.substr(wire::kPrefixBytes, prefix.value().header_bytes);
      heard_.erase(0, bytes);
      if (prefix.value().kind == kind) return header;
    }
  }
  template <class M>
  M hear() {
    M message;
    const Status status = wire::decode(hear(M::kKind), message);
    EXPECT_TRUE(status.ok()) << status.message();
    return message;
  }
  // It has been closed, or soon will be.
  bool is_closed() { return is_closed_within(kPatienceMs); }
  bool is_closed_within(int milliseconds) {
    const int64_t end = system_clock().monotonic_ns() + int64_t{milliseconds} * 1'000'000;
    for (int64_t left = 1; !closed_ && left > 0;) {
      left = (end - system_clock().monotonic_ns()) / 1'000'000;
      if (left > 0) read(static_cast<int>(left));
    }
    return closed_;
  }

 private:
  static constexpr int kPatienceMs = 20'000;  // a machine may be busy

  bool read(int milliseconds) {
    pollfd poll{socket_, POLLIN, 0};
    if (closed_ || ::poll(&poll, 1, milliseconds) <= 0) return false;
    char bytes[4096];
    const ssize_t got = ::recv(socket_, bytes, sizeof bytes, 0);
    closed_ = got <= 0;
    if (!closed_) heard_.append(bytes, static_cast<size_t>(got));
    return !closed_;
  }

  const int socket_;
  bool connected_ = false;
  bool closed_ = false;
  std::string heard_;
};

}  // namespace dtg
