// A parameter server that keeps its state: killed at any moment and started anew, it goes on, and a session that was in the middle of a
// step hears nothing of it but the time it took. Every step adds 1 to a cell of its own, so that what is lost or doubled shows one by
// one. Moments come from a seed that is printed.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <random>
#include <thread>

#include "checkpoint/directory.h"
#include "cluster/saved_state.h"
#include "cluster/server.h"
#include "exec/variable.h"
#include "graph/build.h"
#include "process.h"
#include "scratch.h"
#include "seconds.h"
#include "session/async_run.h"

namespace dtg {
namespace {

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
      for (const Value each : {w, m})
        clear.push_back(b.node("AssignVariableOp", std::vector<Value>{each, b.constant(zeros(DType::f32, 1))}));
      add.push_back(b.node("ResourceScatterAdd", std::vector<Value>{cells, index, ones}));
      add.push_back(
          b.node("ResourceApplyMomentum", std::vector<Value>{w, m, b.scalar(DType::f32, 0.001), gradient, b.scalar(DType::f32, 0.5)}));
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

// Updates that come one after the other on different tasks are commits of their own: none waits for one that comes after it.
TEST_F(Recovery, AChainOfUpdatesFromTaskToTask) {
  servers_.resize(2);
  for (int p = 0; p < 2; ++p) start(p);
  const Ref<Graph> graph = Graph::create(&runtime_->ops()).take();
  Build b(*graph);
  std::vector<Value> v, reads;
  std::vector<NodeId> clear;
  for (int p = 0; p < 2; ++p) {
    graph->push_device("/job:ps/task:" + std::to_string(p));
    v.push_back(b.op("VarHandleOp", {}, {{"dtype", DType::f32}, {"shape", Shape()}, {"shared_name", std::string("v")}}));
    clear.push_back(b.node("AssignVariableOp", std::vector<Value>{v.back(), b.scalar(DType::f32, 0)}));
    (void)graph->pop_device();
  }
  constexpr int kLinks = 7;
  NodeId last = 0;
  for (int i = 0; i < kLinks; ++i) {
    graph->push_device("/job:ps/task:" + std::to_string(i % 2));
    const Value inputs[] = {v[static_cast<size_t>(i % 2)], b.scalar(DType::f32, 1)};
    const NodeId after[] = {last};
    const std::string name = "link" + std::to_string(i);
    NodeSpec link{.op = "AssignAddVariableOp", .name = name, .inputs = inputs};
    if (i > 0) link.controls = after;
    const auto added = graph->add(link);
    ASSERT_TRUE(added.ok()) << added.status().message();
    last = added.value();
    (void)graph->pop_device();
  }
  for (int p = 0; p < 2; ++p) reads.push_back(b.op("ReadVariableOp", {v[static_cast<size_t>(p)]}, {{"dtype", DType::f32}}));
  ASSERT_TRUE(b.status().ok()) << b.status().message();
  Session::Options options;
  options.connect_timeout_ns = 20 * kSecond;
  auto session = Session::connect(runtime_, at(0), graph, options);
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<Tensor> none, got(2);
  Status status = session.value()->run({{}, {}, {}, clear, 10 * kSecond}, none);
  ASSERT_TRUE(status.ok()) << status.message();
  status = session.value()->run({{}, {}, {}, {&last, 1}, 10 * kSecond}, none);
  ASSERT_TRUE(status.ok()) << status.message();
  status = session.value()->run({{}, {}, reads, {}, 10 * kSecond}, got);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(got[0].as<float>()[0], 4);
  EXPECT_EQ(got[1].as<float>()[0], 3);
}

// What a set is made of and what comes out of it: any type, any name, any container, any device, open shapes.
TEST(SavedStates, ComeBackAsTheyWere) {
  struct Sample {
    const char *device, *container, *name;
    Tensor value;
    PartialShape shape;
  };
  const auto numbers = [](DType dtype, std::vector<int64_t> list) { return Tensor::ints(dtype, list).take(); };
  Tensor odd = Tensor::allocate(DType::c128, Shape::of({2})).take();
  std::memset(odd.data(), 7, static_cast<size_t>(odd.bytes()));
  const std::vector<Sample> samples = {
      {"/device:CPU:0", "localhost", "w", numbers(DType::i64, {1, 2}), Shape::of({2})},
      {"/device:CPU:1", "localhost", "w", numbers(DType::i64, {3, 4}), Shape::of({2})},
      {"/device:CPU:0", "x\ny", "w", numbers(DType::i32, {5}), PartialShape::of_rank(1)},
      {"/device:CPU:0", "localhost", "__metadata__", numbers(DType::i32, {6}), PartialShape::unknown()},
      {"/device:CPU:0", "localhost", "\xff\xfe", numbers(DType::u8, {7}), Shape::of({1})},
      {"/device:CPU:0", "localhost", "hex:41", numbers(DType::u8, {8}), Shape::of({1})},
      {"/device:CPU:0", "localhost", "complex", odd, PartialShape::of_rank(1)},
      {"/device:CPU:0", "localhost", "nothing", Tensor::allocate(DType::f64, Shape::of({0, 3})).take(), PartialShape::of_rank(2)},
  };
  ResourceStore store, restored;
  Ledger ledger, known;
  ledger.enter({9, 5, false}, 2, invalid_argument("no, \xff"));
  ledger.restore(Ledger::Forgotten{{{11, 4}}, false});
  for (const Sample& sample : samples) {
    const Ref<Variable> variable = make_ref<Variable>(sample.name, sample.value.dtype(), sample.shape);
    ASSERT_TRUE(
        store.find_or_create(sample.device, sample.container, sample.name, "variable", [&] { return Ref<Resource>(variable); }).ok());
    ASSERT_EQ(variable->begin_assign(nullptr), Variable::Writing::yes);
    ASSERT_TRUE(variable->end_assign(sample.value).ok());
  }
  auto state = take_state(store, ledger);
  ASSERT_TRUE(state.ok()) << state.status().message();
  Scratch scratch;
  CheckpointDirectory sets(system_disk(), system_random(), scratch / "sets");
  const SetId id = sets.begin(3).take();
  auto receipt = sets.write(id, {}, state.value().tensors);
  ASSERT_TRUE(receipt.ok()) << receipt.status().message();
  const ShardReceipt receipts[] = {receipt.take()};
  const Status published = sets.publish(id, receipts, state.value().extras);
  ASSERT_TRUE(published.ok()) << published.message();
  auto set = restore_newest(system_disk(), sets, OnDamage::fail);
  ASSERT_TRUE(set.ok()) << set.status().message();
  const Status put = put_state(set.value(), restored, known);
  ASSERT_TRUE(put.ok()) << put.message();
  for (const Sample& sample : samples) {
    const Ref<Resource> found = restored.find(sample.device, sample.container, sample.name);
    ASSERT_TRUE(found) << sample.name;
    auto& variable = static_cast<Variable&>(*found);
    EXPECT_EQ(variable.declared_shape(), sample.shape) << sample.name;
    EXPECT_EQ(variable.dtype(), sample.value.dtype());
    Variable::Version* version = nullptr;
    ASSERT_EQ(variable.pin(&version, nullptr), Variable::Pinned::yes);
    EXPECT_EQ(version->tensor.shape(), sample.value.shape());
    EXPECT_EQ(std::memcmp(version->tensor.data(), sample.value.data(), static_cast<size_t>(sample.value.bytes())), 0) << sample.name;
    variable.unpin(version);
  }
  EXPECT_EQ(known.has({9, 5, true}, 2).status().code(), Code::invalid_argument);
  EXPECT_EQ(known.has({11, 3, true}, 0).status().code(), Code::failed_precondition);
  EXPECT_TRUE(known.has({11, 4, true}, 0).ok());
  EXPECT_TRUE(known.has({12, 1, true}, 0).ok()) << "nobody has forgotten this one";
}

// A set is due when the log has grown by as much as the last one took. Where the rows of writers did not count, a parameter server of a
// small model made a set of all of them again and again.
TEST(SavedStates, TakeAboutAsMuchAsTheySay) {
  for (const uint64_t rows : {0, 100, 5000}) {
    ResourceStore store;
    Ledger ledger;
    for (uint64_t row = 0; row < rows; ++row)
      ledger.enter({row % 7 + 1, row + 1, false}, 2, row % 10 == 0 ? aborted("the other one was first") : Status());
    auto state = take_state(store, ledger);
    ASSERT_TRUE(state.ok()) << state.status().message();
    Scratch scratch;
    CheckpointDirectory sets(system_disk(), system_random(), scratch / "sets");
    const SetId id = sets.begin(1).take();
    const ShardReceipt receipts[] = {sets.write(id, {}, {}).take()};
    ASSERT_TRUE(sets.publish(id, receipts, state.value().extras).ok());
    int64_t taken = 0;
    for (const auto& file : std::filesystem::recursive_directory_iterator(scratch / "sets"))
      if (file.is_regular_file()) taken += static_cast<int64_t>(file.file_size());
    EXPECT_LT(state.value().bytes, 2 * taken) << rows;
    EXPECT_GT(2 * state.value().bytes + 2000, taken) << rows;
  }
}

// An earlier release said only that there were some.
TEST(SavedStates, OfWritersThatAreNotNamedAnybodyMayBeOne) {
  RestoredSet set;
  set.manifest.metadata = {{"writers forgotten", "yes"}};
  set.manifest.rows = {{"0000000000000007", 3, 3, 0, ""}};
  ResourceStore store;
  Ledger known;
  const Status put = put_state(set, store, known);
  ASSERT_TRUE(put.ok()) << put.message();
  EXPECT_TRUE(known.has({7, 3, true}, 0).value());
  EXPECT_TRUE(known.has({7, 4, true}, 0).ok());
  EXPECT_EQ(known.has({7, 2, true}, 0).status().code(), Code::failed_precondition);
  EXPECT_EQ(known.has({8, 1, true}, 0).status().code(), Code::failed_precondition);
  auto again = take_state(store, known);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value().extras.metadata, (std::vector<std::pair<std::string, std::string>>{{"writers forgotten", "yes"}}));
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
