// A coordinator and its workers, each in a process of its own, killed at random moments: every closure counts exactly once, by a ledger
// of integers on a parameter server; errors, restarts and cancellation as dtg/coordinator.h says. Moments come from a seed that is printed.
#include "train/coordinator.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <thread>

#include "../cluster/process.h"
#include "base/json.h"
#include "base/whereabouts.h"
#include "graph/build.h"
#include "scratch.h"
#include "seconds.h"

namespace dtg {
namespace {

constexpr int64_t kLong = 60'000 * kMillisecond;

Tensor whole(int64_t value) { return Tensor::of<int64_t>(Shape(), std::span<const int64_t>(&value, 1)).take(); }

// A ledger on each of two servers, one row per closure; a closure adds one to its row on both, from what a worker computes. Beside it a
// count and a gate per worker.
class Coordinated : public ::testing::Test {
 protected:
  static constexpr int64_t kRows = 400;

  Coordinated() : seed_(std::random_device{}()), random_(seed_) {
    ::chmod(scratch_.path().c_str(), 0700);
    RecordProperty("seed", std::to_string(seed_));
    std::printf("seed %u\n", seed_);
    runtime_ = Runtime::create({.compute_threads = 2}).take();
    graph_ = Graph::create(&runtime_->ops()).take();
  }
  ~Coordinated() override {
    if (coordinator_) coordinator_->close();
    coordinator_ = nullptr;
    session_ = nullptr;
    // Now and then the pool is the last to let go of a session. The runtime ends here, on this thread.
    for (int i = 0; i < 15'000 && runtime_->ref_count() > 1; ++i) pause(2);
    runtime_ = nullptr;
  }

  std::string at(const std::string& name) const { return "unix:" + (scratch_ / name.c_str()); }
  std::string spec() const {
    std::string text;
    for (int i = 0; i < servers_; ++i) text += (i ? "," : "ps=") + at("ps" + std::to_string(i));
    for (int i = 0; i < workers_; ++i) text += (i ? "," : ";worker=") + at("w" + std::to_string(i));
    return text;
  }
  void start_server(int i, const std::string& state = "") {
    if (state.empty()) ps_.at(static_cast<size_t>(i)) = std::make_unique<ServerProcess>(spec(), "ps", i);
    else ps_.at(static_cast<size_t>(i)) = std::make_unique<ServerProcess>(spec(), "ps", i, state);
  }
  void start_worker(int i) { worker_.at(static_cast<size_t>(i)) = std::make_unique<ServerProcess>(spec(), "worker", i); }

  Value variable(Build& build, const char* device, const char* name, int64_t rows) {
    graph_->push_device(device);
    const Value handle =
        build.op("VarHandleOp", {}, {{"dtype", DType::i64}, {"shape", Shape::of({rows})}, {"shared_name", std::string(name)}}, name);
    const Value zeros = build.op("Fill", {build.ints({rows}), build.scalar(DType::i64, 0)}, {});
    init_.push_back(build.node("AssignVariableOp", std::vector<Value>{handle, zeros}));
    EXPECT_TRUE(graph_->pop_device().ok());
    return handle;
  }

  void build() {
    Build build(*graph_);
    row_ = build.op("Placeholder", {}, {{"dtype", DType::i64}, {"shape", Shape()}});
    worker_number_ = build.op("Placeholder", {}, {{"dtype", DType::i64}, {"shape", Shape()}});
    // What a worker does: a one in its row, behind a while of computing.
    const Value noise = build.op("MatMul", {build.op("Fill", {build.ints({96, 96}), build.scalar(DType::f32, 1)}, {}),
                                            build.op("Fill", {build.ints({96, 96}), build.cast(row_, DType::f32)}, {})});
    const Value zero = build.cast(
        build.mul(build.op("Max", {noise, build.ints({0, 1})}, {{"keep_dims", false}}), build.scalar(DType::f32, 0)), DType::i64);
    const Value one =
        build.op("OneHot", {build.add(row_, zero), build.integer(kRows), build.scalar(DType::i64, 1), build.scalar(DType::i64, 0)});
    for (int i = 0; i < servers_; ++i) {
      const std::string device = "/job:ps/task:" + std::to_string(i);
      const Value ledger = variable(build, device.c_str(), ("ledger" + std::to_string(i)).c_str(), kRows);
      count_.push_back(build.node("AssignAddVariableOp", std::vector<Value>{ledger, one}));
      graph_->push_device(device);
      rows_.push_back(build.op("ReadVariableOp", {ledger}, {{"dtype", DType::i64}}));
      EXPECT_TRUE(graph_->pop_device().ok());
    }
    first_values_ = init_;
    echo_ = build.add(row_, zero);
    slow_ = build.op("Fill", {build.ints({1500, 1500}), build.cast(row_, DType::f32)}, {});
    for (int i = 0; i < 200; ++i) slow_ = build.op("MatMul", {slow_, slow_}, {});
    slow_ = build.op("Max", {slow_, build.ints({0, 1})}, {{"keep_dims", false}});
    // Of each worker: what it was given, which it must have before it can work.
    const Value own = variable(build, "/job:worker", "own", 1);
    graph_->push_device("/job:worker");
    const Value number = build.reshape(worker_number_, build.ints({1}));
    own_init_ = build.node("AssignVariableOp", std::vector<Value>{own, number});
    own_value_ = build.op("ReadVariableOp", {own}, {{"dtype", DType::i64}});
    EXPECT_TRUE(graph_->pop_device().ok());
    bad_ = build.op("CheckNumerics", {build.div(build.cast(row_, DType::f32), build.scalar(DType::f32, 0))},
                    {{"message", std::string("not a number")}});
    const Status status = build.status();
    ASSERT_TRUE(status.ok()) << status.message();
  }

  void connect(Coordinator::Options options = {}) {
    Session::Options wanted;
    wanted.connect_timeout_ns = 20'000 * kMillisecond;
    auto session = Session::connect(runtime_, at("ps0"), graph_, wanted);
    ASSERT_TRUE(session.ok()) << session.status().message();
    session_ = session.take();
    std::vector<Tensor> none;
    const Status given = session_->run({{}, {}, {}, first_values_, kLong}, none);
    ASSERT_TRUE(given.ok()) << given.message();
    auto made = Coordinator::create(session_, options);
    ASSERT_TRUE(made.ok()) << made.status().message();
    coordinator_ = made.take();
  }
  void start_all() {
    ps_.resize(static_cast<size_t>(servers_));
    worker_.resize(static_cast<size_t>(workers_));
    for (int i = 0; i < servers_; ++i) start_server(i);
    for (int i = 0; i < workers_; ++i) start_worker(i);
    build();
  }
  Ref<RemoteClosure> counting() {
    auto closure = coordinator_->prepare(std::array{row_}, std::array{echo_}, count_, {});
    EXPECT_TRUE(closure.ok()) << closure.status().message();
    return closure.take();
  }
  Ref<RemoteClosure> failing() { return coordinator_->prepare(std::array{row_}, std::array{bad_}, {}, {}).take(); }
  Ref<RemoteValue> schedule(const Ref<RemoteClosure>& closure, int64_t row) {
    auto value = coordinator_->schedule(closure, {whole(row)}, kLong, nullptr);
    EXPECT_TRUE(value.ok()) << "seed " << seed_ << ": " << value.status().message();
    return value.ok() ? value.take() : nullptr;
  }
  // As people are told.
  std::string state_of(const char* list, int task) {
    const Json told = parse_json(coordinator_->describe(), "what a coordinator is at").take();
    return *told.find(list)->array()->at(static_cast<size_t>(task)).find("state")->string();
  }
  bool is_busy(int worker) { return state_of("workers", worker) == "busy"; }
  int64_t told_of(int worker, const char* what) {
    const Json told = parse_json(coordinator_->describe(), "what a coordinator is at").take();
    return *told.find("workers")->array()->at(static_cast<size_t>(worker)).find(what)->integer();
  }
  Status join() { return coordinator_->join(kLong, nullptr); }
  // Each of the first `rows` rows says `times`, all others nothing, on every server.
  void expect_ledger(int64_t rows, int64_t times) {
    std::vector<Tensor> out(rows_.size());
    const Status status = session_->run({{}, {}, rows_, {}, kLong}, out);
    ASSERT_TRUE(status.ok()) << status.message();
    for (const Tensor& ledger : out) {
      for (int64_t i = 0; i < kRows; ++i) ASSERT_EQ(ledger.as<int64_t>()[i], i < rows ? times : 0) << "row " << i << ", seed " << seed_;
    }
  }
  void pause(int most_ms) {
    std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution<int>(0, most_ms * 1000)(random_)));
  }

