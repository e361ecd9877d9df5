// Event files: framing, checksums, flushing, failures. Where there is a Python with tests/requirements.txt,
// TensorBoard's own readers judge the files (events_check.py).
#include "monitor/event_file.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "base/crc32c.h"
#include "judge.h"
#include "monitor/png.h"
#include "passing_disk.h"
#include "scratch.h"

namespace dtg {
namespace {

// The payloads of a record file; empty when any length or checksum is wrong.
std::vector<std::string> records_of(const std::string& bytes) {
  std::vector<std::string> records;
  size_t at = 0;
  while (at < bytes.size()) {
    uint64_t length = 0;
    uint32_t length_crc = 0, payload_crc = 0;
    if (bytes.size() - at < 16) return {};
    std::memcpy(&length, bytes.data() + at, 8);
    std::memcpy(&length_crc, bytes.data() + at + 8, 4);
    if (mask_crc(crc32c(std::string_view(bytes).substr(at, 8))) != length_crc) return {};
    if (bytes.size() - at - 16 < length) return {};
    records.push_back(bytes.substr(at + 12, length));
    std::memcpy(&payload_crc, bytes.data() + at + 12 + length, 4);
    if (mask_crc(crc32c(records.back())) != payload_crc) return {};
    at += 16 + length;
  }
  return records;
}

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

TEST(EventFile, FirstRecordAndName) {
  const Scratch scratch;
  SteppedClock clock;
  auto opened = EventWriter::open(system_disk(), clock, scratch / "run/worker_0", {.host = "box", .process_id = 42});
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const std::string path = opened.value()->path();
  EXPECT_EQ(name_of(path), "events.out.tfevents.1700000000.box.42.0");
  // A second writer in the same second gets a file of its own.
  auto again = EventWriter::open(system_disk(), clock, scratch / "run/worker_0", {.host = "box", .process_id = 42});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(name_of(again.value()->path()), "events.out.tfevents.1700000000.box.42.1");

  const auto records = records_of(scratch.read("run/worker_0/" + name_of(path)));
  ASSERT_EQ(records.size(), 2u);  // the version and the session's start
  ProtoReader reader(records[0]);
  ProtoField field;
  ASSERT_TRUE(reader.next(field).value());
  EXPECT_EQ(field.number, 1u);
  EXPECT_EQ(field.real64(), 1.7e9);
  ASSERT_TRUE(reader.next(field).value());
  EXPECT_EQ(field.number, 3u);
  EXPECT_EQ(field.bytes, "brain.Event:2");
}

TEST(EventFile, FlushesByTimeAndBySize) {
  const Scratch scratch;
  SteppedClock clock;
  auto opened = EventWriter::open(system_disk(), clock, scratch.path(), {.host = "box", .process_id = 1});
  ASSERT_TRUE(opened.ok());
  EventWriter& writer = *opened.value();
  const std::string name = name_of(writer.path());
  ASSERT_TRUE(writer.scalar("loss", 1, 0.5).ok());
  EXPECT_EQ(records_of(scratch.read(name)).size(), 2u);
  clock.now_ns += 3'000'000'000;
  ASSERT_TRUE(writer.scalar("loss", 2, 0.25).ok());
  EXPECT_EQ(records_of(scratch.read(name)).size(), 4u);
  ASSERT_TRUE(writer.text("note", 2, std::string(70000, 'x')).ok());
  EXPECT_EQ(records_of(scratch.read(name)).size(), 5u);
  ASSERT_TRUE(writer.scalar("loss", 3, 0.125).ok());
  ASSERT_TRUE(writer.close().ok());
  EXPECT_EQ(records_of(scratch.read(name)).size(), 6u);
  EXPECT_EQ(writer.scalar("loss", 4, 0).code(), Code::failed_precondition);
  EXPECT_TRUE(writer.close().ok());
}

// A disk that is full from the n-th append on.
class FullDisk final : public PassingDisk {
 public:
  explicit FullDisk(int appends) : left_(appends) {}
  struct Writer final : FileWriter {
    Writer(std::unique_ptr<FileWriter> file, int& left) : file_(std::move(file)), left_(left) {}
    Status append(std::string_view bytes) override {
      return left_-- > 0 ? file_->append(bytes) : resource_exhausted("write: no space left on device");
    }
    Status reserve(int64_t bytes) override { return file_->reserve(bytes); }
    Status sync() override { return file_->sync(); }
    Status close() override { return file_->close(); }
    std::unique_ptr<FileWriter> file_;
    int& left_;
  };
  Result<std::unique_ptr<FileWriter>> open_new(const std::string& path) override {
    DTG_ASSIGN(auto file, system_disk().open_new(path));
    return std::unique_ptr<FileWriter>(new Writer(std::move(file), left_));
  }

