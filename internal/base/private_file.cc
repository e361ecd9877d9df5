// Reading and making files with secrets, by POSIX calls. Owner, mode and kind are read from the open descriptor, so
// that nobody swaps the file between the check and the read. See private_file.h for who may call.
#include "base/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file_limit.h"
#include "base/random.h"

namespace dtg {
namespace {

std::string problem(int error) {
  char text[128] = {};
  return strerror_r(error, text, sizeof text);
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

 private:
  const int number_;
};

Status check_private(const std::string& path, const struct stat& found, size_t bytes) {
  if (!S_ISREG(found.st_mode)) return permission_denied("read \"%s\": it is not a regular file", path.c_str());
  if (found.st_uid != ::geteuid()) {
    return permission_denied("read \"%s\": the file belongs to user %u, not to %u; copy it to a file of your own", path.c_str(),
                             static_cast<unsigned>(found.st_uid), static_cast<unsigned>(::geteuid()));
  }
  if ((found.st_mode & 077) != 0) {
    return permission_denied("read \"%s\": others have rights to the file (mode %04o); chmod 600 %s", path.c_str(),
                             static_cast<unsigned>(found.st_mode & 07777), path.c_str());
  }
  if (found.st_size != static_cast<off_t>(bytes)) {
    return invalid_argument("read \"%s\": the file has %lld bytes, not %zu; is it the right file?", path.c_str(),
                            static_cast<long long>(found.st_size), bytes);
  }
  return {};
}

Status write_all(int descriptor, const std::string& path, std::span<const char> bytes) {
  const FileLimit limit;
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return Status(Code::resource_exhausted, format("write \"%s\": %s", path.c_str(), problem(errno).c_str()));
    bytes = bytes.subspan(static_cast<size_t>(done));
  }
  if (::fsync(descriptor) != 0) return data_loss("sync \"%s\": %s", path.c_str(), problem(errno).c_str());
  return {};
}

}  // namespace

Status read_private_file(const std::string& path, std::span<char> into) {
  // Not blocking: a named pipe in the way must not hold us.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0 && errno == ENOENT) return not_found("read \"%s\": there is no such file", path.c_str());
  if (file.get() < 0 && errno == ELOOP) return permission_denied("read \"%s\": it is a symbolic link; name the file itself", path.c_str());
  if (file.get() < 0) return permission_denied("read \"%s\": %s", path.c_str(), problem(errno).c_str());
  struct stat found {};
  if (::fstat(file.get(), &found) != 0) return permission_denied("read \"%s\": %s", path.c_str(), problem(errno).c_str());
  DTG_TRY(check_private(path, found, into.size()));
  while (!into.empty()) {
    const ssize_t got = ::read(file.get(), into.data(), into.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return data_loss("read \"%s\": %s", path.c_str(), got == 0 ? "the file became shorter" : problem(errno).c_str());
    into = into.subspan(static_cast<size_t>(got));
  }
  return {};
}

Status create_private_file(const std::string& path, std::span<const char> bytes) {
  // Written beside and then linked, so that whoever finds the name finds all of it.
  const std::string beside = path + "." + std::to_string(system_random().u64());
  Status status;
  {
    const Descriptor file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.get() < 0) return failed_precondition("create \"%s\": %s", path.c_str(), problem(errno).c_str());
    status = write_all(file.get(), path, bytes);
  }
  if (status.ok() && ::link(beside.c_str(), path.c_str()) != 0) {
    status = errno == EEXIST ? already_exists("create \"%s\": the file exists; remove it first if it is not needed any more", path.c_str())
                             : failed_precondition("create \"%s\": %s", path.c_str(), problem(errno).c_str());
  }
  ::unlink(beside.c_str());
  return status;
}

Status private_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return failed_precondition("make the directory %s: %s", path.c_str(), problem(errno).c_str());
  }
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0 || !S_ISDIR(found.st_mode))
    return failed_precondition("use %s: it is not a directory", path.c_str());
  if (found.st_uid == ::geteuid() && (found.st_mode & 077) == 0) return {};
  // What belongs to all is not to be closed.
  const bool shared = found.st_uid != ::geteuid() || (found.st_mode & (S_ISVTX | S_IWOTH)) != 0;
  return shared ? permission_denied("use %s: it is a directory of others too; take one of your own inside it (mkdir -m 700 %s/NAME)",
                                    path.c_str(), path.c_str())
                : permission_denied("use %s: others may enter it; take a directory of your own with mode 0700 (chmod 700 %s)", path.c_str(),
                                    path.c_str());
}

Result<std::string> private_runtime_directory(const char* xdg_runtime_dir) {
  std::string path;
  if (xdg_runtime_dir && *xdg_runtime_dir == '/') {
    path = std::string(xdg_runtime_dir) + "/dtg";
  } else {
    path = "/tmp/dtg-" + std::to_string(::geteuid());
  }
  DTG_TRY(private_directory(path));
  return path;
}

}  // namespace dtg