  const unsigned seed_;
  std::mt19937 random_;
  int servers_ = 2, workers_ = 3;
  Scratch scratch_;
  std::vector<std::unique_ptr<ServerProcess>> ps_, worker_;
  Ref<Runtime> runtime_;
  Ref<Graph> graph_;
  Value row_, worker_number_, echo_, own_value_, bad_, slow_;
  NodeId own_init_ = 0;
  std::vector<Value> rows_;
  std::vector<NodeId> init_, first_values_, count_;
  Ref<Session> session_;
  Ref<Coordinator> coordinator_;
};

TEST_F(Coordinated, EveryClosureCountsOnceAndItsValueComesBack) {
  start_all();
  connect();
  const Ref<RemoteClosure> count = counting();
  std::vector<Ref<RemoteValue>> values;
  for (int64_t i = 0; i < kRows; ++i) values.push_back(schedule(count, i));
  const Status joined = join();
  ASSERT_TRUE(joined.ok()) << joined.message();
  ASSERT_TRUE(coordinator_->done().value());
  expect_ledger(kRows, 1);
  for (int64_t i = 0; i < kRows; ++i) {
    ASSERT_TRUE(values[static_cast<size_t>(i)]->wait(runtime_->clock(), Deadline::never(), nullptr).ok());
    EXPECT_EQ(values[static_cast<size_t>(i)]->values().value()[0].as<int64_t>()[0], i);
  }
}

// Whoever dies, its closure is another's, and what the dead one had done of it is not done again.
TEST_F(Coordinated, WorkersDieAtAnyMoment) {
  start_all();
  connect({.closure_losses = 100});  // all of them may be one closure's by chance
  const Ref<RemoteClosure> count = counting();
  std::vector<Ref<RemoteValue>> values;
  for (int64_t i = 0; i < kRows; ++i) values.push_back(schedule(count, i));
  for (int kills = 0; kills < 12 && !coordinator_->done().value(); ++kills) {
    pause(30);
    const int victim = std::uniform_int_distribution<int>(0, workers_ - 1)(random_);
    worker_.at(static_cast<size_t>(victim))->kill();
    if (kills % 2) pause(10);
    start_worker(victim);
  }
  const Status joined = join();
  ASSERT_TRUE(joined.ok()) << "seed " << seed_ << ": " << joined.message() << " " << coordinator_->describe();
  expect_ledger(kRows, 1);
  for (const auto& value : values) EXPECT_TRUE(value->ended());
}

// Whether it was at work or not when it went, and whoever saw it first.
TEST_F(Coordinated, EachLossOfAWorkerIsCountedOnce) {
  start_all();
  connect();
  const Ref<RemoteClosure> count = counting();
  for (int64_t deaths = 1; deaths <= 4; ++deaths) {
    const int64_t before = told_of(0, "closures");
    worker_.at(0)->kill();
    start_worker(0);
    while (told_of(0, "closures") == before) {
      ASSERT_TRUE(schedule(count, 0));
      const Status joined = join();
      ASSERT_TRUE(joined.ok()) << joined.message();
    }
    EXPECT_EQ(told_of(0, "losses"), deaths);
  }
  EXPECT_EQ(told_of(1, "losses"), 0);
}

// It computes for long, so whoever has it dies with it.
TEST_F(Coordinated, AClosureThatWorkersDieOfIsGivenToNobodyElse) {
  start_all();
  connect();
  const Ref<RemoteClosure> count = counting();
  const Ref<RemoteValue> deadly = schedule(coordinator_->prepare(std::array{row_}, std::array{slow_}, {}, {}).take(), 1);
  for (int deaths = 0; deaths < 3; ++deaths) {
    int victim = -1;
    while (victim < 0) {
      for (int i = 0; i < workers_; ++i) {
        if (is_busy(i)) victim = i;
      }
      ASSERT_FALSE(deadly->ended()) << "after " << deaths << " deaths";
    }
    pause(20);
    worker_.at(static_cast<size_t>(victim))->kill();
    // Before it is back, or it would be given the closure again, and these lines could wait until that has ended.
    while (is_busy(victim)) pause(2);
    start_worker(victim);
  }
  const Status told = join();
  EXPECT_EQ(told.code(), Code::unavailable) << told.message();
  EXPECT_NE(told.message().find("closure 1, at which 3 workers were lost"), std::string::npos) << told.message();
  EXPECT_EQ(deadly->wait(runtime_->clock(), Deadline::never(), nullptr).code(), Code::unavailable);
  // The others are none the worse for it.
  for (int64_t i = 0; i < 20; ++i) ASSERT_TRUE(schedule(count, i));
  const Status next = join();
  EXPECT_TRUE(next.ok()) << next.message();
  expect_ledger(20, 1);
}

TEST_F(Coordinated, AnErrorEndsTheOthersAndIsToldOnce) {
  start_all();
  connect();
  const Ref<RemoteClosure> count = counting();
  const Ref<RemoteValue> bad = schedule(failing(), 1);
  std::vector<Ref<RemoteValue>> others;
  Status told;
  for (int64_t i = 0; i < kRows && told.ok(); ++i) {
    auto value = coordinator_->schedule(count, {whole(i)}, kLong, nullptr);
    if (value.ok()) others.push_back(value.take());
    else told = value.status();
  }
  if (told.ok()) told = join();
  EXPECT_EQ(told.code(), Code::invalid_argument) << told.message();
  EXPECT_NE(told.message().find("closure on /job:worker"), std::string::npos) << told.message();
  EXPECT_EQ(bad->wait(runtime_->clock(), Deadline::never(), nullptr).code(), Code::invalid_argument);
  for (const auto& value : others) {
    const Status outcome = value->wait(runtime_->clock(), Deadline::never(), nullptr);
    EXPECT_TRUE(outcome.ok() || outcome.code() == Code::cancelled) << outcome.message();
  }
  // Once only, and it goes on.
  const Status again = join();
  EXPECT_TRUE(again.ok()) << again.message();
  const Ref<RemoteValue> next = schedule(count, 0);
  EXPECT_TRUE(join().ok());
  EXPECT_TRUE(next->wait(runtime_->clock(), Deadline::never(), nullptr).ok());
}

TEST_F(Coordinated, WhatAWorkerHasOfItsOwnIsMadeAnewWithIt) {
  workers_ = 2;
  start_all();
  connect();
  const Ref<RemoteClosure> give = coordinator_->prepare({}, {}, std::array{own_init_}, worker_number_).take();
  const Ref<RemoteClosure> look = coordinator_->prepare({}, std::array{own_value_}, {}, {}).take();
  ASSERT_TRUE(coordinator_->add_per_worker(give, {}).ok());
  for (int round = 0; round < 3; ++round) {
    std::vector<Ref<RemoteValue>> values;
    for (int i = 0; i < 20; ++i) values.push_back(coordinator_->schedule(look, {}, kLong, nullptr).take());
    const Status joined = join();
    ASSERT_TRUE(joined.ok()) << joined.message();
    for (const auto& value : values) {
      const int64_t number = value->values().value()[0].as<int64_t>()[0];
      EXPECT_TRUE(number == 0 || number == 1) << number;
    }
    worker_.at(0)->kill();
    start_worker(0);
  }
}

TEST_F(Coordinated, AServerThatComesBackEmptyIsAnErrorThatSaysWhatIsLost) {
  start_all();
  connect();
  const Ref<RemoteClosure> count = counting();
  ASSERT_TRUE(schedule(count, 0));
  ASSERT_TRUE(join().ok());
  ps_.at(1)->kill();
  start_server(1);
  auto value = coordinator_->schedule(count, {whole(1)}, kLong, nullptr);
  ASSERT_TRUE(value.ok());
  const Status lost = join();
  EXPECT_EQ(lost.code(), Code::unavailable) << lost.message();
  EXPECT_NE(lost.message().find("/job:ps/replica:0/task:1"), std::string::npos) << lost.message();
  EXPECT_NE(lost.message().find("ledger1"), std::string::npos) << lost.message();
  // Given new values, it goes on.
  std::vector<Tensor> none;
  const Status given = session_->run({{}, {}, {}, std::span(first_values_).subspan(1), kLong}, none);
  ASSERT_TRUE(given.ok()) << given.message();
  ASSERT_TRUE(schedule(count, 0));
  EXPECT_TRUE(join().ok());
}

// It keeps its variables, so nobody needs to know.
TEST_F(Coordinated, AServerThatKeepsItsStateIsWaitedFor) {
  ps_.resize(2);
  worker_.resize(3);
  const std::string state = scratch_ / "state";
  start_server(0);
  start_server(1, state);
  for (int i = 0; i < workers_; ++i) start_worker(i);
  build();
  connect();
  const Ref<RemoteClosure> count = counting();
  for (int64_t i = 0; i < 120; ++i) ASSERT_TRUE(schedule(count, i));
  for (int kills = 0; kills < 3; ++kills) {
    pause(20);
    ps_.at(1)->kill();
    start_server(1, state);
  }
  const Status joined = join();
  ASSERT_TRUE(joined.ok()) << "seed " << seed_ << ": " << joined.message();
  expect_ledger(120, 1);
}

// Keeps every thread of a pool for itself, so that what is submitted waits.
class Occupied {
 public:
  explicit Occupied(Pool& pool) {
    // Threads that a pool has beside who calls it, and one more for whoever it starts for tasks alone.
    for (int i = 0; i <= pool.threads(); ++i) pool.submit(new Sitter(*this));
  }
  ~Occupied() {
    over_ = true;
    while (sitting_ > 0) std::this_thread::yield();
  }

