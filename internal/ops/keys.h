// Keys of values that are looked up by equality: what the Unique ops, ListDiff and their like share. Pure; any thread.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/status.h"
#include "tensor/dtype.h"

namespace dtg::ops {

// Calls fn with a null pointer of the type that compares like the dtype does.
template <class Fn>
Status with_plain_type(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::f32: return fn(static_cast<const float*>(nullptr));
    case DType::f64: return fn(static_cast<const double*>(nullptr));
    case DType::f16: return fn(static_cast<const Half*>(nullptr));
    case DType::bf16: return fn(static_cast<const BFloat16*>(nullptr));
    default: break;
  }
  // Whole numbers and bools are equal when their bits are.
  switch (dtype_size(dtype)) {
    case 1: return fn(static_cast<const uint8_t*>(nullptr));
    case 2: return fn(static_cast<const uint16_t*>(nullptr));
    case 4: return fn(static_cast<const uint32_t*>(nullptr));
    default: return fn(static_cast<const uint64_t*>(nullptr));
  }
}

// Equal values have equal keys. A NaN equals nothing, not even itself: false.
template <class T>
bool key_of(T value, uint64_t& key) {
  if constexpr (std::is_integral_v<T>) {
    key = value;
    return true;
  } else {
    const auto wide = static_cast<double>(value);
    if (std::isnan(wide)) return false;
    key = std::bit_cast<uint64_t>(wide == 0 ? 0.0 : wide);
    return true;
  }
}

inline void store_index(void* out, DType dtype, int64_t i, int64_t value) {
  if (dtype == DType::i32) static_cast<int32_t*>(out)[i] = static_cast<int32_t>(value);
  else static_cast<int64_t*>(out)[i] = value;
}

// Spreads a key over a table of 2^(64 - shift) slots.
inline uint64_t slot_of(uint64_t key, int shift) { return (key * 0x9E3779B97F4A7C15u) >> shift; }

}  // namespace dtg::ops
