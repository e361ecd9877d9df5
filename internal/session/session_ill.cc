// Session: looking for what made a loss no finite number. On the way of a failure only.
#include <algorithm>

#include "session/first_ill.h"
#include "session/session.h"

namespace dtg {

Status Session::with_first_ill(Status status, const RunArgs& args, Deadline until) {
  std::optional<IllSearch> search = IllSearch::of(*graph_, status, args.feeds, args.feed_tensors, args.targets);
  if (!search) return status;
  const Deadline end{std::min(until.at_ns, Deadline::after(runtime_->clock(), IllSearch::kTimeNs).at_ns)};
  for (std::span<const Value> wanted; !(wanted = search->wanted()).empty();) {
    std::vector<Tensor> values(wanted.size());
    if (run_aside({args.feeds, args.feed_tensors, wanted, {}, 0}, values, end).ok()) search->take(values);
    else search->give_up();
  }
  return search->answer();
}

Status Session::run_aside(const RunArgs& args, std::span<Tensor> fetched, Deadline until) {
  Ref<PartitionedPlan> plan;
  {
    DTG_TRY(begin_planning(until));
    const Turn turn{*this};
    DTG_ASSIGN(plan, driver_->make_plan(graph_, request_of(args), until, runtime_->clock().monotonic_ns()));
  }
  Attempts attempts;
  return run_once(*plan, args, fetched, until, attempts);
}

}  // namespace dtg
