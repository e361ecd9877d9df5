// Random ops with a state, and samplers: a stream goes on from run to run and from plan to plan, and the bits are the same for any
// number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <map>
#include <set>

#include "device/cpu/philox.h"
#include "exec/memory_pool.h"
#include "exec/variable.h"
#include "ops/all.h"
#include "ops/looks.h"
#include "ops/one_op.h"
#include "ops/sampler_counts.h"

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
  OneOp one_{ops::register_random_stateful, ops::register_sampler, ops::register_variable};
};

std::vector<Attr> sampler(int64_t samples, int64_t range, bool unique = false) {
  return {{"num_true", 1}, {"num_sampled", samples}, {"unique", unique}, {"range_max", range}, {"seed", 2}, {"seed2", 3}};
}

// TensorFlow's, with a place for each class.
struct AliasTable {
  std::vector<float> keep;
  std::vector<int> alias;
  explicit AliasTable(const std::vector<float>& weights) : keep(weights.size()), alias(weights.size(), -1) {
    const auto n = static_cast<int>(weights.size());
    double sum = 0;
    for (float weight : weights) sum += static_cast<double>(weight);
    std::vector<double> share;
    std::vector<int> heavy, light;
    for (int i = 0; i < n; ++i) {
      share.push_back(static_cast<double>(weights[static_cast<size_t>(i)] * static_cast<float>(n)) / sum);
      (share.back() < 1.0 ? light : heavy).push_back(i);
    }
    while (!heavy.empty() && !light.empty()) {
      const int low = light.back(), high = heavy.back();
      light.pop_back(), heavy.pop_back();
      alias[static_cast<size_t>(low)] = high;
      share[static_cast<size_t>(high)] -= 1.0 - share[static_cast<size_t>(low)];
      (share[static_cast<size_t>(high)] < 1.0 ? light : heavy).push_back(high);
    }
    for (size_t i = 0; i < share.size(); ++i) keep[i] = static_cast<float>(share[i]);
    for (const auto& rest : {heavy, light}) {
      for (int i : rest) keep[static_cast<size_t>(i)] = 1.0f, alias[static_cast<size_t>(i)] = i;
    }
  }
  int64_t sample(cpu::PhiloxWords& words) const {
    const float r = words.uniform_float();
    const size_t at = words.below(static_cast<uint32_t>(keep.size()));
    return r < keep[at] ? static_cast<int64_t>(at) : alias[at];
  }
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

// Reserved classes of a FixedUnigramCandidateSampler have no weight and no memory of their own, and are drawn as if they had.
TEST_F(Draws, ReservedClassesAreDrawnAsInATableOfAll) {
  const Tensor classes = values<int64_t>({1, 1}, {3});
  for (int round = 0; round < 60; ++round) {
    const auto noise = [&](int64_t i) { return looks::noise(round * 1000 + i); };
    const auto reserved = static_cast<int64_t>(noise(0) * 40) * (round % 3), given = 1 + static_cast<int64_t>(noise(1) * 12);
    std::vector<float> weights(static_cast<size_t>(reserved), 0.0f);
    std::vector<double> unigrams;
    for (int64_t i = 0; i < given; ++i) {
      unigrams.push_back(round % 2 ? std::floor(noise(i + 2) * 4) + (i == 0) : noise(i + 2) * noise(i + 50) + 1e-6);
      weights.push_back(static_cast<float>(unigrams.back()));
    }
    const AliasTable table(weights);
    cpu::PhiloxWords words(cpu::Philox(2, 0, 3));
    std::vector<int64_t> wanted(500);
    for (int64_t& each : wanted) each = table.sample(words);
    std::vector<Attr> attrs = sampler(500, reserved + given);
    attrs.push_back({"num_reserved_ids", reserved});
    attrs.push_back({"unigrams", AttrValue::Variant(unigrams)});
    ResourceStore store;
    one_.use_store(&store);
    const auto out = one_.run("FixedUnigramCandidateSampler", std::array{classes}, attrs, {});
    ASSERT_TRUE(out.ok()) << out.status().message();
    ASSERT_EQ(as_vector<int64_t>(out.value()[0]), wanted) << reserved << " reserved, round " << round;
    one_.use_store(&store_);
  }
}

// What attributes say costs no time and no memory.
TEST_F(Draws, HugeAttributesAreNoWork) {
  const Tensor classes = values<int64_t>({1, 1}, {3});
  const auto fixed = [&](int64_t reserved, int64_t shards, int64_t range) {
    std::vector<Attr> attrs = sampler(4, range);
    attrs.insert(attrs.end(), {{"num_reserved_ids", reserved},
                               {"num_shards", shards},
                               {"shard", shards > 1 ? 3 : 0},
                               {"unigrams", AttrValue::Variant(std::vector<double>{1})}});
    return one_.run("FixedUnigramCandidateSampler", std::array{classes}, attrs, {});
  };
  const double begun = looks::thread_ms();
  EXPECT_EQ(fixed(int64_t{1} << 61, int64_t{1} << 62, 1).status().code(), Code::invalid_argument);
  EXPECT_EQ(fixed(int64_t{1} << 61, 1, 1).status().code(), Code::invalid_argument);
  EXPECT_EQ(fixed((int64_t{1} << 61) - 1, 1, int64_t{1} << 61).status().code(), Code::invalid_argument);
  constexpr int64_t kMany = 2'000'000'000;
  const auto drawn = fixed(kMany, 1, kMany + 1);
  ASSERT_TRUE(drawn.ok()) << drawn.status().message();
  EXPECT_EQ(as_vector<int64_t>(drawn.value()[0]), std::vector<int64_t>(4, kMany)) << "the only one with a weight";
  const auto learned = one_.run("LearnedUnigramCandidateSampler", std::array{classes}, sampler(4, 1'000'000'000), {});
  EXPECT_TRUE(learned.ok()) << learned.status().message();
  EXPECT_LT(looks::thread_ms() - begun, 500);
}

TEST_F(Draws, CountsStayWithinTheLimit) {
  MemoryBudget budget(64 << 10);
  const Ref<MemoryPool> pool = make_ref<MemoryPool>(&budget);
  const auto large = ops::ClassCounts::make(1 << 30, *pool);
  EXPECT_EQ(large.status().code(), Code::resource_exhausted);
  const Ref<ops::ClassCounts> counts = ops::ClassCounts::make(1 << 22, *pool).take();
  Status status;
  for (int64_t k = 0; k < 1 << 22 && status.ok(); k += 5000) status = counts->make_room(k, *pool);
  EXPECT_EQ(status.code(), Code::resource_exhausted) << "a page for each";
}

// Neither of another range, nor true ones that there are not: what is drawn is a class, whatever was learned under that name.
TEST_F(Draws, LearnedClassesAreOfTheirRange) {
  const auto drawn = [&](int64_t range, const std::vector<int64_t>& trues) {
    const auto out = one_.run("LearnedUnigramCandidateSampler", std::array{values<int64_t>({static_cast<int64_t>(trues.size()), 1}, trues)},
                              sampler(300, range), {});
    EXPECT_TRUE(out.ok()) << out.status().message();
    return out.ok() ? as_vector<int64_t>(out.value()[0]) : std::vector<int64_t>{range};
  };
  drawn(1000, {999});
  drawn(5, std::vector<int64_t>(500, 6));
  for (int64_t each : drawn(5, {0})) EXPECT_TRUE(each >= 0 && each < 5) << each;
  drawn(5, std::vector<int64_t>(5000, 2));
  const auto twos = drawn(5, {0});
  EXPECT_GT(std::count(twos.begin(), twos.end(), 2), 280) << "it has learned";
}

// In the midst of a run, another one of the same node comes to its end.
TEST_F(Draws, NobodyWaitsForALongOne) {
  struct Meanwhile final : Interrupt {
    explicit Meanwhile(ResourceStore* store) : store_(store) {}
    bool is_due() override {
      if (++looks_ != 5) return false;
      auto other = std::async(std::launch::async, [this] {
        OneOp one{ops::register_sampler};
        one.use_store(store_);
        const auto out = one.run("LearnedUnigramCandidateSampler", std::array{values<int64_t>({1, 1}, {3})}, sampler(1, 100'000), {});
        return out.status();
      });
      ended = other.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
      later_ = std::move(other);
      return false;
    }
    ResourceStore* const store_;
    int looks_ = 0;
    bool ended = false;
    std::future<Status> later_;
  };
  Meanwhile meanwhile(&store_);
  const auto out = one_.run("LearnedUnigramCandidateSampler", std::array{values<int64_t>({1, 1}, {3})}, sampler(50'000, 100'000, true),
                            {.interrupt = &meanwhile});
  ASSERT_TRUE(out.ok()) << out.status().message();
  ASSERT_GE(meanwhile.looks_, 5);
  EXPECT_TRUE(meanwhile.ended);
}

TEST_F(Draws, ThreadsLearnTogether) {
  constexpr int64_t kRange = 3000, kEach = 20'000;
  std::vector<std::future<bool>> all;
  for (int t = 0; t < 4; ++t) {
    all.push_back(std::async(std::launch::async, [this, t] {
      OneOp one{ops::register_sampler};
      one.use_store(&store_);
      std::vector<int64_t> trues(kEach);
      for (int64_t i = 0; i < kEach; ++i) trues[static_cast<size_t>(i)] = (i * 7 + t) % kRange;
      bool good = true;
      for (int round = 0; round < 5; ++round) {
        const auto out =
            one.run("LearnedUnigramCandidateSampler", std::array{values<int64_t>({kEach, 1}, trues)}, sampler(kEach, kRange), {});
        good = good && out.ok();
        for (int64_t each : as_vector<int64_t>(out.value()[0])) good = good && each >= 0 && each < kRange;
      }
      return good;
    }));
  }
  for (auto& each : all) EXPECT_TRUE(each.get());
  // Each class was true equally often, but for one: 4 threads, 5 rounds.
  const auto out = one_.run("LearnedUnigramCandidateSampler", std::array{values<int64_t>({2, 1}, {0, 1})}, sampler(1, kRange), {});
  const double one = static_cast<double>(kEach) * 20 / kRange, whole = kEach * 20 + kRange;
  EXPECT_NEAR(as_vector<float>(out.value()[1])[0], (one + 1) / whole, 25 / whole);
}

TEST_F(Draws, NobodyIsInTheWayAndAResetBeginsAnew) {
  const Tensor classes = values<int64_t>({1, 1}, {3});
  for (const char* op : {"UniformCandidateSampler", "LearnedUnigramCandidateSampler"}) {
    const auto draw_eight = [&] { return one_.run(op, std::array{classes}, sampler(8, 1000), {}); };
    ResourceStore first;
    one_.use_store(&first);
    const auto wanted = draw_eight();
    ASSERT_TRUE(wanted.ok());
    ResourceStore second;
    one_.use_store(&second);
    for (const ResourceStore::Entry& entry : first.entries()) {
      for (const std::string& container : {entry.container, std::string(entry.resource->kind()), std::string()}) {
        const auto made = one_.run(
            "VarHandleOp", {}, {{"dtype", DType::f32}, {"shape", PartialShape()}, {"container", container}, {"shared_name", entry.name}});
        ASSERT_TRUE(made.ok()) << made.status().message();
      }
    }
    ASSERT_FALSE(second.entries().empty());
    const auto drawn = draw_eight();
    ASSERT_TRUE(drawn.ok()) << drawn.status().message();
    EXPECT_TRUE(bit_equal(drawn.value()[0], wanted.value()[0]));
    EXPECT_FALSE(bit_equal(draw_eight().value()[0], wanted.value()[0]));
    second.reset({});
    for (const ResourceStore::Entry& entry : second.entries()) EXPECT_EQ(entry.resource->kind(), Variable::kKind) << op;
    EXPECT_TRUE(bit_equal(draw_eight().value()[0], wanted.value()[0])) << op;
    one_.use_store(&store_);
  }
}

// The same classes as the op with a state draws first, for a seed that is fed; and no state.
TEST_F(Draws, ClassesAreAFunctionOfTheSeed) {
  const Tensor classes = values<int64_t>({2, 1}, {3, 9});
  const auto drawn = [&](int64_t step, bool log_uniform) {
    const std::vector<Attr> attrs = {
        {"num_true", 1}, {"num_sampled", 40}, {"unique", true}, {"range_max", 60}, {"log_uniform", log_uniform}};
    const auto out = one_.run("_SampleClasses", std::array{classes, values<int64_t>({2}, {7, step})}, attrs, {});
    EXPECT_TRUE(out.ok()) << out.status().message();
    const auto all = as_vector<int64_t>(out.value()[0]);
    EXPECT_EQ(std::set<int64_t>(all.begin(), all.end()).size(), 40u);
    return all;
  };
  EXPECT_EQ(drawn(5, true), drawn(5, true));
  EXPECT_NE(drawn(5, true), drawn(6, true));
  EXPECT_NE(drawn(5, true), drawn(5, false));
  EXPECT_TRUE(store_.entries().empty());
}

}  // namespace
}  // namespace dtg
