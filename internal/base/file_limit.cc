// The signal is the thread's own, so it is held back here and taken away before it could be delivered. See file_limit.h.
#include "base/file_limit.h"

#include <pthread.h>

#include <cerrno>
#include <ctime>

namespace dtg {
namespace {

sigset_t only_file_size() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGXFSZ);
  return set;
}

bool is_pending() {
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

}  // namespace

FileLimit::FileLimit() {
  const sigset_t blocked = only_file_size();
  pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  was_pending_ = is_pending();
}

FileLimit::~FileLimit() {
  const int error = errno;
  // What was pending before is somebody else's.
  if (!was_pending_ && is_pending()) {
    const sigset_t taken = only_file_size();
    const timespec at_once{};
    while (sigtimedwait(&taken, nullptr, &at_once) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = error;
}

}  // namespace dtg