 private:
  struct Sitter final : Pool::Task {
    explicit Sitter(Occupied& o) : owner(o) { ++owner.sitting_; }
    void run() override {
      while (!owner.over_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      --owner.sitting_;
      delete this;
    }
    Occupied& owner;
  };
  std::atomic<bool> over_{false};
  std::atomic<int> sitting_{0};
};

// A task that is met again and lost again before the coordinator came to see it: it is looked for once more, and nobody is told of a loss.
TEST_F(Coordinated, ATaskThatIsLostAgainBeforeItWasSeenIsLookedForOnceMore) {
  servers_ = 1;
  workers_ = 1;
  ps_.resize(1);
  worker_.resize(1);
  const std::string state = scratch_ / "state";
  start_server(0, state);
  start_worker(0);
  build();
  connect({.closure_losses = 100});
  const Ref<RemoteClosure> count = counting();
  ASSERT_TRUE(schedule(count, 0));
  ASSERT_TRUE(join().ok());
  const auto is_there = [&](const char* task) { return session_->driver().presence(task).value().there; };
  const auto until = [&](const char* task, bool there) {
    for (int i = 0; i < 30'000 && is_there(task) != there; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_EQ(is_there(task), there) << task;
  };
  const char *const server = "/job:ps/replica:0/task:0", *const worker = "/job:worker/replica:0/task:0";
  int64_t row = 1;
  for (const bool of_server : {true, false, true, false}) {
    Ref<RemoteValue> looked_for;
    if (of_server) {
      // In the midst of a run, so that its end is what tells of both.
      ps_.at(0)->stop();
      looked_for = schedule(count, row++);
      while (!is_busy(0)) pause(2);
      pause(20);
      ps_.at(0)->kill();
    }
    worker_.at(0)->kill();
    until(worker, false);
    if (!of_server) looked_for = schedule(count, row++);
    while (state_of(of_server ? "servers" : "workers", 0) != "lost") pause(2);
    const auto begin = [&] { of_server ? start_server(0, state) : start_worker(0); };
    {
      const Occupied pool(runtime_->pool());
      begin();
      until(of_server ? server : worker, true);
      (of_server ? ps_ : worker_).at(0)->kill();
      until(of_server ? server : worker, false);
    }
    begin();
    if (of_server) start_worker(0);
    const Status joined = join();
    ASSERT_TRUE(joined.ok()) << joined.message();
    ASSERT_TRUE(looked_for && looked_for->ended());
  }
  expect_ledger(row, 1);
}

TEST_F(Coordinated, TheQueueIsBoundedAndWaitsEndInTime) {
  workers_ = 1;
  start_all();
  Coordinator::Options options;
  options.capacity = 2;
  connect(options);
  const Ref<RemoteClosure> count = counting();
  worker_.at(0)->kill();
  ASSERT_TRUE(schedule(count, 0));
  ASSERT_TRUE(schedule(count, 1));
  // It may have one that it will not end, and another two wait.
  int64_t taken = 2;
  auto full = coordinator_->schedule(count, {whole(taken)}, 300 * kMillisecond, nullptr);
  for (; full.ok() && taken < 5; full = coordinator_->schedule(count, {whole(taken)}, 300 * kMillisecond, nullptr)) ++taken;
  EXPECT_EQ(full.status().code(), Code::deadline_exceeded) << full.status().message();
  const Status late = coordinator_->join(300 * kMillisecond, nullptr);
  EXPECT_EQ(late.code(), Code::deadline_exceeded);
  for (const Status& each : {full.status(), late}) EXPECT_EQ(each.origin().phase + untold(each), "schedule");
  EXPECT_NE(late.message().find("/job:worker/replica:0/task:0"), std::string::npos) << late.message();
  // A wait that somebody gives up.
  const auto cancellation = make_ref<Cancellation>();
  std::thread gives_up([&] { cancellation->cancel(); });
  EXPECT_EQ(coordinator_->join(kLong, cancellation.get()).code(), Code::cancelled);
  gives_up.join();
  start_worker(0);
  const Status joined = join();
  EXPECT_TRUE(joined.ok()) << joined.message();
  expect_ledger(taken, 1);
}

TEST_F(Coordinated, CancelledClosuresEndAndTheNextAreGivenOut) {
  workers_ = 1;
  start_all();
  connect();
  const Ref<RemoteClosure> count = counting();
  worker_.at(0)->kill();
  std::vector<Ref<RemoteValue>> values;
  for (int64_t i = 0; i < 10; ++i) values.push_back(schedule(count, i));
  coordinator_->cancel();
  for (const auto& value : values) {
    const Status outcome = value->wait(runtime_->clock(), Deadline::never(), nullptr);
    EXPECT_EQ(outcome.code(), Code::cancelled) << outcome.message();
  }
  EXPECT_TRUE(join().ok());
  start_worker(0);
  ASSERT_TRUE(schedule(count, 0));
  EXPECT_TRUE(join().ok());
  expect_ledger(1, 1);
}

TEST_F(Coordinated, WhatIsClosedEnds) {
  workers_ = 1;
  start_all();
  connect();
  const Ref<RemoteClosure> count = counting();
  worker_.at(0)->kill();
  const Ref<RemoteValue> value = schedule(count, 0);
  std::thread closes([&] { coordinator_->close(); });
  EXPECT_EQ(coordinator_->join(kLong, nullptr).code(), Code::cancelled);
  closes.join();
  EXPECT_EQ(value->wait(runtime_->clock(), Deadline::never(), nullptr).code(), Code::cancelled);
  EXPECT_EQ(coordinator_->schedule(count, {whole(0)}, kLong, nullptr).status().code(), Code::cancelled);
}

// Closed at the moment when closures begin: what they are scheduled with goes away under who begins them, and he sees that.
TEST_F(Coordinated, IsClosedWhileClosuresBegin) {
  start_all();
  connect();
  coordinator_->close();
  for (int i = 0; i < 150; ++i) {
    coordinator_ = Coordinator::create(session_, {}).take();
    const Ref<RemoteClosure> count = counting();
    std::vector<Ref<RemoteValue>> values;
    for (int64_t k = 0; k < 3; ++k) values.push_back(schedule(count, k));
    if (i % 2 == 0) std::this_thread::yield();
    coordinator_->close();
    for (const Ref<RemoteValue>& value : values) {
      const Status status = value->wait(runtime_->clock(), Deadline::never(), nullptr);
      EXPECT_TRUE(status.ok() || status.code() == Code::cancelled) << status.message();
    }
  }
}

TEST_F(Coordinated, Misuse) {
  start_all();
  connect();
  EXPECT_EQ(coordinator_->prepare({}, {}, {}, {}).status().code(), Code::invalid_argument);
  EXPECT_EQ(coordinator_->prepare({}, std::array{echo_}, {}, bad_).status().code(), Code::invalid_argument);
  EXPECT_EQ(coordinator_->prepare(std::array{worker_number_}, std::array{worker_number_}, {}, worker_number_).status().code(),
            Code::invalid_argument);
  const Ref<RemoteClosure> count = counting();
  EXPECT_EQ(coordinator_->schedule(count, {}, kLong, nullptr).status().code(), Code::invalid_argument);
  const float wrong = 1;
  EXPECT_EQ(coordinator_->schedule(count, {Tensor::of<float>(Shape(), std::span(&wrong, 1)).take()}, kLong, nullptr).status().code(),
            Code::invalid_argument);
  EXPECT_EQ(coordinator_->schedule(count, {Tensor()}, kLong, nullptr).status().code(), Code::invalid_argument);
  auto other = Coordinator::create(session_, {}).take();
  EXPECT_EQ(other->schedule(count, {whole(0)}, kLong, nullptr).status().code(), Code::invalid_argument);
  other->close();
  EXPECT_EQ(Coordinator::create(session_, {.job = "nobody"}).status().code(), Code::failed_precondition);
  EXPECT_EQ(Coordinator::create(session_, {.capacity = -1}).status().code(), Code::invalid_argument);
  auto local = Session::connect(runtime_, "local", graph_, {}).take();
  EXPECT_EQ(Coordinator::create(local, {}).status().code(), Code::failed_precondition);
}

}  // namespace
}  // namespace dtg
