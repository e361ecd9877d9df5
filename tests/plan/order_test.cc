// Order: effects on a variable in the order in which their nodes were made, pins and who lets go of them, events, segments.
#include <set>

#include "passes_fixture.h"

namespace dtg {
namespace {

class Order : public PassesTest {
 protected:
  // Each live node once, after all whom it reads or waits for; what a segment waits for has been raised before.
  void expect_sound(const Ir& ir) const {
    std::vector<uint32_t> place(ir.nodes.size(), kNone);
    for (uint32_t i = 0; i < ir.order.size(); ++i) {
      EXPECT_EQ(place[ir.order[i]], kNone);
      place[ir.order[i]] = i;
      EXPECT_EQ(ir.nodes[ir.order[i]].position, i);
    }
    for (uint32_t n = 0; n < ir.nodes.size(); ++n) {
      EXPECT_EQ(ir.nodes[n].dead, place[n] == kNone);
      if (ir.nodes[n].dead) continue;
      for (uint32_t input : ir.nodes[n].inputs) {
        if (ir.waits_for(ir.nodes[n], ir.values[input])) {
          EXPECT_LT(place[ir.values[input].producer], place[n]);
        }
      }
      for (uint32_t control : ir.nodes[n].controls) {
        if (!ir.nodes[control].dead) {
          EXPECT_LT(place[control], place[n]);
        }
      }
    }
    for (const IrSegment& segment : ir.segments) {
      for (uint32_t event : segment.events) EXPECT_TRUE(ir.sets->contains(segment.set, event));
    }
  }
  std::unique_ptr<Ir> ordered(std::vector<Value> fetches, std::vector<NodeId> targets = {}, std::vector<FeedSpec> feeds = {}) {
    auto ir = passes("order", std::move(fetches), std::move(targets), std::move(feeds));
    expect_sound(*ir);
    return ir;
  }
  uint32_t place(const Ir& ir, NodeId id) const { return node_of(ir, id).position; }
  uint32_t place(const Ir& ir, Value value) const { return place(ir, value.node()); }
  static std::vector<uint32_t> list(std::span<const uint32_t> span) { return {span.begin(), span.end()}; }
};

TEST_F(Order, EffectsHappenAsTheirNodesWereMade) {
  const Value v = variable("v"), one = build->scalar(DType::f32, 1);
  const Value before = read(v);
  const NodeId first = node("AssignAddVariableOp", {v, one});
  const Value between = read(v);
  const NodeId second = node("AssignSubVariableOp", {v, one});
  const Value after = read(v);
  const auto ir = ordered({before, between, after}, {first, second});
  EXPECT_LT(place(*ir, before), place(*ir, first));
  EXPECT_LT(place(*ir, first), place(*ir, between));
  EXPECT_LT(place(*ir, between), place(*ir, second));
  EXPECT_LT(place(*ir, second), place(*ir, after));
}

TEST_F(Order, TwoHandlesOfOneNameAreOneResource) {
  const Value one = build->scalar(DType::f32, 1), a = variable("v"), b = variable("v"), other = variable("w");
  const NodeId write = node("AssignAddVariableOp", {a, one});
  const Value same = read(b), apart = read(other);
  const auto ir = ordered({same, apart}, {write});
  EXPECT_LT(place(*ir, write), place(*ir, same));
  // The other variable's read depends on nothing: it is where its node was made, and no edge holds it back.
  EXPECT_EQ(node_of(*ir, apart).controls.size(), 0u);
}

TEST_F(Order, AWriteWaitsForWhoLooksAndLetsGoOfThePin) {
  const Value v = variable("v", Shape::of({4})), r = read(v),
              looked = build->op("MatMul", {build->reshape(r, build->ints({2, 2})), build->reshape(r, build->ints({2, 2}))});
  const NodeId write = node("AssignAddVariableOp", {v, build->constant(zeros(Shape::of({4})))});
  const auto ir = ordered({looked}, {write});
  EXPECT_LT(place(*ir, looked), place(*ir, write));
  EXPECT_EQ(ir->pins, 1u);
  EXPECT_NE(node_of(*ir, r).pin, kNone);
  EXPECT_EQ(list(ir->unpins_of(node_of(*ir, write))), std::vector<uint32_t>{at(*ir, r)});
}

TEST_F(Order, ThePinStaysWhereALookerWasMadeLater) {
  const Value v = variable("v", Shape::of({4})), r = read(v);
  const NodeId write = node("AssignAddVariableOp", {v, build->constant(zeros(Shape::of({4})))});
  const Value late = build->op("Softmax", {r});
  const auto ir = ordered({late}, {write});
  EXPECT_LT(place(*ir, r), place(*ir, write)) << "what was read is the value from before";
  EXPECT_TRUE(ir->unpins_of(node_of(*ir, write)).empty()) << "the write makes a copy";
}

TEST_F(Order, ThePinStaysWhereTheMemoryIsFetched) {
  const Value v = variable("v"), one = build->scalar(DType::f32, 1);
  const Value plain = read(v), other = variable("w");
  const Value through = build->op("Identity", {build->reshape(read(other), build->ints({1}))});
  const NodeId a = node("AssignAddVariableOp", {v, one}), b = node("AssignAddVariableOp", {other, one});
  const auto ir = ordered({plain, through}, {a, b});
  EXPECT_TRUE(ir->unpins_of(node_of(*ir, a)).empty());
  EXPECT_TRUE(ir->unpins_of(node_of(*ir, b)).empty()) << "also under another name";
}

TEST_F(Order, EveryOpThatMayHandOnMemoryKeepsThePin) {
  const Value one = build->scalar(DType::f32, 1), empty = build->constant(zeros(Shape::of({0}), DType::i32));
  int made = 0;
  for (const OpDef* op : graph->ops().list()) {
    const bool reduces = op->inputs().size() == 2 && op->inputs()[0].name == "input" && op->forwards(0, 0) && op->find_attr("keep_dims") &&
                         op->find_attr("T");
    const AttrDef* const type = op->find_attr("T");
    if (!reduces || !type->types.has(DType::f32)) continue;
    ++made;
    const Value v = variable(op->name().c_str());
    const Value value = build->op(op->name(), {read(v), empty});
    const NodeId write = node("AssignAddVariableOp", {v, one});
    context.fuse = false;
    const auto ir = ordered({value}, {write});
    EXPECT_TRUE(ir->unpins_of(node_of(*ir, write)).empty()) << op->name();
  }
  EXPECT_GE(made, 5);
}

TEST_F(Order, OfTwoWritesOneLetsGo) {
  const Value v = variable("v"), r = read(v), one = build->scalar(DType::f32, 1);
  const Value looked = build->op("Sin", {r});
  const NodeId a = node("AssignAddVariableOp", {v, one}), b = node("AssignAddVariableOp", {v, one});
  const auto ir = ordered({looked}, {a, b});
  EXPECT_LT(place(*ir, a), place(*ir, b)) << "neither data nor control orders them, but the graph does";
  EXPECT_EQ(ir->unpins_of(node_of(*ir, a)).size() + ir->unpins_of(node_of(*ir, b)).size(), 1u);
  EXPECT_EQ(ir->unpins_of(node_of(*ir, a)).size(), 1u);
}

TEST_F(Order, AWriteThatLooksItselfKeepsThePin) {
  const Value v = variable("v"), r = read(v);
  const NodeId write = node("AssignAddVariableOp", {v, r});
  const auto ir = ordered({}, {write});
  EXPECT_TRUE(ir->unpins_of(node_of(*ir, write)).empty());
}

TEST_F(Order, WritesComeAsEarlyAsTheyMay) {
  const Value x = placeholder(Shape()), v = variable("v"), w = variable("w");
  const Value gradient = build->op("Sin", {x});
  Value rest = gradient;
  std::vector<Value> later;
  for (int i = 0; i < 20; ++i) later.push_back(rest = build->op("Sin", {rest}));
  const NodeId early = node("AssignAddVariableOp", {v, gradient}), late = node("AssignAddVariableOp", {w, rest});
  context.fuse = false;
  const auto ir = ordered({}, {early, late}, {feed(x)});
  EXPECT_LT(place(*ir, early), place(*ir, later[1]));
  EXPECT_GT(place(*ir, late), place(*ir, later.back()));
}

TEST_F(Order, AWriteJoinsTheEarliestCommit) {
  const Value v = variable("v"), w = variable("w"), u = variable("u"), one = build->scalar(DType::f32, 1);
  const NodeId first = node("AssignAddVariableOp", {v, one}), beside = node("AssignAddVariableOp", {w, one});
  const NodeId again = node("AssignSubVariableOp", {v, one});
  // Computed on what was written: another commit.
  const Value seen = build->op("Sin", {read(v)});
  const NodeId late = node("AssignAddVariableOp", {u, seen}), early = node("AssignAddVariableOp", {variable("x"), one});
  const auto ir = ordered({}, {first, beside, again, late, early});
  for (NodeId write : {first, beside, again, early}) {
    EXPECT_TRUE(node_of(*ir, write).write);
    EXPECT_EQ(node_of(*ir, write).phase, 0u);
  }
  EXPECT_EQ(node_of(*ir, seen).phase, 1u);
  EXPECT_FALSE(node_of(*ir, seen).write);
  EXPECT_EQ(node_of(*ir, late).phase, 1u);
  EXPECT_NE(ir->text().find("commit 1"), std::string::npos);
}

TEST_F(Order, ACommitStartsBehindAWait) {
  const Value queue =
      build->op("FIFOQueueV2", {}, {{"component_types", std::vector<DType>{DType::f32}}, {"shapes", std::vector<PartialShape>{Shape()}}});
  const Value token = build->op("QueueDequeueV2", {queue}, {{"component_types", std::vector<DType>{DType::f32}}});
  const Value v = variable("v"), w = variable("w"), one = build->scalar(DType::f32, 1);
  const NodeId push = node("AssignAddVariableOp", {v, one}), then = node("AssignAddVariableOp", {w, token});
  const auto ir = ordered({}, {push, then});
  EXPECT_EQ(node_of(*ir, push).phase, 0u);
  EXPECT_EQ(node_of(*ir, then).phase, 1u);
}

TEST_F(Order, WhatDependsOnDataComesLast) {
  const Value x = placeholder(Shape::of({8}));
  const Value unique = build->op("Unique", {x}), open = build->op("Softmax", {unique}), still = build->op("Softmax", {x});
  const auto ir = ordered({open, still}, {}, {feed(x)});
  EXPECT_LT(place(*ir, still), place(*ir, unique));
  EXPECT_LT(place(*ir, unique), place(*ir, open));
}

TEST_F(Order, OneDeviceIsOneSegmentWithoutEvents) {
  Value y = placeholder(Shape::of({2, 2}));
  const FeedSpec fed = feed(y);
  for (int i = 0; i < 50; ++i) y = build->op("MatMul", {y, y});
  const auto ir = ordered({y}, {}, {fed});
  EXPECT_EQ(ir->segments.size(), 1u);
  EXPECT_EQ(ir->events, 0u);
  EXPECT_TRUE(ir->hand_overs.empty());
}

TEST_F(Order, AHandOverIsOneEventForAllOnTheOtherDevice) {
  const Value x = placeholder(Shape()), a = on(0, "Sin", {x});
  const Value b = on(1, "Cos", {a}), c = on(1, "Neg", {a}), d = on(2, "Neg", {a});
  context.fuse = false;
  const auto ir = ordered({b, c, d}, {}, {feed(x)});
  EXPECT_EQ(ir->events, 2u) << "one for each device";
  EXPECT_EQ(ir->hand_overs.size(), 2u);
  ASSERT_EQ(ir->segments.size(), 3u);
  EXPECT_EQ(node_of(*ir, b).segment, node_of(*ir, c).segment);
  EXPECT_NE(node_of(*ir, b).segment, node_of(*ir, d).segment);
  for (uint32_t event = 0; event < ir->events; ++event) EXPECT_EQ(ir->raisers[event], at(*ir, a));
}

TEST_F(Order, ASegmentWaitsForNothingTwice) {
  // Device 1 gets what device 0 computes, one after another: each event implies all before it.
  constexpr uint32_t kCrossings = 4000;
  Value p = placeholder(Shape()), sum = on(1, "Neg", {p});
  const FeedSpec fed = feed(p);
  for (uint32_t i = 0; i < kCrossings; ++i) {
    p = on(0, "Sin", {p});
    sum = on(1, "AddV2", {sum, p});
  }
  context.fuse = false;
  const auto ir = ordered({sum}, {}, {fed});
  EXPECT_EQ(ir->events, kCrossings);
  size_t waits = 0;
  for (const IrSegment& segment : ir->segments) waits += segment.events.size() + segment.after.size();
  EXPECT_LE(ir->segments.size(), kCrossings + 2u);
  EXPECT_LE(waits, 3u * kCrossings);
}

TEST_F(Order, ImpliedEventsAreDropped) {
  // d needs a (device 0) and c, which device 1 computed from a's result by way of b: c's event implies a's... and a's own hand-over to 2 is
  // not.
  const Value x = placeholder(Shape()), a = on(0, "Sin", {x}), b = on(1, "Sin", {a}), back = on(0, "Sin", {b}),
              d = on(1, "AddV2", {back, b});
  context.fuse = false;
  const auto ir = ordered({d}, {}, {feed(x)});
  const IrSegment& last = ir->segments[node_of(*ir, d).segment];
  EXPECT_EQ(last.events.size(), 1u) << "the way back implies the way there";
  EXPECT_EQ(last.after, std::vector<uint32_t>{node_of(*ir, b).segment});
}

TEST_F(Order, ABlockingNodeEndsWithAnEvent) {
  const Value queue =
      build->op("FIFOQueueV2", std::span<const Value>(), std::vector<Attr>{{"component_types", std::vector<DType>{DType::f32}}});
  const Value item =
      build->op("QueueDequeueV2", std::vector<Value>{queue}, std::vector<Attr>{{"component_types", std::vector<DType>{DType::f32}}});
  const Value x = placeholder(Shape()), apart = build->op("Sin", {x}), joined = build->op("AddV2", {apart, item});
  const auto ir = ordered({joined, apart}, {}, {feed(x)});
  ASSERT_GE(node_of(*ir, item).event, 0);
  EXPECT_EQ(node_of(*ir, item).segment, node_of(*ir, apart).segment);
  const IrSegment& after = ir->segments[node_of(*ir, joined).segment];
  EXPECT_NE(node_of(*ir, joined).segment, node_of(*ir, apart).segment);
  EXPECT_EQ(after.events, std::vector<uint32_t>{static_cast<uint32_t>(node_of(*ir, item).event)});
}

}  // namespace
}  // namespace dtg
