// CollectiveDebts: what one run owes to groups of tasks, from its beginning to its end. Each group is that of the epoch in which the run
// began: what the run calls later counts there or nowhere. A run that ends before all is paid ends those epochs, at once, so that
// nobody waits for calls that do not come.
//
// Owner: the frame of the run, and the step while it may be aborted. Any thread.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "exec/collectives.h"
#include "exec/step.h"

namespace dtg {

class CollectiveDebts final : public RefCounted, private Step::Waiter {
 public:
  struct Debt {
    CollectiveDuty duty;
    Ref<CollectiveGroup> group;
    uint64_t epoch = 0;
    std::atomic<uint32_t> owed{0};
  };

  // Finds the groups. An error: the run cannot begin; what it owes to those that were found is owed all the same.
  Status take_on(const CollectiveDuties& duties);
  // From here on an end of the step is one of these epochs too.
  void listen(Step& step);
  // Null: nothing is owed to a group with that key.
  Debt* find(int32_t key);
  // Null: it owes nothing to a group of tasks.
  Poller* poller() const { return debts_.empty() || !debts_.front().group ? nullptr : debts_.front().group->poller(); }
  // The run has ended; whoever is owed something hears why.
  void settle(Step& step, const Status& why);

  // The calls that wait for other devices of this task, by key and instance; whoever uses it knows what they are.
  struct Meetings {
    std::mutex mutex;
    std::map<std::pair<int32_t, int32_t>, Ref<RefCounted>> open;
    std::map<std::pair<int32_t, int32_t>, std::string> callers;  // the device that calls an instance alone
  };
  Meetings& meetings() { return meetings_; }

 private:
  void aborted(const Status& cause) override;
  void tell(const Status& why);

  std::deque<Debt> debts_;  // constant once taken on, but for the counts
  Ref<CollectiveDebts> listed_;
  Meetings meetings_;
};

}  // namespace dtg
