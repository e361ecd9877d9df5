// Supervisor: starts the processes of a launch, shows what they say, and sees to it that they end together: all when a
// worker fails, the parameter servers when the workers are done, everything on a signal. Main thread.
#pragma once

#include <signal.h>

#include <chrono>
#include <cstdio>
#include <memory>

#include "child.h"
#include "launch.h"
#include "log_text.h"
#include "screen.h"

namespace dtg::cli {

struct SuperviseOptions {
  std::vector<std::string> program;
  std::string log_directory;  // "": none
  std::chrono::seconds grace{10};
  bool quiet_stdout = false;
};

class Supervisor {
 public:
  Supervisor(const Launch& launch, const SuperviseOptions& options);
  ~Supervisor();

  // Until every process has ended. 0: all workers ended well; otherwise the code of what failed first.
  int run();
  // How each task ended, as a JSON list; after run().
  std::string report_json() const;

 private:
  using Clock = std::chrono::steady_clock;
  enum class Phase { running, waiting_for_ps, ending, killing, done };
  struct Task {
    const LaunchTask* what = nullptr;
    Child child;
    std::unique_ptr<LogText> text[2];
    std::FILE* log = nullptr;
    Clock::time_point started{}, ended{};
    bool asked_to_end = false;
  };

  bool start();
  bool start_task(Task& task);
  bool open_log(Task& task);
  void line(size_t index, std::string_view text, bool error);
  void read_pipe(Task& task, int which);
  void poll_once();
  void take_signals();
  void on_signal(int number);
  void reap();
  void ended(Task& task);
  void ask_to_end(int number, Phase next);
  void escalate();
  void advance();
  bool any_running(const char* job = nullptr) const;
  int timeout_ms() const;

  const SuperviseOptions& options_;
  std::vector<std::unique_ptr<Task>> tasks_;
  Screen screen_;
  sigset_t before_{};
  int signals_ = -1;
  Phase phase_ = Phase::running;
  Clock::time_point deadline_ = Clock::time_point::max();
  int result_ = 0;
  bool interrupted_ = false;
};

}  // namespace dtg::cli
