// Elastic steps as private ops, which training adds (strategy/elastic.h): who contributes to a step, and who waits for it. They change
// nothing that is kept, so a run in which they are may be repeated.
//
//   _StepMembers    names who takes part and who waits
//   _ArriveAtStep   a worker has contributed: waits until the step is made; the step that comes then
//   _GatherStep     the update waits for all who are there: who contributes
//   _BeginStep      the step that is contributed to from now on
//   _LeaveSteps     nobody waits for a worker any more
#include "ops/step_members.h"

#include <algorithm>
#include <memory>

#include "exec/commits.h"
#include "exec/completion.h"
#include "exec/step_members.h"
#include "graph/infer.h"

namespace dtg::ops {
namespace {

using Begin = StepMembers::Begin;
constexpr const char* kBegins[] = {"next", "again", "first"};

struct MemberArgs {
  int64_t worker = 0;
  int64_t least = 1;
  int64_t workers = 0;  // as many as the answer holds
  Begin how = Begin::next;
};

Status handle_prepare(PrepareContext& c) {
  const int64_t workers = c.integer("workers");
  if (workers < 1 || workers > StepMembers::kWorkersMost)
    return c.error("%lld workers; give 1 to %lld", static_cast<long long>(workers), static_cast<long long>(StepMembers::kWorkersMost));
  const Ref<Presence> presence = Presence::of(c.store());
  DTG_ASSIGN(Ref<Resource> found, c.named_resource(StepMembers::kKind, [&](const std::string& name) {
    const auto members = make_ref<StepMembers>(name, workers, presence->roll());
    presence->watch([members] { return members->review(); });
    return Ref<Resource>(members);
  }));
  const int64_t there = static_cast<const StepMembers&>(*found).workers();
  if (there != workers) {
    return c.error("attach to the members of steps in \"%s\": they are of %lld workers there and of %lld here", found->name().c_str(),
                   static_cast<long long>(there), static_cast<long long>(workers));
  }
  c.bind(0, std::move(found));
  return {};
}

Result<StepMembers*> members_at(const RunContext& c) {
  DTG_TRY(c.permitted(0));
  StepMembers* const members = resource_cast<StepMembers>(c.in<void>(0));
  if (!members) return c.error("input 0 is not the handle of the members of steps");
  const auto& a = c.args<MemberArgs>();
  if (a.worker >= members->workers() || (a.workers != 0 && a.workers != members->workers())) {
    return c.error("worker %lld of %lld, where \"%s\" has %lld", static_cast<long long>(a.worker), static_cast<long long>(a.workers),
                   members->name().c_str(), static_cast<long long>(members->workers()));
  }
  return members;
}

uint64_t session_of(const RunContext& c) { return c.step().commits() ? c.step().commits()->writer() : Presence::kOwn; }

class ArriveOp final : public StepMembers::Arrival {
 public:
  void expect(Completion done) { done_ = std::move(done); }

 private:
  void finished(Status status) override {
    if (status.ok()) *done_.context().out<int64_t>(0) = next;
    done_.done(std::move(status));
  }

  Completion done_;
};

class GatherOp final : public StepMembers::Gathering {
 public:
  void expect(Completion done) { done_ = std::move(done); }

 private:
  void finished(Status status) override {
    if (status.ok()) {
      std::ranges::copy(members, done_.context().out<uint8_t>(0));
      *done_.context().out<int64_t>(1) = std::ranges::count(members, uint8_t{1});
    }
    done_.done(std::move(status));
  }

