// SocketChannel: reads and writes a non-blocking socket when the loop says that it is ready. On the loop's thread.
#include "net/socket_channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace dtg {
namespace {

// One is accepted; of more some are taken, so that it can be said how things are.
constexpr size_t kDescriptorsMost = 4;
constexpr size_t kControlBytes = CMSG_SPACE(kDescriptorsMost * sizeof(int));

}  // namespace

std::string socket_problem(int error) {
  char text[128] = {};
  return strerror_r(error, text, sizeof text);
}

SocketChannel::SocketChannel(UvLoop& loop, Descriptor socket, const wire::Limits& limits, const char* security)
    : Channel(loop, limits), uv_(loop), socket_(std::move(socket)), security_(security) {}

SocketChannel::~SocketChannel() { SocketChannel::shut(); }

Result<size_t> SocketChannel::read_bytes(const iovec* into, int count) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(into);
  message.msg_iovlen = static_cast<size_t>(count);
  alignas(cmsghdr) char control[kControlBytes];
  if (passes_descriptors()) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
  }
  const ssize_t bytes = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (bytes > 0) {
    DTG_TRY(take_descriptors(message));
    return static_cast<size_t>(bytes);
  }
  if (bytes == 0) return unavailable("the other end closed the connection");
  if (errno == EAGAIN || errno == EINTR) return size_t{0};
  return unavailable("the connection broke: %s", socket_problem(errno).c_str());
}

// Whatever came has an owner before anything is judged.
Status SocketChannel::take_descriptors(const msghdr& message) {
  std::array<Descriptor, kDescriptorsMost> came;
  size_t count = 0;
  for (cmsghdr* at = CMSG_FIRSTHDR(&message); at; at = CMSG_NXTHDR(const_cast<msghdr*>(&message), at)) {
    if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS) continue;
    const size_t bytes = at->cmsg_len - CMSG_LEN(0);
    for (size_t i = 0; i < bytes / sizeof(int) && count < came.size(); ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(at) + i * sizeof number, sizeof number);
      came[count++] = Descriptor(number);
    }
  }
  // The kernel drops what finds no room here, or among the descriptors that this process may have.
  const bool lost = (message.msg_flags & MSG_CTRUNC) != 0;
  if (!passes_descriptors() || (count == 0 && !lost)) return {};
  if (count > 1) return data_loss("%zu descriptors came at once; one at a time is accepted", count);
  return descriptor_came(lost ? Descriptor() : std::move(came[0]));
}

Result<size_t> SocketChannel::write_with(const iovec* from, int count, int descriptor) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(from);
  message.msg_iovlen = static_cast<size_t>(count);
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  const ssize_t bytes = ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (bytes >= 0) return static_cast<size_t>(bytes);
  if (errno == EAGAIN || errno == EINTR) return size_t{0};
  if (errno == ETOOMANYREFS) return resource_exhausted("too many descriptors are on their way");
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
