// Channels over unix sockets. The directory of a socket is private to the user, and both ends check who the other
// process belongs to, so that nobody else on the machine gets as far as a first byte. Belongs to the loop's thread.
#pragma once

#include <memory>
#include <string>

#include "net/channel.h"
#include "net/uv_loop.h"

namespace dtg {

class UnixListener {
 public:
  using Accepted = std::function<void(Ref<Channel>)>;
  // Makes the directory if it is missing, and takes over the path of a process that is gone. Loop thread only, as
  // all of this.
  static Result<std::unique_ptr<UnixListener>> listen(UvLoop& loop, const std::string& path, const wire::Limits& limits, Accepted accepted);
  // Removes the socket's name.
  ~UnixListener();

 private:
  class Acceptor;
  UnixListener() = default;
  std::unique_ptr<Acceptor> acceptor_;
};

// Succeeds or fails at once; a listener whose queue is full counts as unavailable.
Result<Ref<Channel>> connect_unix(UvLoop& loop, const std::string& path, const wire::Limits& limits);

}  // namespace dtg
