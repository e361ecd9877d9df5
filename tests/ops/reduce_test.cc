// Reductions: every set of axes against a plain reference, accuracy of long sums, equal bits for any number
// of threads, axes known late, refusals.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "device/cpu/reduce.h"
#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using one_op::as_vector;
using one_op::scalar;
using one_op::values;

OneOp make_ops() { return OneOp({ops::register_reduce}); }

Tensor ramp(const Shape& shape, float low = -2, float high = 2) {
  const auto data = one_op::ramp(shape.count(), low, high);
  return Tensor::of<float>(shape, std::span<const float>(data)).take();
}

std::vector<int32_t> axes_of(uint32_t mask, int rank) {
  std::vector<int32_t> axes;
  for (int d = rank - 1; d >= 0; --d) {
    if (mask >> d & 1u) axes.push_back(d % 2 ? d : d - rank);
  }
  return axes;
}

// Sum and maximum over the masked axes, in double, by the order of the output.
struct Expected {
  std::vector<double> sum, max;
};
Expected reference(const Tensor& x, uint32_t mask) {
  std::map<std::vector<int64_t>, std::pair<double, double>> cells;
  const Shape& shape = x.shape();
  for (int64_t i = 0; i < x.count(); ++i) {
    std::vector<int64_t> place;
    int64_t rest = i;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      if (!(mask >> d & 1u)) place.insert(place.begin(), rest % shape.dim(d));
      rest /= shape.dim(d);
    }
    auto [cell, fresh] = cells.try_emplace(place, 0, -std::numeric_limits<double>::infinity());
    cell->second.first += x.as<float>()[i];
    cell->second.second = std::max<double>(cell->second.second, x.as<float>()[i]);
  }
  Expected result;
  for (const auto& [place, cell] : cells) {
    result.sum.push_back(cell.first);
    result.max.push_back(cell.second);
  }
  return result;
}

TEST(Reduce, EverySetOfAxesLikeTheReference) {
  OneOp one = make_ops();
  for (const Shape& shape : {Shape::of({4, 3, 5, 2}), Shape::of({2, 1, 3, 1, 7}), Shape::of({3, 40, 130}), Shape::of({600, 9}), Shape()}) {
    const Tensor x = ramp(shape);
    for (uint32_t mask = 0; mask < 1u << shape.rank(); ++mask) {
      const Tensor axes = values<int32_t>({std::popcount(mask)}, axes_of(mask, shape.rank()));
      const Expected want = reference(x, mask);
      for (const auto known : {OneOp::Known::values, OneOp::Known::shapes, OneOp::Known::nothing}) {
        auto sum = one.run("Sum", {x, axes}, {}, {.known = known});
        auto max = one.run("Max", {x, axes}, {{"keep_dims", true}}, {.known = known});
        ASSERT_TRUE(sum.ok() && max.ok()) << sum.status().message() << max.status().message();
        ASSERT_EQ(sum.value()[0].count(), static_cast<int64_t>(want.sum.size()));
        EXPECT_EQ(max.value()[0].shape().rank(), shape.rank());
        for (size_t i = 0; i < want.sum.size(); ++i) {
          ASSERT_NEAR(sum.value()[0].as<float>()[i], want.sum[i], 2e-4) << shape.text() << " mask " << mask;
          ASSERT_EQ(max.value()[0].as<float>()[i], static_cast<float>(want.max[i]));
        }
      }
    }
  }
}

TEST(Reduce, LongSumsAreAccurateAndTheSameForAnyThreads) {
  OneOp one = make_ops();
  struct Case {
    Shape shape;
    std::vector<int32_t> axes;
  };
  for (const Case& test : {Case{Shape::of({1000000}), {0}}, Case{Shape::of({100000, 10}), {0}}, Case{Shape::of({3, 333333}), {1}},
                           Case{Shape::of({300, 7, 500}), {0, 2}}, Case{Shape::of({2000, 500}), {0}}}) {
    const Tensor x = ramp(test.shape, 0, 1);
    const Tensor axes = values<int32_t>({static_cast<int64_t>(test.axes.size())}, test.axes);
    uint32_t mask = 0;
    for (const int32_t axis : test.axes) mask |= 1u << axis;
    const Expected want = reference(x, mask);
    auto mean = one.run("Mean", {x, axes});
    ASSERT_TRUE(mean.ok());
    const double n = static_cast<double>(x.count() / mean.value()[0].count());
    for (size_t i = 0; i < want.sum.size(); ++i) ASSERT_NEAR(mean.value()[0].as<float>()[i] / (want.sum[i] / n), 1, 3e-7);
    for (const int threads : {2, 3}) {
      auto again = one.run("Mean", {x, axes}, {}, {.threads = threads});
      ASSERT_TRUE(again.ok());
      EXPECT_TRUE(one_op::bit_equal(mean.value()[0], again.value()[0])) << test.shape.text();
    }
  }
}

