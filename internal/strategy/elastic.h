// Elastic steps: the nodes by which workers and the chief agree on who contributes to a step (exec/step_members.h). They stand beside the
// global step; what is taken stands beside its accumulator.
//
// Used while one thread builds the model. Errors stay until status() is asked.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "graph/build.h"
#include "strategy/replicas.h"

namespace dtg {

// The model's variable of that name, in which updates count: a float64 for each of so many.
Result<NamedVariable> counting_variable(Model& model, std::string_view name, int64_t count, NodeId beside);

class ElasticSteps {
 public:
  // `ledger`: by element, how often it has been in an update; null where none are dealt. `home`: a node on the worker.
  ElasticSteps(Graph& graph, const NamedVariable& step, const Replication& replication, const NamedVariable* ledger, NodeId home);
  const Status& status() const { return build_.status(); }

  // A worker, behind the nodes by which it contributes: the step that comes when the one is made that it contributed to.
  Value arrive(Value contributed_step, std::span<const NodeId> contributed);
  NodeId leave();
  // A run of its own, before a step: asks for an element, which the step then brings. `epoch` is fed, `element` may be fetched.
  NodeId deal(Value* epoch, Value* element);
  // Runs before a step of the worker is made once more; `back`: where the step was made and only its end got lost.
  NodeId look_again();
  Value step_before();

  // The chief. `how`: as the op _BeginStep says it.
  NodeId begin(Value step, const char* how, std::span<const NodeId> after, std::string_view name);
  // Waits for all who are there; bool by worker. What follows is made from that.
  Value gather();
  Gradient take(const VariableGradient& each, Value accumulator, int32_t worker);
  Value count() const { return members_.sibling(1); }
  // A gradient that moves the variable, an element per worker, by one for each member.
  Gradient counting(const NamedVariable& contributions);
  // And one that moves the ledger, by one for each element that they brought.
  Gradient entering();

 private:
  Value read_step(std::span<const NodeId> after, std::string_view name);
  Value read_ledger(std::string_view name);
  Value no_ledger();
  Attr own_worker() const { return {"worker", int64_t{replication_.worker}}; }

  Graph& graph_;
  Build build_;
  const NamedVariable step_;
  const Replication replication_;
  const NodeId home_;
  std::optional<NamedVariable> ledger_;
  Value handle_;
  Value element_;  // handle: the element that the worker brings, its epoch and its number; a variable of this worker alone
  Value gathered_step_;
  Value members_;
};

}  // namespace dtg
