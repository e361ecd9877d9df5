// FlatMap against std::map, over numbers that are alike in many ways; and Lists.
#include "base/flat_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/lists.h"

namespace dtg {
namespace {

TEST(FlatMap, HoldsWhatAMapHolds) {
  std::mt19937_64 random(7);
  const auto key_of = [&](int shape) -> uint64_t {
    const uint64_t small = random() % 500;
    if (shape == 0) return small;
    if (shape == 1) return small << 32 | (small + 1);  // pairs of neighbours, as sets of events have them
    if (shape == 2) return UINT64_MAX - small;
    return random();
  };
  for (int shape = 0; shape < 4; ++shape) {
    FlatMap<uint32_t> flat;
    std::map<uint64_t, uint32_t> truth;
    if (shape == 2) flat.reserve(300);
    EXPECT_EQ(flat.find(0), nullptr);
    for (uint32_t i = 0; i < 3000; ++i) {
      const uint64_t key = key_of(shape);
      const auto [at, fresh] = flat.emplace(key, i);
      const auto [expected, first] = truth.emplace(key, i);
      EXPECT_EQ(fresh, first);
      EXPECT_EQ(*at, expected->second);
    }
    for (const auto& [key, value] : truth) {
      ASSERT_NE(flat.find(key), nullptr);
      EXPECT_EQ(*flat.find(key), value);
    }
    EXPECT_EQ(flat.find(uint64_t{1} << 63 | 12345), nullptr);
  }
}

TEST(Lists, KeepTheirOrder) {
  const Lists lists(4, [](auto&& add) {
    add(2, 7);
    add(0, 1);
    add(2, 5);
    add(3, 9);
    add(2, 7);
  });
  ASSERT_EQ(lists.count(), 4u);
  EXPECT_EQ(std::vector<uint32_t>(lists[0].begin(), lists[0].end()), (std::vector<uint32_t>{1}));
  EXPECT_TRUE(lists[1].empty());
  EXPECT_EQ(std::vector<uint32_t>(lists[2].begin(), lists[2].end()), (std::vector<uint32_t>{7, 5, 7}));
  EXPECT_EQ(std::vector<uint32_t>(lists[3].begin(), lists[3].end()), (std::vector<uint32_t>{9}));
  EXPECT_EQ(Lists().count(), 0u);
  EXPECT_EQ(Lists(0, [](auto&&) {}).count(), 0u);
}

}  // namespace
}  // namespace dtg
