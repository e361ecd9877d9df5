// Elastic training whose workers, processes of their own, come, are killed, stopped and started again while it goes on: no step waits for
// who is gone longer than that takes to be known, and the weights are to the bit what one process makes of the same members in each step.
#include "elastic.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "process.h"
#include "scratch.h"

namespace dtg {
namespace {

using std::chrono::steady_clock;
using Members = std::vector<bool>;

struct ElasticProcess : OtherProcess {
  ElasticProcess(const std::string& cluster, int task, int least)
      : OtherProcess({"--elastic", cluster, std::to_string(task), std::to_string(least)}) {}
};

class ElasticJob : public ::testing::Test {
 protected:
  void serve(int least) {
    ::chmod(scratch_.path().c_str(), 0700);
    const auto at = [&](const std::string& name) { return "unix:" + (scratch_ / name); };
    cluster_ = "ps=" + at("ps0") + "," + at("ps1") + ";worker=";
    for (int w = 0; w < ElasticWorker::kWorkers; ++w) cluster_ += (w ? "," : "") + at("w" + std::to_string(w));
    least_ = least;
    for (int p = 0; p < 2; ++p) start_ps(p);
    chief_ = std::make_unique<ElasticWorker>(cluster_, 0, least);
    const Status begun = chief_->begin();
    ASSERT_TRUE(begun.ok()) << begun.message();
    queue_ = CompletionQueue::create().take();
  }
  // Who waits for a step that nobody makes any more would wait for its deadline.
  void TearDown() override {
    for (const auto& worker : workers_) {
      if (worker) worker->kill();
    }
  }
  void start_ps(int p) {
    servers_[p] = std::make_unique<ServerProcess>(cluster_, "ps", p, scratch_ / ("state" + std::to_string(p)));
  }
  void start(int w) { workers_[w] = std::make_unique<ElasticProcess>(cluster_, w, least_); }

  // The chief's update and its own contribution to it; how long that took.
  double make_step() {
    const auto begun = steady_clock::now();
    const RunArgs args{.feeds = {},
                       .feed_tensors = {},
                       .fetches = {&chief_->added.members, 1},
                       .targets = {&chief_->added.update, 1},
                       .timeout_ns = 60 * kSecond};
    auto update = chief_->session->run_async(args, queue_, 0);
    EXPECT_TRUE(update.ok());
    const Status trained = chief_->train();
    EXPECT_TRUE(trained.ok()) << trained.message();
    CompletionQueue::Event event;
    EXPECT_EQ(queue_->next({&event, 1}, system_clock(), Deadline::after(system_clock(), 60 * kSecond)), 1u);
    EXPECT_TRUE(event.status.ok()) << event.status.message();
    if (!event.status.ok() || !trained.ok()) return 1e9;
    const Tensor members = update.value()->take(0).take();
    Members who;
    for (const bool is : members.values<bool>()) who.push_back(is);
    trace_.push_back(who);
    EXPECT_EQ(chief_->step, static_cast<int64_t>(trace_.size()));
    return std::chrono::duration<double>(steady_clock::now() - begun).count();
  }
  // Steps until the last was made by just those; the longest of them.
  double make_steps_until(const Members& who) {
    double longest = 0;
    const auto begun = steady_clock::now();
    do {
      longest = std::max(longest, make_step());
    } while (!HasFailure() && trace_.back() != who && steady_clock::now() - begun < std::chrono::seconds(30));
    EXPECT_EQ(trace_.back(), who);
    return longest;
  }
  double make_steps(int count) {
    double longest = 0;
    for (int i = 0; i < count && !HasFailure(); ++i) longest = std::max(longest, make_step());
    return longest;
  }
  // What one process makes of the same members, by the same operations in the same order.
  void expect_replayed() {
    std::array<float, ElasticWorker::kCount> wanted{};
    for (size_t step = 0; step < trace_.size(); ++step) {
      for (int i = 0; i < ElasticWorker::kCount; ++i) {
        float sum = 0, count = 0;
        for (int w = 0; w < ElasticWorker::kWorkers; ++w) {
          if (!trace_[step][static_cast<size_t>(w)]) continue;
          const float one = ElasticWorker::gradient(w, static_cast<int64_t>(step), i);
          sum = count == 0 ? one : sum + one;
          count += 1;
        }
        const float moved = ElasticWorker::kRate * (sum / count);
        wanted[static_cast<size_t>(i)] -= moved;
      }
    }
    for (const NamedVariable& variable : chief_->variables) {
      std::vector<Tensor> held(1);
      ASSERT_TRUE(chief_->run({&variable.read, 1}, kNoNode, &held).ok());
      EXPECT_EQ(std::memcmp(held[0].data(), wanted.data(), sizeof wanted), 0) << variable.name << ", " << trace_.size() << " steps";
    }
  }

