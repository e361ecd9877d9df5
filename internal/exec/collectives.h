// Collectives: where the ops of a task find whom they reduce with. Groups of tasks are known here by their keys from the moment their
// task joins them; under a key that no group has had, the members are devices of this process, which meet in one run. What a group does
// is the cluster's business (cluster/group.h); kernels see only this.
//
// Owner: the task's resources, by count. Any thread.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/poller.h"
#include "exec/resource.h"

namespace dtg {

struct CollectiveCall;
struct Node;
class Tensor;

// A group of tasks of which this one is a member.
class CollectiveGroup : public RefCounted {
 public:
  using Done = std::function<void(const Status&, const Tensor& result)>;

  // Where this member stands: the present epoch (0: there was none yet) and how many members it has.
  struct Standing {
    uint64_t epoch = 0;
    int members = 0;
  };
  virtual const std::string& name() const = 0;
  // What a thread of the host can do while it waits for calls.
  virtual Poller* poller() = 0;
  virtual Standing standing() const = 0;
  // A call of an op, by a run that began in that epoch; in any other it fails. Calls of one instance count in the order in which they were
  // started. It ends at the deadline, or before that after `timeout_ns` (0: what the group has for such calls). `done` is called once,
  // from any thread, if it was started.
  virtual Ref<RefCounted> make_call(CollectiveCall what, int32_t instance, uint64_t epoch, int64_t timeout_ns, Deadline deadline,
                                    Done done) = 0;
  virtual void start_call(const Ref<RefCounted>& call) = 0;
  // Its run has ended: so does the epoch, for all, with what this member ended by.
  virtual void give_up_call(const Ref<RefCounted>& call, const Status& why) = 0;
  // A run of this member that began in that epoch has ended before all of its calls had; without an epoch: one that could not begin.
  // So does the epoch, where it is the present one.
  virtual void run_failed(std::optional<uint64_t> epoch, const Status& why) = 0;
};

class Collectives;

// What a plan owes to one group of tasks in each run.
struct CollectiveDuty {
  int32_t key = 0;
  int32_t size = 0;            // that its calls want the group to have: ranks of all tasks together
  int32_t devices = 1;         // of this task, that make each call together
  uint32_t calls = 0;          // each device's counts
  const Node* node = nullptr;  // the first of them; the plan keeps its graph
};

struct CollectiveDuties {
  Ref<Collectives> where;  // null: there are no collectives in it
  std::vector<CollectiveDuty> groups;
  uint64_t joins = 0;  // Collectives::joins() when it was planned
};

class Collectives final : public Resource {
 public:
  static constexpr std::string_view kKind = "collectives";
  // Those of a task.
  static Ref<Collectives> of(ResourceStore& store);
  Collectives() : Resource("collectives") {}
  const char* kind() const override { return kKind.data(); }
  void destroy(const Status&) override {}

  void join(int32_t key, Ref<CollectiveGroup> group);
  // The key stays the group's, so that ops fail, and do not meet somebody else.
  void leave(int32_t key, const CollectiveGroup& group, const Status& why);
  // Null: no group has ever had that key. An error: several have it, or all have been left.
  Result<Ref<CollectiveGroup>> find(int32_t key) const;
  // How often a group was joined: where that has changed, a key may mean somebody else.
  uint64_t joins() const { return joins_.load(std::memory_order_acquire); }
  // A run that would have called the groups with those keys could not begin. They wait for it, so their epochs end.
  void run_refused(const std::vector<int32_t>& keys, const Status& why) const;
  // Of devices of this process; made when they are first asked for.
  Ref<Resource> rounds(Ref<Resource> (*make)());

 private:
  struct Entry {
    std::vector<Ref<CollectiveGroup>> groups;
    Status gone;  // why there is none any more
  };
  mutable std::mutex mutex_;
  std::map<int32_t, Entry> entries_;
  std::atomic<uint64_t> joins_{0};
  Ref<Resource> rounds_;
};

}  // namespace dtg
