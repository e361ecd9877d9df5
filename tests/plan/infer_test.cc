// Infer: shapes for the feeds at hand, values that shapes decide, what depends on data, and what is too large.
#include "passes_fixture.h"

namespace dtg {
namespace {

class Infer : public PassesTest {
 protected:
  static PartialShape open_batch(int64_t width) {
    PartialShape shape = PartialShape::of_rank(2);
    shape.set_dim(1, width);
    return shape;
  }
};

TEST_F(Infer, FeedsCloseWhatWasOpen) {
  const Value x = placeholder(open_batch(4));
  const Value y = build->neg(x), batch = build->shape(y);
  const Value flat = build->reshape(y, build->ints({-1}));
  ASSERT_FALSE(graph->info(flat).shape.complete());
  const auto ir = passes("infer", {flat, batch}, {}, {{x, DType::f32, Shape::of({3, 4})}});
  EXPECT_EQ(value_of(*ir, y).info->shape.text(), "[3,4]");
  EXPECT_EQ(value_of(*ir, flat).info->shape.text(), "[12]");
  EXPECT_FALSE(node_of(*ir, flat).dynamic);
  ASSERT_TRUE(value_of(*ir, batch).is_known());
  EXPECT_EQ(ir->constant(value_of(*ir, batch)).int_at(0), 3);
}

TEST_F(Infer, WhatWasCompleteIsLeftAlone) {
  const Value x = placeholder(Shape::of({2}));
  const Value y = build->neg(x);
  const auto ir = passes("infer", {y}, {}, {feed(x)});
  EXPECT_EQ(value_of(*ir, y).info, &graph->node(y.node()).outputs[0]) << "no copy was made";
}

TEST_F(Infer, AFedConstantIsKnownNoMore) {
  const Value shape = build->ints({2, 3});
  const Value y = build->op("Fill", {shape, build->scalar(DType::f32, 1)}), rank = build->op("Rank", {y});
  ASSERT_EQ(graph->info(y).shape.text(), "[2,3]");
  const auto ir = passes("infer", {y, rank}, {}, {{shape, DType::i32, Shape::of({2})}});
  EXPECT_FALSE(value_of(*ir, y).info->shape.complete());
  EXPECT_TRUE(value_of(*ir, y).unsure);
  EXPECT_TRUE(node_of(*ir, y).dynamic);
  EXPECT_TRUE(value_of(*ir, rank).is_known()) << "two dimensions it has in any case";
}

TEST_F(Infer, WhatComesAfterDataIsDynamic) {
  const Value x = placeholder(Shape::of({8}));
  const Value unique = build->op("Unique", {x}), y = build->neg(unique), still = build->neg(x);
  const auto ir = passes("infer", {y, still}, {}, {feed(x)});
  EXPECT_TRUE(node_of(*ir, unique).dynamic);
  EXPECT_TRUE(node_of(*ir, y).dynamic);
  EXPECT_FALSE(node_of(*ir, still).dynamic);
}

TEST_F(Infer, ControlEdgesGateWhatIsKnown) {
  const Value handle = variable("v");
  const NodeId assign = node("AssignVariableOp", {handle, build->scalar(DType::f32, 1)});
  const NodeId controls[] = {assign};
  const Value c = build->scalar(DType::f32, 2);
  const Value inputs[] = {c};
  const Value late = build->op("Identity", inputs, {}, {}, controls), later = build->neg(late);
  const auto ir = passes("infer", {later}, {});
  ASSERT_TRUE(value_of(*ir, later).is_known());
  EXPECT_TRUE(node_of(*ir, later).gated);
  EXPECT_TRUE(is_live(*ir, later)) << "somebody must wait for the assignment";
  EXPECT_TRUE(is_live(*ir, assign));
}

TEST_F(Infer, AValueBeyondTheBudgetIsNamed) {
  MemoryBudget budget(1 << 20);
  context.budget = &budget;
  const Value x = placeholder(Shape());
  const auto huge = [&](std::initializer_list<int64_t> dims, const char* name) {
    return build->op("BroadcastTo", {x, build->ints(dims, DType::i64)}, {}, name);
  };
  for (const Value y : {huge({1024, 257}, "just_more"), huge({int64_t{1} << 31, int64_t{1} << 31}, "wraps")}) {
    const auto ir = try_passes("infer", {{feed(x)}, {y}, {}});
    ASSERT_FALSE(ir.ok());
    EXPECT_EQ(ir.status().code(), Code::resource_exhausted);
    EXPECT_EQ(ir.status().origin().node, graph->node(y.node()).name);
    EXPECT_NE(ir.status().message().find("bytes"), std::string::npos) << ir.status().message();
  }
  EXPECT_TRUE(try_passes("infer", {{feed(x)}, {huge({1024, 256}, "fits")}, {}}).ok());
}

TEST_F(Infer, ShapesThatDoNotFitNameTheNode) {
  const Value x = placeholder(PartialShape::of_rank(1)), y = placeholder(PartialShape::of_rank(1));
  const Value sum = build->op("AddV2", {x, y}, {}, "sum");
  const PlanRequest request{{{x, DType::f32, Shape::of({2})}, {y, DType::f32, Shape::of({3})}}, {sum}, {}};
  const auto ir = try_passes("infer", request);
  ASSERT_FALSE(ir.ok());
  EXPECT_EQ(ir.status().origin().node, "sum");
}

}  // namespace
}  // namespace dtg
