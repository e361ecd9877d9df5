// MatMul and the batched products: what is refused, what is empty, broadcasting, wraparound, the fused op.
#include <gtest/gtest.h>

#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using one_op::as_vector;
using one_op::values;

class MatMulTest : public ::testing::Test {
 protected:
  OneOp one_{ops::register_matmul};
};

TEST_F(MatMulTest, RefusesWhatDoesNotFit) {
  const Tensor a = values<float>({2, 3}, std::vector<float>(6, 1.0f)), b = values<float>({2, 3}, std::vector<float>(6, 1.0f));
  for (auto known : {OneOp::Known::values, OneOp::Known::shapes, OneOp::Known::nothing}) {
    const OneOp::Options options{.known = known};
    EXPECT_EQ(one_.run("MatMul", {a, b}, {}, options).status().code(), Code::invalid_argument);
    EXPECT_EQ(one_.run("BatchMatMulV2", {a, b}, {}, options).status().code(), Code::invalid_argument);
    EXPECT_TRUE(one_.run("MatMul", {a, b}, {{"transpose_b", true}}, options).ok());
  }
}

TEST_F(MatMulTest, EmptyInnerDimensionGivesZeros) {
  const Tensor a = values<float>({2, 0}, std::vector<float>()), b = values<float>({0, 3}, std::vector<float>());
  auto product = one_.run("MatMul", {a, b});
  ASSERT_TRUE(product.ok()) << product.status().message();
  EXPECT_EQ(as_vector<float>(product.value()[0]), std::vector<float>(6, 0.0f));
}

TEST_F(MatMulTest, IntegersWrapAround) {
  const Tensor a = values<int32_t>({1, 2}, {INT32_MAX, 1}), b = values<int32_t>({2, 1}, {2, 3});
  auto product = one_.run("MatMul", {a, b});
  ASSERT_TRUE(product.ok()) << product.status().message();
  EXPECT_EQ(as_vector<int32_t>(product.value()[0]), (std::vector<int32_t>{1}));
}

TEST_F(MatMulTest, BatchDimensionsBroadcastBothWays) {
  const Tensor x = values<float>({2, 1, 1, 2}, {1, 2, 3, 4}), y = values<float>({3, 2, 1}, {1, 1, 10, 1, 0, 5});
  auto product = one_.run("BatchMatMulV2", {x, y});
  ASSERT_TRUE(product.ok()) << product.status().message();
  EXPECT_EQ(product.value()[0].shape().text(), "[2,3,1,1]");
  EXPECT_EQ(as_vector<float>(product.value()[0]), (std::vector<float>{3, 12, 10, 7, 34, 20}));
}

TEST_F(MatMulTest, FusedAddsTheBiasAndCutsBelowZero) {
  const Tensor a = values<float>({1, 2}, {1, 2}), b = values<float>({2, 2}, {1, -1, 1, -1}), bias = values<float>({2}, {0.5f, 1.0f});
  auto linear = one_.run("_FusedMatMul", {a, b, bias});
  auto relu = one_.run("_FusedMatMul", {a, b, bias}, {{"activation", "Relu"}});
  ASSERT_TRUE(linear.ok() && relu.ok());
  EXPECT_EQ(as_vector<float>(linear.value()[0]), (std::vector<float>{3.5f, -2.0f}));
  EXPECT_EQ(as_vector<float>(relu.value()[0]), (std::vector<float>{3.5f, 0.0f}));
  const Tensor wrong = values<float>({1}, {0.0f});
  EXPECT_EQ(one_.run("_FusedMatMul", {a, b, wrong}).status().code(), Code::invalid_argument);
}

TEST_F(MatMulTest, ThreadsDoNotChangeABit) {
  const Tensor x = values<float>({8, 96, 128}, one_op::ramp(8 * 96 * 128, -1, 1));
  const Tensor y = values<float>({8, 128, 112}, one_op::ramp(8 * 128 * 112, -2, 1));
  auto a = one_.run("BatchMatMulV2", {x, y}), b = one_.run("BatchMatMulV2", {x, y}, {}, {.threads = 3});
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_TRUE(one_op::bit_equal(a.value()[0], b.value()[0]));
}

}  // namespace
}  // namespace dtg
