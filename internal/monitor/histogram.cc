// Reading histograms: bounds, quantiles, cumulative counts. Any thread.
#include "monitor/histogram.h"

namespace dtg {

int64_t Histogram::bound(size_t index) {
  if (index < 4) return static_cast<int64_t>(index) + 1;
  const size_t exponent = index / 4 + 1;
  // The next bucket's first value, one less, and one more for the shift in index_of.
  const uint64_t bound = (uint64_t{4} + index % 4 + 1) << (exponent - 2);
  return bound > static_cast<uint64_t>(INT64_MAX) ? INT64_MAX : static_cast<int64_t>(bound);
}

HistogramCounts Histogram::counts() const {
  HistogramCounts counts;
  for (size_t i = 0; i < kHistogramBuckets; ++i) {
    counts.buckets[i] = buckets_[i].load(std::memory_order_relaxed);
    // The total is taken from the buckets, so that the two never disagree within one snapshot.
    counts.count += counts.buckets[i];
  }
  counts.sum = sum_.load(std::memory_order_relaxed);
  return counts;
}

int64_t HistogramCounts::quantile(double q) const {
  if (count == 0) return 0;
  const double wanted = q * static_cast<double>(count);
  int64_t seen = 0;
  for (size_t i = 0; i < kHistogramBuckets; ++i) {
    seen += buckets[i];
    if (buckets[i] != 0 && static_cast<double>(seen) >= wanted) return Histogram::bound(i);
  }
  return Histogram::bound(kHistogramBuckets - 1);
}

int64_t HistogramCounts::at_most(int64_t bound) const {
  const size_t last = Histogram::index_of(bound);
  int64_t seen = 0;
  for (size_t i = 0; i <= last; ++i) seen += buckets[i];
  return seen;
}

}  // namespace dtg
