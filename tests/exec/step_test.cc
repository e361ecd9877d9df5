// Step: abort is sticky, keeps the first cause, and reaches exactly those who still wait.
#include "exec/step.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace dtg {
namespace {

struct Counting final : Step::Waiter {
  void aborted(const Status& status) override {
    ++calls;
    cause = status;
  }
  std::atomic<int> calls{0};
  Status cause;
};

TEST(Step, AbortKeepsTheFirstCauseAndWakesWhoWaits) {
  Step step(2, Deadline::never());
  Counting stays, leaves;
  EXPECT_TRUE(step.add(&stays));
  EXPECT_TRUE(step.add(&leaves));
  EXPECT_TRUE(step.remove(&leaves));
  EXPECT_TRUE(step.cause().ok());
  step.abort(out_of_range("first"));
  step.abort(internal_error("second"));
  EXPECT_TRUE(step.aborted());
  EXPECT_EQ(step.cause().code(), Code::out_of_range);
  EXPECT_EQ(stays.calls, 1);
  EXPECT_EQ(stays.cause.code(), Code::out_of_range);
  EXPECT_EQ(leaves.calls, 0);
  EXPECT_FALSE(step.remove(&stays));
  EXPECT_FALSE(step.add(&leaves));
}

TEST(Step, RestartIsANewLife) {
  Step step(2, Deadline::never());
  step.abort(cancelled("over"));
  step.restart(3, Deadline{5});
  EXPECT_FALSE(step.aborted());
  EXPECT_EQ(step.sequence(), 3u);
  EXPECT_EQ(step.deadline().at_ns, 5);
  Counting waiter;
  EXPECT_TRUE(step.add(&waiter));
  EXPECT_TRUE(step.remove(&waiter));
}

TEST(Step, EachWaiterIsEitherRemovedOrAborted) {
  for (int round = 0; round < 200; ++round) {
    Step step(1, Deadline::never());
    constexpr int kWaiters = 16;
    Counting waiters[kWaiters];
    for (auto& waiter : waiters) EXPECT_TRUE(step.add(&waiter));
    int removed = 0;
    std::thread other([&] { step.abort(aborted("race")); });
    for (auto& waiter : waiters) removed += step.remove(&waiter) ? 1 : 0;
    other.join();
    int called = 0;
    for (auto& waiter : waiters) called += waiter.calls;
    EXPECT_EQ(removed + called, kWaiters);
  }
}

}  // namespace
}  // namespace dtg
