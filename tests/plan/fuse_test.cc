// Fuse: chains of element-wise nodes and products with their bias become one node, of any length and never across what others see.
#include "device/cpu/chain.h"
#include "passes_fixture.h"

namespace dtg {
namespace {

class Fuse : public PassesTest {
 protected:
  Fuse() : x(placeholder(Shape::of({4, 4}))) {}
  const Value x;
};

TEST_F(Fuse, AChainIsOneNode) {
  const Value y = build->op("Tanh", {build->mul(build->op("Exp", {x}), x)});
  const auto ir = passes("fuse", {y}, {}, {feed(x)});
  const auto nodes = live(*ir);
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(ir->nodes[nodes[0]].node->op->role(), Role::chain);
  EXPECT_EQ(ir->nodes[nodes[0]].inputs.size(), 1u);
  EXPECT_EQ(ir->nodes[nodes[0]].node->attr<std::vector<std::string>>("ops"), (std::vector<std::string>{"Exp", "Mul", "Tanh"}));
}

TEST_F(Fuse, AChainOfAnyLengthIsCutWhereTheKernelEnds) {
  for (const int length : {2, 15, 16, 17, 40, 200}) {
    std::vector<FeedSpec> feeds;
    Value sum = placeholder(Shape::of({8}));
    feeds.push_back(feed(sum));
    for (int i = 1; i < length; ++i) {
      feeds.push_back(feed(placeholder(Shape::of({8}))));
      sum = build->add(sum, feeds.back().value);
    }
    const auto ir = passes("fuse", {sum}, {}, feeds);
    size_t steps = 0;
    for (uint32_t n : live(*ir)) {
      EXPECT_LE(ir->nodes[n].inputs.size(), size_t{cpu::kChainInputs});
      const AttrValue* const ops = ir->nodes[n].node->find_attr("ops");
      const size_t count = ops ? ops->get<std::vector<std::string>>()->size() : 1;
      EXPECT_LE(count, size_t{cpu::kChainSteps});
      steps += count;
    }
    EXPECT_EQ(steps, static_cast<size_t>(length - 1)) << "each sum is made once";
    EXPECT_LE(live(*ir).size(), static_cast<size_t>(length) / 3 + 1);
  }
}

TEST_F(Fuse, WhatOthersSeeStaysAValue) {
  const Value a = build->op("Exp", {x}), b = build->op("Tanh", {a});
  EXPECT_TRUE(is_live(*passes("fuse", {a, b}, {}, {feed(x)}), a)) << "fetched";
  const Value c = build->op("Exp", {x}), product = build->op("MatMul", {c, c}), d = build->op("Tanh", {c});
  EXPECT_TRUE(is_live(*passes("fuse", {product, d}, {}, {feed(x)}), c)) << "read by another";
  const Value e = build->op("Exp", {x}), f = build->op("Tanh", {e});
  const NodeId after = node("NoOp", {}, {e.node()});
  EXPECT_TRUE(is_live(*passes("fuse", {f}, {after}, {feed(x)}), e)) << "waited for";
  const Value g = on(1, "Exp", {x}), h = on(2, "Tanh", {g});
  EXPECT_TRUE(is_live(*passes("fuse", {h}, {}, {feed(x)}), g)) << "on another device";
}

TEST_F(Fuse, AProductTakesBiasAndActivationAlong) {
  const Value bias = placeholder(Shape::of({4}));
  const Value product = build->op("MatMul", {x, x}), sum = build->op("BiasAdd", {product, bias}), y = build->op("Relu", {sum});
  const auto ir = passes("fuse", {y}, {}, {feed(x), feed(bias)});
  ASSERT_EQ(live(*ir).size(), 1u);
  EXPECT_EQ(ir->nodes[live(*ir)[0]].node->op->name(), "_FusedMatMul");
  EXPECT_EQ(ir->nodes[live(*ir)[0]].node->attr<std::string>("activation"), "Relu");
  const auto fetched = passes("fuse", {y, product}, {}, {feed(x), feed(bias)});
  EXPECT_TRUE(live(*fetched, "_FusedMatMul").empty()) << "the product itself is wanted";
}

TEST_F(Fuse, AReductionClosesTheChainBeforeIt) {
  const Value y = build->sum(build->mul(x, x), build->ints({0, 1}));
  const auto ir = passes("fuse", {y}, {}, {feed(x)});
  ASSERT_EQ(live(*ir).size(), 1u);
  EXPECT_EQ(ir->nodes[live(*ir)[0]].node->attr<std::string>("reduce"), "Sum");
}

TEST_F(Fuse, EdgesStillGoFromLowerToHigherNumbers) {
  Value a = x, b = build->neg(x);
  for (int i = 0; i < 30; ++i) {
    const Value next = i % 3 == 0 ? build->op("MatMul", {a, b}) : build->add(a, b);
    a = i % 2 ? b : build->op("Sin", {a});
    b = next;
  }
  const auto ir = passes("fuse", {a, b}, {}, {feed(x)});
  for (uint32_t n : live(*ir)) {
    for (uint32_t input : ir->nodes[n].inputs) {
      const uint32_t producer = ir->values[input].producer;
      if (producer == kNone) continue;
      EXPECT_LT(producer, n);
      EXPECT_FALSE(ir->nodes[producer].dead);
    }
  }
}

TEST_F(Fuse, ItCanBeSwitchedOff) {
  context.fuse = false;
  EXPECT_EQ(live(*passes("fuse", {build->op("Tanh", {build->op("Exp", {x})})}, {}, {feed(x)})).size(), 2u);
}

}  // namespace
}  // namespace dtg
