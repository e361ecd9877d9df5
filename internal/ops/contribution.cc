// What one worker contributed to an elastic step, as private ops that training adds (strategy/elastic.h). They end the step for the
// worker's accumulator, whether it is a member or not: what it contributed late is dropped. Nobody waits here, as a worker arrives at a
// step behind all that it contributes (ops/step_members.cc); where something is missing, its task was started anew.
//
//   _TakeContribution       a gradient; of who is no member what adds nothing, which is -0.0: x + -0.0 has the bits of x, whatever x is
//   _TakeRowsContribution   rows; of who is no member none
#include <algorithm>
#include <cstring>

#include "exec/accumulator.h"
#include "exec/commits.h"
#include "exec/kernel.h"
#include "graph/infer.h"
#include "ops/step_members.h"

namespace dtg::ops {
namespace {

struct ContributionArgs {
  DType dtype = DType::f32;
  int64_t worker = 0;
  Shape shape;  // of a gradient; of rows: of the whole
};

template <class A>
Result<A*> accumulator_at(const RunContext& c) {
  DTG_TRY(c.permitted(0));
  A* const accumulator = resource_cast<A>(c.in<void>(0));
  const DType wanted = c.args<ContributionArgs>().dtype;
  if (!accumulator) return c.error("input 0 is not the handle of a%s accumulator", A::kKind == DenseAccumulator::kKind ? "" : " sparse");
  if (accumulator->spec().dtype == wanted) return accumulator;
  return c.error("the accumulator \"%s\" is of %s, the op of %s", accumulator->name().c_str(), dtype_name(accumulator->spec().dtype),
                 dtype_name(wanted));
}

// Whether there is one.
Result<bool> take(RunContext& c, Accumulator& accumulator, Accumulator::Taken& taken) {
  const int64_t worker = c.args<ContributionArgs>().worker, step = *c.in<int64_t>(2);
  const bool wanted = c.in<uint8_t>(1)[worker] != 0;
  const bool there = accumulator.close_step(step, wanted, taken);
  note_change(c.step());
  if (there) return wanted;
  return unavailable(
      "what worker %lld contributed to step %lld is not in \"%s\" any more: its task was started anew, or the chief has initialised the training "
      "again (one that was restarted runs local_init and `resume`, and no initialisation); all contribute again",
      static_cast<long long>(worker), static_cast<long long>(step), accumulator.name().c_str());
}

template <class T>
void fill(void* memory, int64_t count, T with) {
  std::fill_n(static_cast<T*>(memory), count, with);
}

void fill_with_nothing(DType dtype, void* memory, int64_t count) {
  switch (dtype_size(dtype)) {
    case 8: return fill(memory, count, uint64_t{1} << 63);
    case 4: return fill(memory, count, uint32_t{1} << 31);
    default: return fill(memory, count, static_cast<uint16_t>(1U << 15));
  }
}

Status dense_run(RunContext& c) {
  const auto& a = c.args<ContributionArgs>();
  DTG_ASSIGN(DenseAccumulator* const accumulator, accumulator_at<DenseAccumulator>(c));
  Accumulator::Taken taken;
  DTG_ASSIGN(const bool there, take(c, *accumulator, taken));
  if (!there) {
    DTG_ASSIGN(void* const nothing, c.lease_output(0, a.dtype, a.shape));
    fill_with_nothing(a.dtype, nothing, a.shape.count());
    return {};
  }
  if (!(taken.sum.shape() == a.shape)) {
    return c.error("the gradient has shape %s, this graph was prepared for %s", taken.sum.shape().text().c_str(), a.shape.text().c_str());
  }
  c.set_output(0, taken.sum.data(), taken.sum.shape(), taken.sum.buffer());
  return {};
}

Status rows_run(RunContext& c) {
  const auto& a = c.args<ContributionArgs>();
  DTG_ASSIGN(SparseAccumulator* const accumulator, accumulator_at<SparseAccumulator>(c));
  Accumulator::Taken taken;
  DTG_ASSIGN(const bool there, take(c, *accumulator, taken));
  std::vector<int64_t> dims(a.shape.dims().begin(), a.shape.dims().end());
  DTG_ASSIGN(void* const whole, c.lease_output(2, DType::i64, Shape::of({static_cast<int64_t>(dims.size())})));
  if (!dims.empty()) std::memcpy(whole, dims.data(), dims.size() * sizeof(int64_t));
  DTG_ASSIGN(void* const indices, c.lease_output(0, DType::i64, Shape::of({static_cast<int64_t>(taken.rows.size())})));
  for (size_t i = 0; i < taken.rows.size(); ++i) static_cast<int64_t*>(indices)[i] = taken.rows[i].index;
  if (there) {
    DTG_ASSIGN(const Tensor values, accumulator->values_of(taken));
    c.set_output(1, values.data(), values.shape(), values.buffer());
    return {};
  }
  dims[0] = 0;
  DTG_ASSIGN(const Shape none, Shape::make(dims));
  return c.lease_output(1, a.dtype, none).status();
}

Status prepare(PrepareContext& c, SyncFn run) {
  auto* const a = c.args<ContributionArgs>();
  a->dtype = c.attr<DType>("dtype");
  a->worker = c.integer("worker");
  const auto& shape = c.attr<PartialShape>("shape");
  if (a->worker < 0 || a->worker >= c.input(1).shape.count())
    return c.error("worker %lld of %lld", static_cast<long long>(a->worker), static_cast<long long>(c.input(1).shape.count()));
  if (!shape.complete() || (c.num_outputs() == 3 && shape.rank() == 0)) return c.error("the shape is %s", shape.text().c_str());
  DTG_ASSIGN(a->shape, shape.to_shape());
  for (int i = 0; i < c.num_outputs(); ++i) c.brings(i);
  return c.sync(run);
}

Status dense_shape(InferContext& c) {
  c.output(0, c.attr<PartialShape>("shape"));
  return {};
}

Status rows_shape(InferContext& c) {
  PartialShape values = c.attr<PartialShape>("shape");
  c.output(0, PartialShape::vector(-1));
  c.output(2, PartialShape::vector(values.has_rank() ? values.rank() : -1));
  if (values.has_rank() && values.rank() > 0) values.set_dim(0, -1);
  c.output(1, values);
  return {};
}

OpDef on_accumulator(const char* name) {
  return OpDef::make(name)
      .input("handle: resource")
      .input("members: bool", {.rank = 1})
      .input("step: int64", {.rank = 0})
      .attr("dtype: type")
      .attr("shape: shape")
      .attr("worker: int")
      .no_gradient()
      .stateful()
      .access(Access::consume);
}

}  // namespace

void register_contribution(OpTable& ops, KernelTable& kernels) {
  ops.add(on_accumulator("_TakeContribution")
              .output("gradient: dtype")
              .shape(dense_shape)
              .doc("Private: what a worker contributed to a step, if it is a member, and nothing to be added otherwise."));
  kernels.add({.op = "_TakeContribution",
               .types = {{"dtype", kFloating}},
               .prepare = [](PrepareContext& c) { return prepare(c, dense_run); },
               .mode = KernelMode::host});
  ops.add(on_accumulator("_TakeRowsContribution")
              .output("indices: int64")
              .output("values: dtype")
              .output("shape: int64")
              .shape(rows_shape)
              .doc("Private: the rows that a worker contributed to a step, if it is a member, and none otherwise."));
  kernels.add({.op = "_TakeRowsContribution",
               .types = {{"dtype", kFloating}},
               .prepare = [](PrepareContext& c) { return prepare(c, rows_run); },
               .mode = KernelMode::host});
}

}  // namespace dtg::ops
