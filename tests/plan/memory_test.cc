// MemoryPlan: memory is used again by whoever surely comes later and by nobody else. The last test compares seeded random programs with
// a checker that knows nothing but who runs before whom.
#include "plan/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tensor/buffer.h"

namespace dtg {
namespace {

// What a test says about segments and events.
class Known final : public SegmentReach {
 public:
  bool ended(uint32_t first, uint32_t then) const override { return has(ends, first, then); }
  bool happened(uint32_t event, uint32_t then) const override { return has(events, event, then); }
  std::vector<std::pair<uint32_t, uint32_t>> ends, events;

 private:
  static bool has(const std::vector<std::pair<uint32_t, uint32_t>>& list, uint32_t a, uint32_t b) {
    return std::ranges::find(list, std::pair(a, b)) != list.end();
  }
};

constexpr int64_t kBytes = 4096;

TEST(MemoryPlan, AStraightLineNeedsWhatLivesAtOnce) {
  MemoryPlan plan;
  std::vector<uint32_t> chain;
  for (uint32_t i = 0; i < 100; ++i) {
    chain.push_back(plan.value(kBytes, 0, i));
    if (i > 0) plan.used(chain[i - 1], 0, i);
  }
  ASSERT_TRUE(plan.solve({0}, Known()).ok());
  EXPECT_EQ(plan.bytes(), 2 * kBytes);
  for (uint32_t i = 1; i < 100; ++i) EXPECT_NE(plan.offset(chain[i]), plan.offset(chain[i - 1]));
}

TEST(MemoryPlan, WhatIsKeptIsNeverUsedAgain) {
  MemoryPlan plan;
  const uint32_t kept = plan.value(kBytes, 0, 0), gone = plan.value(kBytes, 0, 0), later = plan.value(kBytes, 0, 1);
  plan.keep(kept);
  const uint32_t elsewhere = plan.value(kBytes, 0, 1);
  plan.drop(elsewhere);
  ASSERT_TRUE(plan.solve({0}, Known()).ok());
  EXPECT_EQ(plan.offset(later), plan.offset(gone));
  EXPECT_NE(plan.offset(later), plan.offset(kept));
  EXPECT_EQ(plan.offset(elsewhere), -1);
  EXPECT_EQ(plan.bytes(), 2 * kBytes);
}

TEST(MemoryPlan, AnotherSegmentUsesItOnlyAfterTheEnd) {
  for (const bool ordered : {false, true}) {
    MemoryPlan plan;
    const uint32_t first = plan.value(kBytes, 0, 0), then = plan.value(kBytes, 1, 0);
    Known reach;
    if (ordered) reach.ends = {{0, 1}};
    ASSERT_TRUE(plan.solve({0, 1}, reach).ok());
    EXPECT_EQ(plan.offset(first) == plan.offset(then), ordered);
    EXPECT_EQ(plan.bytes(), ordered ? kBytes : 2 * kBytes);
  }
}

TEST(MemoryPlan, EveryReaderMustHaveEnded) {
  // Made in 0, read in 1 and 2; 3 surely comes after 0 and 1.
  for (const bool after_both : {false, true}) {
    MemoryPlan plan;
    const uint32_t first = plan.value(kBytes, 0, 0), then = plan.value(kBytes, 3, 0);
    plan.used(first, 1, 0);
    plan.used(first, 2, 0);
    Known reach;
    reach.ends = {{0, 1}, {0, 2}, {0, 3}, {1, 3}};
    if (after_both) reach.ends.emplace_back(2, 3);
    ASSERT_TRUE(plan.solve({0, 1, 2, 3}, reach).ok());
    EXPECT_EQ(plan.offset(first) == plan.offset(then), after_both);
  }
}

TEST(MemoryPlan, WhatIsReadUntilAnEventIsFreeAfterIt) {
  for (const bool happened : {false, true}) {
    MemoryPlan plan;
    const uint32_t first = plan.value(kBytes, 0, 0), same_segment = plan.value(kBytes, 0, 1), then = plan.value(kBytes, 1, 0);
    plan.used_until(first, 7);
    plan.keep(same_segment);
    Known reach;
    reach.ends = {{0, 1}};
    if (happened) reach.events = {{7, 1}};
    ASSERT_TRUE(plan.solve({0, 1}, reach).ok());
    EXPECT_NE(plan.offset(first), plan.offset(same_segment)) << "the event is not waited for here";
    EXPECT_EQ(plan.offset(first) == plan.offset(then), happened);
  }
}

TEST(MemoryPlan, AnOutputTakesThePlaceOfAnOperandThatDies) {
  // The operand dies at 1, where the output is made; or it is read once more at 2.
  for (const bool dies : {false, true}) {
    MemoryPlan plan;
    const uint32_t in = plan.value(kBytes, 0, 0), out = plan.value(kBytes, 0, 1);
    plan.used(in, 0, 1);
    if (!dies) plan.used(in, 0, 2);
    plan.used(out, 0, 3);
    plan.may_overwrite(in, out, 0, 1);
    ASSERT_TRUE(plan.solve({0}, Known()).ok());
    EXPECT_EQ(plan.offset(in) == plan.offset(out), dies);
  }
}

TEST(MemoryPlan, TwoOutputsDoNotTakeOneOperand) {
  MemoryPlan plan;
  const uint32_t in = plan.value(kBytes, 0, 0), a = plan.value(kBytes, 0, 1), b = plan.value(kBytes, 0, 1);
  plan.used(in, 0, 1);
  plan.used(a, 0, 2);
  plan.used(b, 0, 2);
  plan.may_overwrite(in, a, 0, 1);
  plan.may_overwrite(in, b, 0, 1);
  ASSERT_TRUE(plan.solve({0}, Known()).ok());
  EXPECT_NE(plan.offset(a), plan.offset(b));
}

TEST(MemoryPlan, AnOperandThatIsReadElsewhereIsNotWrittenOver) {
  for (const bool over : {false, true}) {
    MemoryPlan plan;
    const uint32_t in = plan.value(kBytes, 0, 0), out = plan.value(kBytes, 2, 0);
    plan.used(in, 1, 0);
    plan.used(in, 2, 0);
    plan.used(out, 2, 1);
    plan.may_overwrite(in, out, 2, 0);
    Known reach;
    reach.ends = {{0, 1}, {0, 2}};
    if (over) reach.ends.emplace_back(1, 2);
    ASSERT_TRUE(plan.solve({0, 1, 2}, reach).ok());
    EXPECT_EQ(plan.offset(in) == plan.offset(out), over);
  }
}

TEST(MemoryPlan, WorkspacesLieApartFromWhatLives) {
  MemoryPlan plan;
  const uint32_t in = plan.value(kBytes, 0, 0), out = plan.value(kBytes, 0, 1);
  plan.used(in, 0, 1);
  plan.used(out, 0, 2);
  plan.workspace(3 * kBytes, 0, 1);
  const uint32_t after = plan.value(kBytes, 0, 2);
  ASSERT_TRUE(plan.solve({0}, Known()).ok());
  int64_t work = -1;
  plan.for_workspaces([&](uint32_t, uint32_t, int64_t offset) { work = offset; });
  for (const uint32_t value : {in, out}) {
    EXPECT_TRUE(plan.offset(value) + kBytes <= work || work + 3 * kBytes <= plan.offset(value)) << plan.offset(value) << " and " << work;
  }
  EXPECT_EQ(plan.bytes(), 5 * kBytes);
  EXPECT_LT(plan.offset(after), plan.bytes());
}

TEST(MemoryPlan, BlocksThatFitInSizeButNotInTimeLeaveTheTopAlone) {
  // Forty blocks that may not be used yet, then a greater one at the top that may: what it gives must stay inside of the whole.
  constexpr uint32_t kBlocks = 40;
  MemoryPlan plan;
  for (uint32_t i = 0; i < kBlocks; ++i) {
    plan.used_until(plan.value(kBytes + i * 64, i, 0), i);
    // What lies between keeps them from being joined.
    plan.keep(plan.value(64, i, 0));
  }
  const uint32_t top = plan.value(100 * kBytes, kBlocks, 0), small = plan.value(kBytes, kBlocks + 1, 0);
  Known reach;
  reach.ends = {{kBlocks, kBlocks + 1}};
  std::vector<uint32_t> walk(kBlocks + 2);
  std::iota(walk.begin(), walk.end(), 0u);
  ASSERT_TRUE(plan.solve(walk, reach).ok());
  EXPECT_LE(plan.offset(top) + 100 * kBytes, plan.bytes());
  EXPECT_EQ(plan.offset(small), plan.offset(top));
}

// A random program: segments in a random partial order, values read by any segment after the one that makes them.
class RandomProgram final : public SegmentReach {
 public:
  explicit RandomProgram(uint32_t seed) : random_(seed) {
    segments_ = 1 + pick(24);
    after_.assign(segments_, std::vector<bool>(segments_));
    for (uint32_t then = 1; then < segments_; ++then) {
      for (uint32_t edges = pick(3); edges > 0; --edges) {
        const uint32_t first = pick(then);
        after_[first][then] = true;
        for (uint32_t s = 0; s < first; ++s) after_[s][then] = after_[s][then] || after_[s][first];
      }
    }
    for (uint32_t i = 0; i < 30 + pick(200); ++i) make_value();
    for (uint32_t i = 0; i < 30; ++i) make_workspace();
  }

