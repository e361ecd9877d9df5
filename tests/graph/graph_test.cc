// Graph: names that are free, attributes that nodes share, and nodes that were refused and left nothing.
#include "graph/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

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

// Trials in trials, of which any may fail: what is built afterwards has the names of a graph in which the failed ones never were.
TEST_F(GraphTest, AFailedTrialLeavesNoNames) {
  uint64_t state = 1;
  const auto draw = [&](uint64_t n) { return (state = state * 6364136223846793005u + 1442695040888963407u) >> 33 & (n - 1); };
  OpTable table;
  KernelTable kernels;
  ops::register_all(table, kernels);
  int kept = 0;
  for (int round = 0; round < 50; ++round) {
    const Ref<Graph> tried = Graph::create(&table).take(), plain = Graph::create(&table).take();
    std::vector<NodeId> alive;
    const auto step = [&](bool lost, auto&& again, int depth) -> void {
      const bool fails = draw(2) == 0, gone = lost || fails;
      const Graph::Trial trial = tried->begin_trial();
      for (uint64_t i = 0, count = 1 + draw(8); i < count; ++i) {
        const bool scoped = draw(2) == 0;
        const char* const scope = draw(2) ? "a" : "a_1";
        for (Graph* each : {tried.get(), plain.get()}) {
          if (each == plain.get() && gone) continue;
          if (scoped) each->push_name_scope(scope);
          const Result<NodeId> made = each->add({.op = "NoOp"});
          ASSERT_TRUE(made.ok());
          if (each == tried.get() && !gone) alive.push_back(made.value());
          if (scoped) (void)each->pop_name_scope();
        }
        if (depth < 3 && draw(4) == 0) again(gone, again, depth + 1);
      }
      tried->end_trial(trial, fails);
    };
    for (int i = 0; i < 8; ++i) step(false, step, 0);
    ASSERT_EQ(alive.size(), plain->node_count());
    std::vector<bool> lives(tried->node_count());
    for (NodeId id = 0; id < plain->node_count(); ++id) {
      lives[alive[id]] = true;
      ASSERT_EQ(tried->node(alive[id]).name, plain->node(id).name) << round;
      EXPECT_EQ(tried->find(plain->node(id).name), alive[id]);
    }
    std::vector<std::string> written;
    for (NodeId id = 0; id < tried->node_count(); ++id) {
      written.push_back(tried->written_name(id));
      EXPECT_EQ(lives[id], written.back() == tried->node(id).name) << written.back();
    }
    std::ranges::sort(written);
    EXPECT_EQ(std::ranges::adjacent_find(written), written.end()) << "two nodes would be written under one name";
    kept += static_cast<int>(plain->node_count());
  }
  EXPECT_GT(kept, 500);
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
  // Nor does it use up a number.
  for (const char* const name : {"AddV2", "AddV2_1"}) {
    EXPECT_FALSE(graph->add({.op = "AddV2", .inputs = inputs}).ok());
    const auto added = graph->add({.op = "AddV2", .inputs = twice});
    ASSERT_TRUE(added.ok());
    EXPECT_EQ(graph->node(added.value()).name, name);
  }
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

// A graph remembers what the nodes before had, so that the next is made quickly; a graph that has only this node remembers nothing.
class ByChance {
 public:
  ByChance(const OpTable& ops, unsigned seed) : random_(seed), ops_(ops), graph_(Graph::create(&ops).take()) {}

  void run(int nodes) {
    for (int i = 0; i < nodes && !::testing::Test::HasFailure(); ++i) {
      if (upto(3) == 0) change_scope();
      make_node();
    }
  }

 private:
  int upto(int most) { return std::uniform_int_distribution<int>(0, most)(random_); }

  void change_scope() {
    static const char* const names[] = {"/job:a", "cpu:0", "/device:CPU:1", "/job:b/task:1", "", "no device", "/task:2"};
    if (!scopes_.empty() && upto(1) == 0) {
      scopes_.pop_back();
      ASSERT_TRUE(graph_->pop_device().ok());
    } else {
      scopes_.emplace_back(names[upto(6)]);
      graph_->push_device(scopes_.back());
    }
  }

  static Value placeholder(Graph& graph, DType dtype, const PartialShape& shape) {
    const Attr attrs[] = {{"dtype", AttrValue(dtype)}, {"shape", AttrValue(shape)}};
    return graph.value(graph.add({.op = "Placeholder", .attrs = attrs}).take());
  }

  void make_node() {
    static constexpr DType types[] = {DType::f32, DType::f64, DType::i32};
    const PartialShape shapes[] = {PartialShape::scalar(), PartialShape(Shape::of({2, 2})), PartialShape::unknown()};
    static const char* const names[] = {"AddV2", "Neg", "AddN", "Pack", "MatMul", "Cast", "IdentityN", "Select", "ConcatV2", "Shape"};
    const std::string op = names[upto(9)];
    std::vector<std::pair<DType, PartialShape>> inputs;
    const DType dtype = types[upto(2)];
    for (int i = 0, count = upto(3); i < count; ++i) inputs.emplace_back(upto(9) ? dtype : types[upto(2)], shapes[upto(2)]);
    std::vector<Attr> attrs;
    if (op == "MatMul" && upto(1)) attrs.push_back({"transpose_b", AttrValue(upto(1) == 1)});
    if (op == "Cast" || upto(9) == 0) attrs.push_back({"DstT", AttrValue(types[upto(2)])});
    if (op == "Pack" && upto(1)) attrs.push_back({"axis", AttrValue(int64_t{upto(1)})});
    if (op == "Shape" && upto(1)) attrs.push_back({"out_type", AttrValue(DType::i64)});
    if (upto(5) == 0) attrs.push_back({"T", AttrValue(types[upto(2)])});
    compare(op, inputs, attrs);
  }

  // Here, and in a graph of its own.
  void compare(const std::string& op, const std::vector<std::pair<DType, PartialShape>>& inputs, std::span<const Attr> attrs) {
    const Ref<Graph> alone = Graph::create(&ops_).take();
    std::vector<Value> here, there;
    for (const auto& [dtype, shape] : inputs) {
      here.push_back(placeholder(*graph_, dtype, shape));
      there.push_back(placeholder(*alone, dtype, shape));
    }
    for (const std::string& scope : scopes_) alone->push_device(scope);
    const auto a = graph_->add({.op = op, .inputs = here, .attrs = attrs}), b = alone->add({.op = op, .inputs = there, .attrs = attrs});
    ASSERT_EQ(a.ok(), b.ok()) << op << ": " << a.status().message() << b.status().message();
    made_ += a.ok();
    if (!a.ok()) return;
    const Node &x = graph_->node(a.value()), &y = alone->node(b.value());
    EXPECT_EQ(x.device, y.device);
    EXPECT_TRUE(std::ranges::equal(x.outputs, y.outputs)) << op;
    EXPECT_TRUE(std::ranges::equal(x.attrs, y.attrs, [](const Attr& m, const Attr& n) {
      return m.name == n.name && same_value(m.value, n.value);
    })) << op;
    EXPECT_EQ(graph_->find(x.name), a.value());
  }

 public:
  int made_ = 0;

 private:
  std::mt19937 random_;
  const OpTable& ops_;
  const Ref<Graph> graph_;
  std::vector<std::string> scopes_;
};

TEST_F(GraphTest, ANodeIsWhatItWouldBeAlone) {
  int made = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ByChance chance(graph->ops(), seed);
    chance.run(200);
    made += chance.made_;
  }
  EXPECT_GT(made, 500);
}

}  // namespace
}  // namespace dtg
