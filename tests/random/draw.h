// Draw: a small generator of repeatable numbers (splitmix64). One scene is one seed; owner: whoever makes the scene, one thread.
#pragma once

#include <cstdint>
#include <vector>

namespace dtg::random {

class Draw {
 public:
  explicit Draw(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 0x1234567u) {}
  uint64_t bits() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  // In [0, n); 0 for n = 0.
  int64_t below(int64_t n) { return n <= 1 ? 0 : static_cast<int64_t>((bits() >> 1) % static_cast<uint64_t>(n)); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  double real(double low, double high) { return low + (high - low) * static_cast<double>(bits() >> 11) * 0x1p-53; }
  template <class T>
  const T& pick(const std::vector<T>& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }

 private:
  uint64_t state_;
};

}  // namespace dtg::random
