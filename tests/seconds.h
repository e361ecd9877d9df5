// Lengths of time in nanoseconds, the unit of every clock and deadline of the library. For tests.
#pragma once

#include <cstdint>

namespace dtg {

inline constexpr int64_t kMillisecond = 1'000'000;
inline constexpr int64_t kSecond = 1'000 * kMillisecond;

}  // namespace dtg
