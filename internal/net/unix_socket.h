// Unix sockets, connected and listening. The directory of a socket is private to the user, and both ends check who the
// other process belongs to, so that nobody else on the machine gets as far as a first byte. Any thread.
#pragma once

#include <string>

#include "net/socket_channel.h"

namespace dtg {

// Makes the directory if it is missing, and takes over the path of a process that is gone. The name stays until
// remove_unix().
Result<Descriptor> listen_unix(const std::string& path);
void remove_unix(const std::string& path);

// Succeeds or fails at once; a listener whose queue is full counts as unavailable.
Result<Descriptor> connect_unix(const std::string& path);

// The process at the other end belongs to the user of this one.
Status check_unix_peer(int socket);
// Large buffers, for both ends.
void size_unix_buffers(int socket);

}  // namespace dtg
