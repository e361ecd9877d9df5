// SocketChannel: a channel over a connected stream socket, as it is; what unix sockets use, and what TLS stands on.
// Non-blocking, without SIGPIPE, closed on exec. Belongs to the loop's thread.
#pragma once

#include <sys/socket.h>

#include <utility>

#include "net/channel.h"
#include "net/descriptor.h"
#include "net/uv_loop.h"

namespace dtg {

// "Connection refused" of errno.
std::string socket_problem(int error);

class SocketChannel : public Channel, private UvLoop::Watch {
 public:
  // `security` is what protects the bytes, for security().
  SocketChannel(UvLoop& loop, Descriptor socket, const wire::Limits& limits, const char* security);
  ~SocketChannel() override;
  const char* security() const override { return security_; }

 protected:
  Result<size_t> read_bytes(const iovec* into, int count) override;
  Result<size_t> write_bytes(const iovec* from, int count) override;
  Result<size_t> write_with(const iovec* from, int count, int descriptor) override;
  void want_write(bool want) override;
  void start() override;
  void shut() override;
  // The socket can be read or written.
  virtual void ready_to(bool read, bool write);
  void set_security(const char* security) { security_ = security; }

 private:
  void ready(bool readable, bool writable) override;
  Status take_descriptors(const msghdr& message);

  UvLoop& uv_;
  Descriptor socket_;
  const char* security_;
  UvLoop::Poll* poll_ = nullptr;
  bool wants_write_ = false;
};

}  // namespace dtg
