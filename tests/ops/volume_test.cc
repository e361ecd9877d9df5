// Depthwise and three-dimensional convolutions: the fast float32 loops against the plain float64 ones over drawn sizes, strides,
// dilations and paddings; the same bits for any number of threads; sizes that come with the step; pooling of volumes.
#include <gtest/gtest.h>

#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using one_op::as_vector;
using one_op::values;
using List = std::vector<int64_t>;

class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}
  int64_t between(int64_t low, int64_t high) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return low + static_cast<int64_t>((state_ >> 33) % static_cast<uint64_t>(high - low + 1));
  }

 private:
  uint64_t state_;
};

// The same numbers as floats and as doubles.
struct Pair {
  Tensor narrow, wide;
};

Pair drawn(const List& dims, Draws& draw) {
  const Shape shape = Shape::make(dims).take();
  std::vector<float> narrow(static_cast<size_t>(shape.count()));
  for (float& value : narrow) value = static_cast<float>(draw.between(-1000, 1000)) / 1000.0f;
  const std::vector<double> wide(narrow.begin(), narrow.end());
  return {Tensor::of<float>(shape, std::span<const float>(narrow)).take(), Tensor::of<double>(shape, std::span<const double>(wide)).take()};
}

Tensor numbers(const List& list) {
  const std::vector<int32_t> narrow(list.begin(), list.end());
  return values<int32_t>({static_cast<int64_t>(narrow.size())}, narrow);
}

class VolumeTest : public ::testing::Test {
 protected:
  // Runs an op both ways; the results, which must agree.
  void compare(std::string_view op, std::vector<Tensor> narrow, std::vector<Tensor> wide, std::span<const Attr> attrs) {
    auto one = one_.run(op, narrow, attrs, {}), many = one_.run(op, narrow, attrs, {.threads = 3}), truth = one_.run(op, wide, attrs, {});
    ASSERT_TRUE(one.ok() && many.ok() && truth.ok()) << one.status().message() << truth.status().message();
    ASSERT_EQ(one.value()[0].shape().text(), truth.value()[0].shape().text());
    EXPECT_TRUE(one_op::bit_equal(one.value()[0], many.value()[0])) << op;
    for (int64_t i = 0; i < one.value()[0].count(); ++i) {
      const double wanted = truth.value()[0].as<double>()[i];
      ASSERT_NEAR(one.value()[0].as<float>()[i], wanted, 2e-4 * std::max(1.0, std::abs(wanted))) << op << " at " << i;
    }
  }

  // One draw of a convolution: forward and both gradients. `ops` are the three names.
  void all_ways(const char* const (&names)[3], const List& image, const List& filter, std::span<const Attr> attrs, Draws& draw) {
    const Pair x = drawn(image, draw), f = drawn(filter, draw);
    auto y = one_.run(names[0], {{x.narrow, f.narrow}}, attrs, {});
    if (!y.ok()) return;  // the window does not fit
    ++fitted_;
    compare(names[0], {x.narrow, f.narrow}, {x.wide, f.wide}, attrs);
    const auto dims = y.value()[0].shape().dims();
    const Pair dy = drawn({dims.begin(), dims.end()}, draw);
    compare(names[1], {numbers(image), f.narrow, dy.narrow}, {numbers(image), f.wide, dy.wide}, attrs);
    compare(names[2], {x.narrow, numbers(filter), dy.narrow}, {x.wide, numbers(filter), dy.wide}, attrs);
  }

  OneOp one_{ops::register_conv, ops::register_pool};
  int fitted_ = 0;
};

TEST_F(VolumeTest, DepthwiseLoopsAgreeWithPlainOnes) {
  static const char* const kNames[3] = {"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput",
                                        "DepthwiseConv2dNativeBackpropFilter"};
  Draws draw(17);
  for (int i = 0; i < 120; ++i) {
    SCOPED_TRACE(i);
    const int64_t s = draw.between(1, 3), dy = draw.between(1, 3), dx = draw.between(1, 3), channels = draw.between(2, 40);
    const List image = {draw.between(1, 3), draw.between(1, 14), draw.between(1, 14), channels};
    const List filter = {draw.between(1, 4), draw.between(1, 5), channels, draw.between(1, 3)};
    const int64_t way = draw.between(0, 2);
    List pads;
    if (way == 2) pads = {0, 0, draw.between(0, 3), draw.between(0, 3), draw.between(0, 3), draw.between(0, 3), 0, 0};
    const Attr attrs[] = {{"strides", List{1, s, s, 1}},
                          {"dilations", List{1, dy, dx, 1}},
                          {"padding", way == 0   ? "SAME"
                                      : way == 1 ? "VALID"
                                                 : "EXPLICIT"},
                          {"explicit_paddings", pads}};
    all_ways(kNames, image, filter, attrs, draw);
  }
  EXPECT_GT(fitted_, 60);
}

