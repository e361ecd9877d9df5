// Gradients of the list ops. The gradient of a list is a list of gradients, element by element.
#include "ops/integers.h"
#include "ops/list.h"

namespace dtg::ops {
namespace {

Attr element_of(const GradContext& c) { return {"element_dtype", AttrValue(c.attr<DType>("element_dtype"))}; }

// The shape that input i says it has, as a vector of int32.
Value shape_of(GradContext& c, Value value) {
  // A list as an element: any shape.
  if (is_holder(c.b().info(value).dtype)) return c.b().integer(-1);
  return c.b().shape(value);
}

// The shape of a row of `value`.
Value row_shape(Build& b, Value value) {
  return b.op("StridedSlice", {b.shape(value), b.ints({1}), b.ints({0}), b.ints({1})}, {{"end_mask", 1}});
}

// The shape of rows of `value`, of any number.
Value piece_shape(Build& b, Value value) { return b.op("ConcatV2", {b.ints({-1}), row_shape(b, value), b.integer(0)}); }

// d(tensor) = the last element of d(list), d(input) = the rest
Status push_grad(GradContext& c) {
  const Value popped = c.b().op("TensorListPopBack", {c.dy(), shape_of(c, c.input(1))}, {element_of(c)});
  c.dx(0, popped);
  c.dx(1, popped.sibling(1));
  return c.b().status();
}

// d(input) = d(output) with d(tensor) at its end
Status pop_grad(GradContext& c) {
  const Value list = c.has_dy(0) ? c.dy(0) : c.b().zeros_like(c.output(0));
  const Value element = c.has_dy(1) ? c.dy(1) : c.b().zeros_like(c.output(1));
  c.dx(0, c.b().op("TensorListPushBack", {list, element}));
  return {};
}

// d(tensor) = d(list), stacked
Status from_tensor_grad(GradContext& c) {
  Build& b = c.b();
  c.dx(0, b.op("TensorListStack", {c.dy(), row_shape(b, c.input(0))}, {element_of(c)}));
  return {};
}

// d(list) = the rows of d(tensor)
Status stack_grad(GradContext& c) {
  Build& b = c.b();
  const Value dy = c.dy();
  c.dx(0, b.op("TensorListFromTensor", {dy, row_shape(b, dy)}));
  return {};
}

// d(list) is d(item) at index, else nothing
Status get_item_grad(GradContext& c) {
  Build& b = c.b();
  const Value length = b.op("TensorListLength", {c.input(0)});
  // Others may have other shapes; who asks for them says which.
  const bool alike = c.input_info(0).shape.complete();
  // Of lists that are elements, those that nobody asks for have zeros in the places of theirs.
  const bool lists = c.attr<DType>("element_dtype") == DType::variant;
  const Value nothing = lists ? b.zeros_like(c.input(0))
                              : b.op("TensorListReserve", {alike ? shape_of(c, c.output(0)) : b.integer(-1), length}, {element_of(c)});
  c.dx(0, b.op("TensorListSetItem", {nothing, c.input(1), c.dy()}));
  return {};
}

// d(item) = d(output)[index], d(input) = d(output) with zeros there
Status set_item_grad(GradContext& c) {
  Build& b = c.b();
  const Value dy = c.dy(), item = c.input(2);
  c.dx(0, b.op("TensorListSetItem", {dy, c.input(1), b.zeros_like(item)}));
  c.dx(2, b.op("TensorListGetItem", {dy, c.input(1), shape_of(c, item)}, {element_of(c)}));
  return {};
}

// d(list)[k] = the sum of d(values) of those that are element k
Status gather_grad(GradContext& c) {
  Build& b = c.b();
  const Value dy = c.dy();
  const Value length = b.op("TensorListLength", {c.input(0)});
  c.dx(0, b.op("TensorListFromTensor", {b.op("UnsortedSegmentSum", {dy, c.input(1), length}), row_shape(b, dy)}));
  return {};
}

// d(tensor) = d(list), gathered
Status scatter_grad(GradContext& c) {
  Build& b = c.b();
  c.dx(0, b.op("TensorListGather", {c.dy(), c.input(1), row_shape(b, c.input(0))}, {element_of(c)}));
  return {};
}

// d(list) = d(tensor), cut where the elements met
Status concat_grad(GradContext& c) {
  if (!c.has_dy(0)) return {};
  Build& b = c.b();
  c.dx(0, b.op("TensorListSplit", {c.dy(0), piece_shape(b, c.output(0)), c.output(1)}));
  return {};
}

// d(tensor) = the pieces of d(list), one behind the other
Status split_grad(GradContext& c) {
  Build& b = c.b();
  c.dx(0, b.op("TensorListConcatV2", {c.dy(), piece_shape(b, c.input(0)), c.input(2)}, {element_of(c)}));
  return {};
}

// d(tensor) = d(output), gathered; d(list) = d(output) with zeros there
Status scatter_into_grad(GradContext& c) {
  Build& b = c.b();
  const Value dy = c.dy(), tensor = c.input(1);
  c.dx(1, b.op("TensorListGather", {dy, c.input(2), row_shape(b, tensor)}, {element_of(c)}));
  const Value zeros = b.op("TensorListScatterIntoExistingList", {dy, b.zeros_like(tensor), c.input(2)});
  c.dx(0, b.op("TensorListResize", {zeros, b.op("TensorListLength", {c.input(0)})}));
  return {};
}

Status resize_grad(GradContext& c) {
  Build& b = c.b();
  c.dx(0, b.op("TensorListResize", {c.dy(), b.op("TensorListLength", {c.input(0)})}));
  return {};
}

}  // namespace

GradFn list_gradient(std::string_view op) {
  constexpr struct {
    std::string_view op;
    GradFn gradient;
  } kRows[] = {{"TensorListPushBack", push_grad},
               {"TensorListPopBack", pop_grad},
               {"TensorListFromTensor", from_tensor_grad},
               {"TensorListStack", stack_grad},
               {"TensorListGetItem", get_item_grad},
               {"TensorListSetItem", set_item_grad},
               {"TensorListGather", gather_grad},
               {"TensorListScatter", scatter_grad},
               {"TensorListScatterV2", scatter_grad},
               {"TensorListResize", resize_grad},
               {"TensorListConcat", concat_grad},
               {"TensorListConcatV2", concat_grad},
               {"TensorListSplit", split_grad},
               {"TensorListScatterIntoExistingList", scatter_into_grad}};
  for (const auto& row : kRows) {
    if (row.op == op) return row.gradient;
  }
  return nullptr;
}

}  // namespace dtg::ops
