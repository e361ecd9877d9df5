// Adds the nodes of elastic steps. Called by the thread that builds the model.
#include "strategy/elastic.h"

#include <algorithm>
#include <array>

#include "nn/scope.h"

namespace dtg {

Result<NamedVariable> counting_variable(Model& model, std::string_view name, int64_t count, NodeId beside) {
  if (const NamedVariable* const known = model.find(name)) return *known;
  return model.add_variable({.name = std::string(name),
                             .dtype = DType::f64,
                             .shape = Shape::of({count}),
                             .initializer = Initializer::zeros(),
                             .trainable = false,
                             .colocate = beside,
                             .absolute = true});
}

ElasticSteps::ElasticSteps(Graph& graph, const NamedVariable& step, const Replication& replication, const NamedVariable* ledger,
                           NodeId home)
    : graph_(graph), build_(graph), step_(step), replication_(replication), home_(home) {
  if (ledger) ledger_ = *ledger;
  const NameScope root(graph_, "");
  {
    const ColocationScope beside(graph_, step_.handle.node());
    handle_ = build_.op("_StepMembers", {},
                        {{"workers", int64_t{replication_.total}}, {"elements", replication_.elements}, {"shared_name", "sync/members"}},
                        graph_.unique_name("sync/members"));
  }
  if (!ledger_ || !build_.ok()) return;
  const ColocationScope at_home(graph_, home_);
  const std::string name = "sync/element_dealt/" + std::to_string(replication_.worker);
  element_ =
      build_.op("VarHandleOp", {}, {{"dtype", DType::i64}, {"shape", Shape::of({2})}, {"shared_name", name}}, graph_.unique_name(name));
}

Value ElasticSteps::no_ledger() {
  const auto none = Tensor::allocate(DType::f64, Shape::of({0}));
  if (!none.ok()) build_.fail(none.status());
  return build_.ok() ? build_.constant(none.value()) : Value();
}

// What the ledger says while no update is under way.
Value ElasticSteps::read_ledger(std::string_view name) {
  if (!build_.ok()) return {};
  if (!ledger_) return no_ledger();
  const ColocationScope beside(graph_, ledger_->handle.node());
  return build_.op("ReadVariableOp", std::array{ledger_->handle}, std::array{Attr{"dtype", DType::f64}}, name);
}

Value ElasticSteps::read_step(std::span<const NodeId> after, std::string_view name) {
  if (!build_.ok()) return {};
  const ColocationScope beside(graph_, step_.handle.node());
  return build_.op("ReadVariableOp", std::array{step_.handle}, std::array{Attr{"dtype", DType::i64}}, name, after);
}

// The count is looked at behind the contribution: where it says that the step is over, the contribution came too late.
Value ElasticSteps::arrive(Value contributed_step, std::span<const NodeId> contributed) {
  const Value now = read_step(contributed, "step_on_arrival");
  Value element;
  if (build_.ok()) {
    const ColocationScope at_home(graph_, home_);
    element = element_.valid() ? build_.op("ReadVariableOp", std::array{element_}, std::array{Attr{"dtype", DType::i64}}, "element_brought")
                               : build_.ints({-1, -1}, DType::i64);
  }
  if (!build_.ok()) return {};
  const ColocationScope beside(graph_, step_.handle.node());
  return build_.op("_ArriveAtStep", std::array{handle_, contributed_step, now, element}, std::array{own_worker()}, "arrive");
}

NodeId ElasticSteps::deal(Value* epoch, Value* element) {
  if (!build_.ok()) return kNoNode;
  {
    const ColocationScope at_home(graph_, home_);
    *epoch = build_.op("Placeholder", {}, {{"dtype", DType::i64}, {"shape", PartialShape::scalar()}}, "epoch_to_deal");
  }
  if (!build_.ok()) return kNoNode;
  {
    const ColocationScope beside(graph_, step_.handle.node());
    *element = build_.op("_AskElement", std::array{handle_, *epoch}, std::array{own_worker()}, "ask_element");
  }
  if (!build_.ok()) return kNoNode;
  const ColocationScope at_home(graph_, home_);
  return build_.node("AssignVariableOp", std::array{element_, *element}, {}, "deal");
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
  // What the next step is made behind, its update brought itself.
  const bool tells = std::string_view(how) != "next";
  const Value times = tells ? read_ledger(std::string(name) + "_ledger") : no_ledger();
  if (!build_.ok()) return kNoNode;
  const ColocationScope beside(graph_, step_.handle.node());
  return build_.node("_BeginStep", std::array{handle_, step, times}, std::array{Attr{"how", std::string(how)}}, name, after);
}

Value ElasticSteps::gather() {
  gathered_step_ = read_step({}, "step_to_make");
  const Value times = read_ledger("ledger_to_make");
  if (!build_.ok()) return {};
  const ColocationScope beside(graph_, step_.handle.node());
  const Attr attrs[] = {{"workers", int64_t{replication_.total}}, {"least", int64_t{std::max(replication_.min_workers, 1)}}};
  members_ = build_.op("_GatherStep", std::array{handle_, gathered_step_, times}, attrs, "gather");
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

Gradient ElasticSteps::entering() {
  if (!build_.ok()) return {};
  const ColocationScope beside(graph_, ledger_->handle.node());
  return {.dense = build_.neg(members_.sibling(2)), .values = {}, .indices = {}, .dense_shape = {}};
}

}  // namespace dtg
