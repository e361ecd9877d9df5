// Child: one process of a launch: its start, its two pipes, its end. It leads a process group of its own, so that a signal
// reaches what it started too; when the launcher dies, the kernel kills it. Owned by the supervisor; its thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace dtg::cli {

class Child {
 public:
  Child() = default;
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Starts `program`, found along PATH; again when an earlier one has ended. 0, or the errno of what failed (ENOENT, EACCES: there is no
  // such program).
  int start(const std::vector<std::string>& program, const std::vector<std::string>& environment);
  void signal(int number) const;
  // True when the process has ended; then what is left of its group is killed.
  bool reap();

  bool running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  // Ends of the pipes, -1 once closed: 0 is stdout, 1 stderr.
  int pipe(int which) const { return pipes_[which]; }
  void close_pipe(int which);
  // After the end: as a shell tells it, 128 + n for signal n.
  int exit_code() const { return code_; }
  int ended_by_signal() const { return signal_; }

 private:
  pid_t pid_ = -1;
  int pipes_[2] = {-1, -1};
  int code_ = 0, signal_ = 0;
};

}  // namespace dtg::cli
