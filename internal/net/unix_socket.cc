// Unix sockets: checks paths and owners, says by a lock who may listen where, and removes sockets that processes which
// are gone have left behind. Any thread.
#include "net/unix_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

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

std::pair<dev_t, ino_t> file_at(const std::string& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 ? std::pair(found.st_dev, found.st_ino) : std::pair(dev_t{0}, ino_t{0});
}

// The kernel excludes other processes only: within this one the list does. What a forked child inherits in it is its
// parent's.
constinit std::mutex names_mutex;
constinit UnixName* names = nullptr;

}  // namespace

UnixName::UnixName(const std::string& path) : path_(path), lock_path_(path + ".lock"), process_(::getpid()) {}

UnixName::~UnixName() {
  if (!held_) return;
  const std::lock_guard guard(names_mutex);
  for (UnixName** at = &names; *at; at = &(*at)->next_) {
    if (*at != this) continue;
    *at = next_;
    break;
  }
  // A forked child lets go of its copy only.
  if (process_ == ::getpid()) {
    // Not what somebody else has put there. The lock's file goes while it is held, so that whoever opened it before sees
    // that it is not the one with the name any more.
    if (file_at(path_) == socket_file_) unlink(path_.c_str());
    if (file_at(lock_path_) == lock_file_) unlink(lock_path_.c_str());
  }
  for (int alias : aliases_) close(alias);
}

Result<std::unique_ptr<UnixName>> UnixName::claim(const std::string& path) {
  std::unique_ptr<UnixName> name(new UnixName(path));
  const std::lock_guard guard(names_mutex);
  for (bool locked = false; !locked;) {
    DTG_ASSIGN(locked, name->lock());
  }
  name->next_ = std::exchange(names, name.get());
  name->held_ = true;
  return name;
}

// With names_mutex. False: the file went away in between.
Result<bool> UnixName::lock() {
  const auto taken = [this] { return already_exists("listen on unix:%s: a server of this process listens there", path_.c_str()); };
  for (const UnixName* other = names; other; other = other->next_) {
    if (other->path_ == path_ && other->process_ == process_) return taken();
  }
  // Not blocking: a named pipe in the way must not hold us.
  Descriptor file(open(lock_path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  struct stat found {};
  if (file.get() < 0 || ::fstat(file.get(), &found) != 0) {
    return failed_precondition("listen on unix:%s: open %s: %s", path_.c_str(), lock_path_.c_str(), socket_problem(errno).c_str());
  }
  if (!S_ISREG(found.st_mode)) {
    return failed_precondition("listen on unix:%s: %s is not a regular file; remove it", path_.c_str(), lock_path_.c_str());
  }
  for (UnixName* other = names; other; other = other->next_) {
    if (other->lock_file_ != File(found.st_dev, found.st_ino) || other->process_ != process_) continue;
    const int alias = file.leak();
    other->aliases_.push_back(alias);
    return taken();
  }
  struct flock all {};
  all.l_type = F_WRLCK;
  all.l_whence = SEEK_SET;
  if (::fcntl(file.get(), F_SETLK, &all) != 0) {
    if (errno == EAGAIN || errno == EACCES) return already_exists("listen on unix:%s: another process listens there", path_.c_str());
    return failed_precondition("listen on unix:%s: lock %s: %s", path_.c_str(), lock_path_.c_str(), socket_problem(errno).c_str());
  }
  lock_ = std::move(file);
  lock_file_ = {found.st_dev, found.st_ino};
  return file_at(lock_path_) == lock_file_;
}

Status UnixName::bind(int socket) {
  sockaddr_un address;
  DTG_TRY(make_address(path_, &address));
  struct stat found {};
  if (::lstat(path_.c_str(), &found) == 0) {
    if (!S_ISSOCK(found.st_mode)) return failed_precondition("listen on unix:%s: the path is taken by something else", path_.c_str());
    unlink(path_.c_str());
  }
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return failed_precondition("listen on unix:%s: %s", path_.c_str(), socket_problem(errno).c_str());
  }
  socket_file_ = file_at(path_);
  return {};
}

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

Result<UnixListener> listen_unix(const std::string& path) {
  sockaddr_un address;
  DTG_TRY(make_address(path, &address));
  DTG_TRY(private_directory(directory_of(path)).with_context("listen on unix:" + path));
  UnixListener listener{Descriptor(new_socket()), nullptr};
  const int socket = listener.socket.get();
  if (socket < 0) return resource_exhausted("make a socket: %s", socket_problem(errno).c_str());
  DTG_ASSIGN(listener.name, UnixName::claim(path));
  DTG_TRY(listener.name->bind(socket));
  if (::listen(socket, kBacklog) != 0) return failed_precondition("listen on unix:%s: %s", path.c_str(), socket_problem(errno).c_str());
  return listener;
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
