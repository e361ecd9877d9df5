// Strict training whose parameter servers, which keep their state, are killed and come back: every worker's steps go on by themselves, each
// is made once, and in the end the weights have the bits of a job that lost nobody. Nobody calls recover. Moments come from a seed that is
// printed.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <chrono>
#include <random>
#include <thread>

#include "cluster/server.h"
#include "graph/build.h"
#include "nn/model.h"
#include "process.h"
#include "scratch.h"
#include "seconds.h"
#include "session/async_run.h"
#include "session/recover.h"

namespace dtg {
namespace {

constexpr int kWorkers = 2;

// One worker with a server and a runtime of its own: two matrices, on as many parameter servers as there are.
class Worker {
 public:
  Worker(const std::string& cluster, int servers, int number, SyncMode mode)
      : mode_(mode),
        runtime_(Runtime::create({.compute_threads = 1}).take()),
        graph_(Graph::create(&runtime_->ops()).take()),
        number_(number) {
    Server::Options options;
    options.cluster = ClusterSpec::parse(cluster).take();
    options.job = "worker";
    options.task = number;
    server_ = Server::start(runtime_->host().take(), options, runtime_).take();
    model_ = make_ref<Model>(graph_, 1);
    build(servers);
    queue_ = CompletionQueue::create().take();
  }
  ~Worker() {
    if (session_) {
      EXPECT_TRUE(session_->close(10 * kSecond).ok());
    }
    session_ = nullptr;
    (void)server_->stop(10 * kSecond).ok();
  }

  // When all have their servers.
  Status begin() {
    DTG_ASSIGN(session_, Session::connect(runtime_, server_->target(), graph_, {}));
    if (number_ == 0) {
      DTG_ASSIGN(const NodeId init, model_->init_target());
      DTG_TRY(run({}, init, nullptr));
      DTG_TRY(run({}, added_.chief_init, nullptr));
      DTG_TRY(update());
    }
    DTG_TRY(wait_ready(*model_, *session_, system_clock(), Deadline::after(system_clock(), 60 * kSecond)));
    return run({}, added_.local_init, nullptr);
  }
  Status update() {
    DTG_ASSIGN(updates_, session_->run_repeatedly({&added_.update, 1}, nullptr, 0));
    return {};
  }
  // The step, once it is made; -1 where it fails. Every other worker runs it so that nobody waits.
  int64_t step(int number) {
    const std::array<float, 6> values{float(number % 5), float(number_), 0.5f, float(number % 3), -1, float(number % 7)};
    const Tensor fed = Tensor::of<float>(Shape::of({2, 3}), values).take();
    const Tensor* const tensor = &fed;
    const RunArgs args{.feeds = {&x_, 1},
                       .feed_tensors = {&tensor, 1},
                       .fetches = {&added_.next_step, 1},
                       .targets = {&added_.train, 1},
                       .timeout_ns = 60 * kSecond};
    std::vector<Tensor> next(1);
    const Status status = number_ % 2 == 0 ? session_->run(args, next) : run_aside(args, next[0]);
    EXPECT_TRUE(status.ok()) << "worker " << number_ << ", step " << number << ": " << status.message();
    return status.ok() ? next[0].values<int64_t>()[0] : -1;
  }
  Status recovered() { return recover(*model_, added_, *session_, system_clock(), Deadline::after(system_clock(), 60 * kSecond)); }
  bool updates_go_on() const { return !updates_->finished(); }
  std::string bits() {
    std::string all;
    for (const NamedVariable& variable : model_->variables()) {
      if (variable.name.starts_with("sync/")) continue;  // which elastic workers have beside the weights
      std::vector<Tensor> value(1);
      const Status status = run({&variable.read, 1}, kNoNode, &value);
      EXPECT_TRUE(status.ok()) << status.message();
      if (status.ok()) all += std::string(value[0].as<char>(), static_cast<size_t>(value[0].bytes()));
    }
    return all;
  }

