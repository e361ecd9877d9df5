// Variables as ops: the handle, reading, assigning, adding, asking, destroying. The objects and their rules are in
// exec/variable.h; the ops on rows of a variable are in variable_rows.cc.
#include <cstring>

#include "device/cpu/update.h"
#include "exec/pinned_read.h"
#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/variable.h"

namespace dtg::ops {

Status check_held(InferContext& c, int input, const char* attr) {
  const DType held = c.held_dtype(input), own = c.attr<DType>(attr);
  if (held == DType::invalid || held == own) return {};
  return c.error("the variable holds %s, the op is for %s", dtype_name(held), dtype_name(own));
}

Status check_tensor(const RunContext& c, const Tensor& tensor, DType dtype, const Shape* shape) {
  if (tensor.dtype() != dtype) {
    return c.error("the variable holds %s, the op is for %s", dtype_name(tensor.dtype()), dtype_name(dtype));
  }
  if (shape && !(tensor.shape() == *shape)) {
    return c.error("the variable has shape %s, this graph was prepared for %s", tensor.shape().text().c_str(), shape->text().c_str());
  }
  return {};
}

namespace {

// --- VarHandleOp ---

Status handle_shape(InferContext& c) {
  c.output_held(0, c.attr<DType>("dtype"), c.attr<PartialShape>("shape"));
  return {};
}

Status handle_prepare(PrepareContext& c) {
  const DType dtype = c.attr<DType>("dtype");
  if (dtype == DType::string)
    return unimplemented("%s: a variable of strings; keep them in a table (HashTableV2) or feed them", c.node().op->name().c_str());
  const auto& shape = c.attr<PartialShape>("shape");
  DTG_ASSIGN(Ref<Resource> found, c.named_resource(Variable::kKind, [&](const std::string& name) {
    return Ref<Resource>(make_ref<Variable>(name, dtype, shape, Placement::heap, c.device_memory()));
  }));
  // Two graphs that name the same variable share it, so both must mean the same thing by it.
  DTG_TRY(static_cast<Variable&>(*found).attach(dtype, shape, c.may_attach()));
  c.bind(0, std::move(found));
  return {};
}

void register_handle(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("VarHandleOp")
              .output("resource: resource")
              .attr("container: string = ''")
              .attr("shared_name: string = ''")
              .attr("debug_name: string = ''")
              .attr("dtype: type")
              .attr("shape: shape")
              .attr("allowed_devices: list(string) = []")
              .shape(handle_shape)
              .no_gradient()
              .stateful()
              .role(Role::handle)
              .doc("The handle of a variable, found or made by container and shared_name (or the node's name)."));
  kernels.add({.op = "VarHandleOp", .prepare = handle_prepare});
}

// --- ReadVariableOp ---

Status read_shape(InferContext& c) {
  DTG_TRY(check_held(c, 0, "dtype"));
  c.output(0, c.input(0));
  return {};
}

// The value's gradient is the variable's; rows stay rows.
Status read_grad(GradContext& c) {
  const Gradient& dy = c.raw_dy();
  if (dy.is_rows()) {
    c.dx_rows(0, dy.values, dy.indices, dy.dense_shape);
  } else {
    c.dx(0, c.dy());
  }
  return {};
}

struct ReadArgs : UpdateArgs {
  Shape shape;
  DType dtype = DType::invalid;
  bool dynamic = false;
};

// A copy, for who runs the op by itself. Plans read through a pin instead.
Status read_copy(RunContext& c, Variable::Version& read) {
  const Tensor& value = read.tensor;
  const auto& a = c.args<ReadArgs>();
  DTG_TRY(check_tensor(c, value, a.dtype, a.dynamic ? nullptr : &a.shape));
  void* to = c.out<void>(0);
  if (a.dynamic) {
    DTG_ASSIGN(to, c.lease_output(0, a.dtype, value.shape()));
  }
  if (value.bytes() > 0) std::memcpy(to, value.data(), static_cast<size_t>(value.bytes()));
  return {};
}

Status read_prepare(PrepareContext& c) {
  if (c.pin() != PrepareContext::kNoPin) return prepare_pinned_read(c, c.output(0).dynamic);
  auto* const a = c.args<ReadArgs>();
  a->dtype = c.attr<DType>("dtype");
  a->dynamic = c.output(0).dynamic;
  if (!a->dynamic) a->shape = c.output(0).shape;
  return prepare_read(c, 0, read_copy);
}

void register_read(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("ReadVariableOp")
              .input("resource: resource")
              .output("value: dtype")
              .attr("dtype: type")
              .shape(read_shape)
              .gradient(read_grad)
              .stateful()
              .access(Access::read)
              .doc("The value of a variable. Updates that come later do not change what was read."));
  kernels.add({.op = "ReadVariableOp", .types = {{"dtype", kPlain}}, .prepare = read_prepare});
}

