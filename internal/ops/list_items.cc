// Elements of lists: how kernels take and give them. Called by kernels, on the threads of a run.
#include <cstring>

#include "base/watched.h"
#include "device/cpu/copy.h"
#include "exec/memory_pool.h"
#include "ops/list.h"
#include "tensor/text.h"

namespace dtg::ops {

Result<const TensorList*> list_at(const RunContext& c, int input) {
  const auto* const object = static_cast<const RefCounted*>(c.in<void>(input));
  if (!object) return c.error("input %d: the list was never made", input);
  return static_cast<const TensorList*>(object);
}

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
  DTG_TRY(c.slots().memory().check_growth(bytes.value(), "an element of a list"));
  DTG_ASSIGN(Ref<Buffer> buffer, c.slots().memory().take_buffer(bytes.value()));
  Tensor tensor = Tensor::over(std::move(buffer), dtype, shape);
  auto* const to = static_cast<char*>(tensor.data());
  Lookout lookout;
  if (data) cpu::copy_row(to, static_cast<const char*>(data), bytes.value(), lookout);
  else watched_fill(to, to + bytes.value(), '\0');
  return tensor;
}

Result<PartialShape> ShapeInput::get(const RunContext& c) const {
  if (shape.is_scalar()) return PartialShape::unknown();
  if (shape.count() > kRankMax) return c.error("an element of rank %lld", static_cast<long long>(shape.count()));
  int64_t dims[kRankMax];
  for (int64_t d = 0; d < shape.count(); ++d) dims[d] = integer_at(c.in<void>(input), dtype, d);
  return PartialShape::make({dims, static_cast<size_t>(shape.count())});
}

ListArgs* start(PrepareContext& c) {
  auto* const a = c.args<ListArgs>();
  if (const AttrValue* dtype = c.node().find_attr("element_dtype")) a->dtype = *dtype->get<DType>();
  return a;
}

Status check_storable(const PrepareContext& c, DType dtype) {
  if (dtype == DType::variant || cell_bytes(dtype) > 0) return {};
  return unimplemented("%s: lists of %s", c.node().op->name().c_str(), dtype_name(dtype));
}

Result<Tensor> lasting_operand(const RunContext& c, const ListArgs& a, int i) {
  const ValueRoom::Piece* const piece = c.slots().lasting(c.instruction().in[i]);
  return piece ? Tensor::wrap(piece->block, piece->offset, a.dtype, a.item) : Tensor();
}

Result<Item> item_of(const RunContext& c, const ListArgs& a, int i) {
  Item item;
  if (a.dtype == DType::variant) {
    DTG_ASSIGN(const TensorList* const list, list_at(c, i));
    item.list = Ref<TensorList>::share(const_cast<TensorList*>(list));
  } else {
    DTG_ASSIGN(item.tensor, lasting_operand(c, a, i));
    if (item.tensor.valid()) return item;
    DTG_ASSIGN(item.tensor, copy_of(c, a.dtype, a.item, c.in<void>(i)));
  }
  return item;
}

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

void keep_bytes(const RunContext& c, const Tensor& element) {
  if (element.valid() && element.dtype() == DType::string) c.slots().keep(element.buffer());
}

namespace {
Status give_zeros(RunContext& c, const ListArgs& a, const TensorList& list, const PartialShape& asked, int o) {
  DTG_ASSIGN(const Shape shape, unset_shape(c, list, asked));
  DTG_TRY(a.out.check(c, shape));
  DTG_ASSIGN(void* const memory, c.lease_output(o, a.dtype, shape));
  std::memset(memory, 0, static_cast<size_t>(shape.count() * cell_bytes(a.dtype)));
  return {};
}
}  // namespace

Status give_item(RunContext& c, const ListArgs& a, const TensorList& list, Item item, int o) {
  if (a.dtype == DType::variant) {
    if (!item.list) return c.error("the element was never set");
    give_list(c, o, std::move(item.list));
    return {};
  }
  DTG_ASSIGN(const PartialShape asked, a.element_shape.get(c));
  if (!item.tensor.valid()) return give_zeros(c, a, list, asked, o);
  const Tensor& tensor = item.tensor;
  if (!asked.admits(tensor.shape())) {
    return c.error("the element has shape %s, element_shape says %s", tensor.shape().text().c_str(), asked.text().c_str());
  }
  DTG_TRY(a.out.check(c, tensor.shape()));
  void* const data = tensor.data();
  const Shape shape = tensor.shape();
  c.set_output(o, data, shape, std::move(item.tensor).take_buffer());
  return {};
}

Result<size_t> count_of(const RunContext& c, int input) {
  const int32_t count = *c.in<int32_t>(input);
  if (count < 0) return c.error("a list of %d elements", count);
  DTG_TRY(check_length(c, count));
  return static_cast<size_t>(count);
}

Status check_room(const RunContext& c, int64_t count, size_t each, const char* what) {
  constexpr int64_t kNoMatter = 1 << 20;
  const int64_t bytes = count * static_cast<int64_t>(each);
  return bytes < kNoMatter ? Status() : c.slots().memory().check_growth(bytes, what);
}

Status check_length(const RunContext& c, int64_t count) {
  if (count > kElementsMax) {
    return resource_exhausted("a list of %lld elements: at most %lld are possible", static_cast<long long>(count),
                              static_cast<long long>(kElementsMax));
  }
  return check_room(c, count, sizeof(Item), "a list");
}

Result<Shape> row_of(const PrepareContext& c, const Shape& shape) {
  if (shape.rank() == 0) return c.error("a scalar has no rows");
  return Shape::make(shape.dims().subspan(1));
}

}  // namespace dtg::ops
