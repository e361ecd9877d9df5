// WorkerPlace: whose the number of a worker is, where steps wait for workers. Two tasks that both say they are worker 1 would take each
// other's steps for their own, and the work of one would be lost without a word: so a number is one task's, as long as a session of that
// task is there.
//
// Owner: what waits for workers. Under its lock.
#pragma once

#include <string>
#include <string_view>

#include "exec/presence.h"

namespace dtg {

class WorkerPlace final {
 public:
  // That session, of a task ("" where it speaks for none), is the worker from now on. FAILED_PRECONDITION: another task is, and is there.
  Status take(const Presence::Roll& roll, int64_t worker, uint64_t session, std::string_view task);
  // Anybody may be that worker.
  void give_up() { taken_ = false; }

 private:
  bool taken_ = false;
  uint64_t session_ = Presence::kOwn;
  std::string task_;
};

}  // namespace dtg
