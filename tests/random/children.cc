// fork, pipe, poll.
#include "random/children.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <ctime>

namespace dtg::random {

double now_seconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void Children::start(uint64_t tag, const std::function<void(const Say&)>& work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    work([out = ends[1]](const std::string& line) {
      const std::string text = line + "\n";
      for (size_t at = 0; at < text.size();) {
        const ssize_t written = ::write(out, text.data() + at, text.size() - at);
        if (written <= 0) return;
        at += static_cast<size_t>(written);
      }
    });
    std::fflush(nullptr);
    // Sanitizers that look for leaks at the end want an ordinary end.
    std::exit(0);
  }
  ::close(ends[1]);
  list_.push_back({pid, ends[0], tag, {}, now_seconds()});
}

Children::End Children::wait(int patience_seconds) {
  for (;;) {
    std::vector<pollfd> polls;
    for (const Child& child : list_) polls.push_back({child.pipe, POLLIN, 0});
    ::poll(polls.data(), polls.size(), 1000);
    for (size_t i = 0; i < list_.size(); ++i) {
      Child& child = list_[i];
      if (polls[i].revents != 0) {
        char bytes[65536];
        const ssize_t got = ::read(child.pipe, bytes, sizeof bytes);
        if (got <= 0) return finish(i, {});
        child.text.append(bytes, static_cast<size_t>(got));
        child.heard = now_seconds();
      } else if (now_seconds() - child.heard > patience_seconds) {
        ::kill(child.pid, SIGKILL);
        return finish(i, "no answer for " + std::to_string(patience_seconds) + " s");
      }
    }
  }
}

Children::End Children::finish(size_t i, std::string cause) {
  const Child child = list_[i];
  list_.erase(list_.begin() + static_cast<std::ptrdiff_t>(i));
  ::close(child.pipe);
  int status = 0;
  ::waitpid(child.pid, &status, 0);
  if (cause.empty() && WIFSIGNALED(status)) cause = "signal " + std::to_string(WTERMSIG(status));
  if (cause.empty() && WEXITSTATUS(status) != 0) cause = "exit status " + std::to_string(WEXITSTATUS(status));
  End end;
  end.cause = std::move(cause);
  end.tag = child.tag;
  for (size_t at = 0; at < child.text.size();) {
    const size_t stop = child.text.find('\n', at);
    std::string line = child.text.substr(at, stop - at);
    if (line.rfind("at ", 0) == 0) end.at = line.substr(3);
    else end.lines.push_back(std::move(line));
    if (stop == std::string::npos) break;
    at = stop + 1;
  }
  return end;
}

}  // namespace dtg::random
