// Combine: the arithmetic of reductions over ranks, with the element loops that ops use, so that a reduction over a group gives the
// bits of AddN over towers and of an accumulator. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "device/cpu/elementwise.h"

namespace dtg {

// The numbers are part of the C ABI and of the wire.
enum class Reduction : uint8_t { sum = 0, mean = 1, minimum = 2, maximum = 3, product = 4 };
inline constexpr uint8_t kReductionMax = 4;
const char* reduction_name(Reduction reduction);

// Who is first to be added; the others follow by rank, around the end. One function for towers, parameter servers and groups: bucket 0
// is the order in which AddN has its inputs and accumulators have their workers.
inline int first_in_order(uint32_t bucket, int size) { return static_cast<int>(bucket % static_cast<uint32_t>(size)); }

class Combine final {
 public:
  // Fails for element types that the reduction is not defined for.
  static Result<Combine> make(Reduction reduction, DType dtype, int size);
  // ((parts[0] . parts[1]) . parts[2]) ... into `out`, which may be one of them.
  void fold(std::span<const void* const> parts, void* out, int64_t count) const;
  // One more: a . b into `out`, which may be either.
  void add(const void* a, const void* b, void* out, int64_t count) const;
  // After the last: the mean's division. Nothing for other reductions.
  void finish(void* data, int64_t count) const;
  int64_t element_bytes() const { return bytes_; }

 private:
  Combine(const cpu::ElementBlock* block, DType dtype, int64_t divisor);
  const cpu::ElementBlock* block_;
  DType dtype_;
  int64_t divisor_;  // 1: none
  int64_t bytes_;
};

}  // namespace dtg
