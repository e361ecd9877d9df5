// Gradients that are added up over several steps, as Keras' gradient_accumulation_steps: each step adds to "v/Accumulated", and the last of
// them applies the mean and begins anew, in the branch of an If. The thread that builds.
#include "nn/clipping.h"
#include "nn/scope.h"
#include "nn/updates.h"

namespace dtg {
namespace {

// The branches give a number, so that others can come after them.
constexpr double kDone = 1;

}  // namespace

// What the branches share is made before them: slots, and the gradients as dense ones.
Result<std::vector<VariableGradient>> Updates::add_up(std::span<const VariableGradient> gradients) {
  std::vector<VariableGradient> weights;
  for (const VariableGradient& each : gradients) {
    if (!each.gradient.any()) continue;
    if (each.share != 0) {  // what follows the batches does so at once
      DTG_TRY(update(each));
      continue;
    }
    const ColocationScope beside(graph(), place(each.variable));
    DTG_TRY(slot(each.variable, "Accumulated", 0).status());
    weights.push_back(each);
    weights.back().gradient = {.dense = densify(build(), each.gradient), .values = {}, .indices = {}, .dense_shape = {}};
  }
  DTG_TRY(build().status());
  return weights;
}

Result<Closure> Updates::apply_mean(std::span<const VariableGradient> weights) {
  DTG_ASSIGN(Ref<Graph> body, Graph::create_inside(Ref<Graph>::share(&model_.graph())));
  inside_.emplace(*body);
  struct Leave {
    std::optional<Build>& inside;
    ~Leave() { inside.reset(); }
  } leave{inside_};
  Build& b = *inside_;
  std::vector<VariableGradient> means(weights.begin(), weights.end());
  std::vector<NodeId> emptied;
  for (VariableGradient& each : means) {
    DTG_ASSIGN(const NamedVariable sum, slot(each.variable, "Accumulated", 0));
    const Value all = b.add(each.gradient.dense, sum.read);
    each.gradient.dense = b.div(all, number(each.variable, static_cast<double>(optimizer_.accumulation_steps)));
    emptied.push_back(b.node("AssignSubVariableOp", std::array{sum.handle, sum.read}));
  }
  DTG_TRY(b.status());
  DTG_TRY(clip_gradients(model_, optimizer_, means, nullptr, body.get()));
  DTG_TRY(update_all(means));
  DTG_TRY(advance(0, of_rule_));
  std::vector<NodeId> controls = updates_;
  for (const auto* more : {&advanced_, &emptied}) controls.insert(controls.end(), more->begin(), more->end());
  const Value done = b.scalar(DType::f32, kDone);
  DTG_TRY(b.status());
  return finish_function(std::move(body), "apply_mean", {done}, std::move(controls));
}

Result<Closure> Updates::only_add(std::span<const VariableGradient> weights) {
  DTG_ASSIGN(Ref<Graph> body, Graph::create_inside(Ref<Graph>::share(&model_.graph())));
  Build b(*body);
  std::vector<NodeId> controls;
  for (const VariableGradient& each : weights) {
    DTG_ASSIGN(const NamedVariable sum, slot(each.variable, "Accumulated", 0));
    controls.push_back(b.node("AssignAddVariableOp", std::array{sum.handle, each.gradient.dense}));
  }
  const Value done = b.scalar(DType::f32, kDone);
  DTG_TRY(b.status());
  return finish_function(std::move(body), "only_add", {done}, std::move(controls));
}

// Each copy has an If of its own, on its device, with a count of its own.
Status Updates::accumulate(std::span<const VariableGradient> gradients) {
  DTG_ASSIGN(const std::vector<VariableGradient> weights, add_up(gradients));
  std::vector<NodeId> done = updates_;  // what followed the batches
  for (size_t copy = 0;; ++copy) {
    std::vector<VariableGradient> here;
    for (const VariableGradient& each : weights) {
      if (each.variable.copy == copy) here.push_back(each);
    }
    if (here.empty()) break;
    updates_.clear();
    DTG_TRY(accumulate_copy(here, copy));
    done.insert(done.end(), updates_.begin(), updates_.end());
  }
  updates_ = std::move(done);
  return advance(of_rule_, counters_.size());
}

Status Updates::accumulate_copy(std::span<const VariableGradient> weights, size_t copy) {
  const Value past = counters_.back().variable.at_replica(copy).read;
  const Value steps = build().like(past, static_cast<double>(optimizer_.accumulation_steps));
  const Value now = build().add(past, build().like(past, 1));
  const Value rest = build().sub(now, build().mul(build().op("Floor", {build().div(now, steps)}), steps));
  const Value is_last = build().op("Equal", {rest, build().like(past, 0)});
  // Nothing is written before what comes first.
  const Value condition = build().op("Identity", std::array{is_last}, {}, {}, first_);
  DTG_TRY(build().status());
  std::vector<NodeId> before;
  before.swap(first_);  // of the graph around
  only_copy_ = counters_.back().variable.copies.empty() ? 0 : copy;
  DTG_ASSIGN(Closure last, apply_mean(weights));
  DTG_ASSIGN(Closure others, only_add(weights));
  only_copy_ = SIZE_MAX;
  before.swap(first_);
  const std::string name = "accumulate" + (copy == 0 ? "" : "/replica_" + std::to_string(copy));
  DTG_ASSIGN(const std::vector<Value> done, add_if(model_.graph(), condition, std::move(last), std::move(others), name));
  updates_ = {done[0].node()};
  advanced_.clear();
  for (const VariableGradient& each : weights) {
    last_ = done[0].node();
    if (averages()) DTG_TRY(average(each.variable));
  }
  return {};
}

}  // namespace dtg
