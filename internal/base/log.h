// LogSink: where the library's few words go. The host may install its own; the default writes WARN and
// above to stderr, never to stdout. A sink is called from any thread of ours, never from inside a lock.
#pragma once

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

}  // namespace dtg
