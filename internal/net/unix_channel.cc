// Unix sockets, non-blocking, without SIGPIPE, closed on exec.
#include "net/unix_channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace dtg {
namespace {

constexpr int kSocketBuffer = 4 << 20;
constexpr int kBacklog = 256;

std::string problem(int error) {
  char text[128] = {};
  return strerror_r(error, text, sizeof text);
}

class UnixChannel final : public Channel, private UvLoop::Watch {
 public:
  UnixChannel(UvLoop& loop, int descriptor, const wire::Limits& limits) : Channel(loop, limits), uv_(loop), descriptor_(descriptor) {}
  ~UnixChannel() override { shut(); }

 private:
  Result<size_t> read_bytes(const iovec* into, int count) override {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(into);
    message.msg_iovlen = static_cast<size_t>(count);
    const ssize_t bytes = ::recvmsg(descriptor_, &message, MSG_DONTWAIT);
    if (bytes > 0) return static_cast<size_t>(bytes);
    if (bytes == 0) return unavailable("the other end closed the connection");
    if (errno == EAGAIN || errno == EINTR) return size_t{0};
    return unavailable("the connection broke: %s", problem(errno).c_str());
  }
  Result<size_t> write_bytes(const iovec* from, int count) override {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(from);
    message.msg_iovlen = static_cast<size_t>(count);
    const ssize_t bytes = ::sendmsg(descriptor_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (bytes >= 0) return static_cast<size_t>(bytes);
    if (errno == EAGAIN || errno == EINTR) return size_t{0};
    return unavailable("the connection broke: %s", problem(errno).c_str());
  }
  void want_write(bool want) override {
    if (want == wants_write_ || !poll_) return;
    wants_write_ = want;
    uv_.want(poll_, true, want);
  }
  void start() override {
    auto poll = uv_.watch(descriptor_, this);
    if (!poll.ok()) return;
    poll_ = poll.value();
    uv_.want(poll_, true, false);
  }
  void shut() override {
    if (poll_) uv_.unwatch(std::exchange(poll_, nullptr));
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }
  void ready(bool readable, bool writable) override {
    const Ref<Channel> self = Ref<Channel>::share(this);
    if (writable && is_open()) on_writable();
    if (readable && is_open()) on_readable();
  }

  UvLoop& uv_;
  int descriptor_;
  UvLoop::Poll* poll_ = nullptr;
  bool wants_write_ = false;
};

// Nobody but the user this process runs as.
Status check_peer(int descriptor) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return permission_denied("the process at the other end cannot be told: %s", problem(errno).c_str());
  }
  if (peer.uid == ::geteuid()) return {};
  return permission_denied("the process at the other end (pid %d) belongs to user %u, not to %u; unix sockets connect processes of one user",
                           static_cast<int>(peer.pid), static_cast<unsigned>(peer.uid), static_cast<unsigned>(::geteuid()));
}

Status make_address(const std::string& path, sockaddr_un* address) {
  std::memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address->sun_path) {
    return invalid_argument("unix socket path \"%s\" has %zu bytes; from 1 to %zu are possible, so choose a shorter directory", path.c_str(),
                            path.size(), sizeof address->sun_path - 1);
  }
  std::memcpy(address->sun_path, path.data(), path.size());
  return {};
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }
  int leak() { return std::exchange(number_, -1); }

 private:
  int number_;
};

int new_socket() { return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

void size_buffers(int descriptor) {
  // What the kernel does not grant it cuts; both are hints.
  ::setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &kSocketBuffer, sizeof kSocketBuffer);
  ::setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &kSocketBuffer, sizeof kSocketBuffer);
}

Status private_directory(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return failed_precondition("make the directory %s for a socket: %s", directory.c_str(), problem(errno).c_str());
  }
  struct stat found {};
  if (::lstat(directory.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) {
    return failed_precondition("listen in %s: it is not a directory", directory.c_str());
  }
  if (found.st_uid == ::geteuid() && (found.st_mode & 077) == 0) return {};
  return permission_denied("listen in %s: others may enter it; take a directory of your own with mode 0700 (chmod 700 %s)", directory.c_str(),
                           directory.c_str());
}

}  // namespace

