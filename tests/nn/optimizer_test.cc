// Optimizers: two steps of each against the formulas, worked out here in double. The loss is the sum of
// coefficient * variable, so the gradient is the coefficients.
#include "nn/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "nn/schedule.h"
#include "small_model.h"

namespace dtg {
namespace {

const std::vector<float> kStart = {1.0f, -2.0f, 0.5f};
const std::vector<float> kSlope = {0.3f, -0.7f, 2.0f};

Value linear_loss(SmallModel& small, const NamedVariable& v, const std::vector<float>& slope) {
  Build build(small.graph());
  const Value coefficients = build.constant(good(Tensor::of<float>(v.shape, std::span<const float>(slope))));
  std::vector<int64_t> axes;
  for (int i = 0; i < v.shape.rank(); ++i) axes.push_back(i);
  const Value loss = build.sum(build.mul(v.read, coefficients), build.ints(axes));
  EXPECT_TRUE(build.ok()) << build.status().message();
  return loss;
}

// The state of one element under an optimizer: value and slots.
struct Element {
  double v, a = 0, b = 0;
};
using Rule = std::function<void(Element&, double g, int step)>;

void expect_rule(const Optimizer& optimizer, double slot_a, double slot_b, const Rule& rule) {
  SmallModel small;
  const NamedVariable v = small.variable("v", kStart);
  auto training = minimize(small.model(), linear_loss(small, v, kSlope), optimizer);
  ASSERT_TRUE(training.ok()) << training.status().message();
  small.init();
  for (int step = 1; step <= 3; ++step) small.step(training.value().train);
  const auto found = small.floats(v.read);
  for (size_t i = 0; i < kStart.size(); ++i) {
    Element element{kStart[i], slot_a, slot_b};
    for (int step = 1; step <= 3; ++step) rule(element, kSlope[i], step);
    EXPECT_NEAR(found[i], element.v, 2e-6) << "element " << i;
  }
  EXPECT_EQ(small.fetch(training.value().global_step).values<int64_t>()[0], 3);
}

TEST(Optimizer, Sgd) {
  expect_rule({.kind = Optimizer::Kind::sgd, .learning_rate = {}, .rate = 0.1}, 0, 0, [](Element& e, double g, int) { e.v -= 0.1 * g; });
}

TEST(Optimizer, Momentum) {
  expect_rule({.kind = Optimizer::Kind::momentum, .learning_rate = {}, .rate = 0.1, .momentum = 0.9}, 0, 0, [](Element& e, double g, int) {
    e.a = 0.9 * e.a + g;
    e.v -= 0.1 * e.a;
  });
}

TEST(Optimizer, Nesterov) {
  expect_rule({.kind = Optimizer::Kind::momentum, .learning_rate = {}, .rate = 0.1, .momentum = 0.9, .nesterov = true}, 0, 0,
              [](Element& e, double g, int) {
                e.a = 0.9 * e.a + g;
                e.v -= 0.1 * (g + 0.9 * e.a);
              });
}

TEST(Optimizer, Adam) {
  expect_rule({.kind = Optimizer::Kind::adam, .learning_rate = {}, .rate = 0.01}, 0, 0, [](Element& e, double g, int step) {
    e.a = 0.9 * e.a + 0.1 * g;
    e.b = 0.999 * e.b + 0.001 * g * g;
    const double rate = 0.01 * std::sqrt(1 - std::pow(0.999, step)) / (1 - std::pow(0.9, step));
    e.v -= rate * e.a / (std::sqrt(e.b) + 1e-8);
  });
}

// Keras' AdamW.update_step: variable -= variable * weight_decay * rate, then Adam.
TEST(Optimizer, AdamW) {
  expect_rule({.kind = Optimizer::Kind::adam_w, .learning_rate = {}, .rate = 0.01, .weight_decay = 0.2}, 0, 0,
              [](Element& e, double g, int step) {
                e.v -= e.v * 0.2 * 0.01;
                e.a = 0.9 * e.a + 0.1 * g;
                e.b = 0.999 * e.b + 0.001 * g * g;
                const double rate = 0.01 * std::sqrt(1 - std::pow(0.999, step)) / (1 - std::pow(0.9, step));
                e.v -= rate * e.a / (std::sqrt(e.b) + 1e-8);
              });
}

TEST(Optimizer, Adagrad) {
  expect_rule({.kind = Optimizer::Kind::adagrad, .learning_rate = {}, .rate = 0.1}, 0.1, 0, [](Element& e, double g, int) {
    e.a += g * g;
    e.v -= 0.1 * g / std::sqrt(e.a);
  });
}

TEST(Optimizer, RmsProp) {
  expect_rule({.kind = Optimizer::Kind::rms_prop, .learning_rate = {}, .rate = 0.01, .momentum = 0.5, .epsilon = 1e-6}, 1, 0,
              [](Element& e, double g, int) {
                e.a = 0.9 * e.a + 0.1 * g * g;
                e.b = 0.5 * e.b + 0.01 * g / std::sqrt(e.a + 1e-6);
                e.v -= e.b;
              });
}

TEST(Optimizer, ClipsByTheNormOverAllVariables) {
  SmallModel small;
  const NamedVariable a = small.variable("a", {1, 1}), b = small.variable("b", {1});
  Build build(small.graph());
  const Value loss = build.add(linear_loss(small, a, {2, 3}), linear_loss(small, b, {6}));  // norm 7
  auto training = minimize(small.model(), loss, {.learning_rate = {}, .rate = 1, .clip_norm = 3.5});
  ASSERT_TRUE(training.ok()) << training.status().message();
  small.init();
  EXPECT_FLOAT_EQ(small.floats(training.value().gradient_norm)[0], 7);
  small.step(training.value().train);
  EXPECT_FLOAT_EQ(small.floats(a.read)[0], 0);
  EXPECT_FLOAT_EQ(small.floats(a.read)[1], -0.5);
  EXPECT_FLOAT_EQ(small.floats(b.read)[0], -2);
}

TEST(Optimizer, LeavesSmallGradientsAlone) {
  SmallModel small;
  const NamedVariable a = small.variable("a", {1});
  auto training = minimize(small.model(), linear_loss(small, a, {0.5}), {.learning_rate = {}, .rate = 1, .clip_norm = 10});
  ASSERT_TRUE(training.ok()) << training.status().message();
  small.init();
  small.step(training.value().train);
  EXPECT_EQ(small.floats(a.read)[0], 0.5f);
}

// Rows 2 and 0 of a table of four, row 2 twice; the rest must not move, save under Adam.
std::vector<float> after_row_steps(const Optimizer& optimizer, int steps) {
  SmallModel small;
  const NamedVariable table = small.variable("table", {0, 0, 0, 0, 0, 0, 0, 0}, {4, 2});
  Build build(small.graph());
  const int64_t ids[] = {2, 0, 2};
  const Value rows = build.op("ResourceGather", {table.handle, build.ints(ids)}, {{"dtype", DType::f32}});
  const Value loss = build.sum(rows, build.ints({0, 1}));
  EXPECT_TRUE(build.ok()) << build.status().message();
  auto training = minimize(small.model(), loss, optimizer);
  EXPECT_TRUE(training.ok()) << training.status().message();
  if (!training.ok()) return {};
  small.init();
  for (int i = 0; i < steps; ++i) small.step(training.value().train);
  return small.floats(table.read);
}

// Lazy Adam (tensorflow_addons): m and s of the rows that were used only, with TensorFlow's rate for the step.
TEST(Optimizer, LazyAdamTouchesOnlyTheRowsThatWereUsed) {
  for (const auto kind : {Optimizer::Kind::adam, Optimizer::Kind::adam_w}) {
    const auto rows = after_row_steps({.kind = kind, .learning_rate = {}, .rate = 0.1, .weight_decay = 0.5, .lazy = true}, 2);
    for (const auto& [row, g] : {std::pair<size_t, double>{0, 1.0}, {2, 2.0}}) {
      double v = 0, m = 0, s = 0;
      for (int step = 1; step <= 2; ++step) {
        v -= 0.1 * 0.5 * v;
        m = 0.9 * m + 0.1 * g;
        s = 0.999 * s + 0.001 * g * g;
        v -= 0.1 * std::sqrt(1 - std::pow(0.999, step)) / (1 - std::pow(0.9, step)) * m / (std::sqrt(s) + 1e-8);
      }
      EXPECT_NEAR(rows[2 * row], v, 2e-6) << "row " << row;
    }
    EXPECT_EQ(rows[2], 0);
    EXPECT_EQ(rows[6], 0);
  }
}

// Where nobody used a row, Adam moves it by what it remembers, and lazy Adam does not.
TEST(Optimizer, LazyAdamForgetsNothingOfTheRowsThatRest) {
  for (const bool lazy : {false, true}) {
    SmallModel small;
    const NamedVariable table = small.variable("table", {0, 0}, {2, 1});
    const Value ids = small.placeholder("ids", DType::i64, {1});
    Build build(small.graph());
    const Value loss = build.sum(build.op("ResourceGather", {table.handle, ids}, {{"dtype", DType::f32}}), build.ints({0, 1}));
    ASSERT_TRUE(build.ok()) << build.status().message();
    auto training = minimize(small.model(), loss, {.kind = Optimizer::Kind::adam, .learning_rate = {}, .rate = 0.1, .lazy = lazy});
    ASSERT_TRUE(training.ok()) << training.status().message();
    small.init();
    float after[2] = {};
    for (const int64_t row : {0, 1}) {
      const Tensor id = good(Tensor::of<int64_t>(Shape::of({1}), std::span<const int64_t>(&row, 1)));
      const Tensor* const given[] = {&id};
      const NodeId targets[] = {training.value().train};
      ASSERT_TRUE(small.session().run({.feeds = {&ids, 1}, .feed_tensors = given, .fetches = {}, .targets = targets}, {}).ok());
      after[row] = small.floats(table.read)[0];
    }
    EXPECT_EQ(after[0] == after[1], lazy);
  }
}

TEST(Optimizer, SgdAppliesRowsAndAddsUpEqualOnes) {
  const auto rows = after_row_steps({.learning_rate = {}, .rate = 0.5}, 1);
  EXPECT_EQ(rows, (std::vector<float>{-0.5, -0.5, 0, 0, -1, -1, 0, 0}));
}

TEST(Optimizer, MomentumMergesEqualRowsFirst) {
  const auto rows = after_row_steps({.kind = Optimizer::Kind::momentum, .learning_rate = {}, .rate = 1, .momentum = 0.5}, 2);
  // a = 1, then 1.5 (row 0); twice that for row 2.
  EXPECT_EQ(rows, (std::vector<float>{-2.5, -2.5, 0, 0, -5, -5, 0, 0}));
}

TEST(Optimizer, AdagradMergesEqualRowsFirst) {
  const auto rows = after_row_steps({.kind = Optimizer::Kind::adagrad, .learning_rate = {}, .rate = 1, .initial_accumulator = 0.1}, 1);
  EXPECT_NEAR(rows[0], -1 / std::sqrt(1.1), 1e-6);
  EXPECT_NEAR(rows[4], -2 / std::sqrt(4.1), 1e-6);
  EXPECT_EQ(rows[2], 0);
}

TEST(Optimizer, AdamTakesRowsAsDense) {
  const auto rows = after_row_steps({.kind = Optimizer::Kind::adam, .learning_rate = {}, .rate = 0.1}, 1);
  EXPECT_NEAR(rows[0], -0.1, 1e-5);
  EXPECT_NEAR(rows[4], -0.1, 1e-5);
  EXPECT_EQ(rows[2], 0);
}

TEST(Optimizer, ClippedRowsUseTheMergedNorm) {
  // Merged rows: (1,1) and (2,2): norm sqrt(10).
  const auto rows = after_row_steps({.learning_rate = {}, .rate = 1, .clip_norm = std::sqrt(10.0) / 2}, 1);
  EXPECT_NEAR(rows[0], -0.5, 1e-6);
  EXPECT_NEAR(rows[4], -1, 1e-6);
}

TEST(Optimizer, NamesAndPlacesSlotsLikeTensorFlow) {
  SmallModel small;
  const NamedVariable v = small.variable("layer/kernel", kStart);
  ASSERT_TRUE(minimize(small.model(), linear_loss(small, v, kSlope), {.kind = Optimizer::Kind::adam, .learning_rate = {}}).ok());
  for (const char* name : {"layer/kernel/Adam", "layer/kernel/Adam_1", "beta1_power", "beta2_power", "global_step"}) {
    const NamedVariable* const slot = small.model().find(name);
    ASSERT_NE(slot, nullptr) << name;
    EXPECT_FALSE(slot->trainable);
    if (std::string_view(name) == "global_step") continue;
    const auto beside = small.graph().node(slot->handle.node()).colocate;
    ASSERT_EQ(beside.size(), 1u) << name;
    EXPECT_EQ(beside[0], v.handle.node());
  }
}

// What replica_device_setter does: variables go to the ps, everything else to the worker.
class ToThePs final : public DeviceFunction {
 public:
  Result<std::string> place(const OpDef& op, std::string_view, std::span<const Attr>) override {
    return std::string(op.name() == "VarHandleOp" ? "/job:ps/task:0" : "/job:worker/task:1");
  }
};

TEST(Optimizer, UpdatesStandWhereADeviceFunctionPutTheVariable) {
  SmallModel small;
  small.graph().push_device_function(make_ref<ToThePs>());
  const NamedVariable v = small.variable("v", kStart);
  ASSERT_TRUE(
      minimize(small.model(), linear_loss(small, v, kSlope), {.kind = Optimizer::Kind::adam, .learning_rate = {}, .clip_norm = 1}).ok());
  int updates = 0;
  for (NodeId id = 0; id < small.graph().node_count(); ++id) {
    const Node& node = small.graph().node(id);
    const bool takes_variable =
        std::ranges::any_of(node.inputs, [&](Value input) { return small.graph().info(input).dtype == DType::resource; });
    if (!takes_variable) continue;
    ++updates;
    EXPECT_EQ(node.device, "/job:ps/task:0") << node.name;
  }
  EXPECT_GT(updates, 15);
  EXPECT_EQ(small.graph().node(small.graph().find("Sum")).device, "/job:worker/task:1");
}

TEST(Optimizer, SaysWhatIsWrong) {
  SmallModel small;
  Build build(small.graph());
  const Value alone = build.scalar(DType::f32, 1);
  auto nothing = minimize(small.model(), alone, {});
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.status().code(), Code::failed_precondition);
  small.variable("v", kStart);
  auto unrelated = minimize(small.model(), alone, {});
  ASSERT_FALSE(unrelated.ok());
  EXPECT_EQ(unrelated.status().code(), Code::invalid_argument);
  EXPECT_FALSE(minimize(small.model(), alone, {.learning_rate = build.ints({1, 2})}).ok());
}

// A loss of many numbers would train on their sum, at a rate that grows with the batch.
TEST(Optimizer, ALossOfManyNumbersIsRefused) {
  SmallModel small;
  Build build(small.graph());
  const NamedVariable v = small.variable("v", kStart);
  const Value x = small.placeholder("x", DType::f32, {-1, v.shape.dim(0)});
  const Value each = build.mul(x, v.read), one = build.sum(each, build.ints({0, 1}));
  ASSERT_TRUE(build.ok());
  const int nodes = static_cast<int>(small.graph().node_count());
  const Status status = minimize(small.model(), each, {}).status();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_NE(status.message().find("[?,"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("reduce it first, for example with mean"), std::string::npos) << status.message();
  EXPECT_EQ(static_cast<int>(small.graph().node_count()), nodes);
  // One number may have dimensions, and what is not known may be one.
  EXPECT_TRUE(minimize(small.model(), build.op("Reshape", {one, build.ints({1, 1})}), {}).ok());
  EXPECT_TRUE(minimize(small.model(), one, {}).ok());
}

TEST(Optimizer, ALossThatIsNoNumberChangesNothing) {
  for (const bool check : {true, false}) {
    SmallModel small;
    Build build(small.graph());
    const NamedVariable v = small.variable("v", {1, 2});
    const Value x = small.placeholder("x", DType::f32, {2});
    const Value loss = build.sum(build.mul(v.read, x), build.ints({0}));
    const Training training =
        good(minimize(small.model(), loss, {.kind = Optimizer::Kind::adam, .learning_rate = {}, .rate = 1, .check_loss = check}));
    small.init();
    const auto step = [&](float value) {
      const Tensor fed = good(Tensor::of<float>(Shape::of({2}), std::span<const float>(std::vector<float>{value, 1})));
      const Tensor* const feeds[] = {&fed};
      return small.session().run({.feeds = {&x, 1}, .feed_tensors = feeds, .fetches = {}, .targets = {&training.train, 1}}, {});
    };
    ASSERT_TRUE(step(1).ok());
    const std::vector<float> before = small.floats(v.read);
    for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      const Status status = step(bad);
      EXPECT_EQ(status.ok(), !check) << status.message();
      if (!check) continue;
      EXPECT_EQ(status.code(), Code::invalid_argument);
      EXPECT_NE(status.message().find("at step 1"), std::string::npos) << status.message();
      EXPECT_EQ(small.floats(v.read), before);
      EXPECT_EQ(small.fetch(training.global_step).values<int64_t>()[0], 1);
    }
    EXPECT_TRUE(step(2).ok());
  }
}

TEST(Optimizer, RefusesNumbersThatNoTrainingSurvives) {
  using Kind = Optimizer::Kind;
  SmallModel small;
  const NamedVariable v = small.variable("v", kStart);
  const Value loss = linear_loss(small, v, kSlope);
  const double infinity = std::numeric_limits<double>::infinity();
  const auto refused = [&](const Optimizer& optimizer, const char* name) {
    const auto training = minimize(small.model(), loss, optimizer);
    EXPECT_EQ(training.status().code(), Code::invalid_argument) << name;
    EXPECT_NE(training.status().message().find(name), std::string::npos) << training.status().message();
  };
  for (double bad : {std::nan(""), infinity, -1.0}) {
    refused({.kind = Kind::sgd, .learning_rate = {}, .rate = bad}, "rate");
    refused({.kind = Kind::sgd, .learning_rate = {}, .clip_norm = bad}, "clip_norm");
    refused({.kind = Kind::momentum, .learning_rate = {}, .momentum = bad}, "momentum");
    refused({.kind = Kind::adam, .learning_rate = {}, .beta1 = bad}, "beta1");
    refused({.kind = Kind::rms_prop, .learning_rate = {}, .decay = bad}, "decay");
  }
  refused({.kind = Kind::sgd, .learning_rate = {}, .clip_norm = 1e39}, "clip_norm");
  refused({.kind = Kind::adam, .learning_rate = {}, .beta2 = 1}, "beta2");
  EXPECT_TRUE(minimize(small.model(), loss, {.kind = Kind::sgd, .learning_rate = {}, .beta1 = 7}).ok());  // of no use to it
}

TEST(Schedule, IsMadeOfNumbers) {
  SmallModel small;
  const Value step = small.placeholder("step", DType::i64, {});
  const int64_t bound = 5;
  const auto refused = [](const Result<Value>& made) { EXPECT_EQ(made.status().code(), Code::invalid_argument); };
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(), 1e39}) {
    refused(exponential_decay(small.graph(), step, bad, 10, 0.5, false));
    refused(exponential_decay(small.graph(), step, 0.1, bad, 0.5, false));
    refused(exponential_decay(small.graph(), step, 0.1, 10, bad, false));
    refused(cosine_decay(small.graph(), step, bad, 100, 0, 0));
    refused(cosine_decay(small.graph(), step, 0.1, bad, 0, 0));
    refused(cosine_decay(small.graph(), step, 0.1, 100, bad, 0));
    refused(piecewise_constant(small.graph(), step, {&bound, 1}, std::array{0.1, bad}));
    refused(adjustable_rate(small.graph(), bad));
  }
}

