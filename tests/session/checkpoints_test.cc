// Checkpoints over disks that stand still or are full: training goes on, sets stay as they were, and what another's library reads in a
// set is what was saved. Going on and what does not fit: tests/abi/checkpoint_test.cc.
#include "session/checkpoints.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "judge.h"
#include "nn/optimizer.h"
#include "passing_disk.h"
#include "scratch.h"

namespace dtg {
namespace {

// A disk whose files say what the test wants them to.
class OddDisk final : public PassingDisk {
 public:
  std::atomic<bool> full{false};
  std::atomic<bool> still{false};
  std::atomic<int> standing{0};  // writers that wait
  void let_go() {
    const std::lock_guard lock(mutex_);
    still = false;
    gone_.notify_all();
  }
  Result<std::unique_ptr<FileWriter>> open_new(const std::string& path) override {
    DTG_ASSIGN(auto file, PassingDisk::open_new(path));
    return std::unique_ptr<FileWriter>(new Writer(*this, std::move(file)));
  }
  Result<int64_t> free_bytes(const std::string& path) override {
    return full ? Result<int64_t>(int64_t{12}) : PassingDisk::free_bytes(path);
  }

 private:
  class Writer final : public FileWriter {
   public:
    Writer(OddDisk& disk, std::unique_ptr<FileWriter> file) : disk_(disk), file_(std::move(file)) {}
    Status append(std::string_view bytes) override {
      std::unique_lock lock(disk_.mutex_);
      ++disk_.standing;
      disk_.gone_.wait(lock, [this] { return !disk_.still; });
      --disk_.standing;
      return file_->append(bytes);
    }
    Status reserve(int64_t bytes) override { return file_->reserve(bytes); }
    Status sync() override { return file_->sync(); }
    Status close() override { return file_->close(); }

   private:
    OddDisk& disk_;
    const std::unique_ptr<FileWriter> file_;
  };
  std::mutex mutex_;
  std::condition_variable gone_;
};

// (w - 3)^2 with Adam, whose sets go to that disk.
struct Trainer {
  explicit Trainer(OddDisk& on, Checkpoints::Options options) : disk(on) {
    Runtime::Options how;
    how.compute_threads = 1;
    how.disk = &disk;
    how.log = &quiet;
    runtime = Runtime::create(how).take();
    graph = Graph::create(&runtime->ops()).take();
    model = make_ref<Model>(graph, 1);
    Build build(*graph);
    w = model->add_variable({.name = "w", .shape = Shape::of({1000}), .initializer = Initializer::constant(1)}).take();
    const Value off = build.op("Sub", {w.read, build.scalar(DType::f32, 3)});
    const Value loss = build.op("Sum", {build.op("Mul", {off, off}), build.ints({0})});
    Optimizer adam;
    adam.kind = Optimizer::Kind::adam;
    train = minimize(*model, loss, adam).take().train;
    session = Session::connect(runtime, "local", graph, {}).take();
    sets = Checkpoints::open(session, model, std::move(options)).take();
  }
  void step() {
    const Status status = session->run({.feeds = {}, .feed_tensors = {}, .fetches = {}, .targets = {&train, 1}}, {});
    ASSERT_TRUE(status.ok()) << status.message();
  }
  float value() {
    Tensor out;
    EXPECT_TRUE(session->run({.feeds = {}, .feed_tensors = {}, .fetches = {&w.read, 1}, .targets = {}}, {&out, 1}).ok());
    return out.as<float>()[0];
  }
  Status wait() { return sets->wait(Deadline::never()); }

