// Sparse tensors: entries out of order, out of place and in crowds. Indices are data, and hostile here.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using one_op::as_vector;
using one_op::bit_equal;
using one_op::scalar;
using one_op::values;
using Longs = std::vector<int64_t>;

constexpr OneOp::Known kAll[] = {OneOp::Known::values, OneOp::Known::shapes, OneOp::Known::nothing};

OneOp sparse_ops() { return OneOp({ops::register_sparse_layout, ops::register_sparse_dense, ops::register_sparse_segment}); }

TEST(SparseReorder, OrdersAndKeepsTies) {
  OneOp one = sparse_ops();
  const Tensor places = values<int64_t>({4, 2}, {1, 0, 0, 2, 1, 0, 0, 1}), shape = values<int64_t>({2}, {2, 3});
  for (auto known : kAll) {
    auto out = one.run("SparseReorder", {places, values<float>({4}, {1, 2, 3, 4}), shape}, {}, {.known = known});
    ASSERT_TRUE(out.ok()) << out.status().message();
    EXPECT_EQ(as_vector<int64_t>(out.value()[0]), (Longs{0, 1, 0, 2, 1, 0, 1, 0}));
    EXPECT_EQ(as_vector<float>(out.value()[1]), (std::vector<float>{4, 2, 1, 3})) << "entries of one place keep their order";
  }
  const auto words = one.run("SparseReorder", {places, one_op::texts({4}, {"a", "bb", "", "dddd"}), shape});
  ASSERT_TRUE(words.ok()) << words.status().message();
  EXPECT_EQ(one_op::as_strings(words.value()[1]), (std::vector<std::string>{"dddd", "bb", "a", ""}));
  EXPECT_EQ(one.run("SparseReorder", {places, values<float>({3}, {1, 2, 3}), shape}).status().code(), Code::invalid_argument);
  EXPECT_EQ(one.run("SparseReorder", {places, values<float>({4}, {1, 2, 3, 4}), values<int64_t>({3}, {2, 3, 1})}).status().code(),
            Code::invalid_argument);
}

TEST(SparseReshape, InfersAndRefuses) {
  OneOp one = sparse_ops();
  const auto reshaped = [&](const Longs& place, const Longs& from, const Longs& to) {
    return one.run("SparseReshape",
                   {values<int64_t>({1, static_cast<int64_t>(from.size())}, place),
                    values<int64_t>({static_cast<int64_t>(from.size())}, from), values<int64_t>({static_cast<int64_t>(to.size())}, to)});
  };
  auto out = reshaped({1, 2}, {2, 6}, {3, -1});
  ASSERT_TRUE(out.ok()) << out.status().message();
  EXPECT_EQ(as_vector<int64_t>(out.value()[0]), (Longs{2, 0}));
  EXPECT_EQ(as_vector<int64_t>(out.value()[1]), (Longs{3, 4}));
  // A shape whose product no one can count, places outside of it, a -1 beside a 0, and dimensions below zero.
  EXPECT_EQ(reshaped({1, 2}, {INT64_MAX, 6}, {3, -1}).status().code(), Code::invalid_argument);
  EXPECT_EQ(reshaped({2, 0}, {2, 6}, {12}).status().code(), Code::invalid_argument);
  EXPECT_EQ(reshaped({0, INT64_MIN}, {2, 6}, {12}).status().code(), Code::invalid_argument);
  EXPECT_EQ(reshaped({0, 0}, {2, 6}, {0, -1}).status().code(), Code::invalid_argument);
  EXPECT_EQ(reshaped({0, 0}, {2, 6}, {-2, -6}).status().code(), Code::invalid_argument);
  EXPECT_EQ(reshaped({0, 0}, {-2, 6}, {12}).status().code(), Code::invalid_argument);
}

TEST(SparseFillEmptyRows, RowsWithoutOrder) {
  OneOp one = sparse_ops();
  const Tensor places = values<int64_t>({3, 2}, {2, 1, 0, 0, 2, 0});
  for (auto known : kAll) {
    auto out = one.run("SparseFillEmptyRows", {places, values<int32_t>({3}, {7, 8, 9}), values<int64_t>({2}, {4, 2}), scalar<int32_t>(-1)},
                       {}, {.known = known});
    ASSERT_TRUE(out.ok()) << out.status().message();
    EXPECT_EQ(as_vector<int64_t>(out.value()[0]), (Longs{0, 0, 1, 0, 2, 1, 2, 0, 3, 0}));
    EXPECT_EQ(as_vector<int32_t>(out.value()[1]), (std::vector<int32_t>{8, -1, 7, 9, -1}));
    EXPECT_EQ(as_vector<bool>(out.value()[2]), (std::vector<bool>{false, true, false, true}));
    EXPECT_EQ(as_vector<int64_t>(out.value()[3]), (Longs{2, 0, 3}));
  }
  for (int64_t rows : {int64_t{2}, int64_t{0}, int64_t{-1}, INT64_MIN}) {
    const auto out =
        one.run("SparseFillEmptyRows", {places, values<int32_t>({3}, {7, 8, 9}), values<int64_t>({2}, {rows, 2}), scalar<int32_t>(-1)});
    EXPECT_EQ(out.status().code(), Code::invalid_argument) << rows;
  }
  const auto none = one.run("SparseFillEmptyRows",
                            {values<int64_t>({0, 2}, {}), values<int32_t>({0}, {}), values<int64_t>({2}, {0, 2}), scalar<int32_t>(-1)});
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_EQ(none.value()[1].count(), 0);
  const Tensor grad = values<float>({3}, {1, 2, 4});
  EXPECT_EQ(one.run("SparseFillEmptyRowsGrad", {values<int64_t>({1}, {3}), grad}).status().code(), Code::invalid_argument);
  auto out = one.run("SparseFillEmptyRowsGrad", {values<int64_t>({1}, {1}), grad});
  ASSERT_TRUE(out.ok()) << out.status().message();
  EXPECT_EQ(*out.value()[1].as<float>(), 5);
}

