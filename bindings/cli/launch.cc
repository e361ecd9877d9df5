// Launch: see the header.
#include "launch.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "console.h"

namespace dtg::cli {
namespace {

// A directory of this user that only this user can enter, as XDG_RUNTIME_DIR promises to be.
bool is_private(const std::string& path) {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() && (info.st_mode & 077) == 0 &&
         access(path.c_str(), W_OK | X_OK) == 0;
}

// Where the private directory may be made, best first. A socket's path has some 100 bytes only, so /tmp comes at the end.
std::vector<std::string> parents() {
  std::vector<std::string> list;
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const char* temporary = std::getenv("TMPDIR");
  if (runtime && is_private(runtime)) list.emplace_back(runtime);
  if (temporary && *temporary == '/') list.emplace_back(temporary);
  list.emplace_back("/tmp");
  return list;
}

constexpr char kPrefix[] = "dtg-", kLock[] = "/lock", kControl[] = "/control";
constexpr size_t kNameBytes = sizeof "dtg-XXXXXX" - 1;

void remove_directory(const std::string& path) {
  if (DIR* directory = opendir(path.c_str())) {
    while (const dirent* entry = readdir(directory)) unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
  }
  rmdir(path.c_str());
}

// Directories of launches in that one.
std::vector<std::string> launches_in(const std::string& parent) {
  std::vector<std::string> found;
  if (DIR* directory = opendir(parent.c_str())) {
    while (const dirent* entry = readdir(directory)) {
      const std::string_view name = entry->d_name;
      if (name.starts_with(kPrefix) && name.size() == kNameBytes) found.push_back(parent + "/" + entry->d_name);
    }
    closedir(directory);
  }
  std::erase_if(found, [](const std::string& path) { return !is_private(path); });
  return found;
}

// A launcher that is killed cannot remove its directory, so the next one does: whose lock nobody holds, has no launcher any more.
void sweep(const std::string& parent) {
  for (const std::string& path : launches_in(parent)) {
    const int lock = open((path + kLock).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (lock < 0) continue;
    if (flock(lock, LOCK_EX | LOCK_NB) == 0) remove_directory(path);
    close(lock);
  }
}

constexpr size_t kSocketPath = sizeof(sockaddr_un::sun_path) - sizeof "/worker-1234";

int cpus() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(CPU_COUNT(&set), 1) : 1;
}

// Listens on a port of 127.0.0.1 that the system chooses; the descriptor, or -1.
int take_port(uint16_t* port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    *port = ntohs(address.sin_port);
    return fd;
  }
  if (fd >= 0) close(fd);
  return -1;
}

}  // namespace

Launch::~Launch() {
  if (directory_.empty()) return;
  remove_directory(directory_);
  if (lock_ >= 0) close(lock_);
}

