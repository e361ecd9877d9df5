// Interrupts: shards that have not begun are left out once one is due, wherever they run, and nobody else notices. Cancellations: who
// listens hears of it once, and not after he has left.
#include "base/interrupt.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/cancellation.h"
#include "base/pool.h"

namespace dtg {
namespace {

class After final : public Interrupt {
 public:
  bool is_due() override { return due.load(); }
  std::atomic<bool> due{false};
};

TEST(Interrupt, LeavesOutWhatHasNotBegun) {
  for (const int threads : {1, 2, 4}) {
    Pool pool({.threads = threads});
    After after;
    std::atomic<int> begun{0};
    {
      const Interrupt::Scope scope(&after);
      const auto shard = [&](int64_t) {
        EXPECT_EQ(Interrupt::present(), &after) << "it is up where a shard runs";
        const int number = ++begun;
        if (number == 5) after.due = true;
        while (number > 5 && !after.due) std::this_thread::yield();
      };
      EXPECT_THROW(pool.parallel_for(10'000, shard), Interrupted);
      // Those that had begun when it became due are no more than there are threads.
      EXPECT_GE(begun, 5);
      EXPECT_LE(begun, 5 + threads);
      EXPECT_THROW(pool.parallel_for(10, shard), Interrupted) << "it stays due";
      // One shard alone begins; it looks by itself.
      begun = 0;
      pool.parallel_for(1, shard);
      EXPECT_EQ(begun, 1);
    }
    EXPECT_EQ(Interrupt::present(), nullptr);
    begun = 0;
    pool.parallel_for(1000, [&](int64_t) {
      EXPECT_EQ(Interrupt::present(), nullptr) << "of a job before";
      ++begun;
    });
    EXPECT_EQ(begun, 1000) << "nobody else is cut";
  }
}

TEST(Interrupt, IsSeenInTheMidstOfAShardAndInShardsOfShards) {
  Pool pool({.threads = 3});
  After after;
  const Interrupt::Scope scope(&after);
  std::atomic<int64_t> steps{0};
  const auto endless = [&](int64_t) {
    Lookout lookout;
    for (;;) {
      lookout.after(1000);
      if (++steps == 5000) after.due = true;
    }
  };
  EXPECT_THROW(pool.parallel_for(3, endless), Interrupted);
  after.due = false;
  steps = 0;
  EXPECT_THROW(pool.parallel_for(2, [&](int64_t) { pool.parallel_for(2, endless); }), Interrupted);
  EXPECT_THROW(look_between(0, INT64_MAX, 1'000'000, [](int64_t) {}), Interrupted);
  const Interrupt::Scope none(nullptr);
  look_between(0, 100, 1'000'000, [](int64_t) {});
  Interrupt::look();
}

TEST(Interrupt, LackOfMemoryIsToldWhereNothingIsDue) {
  Pool pool({.threads = 2});
  After after;
  const Interrupt::Scope scope(&after);
  EXPECT_THROW(pool.parallel_for(8, [](int64_t) { throw std::bad_alloc(); }), std::bad_alloc);
}

struct Counting final : Cancellation::Listener {
  void cancelled() override { ++heard; }
  std::atomic<int> heard{0};
};

TEST(Cancellation, TellsThoseOnTheListOnce) {
  const auto cancellation = make_ref<Cancellation>();
  Counting stays, leaves, late;
  EXPECT_TRUE(cancellation->add(stays));
  EXPECT_TRUE(cancellation->add(leaves));
  cancellation->remove(leaves);
  cancellation->remove(leaves);
  EXPECT_TRUE(cancellation->status().ok());
  cancellation->cancel();
  cancellation->cancel();
  EXPECT_EQ(cancellation->status().code(), Code::cancelled);
  EXPECT_FALSE(cancellation->add(late));
  EXPECT_EQ(stays.heard, 1);
  EXPECT_EQ(leaves.heard, 0);
  EXPECT_EQ(late.heard, 0);
  cancellation->remove(stays);
  cancellation->remove(late);
}

// A listener that has left may be gone at once.
TEST(Cancellation, IsNotHeardAfterLeaving) {
  for (int round = 0; round < 2000; ++round) {
    const auto cancellation = make_ref<Cancellation>();
    std::thread other([&] { cancellation->cancel(); });
    {
      Counting listener;
      if (cancellation->add(listener)) cancellation->remove(listener);
      const int heard = listener.heard;
      EXPECT_LE(heard, 1);
    }
    other.join();
  }
}

TEST(Cancellation, EndsAWait) {
  const auto cancellation = make_ref<Cancellation>();
  Condition condition;
  bool there = true;
  const auto holds = [&] { return there; };
  EXPECT_TRUE(wait_for(condition, system_clock(), Deadline::never(), cancellation.get(), holds));
  there = false;
  std::thread other([&] { cancellation->cancel(); });
  EXPECT_FALSE(wait_for(condition, system_clock(), Deadline::never(), cancellation.get(), holds));
  other.join();
  EXPECT_FALSE(wait_for(condition, system_clock(), Deadline::never(), cancellation.get(), holds));
  there = true;
  EXPECT_TRUE(wait_for(condition, system_clock(), Deadline::never(), cancellation.get(), holds)) << "what holds is told first";
  EXPECT_TRUE(wait_for(condition, system_clock(), Deadline::never(), nullptr, holds));
}

}  // namespace
}  // namespace dtg
