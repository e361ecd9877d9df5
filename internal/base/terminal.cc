// stderr as a terminal. See terminal.h for threads.
#include "base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace dtg {
namespace {

class StderrTerminal final : public Terminal {
 public:
  int width() const override {
    winsize size = {};
    if (isatty(STDERR_FILENO) != 1) return 0;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  }
  void show(std::string_view bytes) override {
    // What a terminal does not take has nowhere to be reported.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, bytes.data(), bytes.size());
  }
};

}  // namespace

Terminal& stderr_terminal() {
  static StderrTerminal* const terminal = new StderrTerminal;  // leaked: no destructor at exit
  return *terminal;
}

}  // namespace dtg
