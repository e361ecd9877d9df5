// LogSink: where the library's few words go. The host may install its own; the default writes WARN and
// above to stderr, never to stdout. Whoever writes a line may be the network loop, or a host's thread that is the loop for a
// moment, so a sink must not wait for anybody; a host's function, which may, stands behind a LogQueue.
#pragma once

#include <memory>
#include <string_view>

namespace dtg {

enum class LogLevel : int { debug = 0, info = 1, warn = 2, error = 3, off = 4 };

class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void write(LogLevel level, std::string_view component, std::string_view message) = 0;
};

// WARN and above, one line each, to stderr; lives as long as the process.
LogSink& stderr_sink();

// Hands lines on to another sink from a thread of its own, with nothing locked, one at a time and in order. The thread starts
// with the first line. Where the sink is more than kLines behind, lines are dropped and counted, and the count is a line too.
// Any thread.
class LogQueue final : public LogSink {
 public:
  static constexpr size_t kLines = 1024;

  // `sink` outlives the queue.
  explicit LogQueue(LogSink& sink);
  // When all lines have been handed on; at once where the sink itself ends the queue.
  ~LogQueue() override;
  LogQueue(const LogQueue&) = delete;
  void write(LogLevel level, std::string_view component, std::string_view message) override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dtg
