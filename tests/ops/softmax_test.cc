// Softmax and the cross entropies: labels out of range, infinities, rows longer than a vector, threads.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using one_op::as_vector;
using one_op::values;

class SoftmaxTest : public ::testing::Test {
 protected:
  OneOp one_{ops::register_softmax};
};

TEST_F(SoftmaxTest, LabelsMustBeClasses) {
  const Tensor logits = values<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  for (int32_t bad : {-1, 3}) {
    auto result = one_.run("SparseSoftmaxCrossEntropyWithLogits", {logits, values<int32_t>({2}, {0, bad})});
    EXPECT_EQ(result.status().code(), Code::invalid_argument);
    EXPECT_NE(result.status().message().find(std::to_string(bad)), std::string::npos) << result.status().message();
  }
}

TEST_F(SoftmaxTest, LargeLogitsNeitherOverflowNorVanish) {
  const float inf = std::numeric_limits<float>::infinity();
  auto y = one_.run("Softmax", {values<float>({1, 3}, {1000, 1000, -inf})});
  auto log_y = one_.run("LogSoftmax", {values<float>({1, 2}, {-1000, 1000})});
  ASSERT_TRUE(y.ok() && log_y.ok());
  EXPECT_EQ(as_vector<float>(y.value()[0]), (std::vector<float>{0.5f, 0.5f, 0.0f}));
  EXPECT_EQ(as_vector<float>(log_y.value()[0]), (std::vector<float>{-2000.0f, 0.0f}));
}

TEST_F(SoftmaxTest, LongRowsAgreeWithDouble) {
  for (int64_t classes : {1, 15, 16, 33, 1000}) {
    const auto x = one_op::ramp(3 * classes, -8.0f, 8.0f);
    auto y = one_.run("Softmax", {values<float>({3, classes}, x)}, {}, {.in_place = true});
    auto want = one_.run("Softmax", {values<double>({3, classes}, std::vector<double>(x.begin(), x.end()))});
    ASSERT_TRUE(y.ok() && want.ok());
    for (int64_t i = 0; i < 3 * classes; ++i) {
      ASSERT_NEAR(y.value()[0].as<float>()[i], want.value()[0].as<double>()[i], 1e-6) << classes << " classes at " << i;
    }
  }
}

TEST_F(SoftmaxTest, ThreadsAndOverwritingDoNotChangeABit) {
  const Tensor logits = values<float>({900, 40}, one_op::ramp(36000, -3.0f, 5.0f));
  const Tensor labels = values<int64_t>({900}, std::vector<int64_t>(900, 7));
  auto a = one_.run("SparseSoftmaxCrossEntropyWithLogits", {logits, labels});
  auto b = one_.run("SparseSoftmaxCrossEntropyWithLogits", {logits, labels}, {}, {.threads = 3, .in_place = true});
  ASSERT_TRUE(a.ok() && b.ok());
  for (size_t o = 0; o < 2; ++o) EXPECT_TRUE(one_op::bit_equal(a.value()[o], b.value()[o]));
}

}  // namespace
}  // namespace dtg
