// Special functions against their definitions and the standard library's, and what they are at the ends of their domains.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using one_op::as_vector;
using one_op::values;

class Special : public testing::Test {
 protected:
  std::vector<double> of(const char* op, std::initializer_list<Tensor> inputs) {
    auto out = one_.run(op, inputs);
    EXPECT_TRUE(out.ok()) << op << ": " << out.status().message();
    return out.ok() ? as_vector<double>(out.value()[0]) : std::vector<double>(64);
  }
  OneOp one_{ops::register_special};
};

TEST_F(Special, AgreesWithTheStandardLibrary) {
  std::vector<double> xs;
  for (int i = 1; i <= 40; ++i) xs.push_back(0.17 * i);
  const auto n = static_cast<int64_t>(xs.size());
  const Tensor x = values<double>({n}, xs);
  const auto lgamma = of("Lgamma", {x}), i0 = of("BesselI0", {x}), j1 = of("BesselJ1", {x}), k0e = of("BesselK0e", {x}),
             y0 = of("BesselY0", {x});
  const auto zeta =
      of("Zeta", {values<double>({n}, std::vector<double>(xs.size(), 3.0)), values<double>({n}, std::vector<double>(xs.size(), 1.0))});
  for (size_t i = 0; i < xs.size(); ++i) {
    EXPECT_NEAR(lgamma[i], std::lgamma(xs[i]), 1e-10 * (1 + std::fabs(lgamma[i])));
    EXPECT_NEAR(i0[i], std::cyl_bessel_i(0, xs[i]), 1e-10 * i0[i]);
    EXPECT_NEAR(j1[i], std::cyl_bessel_j(1, xs[i]), 1e-10);
    EXPECT_NEAR(k0e[i], std::cyl_bessel_k(0, xs[i]) * std::exp(xs[i]), 1e-10);
    EXPECT_NEAR(y0[i], std::cyl_neumann(0, xs[i]), 1e-9);
    EXPECT_NEAR(zeta[i], std::riemann_zeta(3.0), 1e-12);
  }
}

TEST_F(Special, InversesAndComplements) {
  const Tensor p = values<double>({5}, {0.01, 0.3, 0.5, 0.8, 0.999}), a = values<double>({5}, {0.2, 1, 3, 8, 40});
  const auto erfinv = of("Erfinv", {p}), quantile = of("Ndtri", {p}), low = of("Igamma", {a, p}), high = of("Igammac", {a, p});
  const auto beta = of("Betainc", {a, a, p});
  for (size_t i = 0; i < 5; ++i) {
    const double probability = as_vector<double>(p)[i];
    EXPECT_NEAR(std::erf(erfinv[i]), probability, 1e-12);
    EXPECT_NEAR(std::erfc(-quantile[i] / std::sqrt(2.0)) / 2, probability, 1e-12);
    EXPECT_NEAR(low[i] + high[i], 1.0, 1e-12);
    EXPECT_TRUE(beta[i] >= 0 && beta[i] <= 1);
  }
  EXPECT_NEAR(beta[2], 0.5, 1e-12) << "symmetric about the middle";
}

TEST_F(Special, TheEndsOfTheDomains) {
  const auto erfinv = of("Erfinv", {values<double>({4}, {-1, 0, 1, 1.5})}),
             quantile = of("Ndtri", {values<double>({4}, {0, 1, -0.1, 1.1})});
  EXPECT_TRUE(erfinv[0] == -INFINITY && erfinv[1] == 0 && erfinv[2] == INFINITY && std::isnan(erfinv[3]));
  EXPECT_TRUE(quantile[0] == -INFINITY && quantile[1] == INFINITY && std::isnan(quantile[2]) && std::isnan(quantile[3]));
  EXPECT_EQ(of("Lgamma", {values<double>({2}, {0, -3})}), (std::vector<double>{INFINITY, INFINITY}));
}

// An order that no integer type holds is even: each pole of it goes up. (UBSan watches the question.)
TEST_F(Special, PolesOfOrdersBeyondIntegers) {
  const std::vector<double> orders{1e30, 0x1p63, 0x1p53, INFINITY};
  const Tensor order = values<double>({4}, orders), at = values<double>({4}, {0, -1, -2, -3}),
               between = values<double>({4}, {0.5, 1, 2, 3});
  const std::vector<double> up(4, INFINITY);
  EXPECT_EQ(of("Zeta", {order, at}), up);
  EXPECT_EQ(of("Polygamma", {order, at}), up);
  EXPECT_EQ(of("Zeta", {order, between})[1], 1.0);
}

// Beyond all bounds the first power is all that is left.
TEST_F(Special, ZetaFarOut) {
  const Tensor order = values<double>({4}, {1.5, INFINITY, 1e30, 1e300}), at = values<double>({4}, {INFINITY, 2, 2, 1});
  EXPECT_EQ(of("Zeta", {order, at}), (std::vector<double>{0, 0, 0, 1}));
}

}  // namespace
}  // namespace dtg
