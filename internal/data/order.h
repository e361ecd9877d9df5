// The random numbers of shuffling: a small generator of our own, so that equal seeds give equal orders on every
// machine, with every compiler, for good. Values; one thread each.
#pragma once

#include <cstdint>

#include "base/hash.h"

namespace dtg {

class Order {
 public:
  Order(uint64_t seed, uint64_t epoch) : state_(hash_combine(hash_mix(seed), epoch)) {}

  // Splitmix: a counter through a mixer.
  uint64_t next() { return hash_mix(state_ += hash_detail::kPhi); }

  // Uniform in [0, bound), bound > 0: the high half of a product, redrawn in the rare unfair case.
  uint64_t below(uint64_t bound) {
    const uint64_t unfair = (0 - bound) % bound;
    for (;;) {
      const hash_detail::Wide product = static_cast<hash_detail::Wide>(next()) * bound;
      if (static_cast<uint64_t>(product) >= unfair) return static_cast<uint64_t>(product >> 64);
    }
  }

 private:
  uint64_t state_;
};

}  // namespace dtg
