// Adds the nodes of bounded staleness. Called by the thread that builds the model.
#include "strategy/bounded.h"

#include <array>

#include "nn/scope.h"

namespace dtg {

Result<NodeId> BoundedSteps::add(NodeId* leave) {
  Graph& graph = model_.graph();
  constexpr const char* kName = "sync/clocks";
  if (const NamedVariable* const known = model_.find(kName)) {
    clocks_ = *known;
  } else {
    DTG_ASSIGN(clocks_, model_.add_variable({.name = kName,
                                             .dtype = DType::i64,
                                             .shape = Shape::of({replication_.total}),
                                             .initializer = Initializer::constant(-1),
                                             .trainable = false,
                                             .colocate = step_.handle.node(),
                                             .absolute = true}));
  }
  {
    const NameScope root(graph, "");
    const ColocationScope beside(graph, step_.handle.node());
    waiting_ = build_.op("_StepClocks", {}, {{"workers", int64_t{replication_.total}}, {"shared_name", "sync/waiting"}},
                         graph.unique_name("sync/waiting"));
  }
  const Value joined = ask("_JoinClocks", {}, {}, "join");
  const NodeId begun = set("ResourceScatterUpdate", joined, {}, "begin_clock");
  const Value may_begin = await({&begun, 1}, "may_begin");
  const NodeId gone = set("ResourceScatterUpdate", build_.integer(-1, DType::i64), {}, "end_clock");
  DTG_TRY(build_.status());
  const ColocationScope beside(graph, step_.handle.node());
  *leave = build_.node("_LeaveClocks", std::array{waiting_}, std::array{own_worker()}, "leave", {&gone, 1});
  DTG_TRY(build_.status());
  return may_begin.node();
}

Value BoundedSteps::ask(std::string_view op, std::span<const Attr> attrs, std::span<const NodeId> after, std::string_view name) {
  if (!build_.ok()) return {};
  const ColocationScope beside(model_.graph(), step_.handle.node());
  const Value now = build_.op("ReadVariableOp", std::array{clocks_.handle}, std::array{Attr{"dtype", DType::i64}}, {}, after);
  std::vector<Attr> all(attrs.begin(), attrs.end());
  all.push_back(own_worker());
  return build_.op(op, std::array{waiting_, now}, all, name);
}

Value BoundedSteps::await(std::span<const NodeId> after, std::string_view name) {
  const Attr staleness{"staleness", int64_t{replication_.staleness}};
  return ask("_AwaitClocks", {&staleness, 1}, after, name);
}

NodeId BoundedSteps::count(std::span<const NodeId> after) {
  return set("ResourceScatterAdd", build_.integer(1, DType::i64), after, "count_step");
}

// This worker's clock.
NodeId BoundedSteps::set(std::string_view op, Value to, std::span<const NodeId> after, std::string_view name) {
  if (!build_.ok()) return kNoNode;
  const ColocationScope beside(model_.graph(), step_.handle.node());
  return build_.node(op, std::array{clocks_.handle, build_.integer(replication_.worker), to},
                     std::array{Attr{"dtype", DType::i64}, Attr{"Tindices", DType::i32}}, name, after);
}

}  // namespace dtg
