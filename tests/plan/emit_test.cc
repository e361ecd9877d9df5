// Emit: what the nodes of a segment become. Instructions in their order, slots that are shared where a kernel hands memory on, chunks that
// end where a shape is not known yet, what stands around a write or a hand-over, and what is refused.
#include "plan/emit.h"
#include "graph/infer.h"
#include "passes_fixture.h"

namespace dtg {
namespace {

Status nothing(RunContext&) { return {}; }
Status hands_on(PrepareContext& c) {
  c.alias(0, 0);
  return {};
}
Status wants_everything(PrepareContext& c) {
  c.workspace(Bytes::of(INT64_MAX / 2, 4));
  return c.sync(nothing);
}
Status wants_scratch(PrepareContext& c) {
  c.workspace(1000);
  return c.sync(nothing);
}

class Emit : public PassesTest {
 protected:
  Emit() {
    add("TestHandsOn", hands_on, false);
    add("TestDeclares", hands_on, true);
    add("TestWantsAll", wants_everything, false);
    add("TestScratch", wants_scratch, false);
    EXPECT_TRUE(ops_.status().ok()) << ops_.status().message();
    kernels_.index(ops_);
  }

  void add(const char* name, PrepareFn prepare, bool forwards) {
    OpDef def = OpDef::make(name).input("x: float").output("y: float").shape(unchanged_shape).no_gradient();
    if (forwards) std::move(def).forwards();
    ops_.add(std::move(def));
    kernels_.add({.op = name, .prepare = prepare});
  }
  Value sin(Value x) { return build->op("Sin", {x}); }
  static const Instructions& all(const Ref<Plan>& plan) { return plan->program().instructions; }
  static std::vector<std::string> names(const Ref<Plan>& plan) {
    std::vector<std::string> found;
    for (const Instruction& each : all(plan)) {
      const char* const own = Emitter::own_name(each);
      found.emplace_back(own ? own : each.node->op->name().c_str());
    }
    return found;
  }
  using Names = std::vector<std::string>;
};

TEST_F(Emit, AnAliasThatNobodyDeclaredIsRefused) {
  const Value x = placeholder(Shape::of({4}));
  const auto made = try_plan({{feed(x)}, {build->op("TestHandsOn", {x})}, {}});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), Code::internal);
  EXPECT_NE(made.status().message().find("TestHandsOn hands input 0 on as output 0"), std::string::npos) << made.status().message();
}

TEST_F(Emit, OneThatIsDeclaredTakesNoInstructionAndNoMemory) {
  const Value x = placeholder(Shape::of({4}));
  const auto made = plan({{feed(x)}, {build->op("TestDeclares", {x})}, {}});
  EXPECT_TRUE(all(made).empty());
  EXPECT_EQ(made->fetches()[0].slot, made->feeds()[0].slot);
  EXPECT_FALSE(made->fetches()[0].direct) << "nobody writes it";
  EXPECT_EQ(made->program().frame_bytes, 0);
}

TEST_F(Emit, AnInstructionForEachNodeAndItsOperandsAreSlots) {
  context.fuse = false;
  const Value x = placeholder(Shape::of({4})), a = sin(x), b = sin(a), c = build->add(a, b);
  const auto made = plan({{feed(x)}, {c}, {}});
  ASSERT_EQ(names(made), (Names{"Sin", "Sin", "AddV2"}));
  const Instructions& list = all(made);
  EXPECT_EQ(list[0].in[0], made->feeds()[0].slot);
  EXPECT_EQ(list[1].in[0], list[0].out[0]);
  EXPECT_EQ(list[2].inputs(), 2u);
  EXPECT_EQ(list[2].outputs(), 1u);
  EXPECT_EQ(list[2].in[0], list[0].out[0]);
  EXPECT_EQ(list[2].in[1], list[1].out[0]);
  EXPECT_EQ(list[2].out[0], made->fetches()[0].slot);
  EXPECT_TRUE(made->program().straight);
}

TEST_F(Emit, ConstantsAreTheGraphsOwnMemory) {
  context.fuse = false;
  const Value x = placeholder(Shape::of({4}));
  Tensor held = zeros(Shape::of({4}));
  const void* const data = held.data();
  const auto made = plan({{feed(x)}, {build->add(x, build->constant(std::move(held)))}, {}});
  ASSERT_EQ(made->program().constants.size(), 1u);
  EXPECT_EQ(made->program().constants[0].data, data);
  EXPECT_EQ(made->program().constants[0].slot, all(made)[0].in[1]);
  EXPECT_EQ(made->program().folded_bytes, 0);
}

TEST_F(Emit, TheWriteIsBehindAnUnpinOfWhatWasLookedAt) {
  const Value v = variable("v", Shape::of({4})), r = read(v), looked = build->op("Softmax", {r});
  const NodeId write = node("AssignAddVariableOp", {v, build->constant(zeros(Shape::of({4})))});
  const Names found = names(plan({{}, {looked}, {write}}));
  EXPECT_EQ(found, (Names{"ReadVariableOp", "Softmax", "unpin", "AssignAddVariableOp"}));
}

TEST_F(Emit, AChunkEndsBehindWhoGivesAShapeThatNobodyKnows) {
  context.fuse = false;
  const Value x = placeholder(Shape::of({4})), where = build->op("Where", {build->op("Cast", {x}, {{"DstT", DType::boolean}})});
  const Value after = build->neg(where);
  const auto made = plan({{feed(x)}, {after}, {}});
  EXPECT_EQ(names(made), (Names{"Cast", "Where"}));
  const Chunk& chunk = made->program().segments[0];
  EXPECT_FALSE(chunk.last);
  EXPECT_EQ(chunk.end, 2u);
  EXPECT_TRUE(made->program().open);
  EXPECT_TRUE(made->fetches()[0].dynamic);
}

