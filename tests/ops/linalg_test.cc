// Linear algebra: what is decomposed comes together again, on random matrices; what cannot be is refused.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using one_op::as_vector;
using one_op::bit_equal;
using one_op::values;

struct Dense {
  int64_t rows, columns;
  std::vector<double> data;
  double at(int64_t i, int64_t j) const { return data[static_cast<size_t>(i * columns + j)]; }
};

Dense times(const Dense& a, const Dense& b, bool transpose_b = false) {
  Dense c{a.rows, transpose_b ? b.rows : b.columns, {}};
  for (int64_t i = 0; i < c.rows; ++i) {
    for (int64_t j = 0; j < c.columns; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < a.columns; ++k) sum += a.at(i, k) * (transpose_b ? b.at(j, k) : b.at(k, j));
      c.data.push_back(sum);
    }
  }
  return c;
}

void expect_near(const Dense& a, const Dense& b) {
  ASSERT_EQ(a.data.size(), b.data.size());
  for (size_t i = 0; i < a.data.size(); ++i) EXPECT_NEAR(a.data[i], b.data[i], 1e-9);
}

Dense random_matrix(int64_t rows, int64_t columns, uint64_t seed) {
  Dense m{rows, columns, {}};
  for (int64_t i = 0; i < rows * columns; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    m.data.push_back(static_cast<double>(seed >> 11) * 0x1p-52 - 1.0);
  }
  return m;
}

Tensor tensor_of(const Dense& m) { return values<double>({m.rows, m.columns}, m.data); }
Dense dense_of(const Tensor& t) { return {t.shape().dim(0), t.shape().dim(1), as_vector<double>(t)}; }

TEST(Linalg, ComesTogetherAgain) {
  OneOp one({ops::register_linalg});
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{5, 5}, {7, 3}, {3, 7}, {1, 4}, {40, 33}}) {
    const Dense a = random_matrix(rows, columns, static_cast<uint64_t>(rows * 100 + columns));
    for (bool full : {false, true}) {
      auto qr = one.run("Qr", {tensor_of(a)}, {{"full_matrices", full}});
      ASSERT_TRUE(qr.ok()) << qr.status().message();
      expect_near(times(dense_of(qr.value()[0]), dense_of(qr.value()[1])), a);
      auto svd = one.run("Svd", {tensor_of(a)}, {{"full_matrices", full}});
      ASSERT_TRUE(svd.ok()) << svd.status().message();
      const auto s = as_vector<double>(svd.value()[0]);
      Dense u = dense_of(svd.value()[1]), v = dense_of(svd.value()[2]), us{u.rows, v.columns, {}};
      for (int64_t i = 0; i < us.rows; ++i) {
        for (int64_t j = 0; j < us.columns; ++j) {
          us.data.push_back(j < static_cast<int64_t>(s.size()) ? u.at(i, j) * s[static_cast<size_t>(j)] : 0);
        }
      }
      expect_near(times(us, v, true), a);
    }
  }
}

// Columns whose length no float could square: what comes of them is as long as they are, and no memory that nobody wrote.
TEST(Linalg, SingularValuesOfVeryLargeAndVerySmallNumbers) {
  OneOp one({ops::register_linalg});
  for (const float unit : {4e37f, 1e20f, 1e-20f, 1e-40f}) {
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{2, 1}, {1, 2}}) {
      const auto svd = one.run("Svd", {values<float>({rows, columns}, {3 * unit, -4 * unit})});
      ASSERT_TRUE(svd.ok()) << svd.status().message();
      EXPECT_NEAR(as_vector<float>(svd.value()[0])[0] / unit, 5, 1e-4) << unit;
      const auto side = as_vector<float>(svd.value()[rows == 2 ? 1 : 2]);
      EXPECT_NEAR(std::fabs(side[0]), 0.6, 1e-4);
      EXPECT_NEAR(side[1] / side[0], -4.0 / 3, 1e-4);
    }
  }
  const auto beyond = one.run("Svd", {values<float>({2, 1}, {3e38f, 3e38f})});
  ASSERT_TRUE(beyond.ok()) << beyond.status().message();
  EXPECT_TRUE(std::isinf(as_vector<float>(beyond.value()[0])[0]));
}

