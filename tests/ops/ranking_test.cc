// Ops that sort, search and count: ties, NaN, the ends of ranges, threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using one_op::as_vector;
using one_op::bit_equal;
using one_op::ramp;
using one_op::scalar;
using one_op::values;

TEST(TopK, TiesInOrderAndNanLast) {
  OneOp one({ops::register_top_k});
  for (auto known : {OneOp::Known::values, OneOp::Known::nothing}) {
    auto top = one.run("TopKV2", {values<float>({6}, {1, NAN, 3, 3, -INFINITY, 1}), scalar<int64_t>(6)}, {}, {.known = known});
    ASSERT_TRUE(top.ok()) << top.status().message();
    EXPECT_EQ(as_vector<int32_t>(top.value()[1]), (std::vector<int32_t>{2, 3, 0, 5, 4, 1}));
    EXPECT_EQ(one.run("TopKV2", {values<float>({2}, {1, 2}), scalar<int64_t>(INT64_MAX)}, {}, {.known = known}).status().code(),
              Code::invalid_argument);
  }
  auto middle = one.run("NthElement", {values<float>({2, 3}, {NAN, 2, 1, 7, 7, 7}), scalar<int32_t>(1)});
  EXPECT_EQ(as_vector<float>(middle.value()[0]), (std::vector<float>{2, 7}));
}

TEST(TopK, IsTheSameForAnyNumberOfThreads) {
  OneOp one({ops::register_top_k});
  const std::vector<Tensor> inputs = {values<float>({300, 200}, ramp(60'000, -5, 5)), scalar<int32_t>(17)};
  const auto a = one.run("TopKV2", inputs, {}, {.threads = 1}), b = one.run("TopKV2", inputs, {}, {.threads = 3});
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_TRUE(bit_equal(a.value()[0], b.value()[0]) && bit_equal(a.value()[1], b.value()[1]));
}

// A few are found another way than many; both as a stable sort has them, ties and NaN too.
TEST(TopK, FewAndManyAsAStableSort) {
  OneOp one({ops::register_top_k});
  std::vector<float> row(60);
  for (size_t i = 0; i < row.size(); ++i) row[i] = i % 11 == 5 ? NAN : static_cast<float>(i * 7919 % 13);
  std::vector<int32_t> expected(row.size());
  std::iota(expected.begin(), expected.end(), 0);
  std::ranges::stable_sort(expected, [&](int32_t a, int32_t b) {
    const float x = row[static_cast<size_t>(a)], y = row[static_cast<size_t>(b)];
    return std::isnan(x) || std::isnan(y) ? !std::isnan(x) && std::isnan(y) : x > y;
  });
  for (const int32_t k : {0, 1, 2, 31, 32, 33, 59, 60}) {
    const auto top = one.run("TopKV2", {values<float>({1, 60}, row), scalar<int32_t>(k)});
    ASSERT_TRUE(top.ok()) << top.status().message();
    EXPECT_EQ(as_vector<int32_t>(top.value()[1]), std::vector<int32_t>(expected.begin(), expected.begin() + k)) << k;
  }
}

TEST(UniqueV2, SlicesAlongAnAxis) {
  OneOp one({ops::register_gather});
  const Tensor x = values<float>({2, 4}, {1, 0, 1, NAN, 2, 5, 2, NAN}), axis = values<int64_t>({1}, {-1});
  for (auto known : {OneOp::Known::values, OneOp::Known::nothing}) {
    auto out = one.run("UniqueWithCountsV2", {x, axis}, {}, {.known = known});
    ASSERT_TRUE(out.ok()) << out.status().message();
    EXPECT_EQ(out.value()[0].text(), "float32[2,3]");
    EXPECT_EQ(as_vector<int32_t>(out.value()[1]), (std::vector<int32_t>{0, 1, 0, 2}));
    EXPECT_EQ(as_vector<int32_t>(out.value()[2]), (std::vector<int32_t>{2, 1, 1}));
  }
  auto rest = one.run("ListDiff", {values<float>({4}, {1, NAN, -0.0f, 3}), values<float>({3}, {0, 3, NAN})});
  EXPECT_EQ(as_vector<int32_t>(rest.value()[1]), (std::vector<int32_t>{0, 1})) << "NaN equals nothing, -0 equals 0";
}

TEST(Counting, TheEndsOfTheRange) {
  OneOp one({ops::register_bincount, ops::register_search});
  auto bins = one.run("HistogramFixedWidth",
                      {values<int32_t>({5}, {INT32_MIN, 0, 4, 5, INT32_MAX}), values<int32_t>({2}, {0, 5}), scalar<int32_t>(5)});
  EXPECT_EQ(as_vector<int32_t>(bins.value()[0]), (std::vector<int32_t>{2, 0, 0, 0, 3}));
  EXPECT_EQ(one.run("HistogramFixedWidth", {values<float>({1}, {NAN}), values<float>({2}, {0, 5}), scalar<int32_t>(5)}).status().code(),
            Code::invalid_argument);
  const Tensor row = values<int64_t>({1, 4}, {1, 3, 3, 7}), wanted = values<int64_t>({1, 3}, {INT64_MIN, 3, INT64_MAX});
  EXPECT_EQ(as_vector<int32_t>(one.run("LowerBound", {row, wanted}).value()[0]), (std::vector<int32_t>{0, 1, 4}));
  EXPECT_EQ(as_vector<int32_t>(one.run("UpperBound", {row, wanted}).value()[0]), (std::vector<int32_t>{0, 3, 4}));
}

TEST(Einsum, EqualsTheSumWrittenOut) {
  OneOp one({ops::register_einsum});
  const std::vector<float> x = ramp(2 * 3 * 4, -1, 2), y = ramp(4 * 2 * 5, -2, 1);
  std::vector<float> expected(3 * 5 * 2);
  for (int b = 0; b < 2; ++b) {
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 5; ++j) {
        float sum = 0;
        for (int k = 0; k < 4; ++k) sum += x[(b * 3 + i) * 4 + k] * y[(k * 2 + b) * 5 + j];
        expected[(i * 5 + j) * 2 + b] = sum;
      }
    }
  }
  for (auto known : {OneOp::Known::values, OneOp::Known::nothing}) {
    auto out =
        one.run("Einsum", {values<float>({2, 3, 4}, x), values<float>({4, 2, 5}, y)}, {{"equation", "bik,kbj->ijb"}}, {.known = known});
    ASSERT_TRUE(out.ok()) << out.status().message();
    const auto got = as_vector<float>(out.value()[0]);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5);
  }
  // A label that stands at one operand alone is summed there; one that stands twice in the output is a diagonal.
  const Tensor square = values<int32_t>({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(as_vector<int32_t>(one.run("Einsum", {square, square}, {{"equation", "ij,kl->ik"}}).value()[0]),
            (std::vector<int32_t>{9, 21, 21, 49}));
  EXPECT_EQ(as_vector<int32_t>(one.run("Einsum", {values<int32_t>({2}, {5, 6})}, {{"equation", "i->ii"}}).value()[0]),
            (std::vector<int32_t>{5, 0, 0, 6}));
  EXPECT_EQ(as_vector<int32_t>(
                one.run("Einsum", {values<int32_t>({2, 0}, {}), values<int32_t>({0, 1}, {})}, {{"equation", "ij,jk->ik"}}).value()[0]),
            (std::vector<int32_t>{0, 0}));
}

}  // namespace
}  // namespace dtg
