// The default sink of the log: one line per message to stderr, by a single write(2), so that lines of several processes
// do not interleave. Any thread.
#include "base/log.h"

#include <unistd.h>

#include <string>

namespace dtg {
namespace {
class StderrSink final : public LogSink {
 public:
  void write(LogLevel level, std::string_view component, std::string_view message) override {
    if (level < LogLevel::warn) return;
    std::string line = level == LogLevel::warn ? "dtg W " : "dtg E ";
    line.append(component).append(": ").append(message).push_back('\n');
    // A log line that cannot be written has nowhere to be reported.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  }
};
}  // namespace

LogSink& stderr_sink() {
  static StderrSink* const sink = new StderrSink;  // leaked: no destructor at exit
  return *sink;
}

}  // namespace dtg
