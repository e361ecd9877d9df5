// The machine's file system behind the Disk seam: POSIX calls, with errno turned into a Status that names the call and
// the path. Descriptors are close-on-exec. Any thread, never the network loop.
#include "base/disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace dtg {
namespace {

Status errno_status(const char* action, const std::string& path, int error) {
  Code code = Code::unknown;
  switch (error) {
    // clang-format off
    case ENOENT: case ENOTDIR: code = Code::not_found; break;
    case EACCES: case EPERM: case EROFS: code = Code::permission_denied; break;
    case ENOSPC: case EDQUOT: case EMFILE: case ENFILE: case ENOMEM: code = Code::resource_exhausted; break;
    case EEXIST: code = Code::already_exists; break;
    case EIO: code = Code::data_loss; break;
    case EISDIR: case ENAMETOOLONG: case EINVAL: code = Code::invalid_argument; break;
    default: break;
      // clang-format on
  }
  char text[128] = "";
  const char* reason = strerror_r(error, text, sizeof text);
  return Status(code, format("%s \"%s\": %s", action, path.c_str(), reason));
}

class PosixWriter final : public FileWriter {
 public:
  PosixWriter(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~PosixWriter() override {
    if (fd_ >= 0) ::close(fd_);
  }
  Status append(std::string_view bytes) override {
    if (fd_ < 0) return failed_precondition("write \"%s\": the file is closed", path_.c_str());
    while (!bytes.empty()) {
      const ssize_t done = ::write(fd_, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return errno_status("write", path_, errno);
      bytes.remove_prefix(static_cast<size_t>(done));
    }
    return {};
  }
  Status sync() override {
    if (fd_ < 0) return failed_precondition("sync \"%s\": the file is closed", path_.c_str());
    return ::fsync(fd_) == 0 ? Status() : errno_status("sync", path_, errno);
  }
  Status close() override {
    const int fd = std::exchange(fd_, -1);
    if (fd >= 0 && ::close(fd) != 0 && errno != EINTR) return errno_status("close", path_, errno);
    return {};
  }

 private:
  int fd_;
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

class SystemDisk final : public Disk {
 public:
  Result<std::unique_ptr<FileReader>> open_read(const std::string& path) override {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno_status("open", path, errno);
    return std::unique_ptr<FileReader>(new PosixReader(fd, path));
  }

  Result<std::unique_ptr<FileWriter>> open_write(const std::string& path) override {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return errno_status("create", path, errno);
    return std::unique_ptr<FileWriter>(new PosixWriter(fd, path));
  }

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
      if (::mkdir(prefix.c_str(), 0777) != 0 && errno != EEXIST) {
        return errno_status("make directory", prefix, errno);
      }
    }
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return errno_status("make directory", path, errno);
    if (!S_ISDIR(info.st_mode)) return already_exists("make directory \"%s\": a file is in the way", path.c_str());
    return {};
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return errno_status("rename", from, errno);
    const size_t slash = to.rfind('/');
    const std::string parent = slash == std::string::npos ? "." : slash == 0 ? "/" : to.substr(0, slash);
    const int fd = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno_status("open directory", parent, errno);
    const int failed = ::fsync(fd) == 0 ? 0 : errno;
    ::close(fd);
    return failed ? errno_status("sync directory", parent, failed) : Status();
  }

  Status remove(const std::string& path) override { return ::remove(path.c_str()) == 0 ? Status() : errno_status("remove", path, errno); }

  Result<bool> exists(const std::string& path) override {
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return errno_status("look up", path, errno);
  }

  Result<std::vector<std::string>> list(const std::string& directory) override {
    DIR* dir = ::opendir(directory.c_str());
    if (!dir) return errno_status("list", directory, errno);
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(dir)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    ::closedir(dir);
    return names;
  }
};

}  // namespace

Disk& system_disk() {
  static SystemDisk* const disk = new SystemDisk;  // leaked: no destructor at exit
  return *disk;
}

}  // namespace dtg
