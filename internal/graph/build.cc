// Build: adds nodes and keeps the first error. Used by the thread that builds the graph.
#include "graph/build.h"

#include <algorithm>

namespace dtg {

NodeId Build::node(std::string_view type, std::span<const Value> inputs, std::span<const Attr> attrs, std::string_view name,
                   std::span<const NodeId> controls) {
  if (!ok()) return kNoNode;
  auto added = graph_.add({.op = type, .name = name, .inputs = inputs, .controls = controls, .attrs = attrs});
  if (!added.ok()) {
    fail(added.status());
    return kNoNode;
  }
  return added.value();
}

Value Build::op(std::string_view type, std::span<const Value> inputs, std::span<const Attr> attrs, std::string_view name,
                std::span<const NodeId> controls) {
  const NodeId id = node(type, inputs, attrs, name, controls);
  return id == kNoNode ? Value() : graph_.value(id);
}

Value Build::constant(const Tensor& tensor, std::string_view name) {
  const Attr attrs[] = {{"value", AttrValue(tensor)}, {"dtype", AttrValue(tensor.dtype())}};
  return op("Const", std::span<const Value>(), attrs, name);
}

namespace {
template <class T>
Result<Tensor> one(double value) {
  return Tensor::scalar<T>(static_cast<T>(value));
}
Result<Tensor> scalar_of(DType dtype, double value) {
  switch (dtype) {
    case DType::f32: return one<float>(value);
    case DType::f64: return one<double>(value);
    case DType::i8: return one<int8_t>(value);
    case DType::i16: return one<int16_t>(value);
    case DType::i32: return one<int32_t>(value);
    case DType::i64: return one<int64_t>(value);
    case DType::u8: return one<uint8_t>(value);
    case DType::u16: return one<uint16_t>(value);
    case DType::u32: return one<uint32_t>(value);
    case DType::u64: return one<uint64_t>(value);
    case DType::boolean: return Tensor::scalar<bool>(value != 0);
    case DType::f16: return Tensor::scalar<Half>(Half(static_cast<float>(value)));
    case DType::bf16: return Tensor::scalar<BFloat16>(BFloat16(static_cast<float>(value)));
    default: return unimplemented("make a constant of type %s", dtype_name(dtype));
  }
}
}  // namespace

Value Build::scalar(DType dtype, double value, std::string_view name) {
  auto tensor = scalar_of(dtype, value);
  if (!tensor.ok()) {
    fail(tensor.status());
    return {};
  }
  return constant(tensor.value(), name);
}

// Where a number does not fit the type that is customary, all take the wide one.
Value Build::ints(std::span<const int64_t> values, DType dtype) {
  if (std::ranges::any_of(values, [](int64_t value) { return value != static_cast<int32_t>(value); })) dtype = DType::i64;
  auto tensor = Tensor::ints(dtype, values);
  if (!tensor.ok()) {
    fail(tensor.status());
    return {};
  }
  return constant(tensor.value());
}

Value Build::ints(std::initializer_list<int64_t> values, DType dtype) { return ints(std::span(values.begin(), values.size()), dtype); }

Value Build::integer(int64_t value, DType dtype) { return scalar(dtype, static_cast<double>(value)); }

Value Build::cast(Value a, DType to) {
  if (!ok() || info(a).dtype == to) return a;
  return op("Cast", {a}, {{"DstT", to}});
}

const ValueInfo& Build::info(Value value) const {
  static const ValueInfo* const none = new ValueInfo;  // leaked: no destructor at exit
  return ok() && graph_.check(value).ok() ? graph_.info(value) : *none;
}

}  // namespace dtg