TEST(SparseToDense, ChecksOrderOnlyWhereAsked) {
  OneOp one = sparse_ops();
  const Tensor shape = values<int32_t>({1}, {4}), last = values<int32_t>({3}, {2, 0, 2});
  const auto dense = [&](bool validate) {
    return one.run("SparseToDense", {last, shape, values<float>({3}, {1, 2, 3}), scalar<float>(9)}, {{"validate_indices", validate}});
  };
  EXPECT_EQ(dense(true).status().code(), Code::invalid_argument);
  auto out = dense(false);
  ASSERT_TRUE(out.ok()) << out.status().message();
  EXPECT_EQ(as_vector<float>(out.value()[0]), (std::vector<float>{2, 9, 3, 9})) << "the last of one place stays";
  for (int32_t bad : {4, -1, INT32_MIN, INT32_MAX}) {
    out = one.run("SparseToDense", {scalar<int32_t>(bad), shape, scalar<float>(1), scalar<float>(9)}, {{"validate_indices", false}});
    EXPECT_EQ(out.status().code(), Code::invalid_argument);
  }
  out = one.run("SparseToDense", {scalar<int32_t>(1), shape, one_op::texts({}, {"x"}), one_op::texts({}, {""})});
  ASSERT_TRUE(out.ok()) << out.status().message();
  EXPECT_EQ(one_op::as_strings(out.value()[0]), (std::vector<std::string>{"", "x", "", ""}));
  out = one.run("SparseToDense", {values<int32_t>({1, 2}, {1, 1}), shape, scalar<float>(1), scalar<float>(9)});
  EXPECT_EQ(out.status().code(), Code::invalid_argument) << "pairs do not lie in a vector";
}

// Against sums one at a time.
TEST(SparseTensorDenseMatMul, EveryAdjoint) {
  OneOp one = sparse_ops();
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    const bool turned_a = random() % 2, turned_b = random() % 2;
    const int64_t rows = 1 + random() % 5, inner = 1 + random() % 5, columns = 1 + random() % 200, count = random() % 9;
    std::vector<int64_t> places;
    std::vector<double> entries, b(static_cast<size_t>(inner * columns)), want(static_cast<size_t>(rows * columns));
    for (double& x : b) x = static_cast<double>(random() % 100) / 8;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t r = random() % rows, k = random() % inner;
      places.push_back(turned_a ? k : r);
      places.push_back(turned_a ? r : k);
      entries.push_back(static_cast<double>(random() % 100) / 8);
      for (int64_t j = 0; j < columns; ++j) {
        want[static_cast<size_t>(r * columns + j)] += entries.back() * b[static_cast<size_t>(turned_b ? j * inner + k : k * columns + j)];
      }
    }
    const Tensor shape = values<int64_t>({2}, turned_a ? Longs{inner, rows} : Longs{rows, inner});
    const Tensor right = turned_b ? values<double>({columns, inner}, b) : values<double>({inner, columns}, b);
    for (auto known : kAll) {
      auto out = one.run("SparseTensorDenseMatMul", {values<int64_t>({count, 2}, places), values<double>({count}, entries), shape, right},
                         {{"adjoint_a", turned_a}, {"adjoint_b", turned_b}}, {.known = known, .threads = 3});
      ASSERT_TRUE(out.ok()) << out.status().message();
      EXPECT_EQ(as_vector<double>(out.value()[0]), want);
    }
  }
  const Tensor b = values<float>({3, 1}, {1, 2, 3}), entry = values<float>({1}, {1});
  for (const Longs& bad : {Longs{2, 0}, Longs{0, 3}, Longs{-1, 0}, Longs{0, INT64_MIN}}) {
    EXPECT_EQ(one.run("SparseTensorDenseMatMul", {values<int64_t>({1, 2}, bad), entry, values<int64_t>({2}, {2, 3}), b}).status().code(),
              Code::invalid_argument);
  }
  EXPECT_EQ(one.run("SparseTensorDenseMatMul", {values<int64_t>({1, 2}, {0, 0}), entry, values<int64_t>({2}, {2, 4}), b}).status().code(),
            Code::invalid_argument);
}

