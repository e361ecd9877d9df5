// Collectives as kernels: a call of the task's group, or a part in a round of the devices of this process. Neither holds a thread. The
// step's memory stands in for tensors: what a call reads and writes stays until its instruction has ended, which is when the call has.
#include <cmath>
#include <optional>

#include "collective/rounds.h"
#include "exec/collectives.h"
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
  Algorithm algorithm = Algorithm::automatic;  // between tasks
  Ref<Collectives> collectives;
  // Where no group of tasks has the key:
  Ref<Rounds> rounds;
  DeviceRank rank;
  std::string who;
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
  call.terms.open = !a.part.sends && a.part.kind == Collective::broadcast;
  if (a.part.sends) {
    call.terms.dtype = a.dtype;
    call.terms.shape = a.in;
    call.in = over_memory(c.in<void>(0), a.dtype, a.in);
  }
  if (a.result && !a.dynamic) call.out = over_memory(c.out<void>(0), a.dtype, a.out);
  return call;
}

// Between tasks nobody knows who sends, so rows are gathered to which only the sender has any.
Status as_gather(CollectiveCall& call, DType dtype) {
  const Shape flat = Shape::of({call.terms.open ? 0 : call.in.count()});
  call.terms.kind = Collective::all_gather;
  call.terms.open = false;
  call.terms.dtype = dtype;
  call.terms.shape = flat;
  if (call.in.valid()) {
    call.in = call.in.reshaped(flat);
  } else {
    DTG_ASSIGN(call.in, Tensor::allocate(dtype, flat));
  }
  if (call.out.valid()) call.out = call.out.reshaped(Shape::of({call.out.count()}));
  return {};
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

class GroupOp final : public RefCounted, private Step::Waiter {
 public:
  GroupOp(const CollectiveArgs& args, Ref<CollectiveGroup> group) : args_(args), group_(std::move(group)) {}

  // False when the step is over; `done` is the caller's again then.
  bool start(CollectiveCall what, int32_t instance, Completion& done) {
    Step& step = done.step();
    call_ =
        group_->make_call(std::move(what), instance, args_.timeout_ns, step.deadline(),
                          [self = Ref<GroupOp>::share(this)](const Status& status, const Tensor& result) { self->ended(status, result); });
    listed_ = Ref<GroupOp>::share(this);
    done_ = std::move(done);
    if (!step.add(this)) {
      done = std::move(done_);
      listed_ = nullptr;
      call_ = nullptr;
      return false;
    }
    const Ref<RefCounted> call = call_;
    group_->start_call(call);
    return true;
  }

 private:
  void aborted(const Status& cause) override {
    const Ref<GroupOp> self = std::move(listed_);
    group_->give_up_call(call_, cause);
  }

  void ended(const Status& status, const Tensor& result) {
    Step& step = done_.step();
    // Where the abort was first, it drops its reference itself.
    if (step.remove(this)) listed_ = nullptr;
    if (status.ok()) args_.collectives->call_ended(&step);
    else args_.collectives->group_ended(&step);
    Completion done = std::move(done_);
    done.done(status.ok() ? give_result(done.context(), args_, result) : status);
  }

  const CollectiveArgs& args_;
  const Ref<CollectiveGroup> group_;
  Ref<RefCounted> call_;
  Ref<GroupOp> listed_;  // while the step may abort it
  Completion done_;
};

Result<Ref<CollectiveGroup>> group_of(const RunContext& c, const CollectiveArgs& a) {
  DTG_ASSIGN(Ref<CollectiveGroup> group, a.collectives->find(a.key));
  if (!group) return c.error("no group has the key %d", static_cast<int>(a.key));
  const int members = group->members();
  if (members == a.size) return group;
  return c.error(
      "group_size is %d, but the group \"%s\" with the key %d has %d members; build the graph for so many, or form the group anew",
      static_cast<int>(a.size), group->name().c_str(), static_cast<int>(a.key), members);
}

Status start_in_group(RunContext& c, const CollectiveArgs& a, int32_t instance, Completion& done) {
  DTG_ASSIGN(Ref<CollectiveGroup> group, group_of(c, a));
  CollectiveCall call = call_of(c, a);
  if (call.terms.kind == Collective::broadcast) DTG_TRY(as_gather(call, a.dtype));
  const auto op = make_ref<GroupOp>(a, std::move(group));
  return op->start(std::move(call), instance, done) ? Status() : c.step().cause();
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
Algorithm algorithm_of(const PrepareContext& c, const CollectivePart& part) {
  if (part.kind != Collective::all_reduce) return Algorithm::automatic;
  const std::string& hint = c.attr<std::string>("communication_hint");
  if (hint == "ring") return Algorithm::ring;
  if (hint == "direct") return Algorithm::direct;
  return hint == "shared" ? Algorithm::shared : Algorithm::automatic;
}

Status prepare_round(const PrepareContext& c, CollectiveArgs& a) {
  DTG_ASSIGN(const DeviceName device, DeviceName::parse(c.device()));
  a.rank = {device.type.value_or(""), device.id.value_or(0)};
  a.who = "\"" + std::string(c.node().name) + "\" on " + std::string(c.device());
  const Ref<Resource> rounds = a.collectives->rounds([] { return Ref<Resource>(make_ref<Rounds>()); });
  a.rounds = Ref<Rounds>::share(static_cast<Rounds*>(rounds.get()));
  return {};
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
  a->algorithm = algorithm_of(c, a->part);
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
  if (!group) DTG_TRY(prepare_round(c, *a));
  return c.async_in_place(collective_run);
}

}  // namespace dtg::ops