  bool ended(uint32_t first, uint32_t then) const override { return after_[first][then]; }
  // Event e is the end of segment e.
  bool happened(uint32_t event, uint32_t then) const override { return after_[event][then]; }

  void check() {
    std::vector<uint32_t> walk(segments_);
    for (uint32_t s = 0; s < segments_; ++s) walk[s] = s;
    ASSERT_TRUE(plan_.solve(walk, *this).ok());
    plan_.for_workspaces([&](uint32_t segment, uint32_t instruction, int64_t offset) {
      for (Life& life : lives_) {
        if (life.work && life.segment == segment && life.instruction == instruction) life.offset = offset;
      }
    });
    for (Life& life : lives_) {
      if (!life.work) life.offset = plan_.offset(life.number);
      ASSERT_GE(life.offset, 0);
      ASSERT_EQ(life.offset % kBlockAlign, 0);
      ASSERT_LE(life.offset + align_up(life.bytes), plan_.bytes());
    }
    for (size_t a = 0; a < lives_.size(); ++a) {
      for (size_t b = a + 1; b < lives_.size(); ++b) {
        const Life &x = lives_[a], &y = lives_[b];
        if (x.offset + x.bytes <= y.offset || y.offset + y.bytes <= x.offset) continue;
        EXPECT_TRUE(is_over_before(x, y) || is_over_before(y, x)) << a << " and " << b << " share memory";
      }
    }
  }