TEST(Linalg, SolvesWhatItIsGiven) {
  OneOp one({ops::register_linalg});
  for (int64_t n : {1, 4, 30}) {
    const Dense a = random_matrix(n, n, static_cast<uint64_t>(n)), b = random_matrix(n, 3, 99);
    auto x = one.run("MatrixSolve", {tensor_of(a), tensor_of(b)});
    ASSERT_TRUE(x.ok()) << x.status().message();
    expect_near(times(a, dense_of(x.value()[0])), b);
    auto inverse = one.run("MatrixInverse", {tensor_of(a)}, {{"adjoint", true}});
    ASSERT_TRUE(inverse.ok());
    const Dense unit = times(dense_of(inverse.value()[0]), a, true);
    for (int64_t i = 0; i < n; ++i) EXPECT_NEAR(unit.at(i, i), 1.0, 1e-7);
    Dense definite = times(a, a, true);
    for (int64_t i = 0; i < n; ++i) definite.data[static_cast<size_t>(i * n + i)] += 1;
    const Dense l = dense_of(one.run("Cholesky", {tensor_of(definite)}).take()[0]);
    expect_near(times(l, l, true), definite);
    auto eig = one.run("SelfAdjointEigV2", {tensor_of(definite)});
    ASSERT_TRUE(eig.ok());
    const auto e = as_vector<double>(eig.value()[0]);
    const Dense v = dense_of(eig.value()[1]);
    Dense ve = v;
    for (int64_t i = 0; i < n * n; ++i) ve.data[static_cast<size_t>(i)] *= e[static_cast<size_t>(i % n)];
    expect_near(times(ve, v, true), definite);
  }
}

TEST(Linalg, RefusesWhatHasNoAnswer) {
  OneOp one({ops::register_linalg});
  const Tensor singular = values<float>({2, 2}, {1, 2, 2, 4}), negative = values<float>({2, 2}, {1, 0, 0, -1}),
               odd = values<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor nan = values<float>({1, 1}, {NAN});
  for (auto known : {OneOp::Known::values, OneOp::Known::nothing}) {
    const auto code = [&](const char* op, const Tensor& x) { return one.run(op, {x}, {}, {.known = known}).status().code(); };
    EXPECT_EQ(code("MatrixInverse", singular), Code::invalid_argument);
    EXPECT_EQ(code("Cholesky", negative), Code::invalid_argument);
    EXPECT_EQ(code("Cholesky", odd), Code::invalid_argument);
    EXPECT_EQ(code("Svd", nan), Code::invalid_argument);
    EXPECT_EQ(code("MatrixDeterminant", singular), Code::ok);
    EXPECT_EQ(code("MatrixInverse", values<float>({0, 2, 2}, {})), Code::ok);
  }
}

TEST(Linalg, BatchesAreTheSameForAnyNumberOfThreads) {
  OneOp one({ops::register_linalg});
  const Tensor batch = values<double>({40, 6, 6}, random_matrix(240, 6, 5).data);
  for (const char* op : {"MatrixInverse", "MatrixDeterminant", "Qr"}) {
    const Tensor inputs[] = {batch};
    const auto a = one.run(op, inputs, {}, {.threads = 1}), b = one.run(op, inputs, {}, {.threads = 3});
    ASSERT_TRUE(a.ok() && b.ok()) << op;
    EXPECT_TRUE(bit_equal(a.value()[0], b.value()[0])) << op;
  }
}

TEST(Diagonals, BandsOfAnyWidthAndAlignment) {
  OneOp one({ops::register_diag});
  const Tensor x = values<int8_t>({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  for (auto known : {OneOp::Known::values, OneOp::Known::nothing}) {
    const auto part = [&](const char* align) {
      auto out =
          one.run("MatrixDiagPartV3", {x, values<int32_t>({2}, {-1, 1}), one_op::scalar<int8_t>(0)}, {{"align", align}}, {.known = known});
      return out.ok() ? as_vector<int8_t>(out.value()[0]) : std::vector<int8_t>();
    };
    EXPECT_EQ(part("RIGHT_LEFT"), (std::vector<int8_t>{0, 2, 6, 1, 5, 9, 4, 8, 0}));
    EXPECT_EQ(part("LEFT_RIGHT"), (std::vector<int8_t>{2, 6, 0, 1, 5, 9, 0, 4, 8}));
  }
}

}  // namespace
}  // namespace dtg
