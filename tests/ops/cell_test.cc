// Recurrent cells: a sequence is the cell step by step, the same bits for any number of threads, steps that are not taken are zeros,
// and what is refused.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using one_op::as_vector;
using one_op::ramp;
using one_op::scalar;
using one_op::values;

class CellTest : public ::testing::Test {
 protected:
  static constexpr int64_t kSteps = 5, kBatch = 3, kIn = 4, kCell = 17;
  Tensor drawn(std::initializer_list<int64_t> dims, float scale) {
    return values<float>(dims, ramp(one_op::shape(dims).count(), -scale, scale));
  }
  Tensor step_of(const Tensor& all, int64_t t) {
    const auto data = as_vector<float>(all);
    const int64_t each = all.shape().count(1, 3);
    return values<float>({all.shape().dim(1), all.shape().dim(2)},
                         std::vector<float>(data.begin() + t * each, data.begin() + (t + 1) * each));
  }
  OneOp one_{ops::register_rnn};
  Tensor x_ = drawn({kSteps, kBatch, kIn}, 1), state_ = drawn({kBatch, kCell}, 0.5f), w_ = drawn({kIn + kCell, 4 * kCell}, 0.3f),
         peep_ = drawn({kCell}, 0.4f), bias_ = drawn({4 * kCell}, 0.2f);
};

TEST_F(CellTest, ASequenceIsItsSteps) {
  for (const bool peephole : {false, true}) {
    const std::initializer_list<Attr> attrs = {{"use_peephole", peephole}, {"cell_clip", 0.6}};
    auto all = one_.run("BlockLSTM", {scalar<int64_t>(4), x_, state_, state_, w_, peep_, peep_, peep_, bias_}, attrs);
    auto again = one_.run("BlockLSTM", {scalar<int64_t>(4), x_, state_, state_, w_, peep_, peep_, peep_, bias_}, attrs, {.threads = 4});
    ASSERT_TRUE(all.ok() && again.ok()) << all.status().message();
    Tensor cs = state_, h = state_;
    for (int64_t t = 0; t < kSteps; ++t) {
      auto one = one_.run("LSTMBlockCell", {step_of(x_, t), cs, h, w_, peep_, peep_, peep_, bias_}, attrs);
      ASSERT_TRUE(one.ok()) << one.status().message();
      for (size_t i = 0; i < 7; ++i) {
        EXPECT_TRUE(one_op::bit_equal(all.value()[i], again.value()[i]));
        const auto got = as_vector<float>(step_of(all.value()[i], t)), want = as_vector<float>(one.value()[i]);
        for (size_t k = 0; k < got.size(); ++k) ASSERT_NEAR(got[k], t < 4 ? want[k] : 0.0f, 1e-5) << "output " << i << ", step " << t;
      }
      cs = one.value()[1], h = one.value()[6];
    }
  }
}

// V2 orders its gates otherwise: with the columns moved, it is the first without a forget bias.
TEST_F(CellTest, TheSecondLayoutMovesTheGates) {
  const auto moved = [](const Tensor& tensor, int64_t rows) {
    const auto data = as_vector<float>(tensor);
    std::vector<float> out(data.size());
    const int64_t from[] = {0, 2, 1, 3};
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t k = 0; k < 4 * kCell; ++k) {
        out[static_cast<size_t>(r * 4 * kCell + k)] = data[static_cast<size_t>(r * 4 * kCell + from[k / kCell] * kCell + k % kCell)];
      }
    }
    return out;
  };
  const Tensor w = values<float>({kIn + kCell, 4 * kCell}, moved(w_, kIn + kCell)), bias = values<float>({4 * kCell}, moved(bias_, 1));
  auto first = one_.run("BlockLSTM", {scalar<int64_t>(5), x_, state_, state_, w_, peep_, peep_, peep_, bias_},
                        {{"forget_bias", 0.0}, {"cell_clip", -1.0}, {"use_peephole", true}});
  auto second = one_.run("BlockLSTMV2", {scalar<int64_t>(5), x_, state_, state_, w, peep_, peep_, peep_, bias}, {{"use_peephole", true}});
  ASSERT_TRUE(first.ok() && second.ok()) << second.status().message();
  const auto a = as_vector<float>(first.value()[6]), b = as_vector<float>(second.value()[6]);
  for (size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], 1e-5);
}

TEST_F(CellTest, GruFollowsItsFormula) {
  const Tensor x = step_of(x_, 0), wru = drawn({kIn + kCell, 2 * kCell}, 0.3f), wc = drawn({kIn + kCell, kCell}, 0.4f),
               bru = drawn({2 * kCell}, 0.2f), bc = drawn({kCell}, 0.3f);
  auto out = one_.run("GRUBlockCell", {x, state_, wru, wc, bru, bc});
  ASSERT_TRUE(out.ok()) << out.status().message();
  const auto r = as_vector<float>(out.value()[0]), u = as_vector<float>(out.value()[1]), c = as_vector<float>(out.value()[2]),
             h = as_vector<float>(out.value()[3]), before = as_vector<float>(state_);
  for (int64_t row = 0; row < kBatch; ++row) {
    for (int64_t k = 0; k < kCell; ++k) {
      double gate = bru.as<float>()[k], fresh = bc.as<float>()[k];
      for (int64_t j = 0; j < kIn + kCell; ++j) {
        const auto at = static_cast<size_t>(row * kCell + j - kIn);
        const double value = j < kIn ? double(x.as<float>()[row * kIn + j]) : double(before[at]);
        gate += value * double(wru.as<float>()[j * 2 * kCell + k]);
        fresh += (j < kIn ? value : value * double(r[at])) * double(wc.as<float>()[j * kCell + k]);
      }
      const auto at = static_cast<size_t>(row * kCell + k);
      ASSERT_NEAR(r[at], 1 / (1 + std::exp(-gate)), 1e-5);
      ASSERT_NEAR(c[at], std::tanh(fresh), 1e-5);
      ASSERT_NEAR(h[at], (1 - u[at]) * c[at] + u[at] * before[at], 1e-6);
    }
  }
}

TEST_F(CellTest, RefusesWhatDoesNotFit) {
  const auto code = [&](std::string_view op, std::initializer_list<Tensor> in) {
    const Code early = one_.run(op, in).status().code();
    EXPECT_EQ(one_.run(op, in, {}, {.known = OneOp::Known::nothing}).status().code(), early);
    return early;
  };
  for (const int64_t steps : {-1, 6}) {
    EXPECT_EQ(code("BlockLSTM", {scalar<int64_t>(steps), x_, state_, state_, w_, peep_, peep_, peep_, bias_}), Code::invalid_argument);
  }
  const Tensor x = step_of(x_, 0);
  EXPECT_EQ(code("LSTMBlockCell", {x, state_, state_, drawn({kIn + kCell + 1, 4 * kCell}, 1), peep_, peep_, peep_, bias_}),
            Code::invalid_argument);
  EXPECT_EQ(code("LSTMBlockCell", {x, state_, drawn({kBatch + 1, kCell}, 1), w_, peep_, peep_, peep_, bias_}), Code::invalid_argument);
  EXPECT_EQ(code("LSTMBlockCell", {x, state_, state_, w_, peep_, peep_, peep_, drawn({4 * kCell - 1}, 1)}), Code::invalid_argument);
  EXPECT_EQ(code("GRUBlockCell", {x, state_, drawn({kIn + kCell, 2 * kCell}, 1), drawn({kIn + kCell, kCell}, 1), drawn({kCell}, 1), peep_}),
            Code::invalid_argument);
}

}  // namespace
}  // namespace dtg