TEST(SparseSegment, SumsMeansAndGaps) {
  OneOp one = sparse_ops();
  const Tensor data = values<float>({3, 1}, {1, 2, 4}), indices = values<int32_t>({4}, {2, 0, 1, 1}),
               ids = values<int64_t>({4}, {0, 0, 2, 2});
  const auto run = [&](const char* op) { return as_vector<float>(one.run(op, {data, indices, ids}).take()[0]); };
  EXPECT_EQ(run("SparseSegmentSum"), (std::vector<float>{5, 0, 4}));
  EXPECT_EQ(run("SparseSegmentMean"), (std::vector<float>{2.5, 0, 2}));
  EXPECT_EQ(run("SparseSegmentSqrtN")[0], static_cast<float>(5 / std::sqrt(2.0)));
  for (auto known : kAll) {
    auto out = one.run("SparseSegmentMeanWithNumSegments", {data, indices, ids, scalar<int32_t>(5)}, {}, {.known = known});
    ASSERT_TRUE(out.ok()) << out.status().message();
    EXPECT_EQ(as_vector<float>(out.value()[0]), (std::vector<float>{2.5, 0, 2, 0, 0}));
    EXPECT_EQ(one.run("SparseSegmentSumWithNumSegments", {data, indices, ids, scalar<int32_t>(2)}, {}, {.known = known}).status().code(),
              Code::invalid_argument);
  }
  // Small floats add up in float: 2049 is none of them, 2050 is.
  std::vector<Half> small(4, Half(1.0f));
  small[0] = Half(2046.0f);
  const auto halves = one.run("SparseSegmentSum", {Tensor::of<Half>(one_op::shape({4, 1}), std::span<const Half>(small)).take(),
                                                   values<int32_t>({5}, {0, 1, 2, 3, 1}), values<int32_t>({5}, {0, 0, 0, 0, 0})});
  EXPECT_EQ(static_cast<float>(halves.value()[0].as<Half>()[0]), 2050);
  EXPECT_EQ(one.run("SparseSegmentSum", {values<uint8_t>({1, 1}, {200}), values<int32_t>({2}, {0, 0}), values<int32_t>({2}, {0, 0})})
                .take()[0]
                .as<uint8_t>()[0],
            144)
      << "whole numbers wrap around";
}

TEST(SparseSegment, BadIndicesAreErrorsInEveryKernel) {
  OneOp one = sparse_ops();
  const Tensor data = values<float>({2, 1}, {1, 2}), good = values<int64_t>({1}, {0}), rows = scalar<int32_t>(2);
  for (int64_t bad : {int64_t{2}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    const Tensor index = values<int64_t>({1}, {bad});
    for (const char* op : {"SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"}) {
      const std::string counted = std::string(op) + "WithNumSegments", back = std::string(op) + "Grad";
      EXPECT_EQ(one.run(op, {data, index, good}).status().code(), Code::invalid_argument);
      EXPECT_EQ(one.run(counted, {data, good, index, rows}).status().code(), Code::invalid_argument);
      EXPECT_EQ(one.run(back, {data, index, good, rows}).status().code(), Code::invalid_argument);
      EXPECT_EQ(one.run(back, {data, good, index, rows}).status().code(), Code::invalid_argument);
    }
  }
  EXPECT_EQ(one.run("SparseSegmentSum", {data, values<int32_t>({2}, {0, 1}), values<int32_t>({2}, {1, 0})}).status().code(),
            Code::invalid_argument);
  EXPECT_EQ(one.run("SparseSegmentSum", {data, values<int32_t>({2}, {0, 1}), values<int32_t>({1}, {0})}).status().code(),
            Code::invalid_argument);
}

TEST(SparseSegment, SameBitsForAnyNumberOfThreads) {
  OneOp one = sparse_ops();
  const int64_t rows = 500, columns = 300, picks = 2000;
  std::vector<int32_t> indices, ids;
  for (int64_t i = 0; i < picks; ++i) {
    indices.push_back(static_cast<int32_t>(i * 7919 % rows));
    ids.push_back(static_cast<int32_t>(i / 9));
  }
  const Tensor data = values<float>({rows, columns}, one_op::ramp(rows * columns, -1, 1));
  const Tensor index = values<int32_t>({picks}, indices), segment = values<int32_t>({picks}, ids);
  const auto same = [&](std::string_view op, std::initializer_list<Tensor> inputs) {
    return bit_equal(one.run(op, inputs, {}, {.threads = 1}).take()[0], one.run(op, inputs, {}, {.threads = 3}).take()[0]);
  };
  EXPECT_TRUE(same("SparseSegmentMean", {data, index, segment}));
  EXPECT_TRUE(same("SparseSegmentSqrtNGrad", {data, index, segment, scalar<int32_t>(static_cast<int32_t>(rows))}));
}

}  // namespace
}  // namespace dtg
