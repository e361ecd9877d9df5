// Who may be a worker.
#include "exec/worker_place.h"

namespace dtg {

Status WorkerPlace::take(const Presence::Roll& roll, int64_t worker, uint64_t session, std::string_view task) {
  if (taken_ && session != session_ && task != task_ && roll.has(session_)) {
    const auto named = [](std::string_view who) { return who.empty() ? std::string("a session that is no task") : std::string(who); };
    return failed_precondition(
        "worker %lld is %s, which is there, and %s says that it is that one too; give every worker a number of its own",
        static_cast<long long>(worker), named(task_).c_str(), named(task).c_str());
  }
  taken_ = true;
  session_ = session;
  if (task_ != task) task_ = task;
  return {};
}

}  // namespace dtg