TEST(Reduce, NarrowTypes) {
  OneOp one = make_ops();
  const Tensor axis = scalar(0);
  const Tensor bytes = values<int8_t>({200}, std::vector<int8_t>(200, 1));
  EXPECT_EQ(as_vector<int8_t>(one.run("Sum", {bytes, axis}).value()[0])[0], static_cast<int8_t>(200));
  EXPECT_EQ(as_vector<int8_t>(one.run("Max", {bytes, axis}).value()[0])[0], 1);
  // 4096 halves would stop growing at 2048 if they were added as halves.
  const Tensor halves = values<Half>({4096}, std::vector<Half>(4096, Half(1.0f)));
  EXPECT_EQ(float(*one.run("Sum", {halves, axis}).value()[0].as<Half>()), 4096.0f);
  EXPECT_EQ(float(*one.run("Mean", {halves, axis}).value()[0].as<Half>()), 1.0f);
  EXPECT_EQ(as_vector<int32_t>(one.run("Mean", {values<int32_t>({2}, {-1, -2}), axis}).value()[0])[0], -1);
}

TEST(Reduce, NothingAndNan) {
  OneOp one = make_ops();
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const Tensor none = values<float>({0, 2}, std::vector<float>{}), axis = scalar(0);
  EXPECT_EQ(as_vector<float>(one.run("Sum", {none, axis}).value()[0]), (std::vector<float>{0, 0}));
  EXPECT_EQ(as_vector<float>(one.run("Prod", {none, axis}).value()[0]), (std::vector<float>{1, 1}));
  EXPECT_EQ(as_vector<float>(one.run("Min", {none, axis}).value()[0]), (std::vector<float>{inf, inf}));
  EXPECT_TRUE(std::isnan(*one.run("Mean", {none, axis}).value()[0].as<float>()));
  // NaN is found wherever it stands.
  for (size_t place : {0u, 7u, 63u, 64u, 99u}) {
    std::vector<float> x(100, 1.0f);
    x[place] = nan;
    const Tensor row = values<float>({100}, x), table = values<float>({20, 5}, x), both = values<int32_t>({2}, {0, 1});
    EXPECT_TRUE(std::isnan(*one.run("Max", {row, axis}).value()[0].as<float>())) << place;
    EXPECT_TRUE(std::isnan(*one.run("Min", {table, both}).value()[0].as<float>())) << place;
  }
}

TEST(Reduce, RefusesBadAxes) {
  OneOp one = make_ops();
  const Tensor x = ramp(Shape::of({2, 3}));
  for (const auto known : {OneOp::Known::values, OneOp::Known::shapes, OneOp::Known::nothing}) {
    for (const std::vector<int32_t>& bad : {std::vector<int32_t>{2}, {-3}, {0, 0}, {1, -1}}) {
      const Tensor axes = values<int32_t>({static_cast<int64_t>(bad.size())}, bad);
      EXPECT_EQ(one.run("Sum", {x, axes}, {}, {.known = known}).status().code(), Code::invalid_argument);
    }
    EXPECT_EQ(one.run("ArgMax", {x, scalar(2)}, {}, {.known = known}).status().code(), Code::invalid_argument);
    EXPECT_EQ(one.run("Cumsum", {x, scalar(-3)}, {}, {.known = known}).status().code(), Code::invalid_argument);
    const Tensor none = values<float>({0, 2}, std::vector<float>{});
    EXPECT_EQ(one.run("ArgMin", {none, scalar(0)}, {}, {.known = known}).status().code(), Code::invalid_argument);
  }
}

