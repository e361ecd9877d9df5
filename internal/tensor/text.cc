// Copying, packing and comparing strings, with every length checked before it is used. Pure functions; any thread.
#include "tensor/text.h"

#include <algorithm>
#include <cstring>

namespace dtg {
namespace {

// All bytes behind the cells, or -1.
int64_t total_bytes(std::span<const Text> texts) {
  int64_t total = 0;
  for (const Text& text : texts) {
    if (text.bytes > INT64_MAX / 4 || __builtin_add_overflow(total, static_cast<int64_t>(text.bytes), &total)) return -1;
  }
  return total > INT64_MAX / 2 ? -1 : total;
}

int64_t with_cells(int64_t count, int64_t bytes) {
  int64_t all = 0;
  if (bytes < 0 || __builtin_mul_overflow(count, kTextCellBytes, &all) || __builtin_add_overflow(all, bytes, &all)) return -1;
  return all;
}

}  // namespace

Result<Tensor> make_texts(const Shape& shape, std::span<const Text> texts) {
  if (static_cast<int64_t>(texts.size()) != shape.count()) {
    return invalid_argument("make a tensor of strings of shape %s: %zu strings given", shape.text().c_str(), texts.size());
  }
  const int64_t bytes = with_cells(shape.count(), total_bytes(texts));
  if (bytes < 0) return resource_exhausted("a tensor string%s: its size in bytes does not fit", shape.text().c_str());
  DTG_ASSIGN(auto buffer, Buffer::allocate(bytes));
  auto* const cells = static_cast<Text*>(buffer->data());
  char* to = reinterpret_cast<char*>(cells + texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto size = static_cast<size_t>(texts[i].bytes);
    if (size > 0) std::memcpy(to, texts[i].data, size);
    cells[i] = std::string_view(to, size);
    to += size;
  }
  return Tensor::over(std::move(buffer), DType::string, shape);
}

Result<Tensor> copy_value(DType dtype, const Shape& shape, const void* elements) {
  if (dtype == DType::string) return make_texts(shape, {static_cast<const Text*>(elements), static_cast<size_t>(shape.count())});
  DTG_ASSIGN(Tensor copy, Tensor::allocate(dtype, shape));
  if (copy.bytes() > 0) std::memcpy(copy.data(), elements, static_cast<size_t>(copy.bytes()));
  return copy;
}

Result<Tensor> rows_of(const Tensor& tensor, int64_t first_element, const Shape& shape) {
  const int64_t size = cell_bytes(tensor.dtype());
  if (first_element < 0 || first_element > tensor.count() || shape.count() > tensor.count() - first_element) {
    return invalid_argument("a part of the tensor %s: %lld elements from %lld on", tensor.text().c_str(),
                            static_cast<long long>(shape.count()), static_cast<long long>(first_element));
  }
  return tensor.part(first_element * size, shape);
}

int64_t packed_bytes(std::span<const Text> texts) {
  int64_t lengths = 0, all = 0;
  const int64_t bytes = total_bytes(texts);
  if (bytes < 0 || __builtin_mul_overflow(static_cast<int64_t>(texts.size()), int64_t{8}, &lengths)) return -1;
  return __builtin_add_overflow(lengths, bytes, &all) ? -1 : all;
}

void pack_texts(std::span<const Text> texts, char* into) {
  for (const Text& text : texts) {
    for (int byte = 0; byte < 8; ++byte) *into++ = static_cast<char>(text.bytes >> 8 * byte & 0xff);
  }
  for (const Text& text : texts) {
    if (text.bytes == 0) continue;
    std::memcpy(into, text.data, static_cast<size_t>(text.bytes));
    into += text.bytes;
  }
}

Status unpack_texts(std::string_view bytes, std::span<Text> cells) {
  const auto wrong = [&] {
    return data_loss("%zu packed strings in %zu bytes: their lengths say something else", cells.size(), bytes.size());
  };
  if (cells.size() > bytes.size() / 8) return wrong();
  std::string_view rest = bytes.substr(8 * cells.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    uint64_t length = 0;
    for (size_t byte = 0; byte < 8; ++byte) length |= uint64_t{static_cast<uint8_t>(bytes[8 * i + byte])} << 8 * byte;
    if (length > rest.size()) return wrong();
    cells[i] = rest.substr(0, static_cast<size_t>(length));
    rest.remove_prefix(static_cast<size_t>(length));
  }
  return rest.empty() ? Status() : wrong();
}

bool same_texts(std::span<const Text> a, std::span<const Text> b) {
  return std::ranges::equal(a, b, [](const Text& x, const Text& y) { return x.view() == y.view(); });
}

}  // namespace dtg
