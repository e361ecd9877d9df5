// Convolution, pooling and bias over images: what is refused and with which code, ties and NaN in the maximum,
// sizes known only when the step runs, and the same bits for any number of threads.
#include <gtest/gtest.h>

#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using one_op::as_vector;
using one_op::values;
using List = std::vector<int64_t>;

class ImageTest : public ::testing::Test {
 protected:
  Tensor image(std::initializer_list<int64_t> dims) { return values<float>(dims, one_op::ramp(one_op::shape(dims).count(), -1.0f, 1.0f)); }
  Code code(std::string_view op, std::initializer_list<Tensor> in, std::initializer_list<Attr> attrs) {
    return one_.run(op, in, attrs).status().code();
  }
  OneOp one_{ops::register_conv, ops::register_pool, ops::register_bias, ops::register_unary};
};

TEST_F(ImageTest, ConvolutionRefusesWhatItCannotDo) {
  const Tensor x = image({1, 4, 4, 2}), f = image({3, 3, 2, 2});
  const List ones{1, 1, 1, 1};
  EXPECT_EQ(code("Conv2D", {x, f}, {{"strides", ones}, {"padding", "SAME"}}), Code::ok);
  EXPECT_EQ(code("Conv2D", {x, f}, {{"strides", List{1, 1, 1}}, {"padding", "SAME"}}), Code::invalid_argument);
  EXPECT_EQ(code("Conv2D", {x, f}, {{"strides", List{1, 0, 1, 1}}, {"padding", "SAME"}}), Code::invalid_argument);
  EXPECT_EQ(code("Conv2D", {x, f}, {{"strides", List{2, 1, 1, 1}}, {"padding", "SAME"}}), Code::unimplemented);
  EXPECT_EQ(code("Conv2D", {x, f}, {{"strides", ones}, {"padding", "EXPLICIT"}}), Code::invalid_argument);
  EXPECT_EQ(code("Conv2D", {image({1, 2, 2, 2}), f}, {{"strides", ones}, {"padding", "VALID"}}), Code::invalid_argument);
  EXPECT_EQ(code("Conv2D", {image({1, 4, 4, 3}), f}, {{"strides", ones}, {"padding", "SAME"}}), Code::invalid_argument);
}

// What the sizes say need not be known before the step.
TEST_F(ImageTest, BackpropsTakeSizesFromTheStep) {
  const Tensor x = image({2, 5, 6, 3}), f = image({3, 2, 3, 4}), dy = image({2, 3, 3, 4});
  const std::initializer_list<Attr> attrs = {{"strides", List{1, 2, 2, 1}}, {"padding", "SAME"}};
  const Tensor x_size = values<int32_t>({4}, {2, 5, 6, 3}), f_size = values<int32_t>({4}, {3, 2, 3, 4});
  for (auto known : {OneOp::Known::shapes, OneOp::Known::nothing}) {
    auto early = one_.run("Conv2DBackpropInput", {x_size, f, dy}, attrs);
    auto late = one_.run("Conv2DBackpropInput", {x_size, f, dy}, attrs, {.known = known});
    ASSERT_TRUE(early.ok() && late.ok()) << late.status().message();
    EXPECT_EQ(late.value()[0].shape().text(), "[2,5,6,3]");
    for (int64_t i = 0; i < x.count(); ++i) {
      ASSERT_NEAR(early.value()[0].as<float>()[i], late.value()[0].as<float>()[i], 1e-5);
    }
    auto filter = one_.run("Conv2DBackpropFilter", {x, f_size, dy}, attrs, {.known = known});
    ASSERT_TRUE(filter.ok()) << filter.status().message();
    const Tensor wrong = values<int32_t>({4}, {3, 2, 3, 5});
    EXPECT_EQ(one_.run("Conv2DBackpropFilter", {x, wrong, dy}, attrs, {.known = known}).status().code(), Code::invalid_argument);
    const Tensor huge = values<int32_t>({4}, {-1, 2, 3, 4});
    EXPECT_EQ(one_.run("Conv2DBackpropFilter", {x, huge, dy}, attrs, {.known = known}).status().code(), Code::invalid_argument);
  }
}

