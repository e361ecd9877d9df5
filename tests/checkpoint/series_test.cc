// Series of checkpoints: completeness, mixed attempts, other numbers of tasks, pruning, damage.
#include "checkpoint/series.h"

#include <gtest/gtest.h>

#include "scratch.h"

namespace dtg {
namespace {

NamedTensor number(const std::string& name, float value) { return {name, Tensor::scalar(value).take()}; }

Status save(CheckpointSeries& series, CheckpointPart part, float value) {
  const NamedTensor tensors[] = {number("v" + std::to_string(part.part), value)};
  return series.save(part, tensors, {{"note", "n"}});
}

TEST(CheckpointSeries, ASetCountsWhenItIsWhole) {
  const Scratch scratch;
  CheckpointSeries series(system_disk(), scratch / "run/checkpoints");
  EXPECT_EQ(series.steps().value(), std::vector<int64_t>{});
  EXPECT_EQ(series.restore_latest(true).status().code(), Code::not_found);
  ASSERT_TRUE(save(series, {100, 0, 2, 7}, 1).ok());
  EXPECT_EQ(series.steps().value(), std::vector<int64_t>{});
  const Status torn = series.restore(100).status();
  EXPECT_EQ(torn.code(), Code::not_found);
  EXPECT_NE(torn.message().find("1 of 2 parts"), std::string::npos) << torn.message();
  ASSERT_TRUE(save(series, {100, 1, 2, 7}, 2).ok());
  ASSERT_TRUE(save(series, {20, 0, 1, 5}, 3).ok());
  ASSERT_TRUE(save(series, {300, 2, 3, 9}, 4).ok());
  EXPECT_EQ(series.steps().value(), (std::vector<int64_t>{20, 100}));

  auto latest = series.restore_latest(false);
  ASSERT_TRUE(latest.ok()) << latest.status().message();
  EXPECT_EQ(latest.value().step, 100);
  ASSERT_EQ(latest.value().content.tensors.size(), 2u);
  EXPECT_EQ(latest.value().content.find("v1")->as<float>()[0], 2.0f);
  EXPECT_EQ(latest.value().content.metadata[2].first, "note");
}

TEST(CheckpointSeries, TwoAttemptsAreNotMixed) {
  const Scratch scratch;
  CheckpointSeries series(system_disk(), scratch.path());
  ASSERT_TRUE(save(series, {50, 0, 1, 1}, 0).ok());
  ASSERT_TRUE(save(series, {100, 0, 2, 7}, 1).ok());
  ASSERT_TRUE(save(series, {100, 1, 2, 8}, 2).ok());
  EXPECT_EQ(series.restore(100).status().code(), Code::data_loss);
  EXPECT_EQ(series.restore_latest(false).status().code(), Code::data_loss);
  EXPECT_EQ(series.restore_latest(true).value().step, 50);
  // The second attempt completes, and all is well.
  ASSERT_TRUE(save(series, {100, 0, 2, 8}, 1).ok());
  EXPECT_EQ(series.restore_latest(false).value().step, 100);
  // Two tasks that saved the same variable.
  const NamedTensor same[] = {number("w", 1)};
  ASSERT_TRUE(series.save({200, 0, 2, 1}, same).ok());
  ASSERT_TRUE(series.save({200, 1, 2, 1}, same).ok());
  EXPECT_EQ(series.restore(200).status().code(), Code::data_loss);
}

TEST(CheckpointSeries, DamageFallsBackOnlyWhenAsked) {
  const Scratch scratch;
  CheckpointSeries series(system_disk(), scratch.path());
  ASSERT_TRUE(save(series, {1, 0, 1, 1}, 1).ok());
  ASSERT_TRUE(save(series, {2, 0, 1, 2}, 2).ok());
  const std::string name = "step-000000000002-00001-of-00001.safetensors";
  std::string bytes = scratch.read(name);
  ASSERT_FALSE(bytes.empty());
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  scratch.write(name, bytes);
  EXPECT_EQ(series.restore_latest(false).status().code(), Code::data_loss);
  auto fallen = series.restore_latest(true);
  ASSERT_TRUE(fallen.ok());
  EXPECT_EQ(fallen.value().step, 1);
  MemoryBudget none(0);
  EXPECT_EQ(series.restore(1, {.budget = &none}).status().code(), Code::resource_exhausted);
  EXPECT_EQ(save(series, {-1, 0, 1, 1}, 1).code(), Code::invalid_argument);
  EXPECT_EQ(save(series, {1, 1, 1, 1}, 1).code(), Code::invalid_argument);
}

TEST(CheckpointSeries, PruningKeepsTheNewestWholeOnes) {
  const Scratch scratch;
  CheckpointSeries series(system_disk(), scratch.path());
  for (int64_t step = 1; step <= 5; ++step) ASSERT_TRUE(save(series, {step, 0, 1, 1}, 1).ok());
  ASSERT_TRUE(save(series, {2, 0, 3, 1}, 1).ok());  // torn and old
  ASSERT_TRUE(save(series, {6, 0, 2, 1}, 1).ok());  // torn and new: perhaps still being written
  scratch.write("step-000000000001-00001-of-00002.safetensors.partial", "x");
  scratch.write("step-000000000001-notes.txt", "not ours");
  scratch.write("other.safetensors", "not ours");
  scratch.write("step-1-1-of-1.safetensors", "not our spelling");
  ASSERT_TRUE(series.prune(2).ok());
  EXPECT_EQ(series.steps().value(), (std::vector<int64_t>{4, 5}));
  auto names = system_disk().list(scratch.path()).take();
  EXPECT_EQ(names.size(), 6u) << "steps 4 and 5, the new torn one, and three files of others";
  EXPECT_EQ(series.prune(0).code(), Code::invalid_argument);
  ASSERT_TRUE(series.prune(9).ok());
  EXPECT_EQ(series.steps().value().size(), 2u);
}

}  // namespace
}  // namespace dtg
