// Collectives as kernels: a call of the task's group, or a part in a round of the devices of this process. Neither holds a thread. The
// step's memory stands in for tensors: what a call reads and writes stays until its instruction has ended, which is when the call has.
#include <algorithm>
#include <cmath>
#include <optional>

#include "collective/joined.h"
#include "collective/rounds.h"
#include "exec/collective_debts.h"
#include "exec/completion.h"
#include "graph/device_name.h"
#include "ops/collective.h"

namespace dtg::ops {
namespace {

struct CollectiveArgs {
  CollectivePart part;
  DType dtype = DType::invalid;
  Shape in, out;
  bool dynamic = false;  // memory for the result is not there yet
  bool result = true;    // there is one
  bool wide = false;     // the shape to receive, an operand, is int64
  int64_t rank_wanted = 0;
  int32_t size = 0;
  int32_t key = 0;
  int64_t timeout_ns = 0;
  bool instance_known = false;                 // when it was planned
  Algorithm algorithm = Algorithm::automatic;  // between tasks
  std::shared_ptr<const std::string> purpose;
  DeviceRank rank;
  std::string device, who;
  Ref<Collectives> collectives;
  Ref<Rounds> rounds;  // where no group of tasks has the key
};

Tensor over_memory(const void* data, DType dtype, const Shape& shape) {
  const int64_t bytes = shape.count() * dtype_size(dtype);
  return Tensor::over(Buffer::borrow(const_cast<void*>(data), bytes, nullptr, nullptr), dtype, shape);
}

CollectiveCall call_of(const RunContext& c, const CollectiveArgs& a) {
  CollectiveCall call;
  call.terms.kind = a.part.kind;
  call.terms.reduction = a.part.reduction;
  call.terms.algorithm = a.algorithm;
  call.terms.purpose = a.purpose;
  call.terms.open = !a.part.sends && a.part.kind == Collective::broadcast;
  // Nobody knows beforehand who sends.
  if (a.part.kind == Collective::broadcast) call.terms.root = CallTerms::kAnyRoot;
  call.terms.dtype = a.dtype;
  if (a.part.sends) {
    call.terms.shape = a.in;
    call.in = over_memory(c.in<void>(0), a.dtype, a.in);
  }
  if (a.result && !a.dynamic) call.out = over_memory(c.out<void>(0), a.dtype, a.out);
  return call;
}

// Of a broadcast's result.
Result<Shape> wanted_shape(const RunContext& c, const CollectiveArgs& a) {
  if (a.part.sends) return a.in;
  std::vector<int64_t> dims;
  const int at = a.part.size_at + 3;
  for (int64_t i = 0; i < a.rank_wanted; ++i) dims.push_back(a.wide ? c.in<int64_t>(at)[i] : c.in<int32_t>(at)[i]);
  return Shape::make(dims);
}

Status give_result(RunContext c, const CollectiveArgs& a, const Tensor& result) {
  if (!a.result || !a.dynamic) return {};
  if (!result.valid()) return internal_error("a collective ended without its result");
  const bool sent = a.part.kind == Collective::broadcast;
  DTG_ASSIGN(const Shape shape, sent ? wanted_shape(c, a) : result.shape());
  if (shape.count() != result.count()) {
    return c.error("%lld elements were sent, but a tensor of shape %s is to be received", static_cast<long long>(result.count()),
                   shape.text().c_str());
  }
  c.set_output(0, result.data(), shape, result.buffer());
  return {};
}

// ---- between tasks -----------------------------------------------------------------------------------------

// The devices of this task that make one call together; mostly there is one. Who comes waits, without a thread, until all are there.
class GroupOp final : public RefCounted, private Step::Waiter {
 public:
  GroupOp(Step& step, CollectiveDebts::Debt& debt, int32_t instance, int64_t timeout_ns)
      : step_(step), debt_(debt), instance_(instance), timeout_ns_(timeout_ns) {}

  // False when the step is over; `done` is the caller's again then.
  bool enter(const CollectiveArgs& args, CollectiveCall call, Completion& done) {
    bool full = false;
    {
      const std::lock_guard lock(mutex_);
      if (over_) return false;
      if (members_.empty()) {
        listed_ = Ref<GroupOp>::share(this);
        if (!step_.add(this)) {
          listed_ = nullptr;
          return false;
        }
      }
      const auto at = std::ranges::lower_bound(members_, args.rank, {}, [](const auto& each) { return each->args.rank; });
      auto member = std::make_unique<Member>(Member{args, {std::move(call), args.who}, std::move(done)});
      members_.insert(at, std::move(member));
      full = members_.size() == static_cast<size_t>(debt_.duty.devices);
      if (full) leave_meeting();
    }
    if (full) start();
    return true;
  }

