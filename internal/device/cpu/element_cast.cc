// Conversions between the plain real types. Constant data, any thread.
//
// Floats lose their fraction on the way to integers. What does not fit becomes what the processor's own
// conversion gives (the smallest integer of 32 or 64 bits, then the low bits of it), as TensorFlow has it,
// but by comparisons, because the language leaves it undefined.
#include <bit>
#include <cmath>
#include <type_traits>

#include "device/cpu/element_loops.h"

namespace dtg::cpu {
namespace {

// To int32 or int64 by truncation, the smallest value where that does not fit.
template <class I, class F>
I whole_part(F value) {
  constexpr F bound = static_cast<F>(std::is_same_v<I, int32_t> ? 0x1p31 : 0x1p63);
  const F whole = std::trunc(value);
  return whole >= -bound && whole < bound ? static_cast<I>(whole) : std::numeric_limits<I>::min();
}

template <class I, class F>
I float_to_integer(F value) {
  if constexpr (sizeof(I) < 4 || std::is_same_v<I, int32_t>) return static_cast<I>(whole_part<int32_t>(value));
  else if constexpr (!std::is_same_v<I, uint64_t>) return static_cast<I>(whole_part<int64_t>(value));
  else if (value < static_cast<F>(0x1p63)) return static_cast<I>(whole_part<int64_t>(value));
  else return static_cast<I>(whole_part<int64_t>(value - static_cast<F>(0x1p63))) ^ (uint64_t{1} << 63);
}

template <class From, class To>
To convert(From from) {
  const auto value = static_cast<Computed<From>>(from);
  using V = Computed<From>;
  if constexpr (std::is_same_v<To, bool>) return value != V(0);
  else if constexpr (kIsSmallFloat<To>) return To(static_cast<float>(value));
  else if constexpr (std::is_floating_point_v<V> && std::is_integral_v<To>) return float_to_integer<To>(value);
  else return static_cast<To>(value);
}

template <class From, class To>
void cast(const void* const* in, void* out, int64_t n) {
  const From* a = static_cast<const From*>(in[0]);
  To* y = static_cast<To*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = convert<From, To>(a[i]);
}

// Rounds towards zero: the mantissa bits that To has no room for are cleared first.
template <class From, class To, int kLostBits>
void truncating_cast(const void* const* in, void* out, int64_t n) {
  using Bits = std::conditional_t<sizeof(From) == 8, uint64_t, uint32_t>;
  const From* a = static_cast<const From*>(in[0]);
  To* y = static_cast<To*>(out);
  for (int64_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<Bits>(a[i]);
    const auto kept = std::bit_cast<From>(bits & ~((Bits{1} << kLostBits) - 1));
    y[i] = convert<From, To>(std::isfinite(a[i]) ? kept : a[i]);
  }
}

template <class From>
BlockFn cast_from(DType to) {
  switch (to) {
    case DType::f32: return cast<From, float>;
    case DType::f64: return cast<From, double>;
    case DType::f16: return cast<From, Half>;
    case DType::bf16: return cast<From, BFloat16>;
    case DType::i8: return cast<From, int8_t>;
    case DType::i16: return cast<From, int16_t>;
    case DType::i32: return cast<From, int32_t>;
    case DType::i64: return cast<From, int64_t>;
    case DType::u8: return cast<From, uint8_t>;
    case DType::u16: return cast<From, uint16_t>;
    case DType::u32: return cast<From, uint32_t>;
    case DType::u64: return cast<From, uint64_t>;
    case DType::boolean: return cast<From, bool>;
    default: return nullptr;
  }
}

BlockFn find_truncating(DType from, DType to) {
  if (from == DType::f32 && to == DType::bf16) return truncating_cast<float, BFloat16, 16>;
  if (from == DType::f32 && to == DType::f16) return truncating_cast<float, Half, 13>;
  if (from == DType::f64 && to == DType::f32) return truncating_cast<double, float, 29>;
  if (from == DType::f64 && to == DType::bf16) return truncating_cast<double, BFloat16, 45>;
  if (from == DType::f64 && to == DType::f16) return truncating_cast<double, Half, 42>;
  return nullptr;
}

}  // namespace

BlockFn find_cast(DType from, DType to, bool truncate) {
  if (BlockFn fn = truncate ? find_truncating(from, to) : nullptr) return fn;
  switch (from) {
    case DType::f32: return cast_from<float>(to);
    case DType::f64: return cast_from<double>(to);
    case DType::f16: return cast_from<Half>(to);
    case DType::bf16: return cast_from<BFloat16>(to);
    case DType::i8: return cast_from<int8_t>(to);
    case DType::i16: return cast_from<int16_t>(to);
    case DType::i32: return cast_from<int32_t>(to);
    case DType::i64: return cast_from<int64_t>(to);
    case DType::u8: return cast_from<uint8_t>(to);
    case DType::u16: return cast_from<uint16_t>(to);
    case DType::u32: return cast_from<uint32_t>(to);
    case DType::u64: return cast_from<uint64_t>(to);
    case DType::boolean: return cast_from<bool>(to);
    default: return nullptr;
  }
}

}  // namespace dtg::cpu
