// Strings as elements. Where a run keeps a value of strings, each element is a cell, a Text, that says where its bytes lie; the bytes
// belong to whoever made them and stay as long as the run (exec/slots.h). So whatever moves elements moves cells, and no bytes. A
// tensor of strings owns all of it: one buffer, the cells first, their bytes behind them, never changed once it is made. What leaves a
// run, enters a queue or crosses to another process is copied into such a tensor, or packed. Values; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tensor/tensor.h"

namespace dtg {

// Any bytes, zeros too. An empty one may point nowhere.
struct Text {
  const char* data = nullptr;
  uint64_t bytes = 0;
  Text() = default;
  Text(std::string_view view) : data(view.data()), bytes(view.size()) {}  // NOLINT: implicit on purpose
  std::string_view view() const { return {data, static_cast<size_t>(bytes)}; }
};
static_assert(sizeof(Text) == kTextCellBytes && std::is_trivially_copyable_v<Text>);

// A tensor with copies of the texts, as many as the shape has elements.
Result<Tensor> make_texts(const Shape& shape, std::span<const Text> texts);
// The same as whatever has `tensor`'s type: for values of a run that leave it. Of other types a plain copy.
Result<Tensor> copy_value(DType dtype, const Shape& shape, const void* elements);

// Rows of a tensor of any type as a tensor over the same memory: [first, first + rows) of its first dimension, under `shape`.
Result<Tensor> rows_of(const Tensor& tensor, int64_t first_element, const Shape& shape);

// Texts as plain bytes, for the wire: the length of each as 64 bits, little-endian, then all bytes one after the other.
int64_t packed_bytes(std::span<const Text> texts);  // -1 where it cannot be counted
void pack_texts(std::span<const Text> texts, char* into);
// Fills the cells with what lies in `bytes`, which must stay; DATA_LOSS where the lengths do not add up to exactly that.
Status unpack_texts(std::string_view bytes, std::span<Text> cells);

// Equal elements: cells by what they point at, others by their bits.
bool same_texts(std::span<const Text> a, std::span<const Text> b);

inline std::span<const Text> texts_of(const Tensor& tensor) { return tensor.values<Text>(); }

}  // namespace dtg
