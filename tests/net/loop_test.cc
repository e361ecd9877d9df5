// The loop outlives what it calls, and says so when it cannot begin; and who waits for it may be it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <new>
#include <random>
#include <thread>
#include <vector>

#include "base/spin_lock.h"

#include "net/call_table.h"
#include "net/uv_loop.h"

namespace dtg {
namespace {

// While it lives no thread can be made: their stacks would not fit into the address space.
class NoThreads {
 public:
  NoThreads() {
    pthread_attr_init(&before_);
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, size_t{1} << 48);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_;
};

size_t open_descriptors() {
  size_t count = 0;
  for (int i = 0; i < 1000; ++i) count += ::fcntl(i, F_GETFD) >= 0;
  return count;
}

TEST(UvLoop, WithoutAThreadItSaysSo) {
  (void)UvLoop::start(system_clock()).take();  // libuv keeps a pipe after the first
  const size_t before = open_descriptors();
  sigset_t signals;
  {
    const NoThreads none;
    const Status status = UvLoop::start(system_clock()).status();
    EXPECT_EQ(status.code(), Code::resource_exhausted) << status.message();
    pthread_sigmask(SIG_SETMASK, nullptr, &signals);
    EXPECT_FALSE(sigismember(&signals, SIGTERM));
  }
  EXPECT_EQ(open_descriptors(), before);
  auto loop = UvLoop::start(system_clock());
  ASSERT_TRUE(loop.ok()) << loop.status().message();
  EXPECT_TRUE(loop.value()->call([] {}));
}

TEST(UvLoop, PostedFunctionsThatThrow) {
  auto loop = UvLoop::start(system_clock()).take();
  std::atomic<int> ran{0};
  for (int i = 0; i < 10; ++i) {
    loop->post([&] {
      ++ran;
      throw std::bad_alloc();
    });
    // In the turn of this thread, perhaps.
    loop->post_now([&] {
      ++ran;
      throw 7;
    });
  }
  EXPECT_TRUE(loop->call([] { throw 7; }));
  // Who waits for what there was no memory for hears of it.
  EXPECT_THROW(loop->call([] { throw std::bad_alloc(); }), std::bad_alloc);
  EXPECT_EQ(ran, 20);
  EXPECT_EQ(loop->mishaps(), 22u);
}

// What another thread posts may be all that the loop's owner waited for; he lets the loop go while that thread is on its way out.
TEST(UvLoop, WhoPostsLastMayStillBeInside) {
  std::atomic<UvLoop*> next{nullptr};
  std::atomic<bool> over{false}, told{false};
  std::thread other([&] {
    for (bool now = false; !over.load();) {
      UvLoop* const loop = next.exchange(nullptr);
      if (!loop) continue;
      now = !now;
      if (now) loop->post_now([&] { told = true; });
      else loop->post([&] { told = true; });
    }
  });
  for (int i = 0; i < 500; ++i) {
    auto loop = UvLoop::start(system_clock()).take();
    told = false;
    next.store(loop.get());
    while (!told.load()) {
    }
  }
  over = true;
  other.join();
}

TEST(UvLoop, AlarmsThatThrow) {
  auto loop = UvLoop::start(system_clock()).take();
  std::atomic<bool> rang{false};
  AlarmCall bad([] { throw std::bad_alloc(); }), good([&] {
    rang = true;
    rang.notify_all();
  });
  loop->call([&] {
    loop->set(bad, loop->clock().monotonic_ns());
    loop->set(good, loop->clock().monotonic_ns() + 1'000'000);
  });
  rang.wait(false);
  EXPECT_EQ(loop->mishaps(), 1u);
}

TEST(UvLoop, SocketEventsThatThrow) {
  struct Bad final : UvLoop::Watch {
    void ready(bool, bool) override {
      uint64_t count;
      (void)!::read(descriptor, &count, sizeof count);
      events.fetch_add(1);
      events.notify_all();
      throw std::bad_alloc();
    }
    int descriptor = ::eventfd(0, EFD_CLOEXEC);
    std::atomic<int> events{0};
  } bad;
  auto loop = UvLoop::start(system_clock()).take();
  UvLoop::Poll* poll = nullptr;
  loop->call([&] {
    poll = loop->watch(bad.descriptor, &bad).take();
    loop->want(poll, true, false);
  });
  for (int i = 0; i < 3; ++i) {
    const uint64_t one = 1;
    ASSERT_EQ(::write(bad.descriptor, &one, sizeof one), 8);
    bad.events.wait(i);
  }
  loop->call([&] { loop->unwatch(poll); });
  EXPECT_EQ(loop->mishaps(), 3u);
  ::close(bad.descriptor);
}

// Behind the call that left them, before anything that comes later, on the loop.
TEST(UvLoop, WhatIsDeferredComesBehindTheCall) {
  auto loop = UvLoop::start(system_clock()).take();
  Pool pool({.threads = 1});
  std::vector<int> order;
  struct Task final : Pool::Task {
    void run() override {
      order->push_back(number);
      if (next) loop->defer(next, *pool);
      EXPECT_TRUE(loop->is_current());
    }
    std::vector<int>* order = nullptr;
    UvLoop* loop = nullptr;
    Pool* pool = nullptr;
    Task* next = nullptr;
    int number = 0;
  } first, second, third;
  Task* const tasks[] = {&first, &second, &third};
  for (int i = 0; i < 3; ++i) {
    tasks[i]->order = &order;
    tasks[i]->loop = loop.get();
    tasks[i]->pool = &pool;
    tasks[i]->number = i + 1;
  }
  first.next = &third;
  loop->call([&] {
    loop->post([&] { order.push_back(4); });
    loop->defer(&first, pool);
    loop->defer(&second, pool);
    order.push_back(0);
  });
  loop->call([] {});
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

// What takes long there keeps the loop from its sockets: the pool has the rest, and what comes for a while after one that took long.
TEST(UvLoop, WhatTakesLongIsThePools) {
  Pool pool({.threads = 2});
  auto loop = UvLoop::start(system_clock()).take();
  struct Task final : Pool::Task {
    void run() override {
      was_on_loop = loop->is_current();
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
      done = true;
      done.notify_all();
    }
    UvLoop* loop = nullptr;
    int milliseconds = 0;
    bool was_on_loop = false;
    std::atomic<bool> done{false};
  } slow, behind, later;
  for (Task* task : {&slow, &behind, &later}) task->loop = loop.get();
  slow.milliseconds = 5;
  loop->call([&] {
    loop->defer(&slow, pool);
    loop->defer(&behind, pool);
  });
  slow.done.wait(false);
  behind.done.wait(false);
  loop->call([&] { loop->defer(&later, pool); });
  later.done.wait(false);
  EXPECT_TRUE(slow.was_on_loop);
  EXPECT_FALSE(behind.was_on_loop);
  EXPECT_FALSE(later.was_on_loop);
}

// In the order in which it was posted, wherever that was; and who posts without end keeps nobody out.
TEST(UvLoop, WhatTheLoopPostsItself) {
  auto loop = UvLoop::start(system_clock()).take();
  std::vector<int> order;
  loop->call([&] {
    for (int i = 0; i < 3; ++i) {
      loop->post([&, i] {
        order.push_back(i);
        loop->post([&, i] { order.push_back(10 + i); });
        loop->post_now([&, i] { order.push_back(20 + i); });
      });
    }
  });
  for (int i = 0; i < 2; ++i) loop->call([] {});  // the first may come before what those three post
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 10, 20, 11, 21, 12, 22}));
  std::atomic<bool> stop{false};
  std::function<void()> again = [&] {
    if (!stop) loop->post(again);
  };
  loop->post(again);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(loop->call([] {}));
  stop = true;
  loop->call([] {});
}