TEST_F(ImageTest, FusedConvolutionMatchesTheChain) {
  const Tensor x = image({2, 6, 6, 3}), f = image({3, 3, 3, 5}), bias = values<float>({5}, {0.5f, -0.5f, 0, 1, -1});
  const std::initializer_list<Attr> plain = {{"strides", List{1, 1, 1, 1}}, {"padding", "SAME"}};
  auto y = one_.run("Conv2D", {x, f}, plain);
  ASSERT_TRUE(y.ok());
  auto biased = one_.run("BiasAdd", {y.value()[0], bias});
  auto fused = one_.run("_FusedConv2D", {x, f, bias}, {{"strides", List{1, 1, 1, 1}}, {"padding", "SAME"}, {"activation", "Relu"}});
  ASSERT_TRUE(biased.ok() && fused.ok()) << fused.status().message();
  for (int64_t i = 0; i < fused.value()[0].count(); ++i) {
    ASSERT_NEAR(fused.value()[0].as<float>()[i], std::max(biased.value()[0].as<float>()[i], 0.0f), 1e-5);
  }
}

// To the bit, whatever the windows: overlapping or apart, channels last or first, few channels or many.
TEST_F(ImageTest, FusedPoolingGradientMatchesTheChain) {
  struct Case {
    List size, stride;
    const char* format;
  };
  const Case cases[] = {{{1, 2, 2, 1}, {1, 2, 2, 1}, "NHWC"}, {{1, 3, 2, 1}, {1, 2, 1, 1}, "NHWC"}, {{1, 1, 2, 3}, {1, 1, 2, 2}, "NCHW"}};
  for (const Case& k : cases) {
    const std::initializer_list<Attr> attrs = {{"ksize", k.size}, {"strides", k.stride}, {"padding", "SAME"}, {"data_format", k.format}};
    const Tensor x = image({2, 6, 6, 19});
    auto y = one_.run("MaxPool", {x}, attrs);
    ASSERT_TRUE(y.ok()) << y.status().message();
    const Tensor& pooled = y.value()[0];
    const Tensor dy = image({pooled.shape().dim(0), pooled.shape().dim(1), pooled.shape().dim(2), pooled.shape().dim(3)});
    auto dx = one_.run("MaxPoolGrad", {x, pooled, dy}, attrs);
    ASSERT_TRUE(dx.ok());
    auto chain = one_.run("ReluGrad", {dx.value()[0], x});
    auto fused = one_.run("_MaxPoolGradRelu", {x, pooled, dy}, attrs);
    ASSERT_TRUE(chain.ok() && fused.ok()) << chain.status().message() << fused.status().message();
    EXPECT_EQ(as_vector<float>(fused.value()[0]), as_vector<float>(chain.value()[0])) << k.format;
    EXPECT_NE(as_vector<float>(fused.value()[0]), as_vector<float>(dx.value()[0])) << "no maximum was negative";
  }
}

