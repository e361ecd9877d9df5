// Picking rows, adding rows, and ops whose result's shape depends on the data. Indices are hostile here.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using one_op::as_vector;
using one_op::bit_equal;
using one_op::scalar;
using one_op::values;

constexpr OneOp::Known kAll[] = {OneOp::Known::values, OneOp::Known::shapes, OneOp::Known::nothing};

TEST(Gather, BatchesAndAxes) {
  OneOp one({ops::register_gather});
  const Tensor params = values<float>({2, 3, 2}, one_op::ramp(12, 0, 1));
  const float* p = params.as<float>();
  for (auto known : kAll) {
    auto out =
        one.run("GatherV2", {params, values<int64_t>({2, 2}, {2, 0, 1, 1}), scalar<int32_t>(1)}, {{"batch_dims", -1}}, {.known = known});
    ASSERT_TRUE(out.ok()) << out.status().message();
    EXPECT_EQ(out.value()[0].text(), "float32[2,2,2]");
    EXPECT_EQ(as_vector<float>(out.value()[0]), (std::vector<float>{p[4], p[5], p[0], p[1], p[8], p[9], p[8], p[9]}));
    out = one.run("GatherV2", {params, scalar<int32_t>(1), scalar<int64_t>(-1)}, {}, {.known = known});
    EXPECT_EQ(as_vector<float>(out.value()[0]), (std::vector<float>{p[1], p[3], p[5], p[7], p[9], p[11]}));
  }
}

TEST(Gather, BadIndicesAreErrorsInEveryKernel) {
  OneOp one({ops::register_gather});
  const Tensor x = values<float>({3}, {1, 2, 3});
  for (int64_t bad : {int64_t{3}, int64_t{-1}, INT64_MAX, INT64_MIN, int64_t{1} << 32}) {
    for (auto known : kAll) {
      const OneOp::Options options{.known = known};
      const Tensor index = values<int64_t>({1}, {bad}), tuple = values<int64_t>({1, 1}, {bad}), update = values<float>({1}, {1});
      EXPECT_EQ(one.run("GatherV2", {x, index, scalar<int32_t>(0)}, {}, options).status().code(), Code::invalid_argument);
      EXPECT_EQ(one.run("Gather", {x, index}, {}, options).status().code(), Code::invalid_argument);
      EXPECT_EQ(one.run("GatherNd", {x, tuple}, {}, options).status().code(), Code::invalid_argument);
      EXPECT_EQ(one.run("ScatterNd", {tuple, update, values<int64_t>({1}, {3})}, {}, options).status().code(), Code::invalid_argument);
      const auto ignored = one.run("GatherNd", {x, tuple}, {{"bad_indices_policy", "IGNORE"}}, options);
      ASSERT_TRUE(ignored.ok()) << ignored.status().message();
      EXPECT_EQ(as_vector<float>(ignored.value()[0]), std::vector<float>{0});
      const auto sum = one.run("UnsortedSegmentSum", {update, index, scalar<int32_t>(3)}, {}, options);
      EXPECT_EQ(sum.ok(), bad < 0) << "negative ids are dropped, large ones refused";
    }
  }
  EXPECT_EQ(one.run("GatherV2", {values<float>({0, 2}, {}), values<int32_t>({1}, {0}), scalar<int32_t>(0)}).status().code(),
            Code::invalid_argument);
}

TEST(Gather, SameBitsForAnyNumberOfThreads) {
  OneOp one({ops::register_gather});
  std::vector<int32_t> ids(3000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i * 7919 % 50);
  const Tensor x = values<float>({3000, 130}, one_op::ramp(3000 * 130, -1, 1)), index = values<int32_t>({3000}, ids);
  const Tensor tuples = index.reshaped(one_op::shape({3000, 1}));
  const auto both = [&](std::string_view op, std::initializer_list<Tensor> inputs) {
    const Tensor a = one.run(op, inputs, {}, {.threads = 1}).take()[0], b = one.run(op, inputs, {}, {.threads = 3}).take()[0];
    return bit_equal(a, b);
  };
  EXPECT_TRUE(both("GatherV2", {x, index, scalar<int32_t>(0)}));
  EXPECT_TRUE(both("GatherNd", {x, tuples}));
  EXPECT_TRUE(both("UnsortedSegmentSum", {x, index, scalar<int32_t>(50)}));
  EXPECT_TRUE(both("ScatterNd", {tuples, x, values<int32_t>({2}, {50, 130})}));
}

TEST(SegmentSum, FillsGapsWithZeros) {
  OneOp one({ops::register_gather});
  const Tensor x = values<int8_t>({3, 1}, {100, 100, 3});
  const Tensor sum = one.run("SegmentSum", {x, values<int32_t>({3}, {0, 0, 2})}).take()[0];
  EXPECT_EQ(as_vector<int8_t>(sum), (std::vector<int8_t>{-56, 0, 3})) << "integers wrap around";
  EXPECT_EQ(one.run("SegmentSum", {x, values<int64_t>({3}, {0, 1, INT64_MAX})}).status().code(), Code::invalid_argument);
}

TEST(Where, CoordinatesInOrder) {
  OneOp one({ops::register_gather});
  const Tensor found = one.run("Where", {values<float>({2, 2}, {0.0f, NAN, -0.0f, 2})}).take()[0];
  EXPECT_EQ(found.text(), "int64[2,2]");
  EXPECT_EQ(as_vector<int64_t>(found), (std::vector<int64_t>{0, 1, 1, 1}));
  EXPECT_EQ(one.run("Where", {values<bool>({0, 3}, std::initializer_list<bool>{})}).take()[0].text(), "int64[0,2]");
}

TEST(Unique, FirstOccurrenceAndNaN) {
  OneOp one({ops::register_gather});
  auto out = one.run("UniqueWithCounts", {values<float>({6}, {2, NAN, 0.0f, -0.0f, NAN, 2})}, {{"out_idx", DType::i64}});
  ASSERT_TRUE(out.ok()) << out.status().message();
  EXPECT_EQ(as_vector<int64_t>(out.value()[1]), (std::vector<int64_t>{0, 1, 2, 2, 3, 0})) << "a NaN equals nothing, zeros are equal";
  EXPECT_EQ(as_vector<int64_t>(out.value()[2]), (std::vector<int64_t>{2, 1, 2, 1}));
  std::vector<int64_t> many(5000);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<int64_t>(i % 1000) << 40;
  out = one.run("Unique", {values<int64_t>({5000}, many)});
  EXPECT_EQ(out.value()[0].count(), 1000);
  EXPECT_EQ(out.value()[1].as<int32_t>()[4321], 321);
  EXPECT_EQ(one.run("Unique", {values<int32_t>({0}, {})}).take()[0].count(), 0);
}

}  // namespace
}  // namespace dtg