class UnixListener::Acceptor final : public UvLoop::Watch {
 public:
  Acceptor(UvLoop& loop, int descriptor, std::string path, const wire::Limits& limits, Accepted accepted)
      : loop_(loop), descriptor_(descriptor), path_(std::move(path)), limits_(limits), accepted_(std::move(accepted)) {}
  ~Acceptor() override {
    if (poll_) loop_.unwatch(poll_);
    ::close(descriptor_);
    unlink(path_.c_str());
  }
  Status start() {
    DTG_ASSIGN(poll_, loop_.watch(descriptor_, this));
    loop_.want(poll_, true, false);
    return {};
  }
  void ready(bool, bool) override {
    for (;;) {
      const int fresh = ::accept4(descriptor_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fresh < 0) return pause_if_full();
      // Closed without an answer: who is not trusted learns nothing.
      if (!check_peer(fresh).ok()) {
        ::close(fresh);
        continue;
      }
      size_buffers(fresh);
      accepted_(make_ref<UnixChannel>(loop_, fresh, limits_));
    }
  }

 private:
  // Without descriptors accepting would spin; the waiting connection is looked at again a little later.
  void pause_if_full() {
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
    loop_.want(poll_, false, false);
    loop_.set(resume_, loop_.clock().monotonic_ns() + 100'000'000);
  }

  UvLoop& loop_;
  const int descriptor_;
  const std::string path_;
  const wire::Limits limits_;
  const Accepted accepted_;
  UvLoop::Poll* poll_ = nullptr;
  struct Resume final : Loop::Alarm {
    explicit Resume(Acceptor& acceptor) : of(acceptor) {}
    ~Resume() override { of.loop_.cancel(*this); }
    void ring() override { of.loop_.want(of.poll_, true, false); }
    Acceptor& of;
  } resume_{*this};
};

UnixListener::~UnixListener() = default;

Result<std::unique_ptr<UnixListener>> UnixListener::listen(UvLoop& loop, const std::string& path, const wire::Limits& limits, Accepted accepted) {
  sockaddr_un address;
  DTG_TRY(make_address(path, &address));
  DTG_TRY(private_directory(path));
  Descriptor socket(new_socket());
  if (socket.get() < 0) return resource_exhausted("make a socket: %s", problem(errno).c_str());
  const auto* const where = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(socket.get(), where, sizeof address) != 0) {
    if (errno != EADDRINUSE) return failed_precondition("listen on unix:%s: %s", path.c_str(), problem(errno).c_str());
    // The name is there: of a process that lives, or left behind by one that does not.
    const Descriptor probe(new_socket());
    if (::connect(probe.get(), where, sizeof address) == 0 || errno == EAGAIN) {
      return already_exists("listen on unix:%s: another process listens there", path.c_str());
    }
    if (errno != ECONNREFUSED || unlink(path.c_str()) != 0 || ::bind(socket.get(), where, sizeof address) != 0) {
      return failed_precondition("listen on unix:%s: the path is taken: %s", path.c_str(), problem(errno).c_str());
    }
  }
  if (::listen(socket.get(), kBacklog) != 0) return failed_precondition("listen on unix:%s: %s", path.c_str(), problem(errno).c_str());
  std::unique_ptr<UnixListener> listener(new UnixListener);
  listener->acceptor_ = std::make_unique<Acceptor>(loop, socket.leak(), path, limits, std::move(accepted));
  DTG_TRY(listener->acceptor_->start());
  return listener;
}

Result<Ref<Channel>> connect_unix(UvLoop& loop, const std::string& path, const wire::Limits& limits) {
  sockaddr_un address;
  DTG_TRY(make_address(path, &address));
  Descriptor socket(new_socket());
  if (socket.get() < 0) return resource_exhausted("make a socket: %s", problem(errno).c_str());
  size_buffers(socket.get());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return unavailable("connect to unix:%s: %s", path.c_str(), problem(errno).c_str());
  }
  DTG_TRY(check_peer(socket.get()));
  return Ref<Channel>(make_ref<UnixChannel>(loop, socket.leak(), limits));
}

}  // namespace dtg