 private:
  void build(int servers) {
    Build b(*graph_);
    graph_->push_device("/job:worker/task:" + std::to_string(number_));
    x_ = b.op("Placeholder", {}, {{"dtype", DType::f32}, {"shape", PartialShape(Shape::of({2, 3}))}});
    const NamedVariable first = variable("first", {3, 4}, 0), second = variable("second", {4, 2}, servers - 1);
    const Value hidden = b.op("Tanh", {b.op("MatMul", {x_, first.read})});
    const Value out = b.op("Tanh", {b.op("MatMul", {hidden, second.read})});
    const Value loss = b.op("Mean", {b.op("Square", {b.add(out, b.scalar(DType::f32, 0.5))}), b.ints({0, 1})});
    EXPECT_TRUE(b.ok()) << b.status().message();
    graph_->push_device("/job:ps/task:0");
    EXPECT_TRUE(model_->global_step().ok());
    EXPECT_TRUE(graph_->pop_device().ok());
    const Optimizer optimizer{.kind = Optimizer::Kind::momentum, .learning_rate = {}, .rate = 0.1, .momentum = 0.9};
    // Elastic workers of whom nobody may be absent make the steps of strict ones.
    const int least = mode_ == SyncMode::elastic ? kWorkers : 0;
    auto added = minimize_replicated(*model_, loss, optimizer, {.mode = mode_, .worker = number_, .total = kWorkers, .min_workers = least});
    ASSERT_TRUE(added.ok()) << added.status().message();
    added_ = added.take();
  }
  NamedVariable variable(const char* name, std::vector<int64_t> dims, int on) {
    graph_->push_device("/job:ps/task:" + std::to_string(on));
    auto made = model_->add_variable({.name = name, .shape = Shape::make(dims).take(), .initializer = Initializer::uniform(-1, 1)});
    EXPECT_TRUE(graph_->pop_device().ok());
    return made.take();
  }
  Status run(std::span<const Value> fetches, NodeId target, std::vector<Tensor>* fetched) {
    std::vector<Tensor> none;
    const size_t targets = target == kNoNode ? 0 : 1;
    return session_->run({.feeds = {}, .feed_tensors = {}, .fetches = fetches, .targets = {&target, targets}, .timeout_ns = 60 * kSecond},
                         fetched ? *fetched : none);
  }
  Status run_aside(const RunArgs& args, Tensor& next) {
    DTG_ASSIGN(const Ref<AsyncRun> made, session_->run_async(args, queue_, 0));
    CompletionQueue::Event event;
    if (queue_->next({&event, 1}, system_clock(), Deadline::after(system_clock(), 90 * kSecond)) == 0) return internal_error("no end");
    DTG_TRY(event.status);
    DTG_ASSIGN(next, made->take(0));
    return {};
  }

  const SyncMode mode_;
  const Ref<Runtime> runtime_;
  const Ref<Graph> graph_;
  const int number_;
  Ref<Server> server_;
  Ref<Model> model_;
  Value x_;
  Replicated added_;
  Ref<Session> session_;
  Ref<CompletionQueue> queue_;
  Ref<AsyncRun> updates_;
};

class StrictLoss : public ::testing::Test {
 protected:
  StrictLoss() : seed_(std::random_device{}()), random_(seed_) { std::printf("seed %u\n", seed_); }

