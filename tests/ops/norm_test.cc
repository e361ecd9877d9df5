// Batch norm and LRN: against plain sums in double, whatever the layout and the number of channels; the same bits for any number of
// threads; means far from zero; what is refused.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using one_op::as_vector;
using one_op::ramp;
using one_op::values;

class NormTest : public ::testing::Test {
 protected:
  OneOp one_{ops::register_norm,  ops::register_unary, ops::register_binary, ops::register_reduce, ops::register_graph,
             ops::register_shape, ops::register_array, ops::register_cast,   ops::register_gather};
};

struct Case {
  int64_t images, height, width, channels;
  bool first;  // channels first
  float offset = 0;
};

int64_t place(const Case& k, int64_t n, int64_t p, int64_t c) {
  const int64_t plane = k.height * k.width;
  return k.first ? (n * k.channels + c) * plane + p : (n * plane + p) * k.channels + c;
}

Tensor image_of(const Case& k, const std::vector<float>& data) {
  return k.first ? values<float>({k.images, k.channels, k.height, k.width}, data)
                 : values<float>({k.images, k.height, k.width, k.channels}, data);
}

std::vector<float> drawn(int64_t count, uint64_t seed, float offset) {
  std::vector<float> data(static_cast<size_t>(count));
  for (float& value : data) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    value = offset + static_cast<float>(static_cast<double>(seed >> 40) / (1 << 24) * 2 - 1);
  }
  return data;
}

// Mean, variance, and the sums that the gradient needs, of one channel.
struct Plain {
  double mean = 0, variance = 0, dy = 0, product = 0;
};

Plain plain(const Case& k, const std::vector<float>& x, const std::vector<float>& dy, int64_t c) {
  Plain sums;
  const int64_t plane = k.height * k.width;
  const auto count = static_cast<double>(k.images * plane);
  const auto each = [&](auto fn) {
    for (int64_t n = 0; n < k.images; ++n) {
      for (int64_t p = 0; p < plane; ++p) fn(static_cast<size_t>(place(k, n, p, c)));
    }
  };
  each([&](size_t i) { sums.mean += double(x[i]) / count; });
  each([&](size_t i) { sums.variance += (double(x[i]) - sums.mean) * (double(x[i]) - sums.mean) / count; });
  each([&](size_t i) { sums.dy += double(dy[i]), sums.product += double(dy[i]) * (double(x[i]) - sums.mean); });
  return sums;
}

constexpr Case kCases[] = {{2, 3, 4, 1, false},    {2, 5, 7, 3, false},         {3, 8, 9, 17, false},      {2, 40, 41, 24, false},
                           {4, 32, 32, 64, false}, {1, 9, 5, 130, false},       {2, 3, 4, 3, true},        {2, 33, 35, 5, true},
                           {3, 11, 9, 40, true},   {2, 40, 41, 7, false, 1000}, {2, 33, 35, 5, true, 1000}};

TEST_F(NormTest, AgreesWithPlainSums) {
  for (const Case& k : kCases) {
    SCOPED_TRACE(std::to_string(k.channels) + (k.first ? " channels first" : " channels"));
    const int64_t count = k.images * k.height * k.width * k.channels;
    const auto x = drawn(count, 5, k.offset), dy = drawn(count, 6, 0), scale = drawn(k.channels, 7, 1), shift = drawn(k.channels, 8, 0);
    const Attr attrs[] = {{"data_format", k.first ? "NCHW" : "NHWC"}, {"epsilon", 0.01}};
    const Tensor s = values<float>({k.channels}, scale), o = values<float>({k.channels}, shift), none = values<float>({0}, {});
    const Tensor in[] = {image_of(k, x), s, o, none, none};
    auto y = one_.run("FusedBatchNormV3", in, attrs, {});
    ASSERT_TRUE(y.ok()) << y.status().message();
    const Tensor back_in[] = {image_of(k, dy), in[0], s, y.value()[3], y.value()[4], none};
    auto dx = one_.run("FusedBatchNormGradV3", back_in, attrs, {});
    ASSERT_TRUE(dx.ok()) << dx.status().message();
    const auto y0 = as_vector<float>(y.value()[0]), dx0 = as_vector<float>(dx.value()[0]);
    const double m = static_cast<double>(count / k.channels), loose = k.offset == 0 ? 1 : 50;
    for (int64_t c = 0; c < k.channels; ++c) {
      const auto at = static_cast<size_t>(c);
      const Plain p = plain(k, x, dy, c);
      const double r = 1 / std::sqrt(p.variance + 0.01), factor = double(scale[at]) * r;
      ASSERT_NEAR(y.value()[3].as<float>()[c], p.mean, 1e-6 + 5e-7 * double(k.offset));
      ASSERT_NEAR(y.value()[4].as<float>()[c], p.variance, 3e-6 * loose);
      ASSERT_NEAR(y.value()[2].as<float>()[c], p.variance * m / (m - 1), 3e-6 * loose);
      ASSERT_NEAR(dx.value()[1].as<float>()[c], p.product * r, 1e-5 * loose * std::sqrt(m));
      ASSERT_NEAR(dx.value()[2].as<float>()[c], p.dy, 1e-5 * std::sqrt(m));
      for (int64_t i = 0; i < k.images * k.height * k.width; ++i) {
        const auto j = static_cast<size_t>(place(k, i / (k.height * k.width), i % (k.height * k.width), c));
        const double off = double(x[j]) - p.mean;
        ASSERT_NEAR(y0[j], off * factor + double(shift[at]), 1e-5 * loose);
        ASSERT_NEAR(dx0[j], factor * (double(dy[j]) - p.dy / m - off * r * r * p.product / m), 1e-5 * loose);
      }
    }
  }
}