// --- AssignVariableOp ---

Status value_fits(InferContext& c) {
  DTG_TRY(check_held(c, 0, "dtype"));
  auto merged = PartialShape::merge(c.input(0), c.input(1), "the variable and the value");
  return merged.ok() ? Status() : c.error("%s", merged.status().message().c_str());
}

struct AssignArgs : UpdateArgs {
  Shape shape;
  DType dtype = DType::invalid;
  bool validate = false;
};

Status assign_run(RunContext& c, Variable& variable, Tensor& fresh) {
  const auto& a = c.args<AssignArgs>();
  if (variable.dtype() != a.dtype) {
    return c.error("assign %s to the variable \"%s\" of %s", dtype_name(a.dtype), variable.name().c_str(), dtype_name(variable.dtype()));
  }
  const auto* const present = variable.present();
  if (a.validate && present && !(present->tensor.shape() == a.shape)) {
    return c.error("assign shape %s to the variable \"%s\": it has shape %s, and validate_shape is set", a.shape.text().c_str(),
                   variable.name().c_str(), present->tensor.shape().text().c_str());
  }
  DTG_ASSIGN(fresh, variable.spare(a.shape));
  if (fresh.bytes() > 0) std::memcpy(fresh.data(), c.in<void>(1), static_cast<size_t>(fresh.bytes()));
  return {};
}

Status assign_prepare(PrepareContext& c) {
  auto* const a = c.args<AssignArgs>();
  a->shape = c.input(1).shape;
  a->dtype = c.attr<DType>("dtype");
  a->validate = c.boolean("validate_shape");
  return prepare_assign(c, 0, assign_run);
}

void register_assign(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("AssignVariableOp")
              .input("resource: resource")
              .input("value: dtype")
              .attr("dtype: type")
              .attr("validate_shape: bool = false")
              .shape(value_fits)
              .no_gradient()
              .stateful()
              .access(Access::assign)
              .doc("A new value for a variable."));
  kernels.add({.op = "AssignVariableOp", .types = {{"dtype", kPlain}}, .prepare = assign_prepare});
}

// --- AssignAddVariableOp, AssignSubVariableOp, _AssignMulVariableOp ---

struct AddArgs : UpdateArgs {
  cpu::UpdateLoop loop;
  Shape shape;
};

// Wraps around, so the bits are those of the unsigned type.
template <class U>
void add_integers(const void* old, const void* value, void* data, int64_t from, int64_t to, bool subtract) {
  const U* const a = static_cast<const U*>(old);
  const U* const b = static_cast<const U*>(value);
  U* const y = static_cast<U*>(data);
  for (int64_t i = from; i < to; ++i) y[i] = static_cast<U>(subtract ? a[i] - b[i] : a[i] + b[i]);
}

void add_elements(const cpu::UpdateLoop& loop, const cpu::UpdateMemory& memory, int64_t from, int64_t to) {
  if (kFloating.has(loop.dtype)) return cpu::update_elements(loop, memory, from, to);
  const bool subtract = loop.rule == cpu::UpdateRule::subtract;
  const auto as = [&]<class U>(U) { add_integers<U>(memory.old[0], memory.grad, memory.data[0], from, to, subtract); };
  switch (dtype_size(loop.dtype)) {
    case 1: return as(uint8_t{});
    case 2: return as(uint16_t{});
    case 4: return as(uint32_t{});
    default: return as(uint64_t{});
  }
}

constexpr int64_t kShard = 65536;  // elements

