// The queue in front of a host's log: order, what is dropped, and an end that comes from inside a line.
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"

namespace dtg {
namespace {

// Keeps what it is told; waits in each line until the gate is open.
struct Gate : LogSink {
  void write(LogLevel, std::string_view, std::string_view message) override {
    std::unique_lock lock(mutex);
    lines.emplace_back(message);
    changed.notify_all();
    changed.wait(lock, [this] { return open; });
  }
  void wait_for_line() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return !lines.empty(); });
  }
  void set_open() {
    const std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> lines;
  bool open = false;
};

TEST(LogQueue, KeepsOrderAndSaysWhatItDropped) {
  Gate gate;
  {
    LogQueue queue(gate);
    queue.write(LogLevel::info, "test", "0");
    gate.wait_for_line();
    for (size_t i = 1; i <= LogQueue::kLines + 7; ++i) queue.write(LogLevel::info, "test", std::to_string(i));
    gate.set_open();
  }
  ASSERT_EQ(gate.lines.size(), LogQueue::kLines + 2);
  for (size_t i = 0; i <= LogQueue::kLines; ++i) EXPECT_EQ(gate.lines[i], std::to_string(i));
  EXPECT_EQ(gate.lines.back(), "7 lines were dropped: the log was too slow for them");
}

TEST(LogQueue, LinesOfManyThreadsAllArrive) {
  Gate gate;
  gate.open = true;
  {
    LogQueue queue(gate);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&queue] {
        for (int i = 0; i < 100; ++i) queue.write(LogLevel::info, "test", "line");
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(gate.lines.size(), 400u);
}

TEST(LogQueue, MayEndInsideALine) {
  struct Last : LogSink {
    void write(LogLevel, std::string_view, std::string_view) override {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return queue != nullptr; });
      queue = nullptr;
      ended = true;
      changed.notify_all();
    }
    std::mutex mutex;
    std::condition_variable changed;
    std::unique_ptr<LogQueue> queue;
    bool ended = false;
  };
  static Last& last = *new Last;  // its thread is the last to use it
  auto queue = std::make_unique<LogQueue>(last);
  queue->write(LogLevel::info, "test", "the last");
  std::unique_lock lock(last.mutex);
  last.queue = std::move(queue);
  last.changed.notify_all();
  last.changed.wait(lock, [&] { return last.ended; });
}

}  // namespace
}  // namespace dtg
