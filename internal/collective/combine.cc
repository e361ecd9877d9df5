// Folding in the first-level cache, and the division of the mean.
#include "collective/combine.h"

#include <algorithm>
#include <complex>
#include <cstring>

#include "exec/accumulator.h"

namespace dtg {
namespace {

constexpr int64_t kBlockBytes = 16 << 10;

cpu::ElementFn function_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::minimum: return cpu::ElementFn::minimum;
    case Reduction::maximum: return cpu::ElementFn::maximum;
    case Reduction::product: return cpu::ElementFn::mul;
    default: return cpu::ElementFn::add;
  }
}

template <class T, class By>
void divide_as(void* data, int64_t count, int64_t divisor) {
  T* const at = static_cast<T*>(data);
  const By by = static_cast<By>(divisor);
  for (int64_t i = 0; i < count; ++i) at[i] = static_cast<T>(at[i] / by);
}

void divide(DType dtype, void* data, int64_t count, int64_t divisor) {
  switch (dtype) {
    case DType::i8: return divide_as<int8_t, int64_t>(data, count, divisor);
    case DType::i16: return divide_as<int16_t, int64_t>(data, count, divisor);
    case DType::i32: return divide_as<int32_t, int64_t>(data, count, divisor);
    case DType::i64: return divide_as<int64_t, int64_t>(data, count, divisor);
    case DType::u8: return divide_as<uint8_t, uint64_t>(data, count, divisor);
    case DType::u16: return divide_as<uint16_t, uint64_t>(data, count, divisor);
    case DType::u32: return divide_as<uint32_t, uint64_t>(data, count, divisor);
    case DType::u64: return divide_as<uint64_t, uint64_t>(data, count, divisor);
    case DType::c64: return divide_as<std::complex<float>, float>(data, count, divisor);
    case DType::c128: return divide_as<std::complex<double>, double>(data, count, divisor);
    default: return divide_elements(dtype, data, data, count, divisor);
  }
}

}  // namespace

const char* reduction_name(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return "sum";
    case Reduction::mean: return "mean";
    case Reduction::minimum: return "min";
    case Reduction::maximum: return "max";
    case Reduction::product: return "product";
  }
  return "unknown";
}

Combine::Combine(const cpu::ElementBlock* block, DType dtype, int64_t divisor)
    : block_(block), dtype_(dtype), divisor_(divisor), bytes_(dtype_size(dtype)) {}

Result<Combine> Combine::make(Reduction reduction, DType dtype, int size) {
  const cpu::ElementBlock* const block = cpu::find_block(function_of(reduction), dtype);
  if (!block) return invalid_argument("a %s over ranks is not defined for %s", reduction_name(reduction), dtype_name(dtype));
  return Combine(block, dtype, reduction == Reduction::mean ? size : 1);
}

void Combine::add(const void* a, const void* b, void* out, int64_t count) const {
  const void* const in[] = {a, b};
  block_->block(in, out, count);
}

void Combine::fold(std::span<const void* const> parts, void* out, int64_t count) const {
  if (parts.size() == 1) {
    if (parts[0] != out && count > 0) std::memmove(out, parts[0], static_cast<size_t>(count * bytes_));
    return;
  }
  if (parts.size() == 2) return add(parts[0], parts[1], out, count);
  alignas(64) char sum[kBlockBytes];
  const int64_t block = kBlockBytes / bytes_;
  for (int64_t from = 0; from < count; from += block) {
    const int64_t now = std::min(block, count - from);
    const auto at = [&](size_t i) { return static_cast<const char*>(parts[i]) + from * bytes_; };
    add(at(0), at(1), sum, now);
    for (size_t i = 2; i + 1 < parts.size(); ++i) add(sum, at(i), sum, now);
    add(sum, at(parts.size() - 1), static_cast<char*>(out) + from * bytes_, now);
  }
}

void Combine::finish(void* data, int64_t count) const {
  if (divisor_ > 1) divide(dtype_, data, count, divisor_);
}

}  // namespace dtg
