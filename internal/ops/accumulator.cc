// Accumulators as ops: dense and sparse, under the names for resource handles and under the older ones, which here
// take resource handles too. The rules are in exec/accumulator.h.
#include <cstring>
#include <memory>
#include <string_view>

#include "exec/accumulator.h"
#include "exec/commits.h"
#include "exec/completion.h"
#include "graph/infer.h"
#include "ops/all.h"

namespace dtg::ops {
namespace {

// --- the handles ---

constexpr const char* kReductions[] = {"MEAN", "SUM", "LAST"};

const char* reduction_name(Accumulator::Reduction reduction) { return kReductions[static_cast<size_t>(reduction)]; }

Accumulator::Reduction reduction_of(std::string_view name) {
  for (const auto each : {Accumulator::Reduction::sum, Accumulator::Reduction::last}) {
    if (name == reduction_name(each)) return each;
  }
  return Accumulator::Reduction::mean;
}

Status handle_shape(InferContext& c) {
  c.output_held(0, c.attr<DType>("dtype"), c.attr<PartialShape>("shape"));
  return {};
}

std::string definition(const Accumulator::Spec& spec) {
  return format("%s%s (%s)", dtype_name(spec.dtype), spec.shape.text().c_str(), reduction_name(spec.reduction));
}

template <class A>
Status handle_prepare(PrepareContext& c) {
  const Accumulator::Spec spec{c.attr<DType>("dtype"), c.attr<PartialShape>("shape"), reduction_of(c.attr<std::string>("reduction_type"))};
  DTG_ASSIGN(Ref<Resource> found,
             c.named_resource(A::kKind, [&](const std::string& name) { return Ref<Resource>(make_ref<A>(name, spec)); }));
  const Accumulator::Spec& there = static_cast<const A&>(*found).spec();
  if (there.dtype != spec.dtype || !(there.shape == spec.shape) || there.reduction != spec.reduction) {
    return c.error("attach to the %s \"%s\": it is %s there and %s here; give one of them another shared_name", found->kind(),
                   found->name().c_str(), definition(there).c_str(), definition(spec).c_str());
  }
  c.bind(0, std::move(found));
  return {};
}

// LAST is not TensorFlow's: of several gradients the last one counts, and none that is older than it.
void register_handle(OpTable& ops, KernelTable& kernels, const char* name, PrepareFn prepare, const char* doc) {
  ops.add(OpDef::make(name)
              .output("handle: resource")
              .attr("dtype: type")
              .attr("shape: shape")
              .attr("container: string = ''")
              .attr("shared_name: string = ''")
              .attr("reduction_type: {'MEAN', 'SUM', 'LAST'} = 'MEAN'")
              .shape(handle_shape)
              .no_gradient()
              .stateful()
              .role(Role::handle)
              .doc(doc));
  kernels.add({.op = name, .types = {{"dtype", kFloating}}, .prepare = prepare, .mode = KernelMode::host});
}

Result<Accumulator*> accumulator_at(const RunContext& c) {
  DTG_TRY(c.permitted(0));
  if (auto* const dense = resource_cast<DenseAccumulator>(c.in<void>(0))) return dense;
  if (auto* const sparse = resource_cast<SparseAccumulator>(c.in<void>(0))) return sparse;
  return c.error("input 0 is not the handle of an accumulator");
}

template <class A>
Result<A*> typed_accumulator_at(const RunContext& c, DType dtype) {
  DTG_TRY(c.permitted(0));
  A* const accumulator = resource_cast<A>(c.in<void>(0));
  if (!accumulator) return c.error("input 0 is not the handle of a%s accumulator", A::kKind == DenseAccumulator::kKind ? "" : " sparse");
  if (accumulator->spec().dtype == dtype) return accumulator;
  return c.error("the accumulator \"%s\" is of %s, the op of %s", accumulator->name().c_str(), dtype_name(accumulator->spec().dtype),
                 dtype_name(dtype));
}

// --- apply ---

struct ApplyArgs {
  DType dtype = DType::f32;
  Shape gradient;  // dense; sparse: of the values
  int64_t indices = 0;
  int64_t dense_rank = 0;
  bool known_shape = false;
};

Status apply_dense(RunContext& c) {
  const auto& a = c.args<ApplyArgs>();
  DTG_ASSIGN(DenseAccumulator * accumulator, typed_accumulator_at<DenseAccumulator>(c, a.dtype));
  DTG_TRY(accumulator->apply(*c.in<int64_t>(1), a.gradient, c.in<void>(2)));
  note_change(c.step());
  return {};
}

Status apply_sparse(RunContext& c) {
  const auto& a = c.args<ApplyArgs>();
  DTG_ASSIGN(SparseAccumulator * accumulator, typed_accumulator_at<SparseAccumulator>(c, a.dtype));
  const std::span<const int64_t> indices(c.in<int64_t>(2), static_cast<size_t>(a.indices));
  const std::span<const int64_t> shape(c.in<int64_t>(4), static_cast<size_t>(a.known_shape ? a.dense_rank : 0));
  DTG_TRY(accumulator->apply(*c.in<int64_t>(1), indices, a.gradient, c.in<void>(3), shape));
  note_change(c.step());
  return {};
}

Status apply_prepare(PrepareContext& c) {
  auto* const a = c.args<ApplyArgs>();
  const bool sparse = c.num_inputs() == 5;
  a->dtype = c.attr<DType>("dtype");
  a->gradient = c.input(sparse ? 3 : 2).shape;
  if (!sparse) return c.sync(apply_dense);
  a->indices = c.input(2).shape.count();
  a->dense_rank = c.input(4).shape.count();
  a->known_shape = c.boolean("has_known_shape");
  return c.sync(apply_sparse);
}

void register_apply(OpTable& ops, KernelTable& kernels, const char* name) {
  ops.add(OpDef::make(name)
              .input("handle: resource")
              .input("local_step: int64", {.rank = 0})
              .input("gradient: dtype")
              .attr("dtype: type")
              .shape(no_outputs)
              .no_gradient()
              .stateful()
              .access(Access::produce)
              .doc("Adds a gradient; one whose local_step is behind the accumulator's is dropped."));
  kernels.add({.op = name, .types = {{"dtype", kFloating}}, .prepare = apply_prepare, .mode = KernelMode::host});
}

// --- take ---

struct TakeArgs {
  DType dtype = DType::f32;
  bool dynamic = false;
  Shape output;
};

// Waits with the completion of its instruction, gives what it got to the outputs.
class TakeGradient final : public Accumulator::Take {
 public:
  TakeGradient(const TakeArgs& args, Accumulator& accumulator) : args_(args), accumulator_(accumulator) {}
  void expect(Completion done) { done_ = std::move(done); }

