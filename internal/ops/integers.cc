// Reading integer inputs at build, at prepare and in run.
#include "ops/integers.h"

#include <cstring>

namespace dtg::ops {
namespace {

template <class T>
int64_t load(const void* data, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + i * static_cast<int64_t>(sizeof value), sizeof value);
  return static_cast<int64_t>(value);
}

}  // namespace

int64_t integer_at(const void* data, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::i8: return load<int8_t>(data, i);
    case DType::u8: return load<uint8_t>(data, i);
    case DType::i16: return load<int16_t>(data, i);
    case DType::u16: return load<uint16_t>(data, i);
    case DType::i32: return load<int32_t>(data, i);
    case DType::u32: return load<uint32_t>(data, i);
    default: return load<int64_t>(data, i);
  }
}

Status Integers::prepare(PrepareContext& c, int i) {
  input_ = i;
  dtype_ = c.input(i).dtype;
  count_ = c.input(i).shape.count();
  if (count_ > kMax) {
    return c.error("input %d holds %lld integers; at most %lld make sense here", i, static_cast<long long>(count_),
                   static_cast<long long>(kMax));
  }
  const Tensor known = c.constant(i);
  known_ = known.valid() || count_ == 0;
  for (int64_t k = 0; known_ && k < count_; ++k) values_[static_cast<size_t>(k)] = integer_at(known.data(), dtype_, k);
  return {};
}

std::span<const int64_t> Integers::get(RunContext& c, Buffer& buffer) const {
  if (known_) return values();
  const void* data = c.in<char>(input_);
  for (int64_t k = 0; k < count_; ++k) buffer[static_cast<size_t>(k)] = integer_at(data, dtype_, k);
  return {buffer.data(), static_cast<size_t>(count_)};
}

KnownIntegers known_integers(const InferContext& c, int i) {
  KnownIntegers result;
  const Tensor tensor = c.constant(i);
  const bool empty = c.input(i).complete() && c.input(i).to_shape().ok() && c.input(i).to_shape().value().count() == 0;
  if (empty) result.known = true;
  if (!tensor.valid() || tensor.count() > Integers::kMax) return result;
  result.known = true;
  result.count = static_cast<int>(tensor.count());
  for (int k = 0; k < result.count; ++k) result.values[static_cast<size_t>(k)] = integer_at(tensor.data(), tensor.dtype(), k);
  return result;
}

void OutputSpec::prepare(const PrepareContext& c, int i) {
  index = i;
  dtype = c.output(i).dtype;
  dynamic = c.output(i).dynamic;
  if (!dynamic) shape = c.output(i).shape;
}

Result<char*> OutputSpec::memory(RunContext& c, const Shape& actual) const {
  if (dynamic) {
    DTG_ASSIGN(void* leased, c.lease_output(index, dtype, actual));
    return static_cast<char*>(leased);
  }
  DTG_TRY(check(c, actual));
  return c.out<char>(index);
}

Status OutputSpec::check(const RunContext& c, const Shape& actual) const {
  if (dynamic || actual == shape) return {};
  return c.error("output %d has shape %s, but %s was planned", index, actual.text().c_str(), shape.text().c_str());
}

Status in_op(const Node& node, Status status) { return status.ok() ? status : status.with_context(node.op->name()); }

Result<int> resolve_axis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return invalid_argument("axis %lld is not in [%d, %d)", static_cast<long long>(axis), -rank, rank);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace dtg::ops
