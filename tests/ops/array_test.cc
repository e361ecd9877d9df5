// Tensors made or stretched by sizes that come as values: edge cases, hostile sizes, threads.
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

TEST(Range, CountsAtTheEdges) {
  OneOp one({ops::register_array});
  const auto count = [&](auto start, auto limit, auto delta) {
    auto result = one.run("Range", {scalar(start), scalar(limit), scalar(delta)}, {}, {.known = OneOp::Known::nothing});
    return result.ok() ? result.value()[0].count() : -1;
  };
  EXPECT_EQ(count(0, 0, 1), 0);
  EXPECT_EQ(count(5, 0, -2), 3);
  EXPECT_EQ(count(INT64_MAX - 2, INT64_MAX, int64_t{1}), 2);
  EXPECT_EQ(count(INT64_MIN, INT64_MIN + 3, INT64_MAX), 1);
  EXPECT_EQ(count(INT64_MIN, INT64_MAX, int64_t{1}), -1) << "2^64 values";
  EXPECT_EQ(count(int64_t{3}, int64_t{0}, INT64_MIN), 1);
  EXPECT_EQ(count(0, 3, 0), -1);
  EXPECT_EQ(count(0.0f, 1.0f, NAN), -1);
  EXPECT_EQ(count(0.0, INFINITY, 1.0), -1);
  EXPECT_EQ(count(0.0f, 1.0f, 0.1f), 10);
  const Tensor down = one.run("Range", {scalar(int8_t{100}), scalar(int8_t{-100}), scalar(int8_t{-100})}).take()[0];
  EXPECT_EQ(as_vector<int8_t>(down), (std::vector<int8_t>{100, 0}));
}

TEST(Fill, RefusesImpossibleShapes) {
  OneOp one({ops::register_array});
  for (auto known : kAll) {
    const auto code = [&](std::initializer_list<int64_t> dims) {
      return one.run("Fill", {values<int64_t>({int64_t(dims.size())}, dims), scalar(1.0f)}, {}, {.known = known}).status().code();
    };
    EXPECT_EQ(code({2, -1}), Code::invalid_argument);
    EXPECT_EQ(code({int64_t{1} << 40, int64_t{1} << 40}), Code::invalid_argument);
    EXPECT_EQ(code({1, 1, 1, 1, 1, 1, 1, 1, 1}), Code::invalid_argument);
    EXPECT_EQ(code({}), Code::ok);
    EXPECT_EQ(code({0, 5}), Code::ok);
  }
}

TEST(Pad, SurroundsTheInput) {
  OneOp one({ops::register_array});
  const Tensor x = values<int32_t>({1, 2}, {1, 2}), paddings = values<int64_t>({2, 2}, {1, 0, 1, 2});
  for (auto known : kAll) {
    auto out = one.run("PadV2", {x, paddings, scalar<int32_t>(9)}, {}, {.known = known});
    ASSERT_TRUE(out.ok()) << out.status().message();
    EXPECT_EQ(out.value()[0].text(), "int32[2,5]");
    EXPECT_EQ(as_vector<int32_t>(out.value()[0]), (std::vector<int32_t>{9, 9, 9, 9, 9, 9, 1, 2, 9, 9}));
    EXPECT_EQ(one.run("Pad", {x, values<int64_t>({2, 2}, {INT64_MAX, 1, 0, 0})}, {}, {.known = known}).status().code(),
              Code::invalid_argument);
  }
  const Tensor empty = one.run("Pad", {values<float>({0, 2}, {}), values<int32_t>({2, 2}, {1, 1, 0, 1})}).take()[0];
  EXPECT_EQ(as_vector<float>(empty), std::vector<float>(6, 0.0f));
}

TEST(Tile, RepeatsAndRefuses) {
  OneOp one({ops::register_array});
  const Tensor x = values<uint8_t>({2, 2}, {1, 2, 3, 4});
  for (auto known : kAll) {
    const auto run = [&](int64_t a, int64_t b) { return one.run("Tile", {x, values<int64_t>({2}, {a, b})}, {}, {.known = known}); };
    EXPECT_EQ(as_vector<uint8_t>(run(2, 1).take()[0]), (std::vector<uint8_t>{1, 2, 3, 4, 1, 2, 3, 4}));
    EXPECT_EQ(as_vector<uint8_t>(run(1, 2).take()[0]), (std::vector<uint8_t>{1, 2, 1, 2, 3, 4, 3, 4}));
    EXPECT_EQ(run(0, 3).take()[0].text(), "uint8[0,6]");
    EXPECT_EQ(run(-1, 3).status().code(), Code::invalid_argument);
    EXPECT_EQ(run(INT64_MAX, 3).status().code(), Code::invalid_argument);
  }
}

TEST(BroadcastTo, LargeOnesAreTheSameForAnyNumberOfThreads) {
  OneOp one({ops::register_array});
  const Tensor x = values<float>({300, 1, 7}, one_op::ramp(2100, 0, 1)), shape = values<int32_t>({4}, {2, 300, 90, 7});
  const Tensor a = one.run("BroadcastTo", {x, shape}, {}, {.threads = 1}).take()[0];
  const Tensor b = one.run("BroadcastTo", {x, shape}, {}, {.threads = 3}).take()[0];
  EXPECT_TRUE(bit_equal(a, b));
  EXPECT_EQ(a.as<float>()[((1 * 300 + 5) * 90 + 80) * 7 + 6], x.as<float>()[5 * 7 + 6]);
}

TEST(OneHot, IndicesOutsideAreCold) {
  OneOp one({ops::register_array});
  for (auto known : kAll) {
    auto out = one.run("OneHot", {values<int64_t>({3}, {1, -1, INT64_MAX}), scalar<int32_t>(2), scalar(5.0f), scalar(-1.0f)}, {{"axis", 0}},
                       {.known = known});
    ASSERT_TRUE(out.ok()) << out.status().message();
    EXPECT_EQ(as_vector<float>(out.value()[0]), (std::vector<float>{-1, -1, -1, 5, -1, -1}));
  }
}

}  // namespace
}  // namespace dtg