 private:
  void finished(Status status) override {
    if (status.ok()) {
      note_change(done_.step());
      auto* const dense = resource_cast<DenseAccumulator>(static_cast<RefCounted*>(&accumulator_));
      status = dense ? give_dense(*dense) : give_sparse(static_cast<const SparseAccumulator&>(accumulator_));
    }
    done_.done(std::move(status));
  }

  Status give_dense(DenseAccumulator& accumulator) {
    RunContext c = done_.context();
    const int64_t divisor = accumulator.spec().reduction == Accumulator::Reduction::mean ? count : 1;
    if (args_.dynamic) {
      divide_elements(args_.dtype, sum.data(), sum.data(), sum.count(), divisor);
      c.set_output(0, sum.data(), sum.shape(), sum.buffer());
      return {};
    }
    if (!(sum.shape() == args_.output)) {
      return c.error("the accumulator has shape %s, this graph was prepared for %s", sum.shape().text().c_str(),
                     args_.output.text().c_str());
    }
    divide_elements(args_.dtype, sum.data(), c.out<void>(0), sum.count(), divisor);
    accumulator.recycle(std::move(sum));
    return {};
  }

  Status give_sparse(const SparseAccumulator& accumulator) {
    RunContext c = done_.context();
    DTG_ASSIGN(const Tensor values, accumulator.values_of(*this));
    c.set_output(1, values.data(), values.shape(), values.buffer());
    DTG_ASSIGN(void* const indices, c.lease_output(0, DType::i64, Shape::of({static_cast<int64_t>(rows.size())})));
    for (size_t i = 0; i < rows.size(); ++i) static_cast<int64_t*>(indices)[i] = rows[i].index;
    const std::vector<int64_t> dims = accumulator.dense_shape_of(*this);
    DTG_ASSIGN(void* const shape, c.lease_output(2, DType::i64, Shape::of({static_cast<int64_t>(dims.size())})));
    if (!dims.empty()) std::memcpy(shape, dims.data(), dims.size() * sizeof(int64_t));
    return {};
  }

