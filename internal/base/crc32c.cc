// CRC-32C computed in two ways, chosen by the processor: eight bytes at a time through tables, or by the SSE4.2
// instruction, of which three are under way at a time, as each waits three cycles for the one before it. The tables are made by the
// compiler, so nothing runs when the library is loaded. Any thread.
#include "base/crc32c.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

namespace dtg {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78u;  // 0x1edc6f41 with its bits reversed

using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? kPolynomial : 0u);
    tables[0][byte] = crc;
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    for (size_t k = 1; k < 8; ++k) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xffu];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

uint64_t load64(const char* at) {
  uint64_t word;
  std::memcpy(&word, at, 8);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

uint32_t by_tables(uint32_t crc, const char* at, size_t count) {
  for (; count >= 8; at += 8, count -= 8) {
    const uint64_t word = load64(at) ^ crc;
    uint32_t next = 0;
    for (size_t k = 0; k < 8; ++k) next ^= kTables[7 - k][word >> (8 * k) & 0xffu];
    crc = next;
  }
  for (; count > 0; ++at, --count) crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<unsigned char>(*at)) & 0xffu];
  return crc;
}

#if defined(__x86_64__)
constexpr size_t kThird = 1024;

using Shift = std::array<std::array<uint32_t, 256>, 4>;

// What a checksum becomes by so many bytes of zeros, which is linear in its bits: by its bytes.
constexpr Shift make_shift(size_t zeros) {
  Shift shift{};
  std::array<uint32_t, 32> of_bit{};
  for (size_t bit = 0; bit < 32; ++bit) {
    uint32_t crc = uint32_t{1} << bit;
    for (size_t i = 0; i < zeros; ++i) crc = (crc >> 8) ^ kTables[0][crc & 0xffu];
    of_bit[bit] = crc;
  }
  for (size_t k = 0; k < 4; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      for (size_t bit = 0; bit < 8; ++bit) shift[k][byte] ^= (byte >> bit & 1) != 0 ? of_bit[8 * k + bit] : 0u;
    }
  }
  return shift;
}

constexpr Shift kByOne = make_shift(kThird);
constexpr Shift kByTwo = make_shift(2 * kThird);

uint32_t shifted(const Shift& by, uint64_t crc) {
  return by[0][crc & 0xffu] ^ by[1][crc >> 8 & 0xffu] ^ by[2][crc >> 16 & 0xffu] ^ by[3][crc >> 24 & 0xffu];
}

__attribute__((target("sse4.2"))) uint32_t by_instruction(uint32_t crc, const char* at, size_t count) {
  for (; count >= 3 * kThird; at += 3 * kThird, count -= 3 * kThird) {
    uint64_t first = crc, second = 0, third = 0;
    for (size_t i = 0; i < kThird; i += 8) {
      first = __builtin_ia32_crc32di(first, load64(at + i));
      second = __builtin_ia32_crc32di(second, load64(at + kThird + i));
      third = __builtin_ia32_crc32di(third, load64(at + 2 * kThird + i));
    }
    crc = shifted(kByTwo, first) ^ shifted(kByOne, second) ^ static_cast<uint32_t>(third);
  }
  uint64_t wide = crc;
  for (; count >= 8; at += 8, count -= 8) wide = __builtin_ia32_crc32di(wide, load64(at));
  crc = static_cast<uint32_t>(wide);
  for (; count > 0; ++at, --count) crc = __builtin_ia32_crc32qi(crc, static_cast<unsigned char>(*at));
  return crc;
}
#endif

}  // namespace

uint32_t crc32c_portable(std::string_view bytes, uint32_t before) { return ~by_tables(~before, bytes.data(), bytes.size()); }

uint32_t crc32c(std::string_view bytes, uint32_t before) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~by_instruction(~before, bytes.data(), bytes.size());
#endif
  return crc32c_portable(bytes, before);
}

}  // namespace dtg