TEST_F(Emit, AHandOverIsRaisedByWhoMadeTheValue) {
  context.fuse = false;
  const Value x = placeholder(Shape::of({4})), here = on(0, "Sin", {x}), there = on(1, "Sin", {here});
  const auto made = plan({{feed(x)}, {there}, {}});
  ASSERT_EQ(names(made), (Names{"Sin", "Sin"}));
  EXPECT_GE(all(made)[0].event, 0);
  EXPECT_FALSE(all(made)[0].goes_on);
  EXPECT_LT(all(made)[1].event, 0);
  EXPECT_FALSE(made->program().straight);
}

TEST_F(Emit, WhatWasHandedOnIsRaisedByAnInstructionOfItsOwn) {
  context.fuse = false;
  const Value v = variable("v", Shape::of({4}));
  graph->push_device("/device:CPU:0");
  const Value same = build->op("TestDeclares", {build->reshape(read(v), build->ints({4}))});
  EXPECT_TRUE(graph->pop_device().ok());
  const auto made = plan({{}, {on(1, "Sin", {same})}, {}});
  // The read is the last instruction there is, so it tells of the end of those that became none.
  const Names found = names(made);
  EXPECT_EQ(std::ranges::count(found, "TestDeclares"), 0);
  EXPECT_EQ(std::ranges::count_if(all(made), [](const Instruction& each) { return each.event >= 0; }), 1);
}

TEST_F(Emit, TheClockIsLookedAtWhereMuchWasDone) {
  context.fuse = false;
  const Value small = placeholder(Shape::of({4})), large = placeholder(Shape::of({1 << 18}));
  Value y = small;
  for (int i = 0; i < 130; ++i) y = sin(y);
  const auto looks = [](const Ref<Plan>& plan) {
    return std::ranges::count_if(all(plan), [](const Instruction& each) { return each.looks_at_clock; });
  };
  const auto brief = plan({{feed(small)}, {y}, {}});
  EXPECT_GE(looks(brief), 1);
  EXPECT_LE(looks(brief), 3);
  const auto slow = plan({{feed(large)}, {sin(sin(large))}, {}});
  EXPECT_EQ(looks(slow), 2);
  EXPECT_FALSE(slow->program().small);
}

// Whoever brings what such a part waits for may run it, so it must be over soon.
TEST_F(Emit, LightIsWhatTouchesLittleMemory) {
  const Value small = placeholder(Shape::of({4})), large = placeholder(Shape::of({1 << 18}));
  EXPECT_TRUE(plan({{feed(small)}, {sin(small)}, {}})->program().light);
  EXPECT_FALSE(plan({{feed(large)}, {sin(large)}, {}})->program().light);
  const Value v = variable("v", Shape::of({4})), wide = variable("wide", Shape::of({1 << 18}));
  EXPECT_TRUE(plan({{feed(small)}, {}, {node("AssignAddVariableOp", {v, small})}})->program().light);
  EXPECT_FALSE(plan({{feed(large)}, {}, {node("AssignAddVariableOp", {wide, large})}})->program().light);
  // One row of it: where somebody reads the variable, all of it is copied.
  const Value row = placeholder(PartialShape::scalar(), DType::i32);
  EXPECT_FALSE(plan({{feed(row), feed(small)}, {}, {node("ResourceScatterAdd", {variable("table", Shape::of({1 << 18, 4})), row, small})}})
                   ->program()
                   .light);
  context.fuse = false;
  Value y = small;
  for (int i = 0; i < 100; ++i) y = sin(y);
  EXPECT_FALSE(plan({{feed(small)}, {y}, {}})->program().light);
}

TEST_F(Emit, OnlyWhatLeavesNothingHalfMadeMayBeCut) {
  const Value large = placeholder(Shape::of({1 << 16})), v = variable("v", Shape::of({1 << 16}));
  const NodeId write = node("AssignAddVariableOp", {v, large});
  const auto made = plan({{feed(large)}, {build->op("Sin", {large})}, {write}});
  int seen = 0;
  for (const Instruction& each : all(made)) {
    if (Emitter::own_name(each)) continue;
    ++seen;
    EXPECT_EQ(each.may_be_cut, !each.node->op->is_stateful()) << each.node->op->name();
  }
  EXPECT_EQ(seen, 2);
}

TEST_F(Emit, ScratchHasAPlaceAndNoMoreThanThereIs) {
  const Value x = placeholder(Shape::of({4}));
  const auto made = plan({{feed(x)}, {build->op("TestScratch", {x})}, {}});
  ASSERT_EQ(all(made).size(), 1u);
  EXPECT_GE(all(made)[0].workspace, 0);
  EXPECT_GE(made->program().frame_bytes, 1000);
  const auto refused = try_plan({{feed(x)}, {build->op("TestWantsAll", {x})}, {}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::resource_exhausted) << refused.status().message();
  EXPECT_NE(refused.status().message().find("TestWantsAll"), std::string::npos) << refused.status().message();
}

TEST_F(Emit, AValueBeyondTheBudgetIsNamedWithItsBytes) {
  MemoryBudget budget(1 << 20);
  context.budget = &budget;
  context.fuse = false;
  const Value x = placeholder(Shape::of({1, 4})), big = build->op("Tile", {x, build->ints({1 << 20, 1})});
  const auto refused = try_plan({{feed(x)}, {build->op("Sum", {big, build->ints({0, 1})})}, {}});
  context.budget = nullptr;
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::resource_exhausted);
  EXPECT_NE(refused.status().message().find("16777216 bytes"), std::string::npos) << refused.status().message();
  EXPECT_NE(refused.status().message().find("Tile"), std::string::npos) << refused.status().message();
}

}  // namespace
}  // namespace dtg
