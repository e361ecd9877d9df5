// TensorArray ops: definitions, shapes and gradients. Each op takes a flow and gives one: a number that nobody reads, which orders the
// ops and leads gradients back through them. Gradients meet in an array of their own, one for each reverse pass. Called by the thread that
// builds the graph.
#include "ops/tensor_array.h"

#include "graph/function.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/list.h"

namespace dtg::ops {
namespace {

// --- shapes ---

Status check_held(InferContext& c, const char* type) {
  const DType held = c.held_dtype(0), wanted = c.attr<DType>(type);
  if (held == DType::invalid || held == wanted) return {};
  return c.error("the array holds %s, but %s is %s", dtype_name(held), type, dtype_name(wanted));
}

Status flow_shape(InferContext& c) {
  c.output(0, PartialShape::scalar());
  return {};
}

Status make_shape(InferContext& c) {
  c.output_held(0, c.attr<DType>("dtype"), c.attr<PartialShape>("element_shape"));
  c.output(1, PartialShape::scalar());
  return {};
}

Status grad_shape(InferContext& c) {
  c.output_held(0, c.held_dtype(0), c.input(0));
  c.output(1, PartialShape::scalar());
  return {};
}

// What stands before each gradient's own dimensions: of as many elements as the op is told, of unknown rank where it is told in the run.
Result<PartialShape> widened(InferContext& c, const PartialShape& element) {
  const Tensor known = c.constant(2);
  if (!known.valid()) return PartialShape::unknown();
  PartialShape all = PartialShape::scalar();
  for (int64_t i = 0; i < known.count(); ++i) {
    if (known.int_at(i) < 0)
      return c.error("shape_to_prepend[%lld] is %lld", static_cast<long long>(i), static_cast<long long>(known.int_at(i)));
    DTG_TRY(all.append(known.int_at(i)));
  }
  if (!element.has_rank()) return element;
  for (const int64_t dim : element.dims()) DTG_TRY(all.append(dim));
  return all;
}

Status wide_grad_shape(InferContext& c) {
  DTG_ASSIGN(PartialShape element, widened(c, c.input(0)));
  c.output_held(0, c.held_dtype(0), std::move(element));
  c.output(1, PartialShape::scalar());
  return {};
}

Status write_shape(InferContext& c) {
  DTG_TRY(check_held(c, "T"));
  DTG_TRY(both_shapes(c, c.input(0), c.input(2)).status());
  return flow_shape(c);
}

Status scatter_shape(InferContext& c) {
  DTG_TRY(check_held(c, "T"));
  DTG_TRY(both_shapes(c, c.input(0), without_first(c.input(2))).status());
  return flow_shape(c);
}

Status split_shape(InferContext& c) {
  DTG_TRY(check_held(c, "T"));
  return flow_shape(c);
}

Status read_shape(InferContext& c) {
  DTG_TRY(check_held(c, "dtype"));
  c.output(0, c.input(0));
  return {};
}

Status gather_shape(InferContext& c) {
  DTG_TRY(check_held(c, "dtype"));
  DTG_ASSIGN(const PartialShape row, both_shapes(c, c.input(0), c.attr<PartialShape>("element_shape")));
  DTG_ASSIGN(PartialShape all, with_first(c.input(1).has_rank() ? c.input(1).dim(0) : -1, row));
  c.output(0, std::move(all));
  return {};
}

Status concat_shape(InferContext& c) {
  DTG_TRY(check_held(c, "dtype"));
  DTG_ASSIGN(PartialShape all, with_first(-1, c.attr<PartialShape>("element_shape_except0")));
  c.output(0, std::move(all));
  c.output(1, PartialShape::vector(-1));
  return {};
}

Status outline_shape(InferContext& c) {
  c.output(0, PartialShape::vector(-1));
  return {};
}

}  // namespace

// --- gradients ---

namespace {

// For what reads: of the array all is done that its flow follows.
Result<ArrayGradients> gradients_to_write(GradContext& c) { return gradients_of_array(c, c.input(0), c.input(c.num_inputs() - 1)); }
// For what writes: of the gradients all is done that the gradient of its flow follows.
Result<ArrayGradients> gradients_to_read(GradContext& c) { return gradients_of_array(c, c.input(0), c.output(0), c.dy()); }
void dx_flow(GradContext& c, Value flow) { c.dx(c.num_inputs() - 1, flow); }
Attr type_of(GradContext& c, const char* type) { return {"dtype", AttrValue(c.attr<DType>(type))}; }

// Element index of the gradients' array += d(value)
Status read_grad(GradContext& c) {
  DTG_ASSIGN(const ArrayGradients g, gradients_to_write(c));
  dx_flow(c, c.b().op("TensorArrayWriteV3", {g.handle, c.input(1), c.dy(), g.flow}));
  return {};
}

Status gather_grad(GradContext& c) {
  DTG_ASSIGN(const ArrayGradients g, gradients_to_write(c));
  dx_flow(c, c.b().op("TensorArrayScatterV3", {g.handle, c.input(1), c.dy(), g.flow}));
  return {};
}

Status concat_grad(GradContext& c) {
  if (!c.has_dy(0)) return {};
  DTG_ASSIGN(const ArrayGradients g, gradients_to_write(c));
  dx_flow(c, c.b().op("TensorArraySplitV3", {g.handle, c.dy(0), c.output(1), g.flow}));
  return {};
}

// The flow leads on, so that gradients of gradients come back to what was written to this array.
Status mirror_grad(GradContext& c) {
  if (c.has_dy(1)) c.dx(1, c.dy(1));
  return {};
}

// Of what is no floating-point number there are no gradients; the flow leads on to what was written before.
bool has_gradients(const GradContext& c) { return dtype_is_floating(c.attr<DType>("T")); }

// d(value) = element index of the gradients' array
Status write_grad(GradContext& c) {
  dx_flow(c, c.dy());
  if (!has_gradients(c)) return {};
  DTG_ASSIGN(const ArrayGradients g, gradients_to_read(c));
  c.dx(2, c.b().op("TensorArrayReadV3", {g.handle, c.input(1), g.flow}, {type_of(c, "T")}));
  return {};
}

Status scatter_grad(GradContext& c) {
  dx_flow(c, c.dy());
  if (!has_gradients(c)) return {};
  DTG_ASSIGN(const ArrayGradients g, gradients_to_read(c));
  const PartialShape row = without_first(c.input_info(2).shape);
  c.dx(2, c.b().op("TensorArrayGatherV3", {g.handle, c.input(1), g.flow}, {type_of(c, "T"), {"element_shape", row}}));
  return {};
}

Status split_grad(GradContext& c) {
  dx_flow(c, c.dy());
  if (!has_gradients(c)) return {};
  DTG_ASSIGN(const ArrayGradients g, gradients_to_read(c));
  const PartialShape rest = without_first(c.input_info(1).shape);
  c.dx(1, c.b().op("TensorArrayConcatV3", {g.handle, g.flow}, {type_of(c, "T"), {"element_shape_except0", rest}}));
  return {};
}

// --- definitions ---

// Whatever is done to an array is ordered among its like; it is no write, since no log of a task keeps what lives in one run.
OpDef begin(const char* name, const char* doc) {
  OpDef def = OpDef::make(name);
  std::move(def).stateful().doc(doc);
  return def;
}

void register_makers(OpTable& ops) {
  ops.add(begin("TensorArrayV3", "An array of so many tensors, none of which is written; it lives as long as the run.")
              .input("size: int32", {.rank = 0})
              .output("handle: resource")
              .output("flow: float")
              .attr("dtype: type")
              .attr("element_shape: shape = unknown")
              .attr("dynamic_size: bool = false")
              .attr("clear_after_read: bool = true")
              .attr("identical_element_shapes: bool = false")
              .attr("tensor_array_name: string = ''")
              .shape(make_shape)
              .no_gradient());
  ops.add(begin("TensorArrayGradV3",
                "The array of the gradients of an array, the same one for the same source. What is written there is added up.")
              .input("handle: resource")
              .input("flow_in: float", {.rank = 0})
              .output("grad_handle: resource")
              .output("flow_out: float")
              .attr("source: string")
              .shape(grad_shape)
              .access(Access::produce)
              // The array and all arrays of its gradients are one, as far as the order of what is done to them goes.
              .forwards()
              .gradient(mirror_grad));
  ops.add(
      begin("TensorArrayGradWithShape",
            "The array of the gradients of an array, as TensorArrayGradV3 gives it, whose elements have shape_to_prepend before their own "
            "dimensions: for the gradients of several values at once.")
          .input("handle: resource")
          .input("flow_in: float", {.rank = 0})
          .input("shape_to_prepend: int32", {.rank = 1})
          .output("grad_handle: resource")
          .output("flow_out: float")
          .attr("source: string")
          .shape(wide_grad_shape)
          .access(Access::produce)
          .forwards()
          .gradient(mirror_grad));
}

// What is asked of an array as a whole.
void register_wholes(OpTable& ops) {
  ops.add(begin("TensorArraySizeV3", "How many elements an array has.")
              .input("handle: resource")
              .input("flow_in: float", {.rank = 0})
              .output("size: int32")
              .shape(scalar_shape)
              .access(Access::produce)
              .no_gradient());
  ops.add(begin(kOutlineOp, "What an array of the gradients of an array must know of it.")
              .input("handle: resource")
              .input("flow_in: float", {.rank = 0})
              .output("outline: int64")
              .shape(outline_shape)
              .access(Access::produce)
              .no_gradient());
  ops.add(begin(kOfOutlineOp, "An array of gradients after the outline of an array. What is written there is added up.")
              .input("outline: int64", {.rank = 1})
              .output("handle: resource")
              .output("flow: float")
              .attr("dtype: type")
              .attr("element_shape: shape = unknown")
              .shape(make_shape)
              .no_gradient());
  ops.add(begin("TensorArrayCloseV3", "Drops what is in an array; nothing can be done with it any more.")
              .input("handle: resource")
              .shape(no_outputs)
              .access(Access::produce)
              .no_gradient());
}

void register_writers(OpTable& ops) {
  ops.add(begin("TensorArrayWriteV3", "Makes a value element index of an array.")
              .input("handle: resource")
              .input("index: int32", {.rank = 0})
              .input("value: T")
              .input("flow_in: float", {.rank = 0})
              .output("flow_out: float")
              .attr("T: type")
              .shape(write_shape)
              .access(Access::produce)
              .gradient(write_grad));
  ops.add(begin("TensorArrayScatterV3", "Makes row i of a value element indices[i] of an array.")
              .input("handle: resource")
              .input("indices: int32", {.rank = 1})
              .input("value: T", {.rank_min = 1})
              .input("flow_in: float", {.rank = 0})
              .output("flow_out: float")
              .attr("T: type")
              .shape(scatter_shape)
              .access(Access::produce)
              .gradient(scatter_grad));
  ops.add(begin("TensorArraySplitV3", "Cuts a value along its first dimension into the elements of an array, of so many rows each.")
              .input("handle: resource")
              .input("value: T", {.rank_min = 1})
              .input("lengths: int64", {.rank = 1})
              .input("flow_in: float", {.rank = 0})
              .output("flow_out: float")
              .attr("T: type")
              .shape(split_shape)
              .access(Access::produce)
              .gradient(split_grad));
}

void register_readers(OpTable& ops) {
  ops.add(begin("TensorArrayReadV3", "Element index of an array.")
              .input("handle: resource")
              .input("index: int32", {.rank = 0})
              .input("flow_in: float", {.rank = 0})
              .output("value: dtype")
              .attr("dtype: type")
              .shape(read_shape)
              .access(Access::produce)
              .gradient(read_grad));
  ops.add(begin("TensorArrayGatherV3", "The elements of an array at some indices as the rows of one tensor.")
              .input("handle: resource")
              .input("indices: int32", {.rank = 1})
              .input("flow_in: float", {.rank = 0})
              .output("value: dtype")
              .attr("dtype: type")
              .attr("element_shape: shape = unknown")
              .shape(gather_shape)
              .access(Access::produce)
              .gradient(gather_grad));
  ops.add(
      begin("TensorArrayConcatV3", "The elements of an array one behind the other along their first dimension, and how many rows each had.")
          .input("handle: resource")
          .input("flow_in: float", {.rank = 0})
          .output("value: dtype")
          .output("lengths: int64")
          .attr("dtype: type")
          .attr("element_shape_except0: shape = unknown")
          .shape(concat_shape)
          .access(Access::produce)
          .gradient(concat_grad));
}

}  // namespace

void register_tensor_array(OpTable& ops, KernelTable& kernels) {
  register_makers(ops);
  register_wholes(ops);
  register_writers(ops);
  register_readers(ops);
  for (const ArrayKernel& row : array_kernels()) {
    const OpDef& op = *ops.find(row.op);
    KernelRow kernel{.op = row.op, .prepare = row.prepare, .mode = KernelMode::host};
    for (const char* type : {"T", "dtype"}) {
      if (op.find_attr(type)) kernel.types = {{type, kMovable}};
    }
    kernels.add(std::move(kernel));
  }
}

}  // namespace dtg::ops