  void serve(int servers, SyncMode mode = SyncMode::strict) {
    scratch_ = std::make_unique<Scratch>();
    ::chmod(scratch_->path().c_str(), 0700);
    const auto at = [&](const std::string& name) { return "unix:" + (*scratch_ / name); };
    cluster_ = "ps=";
    for (int p = 0; p < servers; ++p) cluster_ += (p ? "," : "") + at("ps" + std::to_string(p));
    cluster_ += ";worker=";
    for (int w = 0; w < kWorkers; ++w) cluster_ += (w ? "," : "") + at("w" + std::to_string(w));
    servers_.clear();
    servers_.resize(static_cast<size_t>(servers));
    for (int p = 0; p < servers; ++p) start(p);
    workers_.clear();
    for (int w = 0; w < kWorkers; ++w) workers_.push_back(std::make_unique<Worker>(cluster_, servers, w, mode));
    for (const auto& worker : workers_) {
      const Status begun = worker->begin();
      ASSERT_TRUE(begun.ok()) << begun.message();
    }
  }
  void start(int p) {
    servers_[static_cast<size_t>(p)] = std::make_unique<ServerProcess>(cluster_, "ps", p, *scratch_ / ("state" + std::to_string(p)));
  }
  void end_service() {
    workers_.clear();
    servers_.clear();
  }
  // All workers make these steps; `beside` goes on meanwhile.
  template <class Fn>
  void train(int from, int to, Fn&& beside) {
    std::vector<std::thread> threads;
    for (const auto& worker : workers_) {
      threads.emplace_back([&, w = worker.get()] {
        for (int step = from; step < to; ++step) {
          const int64_t made = w->step(step);
          EXPECT_EQ(made, step + 1) << "seed " << seed_;
          if (made != step + 1) return;
        }
        ++through_;
      });
    }
    through_ = 0;
    beside();
    for (std::thread& thread : threads) thread.join();
  }
  void kill_any() {
    const int p = std::uniform_int_distribution<int>(0, static_cast<int>(servers_.size()) - 1)(random_);
    servers_[static_cast<size_t>(p)]->kill();
    if (std::uniform_int_distribution<int>(0, 1)(random_) == 0) pause();
    start(p);
  }
  void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(std::uniform_int_distribution<int>(0, 120)(random_))); }

  const unsigned seed_;
  std::mt19937 random_;
  std::unique_ptr<Scratch> scratch_;
  std::string cluster_;
  std::vector<std::unique_ptr<ServerProcess>> servers_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<int> through_{0};
};

TEST_F(StrictLoss, TheJobGoesOnByItself) {
  constexpr int kSteps = 400;
  constexpr std::pair<int, SyncMode> kCases[] = {
      {1, SyncMode::strict}, {2, SyncMode::strict}, {1, SyncMode::elastic}, {2, SyncMode::elastic}};
  for (const auto& [servers, mode] : kCases) {
    serve(servers);
    train(0, kSteps, [] {});
    const std::string wanted = workers_[0]->bits();
    end_service();
    serve(servers, mode);
    int kills = 0;
    train(0, kSteps, [&] {
      for (; through_ < kWorkers && kills < 12 && !HasFailure(); ++kills) {
        pause();
        kill_any();
      }
    });
    std::printf("%d parameter servers, %s: %d kills\n", servers, mode == SyncMode::strict ? "strict" : "elastic", kills);
    EXPECT_TRUE(workers_[0]->updates_go_on());
    EXPECT_TRUE(workers_[0]->bits() == wanted) << "seed " << seed_;
    end_service();
    if (HasFailure()) return;
  }
}

// A chief that recovers although its updates go on, and one that runs them once more beside themselves, do no harm.
TEST_F(StrictLoss, RecoveringBesidesDoesNoHarm) {
  constexpr int kRounds = 6, kSteps = 20;
  serve(2);
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    std::thread killer([&] { kill_any(); });
    if (round % 3 != 1) {
      EXPECT_TRUE(workers_[0]->update().ok());
    }
    if (round % 3 != 2) {
      const Status recovered = workers_[0]->recovered();
      EXPECT_TRUE(recovered.ok()) << recovered.message();
    }
    train(round * kSteps, (round + 1) * kSteps, [] {});
    killer.join();
  }
  EXPECT_TRUE(workers_[0]->updates_go_on());
  end_service();
}

}  // namespace
}  // namespace dtg
