// Lists of tensors: what the files of the family share. Definitions are in list.cc; kernels in list_run.cc (one element, one row after the
// other), list_pieces.cc (rows in pieces, lists in one) and list_sum.cc (element by element), what they have in common in list_items.cc;
// gradients in list_grad.cc. Kernels run on the threads of a run and hold nothing between runs.
#pragma once

#include "exec/kernel.h"
#include "exec/tensor_list.h"
#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/integers.h"

namespace dtg::ops {

struct ListKernel {
  const char* op;
  PrepareFn prepare;
};
std::span<const ListKernel> list_kernels();
std::span<const ListKernel> list_piece_kernels();
GradFn list_gradient(std::string_view op);  // null: none

// The element shape that input i says: a vector, or -1 for any.
Result<PartialShape> element_shape(InferContext& c, int i);
// What both say of an element.
Result<PartialShape> both_shapes(InferContext& c, const PartialShape& a, const PartialShape& b);
PartialShape without_first(const PartialShape& shape);
Result<PartialShape> with_first(int64_t count, const PartialShape& shape);
// Those of list_pieces.cc.
void register_list_pieces(OpTable& ops);
OpDef make_list_op(const char* name, ShapeFn shape, const char* doc);
Status check_element(InferContext& c);
Status same_list(InferContext& c);

using Item = TensorList::Item;

// No list has more.
inline constexpr int64_t kElementsMax = int64_t{1} << 24;

// The list in a slot.
Result<const TensorList*> list_at(const RunContext& c, int input);
void give_list(RunContext& c, int output, Ref<TensorList> list);
Status check_dtype(const RunContext& c, const TensorList& list, DType wanted);
Status check_index(const RunContext& c, const TensorList& list, int64_t index);
// Elements in memory that is used again; without data, zeros.
Result<Tensor> copy_of(const RunContext& c, DType dtype, const Shape& shape, const void* data);
// a + b, of equal shapes.
Result<Tensor> sum_of(const RunContext& c, const Tensor& a, const Tensor& b);
// What was copied from an element are the cells of strings; their bytes stay where they are.
void keep_bytes(const RunContext& c, const Tensor& element);

// A shape given as a vector of integers with -1 for what is open, or as the number -1.
struct ShapeInput {
  int input = 0;
  DType dtype = DType::i32;
  Shape shape;

  void prepare(const PrepareContext& c, int i) {
    input = i;
    dtype = c.input(i).dtype;
    shape = c.input(i).shape;
  }
  Result<PartialShape> get(const RunContext& c) const;
};

struct ListArgs {
  DType dtype = DType::invalid;
  ShapeInput element_shape;
  Shape item;  // of the tensor that is put in
  OutputSpec out;
  int64_t number = -1;
  bool flag = false;
};

ListArgs* start(PrepareContext& c);
Status check_storable(const PrepareContext& c, DType dtype);
// Its memory, where that outlives the run (PrepareContext::keeps); else no tensor.
Result<Tensor> lasting_operand(const RunContext& c, const ListArgs& a, int i);
// The operand `i` as an element.
Result<Item> item_of(const RunContext& c, const ListArgs& a, int i);
// The shape of what is not set: what the list, the op and the elements that are set say.
Result<Shape> unset_shape(const RunContext& c, const TensorList& list, const PartialShape& asked);
// Element `item` of `list` as output o, which is brought: the element's own memory, which nobody writes to.
Status give_item(RunContext& c, const ListArgs& a, const TensorList& list, Item item, int o);
// How many elements input i asks for.
Result<size_t> count_of(const RunContext& c, int input);
// A number that was fed may ask for more elements, of so many bytes each, than there is memory.
Status check_room(const RunContext& c, int64_t count, size_t each, const char* what);
// Of a list.
Status check_length(const RunContext& c, int64_t count);
Result<Shape> row_of(const PrepareContext& c, const Shape& shape);

// Rows of ZerosLike and AddN for lists: element by element.
Status zeros_like_list_prepare(PrepareContext& c);
Status add_lists_prepare(PrepareContext& c);

}  // namespace dtg::ops
