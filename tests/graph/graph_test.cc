// Graph: names that are free, attributes that nodes share, and nodes that were refused and left nothing.
#include "graph/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "graph/build.h"
#include "ops/all.h"

namespace dtg {
namespace {

class GraphTest : public ::testing::Test {
 protected:
  GraphTest() {
    KernelTable kernels;
    ops::register_all(ops_, kernels);
    graph = Graph::create(&ops_).take();
    build = std::make_unique<Build>(*graph);
  }
  std::string name(Value value) const { return std::string(graph->node(value.node()).name); }
  std::span<const Attr> attrs(Value value) const { return graph->node(value.node()).attrs; }

 private:
  OpTable ops_;

 protected:
  Ref<Graph> graph;
  std::unique_ptr<Build> build;
};

TEST_F(GraphTest, NamesCountUpPastThoseThatAreTaken) {
  const Value one = build->scalar(DType::f32, 1);
  EXPECT_EQ(name(build->neg(one)), "Neg");
  EXPECT_EQ(name(build->op("Neg", {one}, {}, "Neg_2")), "Neg_2");
  EXPECT_EQ(name(build->neg(one)), "Neg_1");
  EXPECT_EQ(name(build->neg(one)), "Neg_3");
  graph->push_name_scope("layer");
  EXPECT_EQ(name(build->neg(one)), "layer/Neg");
  EXPECT_EQ(name(build->neg(one)), "layer/Neg_1");
  EXPECT_TRUE(graph->pop_name_scope().ok());
  EXPECT_EQ(graph->unique_name("Neg"), "Neg_4");
}

TEST_F(GraphTest, ScopesNeverMeet) {
  const Value one = build->scalar(DType::f32, 1);
  std::vector<std::string> names;
  for (const char* scope : {"a", "a_1", "a", "a", "a_1"}) {
    graph->push_name_scope(scope);
    names.push_back(name(build->op("Neg", {one}, {}, "p")));
    EXPECT_TRUE(graph->pop_name_scope().ok());
  }
  EXPECT_TRUE(build->ok()) << build->status().message();
  std::ranges::sort(names);
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
}

TEST_F(GraphTest, AScopeIsPartOfANameAndCheckedLikeOne) {
  const Value one = build->scalar(DType::f32, 1);
  for (const std::string& bad :
       {std::string("a b"), std::string("a:0"), std::string("^x"), std::string("\xff\xfe"), std::string(5000, 'a')}) {
    EXPECT_EQ(graph->check_name_scope(bad).code(), Code::invalid_argument) << bad;
    graph->push_name_scope(bad);
    const Value inputs[] = {one};
    EXPECT_EQ(graph->add({.op = "Neg", .inputs = inputs}).status().code(), Code::invalid_argument) << bad;
    EXPECT_TRUE(graph->pop_name_scope().ok());
  }
  EXPECT_TRUE(graph->check_name_scope("").ok());
  EXPECT_TRUE(graph->check_name_scope("layer/1-x").ok());
}

TEST_F(GraphTest, FindsEachOfThousands) {
  const Value one = build->scalar(DType::f32, 1);
  std::vector<Value> made;
  for (int i = 0; i < 5000; ++i) made.push_back(build->op("Neg", {one}, {}, i % 2 ? "" : "n" + std::to_string(i)));
  ASSERT_TRUE(build->ok());
  for (Value value : made) EXPECT_EQ(graph->find(name(value)), value.node());
  EXPECT_EQ(graph->find("n1"), kNoNode);
  EXPECT_EQ(graph->find(""), kNoNode);
}

TEST_F(GraphTest, EqualAttributesAreOneList) {
  const Value one = build->scalar(DType::f32, 1), half = build->scalar(DType::f64, 0.5);
  const Value a = build->neg(one), b = build->neg(a), other = build->neg(half), c = build->neg(b);
  EXPECT_EQ(attrs(a).data(), attrs(b).data());
  EXPECT_EQ(attrs(a).data(), attrs(c).data());
  EXPECT_NE(attrs(a).data(), attrs(other).data());
  EXPECT_EQ(graph->node(other.node()).attr<DType>("T"), DType::f64);
  // One call with several attributes given, one with the defaults written out.
  const Value matrix = build->constant(Tensor::allocate(DType::f32, Shape::of({2, 2})).take());
  const Value plain = build->op("MatMul", {matrix, matrix}), same = build->op("MatMul", {matrix, matrix}, {{"transpose_a", false}}),
              turned = build->op("MatMul", {matrix, matrix}, {{"transpose_a", true}});
  EXPECT_EQ(attrs(plain).data(), attrs(same).data());
  EXPECT_TRUE(graph->node(turned.node()).attr<bool>("transpose_a"));
  EXPECT_FALSE(graph->node(plain.node()).attr<bool>("transpose_a"));
}

TEST_F(GraphTest, AMinusZeroIsAnotherAttribute) {
  const Value one = build->scalar(DType::f32, 1);
  const Value plus = build->op("LeakyRelu", {one}, {{"alpha", 0.0}}), minus = build->op("LeakyRelu", {one}, {{"alpha", -0.0}});
  ASSERT_TRUE(build->ok()) << build->status().message();
  EXPECT_FALSE(std::signbit(graph->node(plus.node()).attr<double>("alpha")));
  EXPECT_TRUE(std::signbit(graph->node(minus.node()).attr<double>("alpha")));
}

TEST_F(GraphTest, WhatIsRefusedLeavesNothing) {
  const Value one = build->scalar(DType::f32, 1), whole = build->integer(3);
  const uint32_t count = graph->node_count();
  const Value inputs[] = {one, whole};
  EXPECT_FALSE(graph->add({.op = "AddV2", .name = "sum", .inputs = inputs}).ok());
  EXPECT_EQ(graph->node_count(), count);
  EXPECT_EQ(graph->find("sum"), kNoNode);
  const Value twice[] = {one, one};
  ASSERT_TRUE(graph->add({.op = "AddV2", .name = "sum", .inputs = twice}).ok());
  EXPECT_EQ(graph->find("sum"), count);
}

TEST_F(GraphTest, DevicesOfNeighboursAreOneText) {
  const Value one = build->scalar(DType::f32, 1);
  graph->push_device("/device:CPU:1");
  const Value a = build->neg(one), b = build->neg(one);
  EXPECT_TRUE(graph->pop_device().ok());
  const Value c = build->neg(one);
  EXPECT_EQ(graph->node(a.node()).device, "/device:CPU:1");
  EXPECT_EQ(graph->node(a.node()).device.data(), graph->node(b.node()).device.data());
  EXPECT_EQ(graph->node(c.node()).device, "");
}

}  // namespace
}  // namespace dtg
