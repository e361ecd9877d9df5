// Records of the log: they come back as they were, and whatever else a file holds is said to be none.
#include "cluster/commit_record.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace dtg {
namespace {

std::string encoded(const CommitRecord& commit) {
  std::string out = encode_commit_head(commit, commit.values.size());
  for (const Tensor& value : commit.values) {
    out += describe_value(value.dtype(), value.shape());
    out.append(static_cast<const char*>(value.data()), static_cast<size_t>(value.bytes()));
  }
  return out;
}

CommitRecord sample() {
  CommitRecord commit{12, 34, {56, 78, false}, 9, {}};
  commit.values.push_back(Tensor::of<float>(Shape::of({2, 2}), std::vector<float>{1, 2, 3, 4}).take());
  commit.values.push_back(Tensor::ints(DType::i32, std::vector<int64_t>{7, 8, 9}).take());
  commit.values.push_back(Tensor::allocate(DType::f64, Shape::of({0, 5})).take());
  commit.values.push_back(Tensor::scalar<bool>(true).take());
  return commit;
}

TEST(CommitRecords, ComeBack) {
  const CommitRecord commit = sample();
  const std::string bytes = encoded(commit);
  EXPECT_EQ(record_kind(bytes).value(), RecordKind::commit);
  CommitRecord back;
  const Status status = decode(bytes, back);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(back.number, 12u);
  EXPECT_EQ(back.writes, 34u);
  EXPECT_EQ(back.write.writer, 56u);
  EXPECT_EQ(back.write.sequence, 78u);
  EXPECT_EQ(back.phase, 9u);
  ASSERT_EQ(back.values.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(back.values[i].dtype(), commit.values[i].dtype());
    EXPECT_EQ(back.values[i].shape(), commit.values[i].shape());
    if (commit.values[i].bytes() > 0) {
      EXPECT_EQ(std::memcmp(back.values[i].data(), commit.values[i].data(), static_cast<size_t>(commit.values[i].bytes())), 0);
    }
  }
  LoggedWrites writes{99, "a graph", {{1, 0}, {4, 2}}, {5, 6, 7}}, again;
  ASSERT_TRUE(decode(encode(writes), again).ok());
  EXPECT_EQ(again.key, 99u);
  EXPECT_EQ(again.graph, "a graph");
  EXPECT_EQ(again.writes, writes.writes);
  ASSERT_EQ(again.fed.size(), 2u);
  EXPECT_EQ(again.fed[1].node, 4u);
  EXPECT_EQ(again.fed[1].output, 2u);
}

TEST(CommitRecords, CutOrChangedTheyAreRefusedOrHarmless) {
  const std::string bytes = encoded(sample());
  for (size_t length = 0; length < bytes.size(); ++length) {
    CommitRecord back;
    EXPECT_EQ(decode(std::string_view(bytes).substr(0, length), back).code(), Code::data_loss) << length;
  }
  std::mt19937 random(5);
  for (int round = 0; round < 20'000; ++round) {
    std::string bad = bytes;
    for (int changes = 1 + static_cast<int>(random() % 4); changes > 0; --changes) bad[random() % bad.size()] = static_cast<char>(random());
    CommitRecord back;
    (void)decode(bad, back).ok();
    LoggedWrites writes;
    (void)decode(bad, writes).ok();
  }
}

}  // namespace
}  // namespace dtg
