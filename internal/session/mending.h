// Mending: what has to be run before a target may be run again whose run was cut short by the loss of a task (strategy/remedy.h), when
// nobody waits for it. Where a task is lost meanwhile it begins again, after a pause, until it is through, a time has passed, or what is
// wrong will not pass.
//
// Owner: the run that is mended, and itself from start() until it has told. Any thread.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "session/levelling.h"
#include "session/session.h"

namespace dtg {

class Mending final : public Timer::Timeout {
 public:
  // `keeps_state`: the tasks that were lost come back with what they held. `pause_ns`: before it begins. `told`: once, on whatever thread.
  Mending(Ref<Session> session, Remedy remedy, Deadline until, bool keeps_state, int64_t pause_ns, std::function<void(Status)> told);
  void start();
  // It ends with `cause`, unless it has ended.
  void stop(const Status& cause);
  // Once it has told that it is through: the plan of its last run. What it did is lost with any of that plan's tasks.
  const Ref<PartitionedPlan>& last() const { return last_; }

 private:
  void ring() override { begin(); }
  void begin();
  void go_on(const std::vector<Tensor>& fetched);
  void part_ended(AsyncRun& part);
  void failed(Status status);
  void rest();
  void end(Status status);
  Status cause();

  const Ref<Session> session_;
  const Remedy remedy_;
  const Deadline until_;
  const bool keeps_state_;
  int64_t pause_ns_;
  std::optional<Levelling> levelling_;  // of the present try
  Ref<PartitionedPlan> last_;
  std::mutex mutex_;  // guards what follows
  std::function<void(Status)> told_;
  Status cause_;
  Ref<AsyncRun> part_;
  int64_t rests_until_ns_ = 0;  // 0: it does not
};

}  // namespace dtg
