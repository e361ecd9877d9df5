// Child: see the header.
#include "child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace dtg::cli {
namespace {

// What the child's side of fork needs, prepared before, because after fork little is allowed.
struct Program {
  std::vector<char*> arguments, environment;
};

bool names_same(const char* entry, const std::string& setting) {
  const size_t name = setting.find('=') + 1;
  return std::strncmp(entry, setting.c_str(), name) == 0;
}

Program prepare(const std::vector<std::string>& program, const std::vector<std::string>& environment) {
  Program out;
  for (const std::string& word : program) out.arguments.push_back(const_cast<char*>(word.c_str()));
  out.arguments.push_back(nullptr);
  for (char** entry = environ; *entry; entry++) {
    bool replaced = false;
    for (const std::string& setting : environment) replaced |= names_same(*entry, setting);
    if (!replaced) out.environment.push_back(*entry);
  }
  for (const std::string& setting : environment) out.environment.push_back(const_cast<char*>(setting.c_str()));
  out.environment.push_back(nullptr);
  return out;
}

// The child's side: never returns. What fails is told through `report`, which exec closes.
[[noreturn]] void become(const Program& program, pid_t parent, const int out[2], const int err[2], int report) {
  sigset_t none;
  sigemptyset(&none);
  std::signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setpgid(0, 0);
  const int null = open("/dev/null", O_RDONLY);
  const bool ready =
      null >= 0 && dup2(null, 0) == 0 && dup2(out[1], 1) == 1 && dup2(err[1], 2) == 2 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
  // The launcher may have died before it could be watched.
  if (getppid() != parent) _exit(127);
  if (ready) execvpe(program.arguments[0], program.arguments.data(), program.environment.data());
  const int problem = errno;
  (void)!write(report, &problem, sizeof problem);
  _exit(127);
}

void close_both(const int ends[2]) {
  for (int i = 0; i < 2; i++) {
    if (ends[i] >= 0) close(ends[i]);
  }
}

}  // namespace

Child::~Child() {
  if (running()) {
    signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close_pipe(0);
  close_pipe(1);
}

int Child::start(const std::vector<std::string>& program, const std::vector<std::string>& environment) {
  const Program prepared = prepare(program, environment);
  close_pipe(0);
  close_pipe(1);
  code_ = signal_ = 0;
  int out[2] = {-1, -1}, err[2] = {-1, -1}, report[2] = {-1, -1};
  int problem = 0;
  if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC) || pipe2(report, O_CLOEXEC)) problem = errno;
  const pid_t parent = getpid();
  if (problem == 0 && (pid_ = fork()) < 0) problem = errno;
  if (pid_ == 0) become(prepared, parent, out, err, report[1]);
  if (problem == 0) {
    setpgid(pid_, pid_);  // both sides do it: whoever comes first
    close(report[1]);
    report[1] = -1;
    if (read(report[0], &problem, sizeof problem) > 0) {
      waitpid(pid_, nullptr, 0);
      pid_ = -1;
    }
  }
  close_both(report);
  if (problem) return close_both(out), close_both(err), problem;
  close(out[1]);
  close(err[1]);
  pipes_[0] = out[0];
  pipes_[1] = err[0];
  for (const int fd : pipes_) fcntl(fd, F_SETFL, O_NONBLOCK);
  return 0;
}

void Child::signal(int number) const {
  if (running()) kill(-pid_, number);
}

bool Child::reap() {
  siginfo_t info = {};
  if (!running() || waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return false;
  // Until it is waited for, its number cannot mean another process group.
  kill(-pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  signal_ = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  code_ = signal_ ? 128 + signal_ : WEXITSTATUS(status);
  return true;
}

void Child::close_pipe(int which) {
  if (pipes_[which] >= 0) close(pipes_[which]);
  pipes_[which] = -1;
}

}  // namespace dtg::cli
