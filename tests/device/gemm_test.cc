// The register-tile product against the plain one: every transposition, sizes around the tile's and panel's
// edges, bias and activation, every instruction set, and the same bits for any number of threads.
#include "device/cpu/gemm.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tensor/buffer.h"

namespace dtg::cpu {
namespace {

// Reproducible values of mixed sign.
std::vector<float> numbers(int64_t count, uint32_t seed) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<int32_t>(seed >> 8) % 2001 - 1000) / 1000.0f;
  }
  return values;
}

struct Block {
  explicit Block(int64_t size) : bytes(size + 64), data(allocate_block(bytes)) {}
  ~Block() { release_block(data, bytes); }
  const int64_t bytes;
  void* const data;
};

struct Case {
  int64_t m, n, k;
  bool ta, tb;
};

std::vector<float> run(const Case& s, Pool& pool, const std::vector<float>& a, const std::vector<float>& b, const float* bias, bool relu) {
  const GemmPlan plan = gemm_plan(s.m, s.n, s.k, s.ta, s.tb);
  Block workspace(plan.workspace().value());
  std::vector<float> c(static_cast<size_t>(s.m * s.n), std::numeric_limits<float>::quiet_NaN());
  gemm_run(plan, pool, a.data(), b.data(), bias, relu, c.data(), workspace.data);
  return c;
}

void check(const Case& s, Pool& pool) {
  const auto a = numbers(s.m * s.k, 1), b = numbers(s.k * s.n, 2), bias = numbers(s.n, 3);
  std::vector<double> da(a.begin(), a.end()), db(b.begin(), b.end()), want(static_cast<size_t>(s.m * s.n));
  plain_gemm<double, double>(s.m, s.n, s.k, s.ta, s.tb, da.data(), db.data(), want.data(), 0, s.m);
  const auto c = run(s, pool, a, b, nullptr, false), fused = run(s, pool, a, b, bias.data(), true);
  const double tolerance = 1e-6 * (1.0 + static_cast<double>(s.k));
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(c[i], want[i], tolerance) << s.m << "x" << s.n << "x" << s.k << " " << s.ta << s.tb << " at " << i;
    const double shifted = want[i] + static_cast<double>(bias[i % static_cast<size_t>(s.n)]);
    ASSERT_NEAR(fused[i], std::max(shifted, 0.0), tolerance) << "fused " << s.m << "x" << s.n << "x" << s.k << " at " << i;
  }
}

const Case kCases[] = {{1, 1, 1, false, false},    {14, 32, 8, false, false},   {15, 33, 7, false, true},
                       {3, 17, 5, true, false},    {29, 47, 13, true, true},    {64, 10, 30, true, false},
                       {41, 16, 600, false, true}, {330, 70, 40, false, false}, {2, 96, 1030, false, false}};

TEST(Gemm, AgreesWithThePlainProduct) {
  Pool pool({.threads = 2});
  for (Case s : kCases) {
    for (int t = 0; t < 4; ++t) {
      s.ta = (t & 1) != 0, s.tb = (t & 2) != 0;
      check(s, pool);
    }
  }
}

TEST(Gemm, EveryInstructionSetOfThisMachine) {
  Pool pool({.threads = 1});
  const int64_t supported = hwy::SupportedTargets();
  for (int64_t rest = supported; rest != 0; rest &= rest - 1) {
    hwy::SetSupportedTargetsForTest(rest & -rest);
    for (const Case& s : kCases) check(s, pool);
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST(Gemm, ThreadsDoNotChangeABit) {
  Pool one({.threads = 1}), three({.threads = 3});
  for (const Case& s : {Case{128, 512, 300, false, false}, Case{128, 512, 300, false, true}, Case{512, 300, 128, true, false}}) {
    const auto a = numbers(s.m * s.k, 4), b = numbers(s.k * s.n, 5);
    EXPECT_GT(gemm_plan(s.m, s.n, s.k, s.ta, s.tb).shards(), 1);
    EXPECT_EQ(run(s, one, a, b, nullptr, false), run(s, three, a, b, nullptr, false));
  }
}

TEST(Gemm, EmptySumsAreZeroAndNaNPassesTheActivation) {
  Pool pool({.threads = 1});
  const std::vector<float> nothing;
  const float bias[2] = {1.0f, -1.0f};
  EXPECT_EQ(run({2, 2, 0, false, false}, pool, nothing, nothing, bias, true), (std::vector<float>{1, 0, 1, 0}));
  EXPECT_TRUE(run({0, 3, 2, false, false}, pool, nothing, numbers(6, 1), nullptr, false).empty());
  const auto c = run({1, 1, 1, false, false}, pool, {std::numeric_limits<float>::quiet_NaN()}, {1.0f}, nullptr, true);
  EXPECT_TRUE(std::isnan(c[0]));
}

// Doubles: against the plain product, on every instruction set, and the same bits however the rows are cut.
TEST(Gemm, OfDoubles) {
  const int64_t supported = hwy::SupportedTargets();
  for (int64_t rest = supported; rest != 0; rest &= rest - 1) {
    hwy::SetSupportedTargetsForTest(rest & -rest);
    for (Case s : kCases) {
      for (int t = 0; t < 4; ++t) {
        s.ta = (t & 1) != 0, s.tb = (t & 2) != 0;
        const auto fa = numbers(s.m * s.k, 1), fb = numbers(s.k * s.n, 2);
        const std::vector<double> a(fa.begin(), fa.end()), b(fb.begin(), fb.end());
        std::vector<double> want(static_cast<size_t>(s.m * s.n)), c(want.size(), std::nan("")), cut = c;
        plain_gemm<double, double>(s.m, s.n, s.k, s.ta, s.tb, a.data(), b.data(), want.data(), 0, s.m);
        gemm_f64({s.m, s.n, s.k, s.ta, s.tb, a.data(), b.data(), c.data()}, 0, s.m);
        for (int64_t row = 0; row < s.m; row += 5) {
          gemm_f64({s.m, s.n, s.k, s.ta, s.tb, a.data(), b.data(), cut.data()}, row, std::min(s.m, row + 5));
        }
        for (size_t i = 0; i < want.size(); ++i)
          ASSERT_NEAR(c[i], want[i], 1e-12 * (1 + s.k)) << s.m << "x" << s.n << "x" << s.k << " " << t;
        ASSERT_EQ(c, cut) << s.m << "x" << s.n << "x" << s.k << " " << t;
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  double nothing[4] = {1, 2, 3, 4};
  gemm_f64({2, 2, 0, false, true, nothing, nothing, nothing}, 0, 2);
  EXPECT_EQ(nothing[3], 0);
  gemm_f64({4, 0, 3, true, false, nothing, nothing, nothing}, 0, 4);
}

}  // namespace
}  // namespace dtg::cpu
