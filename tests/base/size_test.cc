// Bytes: sums and products that stick where they no longer fit.
#include "base/size.h"

#include <gtest/gtest.h>

namespace dtg {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST(Size, AddsAndMultiplies) {
  EXPECT_EQ((Bytes::of(3, 4) * 5 + Bytes(2)).value(), 62);
  EXPECT_EQ((2 * Bytes(21)).value(), 42);
  EXPECT_EQ(Bytes(65).aligned(64).value(), 128);
  EXPECT_EQ(Bytes(64).aligned(64).value(), 64);
  EXPECT_EQ(Bytes().aligned(64).value(), 0);
  EXPECT_LT(Bytes(3), Bytes(4));
  EXPECT_EQ(std::max(Bytes(3), Bytes(4)).value(), 4);
}

TEST(Size, SticksWhereItDoesNotFit) {
  const int64_t huge = int64_t{1} << 62;
  EXPECT_FALSE(Bytes(huge).is_overflow());
  EXPECT_TRUE(Bytes::of(huge, 4).is_overflow());  // wraps to 0
  EXPECT_TRUE(Bytes::of(huge, 2).is_overflow());
  EXPECT_TRUE((Bytes(huge) + Bytes(huge)).is_overflow());
  EXPECT_TRUE((Bytes::of(huge, 4) + Bytes(1)).is_overflow());
  EXPECT_TRUE((Bytes::of(huge, 4) * 1).is_overflow());
  EXPECT_TRUE(Bytes(kMost - 3).aligned(64).is_overflow());
  EXPECT_EQ(Bytes::overflow().value(), kMost);
  EXPECT_GT(Bytes::overflow(), Bytes(huge));
}

TEST(Size, TakesWhatHasWrappedAsTooMuch) {
  EXPECT_TRUE(Bytes(-1).is_overflow());
  EXPECT_TRUE((Bytes(1) * -1).is_overflow());
  EXPECT_EQ((Bytes::overflow() * 0).value(), 0);
}

}  // namespace
}  // namespace dtg