TEST_F(NormTest, TheSameBitsForAnyNumberOfThreads) {
  for (const Case& k : kCases) {
    const int64_t count = k.images * k.height * k.width * k.channels;
    const Attr attrs[] = {{"data_format", k.first ? "NCHW" : "NHWC"}};
    const Tensor s = values<float>({k.channels}, drawn(k.channels, 1, 1)), none = values<float>({0}, {});
    const Tensor in[] = {image_of(k, drawn(count, 2, 0)), s, s, none, none};
    const Tensor back[] = {image_of(k, drawn(count, 3, 0)), in[0], s, s, s};
    auto one = one_.run("FusedBatchNorm", in, attrs, {}), many = one_.run("FusedBatchNorm", in, attrs, {.threads = 4});
    auto one_back = one_.run("FusedBatchNormGrad", back, attrs, {}),
         many_back = one_.run("FusedBatchNormGrad", back, attrs, {.threads = 4});
    ASSERT_TRUE(one.ok() && many.ok() && one_back.ok() && many_back.ok());
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_TRUE(one_op::bit_equal(one.value()[i], many.value()[i]));
      EXPECT_TRUE(one_op::bit_equal(one_back.value()[i], many_back.value()[i]));
    }
  }
}

TEST_F(NormTest, SixteenBitsAreWidened) {
  std::vector<Half> narrow;
  std::vector<float> wide;
  for (float value : drawn(2 * 20 * 20 * 9, 4, 0)) narrow.emplace_back(value), wide.push_back(static_cast<float>(narrow.back()));
  const Tensor s = values<float>({9}, drawn(9, 1, 1)), none = values<float>({0}, {});
  auto y16 = one_.run("FusedBatchNormV3", {values<Half>({2, 20, 20, 9}, narrow), s, s, none, none});
  auto y32 = one_.run("FusedBatchNormV3", {values<float>({2, 20, 20, 9}, wide), s, s, none, none});
  ASSERT_TRUE(y16.ok() && y32.ok()) << y16.status().message();
  EXPECT_TRUE(one_op::bit_equal(y16.value()[3], y32.value()[3]));
  for (int64_t i = 0; i < y32.value()[0].count(); ++i) {
    ASSERT_EQ(static_cast<float>(y16.value()[0].as<Half>()[i]), static_cast<float>(Half(y32.value()[0].as<float>()[i])));
  }
}

TEST_F(NormTest, NoValuesHaveNoMean) {
  const Tensor none = values<float>({0}, {}), two = values<float>({2}, {1, 2});
  auto y = one_.run("FusedBatchNorm", {values<float>({0, 3, 3, 2}, {}), two, two, none, none});
  ASSERT_TRUE(y.ok()) << y.status().message();
  EXPECT_TRUE(std::isnan(y.value()[1].as<float>()[0]));
  // But a gradient of nothing is zero: a step over an empty share moves no weights.
  const Tensor empty = values<float>({0, 3, 3, 2}, {}), undefined = y.value()[1], reserve = values<float>({0}, {});
  auto dx = one_.run("FusedBatchNormGradV3", {empty, empty, two, undefined, undefined, reserve});
  ASSERT_TRUE(dx.ok()) << dx.status().message();
  for (int i = 1; i < 3; ++i) EXPECT_EQ(as_vector<float>(dx.value()[static_cast<size_t>(i)]), (std::vector<float>{0, 0}));
}

