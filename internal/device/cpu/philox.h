// Philox 4x32-10: the counter-based generator behind the random ops. A stream is a key and a counter; block number n
// of a stream is found without the blocks before it, so shards start anywhere and the bits do not depend on how many
// there are. The order of samples within a tensor is TensorFlow's. Pure functions; any thread.
#pragma once

#include <array>
#include <cstdint>

#include "base/pool.h"
#include "tensor/dtype.h"

namespace dtg::cpu {

class Philox {
 public:
  using Block = std::array<uint32_t, 4>;
  // As the ops carry them: 64-bit key, 128-bit counter with the low word first.
  Philox(uint64_t key, uint64_t counter_low, uint64_t counter_high) : key_(key), low_(counter_low), high_(counter_high) {}

  // The stream from `blocks` further on.
  void skip(uint64_t blocks) {
    low_ += blocks;
    high_ += low_ < blocks ? 1 : 0;
  }
  Block next();

 private:
  uint64_t key_;
  uint64_t low_;
  uint64_t high_;
};

// The words of a stream one after the other, and what TensorFlow makes of them where it draws one number at a time.
class PhiloxWords {
 public:
  explicit PhiloxWords(const Philox& stream) : stream_(stream) {}
  // From `words` on.
  PhiloxWords(const Philox& stream, uint64_t words) : stream_(stream) {
    stream_.skip(words / 4);
    for (uint64_t i = 0; i < words % 4; ++i) next();
  }

  uint32_t next() {
    if (used_ == 4) {
      block_ = stream_.next();
      used_ = 0;
    }
    return block_[used_++];
  }
  uint64_t next64() {
    const uint64_t low = next();
    return low | uint64_t{next()} << 32;
  }
  float uniform_float();    // [0, 1)
  double uniform_double();  // [0, 1)
  // [0, n), all alike: what would favour the small ones is drawn again. n > 0.
  uint32_t below(uint32_t n);
  uint64_t below64(uint64_t n);

 private:
  Philox stream_;
  Philox::Block block_{};
  size_t used_ = 4;
};

enum class Distribution : uint8_t {
  uniform,           // floats in [0, 1)
  normal,            // floats
  truncated_normal,  // floats, within two standard deviations
  bits,              // integers of 32 and 64 bits, all of them alike
  integers,          // integers of 32 and 64 bits in [low, high)
};

// Fills `count` elements. `low` and `high` are for integers only, low < high.
void fill_random(Distribution distribution, DType dtype, const Philox& stream, void* out, int64_t count, int64_t low, int64_t high,
                 Pool& pool);

}  // namespace dtg::cpu
