// The pool of run memory: what is given back is taken again, what is idle is bounded, and the budget is told of all of it.
#include "exec/memory_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "tensor/tensor.h"

namespace dtg {
namespace {

TEST(MemoryPool, WhatIsGivenBackIsTakenAgain) {
  const auto pool = make_ref<MemoryPool>(nullptr);
  char* const first = pool->take(1 << 20, "a test").take();
  const int64_t held = pool->held_bytes();
  EXPECT_GE(held, 1 << 20);
  EXPECT_EQ(pool->idle_bytes(), 0);
  pool->give_back(first);
  EXPECT_EQ(pool->idle_bytes(), held);
  char* const second = pool->take(1000, "a test").take();
  EXPECT_EQ(second, first) << "a larger block will do";
  EXPECT_EQ(pool->held_bytes(), held);
  pool->give_back(second);
}

TEST(MemoryPool, ABlockThatGrowsIsOneBlock) {
  const auto pool = make_ref<MemoryPool>(nullptr);
  for (int64_t bytes = 1 << 16; bytes <= 1 << 20; bytes += 1 << 14) pool->give_back(pool->take(bytes, "a test").take());
  EXPECT_LE(pool->held_bytes(), (1 << 20) + (1 << 14));
}

TEST(MemoryPool, IdleMemoryIsBounded) {
  constexpr int64_t kIdle = 1 << 20;
  MemoryBudget budget(int64_t{1} << 30);
  const auto pool = make_ref<MemoryPool>(&budget, kIdle);
  std::vector<char*> blocks;
  for (int i = 0; i < 20; ++i) blocks.push_back(pool->take(256 << 10, "a test").take());
  EXPECT_GE(budget.used(), 20 * (256 << 10));
  for (char* block : blocks) pool->give_back(block);
  EXPECT_LE(pool->idle_bytes(), kIdle);
  EXPECT_LE(pool->held_bytes(), kIdle);
  pool->close();
  EXPECT_EQ(pool->held_bytes(), 0);
  EXPECT_EQ(budget.used(), 0);
}

TEST(MemoryPool, TheBudgetIsAskedAndIdleMemoryGivenUpForIt) {
  MemoryBudget budget(1 << 20);
  const auto pool = make_ref<MemoryPool>(&budget);
  const auto refused = pool->take(2 << 20, "what a test asks for");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::resource_exhausted);
  EXPECT_NE(refused.status().message().find("what a test asks for"), std::string::npos) << refused.status().message();
  // Two that do not fit together: the idle one goes.
  char* const small = pool->take(600 << 10, "a test").take();
  pool->give_back(small);
  const auto large = pool->take(900 << 10, "a test");
  ASSERT_TRUE(large.ok()) << large.status().message();
  pool->give_back(large.value());
  {
    const auto buffer = pool->take_buffer(300 << 10);
    EXPECT_TRUE(buffer.ok());
  }
  EXPECT_LE(budget.used(), 1 << 20);
  pool->close();
  EXPECT_EQ(budget.used(), 0);
}

TEST(MemoryPool, ABufferComesBackWhenItsLastHolderLetsGo) {
  const auto pool = make_ref<MemoryPool>(nullptr);
  void* first = nullptr;
  {
    Ref<Buffer> buffer = pool->take_buffer(5000).take();
    first = buffer->data();
    const Ref<Buffer> another = buffer;
    buffer = nullptr;
    EXPECT_EQ(pool->idle_bytes(), 0);
  }
  EXPECT_GT(pool->idle_bytes(), 0);
  EXPECT_EQ(pool->take_buffer(5000).take()->data(), first);
}

TEST(MemoryPool, WhatSomebodyHoldsOutlivesTheClosing) {
  MemoryBudget budget(1 << 20);
  auto pool = make_ref<MemoryPool>(&budget);
  Tensor kept = Tensor::wrap(pool->take_buffer(4096).take(), 0, DType::f32, Shape::of({1024})).take();
  std::memset(kept.data(), 0, 4096);
  pool->close();
  pool = nullptr;
  kept.as<float>()[1023] = 3;
  EXPECT_EQ(kept.as<float>()[1023], 3);
}

TEST(MemoryPool, ManyThreadsNeverShareABlock) {
  const auto pool = make_ref<MemoryPool>(nullptr, 1 << 16);
  std::atomic<int> spoiled{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5000; ++i) {
        const int64_t bytes = 64 * (1 + (i * 37 + t * 11) % 200);
        char* const block = pool->take(bytes, "a test").take();
        std::memset(block, t, static_cast<size_t>(bytes));
        const Ref<Buffer> buffer = pool->take_buffer(bytes).take();
        std::memset(buffer->data(), t + 100, static_cast<size_t>(bytes));
        for (int64_t at = 0; at < bytes; at += 63) spoiled += block[at] != t || static_cast<char*>(buffer->data())[at] != t + 100;
        pool->give_back(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(spoiled.load(), 0);
  EXPECT_LE(pool->idle_bytes(), pool->held_bytes());
  pool->close();
  EXPECT_EQ(pool->held_bytes(), 0);
  EXPECT_EQ(pool->idle_bytes(), 0);
}

}  // namespace
}  // namespace dtg
