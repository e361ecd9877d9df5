// Unix sockets, connected and listening. The directory of a socket is private to the user, and both ends check who the
// other process belongs to, so that nobody else on the machine gets as far as a first byte. Any thread.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/socket_channel.h"

namespace dtg {

// The right to listen at a path: a lock of this process on a file beside it, which ends with the process whatever its forked
// children keep open. What lies at the path was left behind, once the lock is held. Goes before the socket that
// listens is closed, and takes the name away.
class UnixName {
 public:
  static Result<std::unique_ptr<UnixName>> claim(const std::string& path);
  ~UnixName();
  UnixName(const UnixName&) = delete;
  UnixName& operator=(const UnixName&) = delete;
  // Gives the name to that socket.
  Status bind(int socket);

 private:
  explicit UnixName(const std::string& path);
  Result<bool> lock();

  const std::string path_, lock_path_;
  const pid_t process_;
  Descriptor lock_;
  // Which file it is: a device and a number.
  using File = std::pair<dev_t, ino_t>;
  File lock_file_, socket_file_;
  bool held_ = false;
  std::vector<int> aliases_;  // of lock_, under other paths: closing one would end the lock
  UnixName* next_ = nullptr;  // in the list of those that this process holds
};

struct UnixListener {
  Descriptor socket;
  std::unique_ptr<UnixName> name;  // goes first
};
// Makes the directory if it is missing, and takes over the path of a process that is gone.
Result<UnixListener> listen_unix(const std::string& path);

// Succeeds or fails at once; a listener whose queue is full counts as unavailable.
Result<Descriptor> connect_unix(const std::string& path);

// The process at the other end belongs to the user of this one.
Status check_unix_peer(int socket);
// Large buffers, for both ends.
void size_unix_buffers(int socket);

}  // namespace dtg
