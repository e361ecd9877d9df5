// The machine's file system behind the Disk seam: POSIX calls, with errno turned into a Status that names the call and
// the path. Descriptors are close-on-exec. Any thread, never the network loop.
#include "base/disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "base/file_limit.h"

namespace dtg {
namespace {

Status errno_status(const char* action, const std::string& path, int error) {
  Code code = Code::unknown;
  switch (error) {
    // clang-format off
    case ENOENT: case ENOTDIR: code = Code::not_found; break;
    case EACCES: case EPERM: case EROFS: code = Code::permission_denied; break;
    case ENOSPC: case EDQUOT: case EFBIG: case EMFILE: case ENFILE: case ENOMEM: code = Code::resource_exhausted; break;
    case EEXIST: code = Code::already_exists; break;
    case ENOTEMPTY: case ELOOP: code = Code::failed_precondition; break;
    case EIO: code = Code::data_loss; break;
    case EISDIR: case ENAMETOOLONG: case EINVAL: code = Code::invalid_argument; break;
    default: break;
      // clang-format on
  }
  char text[128] = "";
  const char* reason = strerror_r(error, text, sizeof text);
  std::string message = format("%s \"%s\": %s", action, path.c_str(), reason);
  if (error == EISDIR) message += "; name a file in it";
  char here[PATH_MAX] = "";
  if (error == ENOENT && !path.starts_with("/") && ::getcwd(here, sizeof here)) message += format("; the current folder is \"%s\"", here);
  return Status(code, std::move(message));
}

// Where a directory is asked for and something else stands.
Status no_directory(const char* action, const std::string& asked, const std::string& found) {
  return failed_precondition("%s \"%s\": \"%s\" is no directory; name another place, or move it away", action, asked.c_str(),
                             found.c_str());
}

// A host that has closed its stderr, as services do, still writes there: no file of ours may stand in its place, nor in stdin's or
// stdout's.
int open_file(const std::string& path, int how, mode_t mode = 0666) {
  int fd = -1;
  do fd = ::open(path.c_str(), how | O_CLOEXEC, mode);
  while (fd < 0 && errno == EINTR);
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), failed = errno;
  ::close(fd);
  errno = failed;
  return moved;
}

class PosixWriter final : public FileWriter {
 public:
  PosixWriter(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~PosixWriter() override {
    if (fd_ >= 0) ::close(fd_);
  }
  Status append(std::string_view bytes) override {
    if (fd_ < 0) return failed_precondition("write \"%s\": the file is closed", path_.c_str());
    const FileLimit limit;
    while (!bytes.empty()) {
      const ssize_t done = ::write(fd_, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return errno_status("write", path_, done < 0 ? errno : EIO);
      bytes.remove_prefix(static_cast<size_t>(done));
    }
    return {};
  }
  Status reserve(int64_t bytes) override {
    if (fd_ < 0) return failed_precondition("reserve \"%s\": the file is closed", path_.c_str());
    if (bytes <= 0) return {};
    const FileLimit limit;
    int done = 0;
    do done = ::fallocate(fd_, FALLOC_FL_KEEP_SIZE, 0, bytes);
    while (done != 0 && errno == EINTR);
    if (done == 0 || errno == EOPNOTSUPP || errno == ENOSYS) return {};
    return errno_status("reserve", path_, errno);
  }
  Status sync() override {
    if (fd_ < 0) return failed_precondition("sync \"%s\": the file is closed", path_.c_str());
    const std::lock_guard lock(sync_mutex_);
    if (sync_failed_.ok() && ::fsync(fd_) != 0) sync_failed_ = errno_status("sync", path_, errno);
    return sync_failed_;
  }
  Status close() override {
    const int fd = std::exchange(fd_, -1);
    if (fd >= 0 && ::close(fd) != 0 && errno != EINTR) return errno_status("close", path_, errno);
    return {};
  }

 private:
  int fd_;
  std::mutex sync_mutex_;  // guards sync_failed_
  Status sync_failed_;
  const std::string path_;
};

class PosixReader final : public FileReader {
 public:
  PosixReader(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~PosixReader() override { ::close(fd_); }
  Result<size_t> read(void* into, size_t count) override {
    for (;;) {
      const ssize_t got = ::read(fd_, into, count);
      if (got >= 0) return static_cast<size_t>(got);
      if (errno != EINTR) return errno_status("read", path_, errno);
    }
  }

 private:
  const int fd_;
  const std::string path_;
};

class PosixLock final : public FileLock {
 public:
  explicit PosixLock(int fd) : fd_(fd) {}
  ~PosixLock() override { ::close(fd_); }

 private:
  const int fd_;
};

class SystemDisk final : public Disk {
 public:
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    const int fd = open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    if (fd < 0) return errno_status("lock", path, errno);
    auto held = std::make_unique<PosixLock>(fd);
    // Of the open file, not of the process: so it also keeps out who is in the same one, and a forked child frees nothing.
    struct flock all {};
    all.l_type = F_WRLCK;
    all.l_whence = SEEK_SET;
    if (::fcntl(fd, F_OFD_SETLK, &all) == 0) return std::unique_ptr<FileLock>(std::move(held));
    if (errno == EAGAIN || errno == EACCES) return already_exists("lock \"%s\": somebody else holds it", path.c_str());
    return errno_status("lock", path, errno);
  }
  Result<std::unique_ptr<FileReader>> open_read(const std::string& path) override { return open_file_alone(path, 0); }
  Result<std::unique_ptr<FileReader>> open_regular(const std::string& path) override { return open_file_alone(path, O_NOFOLLOW); }

  Result<std::unique_ptr<FileWriter>> open_write(const std::string& path) override { return create(path, O_TRUNC); }
  Result<std::unique_ptr<FileWriter>> open_new(const std::string& path) override { return create(path, O_EXCL); }

  Result<std::string> read_file(const std::string& path, int64_t bytes_max) override {
    DTG_ASSIGN(auto reader, open_read(path));
    std::string text;
    char chunk[1 << 14];
    for (;;) {
      DTG_ASSIGN(const size_t got, reader->read(chunk, sizeof chunk));
      if (got == 0) return text;
      if (static_cast<int64_t>(text.size() + got) > bytes_max) {
        return resource_exhausted("read \"%s\": the file is longer than the %lld bytes allowed here", path.c_str(),
                                  static_cast<long long>(bytes_max));
      }
      text.append(chunk, got);
    }
  }

  Status make_directories(const std::string& path) override {
    for (size_t at = 1; at <= path.size(); ++at) {
      if (at != path.size() && path[at] != '/') continue;
      const std::string prefix = path.substr(0, at);
      if (::mkdir(prefix.c_str(), 0777) == 0 || errno == EEXIST) continue;
      if (errno == ENOTDIR) return no_directory("make directory", path, parent_directory(prefix));
      const int failed = errno;
      // As /proc says it, which is there.
      if (failed == ENOENT && ::access(parent_directory(prefix).c_str(), F_OK) == 0) {
        return permission_denied("make directory \"%s\": nothing can be made in \"%s\"; name another place", path.c_str(),
                                 parent_directory(prefix).c_str());
      }
      return errno_status("make directory", prefix, failed);
    }
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return errno_status("make directory", path, errno);
    if (!S_ISDIR(info.st_mode)) return no_directory("make directory", path, path);
    return {};
  }

  Status make_directory(const std::string& path) override {
    return ::mkdir(path.c_str(), 0777) == 0 ? Status() : errno_status("make directory", path, errno);
  }

  Status sync_directory(const std::string& path) override {
    const int fd = open_file(path, O_RDONLY | O_DIRECTORY);
    if (fd < 0) return errno_status("open directory", path, errno);
    const int failed = ::fsync(fd) == 0 ? 0 : errno;
    ::close(fd);
    return failed ? errno_status("sync directory", path, failed) : Status();
  }

  Status sync_file(const std::string& path) override {
    const int fd = open_file(path, O_RDONLY | O_NOFOLLOW);
    if (fd < 0) return errno_status("open", path, errno);
    const int failed = ::fsync(fd) == 0 ? 0 : errno;
    ::close(fd);
    return failed ? errno_status("sync", path, failed) : Status();
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return errno_status("rename", from, errno);
    return sync_directory(parent_directory(to));
  }

  Result<std::string> follow(const std::string& path) override {
    std::string at = path;
    for (int links = 0; links < 40; ++links) {
      char to[4096];
      const ssize_t length = ::readlink(at.c_str(), to, sizeof to);
      if (length < 0 && (errno == EINVAL || errno == ENOENT || errno == ENOTDIR)) return at;  // no link, or nothing
      if (length < 0) return errno_status("follow", at, errno);
      if (length == static_cast<ssize_t>(sizeof to)) return errno_status("follow", at, ENAMETOOLONG);
      const std::string target(to, static_cast<size_t>(length));
      at = target.starts_with('/') ? target : parent_directory(at) + "/" + target;
    }
    return errno_status("follow", path, ELOOP);
  }

  Status take_rights(const std::string& from, const std::string& to) override {
    struct stat info {};
    if (::stat(from.c_str(), &info) != 0) return errno_status("look up", from, errno);
    // Only the administrator may give files away, and a group may be one that we are not in; the owner is ours then. Before the mode,
    // because a change of owner takes special bits away.
    if (::chown(to.c_str(), info.st_uid, info.st_gid) != 0 && ::chown(to.c_str(), static_cast<uid_t>(-1), info.st_gid) != 0) errno = 0;
    return ::chmod(to.c_str(), info.st_mode & 07777) == 0 ? Status() : errno_status("set the mode of", to, errno);
  }

  Status remove(const std::string& path) override { return ::remove(path.c_str()) == 0 ? Status() : errno_status("remove", path, errno); }

  Result<bool> exists(const std::string& path) override {
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return errno_status("look up", path, errno);
  }

  Result<FileStat> look_up(const std::string& path) override {
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) return errno_status("look up", path, errno);
    FileStat found;
    if (S_ISREG(info.st_mode)) found.kind = FileStat::Kind::file;
    if (S_ISDIR(info.st_mode)) found.kind = FileStat::Kind::directory;
    found.bytes = info.st_size;
    found.modified_seconds = static_cast<double>(info.st_mtim.tv_sec) + static_cast<double>(info.st_mtim.tv_nsec) * 1e-9;
    return found;
  }

  Result<int64_t> free_bytes(const std::string& path) override {
    struct statvfs info {};
    int done = 0;
    do done = ::statvfs(path.c_str(), &info);
    while (done != 0 && errno == EINTR);
    if (done != 0) return errno_status("ask what is free on the disk of", path, errno);
    int64_t bytes = 0;
    const bool beyond = __builtin_mul_overflow(static_cast<int64_t>(info.f_bavail), static_cast<int64_t>(info.f_frsize), &bytes);
    return beyond ? INT64_MAX : bytes;
  }

  Result<std::vector<std::string>> list(const std::string& directory) override {
    // Opened by itself: a tool that watches who uses a descriptor sees it begin here, which it does not inside of opendir.
    const int fd = open_file(directory, O_RDONLY | O_DIRECTORY);
    if (fd < 0 && errno == ENOTDIR) return no_directory("list", directory, directory);
    if (fd < 0) return errno_status("list", directory, errno);
    DIR* dir = ::fdopendir(fd);
    if (!dir) {
      const int failed = errno;
      ::close(fd);
      return errno_status("list", directory, failed);
    }
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(dir)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
      errno = 0;
    }
    // A list that broke off would look like files that are not there.
    const int failed = errno;
    ::closedir(dir);
    if (failed) return errno_status("list", directory, failed);
    return names;
  }

