// Hashes of our own: 64 bits for keys and tables, 128 bits for naming content (prepared parts, cached
// plans). Results are the same on every machine and may be stored. Not a defence against somebody who
// crafts collisions: who must not be fooled compares the bytes as well. Pure functions; any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace dtg {

struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;
  bool operator==(const Hash128&) const = default;
};

namespace hash_detail {

// Odd constants with about half of their bits set: digits of pi, e and the golden ratio.
inline constexpr uint64_t kPi = 0x243f6a8885a308d3u;
inline constexpr uint64_t kE = 0xb7e151628aed2a6bu;
inline constexpr uint64_t kPhi = 0x9e3779b97f4a7c15u;

__extension__ using Wide = unsigned __int128;

// The two halves of the full product, folded: every bit of either input reaches every bit of the result.
inline uint64_t fold(uint64_t a, uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t load64(const char* at) {
  uint64_t word;
  std::memcpy(&word, at, 8);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

// Up to 8 bytes, the rest zero.
inline uint64_t load_tail(const char* at, size_t count) {
  uint64_t word = 0;
  for (size_t i = 0; i < count; ++i) word |= uint64_t{static_cast<unsigned char>(at[i])} << (8 * i);
  return word;
}

}  // namespace hash_detail

// Spreads an integer over all 64 bits; a bijection, so different integers never collide.
inline uint64_t hash_mix(uint64_t value) {
  value = (value ^ (value >> 32)) * hash_detail::kPhi;
  value = (value ^ (value >> 29)) * hash_detail::kE;
  return value ^ (value >> 32);
}

// Order matters: combine(combine(h, a), b) differs from combine(combine(h, b), a).
inline uint64_t hash_combine(uint64_t hash, uint64_t value) {
  return hash_detail::fold(hash ^ hash_detail::kPi, hash_mix(value) ^ hash_detail::kPhi) + hash_detail::kE;
}

inline uint64_t hash_bytes(std::string_view bytes, uint64_t seed = 0) {
  using namespace hash_detail;
  const char* at = bytes.data();
  size_t left = bytes.size();
  uint64_t hash = hash_mix(seed + kPi) ^ bytes.size();
  for (; left >= 16; at += 16, left -= 16) hash = fold(load64(at) ^ kE ^ hash, load64(at + 8) ^ kPhi) + hash;
  if (left >= 8) {
    hash = fold(load64(at) ^ kE ^ hash, load_tail(at + 8, left - 8) ^ kPhi) + hash;
  } else if (left > 0) {
    hash = fold(load_tail(at, left) ^ kE ^ hash, kPhi) + hash;
  }
  return hash_mix(hash);
}

// Two lanes that see every word under different constants and exchange after each block.
inline Hash128 hash_content(std::string_view bytes, uint64_t seed = 0) {
  using namespace hash_detail;
  const char* at = bytes.data();
  size_t left = bytes.size();
  uint64_t a = hash_mix(seed ^ kPhi) + bytes.size();
  uint64_t b = hash_mix(seed + kE) ^ bytes.size();
  const auto block = [&a, &b](uint64_t first, uint64_t second) {
    const uint64_t next_a = fold(first ^ a, second ^ kPi) + std::rotl(b, 23);
    const uint64_t next_b = fold(second ^ b, std::rotl(first, 32) ^ kE) + std::rotl(a, 41);
    a = next_a ^ first;
    b = next_b ^ second;
  };
  for (; left >= 16; at += 16, left -= 16) block(load64(at), load64(at + 8));
  if (left >= 8) {
    block(load64(at), load_tail(at + 8, left - 8));
  } else if (left > 0) {
    block(load_tail(at, left), kPhi);
  }
  block(kPi, bytes.size());
  return {hash_mix(a + std::rotl(b, 17)), hash_mix(b ^ fold(a ^ kE, kPi))};
}

// For unordered containers keyed by strings that are looked up by string_view.
struct BytesHash {
  using is_transparent = void;
  size_t operator()(std::string_view bytes) const { return static_cast<size_t>(hash_bytes(bytes)); }
};

}  // namespace dtg
