// TensorList ops: kernels. Elements are copies in memory that is used again; a list that an op gives belongs to the run.
#include <cstring>

#include "device/cpu/elementwise.h"
#include "exec/memory_pool.h"
#include "ops/integers.h"
#include "ops/list.h"
#include "tensor/text.h"

namespace dtg::ops {

Result<const TensorList*> list_at(const RunContext& c, int input) {
  const auto* const object = static_cast<const RefCounted*>(c.in<void>(input));
  if (!object) return c.error("input %d: the list was never made", input);
  return static_cast<const TensorList*>(object);
}

namespace {

using Item = TensorList::Item;

// The slot of a variant holds the address of the RefCounted.
void give_list(RunContext& c, int output, Ref<TensorList> list) {
  RefCounted* const object = list.get();
  c.set_output(output, object, {}, std::move(list));
}

Status check_dtype(const RunContext& c, const TensorList& list, DType wanted) {
  if (list.dtype() == wanted) return {};
  return c.error("the list holds %s, but element_dtype is %s", dtype_name(list.dtype()), dtype_name(wanted));
}

Status check_index(const RunContext& c, const TensorList& list, int64_t index) {
  if (index >= 0 && index < list.size()) return {};
  return c.error("index %lld is not in the list, which has %lld elements", static_cast<long long>(index),
                 static_cast<long long>(list.size()));
}

Result<Tensor> copy_of(const RunContext& c, DType dtype, const Shape& shape, const void* data) {
  if (dtype == DType::string && data) return copy_value(dtype, shape, data);
  const Bytes bytes = Bytes::of(shape.count(), cell_bytes(dtype));
  if (bytes.is_overflow()) return resource_exhausted("an element of shape %s", shape.text().c_str());
  DTG_ASSIGN(Ref<Buffer> buffer, c.slots().memory().take_buffer(bytes.value()));
  Tensor tensor = Tensor::over(std::move(buffer), dtype, shape);
  if (bytes.value() > 0 && data) std::memcpy(tensor.data(), data, static_cast<size_t>(bytes.value()));
  else if (bytes.value() > 0) std::memset(tensor.data(), 0, static_cast<size_t>(bytes.value()));
  return tensor;
}

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
  Result<PartialShape> get(const RunContext& c) const {
    if (shape.is_scalar()) return PartialShape::unknown();
    if (shape.count() > kRankMax) return c.error("an element of rank %lld", static_cast<long long>(shape.count()));
    int64_t dims[kRankMax];
    for (int64_t d = 0; d < shape.count(); ++d) dims[d] = integer_at(c.in<void>(input), dtype, d);
    return PartialShape::make({dims, static_cast<size_t>(shape.count())});
  }
};

struct ListArgs {
  DType dtype = DType::invalid;
  ShapeInput element_shape;
  Shape item;  // of the tensor that is put in
  OutputSpec out;
  int64_t number = -1;
  bool flag = false;
};

ListArgs* start(PrepareContext& c) {
  auto* const a = c.args<ListArgs>();
  if (const AttrValue* dtype = c.node().find_attr("element_dtype")) a->dtype = *dtype->get<DType>();
  return a;
}

Status check_storable(const PrepareContext& c, DType dtype) {
  if (dtype == DType::variant || cell_bytes(dtype) > 0) return {};
  return unimplemented("%s: lists of %s", c.node().op->name().c_str(), dtype_name(dtype));
}

// The operand `i` as an element.
Result<Item> item_of(const RunContext& c, const ListArgs& a, int i) {
  Item item;
  if (a.dtype == DType::variant) {
    DTG_ASSIGN(const TensorList* const list, list_at(c, i));
    item.list = Ref<TensorList>::share(const_cast<TensorList*>(list));
  } else {
    DTG_ASSIGN(item.tensor, copy_of(c, a.dtype, a.item, c.in<void>(i)));
  }
  return item;
}

// The shape of what is not set: what the list, the op and the elements that are set say.
Result<Shape> unset_shape(const RunContext& c, const TensorList& list, const PartialShape& asked) {
  auto merged = PartialShape::merge(list.element_shape(), asked, "the list's elements and element_shape");
  if (!merged.ok()) return c.error("%s", merged.status().message().c_str());
  PartialShape shape = merged.take();
  if (!shape.complete()) {
    for (const Item& item : list.items()) {
      if (!item.tensor.valid()) continue;
      shape = PartialShape(item.tensor.shape());
      break;
    }
  }
  if (!shape.complete()) return c.error("an element that was never set has the shape %s, which is not known", shape.text().c_str());
  return shape.to_shape();
}

// What was copied from an element are the cells of strings; their bytes stay where they are.
void keep_bytes(const RunContext& c, const Tensor& element) {
  if (element.valid() && element.dtype() == DType::string) c.slots().keep(element.buffer());
}

// Element `item` of `list` as output o.
Status give_item(RunContext& c, const ListArgs& a, const TensorList& list, const Item& item, int o) {
  if (a.dtype == DType::variant) {
    if (!item.list) return c.error("the element was never set");
    give_list(c, o, item.list);
    return {};
  }
  DTG_ASSIGN(const PartialShape asked, a.element_shape.get(c));
  Shape shape;
  if (item.tensor.valid()) {
    shape = item.tensor.shape();
    if (!asked.admits(shape)) return c.error("the element has shape %s, element_shape says %s", shape.text().c_str(), asked.text().c_str());
  } else {
    DTG_ASSIGN(shape, unset_shape(c, list, asked));
  }
  DTG_ASSIGN(char* const memory, a.out.memory(c, shape));
  const auto bytes = static_cast<size_t>(shape.count() * cell_bytes(a.dtype));
  if (bytes > 0 && item.tensor.valid()) std::memcpy(memory, item.tensor.data(), bytes);
  else if (bytes > 0) std::memset(memory, 0, bytes);
  keep_bytes(c, item.tensor);
  return {};
}

// --- making ---

Status empty_run(RunContext& c) {
  const auto& a = c.args<ListArgs>();
  DTG_ASSIGN(PartialShape shape, a.element_shape.get(c));
  give_list(c, 0, make_ref<TensorList>(a.dtype, std::move(shape), std::vector<Item>()));
  return {};
}

Status empty_prepare(PrepareContext& c) {
  auto* const a = start(c);
  a->element_shape.prepare(c, 0);
  DTG_TRY(check_storable(c, a->dtype));
  return c.sync(empty_run);
}

constexpr int64_t kElementsMax = int64_t{1} << 28;

Result<size_t> count_of(const RunContext& c, int input) {
  const int32_t count = *c.in<int32_t>(input);
  if (count < 0) return c.error("a list of %d elements", count);
  if (count > kElementsMax)
    return resource_exhausted("a list of %d elements: at most %lld are possible", count, static_cast<long long>(kElementsMax));
  return static_cast<size_t>(count);
}

Status reserve_run(RunContext& c) {
  const auto& a = c.args<ListArgs>();
  DTG_ASSIGN(PartialShape shape, a.element_shape.get(c));
  DTG_ASSIGN(const size_t count, count_of(c, 1));
  give_list(c, 0, make_ref<TensorList>(a.dtype, std::move(shape), std::vector<Item>(count)));
  return {};
}

Status reserve_prepare(PrepareContext& c) {
  auto* const a = start(c);
  a->element_shape.prepare(c, 0);
  if (!c.input(1).shape.is_scalar()) return c.error("num_elements must be one number");
  DTG_TRY(check_storable(c, a->dtype));
  return c.sync(reserve_run);
}

Result<Shape> row_of(const PrepareContext& c, const Shape& shape) {
  if (shape.rank() == 0) return c.error("a scalar has no rows");
  return Shape::make(shape.dims().subspan(1));
}

Status from_tensor_run(RunContext& c) {
  const auto& a = c.args<ListArgs>();
  DTG_ASSIGN(PartialShape shape, a.element_shape.get(c));
  if (!shape.admits(a.item)) return c.error("the rows have shape %s, element_shape says %s", a.item.text().c_str(), shape.text().c_str());
  const int64_t bytes = a.item.count() * cell_bytes(a.dtype);
  std::vector<Item> items(static_cast<size_t>(a.number));
  for (int64_t i = 0; i < a.number; ++i) {
    DTG_ASSIGN(items[static_cast<size_t>(i)].tensor, copy_of(c, a.dtype, a.item, c.in<char>(0) + i * bytes));
  }
  give_list(c, 0, make_ref<TensorList>(a.dtype, std::move(shape), std::move(items)));
  return {};
}

Status from_tensor_prepare(PrepareContext& c) {
  auto* const a = start(c);
  if (cell_bytes(a->dtype) == 0) return unimplemented("%s: rows of %s", c.node().op->name().c_str(), dtype_name(a->dtype));
  DTG_ASSIGN(a->item, row_of(c, c.input(0).shape));
  a->number = c.input(0).shape.dim(0);
  a->element_shape.prepare(c, 1);
  return c.sync(from_tensor_run);
}

Status scatter_run(RunContext& c) {
  const auto& a = c.args<ListArgs>();
  DTG_ASSIGN(PartialShape shape, a.element_shape.get(c));
  const int32_t* const indices = c.in<int32_t>(1);
  int64_t count = *c.in<int32_t>(3);
  for (int64_t i = 0; i < a.number; ++i) {
    if (indices[i] < 0 || indices[i] >= kElementsMax) return c.error("index %d cannot be in a list", indices[i]);
    if (*c.in<int32_t>(3) < 0) count = std::max<int64_t>(count, indices[i] + 1);
    else if (indices[i] >= count) return c.error("index %d is not in a list of %lld elements", indices[i], static_cast<long long>(count));
  }
  const int64_t bytes = a.item.count() * cell_bytes(a.dtype);
  std::vector<Item> items(static_cast<size_t>(std::max<int64_t>(count, 0)));
  for (int64_t i = 0; i < a.number; ++i) {
    DTG_ASSIGN(items[static_cast<size_t>(indices[i])].tensor, copy_of(c, a.dtype, a.item, c.in<char>(0) + i * bytes));
  }
  give_list(c, 0, make_ref<TensorList>(a.dtype, std::move(shape), std::move(items)));
  return {};
}

Status scatter_prepare(PrepareContext& c) {
  auto* const a = start(c);
  if (cell_bytes(a->dtype) == 0) return unimplemented("%s: rows of %s", c.node().op->name().c_str(), dtype_name(a->dtype));
  DTG_ASSIGN(a->item, row_of(c, c.input(0).shape));
  a->number = c.input(0).shape.dim(0);
  if (c.input(1).shape.count() != a->number) {
    return c.error("%lld indices for %lld rows", static_cast<long long>(c.input(1).shape.count()), static_cast<long long>(a->number));
  }
  a->element_shape.prepare(c, 2);
  return c.sync(scatter_run);
}

// --- changing ---

Status set_item_run(RunContext& c) {
  const auto& a = c.args<ListArgs>();
  DTG_ASSIGN(const TensorList* list, list_at(c, 0));
  DTG_TRY(check_dtype(c, *list, a.dtype));
  const int64_t index = *c.in<int32_t>(1);
  Ref<TensorList> longer;
  if (a.flag && index >= list->size() && index < kElementsMax) {
    longer = list->resized(index + 1);
    list = longer.get();
  }
  DTG_TRY(check_index(c, *list, index));
  if (a.dtype != DType::variant && !list->element_shape().admits(a.item)) {
    return c.error("the item has shape %s, the list is for %s", a.item.text().c_str(), list->element_shape().text().c_str());
  }
  DTG_ASSIGN(Item item, item_of(c, a, 2));
  give_list(c, 0, list->with(index, std::move(item)));
  return {};
}

Status set_item_prepare(PrepareContext& c) {
  auto* const a = start(c);
  DTG_TRY(check_storable(c, a->dtype));
  if (a->dtype != DType::variant) a->item = c.input(2).shape;
  a->flag = c.boolean("resize_if_index_out_of_bounds");
  return c.sync(set_item_run);
}

Status push_run(RunContext& c) {
  const auto& a = c.args<ListArgs>();
  DTG_ASSIGN(const TensorList* const list, list_at(c, 0));
  DTG_TRY(check_dtype(c, *list, a.dtype));
  if (list->size() >= kElementsMax) return resource_exhausted("a list of more than %lld elements", static_cast<long long>(kElementsMax));
  if (a.dtype != DType::variant && !list->element_shape().admits(a.item)) {
    return c.error("the tensor has shape %s, the list is for %s", a.item.text().c_str(), list->element_shape().text().c_str());
  }
  DTG_ASSIGN(Item item, item_of(c, a, 1));
  give_list(c, 0, list->pushed(std::move(item)));
  return {};
}

Status push_prepare(PrepareContext& c) {
  auto* const a = start(c);
  DTG_TRY(check_storable(c, a->dtype));
  if (a->dtype != DType::variant) a->item = c.input(1).shape;
  return c.sync(push_run);
}

Status pop_run(RunContext& c) {
  const auto& a = c.args<ListArgs>();
  DTG_ASSIGN(const TensorList* const list, list_at(c, 0));
  DTG_TRY(check_dtype(c, *list, a.dtype));
  if (list->size() == 0) return c.error("the list is empty");
  DTG_TRY(give_item(c, a, *list, list->at(list->size() - 1), 1));
  give_list(c, 0, list->popped());
  return {};
}

Status pop_prepare(PrepareContext& c) {
  auto* const a = start(c);
  DTG_TRY(check_storable(c, a->dtype));
  a->element_shape.prepare(c, 1);
  a->out.prepare(c, 1);
  return c.sync(pop_run);
}

Status resize_run(RunContext& c) {
  DTG_ASSIGN(const TensorList* const list, list_at(c, 0));
  DTG_ASSIGN(const size_t count, count_of(c, 1));
  give_list(c, 0, list->resized(static_cast<int64_t>(count)));
  return {};
}

Status resize_prepare(PrepareContext& c) { return c.sync(resize_run); }

// --- looking ---

Status get_item_run(RunContext& c) {
  const auto& a = c.args<ListArgs>();
  DTG_ASSIGN(const TensorList* const list, list_at(c, 0));
  DTG_TRY(check_dtype(c, *list, a.dtype));
  const int64_t index = *c.in<int32_t>(1);
  DTG_TRY(check_index(c, *list, index));
  return give_item(c, a, *list, list->at(index), 0);
}

Status get_item_prepare(PrepareContext& c) {
  auto* const a = start(c);
  DTG_TRY(check_storable(c, a->dtype));
  a->element_shape.prepare(c, 2);
  a->out.prepare(c, 0);
  return c.sync(get_item_run);
}

// Elements one after the other as the rows of output 0.
template <class At>
Status give_rows(RunContext& c, const ListArgs& a, const TensorList& list, int64_t count, At&& at) {
  DTG_ASSIGN(const PartialShape asked, a.element_shape.get(c));
  Shape row;
  if (count > 0 && at(0).tensor.valid()) {
    row = at(0).tensor.shape();
    if (!asked.admits(row)) return c.error("an element has shape %s, element_shape says %s", row.text().c_str(), asked.text().c_str());
  } else {
    DTG_ASSIGN(row, unset_shape(c, list, asked));
  }
  std::vector<int64_t> dims = {count};
  dims.insert(dims.end(), row.dims().begin(), row.dims().end());
  auto shape = Shape::make(dims);
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  DTG_ASSIGN(char* const memory, a.out.memory(c, shape.value()));
  const int64_t bytes = row.count() * cell_bytes(a.dtype);
  for (int64_t i = 0; i < count; ++i) {
    const Item& item = at(i);
    if (item.tensor.valid() && !(item.tensor.shape() == row)) {
      return c.error("element %lld has shape %s, others have %s", static_cast<long long>(i), item.tensor.shape().text().c_str(),
                     row.text().c_str());
    }
    if (bytes == 0) continue;
    if (item.tensor.valid()) std::memcpy(memory + i * bytes, item.tensor.data(), static_cast<size_t>(bytes));
    else std::memset(memory + i * bytes, 0, static_cast<size_t>(bytes));
    keep_bytes(c, item.tensor);
  }
  return {};
}

Status stack_run(RunContext& c) {
  const auto& a = c.args<ListArgs>();
  DTG_ASSIGN(const TensorList* const list, list_at(c, 0));
  DTG_TRY(check_dtype(c, *list, a.dtype));
  if (a.number >= 0 && a.number != list->size()) {
    return c.error("num_elements is %lld, but the list has %lld", static_cast<long long>(a.number), static_cast<long long>(list->size()));
  }
  const std::vector<Item> items = list->items();
  return give_rows(c, a, *list, list->size(), [&](int64_t i) -> const Item& { return items[static_cast<size_t>(i)]; });
}

Status stack_prepare(PrepareContext& c) {
  auto* const a = start(c);
  if (cell_bytes(a->dtype) == 0) return unimplemented("%s: rows of %s", c.node().op->name().c_str(), dtype_name(a->dtype));
  a->number = c.integer("num_elements");
  a->element_shape.prepare(c, 1);
  a->out.prepare(c, 0);
  return c.sync(stack_run);
}

Status gather_run(RunContext& c) {
  const auto& a = c.args<ListArgs>();
  DTG_ASSIGN(const TensorList* const list, list_at(c, 0));
  DTG_TRY(check_dtype(c, *list, a.dtype));
  const int32_t* const indices = c.in<int32_t>(1);
  for (int64_t i = 0; i < a.number; ++i) DTG_TRY(check_index(c, *list, indices[i]));
  const std::vector<Item> items = list->items();
  return give_rows(c, a, *list, a.number, [&](int64_t i) -> const Item& { return items[static_cast<size_t>(indices[i])]; });
}

Status gather_prepare(PrepareContext& c) {
  auto* const a = start(c);
  if (cell_bytes(a->dtype) == 0) return unimplemented("%s: rows of %s", c.node().op->name().c_str(), dtype_name(a->dtype));
  a->number = c.input(1).shape.count();
  a->element_shape.prepare(c, 2);
  a->out.prepare(c, 0);
  return c.sync(gather_run);
}

Status length_run(RunContext& c) {
  DTG_ASSIGN(const TensorList* const list, list_at(c, 0));
  *c.out<int32_t>(0) = static_cast<int32_t>(list->size());
  return {};
}

Status length_prepare(PrepareContext& c) { return c.sync(length_run); }

Status element_shape_run(RunContext& c) {
  const auto& a = c.args<ListArgs>();
  DTG_ASSIGN(const TensorList* const list, list_at(c, 0));
  const PartialShape& of = list->element_shape();
  DTG_ASSIGN(const Shape shape, of.has_rank() ? Shape::make(std::vector<int64_t>{of.rank()}) : Result<Shape>(Shape()));
  DTG_ASSIGN(char* const memory, a.out.memory(c, shape));
  for (int64_t d = 0; d < shape.count(); ++d) {
    const int64_t dim = of.has_rank() ? of.dim(static_cast<int>(d)) : -1;
    if (a.out.dtype == DType::i64) reinterpret_cast<int64_t*>(memory)[d] = dim;
    else reinterpret_cast<int32_t*>(memory)[d] = static_cast<int32_t>(dim);
  }
  return {};
}

Status element_shape_prepare(PrepareContext& c) {
  start(c)->out.prepare(c, 0);
  return c.sync(element_shape_run);
}

// --- element by element ---

Result<Ref<TensorList>> zeros_like(const RunContext& c, const TensorList& list) {
  std::vector<Item> items = list.items();
  for (Item& item : items) {
    if (item.list) {
      DTG_ASSIGN(item.list, zeros_like(c, *item.list));
    } else if (item.tensor.valid()) {
      DTG_ASSIGN(item.tensor, copy_of(c, item.tensor.dtype(), item.tensor.shape(), nullptr));
    }
  }
  return make_ref<TensorList>(list.dtype(), list.element_shape(), std::move(items));
}

Status zeros_like_list_run(RunContext& c) {
  DTG_ASSIGN(const TensorList* const list, list_at(c, 0));
  DTG_ASSIGN(Ref<TensorList> zeros, zeros_like(c, *list));
  give_list(c, 0, std::move(zeros));
  return {};
}

Result<Ref<TensorList>> add(const RunContext& c, const TensorList& a, const TensorList& b);

// What was never set counts as zeros.
Result<Item> add(const RunContext& c, const Item& a, const Item& b) {
  if (!b.is_set()) return a;
  if (!a.is_set()) return b;
  Item sum;
  if (a.list) {
    DTG_ASSIGN(sum.list, add(c, *a.list, *b.list));
    return sum;
  }
  if (!(a.tensor.shape() == b.tensor.shape())) {
    return c.error("elements of shape %s and %s cannot be added", a.tensor.shape().text().c_str(), b.tensor.shape().text().c_str());
  }
  const cpu::ElementBlock* const block = cpu::find_block(cpu::ElementFn::add, a.tensor.dtype());
  if (!block) return c.error("no addition of %s", dtype_name(a.tensor.dtype()));
  DTG_ASSIGN(sum.tensor, copy_of(c, a.tensor.dtype(), a.tensor.shape(), a.tensor.data()));
  constexpr int64_t kBlock = 512;
  const int64_t size = dtype_size(a.tensor.dtype());
  for (int64_t from = 0; from < a.tensor.count(); from += kBlock) {
    char* const out = sum.tensor.as<char>() + from * size;
    const void* const operands[] = {out, b.tensor.as<char>() + from * size};
    block->block(operands, out, std::min(kBlock, a.tensor.count() - from));
  }
  return sum;
}

Result<Ref<TensorList>> add(const RunContext& c, const TensorList& a, const TensorList& b) {
  if (a.dtype() != b.dtype() || a.size() != b.size()) {
    return c.error("lists of %lld %s and of %lld %s cannot be added", static_cast<long long>(a.size()), dtype_name(a.dtype()),
                   static_cast<long long>(b.size()), dtype_name(b.dtype()));
  }
  std::vector<Item> sum = a.items();
  const std::vector<Item> other = b.items();
  for (size_t i = 0; i < sum.size(); ++i) {
    DTG_ASSIGN(sum[i], add(c, sum[i], other[i]));
  }
  return make_ref<TensorList>(a.dtype(), a.element_shape(), std::move(sum));
}

Status add_lists_run(RunContext& c) {
  const auto& a = c.args<ListArgs>();
  DTG_ASSIGN(const TensorList* const first, list_at(c, 0));
  Ref<TensorList> sum = Ref<TensorList>::share(const_cast<TensorList*>(first));
  for (int64_t i = 1; i < a.number; ++i) {
    DTG_ASSIGN(const TensorList* const next, list_at(c, static_cast<int>(i)));
    DTG_ASSIGN(sum, add(c, *sum, *next));
  }
  give_list(c, 0, std::move(sum));
  return {};
}

}  // namespace

Status zeros_like_list_prepare(PrepareContext& c) { return c.sync(zeros_like_list_run); }

Status add_lists_prepare(PrepareContext& c) {
  c.args<ListArgs>()->number = c.num_inputs();
  return c.sync(add_lists_run);
}

std::span<const ListKernel> list_kernels() {
  static constexpr ListKernel kKernels[] = {{"EmptyTensorList", empty_prepare},
                                            {"TensorListReserve", reserve_prepare},
                                            {"TensorListFromTensor", from_tensor_prepare},
                                            {"TensorListScatterV2", scatter_prepare},
                                            {"TensorListSetItem", set_item_prepare},
                                            {"TensorListPushBack", push_prepare},
                                            {"TensorListPopBack", pop_prepare},
                                            {"TensorListResize", resize_prepare},
                                            {"TensorListGetItem", get_item_prepare},
                                            {"TensorListStack", stack_prepare},
                                            {"TensorListGather", gather_prepare},
                                            {"TensorListLength", length_prepare},
                                            {"TensorListElementShape", element_shape_prepare}};
  return kKernels;
}

}  // namespace dtg::ops
