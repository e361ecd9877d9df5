// Event sets: what std::set says, with equal numbers for equal sets.
#include "plan/event_set.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

namespace dtg {
namespace {

TEST(EventSet, TheEmptySetIsZeroAndNeutral) {
  EventSets sets(1000);
  const uint32_t one = sets.with(0, 700);
  EXPECT_EQ(sets.with(one, 700), one);
  EXPECT_NE(one, 0u);
  EXPECT_EQ(sets.unite(0, 0), 0u);
  EXPECT_EQ(sets.unite(0, one), one);
  EXPECT_EQ(sets.unite(one, 0), one);
  EXPECT_EQ(sets.unite(one, one), one);
  for (uint32_t event = 0; event < 1000; ++event) {
    EXPECT_FALSE(sets.contains(0, event));
    EXPECT_EQ(sets.contains(one, event), event == 700);
  }
}

TEST(EventSet, EqualSetsHaveEqualNumbersWhateverTheOrder) {
  EventSets sets(5000);
  std::vector<uint32_t> events = {0, 63, 64, 127, 128, 4095, 4096, 4999, 2048};
  uint32_t first = 0;
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    std::shuffle(events.begin(), events.end(), random);
    uint32_t set = 0;
    for (uint32_t event : events) set = random() % 2 ? sets.unite(sets.with(0, event), set) : sets.with(set, event);
    if (round == 0) first = set;
    EXPECT_EQ(set, first);
  }
}

class EventSetOf : public ::testing::TestWithParam<uint32_t> {};

TEST_P(EventSetOf, RandomUnionsAgreeWithPlainSets) {
  const uint32_t count = GetParam();
  EventSets sets(count);
  std::mt19937 random(count);
  std::vector<std::pair<uint32_t, std::set<uint32_t>>> made = {{0, {}}};
  std::map<std::set<uint32_t>, uint32_t> numbers = {{{}, 0}};
  for (int i = 0; i < 300; ++i) {
    std::pair<uint32_t, std::set<uint32_t>> next;
    if (i % 3 == 0) {
      const uint32_t event = static_cast<uint32_t>(random()) % count;
      next = random() % 2 ? made[random() % made.size()] : made[0];
      next.first = sets.with(next.first, event);
      next.second.insert(event);
    } else {
      const auto& a = made[random() % made.size()];
      const auto& b = made[random() % made.size()];
      next = {sets.unite(a.first, b.first), a.second};
      next.second.insert(b.second.begin(), b.second.end());
    }
    const auto [at, fresh] = numbers.emplace(next.second, next.first);
    EXPECT_EQ(at->second, next.first);
    made.push_back(std::move(next));
  }
  for (const auto& [number, events] : made) {
    for (uint32_t event = 0; event < count; event += 1 + count / 300) EXPECT_EQ(sets.contains(number, event), events.count(event) != 0);
    for (uint32_t event : events) EXPECT_TRUE(sets.contains(number, event));
  }
  std::set<uint32_t> different;
  for (const auto& [events, number] : numbers) different.insert(number);
  EXPECT_EQ(different.size(), numbers.size());
}

INSTANTIATE_TEST_SUITE_P(Counts, EventSetOf, testing::Values(1u, 2u, 63u, 64u, 65u, 128u, 1000u, 40'000u));

}  // namespace
}  // namespace dtg
