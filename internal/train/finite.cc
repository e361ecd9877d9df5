// The exponent's bits tell: all of them are set in what is no finite number.
#include "train/finite.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace dtg {
namespace {

template <class Bits>
int64_t first_ill(const void* data, int64_t count, Bits exponent) {
  const auto* const bits = static_cast<const Bits*>(data);
  constexpr int64_t kBlock = 1024;  // most are sound, so whole blocks are looked at without a branch
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(count, begin + kBlock);
    int ill = 0;
    for (int64_t i = begin; i < end; ++i) ill |= (bits[i] & exponent) == exponent ? 1 : 0;
    if (ill == 0) continue;
    for (int64_t i = begin;; ++i) {
      if ((bits[i] & exponent) == exponent) return i;
    }
  }
  return -1;
}

int64_t first_ill(const Tensor& value) {
  switch (value.dtype()) {
    case DType::f32: return first_ill<uint32_t>(value.data(), value.count(), 0x7f800000u);
    case DType::f64: return first_ill<uint64_t>(value.data(), value.count(), uint64_t{0x7ff} << 52);
    case DType::f16: return first_ill<uint16_t>(value.data(), value.count(), 0x7c00);
    case DType::bf16: return first_ill<uint16_t>(value.data(), value.count(), 0x7f80);
    default: return -1;
  }
}

}  // namespace

bool is_finite(const Tensor& value) { return first_ill(value) < 0; }

Status check_finite(std::string_view variable, const Tensor& value, int64_t step) {
  const int64_t at = first_ill(value);
  if (at < 0) return {};
  return invalid_argument(
      "after step %lld element %lld of the variable \"%.*s\" is NaN or infinite, although every loss was a number: a gradient was none, as that of sqrt at "
      "0; these weights are not saved. Look for such places, lower the learning rate or clip the gradients",
      static_cast<long long>(step), static_cast<long long>(at), static_cast<int>(std::min<size_t>(variable.size(), 200)), variable.data());
}

}  // namespace dtg
