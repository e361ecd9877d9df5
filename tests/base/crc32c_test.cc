// CRC-32C against published values, and both implementations against each other.
#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace dtg {
namespace {

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

TEST(Crc32c, TablesAndInstructionAgree) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) bytes += static_cast<char>(i * 73 + i / 7);
  for (size_t from = 0; from < 9; ++from) {
    for (size_t count = 0; count + from <= bytes.size(); count += 5) {
      const std::string_view part = std::string_view(bytes).substr(from, count);
      EXPECT_EQ(crc32c(part, 77), crc32c_portable(part, 77));
    }
  }
}

// Around where three are under way at a time.
TEST(Crc32c, LongOnesAgree) {
  std::string bytes;
  uint32_t state = 5;
  for (int i = 0; i < 20'000; ++i) bytes += static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  for (size_t count = 3000; count < 19'000; count += count % 3072 < 20 || count % 3072 > 3050 ? 1 : 97) {
    const std::string_view part = std::string_view(bytes).substr(count % 11, count);
    ASSERT_EQ(crc32c(part, 77), crc32c_portable(part, 77)) << count;
  }
}

TEST(Crc32c, ContinuesOverParts) {
  const std::string_view all = "the quick brown fox jumps over the lazy dog";
  for (size_t cut = 0; cut <= all.size(); ++cut) {
    EXPECT_EQ(crc32c(all.substr(cut), crc32c(all.substr(0, cut))), crc32c(all));
  }
}

TEST(Crc32c, MaskGoesBothWays) {
  for (const uint32_t crc : {0u, 1u, 0xe3069283u, 0xffffffffu}) EXPECT_EQ(unmask_crc(mask_crc(crc)), crc);
  // Rotate right by 15, then add the constant.
  EXPECT_EQ(mask_crc(0x00008000u), 0xa282ead9u);
}

}  // namespace
}  // namespace dtg
