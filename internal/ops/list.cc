// TensorList ops: definitions and shapes. A list is a value of type variant; what is known of its elements travels with it.
#include "ops/list.h"

#include "ops/all.h"
#include "ops/integers.h"

namespace dtg::ops {

Result<PartialShape> element_shape(InferContext& c, int i) {
  const Tensor known = c.constant(i);
  if (c.input(i).has_rank() && c.input(i).rank() > 1)
    return c.error("element_shape must be a vector or -1, but has shape %s", c.input(i).text().c_str());
  if (!known.valid()) {
    if (!c.input(i).has_rank() || c.input(i).rank() == 0 || c.input(i).dim(0) < 0) return PartialShape::unknown();
    if (c.input(i).dim(0) > kRankMax) return c.error("an element of rank %lld", static_cast<long long>(c.input(i).dim(0)));
    return PartialShape::of_rank(static_cast<int>(c.input(i).dim(0)));
  }
  if (known.shape().is_scalar()) {
    if (known.int_at(0) == -1) return PartialShape::unknown();
    return c.error("element_shape is the number %lld; it is a vector, or -1 for any shape", static_cast<long long>(known.int_at(0)));
  }
  return c.shape_from_input(i);
}

Result<PartialShape> both_shapes(InferContext& c, const PartialShape& a, const PartialShape& b) {
  auto merged = PartialShape::merge(a, b, "the list's elements and the op");
  if (!merged.ok()) return c.error("%s", merged.status().message().c_str());
  return merged;
}

Status check_element(InferContext& c) {
  const DType held = c.held_dtype(0), wanted = c.attr<DType>("element_dtype");
  if (held == DType::invalid || held == wanted) return {};
  return c.error("the list holds %s, but element_dtype is %s", dtype_name(held), dtype_name(wanted));
}

PartialShape without_first(const PartialShape& shape) {
  if (!shape.has_rank() || shape.rank() == 0) return PartialShape::unknown();
  PartialShape rest = PartialShape::of_rank(shape.rank() - 1);
  for (int d = 1; d < shape.rank(); ++d) rest.set_dim(d - 1, shape.dim(d));
  return rest;
}

Result<PartialShape> with_first(int64_t count, const PartialShape& shape) {
  if (!shape.has_rank()) return PartialShape::unknown();
  PartialShape all = PartialShape::vector(count);
  for (const int64_t dim : shape.dims()) DTG_TRY(all.append(dim));
  return all;
}

Status same_list(InferContext& c) {
  DTG_TRY(check_element(c));
  c.output_held(0, c.attr<DType>("element_dtype"), c.input(0));
  return {};
}

OpDef make_list_op(const char* name, ShapeFn shape, const char* doc) {
  OpDef def = OpDef::make(name);
  std::move(def).shape(shape).doc(doc);
  if (const GradFn gradient = list_gradient(name)) std::move(def).gradient(gradient);
  else std::move(def).no_gradient();
  return def;
}

namespace {

Status new_list_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 0));
  DTG_ASSIGN(PartialShape shape, element_shape(c, 0));
  c.output_held(0, c.attr<DType>("element_dtype"), std::move(shape));
  return {};
}

Status from_tensor_shape(InferContext& c) {
  DTG_TRY(c.require_rank_at_least(0, 1));
  DTG_ASSIGN(const PartialShape declared, element_shape(c, 1));
  DTG_ASSIGN(PartialShape shape, both_shapes(c, declared, without_first(c.input(0))));
  c.output_held(0, c.attr<DType>("element_dtype"), std::move(shape));
  return {};
}

Status set_item_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 0));
  if (!is_holder(c.input_dtype(2))) DTG_TRY(both_shapes(c, c.input(0), c.input(2)).status());
  return same_list(c);
}

Status push_shape(InferContext& c) {
  if (!is_holder(c.input_dtype(1))) DTG_TRY(both_shapes(c, c.input(0), c.input(1)).status());
  return same_list(c);
}

// An element comes out.
Status give_element(InferContext& c, int output, int shape_input) {
  DTG_TRY(check_element(c));
  if (is_holder(c.attr<DType>("element_dtype"))) {
    c.output_held(output, DType::invalid, PartialShape::unknown());
    return {};
  }
  DTG_ASSIGN(const PartialShape declared, element_shape(c, shape_input));
  DTG_ASSIGN(PartialShape shape, both_shapes(c, c.input(0), declared));
  c.output(output, std::move(shape));
  return {};
}

Status get_item_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 0));
  return give_element(c, 0, 2);
}

Status pop_shape(InferContext& c) {
  DTG_TRY(give_element(c, 1, 1));
  return same_list(c);
}

Status stack_shape(InferContext& c) {
  DTG_TRY(check_element(c));
  DTG_ASSIGN(const PartialShape declared, element_shape(c, 1));
  DTG_ASSIGN(const PartialShape shape, both_shapes(c, c.input(0), declared));
  DTG_ASSIGN(PartialShape all, with_first(c.integer("num_elements"), shape));
  c.output(0, std::move(all));
  return {};
}

Status gather_shape(InferContext& c) {
  DTG_TRY(check_element(c));
  DTG_TRY(c.require_rank(1, 1));
  DTG_ASSIGN(const PartialShape declared, element_shape(c, 2));
  DTG_ASSIGN(const PartialShape shape, both_shapes(c, c.input(0), declared));
  DTG_ASSIGN(PartialShape all, with_first(c.input(1).has_rank() ? c.input(1).dim(0) : -1, shape));
  c.output(0, std::move(all));
  return {};
}

