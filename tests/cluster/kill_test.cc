// Tasks that die or stop at any moment: every call of those who are left returns within its deadline, says what is wrong, and
// the next try works. Moments come from a seed that is printed.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "process.h"
#include "scratch.h"
#include "seconds.h"
#include "steps.h"

namespace dtg {
namespace {

constexpr int64_t kSlackNs = 3'000 * kMillisecond;  // beyond a deadline, on a machine that is busy

class Kill : public ::testing::Test {
 protected:
  Kill() : seed_(std::random_device{}()), random_(seed_) {
    ::chmod(scratch_.path().c_str(), 0700);
    RecordProperty("seed", std::to_string(seed_));
    std::printf("seed %u\n", seed_);
    runtime_ = Runtime::create({.compute_threads = 2}).take();
    steps_ = std::make_unique<Steps>(*runtime_);
    EXPECT_TRUE(steps_->status.ok()) << steps_->status.message();
  }
  ~Kill() override { session_ = nullptr; }

  std::string at(const char* name) const { return "unix:" + (scratch_ / name); }
  Status connect() {
    session_ = nullptr;
    Session::Options options;
    options.connect_timeout_ns = 10'000 * kMillisecond;
    DTG_ASSIGN(session_, Session::connect(runtime_, at("ps"), steps_->graph, options));
    return {};
  }
  Status assign() { return steps_->run(*session_, steps_->assign, 10'000 * kMillisecond); }
  Status step(int64_t timeout_ns) { return steps_->run(*session_, steps_->step, timeout_ns); }
  // Waits until the server's account of itself says so.
  testing::AssertionResult state(const std::function<bool(const std::string&)>& good) {
    std::string text;
    for (const int64_t until = now() + 10'000 * kMillisecond; now() < until; pause()) {
      auto answer = session_->inspect_cluster(5'000 * kMillisecond);
      if (!answer.ok()) return testing::AssertionFailure() << answer.status().message();
      text = answer.take();
      if (good(text)) return testing::AssertionSuccess();
    }
    return testing::AssertionFailure() << text;
  }
  static size_t sessions(const std::string& text) {
    size_t count = 0;
    for (size_t at = 0; (at = text.find("\"peer\"", at)) != text.npos; ++at) ++count;
    return count;
  }
  void pause() { std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution<int>(0, 20'000)(random_))); }
  static int64_t now() { return system_clock().monotonic_ns(); }

  const unsigned seed_;
  std::mt19937 random_;
  Scratch scratch_;
  Ref<Runtime> runtime_;
  std::unique_ptr<Steps> steps_;
  Ref<Session> session_;
};

// Runs steps until one fails; how it failed, and in time.
#define EXPECT_ENDS_IN_TIME(timeout_ns, status)                                                        \
  Status status;                                                                                       \
  for (int64_t began = now(); status.ok(); began = now()) {                                            \
    status = step(timeout_ns);                                                                         \
    EXPECT_LT(now() - began, (timeout_ns) + kSlackNs) << "seed " << seed_ << ": " << status.message(); \
  }

// How often one of two is killed, some of what `make faults` does, which says how often: each kill takes the second for which one that
// keeps no state is looked for.
int kills_of_an_end() {
  const char* const told = std::getenv("DTG_KILLS");
  return told ? std::max(std::atoi(told) / 2, 1) : 12;
}

TEST_F(Kill, TheParameterServerDiesAtAnyMoment) {
  for (int i = 0, kills = kills_of_an_end(); i < kills; ++i) {
    ServerProcess ps("ps=" + at("ps"), "ps", 0);
    const Status connected = connect();
    ASSERT_TRUE(connected.ok()) << "seed " << seed_ << ": " << connected.message();
    ASSERT_TRUE(assign().ok());
    std::thread killer([&] {
      pause();
      ps.signal(SIGKILL);
    });
    EXPECT_ENDS_IN_TIME(5'000 * kMillisecond, status);
    killer.join();
    EXPECT_TRUE(status.code() == Code::unavailable || status.code() == Code::aborted) << "seed " << seed_ << ": " << status.message();
    EXPECT_NE(status.message().find("ps"), std::string::npos) << status.message();
  }
}

// What a task that keeps no state held is gone, so nobody waits long for it: neither the run that lost it nor those that find it gone. One
// that comes back meanwhile is told of.
TEST_F(Kill, AServerWithoutStateIsNotWaitedForLong) {
  auto ps = std::make_unique<ServerProcess>("ps=" + at("ps"), "ps", 0);
  ASSERT_TRUE(connect().ok());
  ASSERT_TRUE(assign().ok());
  ps = nullptr;
  for (int i = 0; i < 2; ++i) {
    const int64_t began = now();
    const Status status = step(60'000 * kMillisecond);
    EXPECT_EQ(status.code(), Code::unavailable) << status.message();
    EXPECT_LT(now() - began, 15'000 * kMillisecond) << "a second, on a machine that is not busy";
  }
  ps = std::make_unique<ServerProcess>("ps=" + at("ps"), "ps", 0);
  // It may need longer to begin than a step looks for it.
  Status told = unavailable("nobody asked yet");
  for (const int64_t until = now() + 60'000 * kMillisecond; told.code() == Code::unavailable && now() < until;)
    told = step(60'000 * kMillisecond);
  EXPECT_EQ(told.code(), Code::aborted) << told.message();
  EXPECT_TRUE(assign().ok());
  EXPECT_TRUE(step(60'000 * kMillisecond).ok());
}

TEST_F(Kill, TheParameterServerStopsAtAnyMoment) {
  for (int i = 0; i < 10; ++i) {
    ServerProcess ps("ps=" + at("ps"), "ps", 0);
    ASSERT_TRUE(connect().ok());
    ASSERT_TRUE(assign().ok());
    std::thread stopper([&] {
      pause();
      ps.stop();
    });
    EXPECT_ENDS_IN_TIME(300 * kMillisecond, status);
    stopper.join();
    EXPECT_EQ(status.code(), Code::deadline_exceeded) << "seed " << seed_ << ": " << status.message();
    EXPECT_NE(status.message().find("/job:ps/replica:0/task:0"), std::string::npos) << "seed " << seed_ << ": " << status.message();
    // It goes on where it was: what is late for a step that ended is forgotten, and the next step is right.
    ps.signal(SIGCONT);
    const Status next = step(10'000 * kMillisecond);
    EXPECT_TRUE(next.ok()) << "seed " << seed_ << ": " << next.message();
  }
}

// An error that a program branches on has who did not answer, and what it was at.
TEST_F(Kill, WhoIsSilentIsAPartOfTheError) {
  ServerProcess ps("ps=" + at("ps"), "ps", 0);
  ASSERT_TRUE(connect().ok());
  ASSERT_TRUE(assign().ok());
  ps.stop();
  const auto names = [](const Status& status, const char* phase) {
    EXPECT_EQ(status.code(), Code::deadline_exceeded) << status.message();
    EXPECT_EQ(status.origin().peer.find("/job:ps/replica:0/task:0"), 0u) << status.origin().peer;
    EXPECT_EQ(status.origin().phase, phase) << status.message();
  };
  names(steps_->run(*session_, steps_->assign, 100 * kMillisecond), "run");
  names(step(100 * kMillisecond), "prepare");  // its plan is not made yet
  ps.signal(SIGCONT);
}

// Other workers come and go; those who stay notice nothing, the value stays right, and the server forgets the dead.
TEST_F(Kill, WorkersDieAndStopAtAnyMoment) {
  ServerProcess ps("ps=" + at("ps"), "ps", 0);
  ASSERT_TRUE(connect().ok());
  ASSERT_TRUE(assign().ok());
  for (int i = 0; i < 35; ++i) {
    WorkerProcess worker(at("ps"));
    ASSERT_TRUE(state([](const std::string& text) { return sessions(text) == 2; })) << "seed " << seed_;
    pause();
    if (i % 7 < 5) worker.signal(SIGKILL);
    else worker.stop();
    for (int k = 0; k < 3; ++k) {
      const int64_t began = now();
      const Status status = step(2'000 * kMillisecond);
      EXPECT_TRUE(status.ok()) << "seed " << seed_ << ": " << status.message();
      EXPECT_LT(now() - began, 2'000 * kMillisecond + kSlackNs);
    }
    worker.kill();
    ASSERT_TRUE(state([](const std::string& text) { return sessions(text) == 1; })) << "seed " << seed_;
  }
  std::vector<Tensor> out(1);
  const Value fetch[] = {steps_->value};
  ASSERT_TRUE(session_->run({{}, {}, fetch, {}, 10'000 * kMillisecond}, out).ok());
  for (int64_t i = 0; i < Steps::kCount; ++i) ASSERT_EQ(out[0].as<float>()[i], 1.0f) << i;
  session_ = nullptr;
  EXPECT_EQ(ps.end(), 0);
}

// Memory that a process has in common with others: how many such mappings it has, and descriptors of them.
struct Common {
  size_t mapped = 0, open = 0;
  explicit Common(const OtherProcess& process) : Common(process.about("")) {}
  // Of the process about which the kernel tells there.
  explicit Common(const std::string& about) {
    std::ifstream maps(about + "maps");
    for (std::string line; std::getline(maps, line);) mapped += line.find("memfd:dtg") != line.npos;
    std::error_code failed;
    for (const auto& each : std::filesystem::directory_iterator(about + "fd", failed))
      open += std::filesystem::read_symlink(each.path(), failed).string().find("memfd:dtg") != std::string::npos;
  }
};

// Whoever dies in the middle of reading or writing shared memory takes it along: nothing of it stays with the other end.
TEST_F(Kill, SharedMemoryGoesWithWhoeverHadIt) {
  ServerProcess ps("ps=" + at("ps"), "ps", 0);
  ASSERT_TRUE(connect().ok());
  ASSERT_TRUE(assign().ok());
  const auto shares = [](const std::string& text, size_t sessions) {
    size_t count = 0;
    for (size_t at = 0; (at = text.find("\"channel\":\"shared memory\"", at)) != text.npos; ++at) ++count;
    return count == sessions;
  };
  const auto has_shared = [](const std::string& text) { return text.find("\"shared_bytes\":0") == text.npos; };
  for (int i = 0, kills = kills_of_an_end(); i < kills; ++i) {
    WorkerProcess worker(at("ps"));
    // What the first of them moves may still have gone through the socket.
    for (int k = 0; k < 3; ++k) ASSERT_TRUE(step(10'000 * kMillisecond).ok());
    ASSERT_TRUE(state([&](const std::string& text) { return shares(text, 2) && has_shared(text); })) << "seed " << seed_;
    pause();
    worker.kill();
    ASSERT_TRUE(state([](const std::string& text) { return sessions(text) == 1; })) << "seed " << seed_;
    // Of this process's own session there may be one in each direction.
    const Common left(ps);
    EXPECT_LE(left.mapped, 2u) << "seed " << seed_;
    EXPECT_EQ(left.open, 0u) << "seed " << seed_;
  }
  // Nor does it stay while nobody needs it.
  for (const int64_t until = now() + 30'000 * kMillisecond; Common(ps).mapped > 0 && now() < until;) pause();
  EXPECT_EQ(Common(ps).mapped, 0u);
  EXPECT_TRUE(step(10'000 * kMillisecond).ok());
}

// The server is the one that dies, while this process reads what the server wrote and writes what it reads. Whatever was read is what was
// written: the value of before, in each element.
TEST_F(Kill, SharedMemoryGoesWithItsServer) {
  const auto shared = [] { return Common("/proc/self/"); };
  const Value fetch[] = {steps_->value};
  for (int i = 0, kills = kills_of_an_end(); i < kills; ++i) {
    ServerProcess ps("ps=" + at("ps"), "ps", 0);
    ASSERT_TRUE(connect().ok()) << "seed " << seed_;
    ASSERT_TRUE(assign().ok());
    for (int k = 0; k < 3; ++k) ASSERT_TRUE(step(10'000 * kMillisecond).ok());
    EXPECT_GE(shared().mapped, 1u) << "nothing is shared; seed " << seed_;
    std::thread killer([&] {
      pause();
      ps.signal(SIGKILL);
    });
    int reads = 0;
    for (bool lives = true; lives;) {
      std::vector<Tensor> out(1);
      lives = step(5'000 * kMillisecond).ok() && session_->run({{}, {}, fetch, {}, 5'000 * kMillisecond}, out).ok();
      if (!lives) break;
      ++reads;
      const float* const values = out[0].as<float>();
      ASSERT_EQ(std::count(values, values + Steps::kCount, 1.0f), Steps::kCount) << "read " << reads << ", seed " << seed_;
    }
    killer.join();
    session_ = nullptr;
    for (const int64_t until = now() + 10'000 * kMillisecond; shared().mapped > 0 && now() < until;) pause();
    ASSERT_EQ(shared().mapped, 0u) << "seed " << seed_;
    ASSERT_EQ(shared().open, 0u) << "seed " << seed_;
  }
}

}  // namespace
}  // namespace dtg
