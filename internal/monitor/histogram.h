// Histogram: counts of values in buckets that widen with the value, four to each power of two, so that a
// quantile is known within 25 % over the whole range of int64 at 2 KB a piece. Recording is three relaxed
// additions; any thread, no lock. Values are whole numbers: nanoseconds, bytes, steps.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace dtg {

// What the recorded numbers mean, and with it how exporters scale them and which bounds they print.
enum class HistogramUnit : uint8_t { plain, bytes, nanoseconds };

inline constexpr size_t kHistogramBuckets = 248;

// The counts at one moment (nearly: recording goes on meanwhile).
struct HistogramCounts {
  std::array<int64_t, kHistogramBuckets> buckets{};
  int64_t count = 0;
  int64_t sum = 0;

  // The smallest bucket bound that at least the share q (0..1) of the values does not exceed; 0 if empty.
  int64_t quantile(double q) const;
  // Values that are at most `bound`, which must be a power of two.
  int64_t at_most(int64_t bound) const;
};

class Histogram {
 public:
  explicit Histogram(HistogramUnit unit = HistogramUnit::plain) : unit_(unit) {}

  // Negative values count as 0.
  void record(int64_t value) {
    if (value < 0) value = 0;
    buckets_[index_of(value)].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
  }

  HistogramUnit unit() const { return unit_; }
  HistogramCounts counts() const;

  // Bucket i holds the values in (bound(i - 1), bound(i)]; bucket 0 holds 0 and 1.
  static size_t index_of(int64_t value) {
    // Shifted down by one, so that a power of two is the last value of its bucket: Prometheus' bounds
    // include their own value.
    const auto v = static_cast<uint64_t>(value > 0 ? value - 1 : 0);
    if (v < 4) return static_cast<size_t>(v);
    const int exponent = 63 - std::countl_zero(v);
    return static_cast<size_t>(exponent - 1) * 4 + static_cast<size_t>(v >> (exponent - 2) & 3u);
  }
  static int64_t bound(size_t index);

 private:
  const HistogramUnit unit_;
  std::array<std::atomic<int64_t>, kHistogramBuckets> buckets_{};
  std::atomic<int64_t> sum_{0};
};

}  // namespace dtg
