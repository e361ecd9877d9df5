// The private ops that the planner puts before and behind the writes of a part that are one unit.
#include "exec/commits.h"
#include "exec/step.h"
#include "graph/infer.h"
#include "ops/all.h"

namespace dtg::ops {
namespace {

bool enter_run(RunContext& c, Completion done) {
  Commits* const commits = c.step().commits();
  if (!commits) return done.dismiss(), true;
  commits->enter(c.args<CommitArgs>(), std::move(done));
  return false;
}

bool leave_run(RunContext& c, Completion done) {
  Commits* const commits = c.step().commits();
  if (!commits) return done.dismiss(), true;
  commits->leave(c.args<CommitArgs>(), std::move(done));
  return false;
}

template <AsyncFn fn>
Status prepare(PrepareContext& c) {
  auto* const args = c.args<CommitArgs>();
  args->phase = static_cast<uint32_t>(c.integer("phase"));
  args->strand = c.integer("strand");
  args->record = c.integer("record");
  std::vector<PrepareContext::Operand> values;
  for (int i = 0; i < c.num_inputs(); ++i) values.push_back(c.input(i));
  args->values = c.arena().copy(std::span<const PrepareContext::Operand>(values));
  return c.async_in_place(fn);
}

}  // namespace

void register_commit(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("_Commit")
              .input("values: T")
              .attr("T: list(type) >= 0")
              .attr("phase: int >= 0")
              .attr("strand: int = -1")
              .attr("record: int = -1")
              .shape(no_outputs)
              .no_gradient()
              .stateful()
              .role(Role::commit)
              .doc("Private: from here on the writes of that phase take place, all of them; they are made from these values."));
  ops.add(OpDef::make("_Committed")
              .attr("phase: int >= 0")
              .attr("strand: int = -1")
              .attr("record: int = -1")
              .shape(no_outputs)
              .no_gradient()
              .stateful()
              .role(Role::committed)
              .doc("Private: the writes of that phase have taken place."));
  kernels.add({.op = "_Commit", .prepare = prepare<enter_run>, .mode = KernelMode::blocking});
  kernels.add({.op = "_Committed", .prepare = prepare<leave_run>, .mode = KernelMode::blocking});
}

}  // namespace dtg::ops
