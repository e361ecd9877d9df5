// CRC-32C (Castagnoli), the checksum of TensorFlow's record files and of our checkpoints. Uses the
// processor's instruction where there is one. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace dtg {

// Continue a checksum over further bytes by passing the previous result; 0 starts one.
uint32_t crc32c(std::string_view bytes, uint32_t before = 0);

// The form in which record files store it: a checksum of bytes that contain checksums would be weak.
inline uint32_t mask_crc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }
inline uint32_t unmask_crc(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

// The portable path, always by tables; for the test that compares both.
uint32_t crc32c_portable(std::string_view bytes, uint32_t before = 0);

}  // namespace dtg
