// SpinLock: nobody is inside at the same time, and nobody sleeps for ever, also when whoever holds it loses his CPU.
#include "base/spin_lock.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

namespace dtg {
namespace {

TEST(SpinLock, LetsOneInAtATime) {
  SpinLock lock;
  int64_t count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20'000; ++i) {
        const std::lock_guard guard(lock);
        ++count;
        if (t == 0 && i % 100 == 0) std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 160'000);
}

TEST(SpinLock, WakesWhoSleeps) {
  SpinLock lock;
  for (int round = 0; round < 50; ++round) {
    lock.lock();
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) threads.emplace_back([&] { const std::lock_guard guard(lock); });
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // long past their polling
    lock.unlock();
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
}

}  // namespace
}  // namespace dtg