TEST_F(VolumeTest, LargeDepthwiseWorkIsShared) {
  static const char* const kNames[3] = {"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput",
                                        "DepthwiseConv2dNativeBackpropFilter"};
  Draws draw(3);
  for (const int64_t repeat : {1, 2}) {
    for (const int64_t s : {1, 2}) {
      const Attr attrs[] = {{"strides", List{1, s, s, 1}}, {"padding", "SAME"}};
      all_ways(kNames, {3, 30, 29, 33}, {3, 3, 33, repeat}, attrs, draw);
    }
  }
  EXPECT_EQ(fitted_, 4);
}

// With a stride, input pixels fall into classes that see parts of the filter; some see none of it.
TEST_F(VolumeTest, StridedInputGradientsAgreeWithPlainOnes) {
  static const char* const kNames[3] = {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"};
  Draws draw(29);
  for (int i = 0; i < 100; ++i) {
    SCOPED_TRACE(i);
    const int64_t channels = draw.between(1, 20), way = draw.between(0, 2);
    const List image = {draw.between(1, 3), draw.between(1, 13), draw.between(1, 13), channels};
    const List filter = {draw.between(1, 5), draw.between(1, 5), channels, draw.between(1, 20)};
    List pads;
    if (way == 2) pads = {0, 0, draw.between(0, 4), draw.between(0, 4), draw.between(0, 4), draw.between(0, 4), 0, 0};
    const Attr attrs[] = {{"strides", List{1, draw.between(1, 4), draw.between(1, 4), 1}},
                          {"padding", way == 0   ? "SAME"
                                      : way == 1 ? "VALID"
                                                 : "EXPLICIT"},
                          {"explicit_paddings", pads}};
    all_ways(kNames, image, filter, attrs, draw);
  }
  EXPECT_GT(fitted_, 60);
}

TEST_F(VolumeTest, GroupsAgreeWithPlainLoops) {
  static const char* const kNames[3] = {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"};
  Draws draw(31);
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    const int64_t groups = draw.between(2, 4), depth = draw.between(2, 9), out = draw.between(1, 20);
    const List image = {draw.between(1, 3), draw.between(1, 13), draw.between(1, 13), groups * depth};
    const List filter = {draw.between(1, 4), draw.between(1, 4), depth, groups * out};
    const Attr attrs[] = {{"strides", List{1, draw.between(1, 2), draw.between(1, 3), 1}},
                          {"dilations", List{1, draw.between(1, 2), draw.between(1, 2), 1}},
                          {"padding", draw.between(0, 1) ? "SAME" : "VALID"}};
    all_ways(kNames, image, filter, attrs, draw);
  }
  EXPECT_GT(fitted_, 40);
}

// A convolution in groups of one channel takes the same loops.
TEST_F(VolumeTest, GroupsOfOneChannelAreDepthwise) {
  static const char* const kNames[3] = {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"};
  Draws draw(5);
  const Attr attrs[] = {{"strides", List{1, 1, 2, 1}}, {"padding", "SAME"}};
  all_ways(kNames, {2, 9, 10, 6}, {3, 2, 1, 12}, attrs, draw);
  EXPECT_EQ(fitted_, 1);
}

TEST_F(VolumeTest, VolumesAgreeWithPlainLoops) {
  static const char* const kNames[3] = {"Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"};
  Draws draw(23);
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    const int64_t channels = draw.between(1, 5);
    const List image = {draw.between(1, 3), draw.between(1, 7), draw.between(1, 7), draw.between(1, 7), channels};
    const List filter = {draw.between(1, 3), draw.between(1, 3), draw.between(1, 3), channels, draw.between(1, 9)};
    const Attr attrs[] = {{"strides", List{1, draw.between(1, 2), draw.between(1, 3), draw.between(1, 2), 1}},
                          {"dilations", List{1, draw.between(1, 2), draw.between(1, 2), draw.between(1, 2), 1}},
                          {"padding", draw.between(0, 1) ? "SAME" : "VALID"}};
    all_ways(kNames, image, filter, attrs, draw);
  }
  const Attr plain[] = {{"strides", List{1, 1, 1, 1, 1}}, {"padding", "SAME"}};
  all_ways(kNames, {2, 8, 12, 12, 8}, {3, 3, 3, 8, 20}, plain, draw);
  EXPECT_GT(fitted_, 30);
}

TEST_F(VolumeTest, SizesMayComeWithTheStep) {
  Draws draw(9);
  const Pair x = drawn({1, 4, 5, 2}, draw), f = drawn({2, 3, 2, 2}, draw), dy = drawn({1, 2, 3, 4}, draw);
  const Attr attrs[] = {{"strides", List{1, 2, 2, 1}}, {"padding", "SAME"}};
  const std::vector<Tensor> in = {numbers({1, 4, 5, 2}), f.narrow, dy.narrow};
  auto early = one_.run("DepthwiseConv2dNativeBackpropInput", in, attrs, {});
  auto late = one_.run("DepthwiseConv2dNativeBackpropInput", in, attrs, {.known = OneOp::Known::nothing});
  ASSERT_TRUE(early.ok() && late.ok()) << late.status().message();
  for (int64_t i = 0; i < early.value()[0].count(); ++i) ASSERT_NEAR(early.value()[0].as<float>()[i], late.value()[0].as<float>()[i], 1e-5);
  const std::vector<Tensor> wrong = {numbers({1, 4, 5, 3}), f.narrow, dy.narrow};
  EXPECT_EQ(one_.run("DepthwiseConv2dNativeBackpropInput", wrong, attrs, {.known = OneOp::Known::nothing}).status().code(),
            Code::invalid_argument);
  const Pair f3 = drawn({2, 1, 2, 2, 3}, draw), dy3 = drawn({1, 2, 3, 3, 3}, draw);
  const Attr plain[] = {{"strides", List{1, 1, 1, 1, 1}}, {"padding", "SAME"}};
  const std::vector<Tensor> in3 = {numbers({1, 2, 3, 3, 2}), f3.narrow, dy3.narrow};
  auto early3 = one_.run("Conv3DBackpropInputV2", in3, plain, {});
  auto late3 = one_.run("Conv3DBackpropInputV2", in3, plain, {.known = OneOp::Known::nothing});
  ASSERT_TRUE(early3.ok() && late3.ok()) << late3.status().message();
  for (int64_t i = 0; i < early3.value()[0].count(); ++i)
    ASSERT_NEAR(early3.value()[0].as<float>()[i], late3.value()[0].as<float>()[i], 1e-5);
}

TEST_F(VolumeTest, RefusesWhatDoesNotFit) {
  Draws draw(1);
  const Tensor x = drawn({1, 4, 4, 3}, draw).narrow, f = drawn({2, 2, 2, 1}, draw).narrow, good = drawn({2, 2, 3, 1}, draw).narrow;
  const auto code = [&](std::string_view op, std::vector<Tensor> in, std::vector<Attr> attrs) {
    return one_.run(op, in, attrs, {}).status().code();
  };
  EXPECT_EQ(code("DepthwiseConv2dNative", {x, f}, {{"strides", List{1, 1, 1, 1}}, {"padding", "SAME"}}), Code::invalid_argument);
  EXPECT_EQ(code("DepthwiseConv2dNative", {x, good}, {{"strides", List{1, 1, 2, 1}}, {"padding", "SAME"}}), Code::invalid_argument);
  const Tensor v = drawn({1, 3, 3, 3, 2}, draw).narrow, w = drawn({2, 2, 2, 1, 2}, draw).narrow;
  EXPECT_EQ(code("Conv3D", {v, w}, {{"strides", List{1, 1, 1, 1, 1}}, {"padding", "SAME"}}), Code::invalid_argument);
  EXPECT_EQ(code("Conv3D", {v, w}, {{"strides", List{1, 1, 1, 1}}, {"padding", "SAME"}}), Code::invalid_argument);
  EXPECT_EQ(code("MaxPool3D", {v}, {{"strides", List{1, 1, 1, 1, 1}}, {"ksize", List{2, 1, 1, 1, 1}}, {"padding", "SAME"}}),
            Code::unimplemented);
  EXPECT_EQ(code("MaxPool3D", {v}, {{"strides", List{1, 1, 1, 1, 1}}, {"ksize", List{1, 4, 1, 1, 1}}, {"padding", "VALID"}}),
            Code::invalid_argument);
}

// In volumes every place that holds the maximum takes its gradient, in images the first.
TEST_F(VolumeTest, TiesInVolumes) {
  const Tensor x = values<float>({1, 1, 1, 4, 1}, {3, 3, 1, 5}), y = values<float>({1, 1, 1, 2, 1}, {3, 5}),
               dy = values<float>({1, 1, 1, 2, 1}, {7, 9});
  const std::initializer_list<Attr> attrs = {{"ksize", List{1, 1, 1, 2, 1}}, {"strides", List{1, 1, 1, 2, 1}}, {"padding", "VALID"}};
  auto dx = one_.run("MaxPool3DGrad", {x, y, dy}, attrs);
  ASSERT_TRUE(dx.ok()) << dx.status().message();
  EXPECT_EQ(as_vector<float>(dx.value()[0]), (std::vector<float>{7, 7, 0, 9}));
  auto again = one_.run("MaxPool3DGradGrad", {x, y, values<float>({1, 1, 1, 4, 1}, {1, 2, 3, 4})}, attrs);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(as_vector<float>(again.value()[0]), (std::vector<float>{1, 4}));
}

// TensorFlow's values: where strides pass over the edges, windows of volumes leave out as much in front as behind, those of images not.
TEST_F(VolumeTest, StridesLargerThanTheWindow) {
  std::vector<float> numbers(8);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i + 1);
  const Tensor x = values<float>({1, 1, 1, 8, 1}, numbers), one = values<float>({1, 1, 1, 1, 1}, {1}),
               dy = values<float>({1, 1, 1, 2, 1}, {3, 4});
  const std::vector<float> seen = {2, 6}, back = {0, 3, 0, 0, 0, 4, 0, 0};
  const List step = {1, 1, 1, 4, 1};
  for (const char* op : {"MaxPool3D", "AvgPool3D"}) {
    auto y = one_.run(op, {x}, {{"ksize", List{1, 1, 1, 1, 1}}, {"strides", step}, {"padding", "SAME"}});
    ASSERT_TRUE(y.ok()) << y.status().message();
    EXPECT_EQ(as_vector<float>(y.value()[0]), seen) << op;
  }
  const std::initializer_list<Attr> attrs = {{"strides", step}, {"padding", "SAME"}};
  auto y = one_.run("Conv3D", {x, one}, attrs);
  ASSERT_TRUE(y.ok()) << y.status().message();
  EXPECT_EQ(as_vector<float>(y.value()[0]), seen);
  auto dx = one_.run("Conv3DBackpropInputV2", {values<int32_t>({5}, {1, 1, 1, 8, 1}), one, dy}, attrs);
  ASSERT_TRUE(dx.ok()) << dx.status().message();
  EXPECT_EQ(as_vector<float>(dx.value()[0]), back);
  auto image = one_.run("MaxPool", {values<float>({1, 1, 8, 1}, numbers)},
                        {{"ksize", List{1, 1, 1, 1}}, {"strides", List{1, 1, 4, 1}}, {"padding", "SAME"}});
  ASSERT_TRUE(image.ok()) << image.status().message();
  EXPECT_EQ(as_vector<float>(image.value()[0]), (std::vector<float>{1, 5}));
}

TEST_F(VolumeTest, PlacesOutsideTheImageAreRefused) {
  const std::vector<Attr> attrs = {{"ksize", List{1, 2, 2, 1}}, {"strides", List{1, 2, 2, 1}}, {"padding", "VALID"}};
  const Tensor x = values<float>({1, 2, 2, 1}, {1, 2, 3, 4}), g = values<float>({1, 1, 1, 1}, {5});
  for (const int64_t bad : {-1, 4}) {
    const std::vector<Tensor> in = {x, g, values<int64_t>({1, 1, 1, 1}, {bad})};
    EXPECT_EQ(one_.run("MaxPoolGradWithArgmax", in, attrs, {}).status().code(), Code::invalid_argument);
  }
  const std::vector<Tensor> in = {x, g, values<int64_t>({1, 1, 1, 1}, {2})};
  auto dx = one_.run("MaxPoolGradWithArgmax", in, attrs, {});
  ASSERT_TRUE(dx.ok()) << dx.status().message();
  EXPECT_EQ(as_vector<float>(dx.value()[0]), (std::vector<float>{0, 0, 5, 0}));
}

}  // namespace
}  // namespace dtg
