// Owner: a turn that was lent comes back when whoever took it has left, and nobody else is inside meanwhile.
#include "capi/owner.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace dtg::capi {
namespace {

TEST(OwnerTest, ALoanEndsWhenTheLastOtherHasLeft) {
  constexpr int kRounds = 20000, kOthers = 2;
  Owner owner;
  std::atomic<int> others_inside{0}, entered{0}, wrong{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> others;
  for (int i = 0; i < kOthers; ++i) {
    others.emplace_back([&, i] {
      for (int round = 0; !over.load(); ++round) {
        const Owner::Turn turn(owner, round % 3 == i ? Owner::Use::change : Owner::Use::read);
        if (!turn.inside()) continue;
        ++others_inside;
        if (++entered == 1) entered.notify_all();
        for (int pause = round % 64; pause > 0; --pause) std::atomic_signal_fence(std::memory_order_seq_cst);
        --others_inside;
      }
    });
  }
  entered.wait(0);
  for (int round = 0; round < kRounds; ++round) {
    const Owner::Turn turn(owner, Owner::Use::change);
    if (!turn.inside()) continue;
    if (others_inside != 0) ++wrong;
    { const Owner::Loan loan(owner); }
    if (others_inside != 0) ++wrong;
  }
  over = true;
  for (std::thread& other : others) other.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(entered, 0);
  EXPECT_TRUE(Owner::Turn(owner, Owner::Use::change).inside()) << "everybody has left";
}

TEST(OwnerTest, ALoanWaitsForWhoTookTheTurn) {
  for (const Owner::Use use : {Owner::Use::read, Owner::Use::change}) {
    Owner owner;
    std::atomic<bool> taken{false}, left{false};
    std::thread other;
    {
      const Owner::Turn turn(owner, Owner::Use::change);
      {
        const Owner::Loan loan(owner);
        other = std::thread([&] {
          const Owner::Turn theirs(owner, use);
          EXPECT_TRUE(theirs.inside());
          taken = true;
          taken.notify_all();
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          left = true;
        });
        taken.wait(false);
      }
      EXPECT_TRUE(left);
    }
    other.join();
  }
}

// Nor for one of them who still waits for another.
TEST(OwnerTest, NobodyIsRefusedForThoseWhoGlance) {
  constexpr int kGlances = 10000;
  Owner owner;
  std::atomic<int> glancing{2}, refused{0};
  std::vector<std::thread> others;
  for (int i = 0; i < 2; ++i) {
    others.emplace_back([&] {
      // Who changes the object does so for a moment, as they do; they may be refused for it.
      for (int round = 0; round < kGlances; ++round) {
        const Owner::Turn turn(owner, Owner::Use::glance);
        for (int pause = 2000; pause > 0; --pause) std::atomic_signal_fence(std::memory_order_seq_cst);
      }
      --glancing;
    });
  }
  while (glancing > 0) {
    for (const Owner::Use use : {Owner::Use::change, Owner::Use::read}) {
      if (!Owner::Turn(owner, use).inside()) ++refused;
    }
    std::this_thread::yield();
  }
  for (std::thread& other : others) other.join();
  EXPECT_EQ(refused, 0);
}

}  // namespace
}  // namespace dtg::capi
