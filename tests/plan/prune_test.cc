// Prune: a request becomes the nodes it needs and nothing else.
#include "passes_fixture.h"

namespace dtg {
namespace {

using Prune = PassesTest;

TEST_F(Prune, WhatNobodyNeedsIsNotThere) {
  const Value x = placeholder(Shape::of({2}));
  const Value a = build->neg(x), unused = build->neg(a), b = build->add(a, x);
  const auto ir = passes("prune", {b}, {}, {feed(x)});
  ASSERT_EQ(ir->nodes.size(), 2u);
  EXPECT_EQ(at(*ir, a), 0u);
  EXPECT_EQ(at(*ir, b), 1u);
  EXPECT_EQ(at(*ir, unused), kNone);
  EXPECT_EQ(at(*ir, x), kNone) << "the feed takes its place";
  ASSERT_EQ(ir->feeds.size(), 1u);
  EXPECT_EQ(ir->nodes[0].inputs[0], ir->feeds[0]);
  EXPECT_EQ(ir->values[ir->fetches[0]].fetches, 1u);
}

TEST_F(Prune, NodesKeepTheOrderInWhichTheyWereMade) {
  std::vector<Value> values = {placeholder(Shape())};
  for (size_t i = 0; i < 50; ++i) values.push_back(build->add(values[i * 7 % values.size()], values[i * 5 % values.size()]));
  const Value last = build->op("AddN", std::span<const Value>(values));
  const auto ir = passes("prune", {last}, {}, {feed(values[0])});
  ASSERT_EQ(ir->nodes.size(), 51u);
  for (uint32_t n = 0; n < ir->nodes.size(); ++n) {
    if (n > 0) {
      EXPECT_LT(ir->nodes[n - 1].node->id, ir->nodes[n].node->id);
    }
    for (uint32_t input : ir->nodes[n].inputs) {
      if (ir->values[input].producer != kNone) {
        EXPECT_LT(ir->values[input].producer, n);
      }
    }
  }
}

TEST_F(Prune, AFedValueCutsWhatMadeIt) {
  const Value x = placeholder(Shape());
  const Value middle = build->neg(x), y = build->neg(middle);
  const auto ir = passes("prune", {y}, {}, {feed(middle)});
  EXPECT_EQ(ir->nodes.size(), 1u);
  // A control edge from the node itself runs it all the same; from a placeholder that is fed it does not.
  const NodeId after_node = node("NoOp", {}, {middle.node()}), after_feed = node("NoOp", {}, {x.node()});
  EXPECT_EQ(passes("prune", {}, {after_node}, {feed(middle), feed(x)})->nodes.size(), 2u);
  EXPECT_EQ(passes("prune", {}, {after_feed}, {feed(x)})->nodes.size(), 1u);
}

TEST_F(Prune, ControlEdgesAndTargetsAreKept) {
  const Value handle = variable("v");
  const NodeId assign = node("AssignVariableOp", {handle, build->scalar(DType::f32, 1)});
  const NodeId group = node("NoOp", {}, {assign});
  const auto ir = passes("prune", {}, {group});
  ASSERT_EQ(ir->nodes.size(), 4u);
  EXPECT_TRUE(node_of(*ir, group).target);
  EXPECT_FALSE(node_of(*ir, assign).target);
  ASSERT_EQ(node_of(*ir, group).controls.size(), 1u);
  EXPECT_EQ(node_of(*ir, group).controls[0], at(*ir, assign));
}

TEST_F(Prune, AValueThatIsFetchedTwiceCountsTwice) {
  const Value c = build->scalar(DType::f32, 1);
  const auto ir = passes("prune", {c, c}, {});
  EXPECT_EQ(ir->fetches.size(), 2u);
  EXPECT_EQ(value_of(*ir, c).fetches, 2u);
}

TEST_F(Prune, RequestsThatMakeNoSenseAreRefused) {
  const Value x = placeholder(Shape::of({2})), y = build->neg(x);
  const auto refused = [&](PlanRequest request, std::string_view words) {
    const auto ir = try_passes("prune", std::move(request));
    EXPECT_EQ(ir.status().ok() ? Code::ok : ir.status().code(), Code::invalid_argument);
    if (!ir.ok()) {
      EXPECT_NE(ir.status().message().find(words), std::string::npos) << ir.status().message();
    }
  };
  refused({}, "nothing is asked for");
  refused({{}, {y}, {}}, "needed but not fed");
  refused({{feed(x), feed(x)}, {y}, {}}, "fed twice");
  refused({{feed(x)}, {x}, {}}, "fed in the same run");
  refused({{{x, DType::i32, Shape::of({2})}}, {y}, {}}, "int32");
  refused({{{x, DType::f32, Shape::of({3})}}, {y}, {}}, "[3]");
}

}  // namespace
}  // namespace dtg