TEST(Schedule, FollowsTheStep) {
  SmallModel small;
  const Value step = small.placeholder("step", DType::i64, {});
  const Value staircase = good(exponential_decay(small.graph(), step, 0.1, 10, 0.5, true));
  const Value smooth = good(exponential_decay(small.graph(), step, 0.1, 10, 0.5, false));
  const Value cosine = good(cosine_decay(small.graph(), step, 1, 110, 0.1, 10));
  const int64_t bounds[] = {5, 20};
  const double values[] = {3, 2, 1};
  const Value pieces = good(piecewise_constant(small.graph(), step, bounds, values));
  const auto at = [&](Value value, int64_t count) {
    return static_cast<double>(small.fetch(value, {step}, {good(Tensor::scalar<int64_t>(count))}).values<float>()[0]);
  };
  EXPECT_NEAR(at(staircase, 9), 0.1, 1e-7);
  EXPECT_NEAR(at(staircase, 25), 0.025, 1e-7);
  EXPECT_NEAR(at(smooth, 5), 0.1 * std::sqrt(0.5), 1e-7);
  EXPECT_NEAR(at(cosine, 5), 0.5, 1e-6);
  EXPECT_NEAR(at(cosine, 10), 1, 1e-6);
  EXPECT_NEAR(at(cosine, 60), 0.55, 1e-6);
  EXPECT_NEAR(at(cosine, 500), 0.1, 1e-6);
  EXPECT_EQ(at(pieces, 5), 3);
  EXPECT_EQ(at(pieces, 6), 2);
  EXPECT_EQ(at(pieces, 21), 1);
}

}  // namespace
}  // namespace dtg
