// Bytes: how much memory something takes, computed without wrapping around. Element counts up to 2^62 are legal (a value
// that is never materialised may have them), so every product that becomes a request for memory is made with this type:
// what does not fit sticks at the largest number, says so, and is refused where memory would be asked for.
//
//   Bytes need = Bytes::of(shape.count(), 4) * shards + Bytes(packed);
//   if (need.is_overflow()) ...refuse...
//
// A value; any thread.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <limits>

namespace dtg {

class Bytes {
 public:
  constexpr Bytes() = default;
  // A negative number is a product that has wrapped already, and the largest is one that did not fit.
  constexpr explicit Bytes(int64_t bytes) : value_(bytes < 0 ? kOverflow : bytes) {}
  static constexpr Bytes of(int64_t count, int64_t size) { return Bytes(count) * size; }
  static constexpr Bytes overflow() { return Bytes(kOverflow); }

  constexpr bool is_overflow() const { return value_ == kOverflow; }
  // The largest int64 where it does not fit.
  constexpr int64_t value() const { return value_; }

  friend constexpr Bytes operator+(Bytes a, Bytes b) {
    int64_t sum = 0;
    return __builtin_add_overflow(a.value_, b.value_, &sum) ? overflow() : Bytes(sum);
  }
  // What does not fit stays so, except none of it: that takes nothing.
  friend constexpr Bytes operator*(Bytes a, int64_t times) {
    int64_t product = 0;
    if (a.value_ == 0 || times == 0) return Bytes();
    if (a.is_overflow() || times < 0 || __builtin_mul_overflow(a.value_, times, &product)) return overflow();
    return Bytes(product);
  }
  friend constexpr Bytes operator*(int64_t times, Bytes a) { return a * times; }
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  // Rounded up to a multiple.
  constexpr Bytes aligned(int64_t to) const {
    const Bytes room = *this + Bytes(to - 1);
    return room.is_overflow() ? overflow() : Bytes(room.value_ / to * to);
  }

 private:
  static constexpr int64_t kOverflow = std::numeric_limits<int64_t>::max();
  int64_t value_ = 0;
};

}  // namespace dtg
