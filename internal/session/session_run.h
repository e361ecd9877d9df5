// SessionRun: a run that a session drives, on behalf of a caller who waits or of one who does not. While it is under way it is on
// the session's list, so that the end of the session is its end, and the parts on other tasks run with it.
#pragma once

#include "cluster/partitioned_plan.h"

namespace dtg {

class Session;

class SessionRun : public Run {
 protected:
  SessionRun(Session& session, PartitionedPlan& plan, Caller caller, Deadline deadline, Cancellation* cancellation = nullptr);
  ~SessionRun() override = default;
  Status begun() override;
  void left() override;
  std::string fetch_name(size_t fetch) const override;

 private:
  friend class Session;
  Session& session_;
  PartitionedPlan& partitioned_;
  // The session's, under its lock.
  SessionRun* prev_ = nullptr;
  SessionRun* next_ = nullptr;
  bool listed_ = false;
  int held_ = 0;  // by those who stop it: until they let go it does not leave
};

}  // namespace dtg