Status scatter_shape(InferContext& c) {
  DTG_TRY(c.require_rank_at_least(0, 1));
  DTG_TRY(c.require_rank(1, 1));
  DTG_ASSIGN(const PartialShape declared, element_shape(c, 2));
  DTG_ASSIGN(PartialShape shape, both_shapes(c, declared, without_first(c.input(0))));
  c.output_held(0, c.attr<DType>("element_dtype"), std::move(shape));
  return {};
}

Status resize_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 0));
  c.output_held(0, c.held_dtype(0), c.input(0));
  return {};
}

// More may be known of the elements than the list was made for, so a vector or the number -1.
Status element_shape_shape(InferContext& c) {
  c.output(0, PartialShape::unknown());
  return {};
}

void register_makers(OpTable& ops) {
  ops.add(make_list_op("EmptyTensorList", new_list_shape, "An empty list of tensors.")
              .input("element_shape: shape_type")
              .input("max_num_elements: int32")
              .output("handle: variant")
              .attr("element_dtype: type")
              .attr("shape_type: {int32, int64}"));
  ops.add(make_list_op("TensorListReserve", new_list_shape, "A list of so many elements, none of which is set.")
              .input("element_shape: shape_type")
              .input("num_elements: int32")
              .output("handle: variant")
              .attr("element_dtype: type")
              .attr("shape_type: {int32, int64}"));
  ops.add(make_list_op("TensorListFromTensor", from_tensor_shape, "The rows of a tensor as a list.")
              .input("tensor: element_dtype")
              .input("element_shape: shape_type")
              .output("output_handle: variant")
              .attr("element_dtype: type")
              .attr("shape_type: {int32, int64}"));
  ops.add(make_list_op("TensorListScatter", scatter_shape,
                       "A list of as many elements as the largest index asks for, in which row i of the tensor is element indices[i].")
              .input("tensor: element_dtype")
              .input("indices: int32")
              .input("element_shape: shape_type")
              .output("output_handle: variant")
              .attr("element_dtype: type")
              .attr("shape_type: {int32, int64}"));
  ops.add(make_list_op(
              "TensorListScatterV2", scatter_shape,
              "A list of num_elements (-1: as many as the largest index asks for), in which row i of the tensor is element indices[i].")
              .input("tensor: element_dtype")
              .input("indices: int32")
              .input("element_shape: shape_type")
              .input("num_elements: int32")
              .output("output_handle: variant")
              .attr("element_dtype: type")
              .attr("shape_type: {int32, int64}"));
}

void register_changes(OpTable& ops) {
  ops.add(make_list_op("TensorListSetItem", set_item_shape, "The list with another element at index.")
              .input("input_handle: variant")
              .input("index: int32")
              .input("item: element_dtype")
              .output("output_handle: variant")
              .attr("element_dtype: type")
              .attr("resize_if_index_out_of_bounds: bool = false"));
  ops.add(make_list_op("TensorListPushBack", push_shape, "The list with one more element at its end.")
              .input("input_handle: variant")
              .input("tensor: element_dtype")
              .output("output_handle: variant")
              .attr("element_dtype: type"));
  ops.add(make_list_op("TensorListPopBack", pop_shape, "The list without its last element, and that.")
              .input("input_handle: variant")
              .input("element_shape: int32")
              .output("output_handle: variant")
              .output("tensor: element_dtype")
              .attr("element_dtype: type"));
  ops.add(make_list_op("TensorListResize", resize_shape, "The list cut, or with elements at its end that are not set.")
              .input("input_handle: variant")
              .input("size: int32")
              .output("output_handle: variant"));
}

void register_views(OpTable& ops) {
  ops.add(make_list_op("TensorListGetItem", get_item_shape, "Element index; zeros where it is not set and its shape is known.")
              .input("input_handle: variant")
              .input("index: int32")
              .input("element_shape: Tshape")
              .output("item: element_dtype")
              .attr("element_dtype: type")
              .attr("Tshape: {int32, int64} = int32"));
  ops.add(make_list_op("TensorListStack", stack_shape, "All elements as the rows of one tensor.")
              .input("input_handle: variant")
              .input("element_shape: int32")
              .output("tensor: element_dtype")
              .attr("element_dtype: type")
              .attr("num_elements: int = -1"));
  ops.add(make_list_op("TensorListGather", gather_shape, "The elements at some indices as the rows of one tensor.")
              .input("input_handle: variant")
              .input("indices: int32")
              .input("element_shape: int32")
              .output("values: element_dtype")
              .attr("element_dtype: type"));
  ops.add(make_list_op("TensorListLength", scalar_shape, "How many elements the list has.")
              .input("input_handle: variant")
              .output("length: int32"));
  ops.add(make_list_op("TensorListElementShape", element_shape_shape, "The shape that the list was made for: -1 where it is open.")
              .input("input_handle: variant")
              .output("element_shape: shape_type")
              .attr("shape_type: {int32, int64}"));
}

}  // namespace

void register_list(OpTable& ops, KernelTable& kernels) {
  register_makers(ops);
  register_changes(ops);
  register_views(ops);
  register_list_pieces(ops);
  // A handle would be memory of ours where a value is expected.
  const KernelRow::TypeClause elements{"element_dtype", kMovable | DTypeSet{DType::variant}}, lists{"T", DTypeSet{DType::variant}};
  for (const auto& rows : {list_kernels(), list_piece_kernels()}) {
    for (const ListKernel& row : rows) {
      if (ops.find(row.op)->find_attr("element_dtype")) kernels.add({.op = row.op, .types = {elements}, .prepare = row.prepare});
      else kernels.add({.op = row.op, .prepare = row.prepare});
    }
  }
  kernels.add({.op = "ZerosLike", .types = {lists}, .prepare = zeros_like_list_prepare});
  kernels.add({.op = "AddN", .types = {lists}, .prepare = add_lists_prepare});
}

}  // namespace dtg::ops
