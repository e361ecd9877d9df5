// Elastic training whose workers, processes of their own, come, are killed, stopped and started again while it goes on: no step waits for
// who is gone longer than that takes to be known, and the weights are to the bit what one process makes of the same members in each step.
#include "elastic.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "process.h"
#include "scratch.h"

namespace dtg {
namespace {

using std::chrono::steady_clock;
using Members = std::vector<bool>;

struct ElasticProcess : OtherProcess {
  explicit ElasticProcess(std::vector<std::string> words) : OtherProcess(std::move(words)) {}
};

class ElasticJob : public ::testing::Test {
 protected:
  void serve(int least, bool all_same = false, bool deals = false) {
    ::chmod(scratch_.path().c_str(), 0700);
    const auto at = [&](const std::string& name) { return "unix:" + (scratch_ / name); };
    cluster_ = "ps=" + at("ps0") + "," + at("ps1") + ";worker=";
    for (int w = 0; w < ElasticWorker::kWorkers; ++w) cluster_ += (w ? "," : "") + at("w" + std::to_string(w));
    least_ = least;
    same_ = all_same;
    deals_ = deals;
    for (int p = 0; p < 2; ++p) start_ps(p);
    chief_ = std::make_unique<ElasticWorker>(cluster_, 0, least, all_same, deals);
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
  void start_ps(int p) { servers_[p] = std::make_unique<ServerProcess>(cluster_, "ps", p, scratch_ / ("state" + std::to_string(p))); }
  void start(int w) {
    std::vector<std::string> words = {"--elastic", cluster_, std::to_string(w), std::to_string(least_)};
    if (same_ || deals_) words.push_back(same_ ? "same" : "data");
    workers_[w] = std::make_unique<ElasticProcess>(std::move(words));
  }
  std::vector<Tensor> read(std::vector<Value> values) {
    std::vector<Tensor> held(values.size());
    const Status status = chief_->run(values, kNoNode, &held);
    EXPECT_TRUE(status.ok()) << status.message();
    return held;
  }

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
  // Where the deadline passes here before the task that knows more has told it, the next attempt is told.
  template <class Fn>
  void expect_lateness(Fn&& run, const std::string& why) {
    Status late;
    for (int attempts = 0; attempts < 10; ++attempts) {
      late = run();
      ASSERT_EQ(late.code(), Code::deadline_exceeded) << late.message();
      if (late.message().find(why) != std::string::npos) return;
    }
    ADD_FAILURE() << late.message();
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
    std::array<double, ElasticWorker::kWorkers> members{};
    for (const Members& who : trace_) {
      for (size_t w = 0; w < members.size(); ++w) members[w] += who[w] ? 1 : 0;
    }
    const std::vector<Tensor> counted = read({chief_->model->find("sync/contributions")->read});
    EXPECT_EQ(std::memcmp(counted[0].data(), members.data(), sizeof members), 0) << "counted otherwise";
    for (const NamedVariable& variable : chief_->variables) {
      const std::vector<Tensor> held = read({variable.read});
      EXPECT_EQ(std::memcmp(held[0].data(), wanted.data(), sizeof wanted), 0) << variable.name << ", " << trace_.size() << " steps";
    }
  }

  Scratch scratch_;
  std::string cluster_;
  int least_ = 1;
  bool same_ = false, deals_ = false;
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

// Workers that are through leave the steps, and are not cut short by the end; who never came is not waited for.
TEST_F(ElasticJob, EndsWhenAllWhoCameAreThrough) {
  serve(1);
  const Ref<AsyncRun> updates = chief_->session->run_repeatedly({&chief_->added.update, 1}, queue_, 0).take();
  workers_[2] = std::make_unique<ElasticProcess>(std::vector<std::string>{"--elastic", cluster_, "2", "1", "through"});
  const auto counted = [&] { return read({chief_->model->find("sync/contributions")->read})[0].values<double>()[2]; };
  while (!HasFailure() && counted() < 5) EXPECT_TRUE(chief_->train().ok());
  const Status early = chief_->session->end_job(3 * kSecond);
  EXPECT_EQ(early.code(), Code::deadline_exceeded) << early.message();
  const double before = counted();
  for (int i = 0; i < 600 && counted() < before + 5; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GE(counted(), before + 5) << "worker 2 waits for a step of the chief, which has left";
  int code = -1;
  std::thread other([&] { code = workers_[2]->end(); });
  const Status ended = chief_->session->end_job(60 * kSecond);
  other.join();
  EXPECT_TRUE(ended.ok()) << ended.message();
  EXPECT_EQ(code, 0);
  for (const auto& server : servers_) EXPECT_EQ(server->end(), 0);
  updates->cancel();
}

TEST_F(ElasticJob, WaitsForTheLeastAndSaysForWhom) {
  serve(2);
  // Without an update nobody has asked for it.
  expect_lateness([&] { return chief_->train(kSecond); }, "does the chief run its update?");
  std::vector<Tensor> members(1);
  expect_lateness(
      [&] {
        return chief_->run({&chief_->added.members, 1}, chief_->added.update, &members, kSecond);
      },
      "step 0 has 1 contributions, of 2 at least; never came: workers 1, 2 and 3");
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

// Whoever dies, servers and workers: the steps go on, and each is applied once on every task, with what it is counted by.
TEST_F(ElasticJob, EveryStepIsAppliedOnceWhoeverIsKilled) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  serve(1, true);
  for (const int w : {1, 2, 3}) start(w);
  const Ref<AsyncRun> updates = chief_->session->run_repeatedly({&chief_->added.update, 1}, queue_, 0).take();
  std::atomic<bool> ends{false};
  std::thread trains([&] {
    while (!ends) {
      Status status = chief_->train();
      if (status.code() == Code::unavailable || status.code() == Code::aborted) {
        status = recover(*chief_->model, chief_->added, *chief_->session, system_clock(), Deadline::after(system_clock(), 60 * kSecond));
        if (status.ok()) status = chief_->join();
      }
      EXPECT_TRUE(status.ok()) << status.message();
      if (!status.ok()) return;
    }
  });
  for (int i = 0; i < 24; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::uniform_int_distribution<int>(50, 400)(random)));
    if (const int which = std::uniform_int_distribution<int>(0, 4)(random); which < 2) {
      servers_[which]->kill();
      start_ps(which);
    } else {
      workers_[which - 1]->kill();
      start(which - 1);
    }
  }
  std::this_thread::sleep_for(std::chrono::seconds(2));
  for (const int w : {1, 2, 3}) workers_[w]->kill();
  ends = true;
  trains.join();
  EXPECT_FALSE(updates->finished());
  const std::vector<Tensor> held = read(
      {chief_->added.global_step, chief_->model->find("sync/contributions")->read, chief_->variables[0].read, chief_->variables[1].read});
  const int64_t steps = held[0].values<int64_t>()[0];
  double contributions = 0;
  for (const double one : held[1].values<double>()) {
    EXPECT_LE(one, static_cast<double>(steps));
    contributions += one;
  }
  EXPECT_GE(contributions, static_cast<double>(steps));
  std::printf("%lld steps of %.2f workers\n", static_cast<long long>(steps), contributions / static_cast<double>(steps));
  float wanted = 0;
  for (int64_t step = 0; step < steps; ++step) wanted -= ElasticWorker::kRate * 0.25f;
  for (const Tensor& each : {held[2], held[3]}) {
    for (const float value : each.values<float>()) EXPECT_EQ(value, wanted) << "seed " << seed;
  }
  EXPECT_GT(steps, 50);
  updates->cancel();
}

// Workers and servers are killed and started again while the elements of some epochs are dealt: each record is in one update of each epoch.
TEST_F(ElasticJob, EveryRecordIsInOneUpdateOfAnEpochWhoeverIsKilled) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  serve(1, false, true);
  for (const int w : {1, 2, 3}) start(w);
  const Ref<AsyncRun> updates = chief_->session->run_repeatedly({&chief_->added.update, 1}, queue_, 0).take();
  std::atomic<bool> is_over{false};
  std::thread trains([&] {
    bool over = false;
    while (!over) {
      Status status = chief_->train_on_data(&over);
      if (status.code() == Code::unavailable || status.code() == Code::aborted) {
        status = recover(*chief_->model, chief_->added, *chief_->session, system_clock(), Deadline::after(system_clock(), 60 * kSecond));
        if (status.ok()) status = chief_->join();
      }
      EXPECT_TRUE(status.ok()) << status.message();
      if (!status.ok()) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
    is_over = true;
  });
  // Who is back at once has what it had; who is missed for longer finds that others have it.
  int kills = 0;
  int away[ElasticWorker::kWorkers] = {};
  for (; !is_over; ++kills) {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::uniform_int_distribution<int>(50, 400)(random)));
    for (int w = 1; w < ElasticWorker::kWorkers; ++w) {
      if (away[w] > 0 && --away[w] == 0) start(w);
    }
    const int which = std::uniform_int_distribution<int>(0, 7)(random), w = 1 + which % 3;
    if (kills > 20) continue;  // and in the end they are left in peace
    if (which < 2) {
      servers_[which]->kill();
      start_ps(which);
    } else if (away[w] == 0) {
      workers_[w]->kill();
      away[w] = std::uniform_int_distribution<int>(0, 1)(random) * std::uniform_int_distribution<int>(3, 12)(random);
      if (away[w] == 0) start(w);
    }
  }
  trains.join();
  EXPECT_FALSE(updates->finished());
  const std::vector<Tensor> held = read({chief_->added.global_step, chief_->model->find("sync/contributions")->read,
                                         chief_->variables[0].read, chief_->variables[1].read, chief_->model->find("sync/dealt")->read});
  double contributions = 0;
  for (const double one : held[1].values<double>()) contributions += one;
  EXPECT_EQ(contributions, static_cast<double>(ElasticWorker::kElements * ElasticWorker::kEpochs)) << "seed " << seed;
  for (const double times : held[4].values<double>()) EXPECT_EQ(times, static_cast<double>(ElasticWorker::kEpochs)) << "seed " << seed;
  int lost = 0, doubled = 0;
  for (const Tensor& each : {held[2], held[3]}) {
    for (const float cell : each.values<float>()) lost += cell > -0.99f, doubled += cell < -1.01f;
  }
  EXPECT_EQ(lost, 0) << "seed " << seed;
  EXPECT_EQ(doubled, 0) << "seed " << seed;
  std::printf("%d kills, %lld steps, %g contributions\n", kills, static_cast<long long>(held[0].values<int64_t>()[0]), contributions);
  for (const int w : {1, 2, 3}) workers_[w]->kill();
  updates->cancel();
}

}  // namespace
}  // namespace dtg
