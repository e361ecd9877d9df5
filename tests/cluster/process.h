// This test program in a process of its own, as a server or as a worker: started, killed, stopped and continued. Ends with
// the object.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <csignal>
#include <string>
#include <vector>

extern char** environ;

namespace dtg {

class OtherProcess {
 public:
  explicit OtherProcess(std::vector<std::string> words) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    std::vector<const char*> arguments = {"test_cluster"};
    for (const std::string& word : words) arguments.push_back(word.c_str());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[0], 0);
    ::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, const_cast<char**>(arguments.data()), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[0]);
    input_ = ends[1];
  }
  ~OtherProcess() { end(); }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  void signal(int number) {
    if (pid_ > 0) ::kill(pid_, number);
  }
  // Returns when it has really stopped: its threads run on for a moment after the signal.
  void stop() {
    signal(SIGSTOP);
    int status = 0;
    if (pid_ > 0) ::waitpid(pid_, &status, WUNTRACED);
  }
  void kill() {
    signal(SIGKILL);
    wait();
  }
  // Of the kernel's account of it: "maps", "fd" and the like.
  std::string about(const char* what) const { return "/proc/" + std::to_string(pid_) + "/" + what; }
  // From now on it may have so many descriptors open.
  void allow_descriptors(rlim_t count) const {
    rlimit limit{};
    ::prlimit(pid_, RLIMIT_NOFILE, nullptr, &limit);
    limit.rlim_cur = count;
    ::prlimit(pid_, RLIMIT_NOFILE, &limit, nullptr);
  }
  // How much processor time it has taken.
  int64_t worked_ns() const {
    clockid_t clock;
    timespec time{};
    if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  }
  // Asks it to stop; its exit status.
  int end() {
    if (input_ >= 0) ::close(input_);
    input_ = -1;
    return wait();
  }

 private:
  int wait() {
    int status = 0;
    if (pid_ > 0) ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }
  pid_t pid_ = -1;
  int input_ = -1;
};

struct ServerProcess : OtherProcess {
  ServerProcess(const std::string& cluster, const std::string& job, int task)
      : OtherProcess({"--serve", cluster, job, std::to_string(task)}) {}
  ServerProcess(const std::string& cluster, const std::string& job, int task, const std::string& state)
      : OtherProcess({"--serve", cluster, job, std::to_string(task), "", state}) {}
};
// Runs Steps at that target until its input ends.
struct WorkerProcess : OtherProcess {
  explicit WorkerProcess(const std::string& target) : OtherProcess({"--work", target}) {}
};

}  // namespace dtg
