// What sees to it that no loss that is no finite number goes into the weights. Private ops, which training adds:
//
//   _CheckFinite   fails the step
//   _LossVerdict   where workers meet in every step: lets the step go on, with a contribution that is of no account and a token that
//                  tells all workers whose loss it was
//   _PoisonQueue   puts that token into a queue of tokens
//   _CheckToken    fails the step of whoever takes it. A token of the step that was made asks for that step once more, after a loss: then
//                  the run has come to nothing, and whoever asked for it is told so
#include "ops/loss_check.h"

#include <cmath>

#include "exec/commits.h"
#include "exec/edges.h"
#include "exec/kernel.h"
#include "exec/queue.h"
#include "graph/infer.h"
#include "ops/all.h"

namespace dtg::ops {
namespace {

struct FiniteArgs {
  int64_t count = 0;
  int64_t worker = 0;
  std::string who;
};

// The first of the loss's elements that is not finite; 0 where all are.
template <class T>
double first_not_finite(const T* loss, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(static_cast<std::conditional_t<sizeof(T) == 8, double, float>>(loss[i]));
    if (!std::isfinite(value)) return value;
  }
  return 0;
}

const char* text_of(double value) { return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"; }

template <class T>
Status check_finite(RunContext& c) {
  const auto& a = c.args<FiniteArgs>();
  const double value = first_not_finite(c.in<T>(0), a.count);
  if (value == 0) return {};
  return c.error("the loss%s is %s at step %lld, and no weight was changed by it; %s", a.who.c_str(), text_of(value),
                 static_cast<long long>(*c.in<int64_t>(1)), kLossAdvice);
}

// A token that is no step: negative, it holds the worker, what its loss was, and the step.
constexpr int64_t kWorkers = 4096;
enum class Ill : int64_t { not_a_number = 0, infinite = 1, minus_infinite = 2 };

int64_t poison_of(double loss, int64_t step, int64_t worker) {
  const Ill ill = std::isnan(loss) ? Ill::not_a_number : loss > 0 ? Ill::infinite : Ill::minus_infinite;
  return -1 - ((step * 4 + static_cast<int64_t>(ill)) * kWorkers + worker);
}

template <class T>
Status verdict(RunContext& c) {
  const auto& a = c.args<FiniteArgs>();
  const double value = first_not_finite(c.in<T>(0), a.count);
  const int64_t step = *c.in<int64_t>(1);
  // Of a step before the first; accumulators drop it.
  *c.out<int64_t>(0) = value == 0 ? step : -1;
  *c.out<int64_t>(1) = value == 0 ? 0 : poison_of(value, step, a.worker);
  return {};
}

Status finite_prepare(PrepareContext& c) {
  auto* const a = c.args<FiniteArgs>();
  a->count = c.input(0).shape.count();
  a->who = c.attr<std::string>("who");
  switch (c.input(0).dtype) {
    case DType::f64: return c.sync(check_finite<double>);
    case DType::f16: return c.sync(check_finite<Half>);
    case DType::bf16: return c.sync(check_finite<BFloat16>);
    default: return c.sync(check_finite<float>);
  }
}

Status verdict_prepare(PrepareContext& c) {
  auto* const a = c.args<FiniteArgs>();
  a->count = c.input(0).shape.count();
  a->worker = c.integer("worker");
  switch (c.input(0).dtype) {
    case DType::f64: return c.sync(verdict<double>);
    case DType::f16: return c.sync(verdict<Half>);
    case DType::bf16: return c.sync(verdict<BFloat16>);
    default: return c.sync(verdict<float>);
  }
}

Status two_scalars(InferContext& c) {
  c.output(0, PartialShape::scalar());
  c.output(1, PartialShape::scalar());
  return {};
}

// Nobody waits for it: queues of tokens have no bound.
class PoisonPut final : public Queue::Operation {
 public:
  PoisonPut() : Operation(Queue::Verb::enqueue) {}

 private:
  void finished(Status) override {}  // whoever settles it lets go of it
};

// Where a token waits already the worker has not come to it yet; one at a time is enough.
Status poison_run(RunContext& c) {
  DTG_TRY(c.permitted(0));
  Queue* const queue = resource_cast<Queue>(c.in<void>(0));
  if (!queue) return c.error("input 0 is not the handle of a queue");
  const int64_t poison = *c.in<int64_t>(1);
  if (poison == 0 || queue->size() > 0) return {};
  const DType dtype = DType::i64;
  const Shape scalar;
  DTG_TRY(queue->check_tuple({&dtype, 1}, {&scalar, 1}, false));
  auto put = std::make_unique<PoisonPut>();
  DTG_ASSIGN(Tensor token, Tensor::scalar<int64_t>(poison));
  put->tuple.push_back(std::move(token));
  queue->start(put.release(), nullptr);
  note_change(c.step());
  return {};
}

Status token_run(RunContext& c) {
  const int64_t token = *c.in<int64_t>(0);
  *c.out<int64_t>(0) = token;
  if (token >= 0) {
    if (Edges* const edges = c.step().edges()) edges->note_step(token != *c.in<int64_t>(1));
    return {};
  }
  const int64_t held = -1 - token, worker = held % kWorkers, ill = held / kWorkers % 4, step = held / kWorkers / 4;
  constexpr const char* kTexts[] = {"nan", "inf", "-inf", "no number"};
  return c.error("the loss of worker %lld is %s at step %lld, and no weight was changed by it on any worker; %s",
                 static_cast<long long>(worker), kTexts[ill], static_cast<long long>(step), kLossAdvice);
}

}  // namespace

void register_loss_check(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("_CheckFinite")
              .input("loss: T")
              .input("step: int64")
              .attr("T: {half, bfloat16, float, double}")
              .attr("who: string = ''")
              .shape(no_outputs)
              .no_gradient()
              .judges()
              .doc("Private: fails, and names the step, where a loss is no finite number."));
  kernels.add({.op = "_CheckFinite", .types = {{"T", kFloating}}, .prepare = finite_prepare});
  ops.add(OpDef::make("_LossVerdict")
              .input("loss: T")
              .input("step: int64")
              .output("accepted: int64")
              .output("poison: int64")
              .attr("T: {half, bfloat16, float, double}")
              .attr("worker: int = 0")
              .shape(two_scalars)
              .no_gradient()
              .judges()
              .doc("Private: the step, and 0; or -1, and a token that says whose loss is no finite number at which step."));
  kernels.add({.op = "_LossVerdict", .types = {{"T", kFloating}}, .prepare = verdict_prepare});
  ops.add(OpDef::make("_PoisonQueue")
              .input("handle: resource")
              .input("poison: int64", {.rank = 0})
              .shape(no_outputs)
              .no_gradient()
              .stateful()
              .access(Access::produce)
              .doc("Private: puts what is not 0 into an empty queue of tokens."));
  kernels.add({.op = "_PoisonQueue", .prepare = [](PrepareContext& c) { return c.sync(poison_run); }, .mode = KernelMode::host});
  ops.add(OpDef::make("_CheckToken")
              .input("token: int64", {.rank = 0})
              .input("made: int64", {.rank = 0})
              .output("step: int64")
              .shape(scalar_shape)
              .no_gradient()
              .judges()
              .doc("Private: the step of a token; fails where it tells of a loss that is no finite number. One of the step that was made "
                   "asks for that once more."));
  kernels.add({.op = "_CheckToken", .prepare = [](PrepareContext& c) { return c.sync(token_run); }});
}

}  // namespace dtg::ops
