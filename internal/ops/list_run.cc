// TensorList ops: kernels that make a list, change an element or look at it. Elements are copies in memory that is used again; a list that
// an op gives belongs to the run. Called on the threads of a run.
#include <cstring>

#include "base/watched.h"
#include "device/cpu/copy.h"
#include "ops/list.h"

namespace dtg::ops {
namespace {

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
  const int32_t asked = a.flag ? *c.in<int32_t>(3) : -1;
  int64_t count = asked;
  for (int64_t i = 0; i < a.number; ++i) {
    if (indices[i] < 0 || indices[i] >= kElementsMax) return c.error("index %d cannot be in a list", indices[i]);
    if (asked < 0) count = std::max<int64_t>(count, indices[i] + 1);
    else if (indices[i] >= count) return c.error("index %d is not in a list of %lld elements", indices[i], static_cast<long long>(count));
  }
  const int64_t bytes = a.item.count() * cell_bytes(a.dtype);
  DTG_TRY(check_length(c, count));
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
  a->flag = c.num_inputs() == 4;
  a->element_shape.prepare(c, 2);
  return c.sync(scatter_run);
}

// --- changing ---

// A list that is to hold itself is copied in each round, where others share their elements: none such is long.
constexpr int64_t kOfItselfMax = 1024;

Status keep_apart(const TensorList*& list, const Item& item, Ref<TensorList>* apart) {
  if (!list->leads_back(item)) return {};
  if (list->size() >= kOfItselfMax) {
    return resource_exhausted("a list that holds itself, of more than %lld elements", static_cast<long long>(kOfItselfMax));
  }
  *apart = list->apart();
  list = apart->get();
  return {};
}

Status set_item_run(RunContext& c) {
  const auto& a = c.args<ListArgs>();
  DTG_ASSIGN(const TensorList* list, list_at(c, 0));
  DTG_TRY(check_dtype(c, *list, a.dtype));
  const int64_t index = *c.in<int32_t>(1);
  Ref<TensorList> longer;
  if (a.flag && index >= list->size() && index < kElementsMax) {
    DTG_TRY(check_length(c, index + 1));
    longer = list->resized(index + 1);
    list = longer.get();
  }
  DTG_TRY(check_index(c, *list, index));
  if (a.dtype != DType::variant && !list->element_shape().admits(a.item)) {
    return c.error("the item has shape %s, the list is for %s", a.item.text().c_str(), list->element_shape().text().c_str());
  }
  DTG_ASSIGN(Item item, item_of(c, a, 2));
  Ref<TensorList> apart;
  DTG_TRY(keep_apart(list, item, &apart));
  give_list(c, 0, list->with(index, std::move(item)));
  return {};
}

// Input i becomes an element.
void prepare_element(PrepareContext& c, ListArgs& a, int i) {
  if (a.dtype == DType::variant) return;
  a.item = c.input(i).shape;
  if (a.dtype != DType::string) c.keeps(i);
}

Status set_item_prepare(PrepareContext& c) {
  auto* const a = start(c);
  DTG_TRY(check_storable(c, a->dtype));
  prepare_element(c, *a, 2);
  a->flag = c.boolean("resize_if_index_out_of_bounds");
  return c.sync(set_item_run);
}

Result<Item> pushed_item(const RunContext& c, const ListArgs& a, const TensorList& list) {
  if (a.dtype == DType::variant || a.dtype == DType::string) return item_of(c, a, 1);
  Item item;
  DTG_ASSIGN(item.tensor, lasting_operand(c, a, 1));
  if (item.tensor.valid()) return item;
  DTG_ASSIGN(item.tensor, list.room(c.slots().memory(), a.item));
  if (item.tensor.bytes() > 0) std::memcpy(item.tensor.data(), c.in<void>(1), static_cast<size_t>(item.tensor.bytes()));
  return item;
}

Status push_run(RunContext& c) {
  const auto& a = c.args<ListArgs>();
  DTG_ASSIGN(const TensorList* list, list_at(c, 0));
  DTG_TRY(check_dtype(c, *list, a.dtype));
  if (list->size() >= kElementsMax) return resource_exhausted("a list of more than %lld elements", static_cast<long long>(kElementsMax));
  if (a.dtype != DType::variant && !list->element_shape().admits(a.item)) {
    return c.error("the tensor has shape %s, the list is for %s", a.item.text().c_str(), list->element_shape().text().c_str());
  }
  DTG_ASSIGN(Item item, pushed_item(c, a, *list));
  Ref<TensorList> apart;
  DTG_TRY(keep_apart(list, item, &apart));
  give_list(c, 0, list->pushed(std::move(item)));
  return {};
}

Status push_prepare(PrepareContext& c) {
  auto* const a = start(c);
  DTG_TRY(check_storable(c, a->dtype));
  prepare_element(c, *a, 1);
  return c.sync(push_run);
}

Status pop_run(RunContext& c) {
  const auto& a = c.args<ListArgs>();
  DTG_ASSIGN(const TensorList* const list, list_at(c, 0));
  DTG_TRY(check_dtype(c, *list, a.dtype));
  if (list->size() == 0) return c.error("the list is empty");
  Item last;
  give_list(c, 0, list->popped(&last));
  return give_item(c, a, *list, std::move(last), 1);
}

Status pop_prepare(PrepareContext& c) {
  auto* const a = start(c);
  DTG_TRY(check_storable(c, a->dtype));
  a->element_shape.prepare(c, 1);
  a->out.prepare(c, 1);
  c.brings(1);
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
  c.brings(0);
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
  Lookout lookout;
  for (int64_t i = 0; i < count; ++i) {
    const Item& item = at(i);
    if (item.tensor.valid() && !(item.tensor.shape() == row)) {
      return c.error("element %lld has shape %s, others have %s", static_cast<long long>(i), item.tensor.shape().text().c_str(),
                     row.text().c_str());
    }
    if (bytes == 0) continue;
    if (item.tensor.valid()) cpu::copy_row(memory + i * bytes, static_cast<const char*>(item.tensor.data()), bytes, lookout);
    else watched_fill(memory + i * bytes, memory + (i + 1) * bytes, '\0');
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

}  // namespace

std::span<const ListKernel> list_kernels() {
  static constexpr ListKernel kKernels[] = {{"EmptyTensorList", empty_prepare},
                                            {"TensorListReserve", reserve_prepare},
                                            {"TensorListFromTensor", from_tensor_prepare},
                                            {"TensorListScatter", scatter_prepare},
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
