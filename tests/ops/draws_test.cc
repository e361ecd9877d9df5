// Random ops with a state, and samplers: a stream goes on from run to run and from plan to plan, and the bits are the same for any
// number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using one_op::as_vector;
using one_op::bit_equal;
using one_op::scalar;
using one_op::values;

class Draws : public testing::Test {
 protected:
  Draws() { one_.use_store(&store_); }
  Tensor draw(const char* op, std::initializer_list<Tensor> inputs, std::initializer_list<Attr> attrs, int threads = 1) {
    auto out = one_.run(op, inputs, attrs, {.threads = threads});
    EXPECT_TRUE(out.ok()) << out.status().message();
    return out.ok() ? out.value()[0] : Tensor();
  }
  ResourceStore store_;
  OneOp one_{ops::register_random_stateful, ops::register_sampler};
};

TEST_F(Draws, GoOnAndBeginAgain) {
  const Tensor shape = values<int32_t>({1}, {1000});
  const std::initializer_list<Attr> seeded = {{"dtype", DType::f32}, {"seed", 7}, {"seed2", 9}};
  const Tensor first = draw("RandomUniform", {shape}, seeded), second = draw("RandomUniform", {shape}, seeded);
  EXPECT_FALSE(bit_equal(first, second));
  ResourceStore other;
  one_.use_store(&other);
  EXPECT_TRUE(bit_equal(first, draw("RandomUniform", {shape}, seeded, 3)));
  EXPECT_TRUE(bit_equal(second, draw("RandomUniform", {shape}, seeded, 3)));
  // Two seeds of 0 mean any.
  ResourceStore third;
  const Tensor any = draw("RandomUniform", {shape}, {{"dtype", DType::f32}});
  one_.use_store(&third);
  EXPECT_FALSE(bit_equal(any, draw("RandomUniform", {shape}, {{"dtype", DType::f32}})));
}

TEST_F(Draws, MultinomialDoesNotDependOnThreads) {
  const Tensor logits = values<float>({40, 7}, one_op::ramp(280, -2, 2)), samples = scalar<int32_t>(33);
  const Tensor a = draw("Multinomial", {logits, samples}, {{"seed", 3}}, 1);
  ResourceStore other;
  one_.use_store(&other);
  EXPECT_TRUE(bit_equal(a, draw("Multinomial", {logits, samples}, {{"seed", 3}}, 3)));
  for (int64_t drawn : as_vector<int64_t>(a)) EXPECT_TRUE(drawn >= 0 && drawn < 7);
}

TEST_F(Draws, ShufflesKeepEveryRow) {
  std::vector<int32_t> rows(60);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int32_t>(i / 2);
  const auto shuffled = as_vector<int32_t>(draw("RandomShuffle", {values<int32_t>({30, 2}, rows)}, {{"seed", 5}}));
  std::set<int32_t> seen;
  for (size_t i = 0; i < shuffled.size(); i += 2) {
    EXPECT_EQ(shuffled[i], shuffled[i + 1]);
    seen.insert(shuffled[i]);
  }
  EXPECT_EQ(seen.size(), 30u);
  EXPECT_NE(shuffled, rows);
}

TEST_F(Draws, UniqueCandidatesAreDifferentAndOfTheirRange) {
  const Tensor classes = values<int64_t>({1, 1}, {3});
  for (const char* op : {"UniformCandidateSampler", "LogUniformCandidateSampler", "LearnedUnigramCandidateSampler"}) {
    const auto drawn =
        as_vector<int64_t>(draw(op, {classes}, {{"num_true", 1}, {"num_sampled", 50}, {"unique", true}, {"range_max", 50}, {"seed", 2}}));
    EXPECT_EQ(std::set<int64_t>(drawn.begin(), drawn.end()).size(), 50u) << op;
    EXPECT_TRUE(*std::min_element(drawn.begin(), drawn.end()) == 0 && *std::max_element(drawn.begin(), drawn.end()) == 49) << op;
    const auto refused = one_.run(op, {classes}, {{"num_true", 1}, {"num_sampled", 51}, {"unique", true}, {"range_max", 50}});
    EXPECT_EQ(refused.status().code(), Code::invalid_argument);
  }
}

}  // namespace
}  // namespace dtg
