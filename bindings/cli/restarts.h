// Restarts: when a task that died is started again and when no more, for one task of a launch; and what there is to say about
// its deaths. It knows no processes and no clock: the supervisor tells it what happened when. Supervisor's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace dtg::cli {

struct RestartOptions {
  bool on_failure = false;
  int64_t limit = 10;  // within kRestartWindow, per task
};

constexpr auto kRestartWindow = std::chrono::seconds(60);

// One end of a process that was not meant to be.
struct Death {
  std::chrono::steady_clock::time_point when;
  std::chrono::steady_clock::duration lived;
  int exit_code = 0, signal = 0;  // signal 0: it ended by itself
  bool ending = false;            // the launch was ending anyway: nothing is started again
  std::string gone{};             // whose end was the end of the job; "" nobody's
  bool restarted = false;
};

class Restarts {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Restarts(const RestartOptions& options) : options_(options) {}

  // The task has died: how long to wait before it is started again, or nothing when it shall not be.
  std::optional<Clock::duration> after(Death death);
  // It is not started again after all, as `who` has ended.
  void give_up(const std::string& who);
  // What the last `after` decided, to go behind "ps/0 was killed by SIGKILL after 3.2 s; ".
  const std::string& verdict() const { return verdict_; }

  const std::vector<Death>& deaths() const { return deaths_; }
  // How often it was to be started again.
  int64_t count() const;
  // It is not started again after all, as the launch ends.
  void call_off();

 private:
  Clock::duration pause();

  const RestartOptions& options_;
  std::vector<Death> deaths_;
  std::string verdict_;
  int in_a_row_ = 0;  // short lives, each shorter than it takes to be forgiven
  std::minstd_rand chance_{std::random_device{}()};
};

// "was killed by SIGKILL", "ended with exit code 3".
std::string how_it_died(const Death& death);
std::string signal_name(int number);
std::string seconds_text(std::chrono::steady_clock::duration time);

}  // namespace dtg::cli
