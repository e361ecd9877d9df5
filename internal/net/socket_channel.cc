// SocketChannel: reads and writes a non-blocking socket when the loop says that it is ready. On the loop's thread.
#include "net/socket_channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace dtg {

std::string socket_problem(int error) {
  char text[128] = {};
  return strerror_r(error, text, sizeof text);
}

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

SocketChannel::SocketChannel(UvLoop& loop, Descriptor socket, const wire::Limits& limits, const char* security)
    : Channel(loop, limits), uv_(loop), socket_(std::move(socket)), security_(security) {}

SocketChannel::~SocketChannel() { SocketChannel::shut(); }

Result<size_t> SocketChannel::read_bytes(const iovec* into, int count) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(into);
  message.msg_iovlen = static_cast<size_t>(count);
  const ssize_t bytes = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT);
  if (bytes > 0) return static_cast<size_t>(bytes);
  if (bytes == 0) return unavailable("the other end closed the connection");
  if (errno == EAGAIN || errno == EINTR) return size_t{0};
  return unavailable("the connection broke: %s", socket_problem(errno).c_str());
}

Result<size_t> SocketChannel::write_bytes(const iovec* from, int count) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(from);
  message.msg_iovlen = static_cast<size_t>(count);
  const ssize_t bytes = ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (bytes >= 0) return static_cast<size_t>(bytes);
  if (errno == EAGAIN || errno == EINTR) return size_t{0};
  return unavailable("the connection broke: %s", socket_problem(errno).c_str());
}

void SocketChannel::want_write(bool want) {
  if (want == wants_write_ || !poll_) return;
  wants_write_ = want;
  uv_.want(poll_, true, want);
}

void SocketChannel::start() {
  auto poll = uv_.watch(socket_.get(), this);
  if (!poll.ok()) {
    // Not from within open(): its caller is not ready for the end.
    loop().post([self = Ref<SocketChannel>::share(this), status = poll.status()] { self->fail(status); });
    return;
  }
  poll_ = poll.value();
  uv_.want(poll_, true, false);
}

void SocketChannel::shut() {
  if (poll_) uv_.unwatch(std::exchange(poll_, nullptr));
  const Descriptor closed = std::move(socket_);
}

void SocketChannel::ready(bool readable, bool writable) {
  contain([&] { ready_to(readable, writable); });
}

void SocketChannel::ready_to(bool read, bool write) {
  if (write && is_open()) on_writable();
  if (read && is_open()) on_readable();
}

}  // namespace dtg
