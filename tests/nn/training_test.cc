// What stands around an optimizer's rule: lists of variables, weight decay and who is exempt, clipping of rows, averages, look-ahead and
// accumulation, against formulas worked out here.
#include <cmath>

#include "nn/losses.h"
#include "nn/norm.h"
#include "nn/optimizer.h"
#include "small_model.h"

namespace dtg {
namespace {

using Kind = Optimizer::Kind;

Value sum_of_products(SmallModel& small, const NamedVariable& v, Value factors) {
  Build build(small.graph());
  const Value loss = build.sum(build.mul(v.read, factors), build.ints({0}));
  EXPECT_TRUE(build.ok()) << build.status().message();
  return loss;
}

Value slope(SmallModel& small, const std::vector<float>& values) {
  Build build(small.graph());
  return build.constant(good(Tensor::of<float>(Shape::of({static_cast<int64_t>(values.size())}), std::span<const float>(values))));
}

std::vector<float> read(SmallModel& small, const char* name) {
  const NamedVariable* const found = small.model().find(name);
  EXPECT_NE(found, nullptr) << name;
  return found ? small.floats(found->read) : std::vector<float>();
}

// As a generator and its critic: each step moves its own, with slots of its own, and the other's stay.
TEST(VariableLists, TrainEachItsOwn) {
  SmallModel small;
  const NamedVariable g = small.variable("generator", {1, 2}), c = small.variable("critic", {3, 4});
  Build build(small.graph());
  const Value product = build.mul(g.read, c.read), loss = build.sum(product, build.ints({0}));
  ASSERT_TRUE(build.ok());
  const Training of_g =
      good(minimize(small.model(), loss, {.kind = Kind::adam, .learning_rate = {}, .rate = 0.5, .variables = {g.handle}}));
  const Training of_c =
      good(minimize(small.model(), build.neg(loss), {.kind = Kind::adam, .learning_rate = {}, .rate = 0.25, .variables = {c.handle}}));
  ASSERT_EQ(of_g.gradients.size(), 1u);
  small.init();
  small.step(of_g.train);
  EXPECT_NEAR(small.floats(g.read)[0], 0.5, 1e-5);
  EXPECT_EQ(small.floats(c.read), (std::vector<float>{3, 4}));
  EXPECT_NEAR(read(small, "generator/Adam")[0], 0.3, 1e-6);
  EXPECT_EQ(read(small, "critic/Adam"), (std::vector<float>{0, 0}));
  const std::vector<float> powers = read(small, "beta1_power");
  small.step(of_c.train);
  EXPECT_NEAR(small.floats(g.read)[0], 0.5, 1e-5);
  EXPECT_NEAR(small.floats(c.read)[0], 3.25, 1e-5);
  EXPECT_EQ(read(small, "beta1_power"), powers) << "the critic's powers are its own";
  EXPECT_EQ(small.model().find("generator/Adam_2"), nullptr);
  EXPECT_EQ(small.fetch(of_g.global_step).values<int64_t>()[0], 2);
}

TEST(VariableLists, SlotsOfTwoOptimizersOfOneVariableAreApart) {
  SmallModel small;
  const NamedVariable v = small.variable("v", {1});
  const Value loss = sum_of_products(small, v, slope(small, {2}));
  const Optimizer momentum{.kind = Kind::momentum, .learning_rate = {}, .rate = 0.1, .momentum = 0.5, .variables = {v.handle}};
  const Training first = good(minimize(small.model(), loss, momentum)), second = good(minimize(small.model(), loss, momentum));
  small.init();
  small.step(first.train);
  EXPECT_EQ(read(small, "v/Momentum")[0], 2);
  EXPECT_EQ(read(small, "v/Momentum_1")[0], 0);
  small.step(second.train);
  EXPECT_EQ(read(small, "v/Momentum_1")[0], 2);
}

// What an optimizer keeps gets its first values whatever the step waits for.
TEST(VariableLists, SlotsBeginBeforeWhatTheStepComesAfter) {
  SmallModel small;
  const NamedVariable v = small.variable("v", {1}), gate = small.variable("gate", {0});
  const Value loss = sum_of_products(small, v, slope(small, {2}));
  Build build(small.graph());
  const Value open = build.op("Greater", {small.model().find("gate")->read, build.op("ZerosLike", {gate.read})});
  const Value inputs[] = {build.reshape(open, build.ints({})), open};
  const Attr types[] = {{"T", std::vector<DType>{DType::boolean}}};
  const NodeId passed = build.node("Assert", inputs, types);
  ASSERT_TRUE(build.ok()) << build.status().message();
  small.graph().push_controls({&passed, 1});
  const Training momentum =
      good(minimize(small.model(), loss, {.kind = Kind::momentum, .learning_rate = {}, .rate = 0.5, .momentum = 0.5}));
  ASSERT_TRUE(small.graph().pop_controls().ok());
  small.init();
  EXPECT_EQ(read(small, "v/Momentum")[0], 0);
}

TEST(VariableLists, FollowOnlyWhatTheLossDependsOn) {
  SmallModel small;
  const Value x = small.placeholder("x", DType::f32, {4, 2}), z = small.placeholder("z", DType::f32, {4, 2});
  const Value a = good(batch_norm(small.model(), x, {}, {})), b = good(batch_norm(small.model(), z, {}, {}));
  Build build(small.graph());
  const NamedVariable* const gamma = small.model().find("batch_normalization/gamma");
  ASSERT_NE(gamma, nullptr);
  const Value loss = build.sum(build.op("Square", {a}), build.ints({0, 1}));
  const Training alone = good(minimize(small.model(), loss, {.learning_rate = {}, .variables = {gamma->handle}}));
  EXPECT_EQ(alone.gradients.size(), 3u) << "gamma and the statistics of the first normalization";
  const Training all = good(minimize(small.model(), build.add(loss, build.sum(build.op("Square", {b}), build.ints({0, 1}))), {}));
  EXPECT_EQ(all.gradients.size(), 8u);
}

TEST(VariableLists, RefuseWhatIsNotTrained) {
  SmallModel small;
  const NamedVariable v = small.variable("v", {1}), other = small.variable("other", {1});
  const Value loss = sum_of_products(small, v, slope(small, {2}));
  const NamedVariable step = good(small.model().global_step());
  for (const Value bad : {step.handle, v.read, other.handle}) {
    const auto refused = minimize(small.model(), loss, {.learning_rate = {}, .variables = {bad}});
    EXPECT_EQ(refused.status().code(), Code::invalid_argument) << refused.status().message();
  }
}

TEST(WeightDecay, LeavesOutTheExempt) {
  SmallModel small;
  const NamedVariable kernel = small.variable("kernel", {2}), bias = small.variable("dense/bias", {2}), last = small.variable("last", {2});
  Build build(small.graph());
  const Value one = slope(small, {1});
  const Value loss =
      build.add(sum_of_products(small, kernel, one), build.add(sum_of_products(small, bias, one), sum_of_products(small, last, one)));
  const Training training =
      good(minimize(small.model(), loss,
                    {.learning_rate = {}, .rate = 0.5, .weight_decay = 0.2, .undecayed = {last.handle}, .undecayed_names = {"bias"}}));
  small.init();
  small.step(training.train);
  EXPECT_NEAR(small.floats(kernel.read)[0], 2 - 0.5 * 0.2 * 2 - 0.5, 1e-6);
  EXPECT_NEAR(small.floats(bias.read)[0], 1.5, 1e-6);
  EXPECT_NEAR(small.floats(last.read)[0], 1.5, 1e-6);
}

// Row 1 twice, so (2, 2) and (1, 1) in all: what is clipped are sums.
TEST(Clipping, OfRowsIsOfTheirSums) {
  for (const bool by_value : {true, false}) {
    SmallModel small;
    const NamedVariable table = small.variable("table", {0, 0, 0, 0, 0, 0}, {3, 2});
    Build build(small.graph());
    const int64_t ids[] = {1, 2, 1};
    const Value rows = build.op("ResourceGather", {table.handle, build.ints(ids)}, {{"dtype", DType::f32}});
    const Value loss = build.sum(rows, build.ints({0, 1}));
    ASSERT_TRUE(build.ok()) << build.status().message();
    Optimizer optimizer{.learning_rate = {}, .rate = 1};
    (by_value ? optimizer.clip_value : optimizer.clip_each_norm) = by_value ? 1.5 : std::sqrt(10.0) / 2;
    const Training training = good(minimize(small.model(), loss, optimizer));
    small.init();
    small.step(training.train);
    const std::vector<float> found = small.floats(table.read);
    const double twice = by_value ? -1.5 : -1, once = by_value ? -1 : -0.5;
    for (const auto& [at, wanted] : {std::pair<size_t, double>{0, 0}, {2, twice}, {3, twice}, {4, once}})
      EXPECT_NEAR(found[at], wanted, 1e-6);
  }
}

TEST(Clipping, TellsWhereANormIsNoNumber) {
  SmallModel small;
  const NamedVariable v = small.variable("v", {1});
  const Value x = small.placeholder("x", DType::f32, {1});
  const Training training = good(
      minimize(small.model(), sum_of_products(small, v, x), {.learning_rate = {}, .rate = 1, .check_loss = false, .clip_each_norm = 1}));
  small.init();
  const Tensor infinite = good(Tensor::of<float>(Shape::of({1}), std::array{HUGE_VALF}));
  const Tensor* const given[] = {&infinite};
  ASSERT_TRUE(small.session().run({.feeds = {&x, 1}, .feed_tensors = given, .fetches = {}, .targets = {&training.train, 1}}, {}).ok());
  EXPECT_TRUE(std::isnan(small.floats(v.read)[0]));
}

// tfa.optimizers.Lookahead: the slow copy goes half of the way every third step, and the variable goes there.
TEST(Lookahead, GoesBackToTheSlowCopy) {
  SmallModel small;
  const NamedVariable v = small.variable("v", {1});
  const Training training = good(minimize(small.model(), sum_of_products(small, v, slope(small, {1})),
                                          {.learning_rate = {}, .rate = 0.25, .lookahead_steps = 3, .lookahead_share = 0.5}));
  small.init();
  double fast = 1, slow = 1;
  for (int step = 1; step <= 7; ++step) {
    small.step(training.train);
    fast -= 0.25;
    if (step % 3 == 0) fast = slow = slow + 0.5 * (fast - slow);
    EXPECT_NEAR(small.floats(v.read)[0], fast, 1e-6) << step;
    EXPECT_NEAR(read(small, "v/Slow")[0], slow, 1e-6) << step;
  }
}

// With accumulation a step is one that moves the variable; in between neither it nor the slow copy does.
TEST(Lookahead, CountsWhatAccumulationApplies) {
  SmallModel small;
  const NamedVariable v = small.variable("v", {1});
  const Training training =
      good(minimize(small.model(), sum_of_products(small, v, slope(small, {1})),
                    {.learning_rate = {}, .rate = 1, .accumulation_steps = 3, .lookahead_steps = 2, .lookahead_share = 0.5}));
  small.init();
  const std::vector<float> wanted = {1, 1, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1};
  for (size_t i = 0; i < wanted.size(); ++i) {
    small.step(training.train);
    EXPECT_EQ(small.floats(v.read)[0], wanted[i]) << i + 1;
    EXPECT_EQ(read(small, "v/Slow")[0], i + 1 < 6 ? 1.0f : i + 1 < 12 ? 0.0f : -1.0f) << i + 1;
  }
}

// A share of 0.999 is 1 in bfloat16: the moments would stay 0, and the step divide by them.
TEST(Rounding, OfSharesThatTheTypeMakesOneIsRefused) {
  for (const auto kind : {Kind::adam, Kind::adam_w, Kind::nadam, Kind::lion}) {
    SmallModel small;
    const NamedVariable v = good(small.model().add_variable({.name = "v", .dtype = DType::bf16, .shape = Shape::of({2})}));
    Build build(small.graph());
    const Value loss = build.sum(build.op("Square", {v.read}), build.ints({0}));
    Optimizer optimizer = {.kind = kind, .learning_rate = {}, .rate = 0.1};
    const auto refused = minimize(small.model(), loss, optimizer);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().code(), Code::invalid_argument);
    EXPECT_NE(refused.status().message().find("beta2 is 0.999, which bfloat16 rounds to 1, so that the moments of \"v\" would never move"),
              std::string::npos)
        << refused.status().message();
    optimizer.beta2 = 0.95;
    EXPECT_TRUE(minimize(small.model(), loss, optimizer).ok());
  }
}

TEST(Averages, CanBeReadAndTakenOver) {
  SmallModel small;
  const NamedVariable v = small.variable("v", {1});
  const Training training =
      good(minimize(small.model(), sum_of_products(small, v, slope(small, {1})),
                    {.learning_rate = {}, .rate = 0.25, .use_ema = true, .ema_momentum = 0.5, .ema_overwrite_every = 4}));
  small.init();
  double value = 1, mean = 0;
  for (int step = 1; step <= 6; ++step) {
    small.step(training.train);
    value -= 0.25;
    mean = step == 1 ? value : 0.5 * mean + 0.5 * value;
    if (step % 4 == 0) value = mean;
    EXPECT_NEAR(small.floats(v.read)[0], value, 1e-6) << step;
    EXPECT_NEAR(read(small, "v/ExponentialMovingAverage")[0], mean, 1e-6) << step;
  }
}

// Rows, a checked loss and moving averages with it; between the steps that apply nothing moves.
TEST(Accumulation, AppliesTheMeanOfItsSteps) {
  SmallModel small;
  const NamedVariable v = small.variable("v", {1, 1});
  const Value x = small.placeholder("x", DType::f32, {2});
  const Training training =
      good(minimize(small.model(), sum_of_products(small, v, x),
                    {.kind = Kind::momentum, .learning_rate = {}, .rate = 1, .momentum = 0.5, .clip_value = 2, .accumulation_steps = 3}));
  small.init();
  const auto step = [&](float a, float b) {
    const Tensor fed = good(Tensor::of<float>(Shape::of({2}), std::array{a, b}));
    const Tensor* const given[] = {&fed};
    return small.session().run({.feeds = {&x, 1}, .feed_tensors = given, .fetches = {}, .targets = {&training.train, 1}}, {});
  };
  const std::vector<float> start = {1, 1};
  ASSERT_TRUE(step(1, 10).ok());
  EXPECT_EQ(small.floats(v.read), start);
  EXPECT_FALSE(step(std::nanf(""), 1).ok());
  ASSERT_TRUE(step(2, 10).ok());
  EXPECT_EQ(small.floats(v.read), start);
  EXPECT_EQ(read(small, "v/Accumulated"), (std::vector<float>{3, 20}));
  ASSERT_TRUE(step(0, 10).ok());
  EXPECT_EQ(small.floats(v.read), (std::vector<float>{0, -1}));
  EXPECT_EQ(read(small, "v/Accumulated"), (std::vector<float>{0, 0}));
  EXPECT_EQ(read(small, "v/Momentum"), (std::vector<float>{1, 2}));
  EXPECT_EQ(small.fetch(training.global_step).values<int64_t>()[0], 3);
}

}  // namespace
}  // namespace dtg
