// Hashes: stability of the values (they may be stored), no collisions in small dense sets, and that each
// input bit moves about half of the output.
#include "base/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

namespace dtg {
namespace {

TEST(Hash, ValuesAreFixedForGood) {
  EXPECT_EQ(hash_bytes(""), 0xf931fd194e29ef50u);
  EXPECT_EQ(hash_bytes("dtg"), 0xc498db717009db86u);
  EXPECT_EQ(hash_bytes("a name of more than sixteen bytes"), 0x68b010c5fe942f68u);
  const Hash128 content = hash_content("a name of more than sixteen bytes");
  EXPECT_EQ(content.high, 0x4042521ced5bdd6du);
  EXPECT_EQ(content.low, 0xf2db417b2cc2207du);
}

TEST(Hash, LengthAndZerosCount) {
  std::set<uint64_t> seen;
  std::set<std::pair<uint64_t, uint64_t>> contents;
  for (size_t length = 0; length < 200; ++length) {
    const std::string zeros(length, '\0');
    seen.insert(hash_bytes(zeros));
    const Hash128 content = hash_content(zeros);
    contents.insert({content.high, content.low});
  }
  EXPECT_EQ(seen.size(), 200u);
  EXPECT_EQ(contents.size(), 200u);
}

TEST(Hash, EachBitMatters) {
  std::string text = "forty bytes of text, more than one block";
  const uint64_t before = hash_bytes(text);
  const Hash128 content = hash_content(text);
  for (size_t bit = 0; bit < text.size() * 8; ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    const int moved = std::popcount(hash_bytes(text) ^ before);
    EXPECT_GT(moved, 10) << bit;
    EXPECT_LT(moved, 54) << bit;
    const Hash128 other = hash_content(text);
    EXPECT_GT(std::popcount(other.high ^ content.high), 10) << bit;
    EXPECT_GT(std::popcount(other.low ^ content.low), 10) << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
  }
}

TEST(Hash, DenseIntegersDoNotCollide) {
  std::set<uint64_t> seen;
  for (uint64_t a = 0; a < 200; ++a) {
    for (uint64_t b = 0; b < 200; ++b) seen.insert(hash_combine(hash_combine(0, a), b));
  }
  EXPECT_EQ(seen.size(), 40000u);
  EXPECT_NE(hash_bytes("x", 1), hash_bytes("x", 2));
}

}  // namespace
}  // namespace dtg
