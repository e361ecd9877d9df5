// Element by element, in the element's own type.
#include "random/compare.h"

#include <cmath>
#include <cstring>

#include "base/status.h"

namespace dtg::random {
namespace {

double as_number(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype()) {
    case DType::f32: return tensor.as<float>()[i];
    case DType::f64: return tensor.as<double>()[i];
    case DType::f16: return static_cast<float>(tensor.as<Half>()[i]);
    case DType::bf16: return static_cast<float>(tensor.as<BFloat16>()[i]);
    case DType::i8: return tensor.as<int8_t>()[i];
    case DType::i16: return tensor.as<int16_t>()[i];
    case DType::i32: return tensor.as<int32_t>()[i];
    case DType::i64: return static_cast<double>(tensor.as<int64_t>()[i]);
    case DType::u8: return tensor.as<uint8_t>()[i];
    case DType::u16: return tensor.as<uint16_t>()[i];
    case DType::u32: return tensor.as<uint32_t>()[i];
    case DType::u64: return static_cast<double>(tensor.as<uint64_t>()[i]);
    case DType::boolean: return tensor.as<uint8_t>()[i];
    default: return 0;
  }
}

bool same(const Tensor& a, const Tensor& b, int64_t i) {
  const auto size = static_cast<size_t>(dtype_size(a.dtype()));
  if (std::memcmp(a.as<char>() + static_cast<size_t>(i) * size, b.as<char>() + static_cast<size_t>(i) * size, size) == 0) return true;
  return dtype_is_floating(a.dtype()) && std::isnan(as_number(a, i)) && std::isnan(as_number(b, i));
}

}  // namespace

std::string difference(const Tensor& wanted, const Tensor& got) {
  if (!got.valid()) return "nothing came";
  if (wanted.dtype() != got.dtype() || !(wanted.shape() == got.shape())) return got.text() + " instead of " + wanted.text();
  if (wanted.bytes() == 0 || std::memcmp(wanted.data(), got.data(), static_cast<size_t>(wanted.bytes())) == 0) return {};
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < wanted.count(); ++i) {
    if (same(wanted, got, i)) continue;
    if (first < 0) first = i;
    ++wrong;
  }
  if (wrong == 0) return {};
  return format("%s: %lld elements differ, the first is [%lld]: %.9g instead of %.9g", wanted.text().c_str(), static_cast<long long>(wrong),
                static_cast<long long>(first), as_number(got, first), as_number(wanted, first));
}

}  // namespace dtg::random
