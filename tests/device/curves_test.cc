// The vector loops of one element and of rows, on every instruction set of this machine, against the C++ library in double: choices
// and rounding at all special values, curves within a few units of the last place, rows of all short lengths, and that what an element
// becomes does not depend on its place.
#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "device/cpu/elementwise.h"
#include "device/cpu/rows.h"

namespace dtg::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

const std::vector<float> kSpecial = {0.0f, -0.0f, 1,     -1,     0.5f,  -0.5f,  1.5f,   2.5f,  -2.5f, 5.999f, 6,   6.001f,
                                     -6,   7,     1e-8f, -1e-8f, 3e38f, -3e38f, 1e-40f, 1e20f, kInf,  -kInf,  kNan};

// Calls fn once for each instruction set; its tables are asked for anew each time.
template <class Fn>
void on_every_target(Fn fn) {
  for (int64_t rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
    hwy::SetSupportedTargetsForTest(rest & -rest);
    fn();
  }
  hwy::SetSupportedTargetsForTest(0);
}

BlockFn block_of(ElementFn fn, DType dtype) {
  for (const auto table : {simd_blocks(), curve_blocks()}) {
    for (const ElementBlock& row : table) {
      if (row.fn == fn && row.dtype == dtype) return row.block;
    }
  }
  return nullptr;
}

template <class T>
bool same(T a, T b) {
  return (std::isnan(a) && std::isnan(b)) || a == b;
}

template <class T>
void check_choices() {
  using Fn = ElementFn;
  struct One {
    Fn fn;
    T (*want)(T);
  };
  struct Two {
    Fn fn;
    T (*want)(T, T);
  };
  const One ones[] = {
      {Fn::relu6, [](T a) { return a > 6    ? T(6)
                                   : a <= 0 ? T(0)
                                            : a; }},
      {Fn::sign, [](T a) { return a > 0    ? T(1)
                                  : a < 0  ? T(-1)
                                  : a == 0 ? T(0)
                                           : a; }},
      {Fn::softsign, [](T a) { return a / (1 + std::fabs(a)); }},
      {Fn::floor, [](T a) { return std::floor(a); }},
      {Fn::ceil, [](T a) { return std::ceil(a); }},
      {Fn::rint, [](T a) { return std::nearbyint(a); }},
      {Fn::round, [](T a) { return std::nearbyint(a); }},
  };
  const Two twos[] = {
      {Fn::relu6_grad, [](T a, T b) { return a * (b > 0 && b < 6 ? T(1) : T(0)); }},
      {Fn::softsign_grad, [](T a, T b) { return a / ((1 + std::fabs(b)) * (1 + std::fabs(b))); }},
      {Fn::selu_grad, [](T a, T b) { return a * (b < 0 ? b + T(1.7580993408473766) : T(1.0507009873554805)); }},
      {Fn::floor_div, [](T a, T b) { return std::floor(a / b); }},
      {Fn::div_no_nan, [](T a, T b) { return b == 0 ? T(0) : a / b; }},
      {Fn::mul_no_nan, [](T a, T b) { return b == 0 ? T(0) : a * b; }},
      {Fn::xdivy, [](T a, T b) { return a == 0 ? T(0) : a / b; }},
  };
  std::vector<T> a, b, c;
  for (const float x : kSpecial) {
    for (const float y : kSpecial) a.push_back(x), b.push_back(y), c.push_back(static_cast<T>(a.size() % 7) - 3);
  }
  const auto n = static_cast<int64_t>(a.size());
  std::vector<T> y(a.size());
  for (const One& test : ones) {
    const void* in[] = {a.data()};
    block_of(test.fn, dtype_of<T>)(in, y.data(), n);
    for (size_t i = 0; i < a.size(); ++i) ASSERT_TRUE(same(y[i], test.want(a[i]))) << int(test.fn) << " of " << a[i] << ": " << y[i];
  }
  for (const Two& test : twos) {
    const void* in[] = {a.data(), b.data()};
    block_of(test.fn, dtype_of<T>)(in, y.data(), n);
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_TRUE(same(y[i], test.want(a[i], b[i]))) << int(test.fn) << " of " << a[i] << ", " << b[i] << ": " << y[i];
    }
  }
  const void* in[] = {a.data(), b.data(), c.data()};
  block_of(Fn::clip, dtype_of<T>)(in, y.data(), n);
  for (size_t i = 0; i < a.size(); ++i) {
    const T below = c[i] < a[i] ? c[i] : a[i];
    ASSERT_TRUE(same(y[i], below < b[i] ? b[i] : below)) << a[i] << " in " << b[i] << " " << c[i];
  }
}

