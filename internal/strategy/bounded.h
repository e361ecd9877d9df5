// Bounded staleness: the nodes by which a worker counts its steps and waits until it may begin the next one (exec/step_clocks.h). The
// clocks and who waits for them stand beside the global step.
//
// Used while one thread builds the model. Errors stay until status() is asked.
#pragma once

#include <span>
#include <string_view>

#include "graph/build.h"
#include "strategy/replicas.h"

namespace dtg {

class BoundedSteps {
 public:
  BoundedSteps(Model& model, const NamedVariable& step, const Replication& replication)
      : model_(model), build_(model.graph()), step_(step), replication_(replication) {}
  const Status& status() const { return build_.status(); }

  // The clocks, and how the worker leaves; the node by which it has come and may begin.
  Result<NodeId> add(NodeId* leave);
  // Waits until the worker may begin its next step: its clock.
  Value await(std::span<const NodeId> after, std::string_view name);
  // It has made a step.
  NodeId count(std::span<const NodeId> after);

 private:
  Attr own_worker() const { return {"worker", int64_t{replication_.worker}}; }
  Value ask(std::string_view op, std::span<const Attr> attrs, std::span<const NodeId> after, std::string_view name);
  NodeId set(std::string_view op, Value to, std::span<const NodeId> after, std::string_view name);

  Model& model_;
  Build build_;
  const NamedVariable step_;
  const Replication replication_;
  NamedVariable clocks_;  // of all workers
  Value waiting_;         // and who waits for them
};

}  // namespace dtg
