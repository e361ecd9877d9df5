// Writing to what a strided slice takes: TensorStridedSliceUpdate on a copy of a tensor, ResourceStridedSliceAssign in a
// variable. The value is broadcast to the part.
#include <cstring>

#include "exec/variable.h"
#include "ops/all.h"
#include "ops/strided.h"
#include "ops/variable.h"

namespace dtg::ops {
namespace {

// What is certain when the node is built: a value that does not fit is left to run, as TensorFlow does.
Status strided_update_shape(InferContext& c) {
  DTG_ASSIGN(const int count, entry_count(c, 1));
  (void)count;
  c.output(0, c.input(0));
  return {};
}

Status strided_assign_shape(InferContext& c) {
  DTG_TRY(check_held(c, 0, "T"));
  DTG_ASSIGN(const int count, entry_count(c, 1));
  (void)count;
  return {};
}

// d(input) = dy with zeros in the part; d(value) = the part of dy, summed where the value was broadcast
Status strided_update_grad(GradContext& c) {
  Build& b = c.b();
  const Value slice[] = {c.dy(), c.input(1), c.input(2), c.input(3)};
  const Value part = b.op("StridedSlice", slice, mask_attrs(c));
  const Value update[] = {c.dy(), c.input(1), c.input(2), c.input(3), b.zeros_like(part)};
  c.dx(0, b.op("TensorStridedSliceUpdate", update, mask_attrs(c)));
  const PartialShape &own = c.input_info(4).shape, &taken = b.info(part).shape;
  if (own.complete() && taken.complete() && own == taken) {
    c.dx(4, part);
    return {};
  }
  const Value shape = b.shape(c.input(4));
  const Value axes = b.op("BroadcastGradientArgs", {shape, b.shape(part)});
  c.dx(4, b.reshape(b.sum(part, axes), shape));
  return {};
}

struct StridedWriteArgs : UpdateArgs, StridedEntries {
  Shape in, value;
  int64_t size = 0;
};

Status write_part(RunContext& c, const StridedWriteArgs& a, const Shape& whole, char* to) {
  DTG_ASSIGN(const StridedGeometry g, a.geometry(c, whole));
  if (!broadcasts_to_part(a.value, g)) {
    return c.error("the value has shape %s, but the part has shape %s", a.value.text().c_str(), g.out.text().c_str());
  }
  DTG_ASSIGN(const Shape part, g.out.to_shape());
  if (part.count() == 0) return {};
  const PartWalk walk = walk_broadcast(whole, g, a.size, a.value);
  cpu::copy_walk(c.pool(), walk.walk, c.in<char>(4), to + walk.offset);
  return {};
}

Status strided_update_run(RunContext& c) {
  const auto& a = c.args<StridedWriteArgs>();
  if (c.in<char>(0) != c.out<char>(0) && a.in.count() > 0) {
    std::memcpy(c.out<char>(0), c.in<char>(0), static_cast<size_t>(a.in.count() * a.size));
  }
  return write_part(c, a, a.in, c.out<char>(0));
}

Status strided_assign_run(RunContext& c, VariableUpdate& update) {
  const auto& a = c.args<StridedWriteArgs>();
  DTG_TRY(check_tensor(c, update.tensor(0), c.node().attr<DType>("T"), nullptr));
  return write_part(c, a, update.tensor(0).shape(), update.data<char>(0));
}

Status strided_update_prepare(PrepareContext& c) {
  auto* a = c.args<StridedWriteArgs>();
  a->in = c.input(0).shape;
  a->value = c.input(4).shape;
  a->size = dtype_size(c.input(4).dtype);
  DTG_TRY(a->prepare_entries(c));
  c.may_overwrite(0, 0);
  return c.sync(strided_update_run);
}

Status strided_assign_prepare(PrepareContext& c) {
  auto* a = c.args<StridedWriteArgs>();
  a->value = c.input(4).shape;
  a->size = dtype_size(c.input(4).dtype);
  DTG_TRY(a->prepare_entries(c));
  return prepare_update(c, {0}, strided_assign_run);
}

OpDef&& with_strides(OpDef&& def) {
  return std::move(def)
      .input("begin: Index", {.rank = 1})
      .input("end: Index", {.rank = 1})
      .input("strides: Index", {.rank = 1})
      .input("value: T");
}

OpDef&& with_masks(OpDef&& def) {
  return std::move(def)
      .attr("T: type")
      .attr("Index: {int32, int64}")
      .attr("begin_mask: int = 0")
      .attr("end_mask: int = 0")
      .attr("ellipsis_mask: int = 0")
      .attr("new_axis_mask: int = 0")
      .attr("shrink_axis_mask: int = 0");
}

}  // namespace

void register_strided_assign(OpTable& ops, KernelTable& kernels) {
  ops.add(with_masks(with_strides(OpDef::make("TensorStridedSliceUpdate").input("input: T")).output("output: T"))
              .shape(strided_update_shape)
              .gradient(strided_update_grad)
              .doc("The input with the value where StridedSlice would take from it."));
  kernels.add({.op = "TensorStridedSliceUpdate", .types = {{"T", kPlain}}, .prepare = strided_update_prepare});
  ops.add(with_masks(with_strides(OpDef::make("ResourceStridedSliceAssign").input("ref: resource")))
              .shape(strided_assign_shape)
              .no_gradient()
              .stateful()
              .access(Access::write)
              .doc("Puts the value where StridedSlice would take from a variable."));
  kernels.add({.op = "ResourceStridedSliceAssign", .types = {{"T", kPlain}}, .prepare = strided_assign_prepare});
}

}  // namespace dtg::ops