TEST(Curves, ChoicesAtAllSpecialValues) {
  on_every_target([] {
    check_choices<float>();
    check_choices<double>();
  });
}

double error_in_ulps(float y, double want) {
  const float size = std::fabs(static_cast<float>(want));
  return std::fabs(y - want) / std::max(std::nextafter(size, kInf) - size, 1e-38f);
}

TEST(Curves, AreAccurate) {
  struct Case {
    ElementFn fn;
    double (*want)(double);
    float low, high;
    double ulps;
  };
  using Fn = ElementFn;
  const Case cases[] = {
      {Fn::erf, std::erf, -5, 5, 2.5},         {Fn::erf, std::erf, -0.01f, 0.01f, 2.5},
      {Fn::erfc, std::erfc, -6, 0.5f, 3.5},    {Fn::erfc, std::erfc, 0.5f, 9, 6},
      {Fn::asin, std::asin, -1, 1, 3},         {Fn::asin, std::asin, -0.01f, 0.01f, 2},
      {Fn::acos, std::acos, -1, 1, 3},         {Fn::atan, std::atan, -50, 50, 3},
      {Fn::atan, std::atan, -0.01f, 0.01f, 2}, {Fn::atanh, std::atanh, -0.999f, 0.999f, 6},
      {Fn::atanh, std::atanh, -0.1f, 0.1f, 4},
  };
  on_every_target([&] {
    for (const Case& test : cases) {
      std::vector<float> x(50000), y(x.size());
      for (size_t i = 0; i < x.size(); ++i) x[i] = test.low + (test.high - test.low) * static_cast<float>(i) / 49999.0f;
      const void* in[] = {x.data()};
      block_of(test.fn, DType::f32)(in, y.data(), static_cast<int64_t>(x.size()));
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_LE(error_in_ulps(y[i], test.want(x[i])), test.ulps) << int(test.fn) << " of " << x[i] << ": " << y[i];
      }
    }
  });
}

TEST(Curves, OfTwoAndAtTheEdges) {
  using Fn = ElementFn;
  on_every_target([] {
    std::vector<float> a, b;
    for (const float x : kSpecial) {
      for (const float y : kSpecial) a.push_back(x), b.push_back(y);
    }
    std::vector<float> y(a.size());
    const auto n = static_cast<int64_t>(a.size());
    const void* in[] = {a.data(), b.data()};
    block_of(Fn::atan2, DType::f32)(in, y.data(), n);
    for (size_t i = 0; i < a.size(); ++i) {
      const double want = std::atan2(static_cast<double>(a[i]), static_cast<double>(b[i]));
      ASSERT_TRUE(std::isnan(want) ? std::isnan(y[i]) : std::fabs(y[i] - want) <= 6e-7 && std::signbit(y[i]) == std::signbit(want))
          << a[i] << ", " << b[i] << ": " << y[i];
    }
    for (const auto fn : {Fn::xlogy, Fn::xlog1py}) {
      block_of(fn, DType::f32)(in, y.data(), n);
      for (size_t i = 0; i < a.size(); ++i) {
        const float log = fn == Fn::xlogy ? std::log(b[i]) : std::log1p(b[i]), want = a[i] == 0 ? 0 : a[i] * log;
        ASSERT_TRUE(same(y[i], want) || std::fabs(y[i] - want) <= 1e-6f * std::fabs(want)) << a[i] << ", " << b[i] << ": " << y[i];
      }
    }
    const std::vector<std::pair<Fn, float (*)(float)>> ones = {{Fn::erf, std::erf},   {Fn::erfc, std::erfc}, {Fn::asin, std::asin},
                                                               {Fn::acos, std::acos}, {Fn::atan, std::atan}, {Fn::atanh, std::atanh}};
    for (const auto& [fn, want] : ones) {
      block_of(fn, DType::f32)(in, y.data(), n);
      for (size_t i = 0; i < a.size(); ++i) {
        ASSERT_TRUE(same(y[i], want(a[i])) || std::fabs(y[i] - want(a[i])) <= 1e-6f) << int(fn) << " of " << a[i] << ": " << y[i];
      }
    }
  });
}

