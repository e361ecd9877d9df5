// CollectiveRun: one collective that a host has started, and whether it is over. A thread may wait for it, or its end is announced in a
// completion queue.
//
// Owner: the host's handle, and the group while it is under way. Any thread.
#pragma once

#include <atomic>

#include "base/condition.h"
#include "cluster/group.h"
#include "session/completion_queue.h"

namespace dtg {

class CollectiveRun final : public RefCounted {
 public:
  // `queue` may be null: then somebody waits.
  CollectiveRun(Ref<Group> group, Ref<CompletionQueue> queue, uint64_t tag)
      : group_(std::move(group)), queue_(std::move(queue)), tag_(tag) {}

  void start(CollectiveCall what, Deadline deadline);
  // The call ends by its deadline, so this does.
  Status wait(const Clock& clock);
  void cancel();
  // Once, when it has ended.
  Result<Tensor> take();

 private:
  void ended(const Status& why, const Tensor& result);

  const Ref<Group> group_;
  const Ref<CompletionQueue> queue_;
  const uint64_t tag_;
  Ref<GroupCall> call_;  // constant once started
  Condition changed_;    // guards what follows
  bool over_ = false;
  Status outcome_;
  Tensor result_;
  std::atomic<bool> told_{false};  // the same as over_, for who polls; after it outcome_ stays
};

// Forms the group, and waits until that is over. Errors: those of Group::form.
Status form_and_wait(Group& group, size_t least, const Clock& clock, Deadline deadline);

}  // namespace dtg