  const TakeArgs& args_;
  Accumulator& accumulator_;  // kept by the plan until the completion fires
  Completion done_;
};

template <class A>
bool take_run(RunContext& c, Completion done) {
  const auto& a = c.args<TakeArgs>();
  auto accumulator = typed_accumulator_at<A>(c, a.dtype);
  if (!accumulator.ok()) {
    c.set_status(accumulator.status());
    done.dismiss();
    return true;
  }
  auto take = std::make_unique<TakeGradient>(a, *accumulator.value());
  take->count = *c.in<int32_t>(1);
  take->expect(std::move(done));
  accumulator.value()->start(take.release(), &c.step());
  return false;
}

Status take_prepare(PrepareContext& c) {
  auto* const a = c.args<TakeArgs>();
  a->dtype = c.attr<DType>("dtype");
  if (c.num_outputs() == 3) return c.async_in_place(take_run<SparseAccumulator>);
  a->dynamic = c.output(0).dynamic;
  a->output = c.output(0).shape;
  return c.async_in_place(take_run<DenseAccumulator>);
}

Status take_shape(InferContext& c) {
  c.output(0, c.input(0));
  return {};
}

// The number of rows is never known before; nor is, then, anything about the other outputs worth a promise.
Status take_sparse_shape(InferContext& c) {
  c.output(0, PartialShape::vector(-1));
  PartialShape values = c.input(0);
  if (values.has_rank() && values.rank() > 0) values.set_dim(0, -1);
  c.output(1, values);
  c.output(2, PartialShape::vector(-1));
  return {};
}

void register_take(OpTable& ops, KernelTable& kernels, const char* name) {
  ops.add(OpDef::make(name)
              .input("handle: resource")
              .input("num_required: int32", {.rank = 0})
              .output("average: dtype")
              .attr("dtype: type")
              .shape(take_shape)
              .no_gradient()
              .stateful()
              .access(Access::consume)
              .doc("The mean or sum of all gradients that are there, once there are num_required; waits for them."));
  kernels.add({.op = name, .types = {{"dtype", kFloating}}, .prepare = take_prepare, .mode = KernelMode::blocking});
}

// --- the step and the count ---

Status set_step_run(RunContext& c) {
  DTG_ASSIGN(Accumulator * accumulator, accumulator_at(c));
  accumulator->set_global_step(*c.in<int64_t>(1));
  note_change(c.step());
  return {};
}

Status count_run(RunContext& c) {
  DTG_ASSIGN(const Accumulator* accumulator, accumulator_at(c));
  *c.out<int32_t>(0) = static_cast<int32_t>(accumulator->count());
  return {};
}

void register_step_and_count(OpTable& ops, KernelTable& kernels, const char* step, const char* count) {
  ops.add(OpDef::make(step)
              .input("handle: resource")
              .input("new_global_step: int64", {.rank = 0})
              .shape(no_outputs)
              .no_gradient()
              .stateful()
              .access(Access::fence)
              .doc("Gradients with a local step below the new one are dropped from now on."));
  kernels.add({.op = step, .prepare = [](PrepareContext& c) { return c.sync(set_step_run); }, .mode = KernelMode::host});
  ops.add(OpDef::make(count)
              .input("handle: resource")
              .output("num_accumulated: int32")
              .shape(scalar_shape)
              .no_gradient()
              .stateful()
              .access(Access::ask)
              .doc("How many gradients an accumulator holds."));
  kernels.add({.op = count, .prepare = [](PrepareContext& c) { return c.sync(count_run); }, .mode = KernelMode::host});
}

void register_sparse(OpTable& ops, KernelTable& kernels) {
  register_handle(ops, kernels, "SparseConditionalAccumulator", handle_prepare<SparseAccumulator>,
                  "Accumulates row gradients; a mean divides each row by the number of gradients that had it.");
  ops.add(OpDef::make("SparseAccumulatorApplyGradient")
              .input("handle: resource")
              .input("local_step: int64", {.rank = 0})
              .input("gradient_indices: int64", {.rank = 1})
              .input("gradient_values: dtype")
              .input("gradient_shape: int64")
              .attr("dtype: type")
              .attr("has_known_shape: bool")
              .shape(no_outputs)
              .no_gradient()
              .stateful()
              .access(Access::produce)
              .doc("Adds rows; a gradient whose local_step is behind the accumulator's is dropped."));
  kernels.add(
      {.op = "SparseAccumulatorApplyGradient", .types = {{"dtype", kFloating}}, .prepare = apply_prepare, .mode = KernelMode::host});
  ops.add(OpDef::make("SparseAccumulatorTakeGradient")
              .input("handle: resource")
              .input("num_required: int32", {.rank = 0})
              .output("indices: int64")
              .output("values: dtype")
              .output("shape: int64")
              .attr("dtype: type")
              .shape(take_sparse_shape)
              .no_gradient()
              .stateful()
              .access(Access::consume)
              .doc("The rows of all gradients that are there, once there are num_required; waits for them."));
  kernels.add(
      {.op = "SparseAccumulatorTakeGradient", .types = {{"dtype", kFloating}}, .prepare = take_prepare, .mode = KernelMode::blocking});
}

}  // namespace

void register_accumulator(OpTable& ops, KernelTable& kernels) {
  for (const char* name : {"ResourceConditionalAccumulator", "ConditionalAccumulator"}) {
    register_handle(ops, kernels, name, handle_prepare<DenseAccumulator>, "Accumulates gradients until enough are there to be taken.");
  }
  for (const char* name : {"ResourceAccumulatorApplyGradient", "AccumulatorApplyGradient"}) {
    register_apply(ops, kernels, name);
  }
  for (const char* name : {"ResourceAccumulatorTakeGradient", "AccumulatorTakeGradient"}) {
    register_take(ops, kernels, name);
  }
  register_step_and_count(ops, kernels, "ResourceAccumulatorSetGlobalStep", "ResourceAccumulatorNumAccumulated");
  register_step_and_count(ops, kernels, "AccumulatorSetGlobalStep", "AccumulatorNumAccumulated");
  register_sparse(ops, kernels);
}

}  // namespace dtg::ops
