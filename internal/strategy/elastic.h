// Elastic steps: the nodes by which workers and the chief agree on who contributes to a step (exec/step_members.h). They stand beside the
// global step; what is taken stands beside its accumulator.
//
// Used while one thread builds the model. Errors stay until status() is asked.
#pragma once

#include <span>
#include <string_view>

#include "graph/build.h"
#include "strategy/replicas.h"

namespace dtg {

class ElasticSteps {
 public:
  ElasticSteps(Graph& graph, const NamedVariable& step, const Replication& replication);
  const Status& status() const { return build_.status(); }

  // A worker, behind the nodes by which it contributes: the step that comes when the one is made that it contributed to.
  Value arrive(Value contributed_step, std::span<const NodeId> contributed);
  NodeId leave();
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

 private:
  Value read_step(std::span<const NodeId> after, std::string_view name);
  Attr own_worker() const { return {"worker", int64_t{replication_.worker}}; }

  Graph& graph_;
  Build build_;
  const NamedVariable step_;
  const Replication replication_;
  Value handle_;
  Value gathered_step_;
  Value members_;
};

}  // namespace dtg