 private:
  struct Use {
    uint32_t segment, instruction;
    bool event;
  };
  struct Life {
    uint32_t number = 0, segment = 0, instruction = 0;
    int64_t bytes = 0;
    bool kept = false;
    bool work = false;
    std::vector<Use> uses;
    std::vector<uint32_t> over;  // values that it may be written over, which die where it is made
    int64_t offset = -1;
  };

  uint32_t pick(uint32_t below) { return static_cast<uint32_t>(random_() % below); }

  void make_value() {
    Life life;
    life.segment = pick(segments_);
    // Two values of one instruction now and then.
    life.instruction = pick(12);
    life.bytes = 1 + (pick(4) ? 64 * (1 + pick(8)) : pick(3000));
    life.number = plan_.value(life.bytes, life.segment, life.instruction);
    for (uint32_t uses = pick(4); uses > 0; --uses) {
      const uint32_t segment = life.segment + pick(segments_ - life.segment);
      if (segment == life.segment) life.uses.push_back({segment, life.instruction + 1 + pick(10), false});
      else if (after_[life.segment][segment]) life.uses.push_back({segment, pick(12), false});
    }
    for (const Use& use : life.uses) plan_.used(life.number, use.segment, use.instruction);
    if (pick(10) == 0) {
      life.uses.push_back({life.segment, 0, true});
      plan_.used_until(life.number, life.segment);
    }
    life.kept = pick(12) == 0;
    if (life.kept) plan_.keep(life.number);
    offer_operands(life);
    lives_.push_back(std::move(life));
  }

  // Every value that this instruction reads is offered for writing over.
  void offer_operands(Life& life) {
    for (const Life& in : lives_) {
      const bool read = std::ranges::any_of(
          in.uses, [&](const Use& use) { return !use.event && use.segment == life.segment && use.instruction == life.instruction; });
      if (!read) continue;
      plan_.may_overwrite(in.number, life.number, life.segment, life.instruction);
      life.over.push_back(in.number);
    }
  }

  void make_workspace() {
    Life life;
    life.work = true;
    life.segment = pick(segments_);
    life.instruction = 40 + static_cast<uint32_t>(lives_.size());  // one for each instruction
    life.bytes = 64 * (1 + pick(30));
    plan_.workspace(life.bytes, life.segment, life.instruction);
    lives_.push_back(life);
  }

  // Surely nobody touches x any more when y is made; an output that is written over x is made where x is read last.
  bool is_over_before(const Life& x, const Life& y) const {
    if (x.kept) return false;
    const bool over = std::ranges::find(y.over, x.number) != y.over.end() && !x.work && !y.work && x.offset == y.offset;
    const auto before = [&](uint32_t segment, uint32_t instruction) {
      if (segment != y.segment) return bool{after_[segment][y.segment]};
      return over ? instruction <= y.instruction : instruction < y.instruction;
    };
    return before(x.segment, x.instruction) && std::ranges::all_of(x.uses, [&](const Use& use) {
             return use.event ? bool{after_[use.segment][y.segment]} : before(use.segment, use.instruction);
           });
  }

  std::mt19937 random_;
  uint32_t segments_ = 0;
  std::vector<std::vector<bool>> after_;  // [first][then]
  MemoryPlan plan_;
  std::vector<Life> lives_;
};

TEST(MemoryPlan, NoRandomProgramSharesWhatMayLiveAtOnce) {
  for (uint32_t seed = 0; seed < 400 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomProgram(seed).check();
  }
}

}  // namespace
}  // namespace dtg