  Completion done_;
};

bool refuse(RunContext& c, Completion& done, Status status) {
  c.set_status(std::move(status));
  done.dismiss();
  return true;
}

bool arrive_run(RunContext& c, Completion done) {
  const auto members = members_at(c);
  if (!members.ok()) return refuse(c, done, members.status());
  auto op = std::make_unique<ArriveOp>();
  op->worker = c.args<MemberArgs>().worker;
  op->step = *c.in<int64_t>(1);
  op->now = *c.in<int64_t>(2);
  op->session = session_of(c);
  op->running = &c.step();
  op->expect(std::move(done));
  members.value()->start(op.release(), &c.step());
  return false;
}

bool gather_run(RunContext& c, Completion done) {
  const auto members = members_at(c);
  if (!members.ok()) return refuse(c, done, members.status());
  auto op = std::make_unique<GatherOp>();
  op->step = *c.in<int64_t>(1);
  op->least = c.args<MemberArgs>().least;
  op->running = &c.step();
  op->expect(std::move(done));
  members.value()->start(op.release(), &c.step());
  return false;
}

Status begin_run(RunContext& c) {
  DTG_ASSIGN(StepMembers* const members, members_at(c));
  members->begin(*c.in<int64_t>(1), c.args<MemberArgs>().how);
  return {};
}

Status leave_run(RunContext& c) {
  DTG_ASSIGN(StepMembers* const members, members_at(c));
  members->leave(c.args<MemberArgs>().worker);
  return {};
}

Status own_worker(PrepareContext& c) {
  c.args<MemberArgs>()->worker = c.integer("worker");
  return c.args<MemberArgs>()->worker < 0 ? c.error("worker %lld", static_cast<long long>(c.integer("worker"))) : Status();
}

Status arrive_prepare(PrepareContext& c) {
  DTG_TRY(own_worker(c));
  return c.async_in_place(arrive_run);
}

Status leave_prepare(PrepareContext& c) {
  DTG_TRY(own_worker(c));
  return c.sync(leave_run);
}

Status gather_prepare(PrepareContext& c) {
  auto* const a = c.args<MemberArgs>();
  a->workers = c.integer("workers");
  a->least = c.integer("least");
  if (a->workers < 1 || a->workers > StepMembers::kWorkersMost || a->least < 1 || a->least > a->workers) {
    return c.error("at least %lld of %lld workers; give 1 or more, and no more than there are", static_cast<long long>(a->least),
                   static_cast<long long>(a->workers));
  }
  return c.async_in_place(gather_run);
}

Status begin_prepare(PrepareContext& c) {
  const auto& how = c.attr<std::string>("how");
  for (size_t i = 0; i < std::size(kBegins); ++i) {
    if (how == kBegins[i]) c.args<MemberArgs>()->how = static_cast<Begin>(i);
  }
  return c.sync(begin_run);
}

Status gather_shape(InferContext& c) {
  c.output(0, PartialShape::vector(c.integer("workers")));
  c.output(1, PartialShape::scalar());
  return {};
}

OpDef on_members(const char* name) { return OpDef::make(name).input("handle: resource").no_gradient().stateful(); }

void register_handle(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("_StepMembers")
              .output("handle: resource")
              .attr("workers: int")
              .attr("container: string = ''")
              .attr("shared_name: string = ''")
              .shape(scalar_shape)
              .no_gradient()
              .stateful()
              .role(Role::handle)
              .transient()
              .doc("Private: names those who contribute to steps that are made with whoever is there."));
  kernels.add({.op = "_StepMembers", .prepare = handle_prepare, .mode = KernelMode::host});
}

}  // namespace

void register_step_members(OpTable& ops, KernelTable& kernels) {
  register_handle(ops, kernels);
  ops.add(on_members("_ArriveAtStep")
              .input("step: int64", {.rank = 0})
              .input("now: int64", {.rank = 0})
              .output("next: int64")
              .attr("worker: int")
              .shape(scalar_shape)
              .access(Access::attend)
              .doc("Private: a worker has contributed to a step and waits until it is made, where it has not been; the step that is to be "
                   "contributed to then."));
  kernels.add({.op = "_ArriveAtStep", .prepare = arrive_prepare, .mode = KernelMode::blocking});
  ops.add(on_members("_GatherStep")
              .input("step: int64", {.rank = 0})
              .output("members: bool")
              .output("count: int64")
              .attr("workers: int")
              .attr("least: int = 1")
              .shape(gather_shape)
              .access(Access::consume)
              .doc("Private: waits until all workers that are there have contributed to the step, and `least` at least; who they are."));
  kernels.add({.op = "_GatherStep", .prepare = gather_prepare, .mode = KernelMode::blocking});
  ops.add(on_members("_BeginStep")
              .input("step: int64", {.rank = 0})
              .attr("how: {'next', 'again', 'first'} = 'next'")
              .shape(no_outputs)
              .access(Access::attend)
              .doc("Private: the step that is contributed to from now on; `again` and `first`: by everybody anew."));
  kernels.add({.op = "_BeginStep", .prepare = begin_prepare, .mode = KernelMode::host});
  ops.add(on_members("_LeaveSteps")
              .attr("worker: int")
              .shape(no_outputs)
              .access(Access::attend)
              .doc("Private: nobody waits for a worker any more."));
  kernels.add({.op = "_LeaveSteps", .prepare = leave_prepare, .mode = KernelMode::host});
}

}  // namespace dtg::ops
