// The ledger of a task: what it knows, what it forgets, and that it never takes the one for the other.
#include "cluster/ledger.h"

#include <gtest/gtest.h>

namespace dtg {
namespace {

WriteId again(uint64_t writer, uint64_t sequence) { return {writer, sequence, true}; }

// It is certain that it was not committed.
bool was_not(Ledger& ledger, const WriteId& write, uint32_t phase) {
  const auto had = ledger.has(write, phase);
  return had.ok() && !had.value();
}

TEST(LedgerOfATask, KnowsAWriteByItsPhase) {
  Ledger ledger;
  ledger.enter({7, 1, false}, 0);
  EXPECT_TRUE(ledger.has(again(7, 1), 0).value());
  EXPECT_TRUE(was_not(ledger, again(7, 1), 1));
  EXPECT_TRUE(was_not(ledger, again(7, 2), 0));
  EXPECT_TRUE(was_not(ledger, again(8, 1), 0));
  // A first attempt has nothing behind it.
  EXPECT_TRUE(was_not(ledger, {7, 1, false}, 0));
  EXPECT_EQ(ledger.repetitions(), 1u);
}

TEST(LedgerOfATask, AFailedCommitFailsAgain) {
  Ledger ledger;
  ledger.enter({7, 1, false}, 0, invalid_argument("it does not fit"));
  const auto had = ledger.has(again(7, 1), 0);
  EXPECT_EQ(had.status().code(), Code::invalid_argument);
  EXPECT_NE(had.status().message().find("it does not fit"), std::string::npos);
}

// A strand has one row, whatever the number of its units.
TEST(LedgerOfATask, CountsTheRoundsOfALoop) {
  Ledger ledger;
  constexpr uint32_t kRow = Ledger::row_of_strand(2), kOther = Ledger::row_of_strand(1);
  const int64_t rounds = 10 * int64_t{Ledger::kRowsPerWriter};
  for (int64_t round = 0; round < rounds; ++round) ledger.enter_round({7, 1, false}, kRow, round);
  EXPECT_TRUE(ledger.has_round(again(7, 1), kRow, 0).value());
  EXPECT_TRUE(ledger.has_round(again(7, 1), kRow, rounds - 1).value());
  EXPECT_FALSE(ledger.has_round(again(7, 1), kRow, rounds).value());
  EXPECT_FALSE(ledger.has_round(again(7, 1), kOther, 0).value());
  EXPECT_FALSE(ledger.has_round({7, 1, false}, kRow, 0).value());
  EXPECT_TRUE(was_not(ledger, again(7, 1), 2));
  EXPECT_EQ(ledger.repetitions(), 1u);
  // A round that failed in the middle fails again.
  ledger.enter({7, 1, false}, kRow, aborted("no"));
  EXPECT_EQ(ledger.has_round(again(7, 1), kRow, 0).status().code(), Code::aborted);
}

TEST(LedgerOfATask, WhatItForgotNobodyKnows) {
  Ledger ledger;
  const uint64_t count = Ledger::kRowsPerWriter + 10;
  for (uint64_t i = 0; i < count; ++i) ledger.enter({7, i, false}, 0);
  for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(ledger.has(again(7, i), 0).status().code(), Code::failed_precondition) << i;
  for (uint64_t i = 10; i < count; ++i) EXPECT_TRUE(ledger.has(again(7, i), 0).value()) << i;
  EXPECT_TRUE(was_not(ledger, again(7, count), 0));
}

// More writers than it knows, each with one row.
void crowd(Ledger& ledger, uint64_t first, uint64_t count = Ledger::kWriters + 1) {
  for (uint64_t writer = first; writer < first + count; ++writer) ledger.enter({writer, 1, false}, 0);
}

TEST(LedgerOfATask, AWriterThatItForgotIsNotNew) {
  Ledger ledger;
  EXPECT_TRUE(was_not(ledger, again(1, 1), 0));
  crowd(ledger, 0);
  EXPECT_EQ(ledger.has(again(0, 1), 0).status().code(), Code::failed_precondition);
  EXPECT_TRUE(ledger.made(0, 1).forgotten);
  EXPECT_TRUE(ledger.has(again(1, 1), 0).value());
  // Nor is he when he writes again: what he did before stays unknown, and what comes later is known.
  ledger.enter({0, 5, false}, 0);
  EXPECT_EQ(ledger.has(again(0, 1), 0).status().code(), Code::failed_precondition);
  EXPECT_TRUE(ledger.made(0, 1).forgotten);
  EXPECT_TRUE(ledger.has(again(0, 5), 0).value());
  EXPECT_TRUE(was_not(ledger, again(0, 6), 0));
  // And not when he connects and goes without a word.
  ledger.came(1);
  ledger.left(1);
  crowd(ledger, 10'000);
  ledger.came(1);
  EXPECT_EQ(ledger.has(again(1, 1), 0).status().code(), Code::failed_precondition);
  EXPECT_TRUE(was_not(ledger, again(1, 2), 0));
}

TEST(LedgerOfATask, AWriterThatIsNewWasNeverForgotten) {
  Ledger ledger;
  crowd(ledger, 0, 3 * Ledger::kWriters);
  const uint64_t fresh = 10'000;
  EXPECT_TRUE(was_not(ledger, again(fresh, 1), 0));
  EXPECT_FALSE(ledger.made(fresh, 1).forgotten);
  ledger.came(fresh);
  EXPECT_TRUE(was_not(ledger, again(fresh, 1), 0));
  EXPECT_FALSE(ledger.made(fresh, 1).forgotten);
}

// Of more than it knows by name, anybody may be one.
TEST(LedgerOfATask, WhoeverMayHaveBeenForgottenIsTold) {
  Ledger ledger;
  ledger.came(1'000'000);
  crowd(ledger, 0, Ledger::kWriters + Ledger::kForgotten);
  EXPECT_FALSE(ledger.forgotten().others);
  EXPECT_TRUE(was_not(ledger, again(2'000'000, 1), 0));
  crowd(ledger, 500'000, 1);
  EXPECT_TRUE(ledger.forgotten().others);
  EXPECT_EQ(ledger.has(again(2'000'000, 1), 0).status().code(), Code::failed_precondition);
  EXPECT_TRUE(ledger.made(2'000'000, 1).forgotten);
  ledger.enter({2'000'000, 9, false}, 0);
  EXPECT_EQ(ledger.has(again(2'000'000, 10), 0).status().code(), Code::failed_precondition) << "an earlier life may have made it";
  EXPECT_TRUE(ledger.has(again(2'000'000, 9), 0).value());
  EXPECT_TRUE(was_not(ledger, again(1'000'000, 1), 0)) << "it has been here since before";
}

TEST(LedgerOfATask, WhoIsConnectedKeepsHisRows) {
  Ledger ledger;
  ledger.came(7'000'000);
  ledger.enter({7'000'000, 1, false}, 0);
  crowd(ledger, 0, 3 * Ledger::kWriters);
  EXPECT_TRUE(ledger.has(again(7'000'000, 1), 0).value());
  EXPECT_TRUE(was_not(ledger, again(7'000'000, 2), 0));
  // Away he is one of the crowd, the one that was there last.
  ledger.left(7'000'000);
  crowd(ledger, 10'000, Ledger::kWriters - 1);
  EXPECT_TRUE(ledger.has(again(7'000'000, 1), 0).value());
  crowd(ledger, 20'000, 1);
  EXPECT_EQ(ledger.has(again(7'000'000, 1), 0).status().code(), Code::failed_precondition);
}

TEST(LedgerOfATask, NothingIsKeptOfWhoSaidGoodbye) {
  Ledger ledger;
  ledger.came(7);
  for (uint64_t i = 0; i < 100; ++i) ledger.enter({7, i, false}, 0);
  ledger.forget(7);
  EXPECT_EQ(ledger.counts().rows, 100u) << "it is connected";
  ledger.left(7);
  EXPECT_EQ(ledger.counts().writers, 1u);
  ledger.forget(7);
  EXPECT_EQ(ledger.counts().writers, 0u);
  EXPECT_EQ(ledger.counts().rows, 0u);
  // Nobody else is forgotten for it.
  for (uint64_t writer = 0; writer < 3 * Ledger::kWriters; ++writer) {
    ledger.came(writer);
    ledger.enter({writer, 1, false}, 0);
    ledger.left(writer);
    ledger.forget(writer);
  }
  EXPECT_TRUE(ledger.forgotten().writers.empty());
  // And of who came and wrote nothing there is nothing to keep.
  ledger.came(8);
  ledger.left(8);
  EXPECT_EQ(ledger.counts().writers, 0u);
}

TEST(LedgerOfATask, ThoseAwayShareRoom) {
  Ledger ledger;
  const uint64_t writers = Ledger::kRowsAway / Ledger::kRowsPerWriter + 6, count = Ledger::kRowsPerWriter;
  ledger.came(0);
  for (uint64_t writer = 0; writer < writers; ++writer) {
    for (uint64_t i = 0; i < count; ++i) ledger.enter({writer, i, false}, 0);
  }
  EXPECT_LE(ledger.counts().rows, Ledger::kRowsAway + count);
  EXPECT_TRUE(ledger.has(again(0, 0), 0).value()) << "it is connected";
  for (uint64_t writer = 1; writer < writers; ++writer) {
    EXPECT_TRUE(ledger.has(again(writer, count - 1), 0).value()) << writer;
    EXPECT_TRUE(ledger.has(again(writer, count / 2), 0).value()) << writer;
    const auto oldest = ledger.has(again(writer, 0), 0);
    EXPECT_TRUE(oldest.ok() ? oldest.value() : oldest.status().code() == Code::failed_precondition) << writer;
  }
  ledger.left(0);
  EXPECT_LE(ledger.counts().rows, Ledger::kRowsAway);
}

// An attempt may come long after those that were made later.
TEST(LedgerOfATask, TakesNumbersInAnyOrder) {
  Ledger ledger;
  for (uint64_t i = 1000; i-- > 0;) ledger.enter({7, i * 7 % 1000, false}, static_cast<uint32_t>(i % 3));
  for (uint64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(ledger.made(7, i * 7 % 1000).units, 1u);
    EXPECT_TRUE(ledger.has(again(7, i * 7 % 1000), static_cast<uint32_t>(i % 3)).value());
    EXPECT_TRUE(was_not(ledger, again(7, i * 7 % 1000), static_cast<uint32_t>((i + 1) % 3)));
  }
}

TEST(LedgerOfATask, ComesBackAsItWas) {
  Ledger ledger, restored;
  for (uint64_t i = 0; i < Ledger::kRowsPerWriter + 3; ++i) ledger.enter({7, i, false}, i % 2, i % 5 ? Status() : aborted("no"));
  ledger.enter({9, 4, false}, 3);
  ledger.came(7);
  for (const Ledger::Writer& writer : ledger.list()) restored.restore(writer);
  for (uint64_t i = 0; i < Ledger::kRowsPerWriter + 5; ++i) {
    for (uint32_t phase : {0u, 1u}) {
      const auto before = ledger.has(again(7, i), phase), after = restored.has(again(7, i), phase);
      ASSERT_EQ(before.status().code(), after.status().code()) << i;
      if (before.ok()) {
        ASSERT_EQ(before.value(), after.value()) << i;
      }
    }
  }
  EXPECT_TRUE(restored.has(again(9, 4), 3).value());
}

TEST(LedgerOfATask, TellsWhatWasMadeOfARun) {
  Ledger ledger;
  EXPECT_EQ(ledger.made(7, 1).units, 0u);
  EXPECT_FALSE(ledger.made(7, 1).forgotten);
  ledger.enter({7, 1, false}, 0);
  ledger.enter({7, 1, false}, 1, aborted("cut"));
  ledger.enter({7, 2, false}, 0);
  ledger.enter_round({7, 2, false}, 3, 4);
  EXPECT_EQ(ledger.made(7, 1).units, 2u);
  EXPECT_EQ(ledger.made(7, 1).failure.code(), Code::aborted);
  EXPECT_EQ(ledger.made(7, 2).units, 2u);
  EXPECT_EQ(ledger.made(8, 1).units, 0u) << "another session's";
  for (uint64_t run = 3; run < 3 + Ledger::kRowsPerWriter; ++run) ledger.enter({7, run, false}, 0);
  EXPECT_TRUE(ledger.made(7, 1).forgotten);
  EXPECT_FALSE(ledger.made(7, 1 << 20).forgotten);
}

}  // namespace
}  // namespace dtg
