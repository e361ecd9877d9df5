// Gathers rows of a table and scales bytes to floats: the two loops in which every in-memory epoch spends its time.
// Pure functions; any thread.
#include "data/table.h"

#include <bit>
#include <cmath>

namespace dtg {
namespace {

using Bytes16 = uint8_t __attribute__((vector_size(16)));
using Words8 = uint16_t __attribute__((vector_size(16)));
using Ints4 = int32_t __attribute__((vector_size(16)));
using Floats4 = float __attribute__((vector_size(16)));

// Sixteen bytes as floats, by interleaving with zeros twice: instructions that every x86-64 has and that
// compilers recognise in these patterns. Converting the vector in one go would end in scalar code.
void widen(Bytes16 bytes, Floats4 (&floats)[4]) {
  const Bytes16 zero = {};
  const auto low = std::bit_cast<Words8>(__builtin_shufflevector(bytes, zero, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23));
  const auto high =
      std::bit_cast<Words8>(__builtin_shufflevector(bytes, zero, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31));
  const Words8 zeros = {};
  const auto floats_of = [](Words8 words) { return __builtin_convertvector(std::bit_cast<Ints4>(words), Floats4); };
  floats[0] = floats_of(__builtin_shufflevector(low, zeros, 0, 8, 1, 9, 2, 10, 3, 11));
  floats[1] = floats_of(__builtin_shufflevector(low, zeros, 4, 12, 5, 13, 6, 14, 7, 15));
  floats[2] = floats_of(__builtin_shufflevector(high, zeros, 0, 8, 1, 9, 2, 10, 3, 11));
  floats[3] = floats_of(__builtin_shufflevector(high, zeros, 4, 12, 5, 13, 6, 14, 7, 15));
}

// Shuffled rows lie anywhere in memory: those needed next are asked for while one is worked on.
constexpr size_t kAhead = 3;

void fetch_ahead(const void* row, int64_t bytes) {
  const char* const at = static_cast<const char*>(row);
  for (int64_t line = 0; line < bytes && line < 4096; line += 64) __builtin_prefetch(at + line);
}

}  // namespace

ByteScale::ByteScale(float divisor) {
  for (size_t x = 0; x < 256; ++x) results_[x] = static_cast<float>(x) / divisor;
  // 1/divisor in two parts: x times the high part (16 bits) is exact, so that only the sum rounds.
  const double inverse = 1.0 / static_cast<double>(divisor);
  const auto nearest = static_cast<float>(inverse);
  high_ = std::bit_cast<float>(std::bit_cast<uint32_t>(nearest) & 0xffffff00u);
  low_ = static_cast<float>(inverse - static_cast<double>(high_));
  exact_ = std::isfinite(high_) && std::endian::native == std::endian::little;
  for (size_t x = 0; x < 256 && exact_; ++x) {
    const auto value = static_cast<float>(x);
    exact_ = value * high_ + value * low_ == results_[x];
  }
}

void ByteScale::apply(const uint8_t* from, float* to, int64_t count) const {
  int64_t i = 0;
  // Copies, because the compiler must assume that `to` may overlap this object.
  const float high = high_, low = low_;
  const int64_t fast = exact_ ? count - 15 : 0;
  for (; i < fast; i += 16) {
    Bytes16 bytes;
    std::memcpy(&bytes, from + i, sizeof bytes);
    Floats4 values[4];
    widen(bytes, values);
    values[0] = values[0] * high + values[0] * low;
    values[1] = values[1] * high + values[1] * low;
    values[2] = values[2] * high + values[2] * low;
    values[3] = values[3] * high + values[3] * low;
    std::memcpy(to + i, values, sizeof values);
  }
  for (; i < count; ++i) to[i] = results_[from[i]];
}

Result<Ref<Table>> Table::make(std::span<const Tensor> tensors) {
  if (tensors.empty()) return invalid_argument("make a data set of tensors: none given");
  std::vector<Column> columns;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (!tensor.valid() || tensor.shape().is_scalar()) {
      return invalid_argument("make a data set of tensors: number %zu is %s; each needs a first dimension to cut along", i,
                              tensor.text().c_str());
    }
    if (tensor.shape().dim(0) != tensors[0].shape().dim(0)) {
      return invalid_argument("make a data set of tensors: number %zu is %s, number 0 is %s; all need the same number of rows", i,
                              tensor.text().c_str(), tensors[0].text().c_str());
    }
    columns.push_back({tensor, tensor.dtype(), nullptr});
  }
  return of(std::move(columns));
}

Ref<Table> Table::of(std::vector<Column> columns) {
  auto table = make_ref<Table>();
  table->columns_ = std::move(columns);
  return table;
}

Shape Table::row_shape(size_t column) const {
  // The dimensions of a part of a sane shape are sane, so this cannot fail.
  return Shape::make(columns_[column].values.shape().dims().subspan(1)).take();
}

void Table::gather(size_t column, std::span<const int64_t> rows, void* to) const {
  const Column& from = columns_[column];
  const int64_t row_count = from.values.shape().count(1, from.values.shape().rank());
  if (from.scale) {
    float* at = static_cast<float*>(to);
    const uint8_t* const data = from.values.as<uint8_t>();
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i + kAhead < rows.size()) fetch_ahead(data + rows[i + kAhead] * row_count, row_count);
      from.scale->apply(data + rows[i] * row_count, at, row_count);
      at += row_count;
    }
    return;
  }
  const auto row_bytes = static_cast<size_t>(row_count * dtype_size(from.dtype));
  const char* const data = static_cast<const char*>(from.values.data());
  char* at = static_cast<char*>(to);
  if (row_bytes == 8) {  // labels: a call per row would cost more than the copy
    for (const int64_t row : rows) {
      std::memcpy(at, data + row * 8, 8);
      at += 8;
    }
    return;
  }
  for (const int64_t row : rows) {
    if (row_bytes != 0) std::memcpy(at, data + static_cast<size_t>(row) * row_bytes, row_bytes);
    at += row_bytes;
  }
}

}  // namespace dtg
