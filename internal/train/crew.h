// Crew: what the fit of one worker of a MultiWorkerMirrored strategy has of the fits of the others: the same values where something is
// decided by them, the place that the furthest of them has come to, and, when one was lost, all of them together again.
//
// Its calls are collectives of the group beside those of the graph; all workers make the same ones in the same order. Owner: the trainer.
// The thread that trains.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cluster/group.h"
#include "session/collective_run.h"
#include "session/session.h"
#include "strategy/workers.h"

namespace dtg {

class Crew final : public RefCounted {
 public:
  // `keeper` (may be null): what the group must not outlive.
  Crew(Ref<Group> group, Workers workers, Ref<RefCounted> keeper)
      : group_(std::move(group)), workers_(std::move(workers)), keeper_(std::move(keeper)) {}
  // Adds what levels the variables. Errors: FAILED_PRECONDITION where the model counts no steps, by which it is known who is ahead.
  Status prepare(Model& model);
  int rank() const { return workers_.rank; }
  // That which writes files.
  bool is_first() const { return workers_.rank == 0; }

  // Whether that is the end of the group's epoch, after which it may come together again, rather than an error of this worker's own.
  bool ends_by(const Status& why) const;
  // Waits for all to be there again. Errors: DEADLINE_EXCEEDED (who is missing, and why).
  Status form(const Clock& clock);
  // All variables as the worker has them whose model counts the most steps, and how many those are.
  Result<int64_t> level(Session& session, const Model& model);
  // What each worker says, by rank; all say so many numbers.
  Result<std::vector<std::vector<int64_t>>> gather(const Clock& clock, std::span<const int64_t> mine);
  // What that one has; the others bring what they like.
  Result<Tensor> from(const Clock& clock, int root, const Tensor& mine);
  Result<std::string> from(const Clock& clock, int root, const std::string& mine);
  // Whether any worker wishes so, asked before a step and answered behind it: it costs no round trip of its own.
  void ask(const Clock& clock, bool wishes);
  Result<bool> answer(const Clock& clock);

 private:
  Result<Tensor> call(const Clock& clock, CollectiveCall what);
  const Ref<Group> group_;
  const Workers workers_;
  const Ref<RefCounted> keeper_;
  NodeId level_ = kNoNode;
  Ref<CollectiveRun> asked_;
};

}  // namespace dtg
