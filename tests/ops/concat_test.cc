// Joining and splitting undo each other, along every axis and whatever is known beforehand.
#include <gtest/gtest.h>

#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using one_op::as_vector;
using one_op::bit_equal;
using one_op::scalar;
using one_op::values;

constexpr OneOp::Known kAll[] = {OneOp::Known::values, OneOp::Known::shapes, OneOp::Known::nothing};

TEST(Concat, SplitUndoesIt) {
  OneOp one({ops::register_concat});
  const Tensor x = values<float>({2, 3, 4}, one_op::ramp(24, 0, 1));
  for (auto known : kAll) {
    for (int32_t axis = -3; axis < 3; ++axis) {
      const int64_t dim = x.shape().dim(axis < 0 ? axis + 3 : axis);
      const Tensor sizes = values<int64_t>({3}, {1, -1, 0});
      auto parts = one.run("SplitV", {x, sizes, scalar(axis)}, {{"num_split", 3}}, {.known = known});
      ASSERT_TRUE(parts.ok()) << parts.status().message();
      EXPECT_EQ(parts.value()[1].count(), 24 / dim * (dim - 1));
      auto whole = one.run("ConcatV2", {parts.value()[0], parts.value()[1], parts.value()[2], scalar(axis)}, {}, {.known = known});
      ASSERT_TRUE(whole.ok()) << whole.status().message();
      EXPECT_TRUE(bit_equal(whole.value()[0], x)) << "axis " << axis;
    }
  }
}

TEST(Concat, SplitVRefuses) {
  OneOp one({ops::register_concat});
  const Tensor x = values<float>({4}, {1, 2, 3, 4});
  for (auto known : kAll) {
    for (auto sizes : {std::pair<int64_t, int64_t>{1, 2}, {-1, -1}, {-2, 6}, {-1, 5}, {INT64_MAX, INT64_MAX}, {INT64_MIN, 4}}) {
      const auto result = one.run("SplitV", {x, values<int64_t>({2}, {sizes.first, sizes.second}), scalar<int32_t>(0)}, {{"num_split", 2}},
                                  {.known = known});
      EXPECT_EQ(result.status().code(), Code::invalid_argument) << sizes.first << " " << sizes.second;
    }
  }
}

TEST(Concat, ManyPartsAndThreads) {
  OneOp one({ops::register_concat});
  std::vector<Tensor> parts;
  for (int i = 0; i < 40; ++i) parts.push_back(values<float>({100, 1 + i}, one_op::ramp(100 * (1 + i), float(i), float(i + 1))));
  parts.push_back(scalar<int32_t>(1));
  const Tensor a = one.run("ConcatV2", parts, {}, {.threads = 1}).take()[0];
  const Tensor b = one.run("ConcatV2", parts, {}, {.threads = 3}).take()[0];
  EXPECT_TRUE(bit_equal(a, b));
  EXPECT_EQ(a.text(), "float32[100,820]");
  EXPECT_EQ(a.as<float>()[820 + 1], parts[1].as<float>()[2]);
}

TEST(Pack, UnpackUndoesIt) {
  OneOp one({ops::register_concat});
  const Tensor x = values<int16_t>({2, 2}, {1, 2, 3, 4}), y = values<int16_t>({2, 2}, {5, 6, 7, 8});
  for (auto known : kAll) {
    for (int64_t axis = -3; axis < 3; ++axis) {
      const Tensor both = one.run("Pack", {x, y}, {{"axis", axis}}, {.known = known}).take()[0];
      auto parts = one.run("Unpack", {both}, {{"axis", axis}, {"num", 2}}, {.known = known});
      ASSERT_TRUE(parts.ok()) << parts.status().message();
      EXPECT_TRUE(bit_equal(parts.value()[0], x) && bit_equal(parts.value()[1], y)) << "axis " << axis;
    }
  }
  EXPECT_EQ(one.run("Pack", {x, y}, {{"axis", 3}}).status().code(), Code::invalid_argument);
  EXPECT_EQ(one.run("Unpack", {x}, {{"axis", 0}, {"num", 3}}, {.known = OneOp::Known::nothing}).status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace dtg
