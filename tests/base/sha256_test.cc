// SHA-256: the standard's answers, any cut of the input, and that the two ways of computing agree.
#include "base/sha256.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace dtg {
namespace {

TEST(Sha256, TheStandardsAnswers) {
  EXPECT_EQ(sha256("").hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc").hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq").hex(),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')).hex(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, AnyCutOfTheInputGivesTheSame) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) bytes += static_cast<char>(i * 37 + i / 7);
  for (size_t length = 0; length <= bytes.size(); ++length) {
    const std::string_view all = std::string_view(bytes).substr(0, length);
    const Sha256Digest whole = sha256(all);
    for (const size_t cut : {size_t{1}, length / 3, length / 2, length - length / 5}) {
      Sha256 hash;
      hash.update(all.substr(0, std::min(cut, length)));
      hash.update(all.substr(std::min(cut, length)));
      ASSERT_EQ(hash.finish(), whole) << length << " cut at " << cut;
    }
  }
}

TEST(Sha256, BothWaysAgree) {
  std::vector<uint8_t> blocks(64 * 37);
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<uint8_t>(i * i * 31 + i / 3);
  for (size_t count = 0; count <= 37; ++count) {
    std::array<uint32_t, 8> one = {1, 2, 3, 4, 5, 6, 7, 0xffffffff}, other = one;
    sha256_detail::by_words(one, blocks.data(), count);
    sha256_detail::by_instructions(other, blocks.data(), count);
    ASSERT_EQ(one, other) << count;
  }
}

TEST(Sha256, HexIsReadStrictly) {
  const std::string text = sha256("x").hex();
  EXPECT_EQ(Sha256Digest::of_hex(text), sha256("x"));
  std::string upper = text;
  upper[upper.find_first_of("abcdef")] ^= 0x20;
  for (const std::string& bad : {std::string(), text.substr(1), text + "0", upper, "g" + text.substr(1), " " + text.substr(1)}) {
    EXPECT_FALSE(Sha256Digest::of_hex(bad)) << bad;
  }
}

}  // namespace
}  // namespace dtg
