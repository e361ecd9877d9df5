// Tensors: making them, around new memory or a buffer that is there, with every size checked before memory is asked
// for. Pure functions; any thread.
#include "tensor/tensor.h"

namespace dtg {
namespace {
Result<int64_t> byte_size(DType dtype, const Shape& shape) {
  const int64_t size = dtype_size(dtype);
  if (size == 0) {
    return unimplemented("tensor of %s: elements of this type have no plain memory here", dtype_name(dtype));
  }
  if (shape.count() > INT64_MAX / 2 / size) {
    return resource_exhausted("tensor %s%s: its size in bytes does not fit", dtype_name(dtype), shape.text().c_str());
  }
  return shape.count() * size;
}
}  // namespace

Result<Tensor> Tensor::allocate(DType dtype, const Shape& shape, Placement placement) {
  DTG_ASSIGN(const int64_t bytes, byte_size(dtype, shape));
  DTG_ASSIGN(auto buffer, Buffer::allocate(bytes, placement));
  return over(std::move(buffer), dtype, shape);
}

Result<Tensor> Tensor::wrap(Ref<Buffer> buffer, int64_t offset, DType dtype, const Shape& shape) {
  DTG_ASSIGN(const int64_t bytes, byte_size(dtype, shape));
  if (offset < 0 || offset > buffer->bytes() || bytes > buffer->bytes() - offset) {
    return invalid_argument("tensor %s%s: needs %lld bytes from offset %lld, the buffer has %lld", dtype_name(dtype), shape.text().c_str(),
                            static_cast<long long>(bytes), static_cast<long long>(offset), static_cast<long long>(buffer->bytes()));
  }
  void* const data = static_cast<char*>(buffer->data()) + offset;
  return Tensor(std::move(buffer), data, dtype, shape);
}

Result<Tensor> Tensor::ints(DType dtype, std::span<const int64_t> values) {
  DTG_ASSIGN(Tensor tensor, allocate(dtype, Shape::of({static_cast<int64_t>(values.size())})));
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::i32) tensor.as<int32_t>()[i] = static_cast<int32_t>(values[i]);
    else tensor.as<int64_t>()[i] = values[i];
  }
  return tensor;
}

Tensor Tensor::reshaped(const Shape& shape) const {
  Tensor tensor = *this;
  if (shape.count() == count()) tensor.shape_ = shape;
  return tensor;
}

std::string Tensor::text() const { return std::string(dtype_name(dtype_)) + shape_.text(); }

}  // namespace dtg
