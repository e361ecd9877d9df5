// A parameter server that keeps its state: killed at any moment and started anew, it goes on, and a session that was in the middle of a
// step hears nothing of it but the time it took. Every step adds 1 to a cell of its own, so that what is lost or doubled shows one by
// one. Moments come from a seed that is printed.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <numeric>
#include <random>
#include <thread>

#include "checkpoint/journal.h"
#include "cluster/server.h"
#include "graph/build.h"
#include "process.h"
#include "scratch.h"
#include "session/async_run.h"

namespace dtg {
namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kSecond = 1'000 * kMillisecond;

// Cells on the parameter servers, and a vector that momentum works on.
struct Cells {
  static constexpr int kCount = 4096;
  Ref<Graph> graph;
  Value index;
  std::vector<NodeId> clear, add;
  std::vector<Value> read, weights;
  Status status;

  Cells(Runtime& runtime, int servers) : graph(Graph::create(&runtime.ops()).take()) {
    Build b(*graph);
    index = b.op("Placeholder", {}, {{"dtype", DType::i32}, {"shape", PartialShape(Shape::of({1}))}}, "index");
    const int64_t one = 1;
    const Value ones = b.constant(Tensor::of<int64_t>(Shape::of({1}), {&one, 1}).take());
    const Value gradient = b.op("Cast", {index}, {{"DstT", DType::f32}});
    for (int p = 0; p < servers; ++p) {
      graph->push_device("/job:ps/task:" + std::to_string(p));
      const auto variable = [&](const char* name, DType dtype, int64_t count) {
        return b.op("VarHandleOp", {}, {{"dtype", dtype}, {"shape", Shape::of({count})}, {"shared_name", std::string(name)}});
      };
      const Value cells = variable("cells", DType::i64, kCount), w = variable("w", DType::f32, 1), m = variable("m", DType::f32, 1);
      clear.push_back(b.node("AssignVariableOp", std::vector<Value>{cells, b.constant(zeros(DType::i64, kCount))}));
      for (const Value each : {w, m}) clear.push_back(b.node("AssignVariableOp", std::vector<Value>{each, b.constant(zeros(DType::f32, 1))}));
      add.push_back(b.node("ResourceScatterAdd", std::vector<Value>{cells, index, ones}));
      add.push_back(b.node("ResourceApplyMomentum",
                           std::vector<Value>{w, m, b.scalar(DType::f32, 0.001), gradient, b.scalar(DType::f32, 0.5)}));
      read.push_back(b.op("ReadVariableOp", {cells}, {{"dtype", DType::i64}}));
      weights.push_back(b.op("ReadVariableOp", {w}, {{"dtype", DType::f32}}));
      (void)graph->pop_device();
    }
    status = b.status();
  }
  static Tensor zeros(DType dtype, int64_t count) {
    Tensor none = Tensor::allocate(dtype, Shape::of({count})).take();
    std::memset(none.data(), 0, static_cast<size_t>(none.bytes()));
    return none;
  }
};

class Recovery : public ::testing::Test {
 protected:
  Recovery() : seed_(std::random_device{}()), random_(seed_) {
    ::chmod(scratch_.path().c_str(), 0700);
    std::printf("seed %u\n", seed_);
    runtime_ = Runtime::create({.compute_threads = 2}).take();
  }
  ~Recovery() override { session_ = nullptr; }

  std::string at(int p) const { return "unix:" + (scratch_ / ("ps" + std::to_string(p))); }
  std::string cluster() const {
    std::string spec = "ps=";
    for (int p = 0; p < static_cast<int>(servers_.size()); ++p) spec += (p ? "," : "") + at(p);
    return spec;
  }
  void start(int p) {
    servers_[static_cast<size_t>(p)] = std::make_unique<ServerProcess>(cluster(), "ps", p, scratch_ / ("state" + std::to_string(p)));
  }
  Status begin(int servers) {
    servers_.resize(static_cast<size_t>(servers));
    for (int p = 0; p < servers; ++p) start(p);
    cells_ = std::make_unique<Cells>(*runtime_, servers);
    DTG_TRY(cells_->status);
    Session::Options options;
    options.connect_timeout_ns = 20 * kSecond;
    DTG_ASSIGN(session_, Session::connect(runtime_, at(0), cells_->graph, options));
    return run({}, cells_->clear, nullptr, -1);
  }
  Status run(std::span<const Value> fetches, std::span<const NodeId> targets, std::vector<Tensor>* got, int cell) {
    Tensor fed;
    const Tensor* feed = &fed;
    RunArgs args{{}, {}, fetches, targets, 30 * kSecond};
    if (cell >= 0) {
      fed = Tensor::ints(DType::i32, std::vector<int64_t>{cell}).take();
      args.feeds = {&cells_->index, 1};
      args.feed_tensors = {&feed, 1};
    }
    std::vector<Tensor> fetched(fetches.size());
    DTG_TRY(session_->run(args, fetched));
    if (got) *got = std::move(fetched);
    return {};
  }
  Status step(int cell) { return run({}, cells_->add, nullptr, cell); }
  // Every cell below `count` is 1 on every server, all others 0; the weights are what momentum makes of that many steps.
  void expect_exactly(int count) {
    std::vector<Tensor> cells, weights;
    const Status status = run(cells_->read, {}, &cells, -1);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(run(cells_->weights, {}, &weights, -1).ok());
    float w = 0, m = 0;
    for (int i = 0; i < count; ++i) {
      m = m * 0.5f + static_cast<float>(i);
      w -= m * 0.001f;
    }
    for (size_t p = 0; p < cells.size(); ++p) {
      for (int i = 0; i < Cells::kCount; ++i)
        ASSERT_EQ(cells[p].as<int64_t>()[i], i < count ? 1 : 0) << "seed " << seed_ << ", cell " << i << " of ps " << p;
      EXPECT_NEAR(weights[p].as<float>()[0], w, 1e-3f * std::abs(w)) << "seed " << seed_;
    }
  }

  const unsigned seed_;
  std::mt19937 random_;
  Scratch scratch_;
  Ref<Runtime> runtime_;
  std::unique_ptr<Cells> cells_;
  std::vector<std::unique_ptr<ServerProcess>> servers_;
  Ref<Session> session_;
};

TEST_F(Recovery, NothingIsLostOrDoubledByTwentyKills) {
  const Status began = begin(2);
  ASSERT_TRUE(began.ok()) << began.message();
  std::atomic<bool> over{false};
  std::thread killer([&] {
    for (int i = 0; i < 20; ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution<int>(1'000, 150'000)(random_)));
      const int p = static_cast<int>(random_() % 2);
      servers_[static_cast<size_t>(p)]->kill();
      start(p);
    }
    over = true;
  });
  int count = 0;
  for (; count < Cells::kCount && !over; ++count) {
    const Status status = step(count);
    EXPECT_TRUE(status.ok()) << "seed " << seed_ << ", step " << count << ": " << status.message();
    if (!status.ok()) break;
  }
  killer.join();
  std::printf("%d steps through 20 kills\n", count);
  expect_exactly(count);
}

// What another process is using is not touched.
TEST_F(Recovery, OneServerAtATime) {
  ASSERT_TRUE(begin(1).ok());
  Server::Options options;
  options.cluster = ClusterSpec::parse("ps=unix:" + (scratch_ / "other")).take();
  options.job = "ps";
  options.state_directory = scratch_ / "state0";
  const auto second = Server::start(runtime_->host().take(), options, runtime_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Code::already_exists) << second.status().message();
}

}  // namespace
}  // namespace dtg