 private:
  static Result<std::unique_ptr<FileReader>> open_file_alone(const std::string& path, int how) {
    // A pipe would keep an ordinary open waiting for somebody who writes, and a read for as long as that one takes.
    const int fd = open_file(path, O_RDONLY | O_NONBLOCK | how);
    if (fd < 0 && errno == ELOOP && how) return failed_precondition("open \"%s\": a link stands in the file's place", path.c_str());
    if (fd < 0) return errno_status("open", path, errno);
    auto reader = std::make_unique<PosixReader>(fd, path);
    struct stat info {};
    if (::fstat(fd, &info) != 0) return errno_status("look up", path, errno);
    if (S_ISDIR(info.st_mode)) return errno_status("open", path, EISDIR);
    if (!S_ISREG(info.st_mode)) {
      return failed_precondition(
          "open \"%s\": it is no regular file; what comes out of a pipe or a device has no end that is known, so write it "
          "to a file first",
          path.c_str());
    }
    return std::unique_ptr<FileReader>(std::move(reader));
  }
  static Result<std::unique_ptr<FileWriter>> create(const std::string& path, int how) {
    const int fd = open_file(path, O_WRONLY | O_CREAT | how);
    if (fd < 0) return errno_status("create", path, errno);
    return std::unique_ptr<FileWriter>(new PosixWriter(fd, path));
  }
};

Status remove_nested(Disk& disk, const std::string& path, int depth) {
  const auto gone = [](const Status& status) { return status.code() == Code::not_found; };
  const auto found = disk.look_up(path);
  if (!found.ok()) return gone(found.status()) ? Status() : found.status();
  if (found.value().kind == FileStat::Kind::directory) {
    if (depth == 0) return failed_precondition("remove \"%s\": folders are nested too deeply to be ours", path.c_str());
    const auto names = disk.list(path);
    if (!names.ok()) return gone(names.status()) ? Status() : names.status();
    for (const std::string& name : names.value()) DTG_TRY(remove_nested(disk, path + "/" + name, depth - 1));
  }
  const Status removed = disk.remove(path);
  return gone(removed) ? Status() : removed;
}

}  // namespace

std::string parent_directory(const std::string& path) {
  // "a/b/" is in "a", as for the system.
  const size_t end = path.find_last_not_of('/');
  const size_t slash = end == std::string::npos ? end : path.rfind('/', end);
  if (end == std::string::npos) return path.empty() ? "." : "/";
  if (slash == std::string::npos) return ".";
  const size_t last = path.find_last_not_of('/', slash);
  return last == std::string::npos ? "/" : path.substr(0, last + 1);
}

Status remove_tree(Disk& disk, const std::string& path) { return remove_nested(disk, path, 8); }

Result<std::unique_ptr<FileLock>> Disk::lock(const std::string&) { return std::make_unique<FileLock>(); }

Disk& system_disk() {
  static SystemDisk* const disk = new SystemDisk;  // leaked: no destructor at exit
  return *disk;
}

}  // namespace dtg
