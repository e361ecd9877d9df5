// Screen: where the logs of all tasks come together: lines under the name of their task, and on a terminal one line at
// the bottom with what each task is doing. Owned by the supervisor; its thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace dtg::cli {

class Screen {
 public:
  // `names` in the order in which their status is shown. With `quiet_stdout` the logs go to stderr.
  Screen(std::vector<std::string> names, bool quiet_stdout);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void line(size_t task, std::string_view text, bool error);
  // A line of the launcher's own, on stderr.
  void say(std::string_view text);
  void status(size_t task, std::string text);
  // Draws what changed, at most ten times a second. Milliseconds until it wants to be called again; -1: never.
  int draw();
  // False when nobody reads stdout any more.
  bool alive() const { return alive_; }
  bool colors() const { return colors_; }

 private:
  void wipe();
  std::string bottom() const;
  void write(int fd, std::string_view text);

  const std::vector<std::string> names_;
  std::vector<std::string> labels_;  // padded and coloured
  std::vector<std::string> statuses_;
  const int out_;
  const bool live_;  // there is a bottom line
  const bool colors_;
  bool dirty_ = false, shown_ = false, alive_ = true;
  std::chrono::steady_clock::time_point drawn_{};
};

}  // namespace dtg::cli
