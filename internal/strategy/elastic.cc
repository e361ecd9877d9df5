// Adds the nodes of elastic steps. Called by the thread that builds the model.
#include "strategy/elastic.h"

#include <algorithm>
#include <array>

#include "nn/scope.h"

namespace dtg {

ElasticSteps::ElasticSteps(Graph& graph, const NamedVariable& step, const Replication& replication)
    : graph_(graph), build_(graph), step_(step), replication_(replication) {
  const NameScope root(graph_, "");
  const ColocationScope beside(graph_, step_.handle.node());
  handle_ = build_.op("_StepMembers", {}, {{"workers", int64_t{replication_.total}}, {"shared_name", "sync/members"}},
                      graph_.unique_name("sync/members"));
}

Value ElasticSteps::read_step(std::span<const NodeId> after, std::string_view name) {
  if (!build_.ok()) return {};
  const ColocationScope beside(graph_, step_.handle.node());
  return build_.op("ReadVariableOp", std::array{step_.handle}, std::array{Attr{"dtype", DType::i64}}, name, after);
}

// The count is looked at behind the contribution: where it says that the step is over, the contribution came too late.
Value ElasticSteps::arrive(Value contributed_step, std::span<const NodeId> contributed) {
  const Value now = read_step(contributed, "step_on_arrival");
  if (!build_.ok()) return {};
  const ColocationScope beside(graph_, step_.handle.node());
  return build_.op("_ArriveAtStep", std::array{handle_, contributed_step, now}, std::array{own_worker()}, "arrive");
}

NodeId ElasticSteps::leave() {
  if (!build_.ok()) return kNoNode;
  const ColocationScope beside(graph_, step_.handle.node());
  return build_.node("_LeaveSteps", std::array{handle_}, std::array{own_worker()}, "leave");
}

NodeId ElasticSteps::look_again() {
  const Value now = read_step({}, "step_after_loss");
  return now.valid() ? now.node() : kNoNode;
}

Value ElasticSteps::step_before() {
  const Value now = read_step({}, "step_made");
  return build_.op("Sub", {now, build_.integer(1, DType::i64)});
}

NodeId ElasticSteps::begin(Value step, const char* how, std::span<const NodeId> after, std::string_view name) {
  if (!build_.ok()) return kNoNode;
  const ColocationScope beside(graph_, step_.handle.node());
  return build_.node("_BeginStep", std::array{handle_, step}, std::array{Attr{"how", std::string(how)}}, name, after);
}

Value ElasticSteps::gather() {
  gathered_step_ = read_step({}, "step_to_make");
  if (!build_.ok()) return {};
  const ColocationScope beside(graph_, step_.handle.node());
  const Attr attrs[] = {{"workers", int64_t{replication_.total}}, {"least", int64_t{std::max(replication_.min_workers, 1)}}};
  members_ = build_.op("_GatherStep", std::array{handle_, gathered_step_}, attrs, "gather");
  return members_;
}

Gradient ElasticSteps::take(const VariableGradient& each, Value accumulator, int32_t worker) {
  if (!build_.ok()) return {};
  const ColocationScope beside(graph_, accumulator.node());
  const Value inputs[] = {accumulator, members_, gathered_step_};
  const Attr attrs[] = {{"dtype", each.variable.dtype}, {"shape", each.variable.shape}, {"worker", int64_t{worker}}};
  const std::string name = "take_" + each.variable.name + "_" + std::to_string(worker);
  const Value first = build_.op(each.gradient.is_rows() ? "_TakeRowsContribution" : "_TakeContribution", inputs, attrs, name);
  if (!build_.ok()) return {};
  if (!each.gradient.is_rows()) return {.dense = first, .values = {}, .indices = {}, .dense_shape = {}};
  return {.dense = {}, .values = first.sibling(1), .indices = first, .dense_shape = first.sibling(2)};
}

Gradient ElasticSteps::counting(const NamedVariable& contributions) {
  if (!build_.ok()) return {};
  const ColocationScope beside(graph_, contributions.handle.node());
  return {.dense = build_.neg(build_.cast(members_, contributions.dtype)), .values = {}, .indices = {}, .dense_shape = {}};
}

}  // namespace dtg
