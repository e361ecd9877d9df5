// PartitionedPlan: what was asked of a session, ready to run: one part per task, each with the worker that runs it. The home
// part is that of this process: feeds enter and fetches leave there. In a cluster of one it is all there is.
//
// Owner: the session's cache, prepared callables and the runs under way, by count. Any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <optional>
#include <vector>

#include "cluster/run.h"
#include "cluster/worker.h"
#include "strategy/remedy.h"

namespace dtg {

class PartitionedPlan final : public RefCounted {
 public:
  struct Piece {
    Ref<Worker> worker;
    Worker::Part part;
  };
  // `owner` keeps what `host` points to.
  PartitionedPlan(Ref<RefCounted> owner, const Host& host, Ref<Graph> graph, PlanRequest request)
      : owner_(std::move(owner)), host_(host), graph_(std::move(graph)), request_(std::move(request)) {}
  ~PartitionedPlan() override;

  // What was asked, in terms of the session's graph.
  const PlanRequest& request() const { return request_; }
  const Graph& graph() const { return *graph_; }
  Plan& home() const { return *home_.part.plan; }
  bool is_current() const { return home_.worker->is_current(home_.part) && (others_.empty() || others_are_current()); }

  // None of the tasks was lost since it was made.
  bool is_connected() const {
    return std::ranges::all_of(others_, [](const Piece& piece) { return piece.part.link->is_open(); });
  }

  // Nobody is waited for, and it is over in some ten microseconds.
  bool is_brief() const { return others_.empty() && home().is_brief(); }
  // As the run says: until its end, or not.
  Status run(Run& run) { return home_.worker->run(home_.part, run); }
  // Do all tasks whose connections were lost come back with what they held?
  bool lost_keep_state() const;
  // For the run, when its step has begun: gives it its edges and has the other workers run their parts.
  Status begin(Run& run) { return others_.empty() ? Status() : begin_others(run); }
  // What may be done about a run that has ended. `anew`: the others knew nothing of their parts and nothing was done, so a plan that is
  // made anew may be tried. `again`: a connection was lost on the way; what took place is known by the number of the run, so that it may be
  // repeated under it, on a plan that is made anew. `afresh`: the same, of a run that is as any other when it is made once more, after a
  // run of first(). `once_more`: it ended well and came to nothing, and all of that holds.
  enum class Remedy : uint8_t { none, anew, again, afresh, once_more };
  // It changes something on other tasks; and a run of it may be made again, under the number of the first attempt.
  bool writes_elsewhere() const { return writes_elsewhere_; }
  bool is_repeatable() const { return is_repeatable_; }
  bool may_be_made_afresh() const { return repeats_.has_value(); }
  NodeId first(const Run& run) const;
  Remedy ended(const Run& run, const Status& status) { return others_.empty() ? Remedy::none : remedy(run, status); }

 private:
  friend class PlanMaking;
  Status begin_others(Run& run);
  bool others_are_current() const;
  Remedy remedy(const Run& run, const Status& status);

  const Ref<RefCounted> owner_;
  const Host host_;
  const Ref<Graph> graph_;
  const PlanRequest request_;
  Piece home_;
  std::vector<Piece> others_;   // the peers of a run, by number
  Ref<EdgeTable> edges_;        // of the home part; null in a cluster of one
  bool home_is_pure_ = false;   // it changes nothing, so it may run again
  bool is_repeatable_ = false;  // so may all of it, under one number
  bool writes_elsewhere_ = false;
  std::optional<dtg::Remedy> repeats_;  // of a run that may be made once more from its beginning
  std::atomic<bool> stale_{false};
};

}  // namespace dtg
