// Lists as pieces of one tensor, which may differ in how many rows they have: TensorListSplit, TensorListConcat and its second version;
// one list behind another, and rows put into a list that is there. Definitions, shapes and kernels; called by the thread that builds and
// on the threads of a run.

#include "base/watched.h"
#include "device/cpu/copy.h"
#include "ops/list.h"

namespace dtg::ops {
namespace {

// --- shapes ---

// Rows of any number.
Result<PartialShape> rows_of_pieces(const PartialShape& piece) { return with_first(-1, without_first(piece)); }

Status split_shape(InferContext& c) {
  DTG_TRY(c.require_rank_at_least(0, 1));
  DTG_TRY(c.require_rank(2, 1));
  DTG_ASSIGN(const PartialShape declared, element_shape(c, 1));
  if (declared.has_rank() && declared.rank() == 0) return c.error("element_shape says scalars; a piece has rows");
  PartialShape pieces;
  if (c.input(0).has_rank()) {
    DTG_ASSIGN(pieces, with_first(-1, without_first(c.input(0))));
  }
  DTG_ASSIGN(PartialShape shape, both_shapes(c, declared, pieces));
  c.output_held(0, c.attr<DType>("element_dtype"), std::move(shape));
  return {};
}

Status give_rows_of(InferContext& c, const PartialShape& declared) {
  DTG_TRY(check_element(c));
  DTG_ASSIGN(const PartialShape piece, both_shapes(c, c.input(0), declared));
  if (piece.has_rank() && piece.rank() == 0) return c.error("the elements are scalars; those with rows can be put one behind the other");
  if (piece.has_rank()) {
    DTG_ASSIGN(PartialShape all, rows_of_pieces(piece));
    c.output(0, std::move(all));
  }
  c.output(1, PartialShape::vector(-1));
  return {};
}

Status concat_shape(InferContext& c) { return give_rows_of(c, c.attr<PartialShape>("element_shape")); }

Status concat_v2_shape(InferContext& c) {
  DTG_TRY(c.require_rank(2, 1));
  DTG_ASSIGN(const PartialShape declared, element_shape(c, 1));
  return give_rows_of(c, declared);
}

Status concat_lists_shape(InferContext& c) {
  DTG_TRY(check_element(c));
  const DType other = c.held_dtype(1), wanted = c.attr<DType>("element_dtype");
  if (other != DType::invalid && other != wanted)
    return c.error("input_b holds %s, but element_dtype is %s", dtype_name(other), dtype_name(wanted));
  DTG_ASSIGN(PartialShape shape, both_shapes(c, c.input(0), c.input(1)));
  c.output_held(0, wanted, std::move(shape));
  return {};
}

Status scatter_into_shape(InferContext& c) {
  DTG_TRY(c.require_rank_at_least(1, 1));
  DTG_TRY(c.require_rank(2, 1));
  DTG_TRY(both_shapes(c, c.input(0), without_first(c.input(1))).status());
  return same_list(c);
}

// --- kernels ---

struct PieceArgs : ListArgs {
  PartialShape declared;  // of the first version of Concat
  bool is_second = false;
  int64_t leading = 0;  // how many leading_dims there are
  OutputSpec lengths;
};

PieceArgs* begin(PrepareContext& c) {
  auto* const a = c.args<PieceArgs>();
  a->dtype = c.attr<DType>("element_dtype");
  return a;
}

Status check_rows(const PrepareContext& c, DType dtype) {
  if (cell_bytes(dtype) > 0) return {};
  return unimplemented("%s: rows of %s", c.node().op->name().c_str(), dtype_name(dtype));
}

Status split_run(RunContext& c) {
  const auto& a = c.args<PieceArgs>();
  DTG_ASSIGN(PartialShape declared, a.element_shape.get(c));
  const auto* const lengths = c.in<int64_t>(2);
  const int64_t all = a.item.dim(0), row = all > 0 ? a.item.count() / all * cell_bytes(a.dtype) : 0;
  std::vector<Item> items(static_cast<size_t>(a.number));
  int64_t at = 0;
  for (int64_t i = 0; i < a.number; ++i) {
    const int64_t rows = lengths[i];
    if (rows < 0 || rows > all - at) {
      return c.error("lengths[%lld] is %lld, and %lld of %lld rows are left", static_cast<long long>(i), static_cast<long long>(rows),
                     static_cast<long long>(all - at), static_cast<long long>(all));
    }
    std::vector<int64_t> dims(a.item.dims().begin(), a.item.dims().end());
    dims[0] = rows;
    DTG_ASSIGN(const Shape shape, Shape::make(dims));
    if (!declared.admits(shape)) {
      return c.error("piece %lld has shape %s, element_shape says %s", static_cast<long long>(i), shape.text().c_str(),
                     declared.text().c_str());
    }
    DTG_ASSIGN(items[static_cast<size_t>(i)].tensor, copy_of(c, a.dtype, shape, c.in<char>(0) + at * row));
    at += rows;
  }
  if (at != all) {
    return c.error("the tensor has %lld rows, and lengths say %lld", static_cast<long long>(all), static_cast<long long>(at));
  }
  give_list(c, 0, make_ref<TensorList>(a.dtype, std::move(declared), std::move(items)));
  return {};
}

Status split_prepare(PrepareContext& c) {
  auto* const a = begin(c);
  DTG_TRY(check_rows(c, a->dtype));
  a->item = c.input(0).shape;
  if (a->item.rank() == 0) return c.error("a scalar has no rows");
  a->number = c.input(2).shape.count();
  a->element_shape.prepare(c, 1);
  return c.sync(split_run);
}

// What all pieces share: everything behind the rows.
Result<Shape> rest_of_pieces(const RunContext& c, const TensorList& list, std::span<const Item> items, const PartialShape& asked) {
  auto merged = PartialShape::merge(list.element_shape(), asked, "the list's elements and element_shape");
  if (!merged.ok()) return c.error("%s", merged.status().message().c_str());
  if (merged.value().has_rank() && merged.value().rank() == 0) return c.error("the elements are scalars, which have no rows");
  PartialShape rest = without_first(merged.value());
  for (const Item& item : items) {
    if (!item.tensor.valid() || rest.complete()) continue;
    if (item.tensor.shape().rank() == 0) return c.error("an element is a scalar, which has no rows");
    rest = without_first(PartialShape(item.tensor.shape()));
  }
  if (rest.complete()) return rest.to_shape();
  return c.error("what pieces share behind their rows is not known: %s; nothing is in the list that would say it", asked.text().c_str());
}

// How many rows element i has.
Result<int64_t> rows_in(const RunContext& c, const PieceArgs& a, const Item& item, int64_t i, const PartialShape& asked,
                        const Shape& rest) {
  if (!item.tensor.valid()) {
    const int64_t known = asked.has_rank() && asked.rank() > 0 ? asked.dim(0) : -1;
    const int64_t rows = i < a.leading ? c.in<int64_t>(2)[i] : known;
    if (rows >= 0) return rows;
    return c.error("element %lld was never set, and neither leading_dims nor element_shape says how many rows it has",
                   static_cast<long long>(i));
  }
  const Shape& shape = item.tensor.shape();
  if (!asked.admits(shape)) {
    return c.error("element %lld has shape %s, element_shape says %s", static_cast<long long>(i), shape.text().c_str(),
                   asked.text().c_str());
  }
  if (shape.rank() > 0 && without_first(PartialShape(shape)) == PartialShape(rest)) return shape.dim(0);
  return c.error("element %lld has shape %s; the others have [...,%s]", static_cast<long long>(i), shape.text().c_str(),
                 rest.text().c_str());
}

Status concat_run(RunContext& c) {
  const auto& a = c.args<PieceArgs>();
  DTG_ASSIGN(const TensorList* const list, list_at(c, 0));
  DTG_TRY(check_dtype(c, *list, a.dtype));
  PartialShape asked = a.declared;
  if (a.is_second) {
    DTG_ASSIGN(asked, a.element_shape.get(c));
  }
  const std::vector<Item> items = list->items();
  DTG_ASSIGN(const Shape rest, rest_of_pieces(c, *list, items, asked));
  const auto count = static_cast<int64_t>(items.size());
  DTG_ASSIGN(const Shape vector, Shape::make(std::array{count}));
  DTG_ASSIGN(char* const told, a.lengths.memory(c, vector));
  auto* const lengths = reinterpret_cast<int64_t*>(told);
  int64_t total = 0;
  for (int64_t i = 0; i < count; ++i) {
    DTG_ASSIGN(lengths[i], rows_in(c, a, items[static_cast<size_t>(i)], i, asked, rest));
    if (__builtin_add_overflow(total, lengths[i], &total)) return resource_exhausted("%s: too many rows", c.node().op->name().c_str());
  }
  std::vector<int64_t> dims = {total};
  dims.insert(dims.end(), rest.dims().begin(), rest.dims().end());
  auto shape = Shape::make(dims);
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  DTG_ASSIGN(char* memory, a.out.memory(c, shape.value()));
  const int64_t row = rest.count() * cell_bytes(a.dtype);
  Lookout lookout;
  for (int64_t i = 0; i < count; ++i) {
    const Tensor& piece = items[static_cast<size_t>(i)].tensor;
    const int64_t bytes = lengths[i] * row;
    if (piece.valid()) cpu::copy_row(memory, static_cast<const char*>(piece.data()), bytes, lookout);
    else watched_fill(memory, memory + bytes, '\0');
    memory += bytes;
    keep_bytes(c, piece);
  }
  return {};
}

Status concat_prepare(PrepareContext& c) {
  auto* const a = begin(c);
  DTG_TRY(check_rows(c, a->dtype));
  a->is_second = c.num_inputs() == 3;
  if (a->is_second) {
    a->element_shape.prepare(c, 1);
    a->leading = c.input(2).shape.count();
  } else {
    a->declared = c.attr<PartialShape>("element_shape");
  }
  a->out.prepare(c, 0);
  a->lengths.prepare(c, 1);
  return c.sync(concat_run);
}

Status concat_lists_run(RunContext& c) {
  const auto& a = c.args<PieceArgs>();
  DTG_ASSIGN(const TensorList* const first, list_at(c, 0));
  DTG_ASSIGN(const TensorList* const second, list_at(c, 1));
  DTG_TRY(check_dtype(c, *first, a.dtype));
  DTG_TRY(check_dtype(c, *second, a.dtype));
  DTG_TRY(check_length(c, first->size() + second->size()));
  auto shape = PartialShape::merge(first->element_shape(), second->element_shape(), "the elements of the two lists");
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  std::vector<Item> items = first->items();
  std::vector<Item> others = second->items();
  items.insert(items.end(), std::make_move_iterator(others.begin()), std::make_move_iterator(others.end()));
  give_list(c, 0, make_ref<TensorList>(a.dtype, shape.take(), std::move(items)));
  return {};
}

Status concat_lists_prepare(PrepareContext& c) {
  auto* const a = begin(c);
  DTG_TRY(check_storable(c, a->dtype));
  return c.sync(concat_lists_run);
}

Status scatter_into_run(RunContext& c) {
  const auto& a = c.args<PieceArgs>();
  DTG_ASSIGN(const TensorList* const list, list_at(c, 0));
  DTG_TRY(check_dtype(c, *list, a.dtype));
  if (!list->element_shape().admits(a.item)) {
    return c.error("the rows have shape %s, the list is for %s", a.item.text().c_str(), list->element_shape().text().c_str());
  }
  const auto* const indices = c.in<int32_t>(2);
  int64_t most = list->size();
  for (int64_t i = 0; i < a.number; ++i) {
    if (indices[i] < 0 || indices[i] >= kElementsMax) return c.error("index %d cannot be in a list", indices[i]);
    most = std::max<int64_t>(most, indices[i] + 1);
  }
  DTG_TRY(check_length(c, most));
  std::vector<Item> items = list->items();
  items.resize(static_cast<size_t>(most));
  const int64_t bytes = a.item.count() * cell_bytes(a.dtype);
  for (int64_t i = 0; i < a.number; ++i) {
    DTG_ASSIGN(items[static_cast<size_t>(indices[i])].tensor, copy_of(c, a.dtype, a.item, c.in<char>(1) + i * bytes));
  }
  give_list(c, 0, make_ref<TensorList>(a.dtype, list->element_shape(), std::move(items)));
  return {};
}

Status scatter_into_prepare(PrepareContext& c) {
  auto* const a = begin(c);
  DTG_TRY(check_rows(c, a->dtype));
  DTG_ASSIGN(a->item, row_of(c, c.input(1).shape));
  a->number = c.input(1).shape.dim(0);
  if (c.input(2).shape.count() != a->number) {
    return c.error("%lld indices for %lld rows", static_cast<long long>(c.input(2).shape.count()), static_cast<long long>(a->number));
  }
  return c.sync(scatter_into_run);
}

}  // namespace

void register_list_pieces(OpTable& ops) {
  ops.add(
      make_list_op("TensorListSplit", split_shape, "A tensor cut along its first dimension into pieces of so many rows each, as a list.")
          .input("tensor: element_dtype")
          .input("element_shape: shape_type")
          .input("lengths: int64")
          .output("output_handle: variant")
          .attr("element_dtype: type")
          .attr("shape_type: {int32, int64}"));
  ops.add(make_list_op("TensorListConcat", concat_shape,
                       "All elements one behind the other along their first dimension, and how many rows each had.")
              .input("input_handle: variant")
              .output("tensor: element_dtype")
              .output("lengths: int64")
              .attr("element_dtype: type")
              .attr("element_shape: shape = unknown"));
  ops.add(make_list_op("TensorListConcatV2", concat_v2_shape,
                       "All elements one behind the other along their first dimension, and how many rows each had. What was never set is "
                       "zeros, of leading_dims rows.")
              .input("input_handle: variant")
              .input("element_shape: shape_type")
              .input("leading_dims: int64")
              .output("tensor: element_dtype")
              .output("lengths: int64")
              .attr("element_dtype: type")
              .attr("shape_type: {int32, int64}"));
  ops.add(make_list_op("TensorListConcatLists", concat_lists_shape, "The elements of one list, and then those of another.")
              .input("input_a: variant")
              .input("input_b: variant")
              .output("output: variant")
              .attr("element_dtype: type"));
  ops.add(make_list_op("TensorListScatterIntoExistingList", scatter_into_shape,
                       "The list with row i of the tensor as element indices[i]; it grows where that is behind its end.")
              .input("input_handle: variant")
              .input("tensor: element_dtype")
              .input("indices: int32")
              .output("output_handle: variant")
              .attr("element_dtype: type"));
}

std::span<const ListKernel> list_piece_kernels() {
  static constexpr ListKernel kKernels[] = {{"TensorListSplit", split_prepare},
                                            {"TensorListConcat", concat_prepare},
                                            {"TensorListConcatV2", concat_prepare},
                                            {"TensorListConcatLists", concat_lists_prepare},
                                            {"TensorListScatterIntoExistingList", scatter_into_prepare}};
  return kKernels;
}

}  // namespace dtg::ops
