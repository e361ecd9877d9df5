// Supervisor: starts the processes of a launch, shows what they say, and sees to it that they end together: all when a
// worker fails, the parameter servers when the workers are done, everything on a signal. Where the options say so, a task that
// dies is started again instead. Main thread.
#pragma once

#include <signal.h>

#include <chrono>
#include <cstdio>
#include <memory>

#include "child.h"
#include "control.h"
#include "launch.h"
#include "log_text.h"
#include "restarts.h"
#include "screen.h"

namespace dtg::cli {

struct SuperviseOptions {
  std::vector<std::string> program;
  std::string log_directory;  // "": none
  std::string pid_file;       // "": none
  std::chrono::seconds grace{10};
  bool quiet_stdout = false;
  // Where workers come and go: with fewer the launch ends; so many at first.
  int64_t least_workers = 1, start_workers = 1;
  RestartOptions restart;
};

class Supervisor {
 public:
  Supervisor(const Launch& launch, const SuperviseOptions& options);
  ~Supervisor();

  // Until every process has ended. 0: all workers ended well; otherwise the code of what failed first.
  int run();
  // After run(): how each task ended, and who died when and why, as JSON lists.
  std::string report_json() const;
  std::string deaths_json() const;

 private:
  using Clock = std::chrono::steady_clock;
  enum class Phase { running, waiting_for_ps, ending, killing, done };
  struct Task {
    explicit Task(const RestartOptions& options) : restarts(options) {}
    const LaunchTask* what = nullptr;
    Child child;
    Restarts restarts;
    std::unique_ptr<LogText> text[2];
    std::FILE* log = nullptr;
    Clock::time_point first_started{}, started{}, ended{};
    Clock::time_point due = Clock::time_point::max();      // when it is started again
    Clock::time_point kill_at = Clock::time_point::max();  // when it is made to end that was asked to
    bool asked_to_end = false;
    bool was_started() const { return first_started != Clock::time_point{}; }
    bool waits() const { return due != Clock::time_point::max(); }
    bool lives() const { return child.running() || waits(); }
  };

  bool start();
  bool start_task(Task& task);
  void start_again();
  bool give_up(Task& task);
  // What `dtg worker` asks for.
  std::string obey(const std::string& question);
  std::string add_workers(int64_t count);
  std::string remove_workers(int64_t count);
  std::string list_workers() const;
  Task* absent_worker() const;
  std::vector<Task*> live_workers() const;
  bool goes_on_without(Task& task);
  void write_pids();
  bool open_log(Task& task);
  void line(size_t index, std::string_view text, bool error);
  void read_pipe(Task& task, int which);
  void poll_once();
  void take_signals();
  void on_signal(int number);
  std::vector<Task*> collect_dead();
  void reap();
  void ended(Task& task);
  bool died(Task& task);
  void ask_to_end(int number, Phase next);
  void escalate();
  void advance();
  bool any_alive(const char* job = nullptr) const;
  // With whose end the job is over, so that nobody is started again; "" while it is not.
  std::string gone_for_good() const;
  // Whose end is the end of the work: the chief, where it has a task of its own, or the workers.
  const std::string& leader() const { return tasks_.front()->what->job; }
  void say_deaths();
  int timeout_ms() const;

  const SuperviseOptions& options_;
  const std::string control_path_;  // "": the number of workers is fixed
  Control control_;
  std::vector<std::unique_ptr<Task>> tasks_;
  Screen screen_;
  sigset_t before_{};
  int signals_ = -1;
  Phase phase_ = Phase::running;
  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::time_point start_ = Clock::now();
  int result_ = 0;
  bool interrupted_ = false;
};

}  // namespace dtg::cli
