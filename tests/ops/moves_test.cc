// Ops that move, fold and pick rows: segments, scatters, partitions, rolls, slices written to. Threads, hostile indices, edges.
#include <gtest/gtest.h>

#include <limits>

#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using one_op::as_vector;
using one_op::bit_equal;
using one_op::ramp;
using one_op::scalar;
using one_op::values;

constexpr OneOp::Known kAll[] = {OneOp::Known::values, OneOp::Known::shapes, OneOp::Known::nothing};

TEST(Segments, WhatNoRowBelongsTo) {
  OneOp one({ops::register_gather});
  const Tensor data = values<float>({3}, {2, 5, -3}), ids = values<int32_t>({3}, {0, 0, 2});
  const auto sorted = [&](const char* op) { return as_vector<float>(one.run(op, {data, ids}).take()[0]); };
  EXPECT_EQ(sorted("SegmentSum"), (std::vector<float>{7, 0, -3}));
  EXPECT_EQ(sorted("SegmentMean"), (std::vector<float>{3.5, 0, -3}));
  EXPECT_EQ(sorted("SegmentProd"), (std::vector<float>{10, 1, -3}));
  EXPECT_EQ(sorted("SegmentMax"), (std::vector<float>{5, 0, -3}));
  EXPECT_EQ(sorted("SegmentMin"), (std::vector<float>{2, 0, -3}));
  const auto loose = [&](const char* op) { return as_vector<float>(one.run(op, {data, ids, scalar<int32_t>(3)}).take()[0]); };
  EXPECT_EQ(loose("UnsortedSegmentProd"), (std::vector<float>{10, 1, -3}));
  EXPECT_EQ(loose("UnsortedSegmentMax"), (std::vector<float>{5, std::numeric_limits<float>::lowest(), -3}));
  EXPECT_EQ(loose("UnsortedSegmentMin"), (std::vector<float>{2, std::numeric_limits<float>::max(), -3}));
}