TEST(CallTable, WhoThrowsOverAnAnswerIsToldSo) {
  auto loop = UvLoop::start(system_clock()).take();
  loop->call([&] {
    CallTable calls(*loop);
    std::vector<Code> told;
    const auto done = [&](const Status& status, std::string_view) {
      if (status.ok()) throw std::bad_alloc();
      told.push_back(status.code());
      throw std::bad_alloc();
    };
    const uint32_t first = calls.start("ask", Deadline::never(), done);
    for (int i = 0; i < 2; ++i) calls.start("ask", Deadline::never(), done);
    EXPECT_TRUE(calls.finish(first, "answer"));
    calls.fail_all(unavailable("gone"));
    EXPECT_EQ(told, (std::vector{Code::resource_exhausted, Code::unavailable, Code::unavailable}));
  });
  EXPECT_EQ(loop->mishaps(), 0u);
}

// ---- who waits may be the loop -------------------------------------------------------------------------------------------------

// A loop on which polling is always worth while, or never.
std::unique_ptr<UvLoop> loop_where(FreeCpu::Answer answer) {
  auto loop = UvLoop::start(system_clock()).take();
  loop->free_cpu().pretend(answer);
  return loop;
}

// What is posted, what becomes readable and what is due happens on the thread that waits, in a turn of the loop.
TEST(Polling, WhoWaitsIsTheLoop) {
  const auto loop = loop_where(FreeCpu::Answer::always);
  int here = 0, rounds = 0;
  // The loop's own thread may have the turn just then, so not each time; on a busy machine seldom.
  for (; rounds < 20'000 && here < 3; ++rounds) {
    std::atomic<bool> done{false};
    bool mine = false;
    std::thread poster([&, waiter = std::this_thread::get_id()] {
      loop->post([&, waiter] {
        EXPECT_TRUE(loop->is_current());
        mine = std::this_thread::get_id() == waiter;
        done.store(true, std::memory_order_release);
      });
    });
    const auto is_done = [&] { return done.load(std::memory_order_acquire); };
    while (!loop->poll_until(is_done)) std::this_thread::yield();
    poster.join();
    here += mine;
  }
  EXPECT_EQ(here, 3) << "of " << rounds;
}