TEST(Reduce, ArgMaxTakesTheFirst) {
  OneOp one = make_ops();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = values<float>({2, 4}, {1, 5, 5, 2, nan, -1, 3, nan});
  for (const auto known : {OneOp::Known::values, OneOp::Known::nothing}) {
    auto rows = one.run("ArgMax", {x, scalar(-1)}, {{"output_type", DType::i32}}, {.known = known});
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    EXPECT_EQ(as_vector<int32_t>(rows.value()[0]), (std::vector<int32_t>{1, 2}));
    auto columns = one.run("ArgMin", {x, scalar(0)}, {}, {.known = known});
    ASSERT_TRUE(columns.ok());
    EXPECT_EQ(as_vector<int64_t>(columns.value()[0]), (std::vector<int64_t>{0, 1, 1, 0}));
  }
}

// A row in one piece and one that lies apart answer alike, for any length and place, ties, and NaN, which is never the extreme.
TEST(Reduce, ArgMaxOfRowsOfAnyLength) {
  OneOp one = make_ops();
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (int64_t n = 1; n < 80; n += 1 + n / 20) {
    for (int64_t at = 0; at < n; at += 1 + n / 7) {
      std::vector<float> x(static_cast<size_t>(n));
      for (size_t i = 0; i < x.size(); ++i) x[i] = i % 3 == 0 ? nan : i % 3 == 1 ? -inf : static_cast<float>(i % 5);
      x[static_cast<size_t>(at)] = 9, x.back() = std::max(x.back(), at % 2 ? 9.0f : 0.0f);
      const Tensor row = values<float>({1, n}, x), column = values<float>({n, 1}, x);
      EXPECT_EQ(as_vector<int64_t>(one.run("ArgMax", {row, scalar(1)}).value()[0]), std::vector<int64_t>{at}) << n;
      EXPECT_EQ(as_vector<int64_t>(one.run("ArgMax", {column, scalar(0)}).value()[0]), std::vector<int64_t>{at}) << n;
      for (float& v : x) v = -v;
      const Tensor turned = values<float>({n}, x);
      EXPECT_EQ(as_vector<int64_t>(one.run("ArgMin", {turned, scalar(0)}).value()[0]), std::vector<int64_t>{at}) << n;
    }
  }
  const Tensor nothing = values<float>({3}, {nan, -inf, nan});
  EXPECT_EQ(as_vector<int64_t>(one.run("ArgMax", {nothing, scalar(0)}).value()[0]), std::vector<int64_t>{0});
}

TEST(Reduce, RunningSums) {
  OneOp one = make_ops();
  const Tensor x = values<int32_t>({4}, {1, 2, 3, 4});
  const auto sum = [&](bool exclusive, bool reverse) {
    auto out = one.run("Cumsum", {x, scalar(0)}, {{"exclusive", exclusive}, {"reverse", reverse}}, {.in_place = true});
    return as_vector<int32_t>(out.value()[0]);
  };
  EXPECT_EQ(sum(false, false), (std::vector<int32_t>{1, 3, 6, 10}));
  EXPECT_EQ(sum(true, false), (std::vector<int32_t>{0, 1, 3, 6}));
  EXPECT_EQ(sum(false, true), (std::vector<int32_t>{10, 9, 7, 4}));
  EXPECT_EQ(sum(true, true), (std::vector<int32_t>{9, 7, 4, 0}));
}

TEST(Reduce, HalfTheSumOfSquares) {
  OneOp one = make_ops();
  const Tensor x = ramp(Shape::of({300001}));
  double want = 0;
  for (int64_t i = 0; i < x.count(); ++i) want += 0.5 * x.as<float>()[i] * x.as<float>()[i];
  auto loss = one.run("L2Loss", {x});
  ASSERT_TRUE(loss.ok());
  EXPECT_NEAR(*loss.value()[0].as<float>() / want, 1, 3e-7);
  auto again = one.run("L2Loss", {x}, {}, {.threads = 3});
  EXPECT_TRUE(one_op::bit_equal(loss.value()[0], again.value()[0]));
}

}  // namespace
}  // namespace dtg