// Bits of each element of a long block, of one that begins elsewhere, and alone.
TEST(Curves, APlaceDoesNotMatter) {
  on_every_target([] {
    for (const auto table : {simd_blocks(), curve_blocks()}) {
      for (const ElementBlock& row : table) {
        const size_t size = row.dtype == DType::f32 ? 4 : 8;
        constexpr size_t kCount = 67;
        std::vector<char> x[3], y(kCount * size), one(size);
        for (size_t k = 0; k < 3; ++k) {
          x[k].resize(kCount * size);
          for (size_t i = 0; i < kCount; ++i) {
            const double value = std::sin(static_cast<double>(i * (k + 3))) * (i % 5 == 0 ? 12 : 1);
            if (size == 4) reinterpret_cast<float*>(x[k].data())[i] = static_cast<float>(value);
            else reinterpret_cast<double*>(x[k].data())[i] = value;
          }
        }
        const void* in[] = {x[0].data(), x[1].data(), x[2].data()};
        row.block(in, y.data(), kCount);
        for (size_t i = 0; i < kCount; ++i) {
          const void* at[] = {x[0].data() + i * size, x[1].data() + i * size, x[2].data() + i * size};
          row.block(at, one.data(), 1);
          ASSERT_EQ(std::memcmp(one.data(), y.data() + i * size, size), 0) << int(row.fn) << " at " << i;
        }
      }
    }
  });
}

void check_row(const std::vector<float>& x) {
  const auto n = static_cast<int64_t>(x.size());
  double largest = -kInf, sum = 0;
  for (const float v : x) largest = std::max(largest, static_cast<double>(v));
  for (const float v : x) sum += std::exp(v - largest);
  std::vector<float> y(x.size() + 1, 42), log_y = y, in_place = x, log_in_place = x;
  const RowSum row = softmax_row(x.data(), y.data(), n);
  log_softmax_row(x.data(), log_y.data(), n);
  softmax_row(in_place.data(), in_place.data(), n);
  log_softmax_row(log_in_place.data(), log_in_place.data(), n);
  EXPECT_EQ(y.back(), 42) << "written behind a row of " << n;
  EXPECT_EQ(log_y.back(), 42) << "written behind a row of " << n;
  EXPECT_EQ(row.largest, static_cast<float>(largest));
  EXPECT_NEAR(row.sum / sum, 1, 1e-6);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_NEAR(y[i], std::exp(x[i] - largest) / sum, 1e-6) << n;
    const double log_want = x[i] - largest - std::log(sum);
    ASSERT_TRUE(same<double>(log_y[i], log_want) || std::fabs(log_y[i] - log_want) < 1e-5) << n;
    ASSERT_EQ(y[i], in_place[i]) << n;
    ASSERT_EQ(log_y[i], log_in_place[i]) << n;
  }
}

TEST(Rows, SoftmaxOfEveryShortLengthAndSomeLong) {
  on_every_target([] {
    for (int64_t n = 1; n <= 300; n += n < 70 ? 1 : 57) {
      std::vector<float> x(static_cast<size_t>(n));
      for (size_t i = 0; i < x.size(); ++i) x[i] = 4 * std::sin(static_cast<float>(i * 7 + x.size()));
      check_row(x);
      x[x.size() / 2] = -kInf;
      if (n > 1) check_row(x);
      x.back() = kNan;
      std::vector<float> y(x.size());
      softmax_row(x.data(), y.data(), n);
      for (const float v : y) ASSERT_TRUE(std::isnan(v)) << n;
      log_softmax_row(x.data(), y.data(), n);
      for (const float v : y) ASSERT_TRUE(std::isnan(v)) << n;
    }
  });
}

TEST(Rows, ManyRowsAreEachAsAlone) {
  constexpr int64_t kRows = 9;
  for (const int64_t n : {1, 3, 10, 33, 200}) {
    std::vector<float> x(static_cast<size_t>(kRows * n)), y(x.size()), log_y(x.size()), one(static_cast<size_t>(n));
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
    softmax_rows(x.data(), y.data(), kRows, n);
    log_softmax_rows(x.data(), log_y.data(), kRows, n);
    for (int64_t r = 0; r < kRows; ++r) {
      softmax_row(x.data() + r * n, one.data(), n);
      EXPECT_EQ(std::memcmp(one.data(), y.data() + r * n, one.size() * 4), 0);
      log_softmax_row(x.data() + r * n, one.data(), n);
      EXPECT_EQ(std::memcmp(one.data(), log_y.data() + r * n, one.size() * 4), 0);
    }
  }
}

}  // namespace
}  // namespace dtg::cpu