 private:
  struct Member {
    const CollectiveArgs& args;
    JoinedPart part;
    Completion done;
  };

  // Those that come later do so for the next call.
  void leave_meeting() {
    if (debt_.duty.devices == 1) return;
    CollectiveDebts::Meetings& meetings = step_.debts()->meetings();
    const std::lock_guard lock(meetings.mutex);
    const auto at = meetings.open.find({debt_.duty.key, instance_});
    if (at != meetings.open.end() && at->second.get() == this) meetings.open.erase(at);
  }

  std::vector<JoinedPart*> parts() const {
    std::vector<JoinedPart*> parts;
    for (const auto& member : members_) parts.push_back(&member->part);
    return parts;
  }

  // All are there; nobody enters any more.
  void start() {
    const Ref<GroupOp> self = Ref<GroupOp>::share(this);
    Result<CollectiveCall> joined = join_calls(parts(), tasks());
    if (!joined.ok()) return ended(joined.status(), {});
    Ref<RefCounted> call = debt_.group->make_call(joined.take(), instance_, debt_.epoch, timeout_ns_, step_.deadline(),
                                                  [self](const Status& status, const Tensor& result) { self->ended(status, result); });
    {
      const std::lock_guard lock(mutex_);
      if (!over_) call_ = call;
      else call = nullptr;
    }
    // The abort that came meanwhile has left the ends to this thread.
    if (call) debt_.group->start_call(call);
    else ended(step_.cause(), {});
  }

  void aborted(const Status& cause) override {
    const Ref<GroupOp> self = std::move(listed_);
    Ref<RefCounted> call;
    bool waits = false;
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
      call = call_;
      waits = members_.size() < static_cast<size_t>(debt_.duty.devices);
      if (waits) leave_meeting();
    }
    if (call) debt_.group->give_up_call(call, cause);
    else if (waits) ended(cause, {});
  }

  void ended(Status status, const Tensor& result) {
    // Where the abort was first, it drops its reference itself.
    if (step_.remove(this)) listed_ = nullptr;
    if (status.ok()) status = hand_out(parts(), tasks(), result);
    if (status.code() == Code::deadline_exceeded && call_) step_.explain_lateness(status);
    // With the last of them the run may be over, and the debt with it.
    auto members = std::move(members_);
    CollectiveDebts::Debt& debt = debt_;
    if (status.ok()) debt.owed.fetch_sub(static_cast<uint32_t>(members.size()));
    for (const auto& member : members) {
      Completion done = std::move(member->done);
      done.done(status.ok() ? give_result(done.context(), member->args, member->part.call.out) : status);
    }
  }

  int tasks() const { return debt_.duty.size / debt_.duty.devices; }

  Step& step_;
  CollectiveDebts::Debt& debt_;
  const int32_t instance_;
  const int64_t timeout_ns_;
  std::mutex mutex_;                              // guards what follows until all are there
  std::vector<std::unique_ptr<Member>> members_;  // by rank
  bool over_ = false;                             // the step is
  Ref<RefCounted> call_;
  Ref<GroupOp> listed_;  // while the step may abort it
};

// The call that this device takes part in; an error where another device has made one of that instance that it needs nobody else for.
Result<Ref<GroupOp>> op_of(RunContext& c, const CollectiveArgs& a, CollectiveDebts::Debt& debt, int32_t instance) {
  Step& step = c.step();
  const std::pair<int32_t, int32_t> which{a.key, instance};
  CollectiveDebts::Meetings& meetings = step.debts()->meetings();
  const std::lock_guard lock(meetings.mutex);
  if (debt.duty.devices == 1) {
    // What the plan did not know.
    const auto [at, fresh] = a.instance_known ? std::pair(meetings.callers.end(), true) : meetings.callers.emplace(which, a.device);
    if (fresh || at->second == a.device) return make_ref<GroupOp>(step, debt, instance, a.timeout_ns);
    return c.error("instance %d of group %d is called by %s too, and group_size %d is one device of each task", static_cast<int>(instance),
                   static_cast<int>(a.key), at->second.c_str(), static_cast<int>(a.size));
  }
  Ref<RefCounted>& open = meetings.open[which];
  if (!open) open = Ref<RefCounted>(make_ref<GroupOp>(step, debt, instance, a.timeout_ns));
  return Ref<GroupOp>::share(static_cast<GroupOp*>(open.get()));
}

Status start_in_group(RunContext& c, const CollectiveArgs& a, int32_t instance, Completion& done) {
  CollectiveDebts* const debts = c.step().debts();
  CollectiveDebts::Debt* const debt = debts ? debts->find(a.key) : nullptr;
  if (!debt) return c.error("the group with the key %d was joined while this run was under way; run it again", static_cast<int>(a.key));
  DTG_ASSIGN(const Ref<GroupOp> op, op_of(c, a, *debt, instance));
  return op->enter(a, call_of(c, a), done) ? Status() : c.step().cause();
}

// ---- in this process ---------------------------------------------------------------------------------------

class RoundOp final : public Rounds::Part {
 public:
  RoundOp(const CollectiveArgs& args, Completion done) : args_(args), done_(std::move(done)) {}

