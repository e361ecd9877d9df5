// SipHash-2-4: 64 bits of any bytes under a key of two numbers; who does not know the key cannot aim at a value. The same on every machine,
// and the same as TensorFlow's StringToHashBucketStrong. Pure functions; any thread.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "base/hash.h"

namespace dtg {

struct HashKey {
  uint64_t low = 0, high = 0;
};

inline uint64_t keyed_hash(std::string_view text, const HashKey& key) {
  uint64_t v0 = key.low ^ 0x736f6d6570736575, v1 = key.high ^ 0x646f72616e646f6d;
  uint64_t v2 = key.low ^ 0x6c7967656e657261, v3 = key.high ^ 0x7465646279746573;
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
      v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
    }
  };
  const auto absorb = [&](uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  };
  const uint64_t length = uint64_t{text.size()} << 56;
  for (; text.size() >= 8; text.remove_prefix(8)) absorb(hash_detail::load64(text.data()));
  absorb(length | hash_detail::load_tail(text.data(), text.size()));
  v2 ^= 0xff;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace dtg