  Scratch scratch_;
  std::string cluster_;
  int least_ = 1;
  std::unique_ptr<ServerProcess> servers_[2];
  std::unique_ptr<ElasticWorker> chief_;
  std::unique_ptr<ElasticProcess> workers_[ElasticWorker::kWorkers];
  Ref<CompletionQueue> queue_;
  std::vector<Members> trace_;
};

TEST_F(ElasticJob, GoesOnWithWhoIsThere) {
  serve(1);
  make_steps(5);
  EXPECT_EQ(trace_.back(), (Members{true, false, false, false})) << "nobody else was started";
  start(1);
  start(2);
  make_steps_until({true, true, true, false});
  make_steps(20);
  // One that is killed is missed for a second.
  workers_[2]->kill();
  const double longest = make_steps_until({true, true, false, false});
  EXPECT_LT(longest, 4);
  EXPECT_LT(make_steps(20), 2);
  // Another, and the first one again.
  start(3);
  start(2);
  make_steps_until({true, true, true, true});
  make_steps(20);
  // One that is silent: for T_dead and that second. It has missed steps when it goes on, and comes back by itself.
  workers_[1]->stop();
  std::printf("the longest step after a kill: %.2f s, after a stop: %.2f s\n", longest, make_steps_until({true, false, true, true}));
  make_steps(5);
  workers_[1]->signal(SIGCONT);
  make_steps_until({true, true, true, true});
  // Two at once, one of them orderly.
  workers_[1]->kill();
  int code = -1;
  std::thread other([&] { code = workers_[2]->end(); });
  make_steps_until({true, false, false, true});
  other.join();
  EXPECT_EQ(code, 0);
  make_steps(5);
  expect_replayed();
}

TEST_F(ElasticJob, WaitsForTheLeastAndSaysForWhom) {
  serve(2);
  // Without an update nobody has asked for it.
  Status late = chief_->train(300'000'000);
  EXPECT_EQ(late.code(), Code::deadline_exceeded);
  EXPECT_NE(late.message().find("does the chief run its update?"), std::string::npos) << late.message();
  std::vector<Tensor> members(1);
  late = chief_->run({&chief_->added.members, 1}, chief_->added.update, &members, 300'000'000);
  EXPECT_EQ(late.code(), Code::deadline_exceeded);
  EXPECT_NE(late.message().find("step 0 has 1 contributions, of 2 at least; never came: workers 1, 2 and 3"), std::string::npos)
      << late.message();
  ASSERT_TRUE(recover(*chief_->model, chief_->added, *chief_->session, system_clock(), Deadline::after(system_clock(), 60 * kSecond)).ok());
  start(3);
  make_steps_until({true, false, false, true});
  make_steps(10);
  workers_[3]->kill();
  // Worker 3 is gone, and one alone is too few: whoever comes makes the step with the chief.
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    start(1);
  });
  make_steps_until({true, true, false, false});
  other.join();
  make_steps(5);
  expect_replayed();
}

}  // namespace
}  // namespace dtg
