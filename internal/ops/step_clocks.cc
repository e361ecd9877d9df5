// Bounded staleness as private ops, which training adds (strategy/replicas.h): the clocks of the workers stand in a variable, and these
// look at them. They change nothing that is kept, so a run in which they are may be repeated.
//
//   _StepClocks    names who is there and who waits
//   _JoinClocks    a worker is there: the clock that it begins with
//   _AwaitClocks   waits until a worker may begin its next step
//   _LeaveClocks   nobody waits for a worker any more
#include "ops/step_clocks.h"

#include <memory>

#include "exec/commits.h"
#include "exec/completion.h"
#include "exec/rights.h"
#include "exec/step_clocks.h"
#include "graph/infer.h"

namespace dtg::ops {
namespace {

struct ClockArgs {
  int64_t worker = 0;
  int64_t staleness = 0;
  int64_t clocks = 0;  // in the variable
};

Status handle_prepare(PrepareContext& c) {
  const int64_t workers = c.integer("workers");
  if (workers < 1 || workers > StepClocks::kWorkersMost)
    return c.error("%lld workers; give 1 to %lld", static_cast<long long>(workers), static_cast<long long>(StepClocks::kWorkersMost));
  const Ref<Presence> presence = Presence::of(c.store());
  DTG_ASSIGN(Ref<Resource> found, c.named_resource(StepClocks::kKind, [&](const std::string& name) {
    const auto clocks = make_ref<StepClocks>(name, workers, presence->roll());
    presence->watch([clocks] { return clocks->review(); });
    return Ref<Resource>(clocks);
  }));
  const int64_t there = static_cast<const StepClocks&>(*found).workers();
  if (there != workers) {
    return c.error("attach to the clocks \"%s\": they are of %lld workers there and of %lld here", found->name().c_str(),
                   static_cast<long long>(there), static_cast<long long>(workers));
  }
  c.bind(0, std::move(found));
  return {};
}

// Shapes are known when this is asked, types are the definition's.
Status ask_prepare(PrepareContext& c, ClockArgs* args) {
  args->worker = c.integer("worker");
  if (args->worker < 0) return c.error("worker %lld", static_cast<long long>(args->worker));
  if (c.num_inputs() > 1) args->clocks = c.input(1).shape.count();
  return {};
}

Result<StepClocks*> clocks_at(const RunContext& c) {
  DTG_TRY(c.permitted(0));
  StepClocks* const clocks = resource_cast<StepClocks>(c.in<void>(0));
  if (!clocks) return c.error("input 0 is not the handle of clocks");
  const auto& a = c.args<ClockArgs>();
  if (a.worker >= clocks->workers() || (a.clocks != 0 && a.clocks != clocks->workers())) {
    return c.error("worker %lld and %lld clocks, where \"%s\" has %lld", static_cast<long long>(a.worker), static_cast<long long>(a.clocks),
                   clocks->name().c_str(), static_cast<long long>(clocks->workers()));
  }
  return clocks;
}

uint64_t session_of(const RunContext& c) { return c.step().commits() ? c.step().commits()->writer() : Presence::kOwn; }

Status join_run(RunContext& c) {
  DTG_ASSIGN(StepClocks* const clocks, clocks_at(c));
  const auto& a = c.args<ClockArgs>();
  const Rights* const rights = c.step().rights();
  DTG_TRY(clocks->claim(a.worker, session_of(c), rights ? std::string_view(rights->peer()) : std::string_view()));
  *c.out<int64_t>(0) = clocks->join(a.worker, session_of(c), {c.in<int64_t>(1), static_cast<size_t>(a.clocks)});
  return {};
}

Status leave_run(RunContext& c) {
  DTG_ASSIGN(StepClocks* const clocks, clocks_at(c));
  clocks->leave(c.args<ClockArgs>().worker);
  return {};
}

class AwaitOp final : public StepClocks::Wait {
 public:
  void expect(Completion done) { done_ = std::move(done); }

 private:
  void finished(Status status) override {
    if (status.ok()) *done_.context().out<int64_t>(0) = clock;
    done_.done(std::move(status));
  }

  Completion done_;
};

bool await_run(RunContext& c, Completion done) {
  const auto& a = c.args<ClockArgs>();
  const auto clocks = clocks_at(c);
  if (!clocks.ok()) {
    c.set_status(clocks.status());
    done.dismiss();
    return true;
  }
  auto op = std::make_unique<AwaitOp>();
  op->worker = a.worker;
  op->staleness = a.staleness;
  op->session = session_of(c);
  op->step = &c.step();
  const auto* const now = c.in<int64_t>(1);
  op->clocks.assign(now, now + a.clocks);
  op->expect(std::move(done));
  clocks.value()->start(op.release(), &c.step());
  return false;
}

Status join_prepare(PrepareContext& c) {
  DTG_TRY(ask_prepare(c, c.args<ClockArgs>()));
  return c.sync(join_run);
}

Status leave_prepare(PrepareContext& c) {
  DTG_TRY(ask_prepare(c, c.args<ClockArgs>()));
  return c.sync(leave_run);
}

Status await_prepare(PrepareContext& c) {
  auto* const a = c.args<ClockArgs>();
  DTG_TRY(ask_prepare(c, a));
  a->staleness = c.integer("staleness");
  if (a->staleness < 0) return c.error("a staleness of %lld; 0 or more steps", static_cast<long long>(a->staleness));
  return c.async_in_place(await_run);
}

}  // namespace

void register_step_clocks(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("_StepClocks")
              .output("handle: resource")
              .attr("workers: int")
              .attr("container: string = ''")
              .attr("shared_name: string = ''")
              .shape(scalar_shape)
              .no_gradient()
              .stateful()
              .role(Role::handle)
              .transient()
              .doc("Private: names those who wait until the slowest of them has come near enough."));
  kernels.add({.op = "_StepClocks", .prepare = handle_prepare, .mode = KernelMode::host});
  ops.add(OpDef::make("_JoinClocks")
              .input("handle: resource")
              .input("clocks: int64", {.rank = 1})
              .output("clock: int64")
              .attr("worker: int")
              .shape(scalar_shape)
              .no_gradient()
              .stateful()
              .access(Access::attend)
              .doc("Private: a worker is there from now on; the clock that it begins with."));
  kernels.add({.op = "_JoinClocks", .prepare = join_prepare, .mode = KernelMode::host});
  ops.add(OpDef::make("_AwaitClocks")
              .input("handle: resource")
              .input("clocks: int64", {.rank = 1})
              .output("clock: int64")
              .attr("worker: int")
              .attr("staleness: int = 0")
              .shape(scalar_shape)
              .no_gradient()
              .stateful()
              .access(Access::ask)
              .doc("Private: waits until no worker that is there is more than `staleness` behind; the worker's own clock."));
  kernels.add({.op = "_AwaitClocks", .prepare = await_prepare, .mode = KernelMode::blocking});
  ops.add(OpDef::make("_LeaveClocks")
              .input("handle: resource")
              .attr("worker: int")
              .shape(no_outputs)
              .no_gradient()
              .stateful()
              .access(Access::attend)
              .doc("Private: nobody waits for a worker any more."));
  kernels.add({.op = "_LeaveClocks", .prepare = leave_prepare, .mode = KernelMode::host});
}

}  // namespace dtg::ops
