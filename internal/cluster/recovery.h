// Recovery: a task's state as its last process left it: the newest set, and on top of it, in order, every commit that the log holds.
// Pure but for the disk; the thread that starts the server.
#pragma once

#include "cluster/task.h"

namespace dtg {

struct Recovered {
  uint64_t set = 0;       // the commit that the set was made after; 0: there was none
  uint64_t repeated = 0;  // commits made again from the log
  double seconds = 0;
};

struct Keeping {
  std::string directory;
  int64_t set_bytes = CommitLog::kSetBytes;
  bool waits_for_disk = true;
};

// Fills the task, which nobody uses yet, from the directory, makes that where it is not there, and lets the task write on in it.
// ALREADY_EXISTS while another server uses it, DATA_LOSS where what was promised to be there is not.
Result<Recovered> recover(Task& task, const Keeping& keeping, Ref<RefCounted> owner);

}  // namespace dtg
