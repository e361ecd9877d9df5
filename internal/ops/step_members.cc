// Elastic steps as private ops, which training adds (strategy/elastic.h): who contributes to a step, and who waits for it. They change
// nothing that is kept, so a run in which they are may be repeated.
//
//   _StepMembers    names who takes part and who waits
//   _ArriveAtStep   a worker has contributed: waits until the step is made; the step that comes then
//   _GatherStep     the update waits for all who are there: who contributes
//   _BeginStep      the step that is contributed to from now on
//   _LeaveSteps     nobody waits for a worker any more
//   _AskElement     waits until there is an element of data for a worker, or its epoch is over
//
// Where elements are dealt, the ledger says how often each has been in an update; whoever knows that no update is under way tells it.
#include "ops/step_members.h"

#include <algorithm>
#include <memory>

#include "exec/commits.h"
#include "exec/completion.h"
#include "exec/rights.h"
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
  int64_t elements = 0;  // as many as the ledger holds
};

Status handle_prepare(PrepareContext& c) {
  const int64_t workers = c.integer("workers");
  if (workers < 1 || workers > StepMembers::kWorkersMost)
    return c.error("%lld workers; give 1 to %lld", static_cast<long long>(workers), static_cast<long long>(StepMembers::kWorkersMost));
  const int64_t elements = c.integer("elements");
  if (elements < 0 || elements > Deal::kElementsMost) {
    return c.error("%lld elements of an epoch; give 0 to %lld", static_cast<long long>(elements),
                   static_cast<long long>(Deal::kElementsMost));
  }
  const Ref<Presence> presence = Presence::of(c.store());
  DTG_ASSIGN(Ref<Resource> found, c.named_resource(StepMembers::kKind, [&](const std::string& name) {
    const auto members = make_ref<StepMembers>(name, workers, presence->roll(), elements);
    presence->watch([members] { return members->review(); });
    return Ref<Resource>(members);
  }));
  const int64_t there = static_cast<const StepMembers&>(*found).workers();
  if (there != workers) {
    return c.error("attach to the members of steps in \"%s\": they are of %lld workers there and of %lld here", found->name().c_str(),
                   static_cast<long long>(there), static_cast<long long>(workers));
  }
  const int64_t dealt = static_cast<const StepMembers&>(*found).elements();
  if (dealt != elements) {
    return c.error("attach to the members of steps in \"%s\": %lld elements of an epoch are dealt there and %lld here; all workers say the "
                   "same",
                   found->name().c_str(), static_cast<long long>(dealt), static_cast<long long>(elements));
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
  if ((a.workers != 0 || a.elements != 0) && a.elements != members->elements()) {
    return c.error("%lld elements of an epoch, where \"%s\" deals %lld", static_cast<long long>(a.elements), members->name().c_str(),
                   static_cast<long long>(members->elements()));
  }
  return members;
}

uint64_t session_of(const RunContext& c) { return c.step().commits() ? c.step().commits()->writer() : Presence::kOwn; }

// As a worker that nobody else is.
Result<StepMembers*> members_as_worker(const RunContext& c) {
  DTG_ASSIGN(StepMembers* const members, members_at(c));
  const Rights* const rights = c.step().rights();
  DTG_TRY(members->claim(c.args<MemberArgs>().worker, session_of(c), rights ? std::string_view(rights->peer()) : std::string_view()));
  return members;
}

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

class AskOp final : public StepMembers::Asking {
 public:
  void expect(Completion done) { done_ = std::move(done); }

 private:
  void finished(Status status) override {
    if (status.ok()) {
      auto* const out = done_.context().out<int64_t>(0);
      out[0] = element.epoch;
      out[1] = element.index;
    }
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
      auto* const marks = done_.context().out<double>(2);
      const int64_t count = done_.context().args<MemberArgs>().elements;
      std::fill_n(marks, count, 0.0);
      for (const int64_t element : this->elements) {
        if (element >= 0 && element < count) marks[element] = 1;
      }
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
  const auto members = members_as_worker(c);
  if (!members.ok()) return refuse(c, done, members.status());
  auto op = std::make_unique<ArriveOp>();
  op->worker = c.args<MemberArgs>().worker;
  op->step = *c.in<int64_t>(1);
  op->now = *c.in<int64_t>(2);
  op->element = {c.in<int64_t>(3)[0], c.in<int64_t>(3)[1]};
  op->session = session_of(c);
  op->running = &c.step();
  op->expect(std::move(done));
  members.value()->start(op.release(), &c.step());
  return false;
}

bool ask_run(RunContext& c, Completion done) {
  const auto members = members_as_worker(c);
  if (!members.ok()) return refuse(c, done, members.status());
  if (members.value()->elements() == 0) return refuse(c, done, c.error("no elements are dealt in \"%s\"", members.value()->name().c_str()));
  auto op = std::make_unique<AskOp>();
  op->worker = c.args<MemberArgs>().worker;
  op->epoch = *c.in<int64_t>(1);
  op->session = session_of(c);
  op->running = &c.step();
  op->expect(std::move(done));
  members.value()->start(op.release(), &c.step());
  return false;
}

std::span<const double> times_at(const RunContext& c) { return {c.in<double>(2), static_cast<size_t>(c.args<MemberArgs>().elements)}; }

bool gather_run(RunContext& c, Completion done) {
  const auto members = members_at(c);
  if (!members.ok()) return refuse(c, done, members.status());
  auto op = std::make_unique<GatherOp>();
  op->step = *c.in<int64_t>(1);
  op->times = times_at(c);
  op->least = c.args<MemberArgs>().least;
  op->running = &c.step();
  op->expect(std::move(done));
  members.value()->start(op.release(), &c.step());
  return false;
}

Status begin_run(RunContext& c) {
  DTG_ASSIGN(StepMembers* const members, members_at(c));
  members->begin(*c.in<int64_t>(1), c.args<MemberArgs>().how, times_at(c));
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
  if (c.input(3).shape.count() != 2) return c.error("an element of %lld numbers", static_cast<long long>(c.input(3).shape.count()));
  return c.async_in_place(arrive_run);
}

Status ask_prepare(PrepareContext& c) {
  DTG_TRY(own_worker(c));
  return c.async_in_place(ask_run);
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
  a->elements = c.input(2).shape.count();
  return c.async_in_place(gather_run);
}

Status begin_prepare(PrepareContext& c) {
  const auto& how = c.attr<std::string>("how");
  c.args<MemberArgs>()->elements = c.input(2).shape.count();
  for (size_t i = 0; i < std::size(kBegins); ++i) {
    if (how == kBegins[i]) c.args<MemberArgs>()->how = static_cast<Begin>(i);
  }
  return c.sync(begin_run);
}

Status gather_shape(InferContext& c) {
  c.output(0, PartialShape::vector(c.integer("workers")));
  c.output(1, PartialShape::scalar());
  c.output(2, c.input(2));
  return {};
}

Status element_shape(InferContext& c) {
  c.output(0, PartialShape::vector(2));
  return {};
}

OpDef on_members(const char* name) { return OpDef::make(name).input("handle: resource").no_gradient().stateful(); }

void register_handle(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("_StepMembers")
              .output("handle: resource")
              .attr("workers: int")
              .attr("elements: int = 0")
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
              .input("element: int64", {.rank = 1})
              .output("next: int64")
              .attr("worker: int")
              .shape(scalar_shape)
              .access(Access::attend)
              .doc("Private: a worker has contributed to a step and waits until it is made, where it has not been; the step that is to be "
                   "contributed to then."));
  kernels.add({.op = "_ArriveAtStep", .prepare = arrive_prepare, .mode = KernelMode::blocking});
  ops.add(on_members("_GatherStep")
              .input("step: int64", {.rank = 0})
              .input("times: double", {.rank = 1})
              .output("members: bool")
              .output("count: int64")
              .output("dealt: double")
              .attr("workers: int")
              .attr("least: int = 1")
              .shape(gather_shape)
              .access(Access::consume)
              .doc("Private: waits until all workers that are there have contributed to the step, and `least` at least; who they are, "
                   "and 1 for each element that they brought. `times`: how often each has been in an update."));
  kernels.add({.op = "_GatherStep", .prepare = gather_prepare, .mode = KernelMode::blocking});
  ops.add(on_members("_BeginStep")
              .input("step: int64", {.rank = 0})
              .input("times: double", {.rank = 1})
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
  ops.add(on_members("_AskElement")
              .input("epoch: int64", {.rank = 0})
              .output("element: int64")
              .attr("worker: int")
              .shape(element_shape)
              .access(Access::attend)
              .doc("Private: waits until there is an element of an epoch for a worker, its epoch and its number, or until that epoch is "
                   "over: the one that is now, and -1. Epoch -1: whichever is now."));
  kernels.add({.op = "_AskElement", .prepare = ask_prepare, .mode = KernelMode::blocking});
}

}  // namespace dtg::ops
