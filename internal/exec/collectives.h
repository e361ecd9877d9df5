// Collectives: where the ops of a task find whom they reduce with. Groups of tasks are known here by their keys from the moment their
// task joins them; under a key that no group has had, the members are devices of this process, which meet in one run. What a group does
// is the cluster's business (cluster/group.h); kernels see only this.
//
// Owner: the task's resources, by count. Any thread.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "exec/resource.h"

namespace dtg {

struct CollectiveCall;
class Tensor;

// A group of tasks of which this one is a member.
class CollectiveGroup : public RefCounted {
 public:
  using Done = std::function<void(const Status&, const Tensor& result)>;

  virtual const std::string& name() const = 0;
  // Of the present epoch; 0: there is none.
  virtual int members() const = 0;
  // A call of an op. Calls of one instance count in the order in which they were started. It ends at the deadline, or before that after
  // `timeout_ns` (0: what the group has for such calls). `done` is called once, from any thread, if it was started.
  virtual Ref<RefCounted> make_call(CollectiveCall what, int32_t instance, int64_t timeout_ns, Deadline deadline, Done done) = 0;
  virtual void start_call(const Ref<RefCounted>& call) = 0;
  // Its run has ended: so does the epoch, for all, with what this member ended by.
  virtual void give_up_call(const Ref<RefCounted>& call, const Status& why) = 0;
  // A run of this member has ended before it came to all of its calls.
  virtual void run_failed(const Status& why) = 0;
};

class Collectives;

// What a plan owes to groups of tasks in each run.
struct CollectiveDuties {
  Ref<Collectives> where;  // null: it owes nothing
  std::vector<int32_t> keys;
  uint32_t calls = 0;
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
  // A run that owes calls begins.
  void run_began(const void* run);
  // A call that a run owes to a group has ended, or the group has and nothing is owed any more.
  void call_ended(const void* run);
  void group_ended(const void* run);
  // The run has ended. Groups that it still owes calls end too, as they wait for them.
  void run_ended(const void* run, const CollectiveDuties& duties, const Status& why);
  // Of devices of this process; made when they are first asked for.
  Ref<Resource> rounds(Ref<Resource> (*make)());

 private:
  struct Entry {
    std::vector<Ref<CollectiveGroup>> groups;
    Status gone;  // why there is none any more
  };
  mutable std::mutex mutex_;
  std::map<int32_t, Entry> entries_;
  static constexpr uint64_t kNoneOwed = uint64_t{1} << 32;
  std::map<const void*, uint64_t> ended_;  // of each run, the calls
  Ref<Resource> rounds_;
};

}  // namespace dtg
