// Fold: what constants decide is computed once, while the plan is made; nothing else is.
#include "passes_fixture.h"

namespace dtg {
namespace {

using Fold = PassesTest;

TEST_F(Fold, ConstantsAreComputed) {
  const Tensor thousand = zeros(Shape::of({1000}));
  std::fill_n(thousand.as<float>(), 1000, 3.0f);
  const Value c = build->constant(thousand), square = build->mul(c, c), x = placeholder(Shape::of({1000})), y = build->add(square, x);
  const auto ir = passes("fold", {y}, {}, {feed(x)});
  ASSERT_TRUE(value_of(*ir, square).is_known());
  const Tensor known = ir->constant(value_of(*ir, square));
  for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(known.as<float>()[i], 9.0f);
  EXPECT_EQ(live(*ir), std::vector<uint32_t>{at(*ir, y)});
}

TEST_F(Fold, LargeResultsAreLeftToRuns) {
  const Value c = build->op("Fill", {build->ints({1 << 20}), build->scalar(DType::f32, 1)});
  const Value y = build->neg(c);
  const auto ir = passes("fold", {y}, {});
  EXPECT_FALSE(value_of(*ir, y).is_known());
  EXPECT_TRUE(is_live(*ir, y));
}

TEST_F(Fold, WhatHasStateIsNotComputed) {
  const Value handle = variable("v", Shape::of({2}));
  const Value init = build->constant(zeros(Shape::of({2})));
  const NodeId assign = node("AssignVariableOp", {handle, init});
  const NodeId before[] = {assign};
  const Value inputs[] = {handle};
  const Attr attrs[] = {{"dtype", DType::f32}};
  const Value r = build->op("ReadVariableOp", inputs, attrs, {}, before), y = build->neg(r);
  const auto ir = passes("fold", {y}, {});
  EXPECT_FALSE(value_of(*ir, r).is_known());
  EXPECT_FALSE(value_of(*ir, y).is_known());
  EXPECT_TRUE(is_live(*ir, assign));
}

TEST_F(Fold, AFailingKernelIsLeftToRuns) {
  // The index is out of range: an error of the run that asks, not of the plan.
  const Value c = build->constant(zeros(Shape::of({3, 40})));
  const Value y = build->op("GatherV2", {c, build->ints({7}), build->integer(0)});
  const auto ir = passes("fold", {y}, {});
  EXPECT_FALSE(value_of(*ir, y).is_known());
  EXPECT_TRUE(is_live(*ir, y));
}

TEST_F(Fold, EachNodeOfAChainIsComputedOnce) {
  // Every level reads the one before twice: 2^60 evaluations for who forgets what it has computed.
  Value c = build->scalar(DType::f32, 0x1p-60);
  for (int i = 0; i < 60; ++i) c = build->add(c, c);
  const Value x = placeholder(Shape()), y = build->mul(x, c);
  const auto ir = passes("fold", {y}, {}, {feed(x)});
  ASSERT_TRUE(value_of(*ir, c).is_known());
  EXPECT_EQ(*ir->constant(value_of(*ir, c)).as<float>(), 1.0f);
  EXPECT_LE(ir->constants.size(), 61u);
}

}  // namespace
}  // namespace dtg