 private:
  void ended(Status status) override {
    if (status.ok()) status = give_result(done_.context(), args_, call.out);
    done_.done(std::move(status));
  }
  const CollectiveArgs& args_;
  Completion done_;
};

void start_round(RunContext& c, const CollectiveArgs& a, int32_t instance, Completion done) {
  auto op = std::make_unique<RoundOp>(a, std::move(done));
  op->group = a.key;
  op->instance = instance;
  op->size = a.size;
  op->rank = a.rank;
  op->who = a.who;
  op->call = call_of(c, a);
  op->run = &c.step();
  op->pool = &c.pool();
  a.rounds->start(op.release(), &c.step());
}

bool collective_run(RunContext& c, Completion done) {
  const auto& a = c.args<CollectiveArgs>();
  const int32_t instance = *c.in<int32_t>(a.part.size_at + 2);
  if (a.rounds) {
    start_round(c, a, instance, std::move(done));
    return false;
  }
  Status status = start_in_group(c, a, instance, done);
  if (status.ok()) return false;
  done.dismiss();
  c.set_status(std::move(status));
  return true;
}

// ---- prepare -----------------------------------------------------------------------------------------------

Result<int32_t> known_key(const PrepareContext& c, int input, const char* name) {
  const Tensor value = c.constant(input);
  if (value.valid()) return static_cast<int32_t>(value.int_at(0));
  return unimplemented("%s of \"%s\" is known only when it runs; make it a constant", name, std::string(c.node().name).c_str());
}

// What the hint asks for; one that is not known here ("nccl") asks for nothing.
Algorithm hinted(const PrepareContext& c, const CollectivePart& part) {
  if (part.kind != Collective::all_reduce) return Algorithm::automatic;
  return algorithm_of(c.attr<std::string>("communication_hint")).value_or(Algorithm::automatic);
}

void prepare_round(CollectiveArgs& a) {
  const Ref<Resource> rounds = a.collectives->rounds([] { return Ref<Resource>(make_ref<Rounds>()); });
  a.rounds = Ref<Rounds>::share(static_cast<Rounds*>(rounds.get()));
}

}  // namespace

Status collective_prepare(PrepareContext& c) {
  auto* const a = c.args<CollectiveArgs>();
  DTG_ASSIGN(a->part, collective_part(c.node()));
  DTG_ASSIGN(a->size, known_key(c, a->part.size_at, "group_size"));
  DTG_ASSIGN(a->key, known_key(c, a->part.size_at + 1, "group_key"));
  if (a->size < 1) return c.error("group_size is %d; a group has at least one member", static_cast<int>(a->size));
  const double seconds = c.attr<double>("timeout_seconds");
  if (!(seconds >= 0) || seconds > 1e9) return c.error("timeout_seconds is %g; it must be from 0 (none) to 1e9", seconds);
  a->timeout_ns = static_cast<int64_t>(std::ceil(seconds * 1e9));
  a->algorithm = hinted(c, a->part);
  const std::string& purpose = c.attr<std::string>("_purpose");
  if (purpose.size() > CallTerms::kPurposeMax)
    return c.error("_purpose has %zu letters; %zu is the most", purpose.size(), CallTerms::kPurposeMax);
  if (!purpose.empty()) a->purpose = std::make_shared<const std::string>(purpose);
  a->result = c.num_outputs() > 0;
  if (a->part.sends) {
    a->dtype = c.input(0).dtype;
    a->in = c.input(0).shape;
  }
  if (!a->part.sends && a->result) {
    a->wide = c.input(3).dtype == DType::i64;
    a->rank_wanted = c.input(3).shape.count();
  }
  if (a->result) {
    a->dtype = c.output(0).dtype;
    a->dynamic = c.output(0).dynamic;
    if (!a->dynamic) a->out = c.output(0).shape;
  }
  a->collectives = Collectives::of(c.store());
  DTG_ASSIGN(const Ref<CollectiveGroup> group, a->collectives->find(a->key));
  DTG_ASSIGN(const DeviceName device, DeviceName::parse(c.device()));
  a->rank = {device.type.value_or(""), device.id.value_or(0)};
  a->device = std::string(c.device());
  a->who = "\"" + std::string(c.node().name) + "\" on " + a->device;
  a->instance_known = c.constant(a->part.size_at + 2).valid();
  if (!group) prepare_round(*a);
  return c.async_in_place(collective_run);
}

}  // namespace dtg::ops
