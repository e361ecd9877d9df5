// Counts of instances against a plain map, for rows in any order; and what they take.
#include "cluster/instance_counts.h"

#include <gtest/gtest.h>

#include <random>

namespace dtg {
namespace {

TEST(InstanceCounts, AreThoseOfAMap) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    InstanceCounts counts;
    std::map<uint64_t, uint64_t> plain;
    const uint64_t rows = 1 + random() % 40, base = seed % 2 == 0 ? 0 : UINT32_MAX - 20;
    for (int i = 0; i < 300; ++i) {
      const uint64_t row = base + random() % rows;
      counts.add(row);
      ++plain[row];
      for (uint64_t r = base; r <= base + rows; ++r) ASSERT_EQ(counts.count(r), plain.contains(r) ? plain[r] : 0) << seed << " " << r;
    }
    // As few as there can be.
    size_t runs = 0;
    for (const auto& [row, count] : plain) runs += !plain.contains(row - 1) || plain[row - 1] != count ? 1 : 0;
    EXPECT_EQ(counts.runs(), runs);
  }
}

TEST(InstanceCounts, NeighboursTakeNoMore) {
  InstanceCounts counts;
  for (uint64_t step = 0; step < 100'000; ++step) {
    counts.add(1000 + step);
    ASSERT_EQ(counts.runs(), 1u);
  }
  EXPECT_EQ(counts.count(50'000), 1u);
  for (uint64_t lone = 0; counts.has_room(); lone += 2) counts.add((uint64_t{1} << 40) + lone);
  EXPECT_EQ(counts.runs(), InstanceCounts::kRunsMost);
  counts.clear();
  EXPECT_TRUE(counts.has_room());
}

}  // namespace
}  // namespace dtg