TEST_F(ImageTest, TheFirstMaximumTakesTheGradientAndNaNIsPassedOver) {
  const std::initializer_list<Attr> attrs = {{"ksize", List{1, 2, 2, 1}}, {"strides", List{1, 2, 2, 1}}, {"padding", "VALID"}};
  const Tensor ties = values<float>({1, 2, 2, 1}, {3, 3, 3, 3}), pooled = values<float>({1, 1, 1, 1}, {3}),
               dy = values<float>({1, 1, 1, 1}, {7});
  auto dx = one_.run("MaxPoolGrad", {ties, pooled, dy}, attrs);
  ASSERT_TRUE(dx.ok()) << dx.status().message();
  EXPECT_EQ(as_vector<float>(dx.value()[0]), (std::vector<float>{7, 0, 0, 0}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  auto y = one_.run("MaxPool", {values<float>({1, 2, 2, 1}, {1, nan, 2, 0})}, attrs);
  ASSERT_TRUE(y.ok());
  EXPECT_EQ(as_vector<float>(y.value()[0]), (std::vector<float>{2}));
}

// Overlapping windows, so that gradients meet in one pixel; wide and odd channel counts.
TEST_F(ImageTest, FastAndPlainPoolingAgree) {
  for (int64_t channels : {1, 17, 40}) {
    const std::initializer_list<Attr> attrs = {{"ksize", List{1, 3, 2, 1}}, {"strides", List{1, 2, 1, 1}}, {"padding", "SAME"}};
    const Tensor x = image({2, 7, 6, channels}), dy = image({2, 4, 6, channels});
    std::vector<double> wide_x(x.values<float>().begin(), x.values<float>().end());
    std::vector<double> wide_dy(dy.values<float>().begin(), dy.values<float>().end());
    const Tensor x64 = values<double>({2, 7, 6, channels}, wide_x), dy64 = values<double>({2, 4, 6, channels}, wide_dy);
    auto y = one_.run("MaxPool", {x}, attrs), y64 = one_.run("MaxPool", {x64}, attrs);
    ASSERT_TRUE(y.ok() && y64.ok());
    auto dx = one_.run("MaxPoolGrad", {x, y.value()[0], dy}, attrs), dx64 = one_.run("MaxPoolGrad", {x64, y64.value()[0], dy64}, attrs);
    auto avg = one_.run("AvgPool", {x}, attrs), avg64 = one_.run("AvgPool", {x64}, attrs);
    ASSERT_TRUE(dx.ok() && dx64.ok() && avg.ok() && avg64.ok());
    for (int64_t i = 0; i < x.count(); ++i) ASSERT_NEAR(dx.value()[0].as<float>()[i], dx64.value()[0].as<double>()[i], 1e-5);
    for (int64_t i = 0; i < dy.count(); ++i) {
      ASSERT_EQ(y.value()[0].as<float>()[i], static_cast<float>(y64.value()[0].as<double>()[i]));
      ASSERT_NEAR(avg.value()[0].as<float>()[i], avg64.value()[0].as<double>()[i], 1e-5);
    }
  }
}

TEST_F(ImageTest, ThreadsDoNotChangeABit) {
  const Tensor x = image({8, 24, 24, 32});
  const std::initializer_list<Attr> window = {{"ksize", List{1, 3, 3, 1}}, {"strides", List{1, 2, 2, 1}}, {"padding", "SAME"}};
  for (const char* op : {"MaxPool", "AvgPool"}) {
    auto a = one_.run(op, {x}, window), b = one_.run(op, {x}, window, {.threads = 3});
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_TRUE(one_op::bit_equal(a.value()[0], b.value()[0]));
  }
  auto a = one_.run("BiasAddGrad", {x}), b = one_.run("BiasAddGrad", {x}, {}, {.threads = 3});
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_TRUE(one_op::bit_equal(a.value()[0], b.value()[0]));
}

TEST_F(ImageTest, LongBiasGradientsAreAccurate) {
  constexpr int64_t kRows = 2'000'000;
  const std::vector<float> numbers(kRows, 0.1f);
  const Attr nchw{"data_format", std::string("NCHW")};
  for (const int64_t images : {int64_t{1}, kRows / 2, kRows}) {
    auto planes = one_.run("BiasAddGrad", {values<float>({images, 1, 1, kRows / images}, numbers)}, {nchw});
    ASSERT_TRUE(planes.ok()) << planes.status().message();
    EXPECT_NEAR(planes.value()[0].as<float>()[0] / (0.1f * kRows), 1, 2e-5) << images;
  }
  auto y = one_.run("BiasAddGrad", {values<float>({kRows, 1}, numbers)});
  ASSERT_TRUE(y.ok());
  EXPECT_NEAR(y.value()[0].as<float>()[0] / (0.1f * kRows), 1, 2e-5);
}

// Whole numbers wrap around, bit by bit, in both layouts.
TEST_F(ImageTest, BiasGradientsOfWholeNumbersAreExact) {
  const std::vector<int64_t> numbers = {INT64_MAX, 1, -7, (int64_t{1} << 53) + 1};
  const int64_t sum = static_cast<int64_t>(static_cast<uint64_t>(INT64_MAX) + 1 - 7 + (uint64_t{1} << 53) + 1);
  const Attr nchw{"data_format", std::string("NCHW")};
  auto planes = one_.run("BiasAddGrad", {values<int64_t>({2, 1, 1, 2}, numbers)}, {nchw});
  auto rows = one_.run("BiasAddGrad", {values<int64_t>({4, 1}, numbers)});
  ASSERT_TRUE(planes.ok() && rows.ok());
  EXPECT_EQ(planes.value()[0].as<int64_t>()[0], sum);
  EXPECT_EQ(rows.value()[0].as<int64_t>()[0], sum);
}

TEST_F(ImageTest, MeansOfLargeWindowsAreAccurate) {
  constexpr int64_t kSide = 1500;
  const std::vector<float> numbers(kSide * kSide, 0.1f);
  const List high{1, kSide, kSide, 1}, box{1, 15, 100, kSide, 1};
  auto flat =
      one_.run("AvgPool", {values<float>({1, kSide, kSide, 1}, numbers)}, {{"ksize", high}, {"strides", high}, {"padding", "VALID"}});
  ASSERT_TRUE(flat.ok()) << flat.status().message();
  EXPECT_NEAR(flat.value()[0].as<float>()[0], 0.1f, 1e-7);
  auto deep =
      one_.run("AvgPool3D", {values<float>({1, 15, 100, kSide, 1}, numbers)}, {{"ksize", box}, {"strides", box}, {"padding", "VALID"}});
  ASSERT_TRUE(deep.ok()) << deep.status().message();
  EXPECT_NEAR(deep.value()[0].as<float>()[0], 0.1f, 1e-7);
}

}  // namespace
}  // namespace dtg