 private:
  int left_;
};

TEST(EventFile, AFailureIsKeptAndNothingFollowsIt) {
  const Scratch scratch;
  FullDisk disk(3);
  auto opened = EventWriter::open(disk, system_clock(), scratch.path(), {.host = "box", .process_id = 1, .flush_every_ns = 0});
  ASSERT_TRUE(opened.ok());
  EventWriter& writer = *opened.value();
  EXPECT_TRUE(writer.scalar("a", 1, 1).ok());
  EXPECT_EQ(writer.scalar("a", 2, 1).code(), Code::resource_exhausted);
  EXPECT_EQ(writer.scalar("a", 3, 1).code(), Code::resource_exhausted);
  EXPECT_EQ(writer.close().code(), Code::resource_exhausted);
  EXPECT_EQ(records_of(scratch.read(name_of(writer.path()))).size(), 3u);
}

TEST(EventFile, WritersOfOneFolderNeverShareAFile) {
  const Scratch scratch;
  SteppedClock clock;
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 40; ++i) {
        auto opened = EventWriter::open(system_disk(), clock, scratch.path(), {.host = "box", .process_id = 1});
        failed += !opened.ok() || !opened.value()->scalar("loss", 1, 0.5).ok() || !opened.value()->close().ok();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed.load(), 0);
  const auto names = system_disk().list(scratch.path()).value();
  EXPECT_EQ(names.size(), 160u);
  for (const std::string& name : names) EXPECT_GE(records_of(scratch.read(name)).size(), 2u) << name;
}

TEST(EventFile, ImagesAreChecked) {
  const std::vector<uint8_t> pixels(12);
  EXPECT_TRUE(encode_png(2, 2, 3, pixels).ok());
  EXPECT_FALSE(encode_png(2, 2, 2, pixels).ok());
  EXPECT_FALSE(encode_png(2, 3, 3, pixels).ok());
  EXPECT_FALSE(encode_png(0, 2, 3, pixels).ok());
  EXPECT_FALSE(encode_png(1 << 20, 1 << 20, 3, pixels).ok());
}

// The run that events_check.py expects; the numbers stand in both places.
TEST(EventFile, TensorBoardReadsIt) {
  const Scratch scratch;
  auto opened = EventWriter::open(system_disk(), system_clock(), scratch / "chief");
  ASSERT_TRUE(opened.ok());
  EventWriter& writer = *opened.value();
  const Hyperparameter settings[] = {{"learning_rate", 0.25}, {"optimizer", std::string("adam")}, {"augment", true}};
  ASSERT_TRUE(writer.hyperparameters(settings).ok());
  std::vector<float> values;
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<float>(i % 100) * 0.01f);
  values.push_back(NAN);
  std::vector<uint8_t> pixels(static_cast<size_t>(4 * 6 * 3));
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 3);
  for (int step = 0; step < 20; ++step) {
    ASSERT_TRUE(writer.scalar("train/loss", step, 1.0 / (step + 1)).ok());
    ASSERT_TRUE(writer.scalar("train/accuracy", step, step * 0.05).ok());
    if (step % 5 != 0) continue;
    ASSERT_TRUE(writer.histogram("weights", step, values).ok());
  }
  ASSERT_TRUE(writer.histogram("constant", 1, std::vector<float>(7, 2.5f)).ok());
  ASSERT_TRUE(writer.text("note", 3, "**hello** dtg").ok());
  ASSERT_TRUE(writer.image("pixels", 4, 4, 6, 3, pixels).ok());
  // node { name: "ps/w" op: "VarHandleOp" device: "/job:ps/task:0/device:CPU:0" } and one that reads it.
  ProtoWriter graph;
  size_t node = graph.open(1);
  graph.bytes(1, "ps/w");
  graph.bytes(2, "VarHandleOp");
  graph.bytes(4, "/job:ps/task:0/device:CPU:0");
  graph.close(node);
  node = graph.open(1);
  graph.bytes(1, "read");
  graph.bytes(2, "ReadVariableOp");
  graph.bytes(3, "ps/w");
  graph.bytes(4, "/job:worker/task:0/device:CPU:0");
  graph.close(node);
  ASSERT_TRUE(writer.graph_def(graph.text()).ok());
  ASSERT_TRUE(writer.finished(true).ok());
  ASSERT_TRUE(writer.close().ok());

  // A restart from step 10 in a second file: the older steps from 10 on are to vanish.
  auto killed = EventWriter::open(system_disk(), system_clock(), scratch / "resumed", {.host = "a"});
  ASSERT_TRUE(killed.ok());
  for (int step = 0; step < 15; ++step) ASSERT_TRUE(killed.value()->scalar("loss", step, step).ok());
  ASSERT_TRUE(killed.value()->close().ok());
  auto resumed = EventWriter::open(system_disk(), system_clock(), scratch / "resumed", {.host = "b", .resumed_at_step = 10});
  ASSERT_TRUE(resumed.ok());
  for (int step = 10; step < 12; ++step) ASSERT_TRUE(resumed.value()->scalar("loss", step, step + 100).ok());
  ASSERT_TRUE(resumed.value()->close().ok());

  const Verdict verdict = judge("tests/monitor/events_check.py", scratch.path());
  if (verdict == Verdict::absent) GTEST_SKIP() << "no Python with tests/requirements.txt; see tests/judge.h";
  EXPECT_EQ(verdict, Verdict::fine);
}

}  // namespace
}  // namespace dtg
