// Children: work in forked processes, so that a crash or a hang of one graph is reported with its name and the others go on.
// Each child reports lines; what it was at when it died is its last line that begins with "at ". One thread, no other threads
// may exist in this process when a child is made.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace dtg::random {

class Children {
 public:
  // In the child: reports a line.
  using Say = std::function<void(const std::string&)>;
  struct End {
    std::vector<std::string> lines;
    std::string at;     // what it was at
    std::string cause;  // empty: it ended well; otherwise "signal 11", "exit 1", "no answer for 60 s"
    uint64_t tag = 0;
  };
  void start(uint64_t tag, const std::function<void(const Say&)>& work);
  size_t running() const { return list_.size(); }
  // Waits until one has ended; who says nothing for that long is killed.
  End wait(int patience_seconds);

 private:
  struct Child {
    pid_t pid = -1;
    int pipe = -1;
    uint64_t tag = 0;
    std::string text;
    double heard = 0;
  };
  End finish(size_t i, std::string cause);
  std::vector<Child> list_;
};

double now_seconds();

}  // namespace dtg::random
