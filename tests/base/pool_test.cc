// The pool as those see it who give it work: each task and each shard once, and an end that waits for whoever is still inside.
#include "base/pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace dtg {
namespace {

class Count final : public Pool::Task {
 public:
  void run() override { ran_.fetch_add(1); }
  int times() const { return ran_.load(); }

 private:
  std::atomic<int> ran_{0};
};

TEST(PoolTest, ATaskThatIsQueuedAtTheEndStillRuns) {
  std::vector<Count> tasks(100);
  {
    Pool pool({.threads = 2});
    for (Count& task : tasks) pool.submit(&task);
  }
  for (const Count& task : tasks) EXPECT_EQ(task.times(), 1);
}

// A thread from outside, a device's for instance, is told nothing of the pool's end: the task that it brings may be all that its owner
// waited for. The owner runs it himself here, so that the end comes as soon as can be.
TEST(PoolTest, WhoBringsTheLastTaskMayStillBeInside) {
  constexpr int kRounds = 20'000;
  struct Round {
    std::unique_ptr<Pool> pool = std::make_unique<Pool>(Pool::Options{.own_threads = false});
    Count task;
  };
  std::atomic<Round*> next{nullptr};
  std::atomic<bool> over{false};
  std::thread device([&] {
    while (!over.load()) {
      if (Round* const round = next.exchange(nullptr)) round->pool->submit(&round->task);
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    Round round;
    next.store(&round);
    while (!round.pool->run_queued()) {
    }
    round.pool.reset();
    ASSERT_EQ(round.task.times(), 1);
  }
  over.store(true);
  device.join();
}

TEST(PoolTest, EachShardRunsOnceWhoeverAsks) {
  Pool pool({.threads = 4});
  std::vector<std::thread> callers;
  for (int c = 0; c < 12; ++c) {  // more than there are slots for jobs
    callers.emplace_back([&pool] {
      for (int round = 0; round < 50; ++round) {
        std::vector<std::atomic<int>> ran(97);
        pool.parallel_for(97, [&](int64_t i) { ran[static_cast<size_t>(i)].fetch_add(1); });
        for (const std::atomic<int>& times : ran) ASSERT_EQ(times.load(), 1);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace dtg
