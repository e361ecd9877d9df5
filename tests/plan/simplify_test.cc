// Simplify: equal nodes become one and neutral ones none, with the same bits as before.
#include "passes_fixture.h"

namespace dtg {
namespace {

class Simplify : public PassesTest {
 protected:
  Simplify() : x(placeholder(Shape::of({2, 3}))) {}
  // A reader, so that what is before it is not fetched itself.
  std::unique_ptr<Ir> before_tanh(Value value) { return passes("simplify", {build->op("Tanh", {value})}, {}, {feed(x)}); }
  bool stays(Value value) { return is_live(*before_tanh(value), value); }
  const Value x;
};

TEST_F(Simplify, NeutralOperandsAreLeftOut) {
  EXPECT_FALSE(stays(build->mul(x, build->scalar(DType::f32, 1))));
  EXPECT_FALSE(stays(build->mul(build->scalar(DType::f32, 1), x)));
  EXPECT_FALSE(stays(build->div(x, build->scalar(DType::f32, 1))));
  EXPECT_FALSE(stays(build->sub(x, build->scalar(DType::f32, 0))));
  EXPECT_FALSE(stays(build->add(x, build->scalar(DType::f32, -0.0))));
  EXPECT_FALSE(stays(build->op("Identity", {x})));
}

TEST_F(Simplify, WhatOnlyLooksNeutralStays) {
  EXPECT_TRUE(stays(build->add(x, build->scalar(DType::f32, 0)))) << "-0 + 0 is 0";
  EXPECT_TRUE(stays(build->sub(x, build->scalar(DType::f32, -0.0)))) << "-0 - -0 is 0";
  EXPECT_TRUE(stays(build->div(build->scalar(DType::f32, 1), x)));
  EXPECT_TRUE(stays(build->mul(x, build->scalar(DType::f32, 2))));
  const Tensor one = zeros(Shape::of({4, 2, 3}));
  std::fill_n(one.as<float>(), one.count(), 1.0f);
  EXPECT_TRUE(stays(build->mul(x, build->constant(one)))) << "it makes the shape larger";
}

TEST_F(Simplify, ReshapesAndTransposesThatUndoEachOther) {
  const Value perm = build->ints({1, 0});
  const Value turned = build->op("Transpose", {x, perm}), back = build->op("Transpose", {turned, perm});
  const auto ir = before_tanh(back);
  EXPECT_FALSE(is_live(*ir, turned));
  EXPECT_FALSE(is_live(*ir, back));
  EXPECT_TRUE(stays(build->op("Transpose", {x, perm})));
  EXPECT_FALSE(stays(build->op("Transpose", {x, build->ints({0, 1})})));
  EXPECT_FALSE(stays(build->reshape(x, build->ints({2, 3}))));
  const Value flat = build->reshape(x, build->ints({6})), wide = build->reshape(flat, build->ints({3, 2}));
  const auto reshaped = before_tanh(wide);
  EXPECT_FALSE(is_live(*reshaped, flat));
  EXPECT_EQ(value_of(*reshaped, wide).info->shape.text(), "[3,2]");
}

TEST_F(Simplify, EqualNodesAreOne) {
  const Value a = build->op("Sin", {x}), b = build->op("Sin", {x});
  const Value c = build->op("MatMul", {a, b}, {{"transpose_b", true}}), d = build->op("MatMul", {b, a}, {{"transpose_b", true}});
  const Value other = build->op("MatMul", {a, b}, {{"transpose_a", true}});
  const auto ir = passes("simplify", {build->op("Tanh", {build->add(c, d)}), other}, {}, {feed(x)});
  EXPECT_EQ(live(*ir, "Sin").size(), 1u);
  EXPECT_EQ(live(*ir, "MatMul").size(), 2u) << "other attributes make another node";
  const IrNode& sum = ir->nodes[live(*ir, "AddV2").at(0)];
  EXPECT_EQ(sum.inputs[0], sum.inputs[1]);
}

TEST_F(Simplify, EqualConstantsMakeEqualNodes) {
  const Value a = build->mul(x, build->scalar(DType::f32, 3)), b = build->mul(x, build->scalar(DType::f32, 3));
  const Value c = build->mul(x, build->scalar(DType::f32, 4));
  const auto ir = passes("simplify", {build->op("AddN", std::vector<Value>{a, b, c})}, {}, {feed(x)});
  EXPECT_EQ(live(*ir, "Mul").size(), 2u);
}

TEST_F(Simplify, WhatIsFetchedOrWaitsStays) {
  const Value one = build->scalar(DType::f32, 1), fetched = build->mul(x, one);
  EXPECT_TRUE(is_live(*passes("simplify", {fetched}, {}, {feed(x)}), fetched)) << "a fetch is a copy of its own";
  const NodeId assign = node("AssignVariableOp", {variable("v"), one});
  const NodeId controls[] = {assign};
  const Value inputs[] = {x};
  const Value late = build->op("Identity", inputs, {}, {}, controls);
  EXPECT_TRUE(stays(late));
}

TEST_F(Simplify, ReadsOfOneVariableStayApart) {
  const Value v = variable("v"), one = build->scalar(DType::f32, 2), before = read(v);
  const NodeId write = node("AssignAddVariableOp", {v, one});
  const Value after = read(v);
  const auto ir = passes("simplify", {build->op("Tanh", {build->sub(after, before)})}, {write});
  EXPECT_EQ(live(*ir, "ReadVariableOp").size(), 2u);
}

TEST_F(Simplify, ItCanBeSwitchedOff) {
  context.fuse = false;
  EXPECT_TRUE(stays(build->mul(x, build->scalar(DType::f32, 1))));
}

}  // namespace
}  // namespace dtg
