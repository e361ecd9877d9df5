// Random: the seam for unpredictable bytes (incarnations, keys, file suffixes). What must be repeatable
// (shuffles, initialisers) never comes from here but from a seed. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dtg {

class Random {
 public:
  virtual ~Random() = default;
  virtual void fill(void* bytes, size_t count) const = 0;
  uint64_t u64() const {
    uint64_t value = 0;
    fill(&value, sizeof value);
    return value;
  }
};

// The kernel's generator; lives as long as the process.
const Random& system_random();

}  // namespace dtg
