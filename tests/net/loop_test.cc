// The loop outlives what it calls, and says so when it cannot begin.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <new>

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
  EXPECT_TRUE(loop->call([] { throw std::bad_alloc(); }));
  EXPECT_EQ(ran, 20);
  EXPECT_EQ(loop->mishaps(), 21u);
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

}  // namespace
}  // namespace dtg
