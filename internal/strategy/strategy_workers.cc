// What replicas in several processes have in common: gradients that meet, one value out of all, levelling. See strategy.h for threads.
#include <algorithm>
#include <numeric>

#include "nn/scope.h"
#include "strategy/on_device.h"
#include "strategy/strategy.h"

namespace dtg {

Result<Value> Strategy::combine_workers(Reduce reduce, std::span<const Value> parts) {
  Build build(graph());
  const std::string purpose = over_replicas(reduce, static_cast<int64_t>(replicas()), in_order());
  WorkerCalls calls(build, *options_.workers, &instance_, purpose);
  Value made;
  if (in_order()) {
    const int64_t all = replicas_in_sync();
    const Value rows = build.op("Unpack", {calls.gather(build.op("Pack", parts))}, {{"num", all}, {"axis", 0}});
    std::vector<Value> each;
    for (int64_t i = 0; i < all && build.ok(); ++i) each.push_back(rows.sibling(static_cast<uint32_t>(i)));
    made = build.op("AddN", each);
  } else {
    made = calls.reduce(parts.size() == 1 ? parts[0] : add_up(build, parts, options_.devices), "Add");
  }
  if (build.ok() && reduce == Reduce::mean) made = build.div(made, build.like(made, static_cast<double>(replicas_in_sync())));
  DTG_TRY(build.status().with_context("reduce over the replicas of all workers"));
  return made;
}

// A gather is along the first axis, so another one changes places with it.
Result<Value> Strategy::gather_workers(Value value, int32_t axis) {
  Build build(graph());
  const int32_t rank = build.info(value).shape.rank(), place = axis < 0 ? axis + rank : axis;
  const std::string purpose = "gather along axis " + std::to_string(place);
  WorkerCalls calls(build, *options_.workers, &instance_, purpose);
  if (place == 0) {
    value = calls.gather(value);
  } else {
    std::vector<int64_t> swapped(static_cast<size_t>(rank));
    std::iota(swapped.begin(), swapped.end(), 0);
    std::swap(swapped[0], swapped[static_cast<size_t>(place)]);
    value = calls.gather(build.op("Transpose", {value, build.ints(swapped)}));
    value = build.op("Transpose", {value, build.ints(swapped)});
  }
  DTG_TRY(build.status().with_context("gather from all workers"));
  return value;
}

Result<Value> Strategy::value_of_first(Value value) {
  Build build(graph());
  const Value made = WorkerCalls(build, *options_.workers, &instance_, "value of the first replica").from_first(value);
  DTG_TRY(build.status().with_context("the first replica's value, for all workers"));
  return made;
}

// Dense gradients are added up here, or stacked where the order of all replicas counts; rows are put one behind the other. What the
// collectives give is complete before anything is applied, so that a worker that is lost on the way leaves a step undone as a whole.
Status Strategy::meet_workers(Reduce reduce, std::span<const std::vector<VariableGradient>> towers, std::vector<NodeId>* first,
                              std::vector<VariableGradient>* out) {
  TowerOptions here;
  here.reduce = Reduce::sum;
  here.follow = Reduce::sum;
  here.reduces_all = true;
  if (in_order()) {
    here.reducer = [this](Reduce, std::span<const std::vector<Value>> parts,
                          std::span<const NodeId> besides) -> Result<std::vector<Value>> {
      Build build(graph());
      std::vector<Value> made;
      for (size_t v = 0; v < parts.size(); ++v) {
        const ColocationScope beside(graph(), besides[v]);
        made.push_back(build.op("Pack", parts[v]));
      }
      DTG_TRY(build.status());
      return made;
    };
  }
  DTG_TRY(reduce_towers(*model_, here, towers, *out));
  AllReduce how = options_.workers->how;
  how.reduce = reduce;
  how.shares = static_cast<int32_t>(replicas());
  how.stacked = in_order();
  how.first_instance = instance_;
  DTG_ASSIGN(instance_, all_reduce_gradients(*model_, out, how, *first));
  for (const VariableGradient& each : *out) {
    for (const Value part : {each.gradient.dense, each.gradient.values, each.gradient.indices}) {
      if (part.valid()) first->push_back(part.node());
    }
  }
  return {};
}

Result<NodeId> Strategy::level() {
  DTG_TRY(cross("level the workers"));
  if (options_.workers) return dtg::level(*model_, *options_.workers, {});
  Build build(graph());
  const NodeId nothing = build.node("NoOp", {}, {}, "levelled");
  DTG_TRY(build.status());
  return nothing;
}

}  // namespace dtg