Status add_run(RunContext& c, VariableUpdate& update) {
  const auto& a = c.args<AddArgs>();
  DTG_TRY(check_tensor(c, update.tensor(0), a.loop.dtype, nullptr));
  if (!(update.tensor(0).shape() == a.shape)) {
    return c.error("the variable has shape %s, the value %s", update.tensor(0).shape().text().c_str(), a.shape.text().c_str());
  }
  cpu::UpdateMemory memory;
  memory.old[0] = update.old<void>(0);
  memory.data[0] = update.data<void>(0);
  memory.grad = c.in<void>(1);
  const int64_t count = a.shape.count();
  c.pool().parallel_for((count + kShard - 1) / kShard,
                        [&](int64_t shard) { add_elements(a.loop, memory, shard * kShard, std::min(count, (shard + 1) * kShard)); });
  return {};
}

Status add_prepare(PrepareContext& c) {
  auto* const a = c.args<AddArgs>();
  const std::string& op = c.node().op->name();
  a->loop.rule = op == "AssignAddVariableOp"   ? cpu::UpdateRule::add
                 : op == "AssignSubVariableOp" ? cpu::UpdateRule::subtract
                                               : cpu::UpdateRule::multiply;
  a->loop.dtype = c.attr<DType>("dtype");
  a->shape = c.input(1).shape;
  a->rewrites = true;
  return prepare_update(c, {0}, add_run);
}

void register_add(OpTable& ops, KernelTable& kernels, const char* name, DTypeSet types, const char* doc) {
  ops.add(OpDef::make(name)
              .input("resource: resource")
              .input("value: dtype")
              .attr("dtype: type")
              .shape(value_fits)
              .no_gradient()
              .stateful()
              .access(Access::write)
              .doc(doc));
  kernels.add({.op = name, .types = {{"dtype", types}}, .prepare = add_prepare});
}

// --- ResourceCountUpTo ---

struct CountArgs : UpdateArgs {
  int64_t limit = 0;
  bool wide = false;
};

Status count_shape(InferContext& c) {
  DTG_TRY(check_held(c, 0, "T"));
  DTG_TRY(c.require_rank(0, 0));
  c.output(0, PartialShape::scalar());
  return {};
}

template <class T>
Status count_as(RunContext& c, VariableUpdate& update, int64_t limit) {
  const T before = *update.old<T>(0);
  if (before >= limit) return out_of_range("count up to %lld: reached", static_cast<long long>(limit));
  *c.out<T>(0) = before;
  *update.data<T>(0) = static_cast<T>(before + 1);
  return {};
}

Status count_run(RunContext& c, VariableUpdate& update) {
  const auto& a = c.args<CountArgs>();
  const Shape scalar;
  DTG_TRY(check_tensor(c, update.tensor(0), a.wide ? DType::i64 : DType::i32, &scalar));
  return a.wide ? count_as<int64_t>(c, update, a.limit) : count_as<int32_t>(c, update, a.limit);
}

Status count_prepare(PrepareContext& c) {
  auto* const a = c.args<CountArgs>();
  a->limit = c.integer("limit");
  a->wide = c.attr<DType>("T") == DType::i64;
  a->rewrites = true;
  return prepare_update(c, {0}, count_run);
}

void register_count(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("ResourceCountUpTo")
              .input("resource: resource")
              .output("output: T")
              .attr("limit: int")
              .attr("T: {int32, int64}")
              .shape(count_shape)
              .no_gradient()
              .stateful()
              .access(Access::write)
              .doc("The value of a counter, which then goes up by one; OUT_OF_RANGE once it has reached limit."));
  kernels.add({.op = "ResourceCountUpTo", .prepare = count_prepare});
}

// --- VarIsInitializedOp ---

Status initialized_run(RunContext& c) {
  DTG_TRY(c.permitted(0));
  const Variable* const variable = variable_at(c, 0);
  *c.out<bool>(0) = variable && variable->initialized();
  return {};
}

// --- VariableShape ---

Status variable_shape_shape(InferContext& c) {
  c.output(0, PartialShape::vector(c.input(0).has_rank() ? c.input(0).rank() : -1));
  return {};
}

struct ShapeArgs : UpdateArgs {
  DType out = DType::i32;
  int64_t rank = -1;
};

