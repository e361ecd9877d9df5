// Place: each node on a device that it may run on, resources beside all who use them.
#include "passes_fixture.h"

namespace dtg {
namespace {

using Place = PassesTest;

TEST_F(Place, TheFirstDeviceTakesWhatAsksForNone) {
  const Value x = placeholder(Shape()), a = build->neg(x), b = on(2, "Neg", {a});
  const auto ir = passes("place", {b}, {}, {feed(x)});
  EXPECT_EQ(node_of(*ir, a).device, 0u);
  EXPECT_EQ(node_of(*ir, b).device, 2u);
}

TEST_F(Place, WhoUsesAVariableIsWhereItIs) {
  graph->push_device("/device:CPU:1");
  const Value handle = variable("v");
  ASSERT_TRUE(graph->pop_device().ok());
  const Value r = read(handle), y = build->neg(r);
  const NodeId write = node("AssignVariableOp", {handle, y});
  const auto ir = passes("place", {}, {write});
  EXPECT_EQ(node_of(*ir, handle).device, 1u);
  EXPECT_EQ(node_of(*ir, r).device, 1u);
  EXPECT_EQ(node_of(*ir, write).device, 1u);
  EXPECT_EQ(node_of(*ir, y).device, 0u);
}

TEST_F(Place, APlacedGroupStaysWhereItIs) {
  const Value handle = variable("v");
  EXPECT_EQ(node_of(*passes("place", {read(handle)}), handle).device, 0u);
  // A later user that asks for another device does not move it.
  graph->push_device("/device:CPU:2");
  const Value later = read(handle);
  ASSERT_TRUE(graph->pop_device().ok());
  const auto ir = try_passes("place", {{}, {later}, {}});
  if (ir.ok()) {
    EXPECT_EQ(node_of(*ir.value(), handle).device, 0u);
  } else {
    EXPECT_EQ(ir.status().code(), Code::invalid_argument);
  }
}

TEST_F(Place, WishesThatContradictEachOtherAreRefused) {
  graph->push_device("/device:CPU:1");
  const Value handle = variable("v");
  ASSERT_TRUE(graph->pop_device().ok());
  graph->push_device("/device:CPU:2");
  const Value r = read(handle);
  ASSERT_TRUE(graph->pop_device().ok());
  const auto ir = try_passes("place", {{}, {r}, {}});
  ASSERT_FALSE(ir.ok());
  EXPECT_EQ(ir.status().code(), Code::invalid_argument);
  EXPECT_NE(ir.status().message().find("CPU:1"), std::string::npos) << ir.status().message();
}

// Who asks for another place than the variable's is an error where it is needed, and nobody else's; so is who asks for what is no device.
TEST_F(Place, WhoDoesNotFitStopsNoOther) {
  graph->push_device("/device:CPU:1");
  const Value handle = variable("v"), here = read(handle);
  ASSERT_TRUE(graph->pop_device().ok());
  graph->push_device("/device:CPU:2");
  const Value elsewhere = read(handle);
  ASSERT_TRUE(graph->pop_device().ok());
  const Value later = read(handle), beside = build->op("Add", {elsewhere, later});
  for (const bool soft : {false, true}) {
    use_devices(soft);
    const auto ir = passes("place", {here, later});
    EXPECT_EQ(node_of(*ir, here).device, 1u);
    EXPECT_EQ(node_of(*ir, later).device, 1u);
    for (const Value refused : {elsewhere, beside}) {
      const auto none = try_passes("place", {{}, {refused}, {}});
      ASSERT_FALSE(none.ok());
      EXPECT_EQ(none.status().code(), Code::invalid_argument);
      EXPECT_EQ(none.status().origin().node, graph->node(elsewhere.node()).name) << none.status().message();
    }
  }
}

TEST_F(Place, AnAbsentDeviceIsAnErrorUnlessPlacementIsSoft) {
  const Value x = placeholder(Shape()), y = on(7, "Neg", {x});
  const auto hard = try_passes("place", {{feed(x)}, {y}, {}});
  ASSERT_FALSE(hard.ok());
  EXPECT_EQ(hard.status().origin().phase, "place");
  EXPECT_NE(hard.status().message().find("CPU:7"), std::string::npos) << hard.status().message();
  EXPECT_NE(hard.status().message().find("soft placement would take another"), std::string::npos) << hard.status().message();
  use_devices(true);
  EXPECT_EQ(node_of(*passes("place", {y}, {}, {feed(x)}), y).device, 0u);
}

// Soft placement stays at the task that was asked for, so nobody is sent there in vain.
TEST_F(Place, AnAbsentTaskIsAnErrorHoweverSoft) {
  graph->push_device("/job:nobody/task:0");
  const Value x = placeholder(Shape()), y = build->neg(x);
  ASSERT_TRUE(graph->pop_device().ok());
  for (const bool soft : {false, true}) {
    use_devices(soft);
    const auto ir = try_passes("place", {{feed(x)}, {y}, {}});
    ASSERT_FALSE(ir.ok());
    EXPECT_EQ(ir.status().code(), Code::invalid_argument);
    EXPECT_NE(ir.status().message().find("the session has no such task"), std::string::npos) << ir.status().message();
    EXPECT_EQ(ir.status().message().find("soft placement"), std::string::npos) << ir.status().message();
  }
}

TEST_F(Place, AWrongDeviceIsAnErrorEvenWhereNothingIsLeftToDo) {
  const Value c = on(7, "Neg", {build->scalar(DType::f32, 1)});
  EXPECT_FALSE(try_passes("place", {{}, {build->neg(c)}, {}}).ok());
}

}  // namespace
}  // namespace dtg
