// FileLimit: while one stands, a write of this thread beyond the process's limit of files (ulimit -f) fails with EFBIG and does not end
// the process by SIGXFSZ: the host may have set the limit for reasons of its own, and the thread may be one of the host's.
//
// Owner: the call that writes. One thread; it stands on its stack.
#pragma once

#include <csignal>

namespace dtg {

class FileLimit {
 public:
  FileLimit();
  ~FileLimit();  // errno stays as it is
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  sigset_t before_;
  bool was_pending_ = false;
};

}  // namespace dtg