TEST(Polling, NotWithoutACpu) {
  const auto loop = loop_where(FreeCpu::Answer::never);
  std::atomic<bool> done{false};
  const auto is_done = [&] { return done.load(); };
  EXPECT_FALSE(loop->poll_until(is_done));
  loop->post([&] { done = true; });
  while (!is_done()) std::this_thread::yield();
  EXPECT_TRUE(loop->poll_until(is_done));
}

// However the turns of both threads fall: what is posted and what is due while nobody polls any more is done by the loop's own thread,
// soon.
TEST(Polling, TheLoopComesBack) {
  const auto loop = loop_where(FreeCpu::Answer::always);
  const Clock& clock = system_clock();
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    std::atomic<bool> first{false}, posted{false}, rung{false};
    AlarmCall alarm([&] { rung = true; });
    loop->post([&] { first = true; });
    const auto is_first = [&] { return first.load(); };
    while (!loop->poll_until(is_first)) std::this_thread::yield();
    const int64_t pause = static_cast<int64_t>(random() % 120) * 1000, until = clock.monotonic_ns() + pause;
    while (clock.monotonic_ns() < until) spin_pause();
    loop->post([&] {
      posted = true;
      loop->set(alarm, clock.monotonic_ns() + 2'000'000);
    });
    const int64_t patience = clock.monotonic_ns() + 5'000'000'000;
    while (!rung && clock.monotonic_ns() < patience) std::this_thread::sleep_for(std::chrono::microseconds(200));
    ASSERT_TRUE(posted) << i;
    ASSERT_TRUE(rung) << i;
    loop->call([&] { loop->cancel(alarm); });
  }
}

// Several wait at once: one is the loop, the others are told or look again.
TEST(Polling, ManyWait) {
  const auto loop = loop_where(FreeCpu::Answer::always);
  std::vector<std::thread> threads;
  std::atomic<int> ended{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        std::atomic<bool> done{false};
        loop->post_now([&] { done = true; });
        const auto is_done = [&] { return done.load(); };
        while (!loop->poll_until(is_done)) std::this_thread::yield();
      }
      ++ended;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended, 4);
}

// The end of the loop while its own thread stands aside.
TEST(Polling, EndsWhileAside) {
  for (int i = 0; i < 50; ++i) {
    const auto loop = loop_where(FreeCpu::Answer::always);
    std::atomic<bool> done{false};
    loop->post([&] { done = true; });
    const auto is_done = [&] { return done.load(); };
    while (!loop->poll_until(is_done)) std::this_thread::yield();
  }
}

TEST(FreeCpu, CountsThoseThatRun) {
  EXPECT_GE(running_threads(), 1) << "this one";
  FreeCpu cpu;
  const int64_t now = system_clock().monotonic_ns();
  const bool first = cpu.exists(now);
  EXPECT_EQ(cpu.exists(now + 1000), first) << "what was found holds for a while";
  cpu.pretend(FreeCpu::Answer::always);
  EXPECT_TRUE(cpu.exists(now));
  cpu.pretend(FreeCpu::Answer::never);
  EXPECT_FALSE(cpu.exists(now));
}

}  // namespace
}  // namespace dtg