  // Keeps what was written, by whatever thread.
  struct Quiet final : LogSink {
    void write(LogLevel, std::string_view, std::string_view message) override {
      const std::lock_guard lock(mutex);
      lines += std::string(message) + "\n";
    }
    bool has(const std::string& part) {
      const std::lock_guard lock(mutex);
      return lines.find(part) != std::string::npos;
    }
    std::mutex mutex;
    std::string lines;
  } quiet;
  OddDisk& disk;
  Ref<Runtime> runtime;
  Ref<Graph> graph;
  Ref<Model> model;
  NamedVariable w;
  NodeId train = kNoNode;
  Ref<Session> session;
  Ref<Checkpoints> sets;
};

TEST(Checkpoints, StepsGoOnWhileTheDiskStandsStill) {
  const Scratch scratch;
  OddDisk disk;
  Trainer trainer(disk, {.directory = scratch / "sets", .every_steps = 1});
  ASSERT_TRUE(trainer.sets->resume().ok());
  trainer.step();
  disk.still = true;
  EXPECT_TRUE(trainer.sets->reached(1).value());
  const float then = trainer.value();
  while (disk.standing == 0) {
  }
  for (int64_t step = 2; step < 50; ++step) {
    trainer.step();
    EXPECT_FALSE(trainer.sets->reached(step).value());
  }
  const float now = trainer.value();
  EXPECT_NE(now, then);
  const Clock& clock = trainer.runtime->clock();
  for (const Status& late :
       {trainer.sets->wait(Deadline::after(clock, 1'000'000)), trainer.sets->start(50, Deadline::after(clock, 1'000'000))}) {
    EXPECT_EQ(late.code(), Code::deadline_exceeded);
    EXPECT_EQ(late.origin().task + ", " + late.origin().phase, "/job:localhost/replica:0/task:0, save");
  }
  disk.let_go();
  ASSERT_TRUE(trainer.wait().ok());
  // What it was when the save began, not when it was written.
  ASSERT_EQ(trainer.sets->restore("").value().step, 1);
  EXPECT_EQ(trainer.value(), then);
}

TEST(Checkpoints, AFullDiskEndsNothing) {
  const Scratch scratch;
  OddDisk disk;
  Trainer trainer(disk, {.directory = scratch / "sets", .every_steps = 2});
  ASSERT_TRUE(trainer.sets->resume().ok());
  for (int64_t step = 1; step <= 6; ++step) {
    disk.full = step == 4;
    trainer.step();
    ASSERT_TRUE(trainer.sets->reached(step).ok());
    const Status status = trainer.wait();
    if (step != 4 && step != 5) {
      EXPECT_TRUE(status.ok()) << status.message();
      continue;
    }
    EXPECT_EQ(status.code(), Code::resource_exhausted);
    EXPECT_NE(status.message().find("12 are free"), std::string::npos) << status.message();
    CheckpointDirectory there(disk, system_random(), scratch / "sets");
    EXPECT_EQ(restore_newest(disk, there, OnDamage::fail).value().manifest.id.step, 2);
    EXPECT_EQ(there.list().value().size(), 1u);
  }
  EXPECT_EQ(trainer.sets->restore("").value().step, 6);
  EXPECT_NE(trainer.sets->status().text().find("\"saves\":2,\"failures\":1"), std::string::npos) << trainer.sets->status().text();
}

// A host that goes on from step 30 and counts from 1 again: what it trains is saved all the same, under the model's count.
TEST(Checkpoints, ACountThatBeginsAnewIsFollowed) {
  const Scratch scratch;
  OddDisk disk;
  const Checkpoints::Options options = {.directory = scratch / "sets", .keep = 100, .every_steps = 10};
  const auto saves = [](Trainer& trainer, int64_t from, int64_t to) {
    std::vector<int64_t> at;
    for (int64_t step = from; step <= to; ++step) {
      trainer.step();
      if (trainer.sets->reached(step).value()) at.push_back(step);
      EXPECT_TRUE(trainer.wait().ok());
    }
    return at;
  };
  {
    Trainer trainer(disk, options);
    ASSERT_EQ(trainer.sets->resume().value().step, 0);
    EXPECT_EQ(saves(trainer, 1, 30), (std::vector<int64_t>{10, 20, 30}));
    EXPECT_FALSE(trainer.quiet.has("and is told to be at"));
    trainer.sets->let_go();
  }
  Trainer trainer(disk, options);
  const auto resumed = trainer.sets->resume();
  ASSERT_TRUE(resumed.ok()) << resumed.status().message();
  ASSERT_EQ(resumed.value().step, 30);
  EXPECT_EQ(saves(trainer, 1, 25), (std::vector<int64_t>{10, 20}));
  EXPECT_TRUE(trainer.quiet.has("training was at step 30 and is told to be at 1"));
  EXPECT_EQ(trainer.sets->restore("").value().step, 50) << "the model's count";
  // At the multiple itself, and however far the model's count is from the host's.
  EXPECT_EQ(saves(trainer, 20, 30), (std::vector<int64_t>{20, 30}));
  ASSERT_TRUE(trainer.sets->start(31, Deadline::never()).ok());
  ASSERT_TRUE(trainer.wait().ok());
  EXPECT_EQ(saves(trainer, 32, 40), (std::vector<int64_t>{40}));
}

TEST(Checkpoints, SlotsAndStepsAreSavedAsSuch) {
  const Scratch scratch;
  OddDisk disk;
  Trainer trainer(disk, {.directory = scratch / "sets", .shards = 3});
  ASSERT_TRUE(trainer.sets->resume().ok());
  trainer.step();
  ASSERT_TRUE(trainer.sets->start(1, Deadline::never()).ok());
  ASSERT_TRUE(trainer.wait().ok());
  CheckpointDirectory there(disk, system_random(), scratch / "sets");
  const auto set = restore_newest(disk, there, OnDamage::fail).take();
  ASSERT_EQ(set.manifest.shards.size(), 3u);
  const ManifestTensor* const slot = set.manifest.find("w/Adam_1");
  ASSERT_TRUE(slot);
  EXPECT_EQ(slot->role, TensorRole::slot);
  EXPECT_EQ(slot->of, "w");
  EXPECT_EQ(slot->slot, "Adam_1");
  EXPECT_EQ(slot->shard, set.manifest.find("w")->shard);
  EXPECT_EQ(set.manifest.find("global_step")->role, TensorRole::step);
  EXPECT_EQ(set.find("global_step")->as<int64_t>()[0], 1);
  const Verdict verdict = judge("tests/checkpoint/training_set_check.py", there.path_of(set.manifest.id));
  if (verdict == Verdict::absent) GTEST_SKIP() << "no Python with tests/requirements.txt; see tests/judge.h";
  EXPECT_EQ(verdict, Verdict::fine);
}

}  // namespace
}  // namespace dtg