bool Launch::make_directory() {
  std::string tried;
  for (const std::string& parent : parents()) {
    sweep(parent);
    std::string path = parent + "/dtg-XXXXXX";
    if (path.size() > kSocketPath) {
      tried += "\n  " + parent + ": too long for the path of a socket";
    } else if (mkdtemp(path.data())) {  // with mode 0700
      directory_ = path;
      lock_ = open((path + kLock).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
      if (lock_ >= 0) flock(lock_, LOCK_EX | LOCK_NB);
      return true;
    } else {
      tried += "\n  " + parent + ": " + std::strerror(errno);
    }
  }
  complain("no place for the private directory that holds the cluster's sockets; tried" + tried +
           "\n  set TMPDIR to a folder with a short path that you can write to");
  return false;
}

// All at once before any is given back, so that no two are the same. Until the servers listen, somebody else could still
// take one; then that server says so and the launch fails.
bool Launch::choose_ports() {
  std::vector<int> taken;
  bool ok = true;
  for (LaunchTask& task : tasks_) {
    uint16_t port = 0;
    const int fd = take_port(&port);
    if (!(ok = fd >= 0)) break;
    taken.push_back(fd);
    task.address = "127.0.0.1:" + std::to_string(port);
  }
  if (!ok) complain(std::string("no free TCP port on 127.0.0.1: ") + std::strerror(errno) + "\n  try without --channel tcp");
  for (const int fd : taken) close(fd);
  return ok;
}

std::string Launch::cluster_json() const {
  std::string json;
  for (const char* job : {"chief", "worker", "ps"}) {
    std::string list;
    for (const LaunchTask& task : tasks_) {
      if (task.job == job) list += (list.empty() ? "" : ", ") + quote(task.address);
    }
    if (!list.empty()) json += (json.empty() ? "\"" : ", \"") + std::string(job) + "\": [" + list + "]";
  }
  return "{" + json + "}";
}

void Launch::fill_environments(const LaunchOptions& options) {
  const std::string cluster = cluster_json();
  const std::string threads = std::to_string(std::max<int64_t>(1, cpus() / options.workers));
  for (LaunchTask& task : tasks_) {
    task.environment = {"TF_CONFIG={\"cluster\": " + cluster + ", \"task\": {\"type\": " + quote(task.job) +
                            ", \"index\": " + std::to_string(task.index) + "}}",
                        "DTG_PROGRESS=1", "DTG_CHANNEL=" + std::string(options.tcp ? "tcp" : "unix")};
    // Processes that each take all processors only get into each other's way.
    if (!std::getenv("DTG_THREADS")) task.environment.push_back("DTG_THREADS=" + threads);
    if (options.clear_frames) task.environment.push_back("DTG_CLEAR_FRAMES=1");
    if (options.is_range()) {
      task.environment.push_back("DTG_MIN_WORKERS=" + std::to_string(options.least_workers));
      task.environment.push_back("DTG_CONTROL=" + control_);
    }
    if (!options.durability.empty()) task.environment.push_back("DTG_DURABILITY=" + options.durability);
  }
}

// What a task keeps there is nobody else's business; a folder that is there already stays as it is.
bool Launch::make_state(const std::string& directory) {
  std::error_code ignored;
  const std::string root = std::filesystem::absolute(directory, ignored);
  const auto made = [](const std::string& path) {
    struct stat info = {};
    if (mkdir(path.c_str(), 0700) == 0 || (errno == EEXIST && stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode))) return true;
    complain("cannot make " + path + " (--state): " + std::strerror(errno) +
             "\n  give a folder that is there, or can be made where it should be");
    return false;
  };
  if (!made(root)) return false;
  for (LaunchTask& task : tasks_) {
    const std::string own = root + "/" + task.job + "-" + std::to_string(task.index);
    if (!made(own)) return false;
    task.environment.push_back("DTG_STATE_DIR=" + own);
  }
  return true;
}

bool Launch::prepare(const LaunchOptions& options) {
  if (options.chief) tasks_.push_back({"chief", 0, "", {}});
  for (int64_t i = 0; i < options.workers; i++) tasks_.push_back({"worker", static_cast<int>(i), "", {}});
  for (int64_t i = 0; i < options.ps; i++) tasks_.push_back({"ps", static_cast<int>(i), "", {}});
  if (!make_directory()) return false;
  for (LaunchTask& task : tasks_) task.address = "unix:" + directory_ + "/" + task.job + "-" + std::to_string(task.index);
  if (options.tcp && !choose_ports()) return false;
  if (options.is_range()) control_ = directory_ + kControl;
  fill_environments(options);
  return options.state.empty() || make_state(options.state);
}

std::vector<std::string> find_controls() {
  std::vector<std::string> found;
  for (const std::string& parent : parents()) {
    for (const std::string& path : launches_in(parent)) {
      const std::string control = path + kControl;
      struct stat info = {};
      const bool known = std::ranges::find(found, control) != found.end();
      if (!known && lstat(control.c_str(), &info) == 0 && S_ISSOCK(info.st_mode)) found.push_back(control);
    }
  }
  return found;
}

}  // namespace dtg::cli
