// Fake quantisation: zero stays zero, values land on steps, gradients go to values or bounds.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using one_op::as_vector;
using one_op::scalar;
using one_op::values;

TEST(FakeQuant, LandsOnStepsThatHoldZero) {
  OneOp one({ops::register_fake_quant});
  for (const auto& [low, high] : {std::pair{-1.0f, 2.0f}, {-0.33f, 5.1f}, {0.5f, 4.0f}, {-3.0f, -1.0f}}) {
    const Tensor x = values<float>({64}, one_op::ramp(64, -4, 6));
    const auto y = as_vector<float>(one.run("FakeQuantWithMinMaxVars", {x, scalar(low), scalar(high)}, {{"num_bits", 4}}).take()[0]);
    const float step = (high - low) / 15;
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i] / step, std::round(y[i] / step), 1e-4) << low << " " << high;
    EXPECT_EQ(as_vector<float>(one.run("FakeQuantWithMinMaxVars", {scalar(0.0f), scalar(low), scalar(high)}).take()[0])[0], 0.0f);
    const Tensor twice = values<float>({64}, y);
    const auto again =
        as_vector<float>(one.run("FakeQuantWithMinMaxVars", {twice, scalar(low), scalar(high)}, {{"num_bits", 4}}).take()[0]);
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(again[i], y[i], 1e-5);
  }
  // With 8 bits from 0 to 25.5 a step is 0.1.
  const auto fixed = as_vector<float>(
      one.run("FakeQuantWithMinMaxArgs", {values<float>({3}, {-100, 0.1f, 100})}, {{"min", 0.0}, {"max", 25.5}}).take()[0]);
  EXPECT_NEAR(fixed[0], 0, 1e-6);
  EXPECT_NEAR(fixed[1], 0.1f, 1e-6);
  EXPECT_NEAR(fixed[2], 25.5f, 1e-5);
}

TEST(FakeQuant, GradientsGoToValuesOrBounds) {
  OneOp one({ops::register_fake_quant});
  const Tensor dy = values<float>({2, 2}, {1, 2, 4, 8}), x = values<float>({2, 2}, {-5, 0, 0.5f, 7});
  auto flow = one.run("FakeQuantWithMinMaxVarsPerChannelGradient", {dy, x, values<float>({2}, {-1, -1}), values<float>({2}, {1, 1})});
  ASSERT_TRUE(flow.ok()) << flow.status().message();
  EXPECT_EQ(as_vector<float>(flow.value()[0]), (std::vector<float>{0, 2, 4, 0}));
  EXPECT_EQ(as_vector<float>(flow.value()[1]), (std::vector<float>{1, 0}));
  EXPECT_EQ(as_vector<float>(flow.value()[2]), (std::vector<float>{0, 8}));
  EXPECT_EQ(one.run("FakeQuantWithMinMaxArgs", {x}, {{"num_bits", 17}}).status().code(), Code::invalid_argument);
  EXPECT_EQ(one.run("FakeQuantWithMinMaxArgs", {x}, {{"min", 1.0}, {"max", 1.0}}).status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace dtg