Status variable_shape_run(RunContext& c, Variable::Version& read) {
  const Tensor& value = read.tensor;
  const auto& a = c.args<ShapeArgs>();
  const int rank = value.shape().rank();
  void* to = c.out<void>(0);
  if (a.rank < 0) {
    DTG_ASSIGN(to, c.lease_output(0, a.out, Shape::of({rank})));
  } else if (a.rank != rank) {
    return c.error("the variable has rank %d, this graph was prepared for %lld", rank, static_cast<long long>(a.rank));
  }
  for (int i = 0; i < rank; ++i) {
    if (a.out == DType::i64) {
      static_cast<int64_t*>(to)[i] = value.shape().dim(i);
    } else {
      static_cast<int32_t*>(to)[i] = static_cast<int32_t>(value.shape().dim(i));
    }
  }
  return {};
}

Status variable_shape_prepare(PrepareContext& c) {
  auto* const a = c.args<ShapeArgs>();
  a->out = c.attr<DType>("out_type");
  a->rank = c.output(0).dynamic ? -1 : c.output(0).shape.count();
  return prepare_read(c, 0, variable_shape_run);
}

void register_questions(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("VarIsInitializedOp")
              .input("resource: resource")
              .output("is_initialized: bool")
              .shape(scalar_shape)
              .no_gradient()
              .stateful()
              .access(Access::peek)
              .doc("Whether a variable has a value."));
  kernels.add({.op = "VarIsInitializedOp", .prepare = [](PrepareContext& c) { return c.sync(initialized_run); }});
  ops.add(OpDef::make("VariableShape")
              .input("input: resource")
              .output("output: out_type")
              .attr("out_type: {int32, int64} = int32")
              .shape(variable_shape_shape)
              .no_gradient()
              .stateful()
              .access(Access::peek)
              .doc("The shape of a variable's value."));
  kernels.add({.op = "VariableShape", .prepare = variable_shape_prepare});
}

// --- DestroyResourceOp ---

struct DestroyArgs {
  ResourceStore* store = nullptr;
  bool ignore = true;
};

Status destroy_run(RunContext& c) {
  DTG_TRY(c.permitted(0));
  const auto& a = c.args<DestroyArgs>();
  auto* const resource = static_cast<Resource*>(static_cast<RefCounted*>(const_cast<void*>(c.in<void>(0))));
  // A variable exists since somebody named it; what this op means by it is the value.
  const Variable* const variable = resource_cast<Variable>(c.in<void>(0));
  if (variable && !variable->initialized()) {
    if (a.ignore) return {};
    return not_found("destroy the variable \"%s\": it has no value", variable->name().c_str());
  }
  a.store->destroy(*resource, cancelled("the %s \"%s\" was destroyed", resource->kind(), resource->name().c_str()));
  return {};
}

Status destroy_prepare(PrepareContext& c) {
  auto* const a = c.args<DestroyArgs>();
  a->store = &c.store();
  a->ignore = c.boolean("ignore_lookup_error");
  return c.sync(destroy_run);
}

void register_destroy(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("DestroyResourceOp")
              .input("resource: resource")
              .attr("ignore_lookup_error: bool = true")
              .shape(no_outputs)
              .no_gradient()
              .stateful()
              .access(Access::destroy)
              .doc("Removes a resource from its device; its name is free again."));
  kernels.add({.op = "DestroyResourceOp", .prepare = destroy_prepare});
}

}  // namespace

void register_variable(OpTable& ops, KernelTable& kernels) {
  register_handle(ops, kernels);
  register_read(ops, kernels);
  register_assign(ops, kernels);
  register_add(ops, kernels, "AssignAddVariableOp", kReal, "Adds a value to a variable.");
  register_add(ops, kernels, "AssignSubVariableOp", kReal, "Subtracts a value from a variable.");
  // Not TensorFlow's: there a product is read, multiplied and assigned, which loses one where two workers do it at once, and
  // which only the chief may.
  register_add(ops, kernels, "_AssignMulVariableOp", kFloating, "Private: multiplies a variable by a value, the powers of Adam.");
  register_count(ops, kernels);
  register_questions(ops, kernels);
  register_destroy(ops, kernels);
  register_variable_rows(ops, kernels);
}

}  // namespace dtg::ops
