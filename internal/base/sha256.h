// Sha256: the hash that names the bytes of a checkpoint: who damages a file, by chance or on purpose, cannot keep its hash.
// Ours rather than OpenSSL's, because checkpoints must work in processes where another library exports OpenSSL's names
// (see net/openssl.h). FIPS 180-4; by the processor's instructions where it has them. A value; one thread.
//
//   Sha256 hash;
//   hash.update(bytes);
//   const std::string text = hash.finish().hex();
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtg {

struct Sha256Digest {
  std::array<uint8_t, 32> bytes{};

  bool operator==(const Sha256Digest&) const = default;
  std::string hex() const;  // 64 digits, lower case
  // Nothing unless `text` is what hex() gives.
  static std::optional<Sha256Digest> of_hex(std::string_view text);
};

class Sha256 {
 public:
  void update(std::string_view bytes);
  // The hash of all that came; nothing may be added afterwards.
  Sha256Digest finish();

 private:
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> block_{};  // what does not fill a block yet
  size_t held_ = 0;
  uint64_t count_ = 0;  // bytes so far
};

Sha256Digest sha256(std::string_view bytes);

namespace sha256_detail {
// The two ways to take in whole blocks; tests hold them against each other.
void by_words(std::array<uint32_t, 8>& state, const uint8_t* at, size_t blocks);
// Falls to by_words where the processor lacks the instructions.
void by_instructions(std::array<uint32_t, 8>& state, const uint8_t* at, size_t blocks);
}  // namespace sha256_detail

}  // namespace dtg