TEST_F(NormTest, RefusesWhatDoesNotFit) {
  const Tensor x = values<float>({2, 2, 2, 3}, drawn(24, 1, 0)), three = values<float>({3}, {1, 1, 1}), none = values<float>({0}, {});
  const Tensor two = values<float>({2}, {1, 1}), flat = values<float>({8, 3}, drawn(24, 1, 0));
  const auto code = [&](std::initializer_list<Tensor> in, std::initializer_list<Attr> attrs) {
    for (const auto known : {OneOp::Known::values, OneOp::Known::nothing}) {
      const Code found = one_.run("FusedBatchNormV3", in, attrs, {.known = known}).status().code();
      if (found != Code::invalid_argument) return found;
    }
    return Code::invalid_argument;
  };
  EXPECT_EQ(code({x, two, three, none, none}, {}), Code::invalid_argument);
  EXPECT_EQ(code({flat, three, three, none, none}, {}), Code::invalid_argument);
  EXPECT_EQ(code({x, three, three, none, none}, {{"is_training", false}}), Code::invalid_argument);
  EXPECT_EQ(code({x, three, three, none, none}, {{"exponential_avg_factor", 0.5}}), Code::invalid_argument);
  EXPECT_EQ(code({x, three, three, none, none}, {{"data_format", "NDHWC"}}), Code::invalid_argument);
  EXPECT_EQ(code({x, three, three, two, none}, {}), Code::ok) << "while training, mean and variance are not looked at";
  EXPECT_EQ(one_.run("FusedBatchNormGrad", {x, values<float>({2, 2, 2, 2}, drawn(16, 1, 0)), two, two, two}).status().code(),
            Code::invalid_argument);
}

// The gradient of the gradient is that of the formula: against differences of the gradient itself.
TEST_F(NormTest, TheGradientOfTheGradientEqualsDifferences) {
  const Tensor scale = values<float>({2}, {0.7f, -1.3f}), none = values<float>({0}, {}), zero = values<float>({2}, {0.1f, 0.2f});
  const std::vector<float> weights = drawn(24, 12, 0), upstream = drawn(24, 13, 0);
  // The weighted sum of dx, as a function of x; and its derivative from the graph.
  const auto at = [&](const std::vector<float>& x, std::vector<float>* slope) {
    auto graph = one_.graph().take();
    Build b(*graph);
    const auto in = [&](const Tensor& tensor) { return one_.input(*graph, tensor, OneOp::Known::shapes).take(); };
    const Value xv = in(values<float>({3, 2, 2, 2}, x));
    const Value y = b.op("FusedBatchNorm", {xv, in(scale), in(zero), in(none), in(none)});
    const Value first[] = {in(values<float>({3, 2, 2, 2}, upstream))}, second[] = {in(values<float>({3, 2, 2, 2}, weights))};
    auto dx = add_gradients(*graph, std::span(&y, 1), std::span(&xv, 1), first);
    EXPECT_TRUE(dx.ok()) << dx.status().message();
    const Value fetched[] = {dx.value()[0].dense};
    auto ddx = add_gradients(*graph, fetched, std::span(&xv, 1), second);
    EXPECT_TRUE(ddx.ok()) << ddx.status().message();
    const Value both[] = {fetched[0], ddx.value()[0].dense};
    auto result = one_.evaluate(*graph, both, {});
    EXPECT_TRUE(result.ok()) << result.status().message();
    double sum = 0;
    const auto values_of = as_vector<float>(result.value()[0]);
    for (size_t i = 0; i < values_of.size(); ++i) sum += double(values_of[i]) * double(weights[i]);
    if (slope) *slope = as_vector<float>(result.value()[1]);
    return sum;
  };
  std::vector<float> x = drawn(24, 11, 0), slope;
  at(x, &slope);
  for (size_t i = 0; i < x.size(); i += 5) {
    std::vector<float> above = x, below = x;
    above[i] += 4e-3f, below[i] -= 4e-3f;
    const double wanted = (at(above, nullptr) - at(below, nullptr)) / (double(above[i]) - double(below[i]));
    EXPECT_NEAR(slope[i], wanted, 4e-3 * std::max(1.0, std::fabs(wanted))) << i;
  }
}

TEST_F(NormTest, LrnAgreesWithPlainSums) {
  const auto x = drawn(2 * 3 * 2 * 21, 9, 0);
  for (const double beta : {0.5, 0.75, 1.0, 0.6}) {
    for (const int64_t radius : {0, 2, 40}) {
      auto y =
          one_.run("LRN", {values<float>({2, 3, 2, 21}, x)}, {{"depth_radius", radius}, {"bias", 1.5}, {"alpha", 0.4}, {"beta", beta}});
      ASSERT_TRUE(y.ok()) << y.status().message();
      for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
        double sum = 0;
        for (int64_t j = std::max<int64_t>(i % 21 - radius, 0); j <= std::min<int64_t>(i % 21 + radius, 20); ++j) {
          sum += std::pow(double(x[static_cast<size_t>(i / 21 * 21 + j)]), 2);
        }
        ASSERT_NEAR(y.value()[0].as<float>()[i], double(x[static_cast<size_t>(i)]) * std::pow(1.5 + 0.4 * sum, -beta), 2e-6);
      }
    }
  }
  EXPECT_EQ(one_.run("LRN", {values<float>({2, 3, 2, 21}, x)}, {{"depth_radius", -1}}).status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace dtg
