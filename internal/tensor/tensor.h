// Tensor: element type, shape, layout and a counted buffer. A value: copying shares the bytes, and any thread may hold
// a copy. Contents are plain row-major unless the layout says otherwise; who may write them is a matter of the owner (a
// tensor with one holder is writable, a shared one is read-only by convention).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tensor/buffer.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace dtg {

// How elements lie in memory. Plain is row-major without gaps. Packed is private to one plan (a weight
// reordered for its kernel) and never leaves it.
enum class Layout : uint8_t { plain, packed };

class Tensor {
 public:
  Tensor() = default;  // no tensor: dtype invalid
  // Fresh memory, contents undefined.
  static Result<Tensor> allocate(DType dtype, const Shape& shape, Placement placement = Placement::heap);
  // A view of `buffer` from `offset`; refuses what does not fit.
  static Result<Tensor> wrap(Ref<Buffer> buffer, int64_t offset, DType dtype, const Shape& shape);
  // The front of `buffer`, which was made for these values.
  static Tensor over(Ref<Buffer> buffer, DType dtype, const Shape& shape) {
    void* const data = buffer->data();
    return {std::move(buffer), data, dtype, shape};
  }
  // Copies `values`.
  template <class T>
  static Result<Tensor> of(const Shape& shape, std::span<const T> values);
  template <class T>
  static Result<Tensor> scalar(T value) {
    return of<T>(Shape(), std::span<const T>(&value, 1));
  }
  // int32 or int64 vector, for shapes, axes and indices.
  static Result<Tensor> ints(DType dtype, std::span<const int64_t> values);

  bool valid() const { return dtype_ != DType::invalid; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  Layout layout() const { return Layout::plain; }
  int64_t count() const { return shape_.count(); }
  // Of plain elements; 0 for strings, which own more than their cells (tensor/text.h).
  int64_t bytes() const { return shape_.count() * dtype_size(dtype_); }
  void* data() const { return data_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  template <class T>
  std::span<const T> values() const {
    return {static_cast<const T*>(data_), static_cast<size_t>(count())};
  }
  const Ref<Buffer>& buffer() const { return buffer_; }
  // Of one that is not needed any more.
  Ref<Buffer> take_buffer() && { return std::move(buffer_); }
  // The same without its share in the buffer, for the length of a call in which somebody else holds that.
  Tensor borrowed() const { return {{}, data_, dtype_, shape_}; }
  // A part of the same memory from that byte on, which must be good.
  Tensor part(int64_t offset, const Shape& shape) const { return {buffer_, static_cast<char*>(data_) + offset, dtype_, shape}; }
  // Same bytes under another shape of the same count.
  Tensor reshaped(const Shape& shape) const;
  // Element i of an int32 or int64 tensor.
  int64_t int_at(int64_t i) const { return dtype_ == DType::i32 ? as<int32_t>()[i] : as<int64_t>()[i]; }
  std::string text() const;  // "float32[2,3]"

 private:
  Tensor(Ref<Buffer> buffer, void* data, DType dtype, const Shape& shape)
      : buffer_(std::move(buffer)), data_(data), shape_(shape), dtype_(dtype) {}

  Ref<Buffer> buffer_;
  void* data_ = nullptr;
  Shape shape_;
  DType dtype_ = DType::invalid;
};

template <class T>
Result<Tensor> Tensor::of(const Shape& shape, std::span<const T> values) {
  if (static_cast<int64_t>(values.size()) != shape.count()) {
    return invalid_argument("make a tensor of shape %s: %zu values given", shape.text().c_str(), values.size());
  }
  DTG_ASSIGN(Tensor tensor, allocate(dtype_of<T>, shape));
  if (!values.empty()) std::memcpy(tensor.data(), values.data(), values.size_bytes());
  return tensor;
}

}  // namespace dtg
