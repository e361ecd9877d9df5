// Which whole numbers become others as float32: those beyond 2^24 whose last digits it has no room for, such as days written 20240101,
// seconds since 1970 and ids. Pure; any thread.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <string_view>

namespace dtg {

// Whether a float, or a double, holds that number as it is. One that is not whole is always rounded, and no question here.
template <class T>
bool is_exact(T value, bool as_double = false) {
  if constexpr (std::floating_point<T>) {
    if (as_double || std::abs(value) <= T{1 << 24} || !std::isfinite(value) || value != std::trunc(value)) return true;
    return static_cast<T>(static_cast<float>(value)) == value;
  } else {
    uint64_t size = value < T{} ? uint64_t{} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    const uint64_t most = uint64_t{1} << (as_double ? 53 : 24);
    while (size > most && size % 2 == 0) size /= 2;
    return size <= most;
  }
}

// Whether that cell, whose number is `value`, is a whole number with digits that are lost.
bool is_rounded(std::string_view cell, double value, bool as_double);

}  // namespace dtg
