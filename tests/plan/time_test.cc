// Planning is linear: ten times the layers take no more than some ten times the time, and what is read twice on every level is
// looked at once. CPU time of this process, with room for a machine that is busy.
#include <ctime>

#include "base/interrupt.h"
#include "passes_fixture.h"
#include "plan/plan.h"

namespace dtg {
namespace {

class PlanTime : public PassesTest {
 protected:
  static double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

  // Of planning a perceptron with that many layers, bias and all. The best of three, for others use the caches too.
  double plan_seconds(int layers) {
    const Value x = placeholder(Shape::of({2, 2})), w = placeholder(Shape::of({2, 2})), b = placeholder(Shape::of({2}));
    Value h = x;
    for (int i = 0; i < layers; ++i) h = build->op("Tanh", {build->op("BiasAdd", {build->op("MatMul", {h, w}), b})});
    EXPECT_TRUE(build->ok()) << build->status().message();
    double best = 1e9;
    for (int round = 0; round < 3; ++round) {
      const double begin = cpu_seconds();
      const auto plan = Plan::make(context, graph, {{feed(x), feed(w), feed(b)}, {h}, {}});
      EXPECT_TRUE(plan.ok()) << plan.status().message();
      best = std::min(best, cpu_seconds() - begin);
    }
    return best;
  }
};

TEST_F(PlanTime, TenTimesTheLayersTakeSomeTenTimesTheTime) {
  const double small = plan_seconds(2000), large = plan_seconds(20'000);
  EXPECT_LT(large, 20 * small + 0.05) << "2,000 layers take " << small << " s, 20,000 layers " << large << " s";
}

// Each operand may be overwritten, unless it stands there twice.
TEST_F(PlanTime, ASumOfTensOfThousands) {
  const Value x = placeholder(Shape::of({4}));
  const auto seconds = [&](int count) {
    std::vector<Value> terms;
    for (int i = 0; i < count; ++i) terms.push_back(build->neg(x));
    const Value sum = build->op("AddN", terms);
    const double begin = cpu_seconds();
    const auto plan = Plan::make(context, graph, {{feed(x)}, {sum}, {}});
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    return cpu_seconds() - begin;
  };
  const double small = seconds(5'000), large = seconds(50'000);
  EXPECT_LT(large, 30 * small + 0.05) << "5,000 terms take " << small << " s, 50,000 terms " << large << " s";
}

TEST_F(PlanTime, AFoldedChainThatReadsEveryLevelTwice) {
  Value c = build->scalar(DType::f32, 1e-30);
  const double begin = cpu_seconds();
  for (int i = 0; i < 60; ++i) c = build->add(c, c);
  const Value x = placeholder(Shape()), y = build->mul(x, c);
  ASSERT_TRUE(Plan::make(context, graph, {{feed(x)}, {y}, {}}).ok());
  EXPECT_LT(cpu_seconds() - begin, 0.1);
}

TEST_F(PlanTime, AShapeThatReadsEveryLevelTwice) {
  const Value x = placeholder(PartialShape::unknown());
  Value shape = build->ints({0}, DType::i64);
  const double begin = cpu_seconds();
  for (int i = 0; i < 60; ++i) shape = build->add(shape, shape);
  const Value y = build->reshape(x, shape);
  EXPECT_EQ(graph->info(y).shape.text(), "[0]");
  EXPECT_LT(cpu_seconds() - begin, 0.1);
}

TEST_F(PlanTime, PlanningEndsWhereItsRunDoes) {
  struct Over final : Interrupt {
    bool is_due() override { return true; }
  } over;
  Value y = placeholder(Shape());
  const FeedSpec fed = feed(y);
  for (int i = 0; i < 5000; ++i) y = build->op("Sin", {y});
  {
    const Interrupt::Scope scope(&over);
    EXPECT_EQ(Plan::make(context, graph, {{fed}, {y}, {}}).status().code(), Code::cancelled);
  }
  context.deadline = Deadline::after(*context.clock, -1);
  EXPECT_EQ(Plan::make(context, graph, {{fed}, {y}, {}}).status().code(), Code::deadline_exceeded);
}

}  // namespace
}  // namespace dtg
