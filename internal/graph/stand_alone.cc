// Copies the body node by node. See stand_alone.h.
#include "graph/stand_alone.h"

#include "graph/build.h"
#include "graph/copy_nodes.h"

namespace dtg {

Result<StandAlone> stand_alone(const OpTable& ops, const Function& function, std::span<const PartialShape> arguments,
                               std::span<const Tensor> captured) {
  StandAlone made;
  DTG_ASSIGN(made.graph, Graph::create(&ops));
  Build build(*made.graph);
  NodeCopier copier(function.graph(), *made.graph);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ValueInfo& info = function.argument_info(i);
    DTG_ASSIGN(const PartialShape shape, PartialShape::merge(info.shape, arguments[i], "an argument"));
    made.feeds.push_back(build.op("Placeholder", {}, {{"dtype", info.dtype}, {"shape", shape}}, "argument_" + std::to_string(i)));
    copier.stand_in(function.arguments()[i], made.feeds.back());
  }
  for (size_t i = 0; i < captured.size(); ++i) copier.stand_in(function.arguments()[arguments.size() + i], build.constant(captured[i]));
  DTG_TRY(build.status());
  for (const NodeId id : function.needed()) {
    if (!copier.has(function.graph().value(id))) DTG_TRY(copier.copy(id));
  }
  for (const Value result : function.results()) {
    DTG_ASSIGN(const Value there, copier[result]);
    // An argument that is handed on is no fetch of its own: a run does not fetch what it is fed.
    made.fetches.push_back(build.op("Identity", {there}));
  }
  DTG_TRY(build.status());
  return made;
}

}  // namespace dtg
