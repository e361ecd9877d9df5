// RemoteClosure and RemoteValue: what a coordinator gives out to workers, and what comes back. A closure is a part of the session's graph
// and never code of the host: feeds, fetches and targets. Scheduled with tensors it is a remote value, which ends once: with the values of
// the fetches, or with an error.
//
// Owner: the host's handles and the coordinator, by count. Any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "graph/graph.h"
#include "session/completion_queue.h"

namespace dtg {

struct RemoteClosure final : RefCounted {
  uint64_t coordinator = 0;  // whose it is
  std::vector<Value> feeds;  // the last is `worker`, where that is asked for
  std::vector<Value> fetches;
  std::vector<NodeId> targets;
  bool feeds_worker = false;  // which worker it is, as an int64
  size_t inputs() const { return feeds.size() - (feeds_worker ? 1 : 0); }
};

class RemoteValue final : public RefCounted {
 public:
  // `queue` (may be null) is told of the end, with `tag`.
  RemoteValue(Ref<RemoteClosure> closure, std::vector<Tensor> inputs, Ref<CompletionQueue> queue, uint64_t tag)
      : closure_(std::move(closure)), queue_(std::move(queue)), tag_(tag), inputs_(std::move(inputs)) {
    if (queue_) queue_->expect();
  }

  // Waits for the end; its outcome, or why nobody waits any more: whose task that is, the caller knows.
  Status wait(const Clock& clock, Deadline deadline, Cancellation* cancellation);
  bool ended() const;
  // Of one that ended well. Every call gives the same memory.
  Result<std::vector<Tensor>> values() const;
  size_t value_count() const { return closure_->fetches.size(); }

 private:
  friend class Coordinator;
  // What it is scheduled with; nothing, and false, where it has ended meanwhile.
  bool read_inputs(std::vector<Tensor>* inputs) const;
  void end(Status outcome, std::vector<Tensor> values);

  const Ref<RemoteClosure> closure_;
  const Ref<CompletionQueue> queue_;
  const uint64_t tag_;
  // The coordinator's.
  uint64_t write_ = 0;             // what its writes are known by, from the first attempt on
  uint64_t started_ = 0;           // which start of all that was; 0: it did not start
  int strays_ = 0;                 // attempts that were cut short, and nobody was to blame
  std::vector<std::string> lost_;  // workers that were lost while they were at it
  mutable Condition told_;         // guards what follows
  std::vector<Tensor> inputs_;     // until the end
  bool ended_ = false;
  Status outcome_;
  std::vector<Tensor> values_;
};

}  // namespace dtg
