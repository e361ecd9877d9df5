// Split: a stream for each node, a memory space for each value, a copy at each crossing.
#include "device/emu/emu.h"
#include "passes_fixture.h"

namespace dtg {
namespace {

class Split : public PassesTest {
 protected:
  Split() {
    std::vector<Device> devices;
    for (const char* name : {"CPU:0", "EMU:0", "EMU:1"}) {
      Device& device = devices.emplace_back();
      device.text = std::string("/job:local/replica:0/task:0/device:") + name;
      device.name = DeviceName::parse(device.text).take();
      device.type = std::string(name, 3);
      if (!device.is_host()) device.accelerator = Emu::create(device.text, {.memory_bytes = 1 << 20}).take();
    }
    mixed_ = std::make_unique<Placer>(std::move(devices), context.kernels, false);
    context.placer = mixed_.get();
  }
  Value there(const char* device, std::string_view op, std::initializer_list<Value> inputs) {
    graph->push_device(device);
    const Value value = build->op(op, inputs);
    EXPECT_TRUE(graph->pop_device().ok());
    return value;
  }
  // Of the first live node of that op whose operand is `value`; where its result lies.
  static uint32_t copies(const Ir& ir) { return static_cast<uint32_t>(live(ir, "_Copy").size()); }
  const IrNode& made_by(const Ir& ir, Value value, std::string_view op) const {
    for (uint32_t n : live(ir, op)) {
      if (ir.nodes[n].node->id == value.node()) return ir.nodes[n];
    }
    ADD_FAILURE() << "no " << op;
    return ir.nodes[0];
  }
  std::unique_ptr<Placer> mixed_;
};

TEST_F(Split, AcceleratorsArePreferredAndFeedsAndFetchesAreTheHosts) {
  const Value x = placeholder(Shape::of({4})), y = build->neg(x);
  const auto ir = passes("split", {y}, {}, {feed(x)});
  const IrNode& neg = made_by(*ir, y, "Neg");
  EXPECT_EQ(neg.device, 1u);
  EXPECT_EQ(neg.lane, 1u);
  EXPECT_EQ(ir->values[neg.outputs[0]].space, 1u);
  EXPECT_EQ(copies(*ir), 2u);
  EXPECT_EQ(ir->values[ir->fetches[0]].space, 0u);
  EXPECT_EQ(ir->values[neg.inputs[0]].space, 1u);
}

TEST_F(Split, OneCopyServesAllOnADevice) {
  const Value x = placeholder(Shape::of({4}));
  const Value a = there("/device:EMU:0", "Neg", {x}), b = there("/device:EMU:0", "Exp", {x}), c = there("/device:EMU:0", "AddV2", {a, b});
  const auto ir = passes("split", {c}, {}, {feed(x)});
  EXPECT_EQ(copies(*ir), 2u);
}

TEST_F(Split, FromOneDeviceToAnotherThroughTheHost) {
  const Value x = placeholder(Shape::of({4}));
  const Value a = there("/device:EMU:0", "Neg", {x}), b = there("/device:EMU:1", "Exp", {a});
  const auto ir = passes("order", {b}, {}, {feed(x)});
  EXPECT_EQ(copies(*ir), 4u);  // there, out, over, out
  EXPECT_EQ(made_by(*ir, b, "Exp").lane, 2u);
  for (uint32_t n = 0; n < ir->nodes.size(); ++n) {
    for (uint32_t v : ir->nodes[n].inputs) {
      if (ir->values[v].producer == kNone) continue;
      EXPECT_LT(ir->values[v].producer, n);
    }
  }
}

TEST_F(Split, ConstantsAreNotCopiedInARun) {
  const Value x = placeholder(Shape::of({4})), two = build->constant(Tensor::scalar(2.0f).take());
  const auto ir = passes("split", {there("/device:EMU:0", "Mul", {x, two})}, {}, {feed(x)});
  EXPECT_EQ(copies(*ir), 2u);
}

TEST_F(Split, WhatMayWaitIsTheHosts) {
  graph->push_device("/device:EMU:0");
  const Value queue =
      build->op("FIFOQueueV2", std::span<const Value>(), std::vector<Attr>{{"component_types", std::vector<DType>{DType::f32}}});
  const Value x = placeholder(Shape());
  const Value y = build->neg(x);
  const NodeId put =
      build->node("QueueEnqueueV2", std::vector<Value>{queue, y}, std::vector<Attr>{{"Tcomponents", std::vector<DType>{DType::f32}}});
  ASSERT_TRUE(graph->pop_device().ok());
  const auto ir = passes("split", {}, {put}, {feed(x)});
  const IrNode& enqueue = node_of(*ir, put);
  EXPECT_EQ(enqueue.device, 1u);
  EXPECT_EQ(enqueue.lane, 0u);
  EXPECT_EQ(ir->values[enqueue.inputs[1]].space, 0u);
}

}  // namespace
}  // namespace dtg