TEST(Segments, LargeOnesAreTheSameForAnyNumberOfThreads) {
  OneOp one({ops::register_gather});
  std::vector<int32_t> ids(500);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i * 7 % 13);
  const std::vector<Tensor> inputs = {values<float>({500, 700}, ramp(350'000, -2, 2)), values<int32_t>({500}, ids), scalar<int32_t>(13)};
  for (const char* op : {"UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin"}) {
    const auto a = one.run(op, inputs, {}, {.threads = 1}), b = one.run(op, inputs, {}, {.threads = 3});
    ASSERT_TRUE(a.ok() && b.ok()) << op;
    EXPECT_TRUE(bit_equal(a.value()[0], b.value()[0])) << op;
  }
}

TEST(Segments, RefuseBadIds) {
  OneOp one({ops::register_gather});
  const Tensor data = values<int32_t>({2}, {1, 2});
  const auto code = [&](std::vector<int64_t> ids) {
    return one.run("SegmentMax", {data, values<int64_t>({2}, ids)}, {}, {.known = OneOp::Known::nothing}).status().code();
  };
  EXPECT_EQ(code({1, 0}), Code::invalid_argument);
  EXPECT_EQ(code({-1, 0}), Code::invalid_argument);
  EXPECT_EQ(code({0, INT64_MAX}), Code::invalid_argument);
  EXPECT_EQ(code({0, INT64_MAX / 2}), Code::resource_exhausted);
  EXPECT_EQ(code({0, 4}), Code::ok);
}

TEST(TensorScatter, LaterUpdatesWinAndBadOnesChangeNothing) {
  OneOp one({ops::register_gather});
  const Tensor tensor = values<int32_t>({3}, {1, 2, 3}), places = values<int32_t>({3, 1}, {2, 0, 2}),
               updates = values<int32_t>({3}, {7, 8, 9});
  for (auto known : kAll) {
    for (bool in_place : {false, true}) {
      const auto run = [&](const char* op) {
        return as_vector<int32_t>(one.run(op, {tensor, places, updates}, {}, {.known = known, .in_place = in_place}).take()[0]);
      };
      EXPECT_EQ(run("TensorScatterUpdate"), (std::vector<int32_t>{8, 2, 9}));
      EXPECT_EQ(run("TensorScatterAdd"), (std::vector<int32_t>{9, 2, 19}));
      EXPECT_EQ(run("TensorScatterSub"), (std::vector<int32_t>{-7, 2, -13}));
      EXPECT_EQ(run("TensorScatterMax"), (std::vector<int32_t>{8, 2, 9}));
      EXPECT_EQ(run("TensorScatterMin"), (std::vector<int32_t>{1, 2, 3}));
    }
    const Tensor outside = values<int32_t>({3, 1}, {2, 3, 0});
    EXPECT_EQ(one.run("TensorScatterAdd", {tensor, outside, updates}, {}, {.known = known}).status().code(), Code::invalid_argument);
    const auto ignored = one.run("TensorScatterAdd", {tensor, outside, updates}, {{"bad_indices_policy", "IGNORE"}}, {.known = known});
    EXPECT_EQ(as_vector<int32_t>(ignored.value()[0]), (std::vector<int32_t>{10, 2, 10}));
  }
}

TEST(Partition, DealsOutAndStitchesTogether) {
  OneOp one({ops::register_partition});
  const Tensor data = values<int16_t>({4, 2}, {0, 1, 2, 3, 4, 5, 6, 7}), to = values<int32_t>({4}, {1, 0, 1, 1});
  for (auto known : kAll) {
    auto parts = one.run("DynamicPartition", {data, to}, {{"num_partitions", 3}}, {.known = known});
    ASSERT_TRUE(parts.ok()) << parts.status().message();
    EXPECT_EQ(as_vector<int16_t>(parts.value()[0]), (std::vector<int16_t>{2, 3}));
    EXPECT_EQ(as_vector<int16_t>(parts.value()[1]), (std::vector<int16_t>{0, 1, 4, 5, 6, 7}));
    EXPECT_EQ(parts.value()[2].text(), "int16[0,2]");
    // Place 1 is named by nobody and stays zero; of two for one place the later one stays.
    const Tensor first = values<int32_t>({2}, {0, 3}), second = values<int32_t>({2}, {2, 3});
    auto whole =
        one.run("DynamicStitch", {first, second, values<int16_t>({2}, {5, 6}), values<int16_t>({2}, {7, 8})}, {{"N", 2}}, {.known = known});
    ASSERT_TRUE(whole.ok()) << whole.status().message();
    EXPECT_EQ(as_vector<int16_t>(whole.value()[0]), (std::vector<int16_t>{5, 0, 7, 8}));
    EXPECT_EQ(one.run("DynamicStitch", {values<int32_t>({1}, {-1}), values<float>({1}, {1})}, {{"N", 1}}, {.known = known}).status().code(),
              Code::invalid_argument);
  }
}

TEST(Roll, AddsUpAndWrapsAround) {
  OneOp one({ops::register_sequence});
  const Tensor x = values<int64_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto run = [&](std::vector<int64_t> shift, std::vector<int64_t> axis) {
    const auto n = static_cast<int64_t>(shift.size());
    return as_vector<int64_t>(one.run("Roll", {x, values<int64_t>({n}, shift), values<int64_t>({n}, axis)}).take()[0]);
  };
  EXPECT_EQ(run({1}, {1}), (std::vector<int64_t>{3, 1, 2, 6, 4, 5}));
  EXPECT_EQ(run({1, 1}, {1, -1}), (std::vector<int64_t>{2, 3, 1, 5, 6, 4}));
  EXPECT_EQ(run({INT64_MIN, 1}, {1, 0}), run({INT64_MIN % 3, 1}, {1, 0}));
  EXPECT_EQ(run({}, {}), as_vector<int64_t>(x));
}

TEST(StridedUpdate, BroadcastsTheValue) {
  OneOp one({ops::register_slice});
  const Tensor x = values<float>({2, 3}, {1, 2, 3, 4, 5, 6}), begin = values<int32_t>({2}, {0, 2}), end = values<int32_t>({2}, {2, 0}),
               strides = values<int32_t>({2}, {1, -1});
  for (auto known : kAll) {
    const std::vector<Tensor> inputs = {x, begin, end, strides, values<float>({2}, {8, 9})};
    auto out = one.run("TensorStridedSliceUpdate", inputs, {}, {.known = known});
    ASSERT_TRUE(out.ok()) << out.status().message();
    EXPECT_EQ(as_vector<float>(out.value()[0]), (std::vector<float>{1, 9, 8, 4, 9, 8}));
  }
}

}  // namespace
}  // namespace dtg
