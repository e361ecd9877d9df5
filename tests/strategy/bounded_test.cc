// Workers of bounded staleness, with gradients by hand: who may begin when, exactly.
#include "by_hand.h"

namespace dtg {
namespace {

TEST(BoundedReplicas, NobodyIsFurtherAheadThanTheStaleness) {
  ByHand s(SyncMode::ssp, 3, 0, 1);
  for (const Replicated& part : s.parts) s.world.run({}, {}, {part.local_init});
  // Worker 0 makes two steps: after the second it is two ahead, and waits. What it has computed is applied.
  s.train(0, 1, 0);
  ASSERT_TRUE(s.world.wait(0).ok());
  s.train(0, 1, 0);
  ASSERT_TRUE(s.applied(0, 2));
  EXPECT_FALSE(s.world.has_ended(0));
  s.expect_v(-2, 0);
  // One of the two others is not enough.
  s.train(1, 0, 1);
  ASSERT_TRUE(s.world.wait(1).ok());
  EXPECT_FALSE(s.world.has_ended(0));
  s.train(2, 0, 1);
  ASSERT_TRUE(s.world.wait(2).ok());
  ASSERT_TRUE(s.world.wait(0).ok());
  s.expect_v(-2, -2);
  EXPECT_EQ(s.world.integer(s.parts[0].global_step), 4);
  // Two at once after that: worker 1 is at 1, so 0 waits at 3 for both.
  const auto told = s.world.run(s.feeds(1, 0, 0), {s.parts[1].clock, s.parts[1].local_step, s.parts[1].next_step}, {s.parts[1].train});
  EXPECT_EQ(told[0].values<int64_t>()[0], 2);
  EXPECT_EQ(told[2].values<int64_t>()[0] - 1 - told[1].values<int64_t>()[0], 0);
}

TEST(BoundedReplicas, WhoLeavesIsNotWaitedForAndWhoComesBeginsWhereTheSlowestIs) {
  ByHand s(SyncMode::ssp, 2, 0, 0);
  s.world.run({}, {}, {s.parts[0].local_init});
  for (int i = 0; i < 3; ++i) {
    s.train(0, 1, 1);
    ASSERT_TRUE(s.world.wait(0).ok()) << "nobody else has come";
  }
  s.world.run({}, {}, {s.parts[1].local_init});
  s.train(0, 1, 1);
  ASSERT_TRUE(s.applied(0, 4));
  EXPECT_FALSE(s.world.has_ended(0));
  const auto told = s.world.run(s.feeds(1, 1, 1), {s.parts[1].clock}, {s.parts[1].train});
  EXPECT_EQ(told[0].values<int64_t>()[0], 4) << "it began at 3";
  ASSERT_TRUE(s.world.wait(0).ok());
  s.train(0, 1, 1);
  ASSERT_TRUE(s.applied(0, 5));
  EXPECT_FALSE(s.world.has_ended(0));
  s.world.run({}, {}, {s.parts[1].leave});
  ASSERT_TRUE(s.world.wait(0).ok());
  s.expect_v(-6, -6);
}

// A wait that is cut short: the step was applied, and the next one applies nothing before it may.
TEST(BoundedReplicas, AStepWhoseWaitWasCutShortIsMadeUpFor) {
  ByHand s(SyncMode::ssp, 2, 0, 0);
  for (const Replicated& part : s.parts) s.world.run({}, {}, {part.local_init});
  const Ref<AsyncRun> first = s.world.start(s.feeds(0, 1, 0), s.parts[0].train, 0);
  ASSERT_TRUE(s.applied(0, 1));
  first->cancel();
  EXPECT_EQ(s.world.wait(0).code(), Code::cancelled);
  s.train(0, 1, 0);
  EXPECT_FALSE(s.applied(0, 2, 50));
  s.expect_v(-1, 0);
  s.train(1, 0, 1);
  ASSERT_TRUE(s.applied(0, 2));
  s.expect_v(-2, -1);
  s.train(1, 0, 1);
  ASSERT_TRUE(s.world.wait(0).ok());
  ASSERT_TRUE(s.world.wait(1).ok());
}

TEST(BoundedReplicas, FirstComesLocalInit) {
  ByHand s(SyncMode::ssp, 1, 0, 0);
  s.train(0, 1, 1);
  const Status status = s.world.wait(0);
  EXPECT_EQ(status.code(), Code::failed_precondition);
  EXPECT_NE(status.message().find("local_init"), std::string::npos) << status.message();
  s.expect_v(0, 0);
}

}  // namespace
}  // namespace dtg
