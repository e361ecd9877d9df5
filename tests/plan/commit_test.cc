// Commit: gates before the writes of a phase and points behind them, numbers that still grow along every edge, and graphs that make
// the same writes again.
#include "graph/closure.h"
#include "passes_fixture.h"

namespace dtg {
namespace {

class Commit : public PassesTest {
 protected:
  Commit() { context.committing = Committing::joined; }
  static const IrNode* find(const Ir& ir, std::string_view op, int which = 0) {
    for (const IrNode& node : ir.nodes) {
      if (!node.dead && node.node->op->name() == op && which-- == 0) return &node;
    }
    return nullptr;
  }
  static void expect_edges_upwards(const Ir& ir) {
    for (uint32_t n = 0; n < ir.nodes.size(); ++n) {
      for (uint32_t input : ir.nodes[n].inputs) {
        if (ir.values[input].producer != kNone) {
          EXPECT_LT(ir.values[input].producer, n);
        }
      }
      for (uint32_t control : ir.nodes[n].controls) EXPECT_LT(control, n);
    }
  }
  static uint32_t number_of(const Ir& ir, std::string_view op) { return number(ir, find(ir, op)); }
  static uint32_t number(const Ir& ir, const IrNode* node) { return static_cast<uint32_t>(node - ir.nodes.data()); }
  Value queue(const char* name) {
    return build->op("FIFOQueueV2", std::span<const Value>(),
                     std::vector<Attr>{{"component_types", std::vector<DType>{DType::f32}},
                                       {"shapes", std::vector<PartialShape>{Shape()}},
                                       {"shared_name", std::string(name)}});
  }
};

TEST_F(Commit, OneGateWaitsForAllThatTheWritesAreMadeFrom) {
  const Value v = variable("v"), w = variable("w"), x = placeholder(Shape()), y = placeholder(Shape());
  const NodeId first = node("AssignAddVariableOp", {v, build->op("Sin", {x})});
  const Value late = build->op("Cos", {y});
  const NodeId second = node("AssignAddVariableOp", {w, late});
  const auto ir = passes("commit", {}, {first, second}, {feed(x), feed(y)});
  expect_edges_upwards(*ir);
  const IrNode* const gate = find(*ir, "_Commit");
  const IrNode* const done = find(*ir, "_Committed");
  ASSERT_TRUE(gate && done && !find(*ir, "_Commit", 1));
  // One of them was made later than the first write.
  for (const char* made : {"Sin", "Cos"}) EXPECT_LT(number(*ir, find(*ir, made)), number(*ir, gate)) << made;
  for (int i = 0; i < 2; ++i) {
    const IrNode* const write = find(*ir, "AssignAddVariableOp", i);
    EXPECT_LT(number(*ir, gate), number(*ir, write));
    EXPECT_LT(number(*ir, write), number(*ir, done));
  }
}

TEST_F(Commit, WhatIsComputedOnAWriteIsCommittedAfterIt) {
  const Value v = variable("v"), w = variable("w"), one = build->scalar(DType::f32, 1);
  const NodeId first = node("AssignAddVariableOp", {v, one});
  const NodeId second = node("AssignAddVariableOp", {w, build->op("Sin", {read(v)})});
  const auto ir = passes("commit", {}, {first, second});
  expect_edges_upwards(*ir);
  const IrNode* const gates[] = {find(*ir, "_Commit", 0), find(*ir, "_Commit", 1)};
  ASSERT_TRUE(gates[0] && gates[1]);
  EXPECT_LT(number(*ir, find(*ir, "_Committed", 0)), number(*ir, gates[1]));
  EXPECT_EQ(gates[0]->node->attr<int64_t>("phase"), 0);
  EXPECT_EQ(gates[1]->node->attr<int64_t>("phase"), 1);
}

TEST_F(Commit, WhoOnlyReadsOrQueuesHasNone) {
  const Value v = variable("v");
  const NodeId put = node("QueueEnqueueV2", {queue("q"), read(v)});
  const auto ir = passes("commit", {}, {put});
  EXPECT_FALSE(find(*ir, "_Commit"));
}

TEST_F(Commit, NobodyIsToldWhereNothingIsJoined) {
  context.committing = Committing::singly;
  const NodeId write = node("AssignAddVariableOp", {variable("v"), build->scalar(DType::f32, 1)});
  EXPECT_FALSE(find(*passes("commit", {}, {write}), "_Commit"));
}

TEST_F(Commit, TheWritesAloneAreAGraph) {
  context.committing = Committing::logged;
  const Value v = variable("v", Shape::of({3})), x = placeholder(Shape::of({3}));
  const NodeId first = node("AssignAddVariableOp", {v, build->op("Sin", {x})});
  const NodeId second =
      node("AssignSubVariableOp", {v, build->constant(Tensor::of<float>(Shape::of({3}), std::vector<float>{1, 2, 3}).take())});
  const auto ir = passes("commit", {}, {first, second}, {feed(x)});
  ASSERT_EQ(ir->commits.size(), 1u);
  const IrCommit& commit = ir->commits[0];
  EXPECT_EQ(commit.writes.size(), 2u);
  ASSERT_EQ(commit.fed.size(), 1u);
  EXPECT_EQ(commit.graph->info(commit.fed[0]).shape, PartialShape(Shape::of({3})));
  // What is known stands in the graph; what was computed does not.
  size_t sines = 0, handles = 0;
  for (NodeId id = 0; id < commit.graph->node_count(); ++id) {
    sines += commit.graph->node(id).op->name() == "Sin";
    handles += commit.graph->node(id).op->name() == "VarHandleOp";
  }
  EXPECT_EQ(sines, 0u);
  EXPECT_EQ(handles, 1u);
  const IrNode* const gate = find(*ir, "_Commit");
  ASSERT_TRUE(gate);
  ASSERT_EQ(gate->inputs.size(), 1u);
  EXPECT_EQ(ir->nodes[ir->values[gate->inputs[0]].producer].node->op->name(), "Sin");
}

// However many nodes hand a handle on, nothing is as deep as they are many.
TEST_F(Commit, AHandleMayComeALongWay) {
  context.committing = Committing::logged;
  Value handle = variable("v");
  for (int i = 0; i < 60'000; ++i) handle = build->op("IdentityN", {handle}, {{"T", std::vector<DType>{DType::resource}}});
  const NodeId write = node("AssignAddVariableOp", {handle, build->scalar(DType::f32, 1)});
  const auto ir = passes("commit", {}, {write});
  ASSERT_EQ(ir->commits.size(), 1u);
  EXPECT_EQ(ir->commits[0].graph->node_count(), 3u);
}

// Behind a gate no write waits for what somebody else has to take first.
TEST_F(Commit, NoWriteWaitsForWhatIsSentAfterTheGate) {
  const Value v = variable("v"), w = variable("w"), x = placeholder(Shape());
  const Value seen = read(v);
  const NodeId first = node("AssignAddVariableOp", {v, build->scalar(DType::f32, 1)});
  const std::vector<Attr> attrs = {{"edge", int64_t{1}}, {"peer", std::string("/job:ps/replica:0/task:1")}};
  const NodeId send = build->node("_Send", std::vector<Value>{seen}, attrs);
  const NodeId second = node("AssignAddVariableOp", {w, build->op("Sin", {x})});
  const auto ir = passes("order", {}, {first, send, second}, {feed(x)});
  const IrNode* const gate = find(*ir, "_Commit");
  const IrNode* const sent = find(*ir, "_Send");
  ASSERT_TRUE(gate && sent);
  const auto event = static_cast<uint32_t>(sent->event);
  for (int i = 0; i < 2; ++i) {
    const IrNode* const write = find(*ir, "AssignAddVariableOp", i);
    EXPECT_TRUE(ir->sets->contains(gate->set, event) || !ir->sets->contains(write->set, event)) << ir->text();
  }
}

// The rounds of a loop cannot be one unit; each has its own, inside.
TEST_F(Commit, ALoopThatWritesIsTold) {
  const Value v = variable("v"), w = variable("w"), start[] = {build->integer(0)};
  const Ref<Graph> condition = Graph::create_inside(graph).take(), body = Graph::create_inside(graph).take();
  const Value asked = condition->add_argument(graph->info(start[0])).take(), counter = body->add_argument(graph->info(start[0])).take();
  Build c(*condition), b(*body);
  Closure more = finish_function(condition, "more", {c.op("Less", {asked, c.integer(3)})}).take();
  const NodeId add = b.node("AssignAddVariableOp", std::vector<Value>{v, b.scalar(DType::f32, 1)});
  Closure round = finish_function(body, "round", {b.add(counter, b.integer(1))}, {add}).take();
  const NodeId loop = add_while(*graph, start, std::move(more), std::move(round)).take()[0].node();
  const NodeId write = node("AssignAddVariableOp", {w, build->scalar(DType::f32, 1)});
  const auto ir = passes("commit", {}, {loop, write});
  expect_edges_upwards(*ir);
  const IrNode *const gate = find(*ir, "_Commit"), *const strand = find(*ir, "While");
  ASSERT_TRUE(gate && strand && !find(*ir, "_Commit", 1));
  EXPECT_EQ(gate->node->attr<int64_t>("strand"), -1);
  EXPECT_EQ(*strand->node->find_attr(OpDef::kCommitAttr)->get<int64_t>(), 0);
  // Nothing keeps one from the other.
  EXPECT_EQ(std::ranges::count(strand->controls, number_of(*ir, "_Committed")), 0);
  EXPECT_EQ(std::ranges::count(gate->controls, number(*ir, strand)), 0);
}

// What a body is called with is named by whoever calls, so that a log can tell; one graph serves for all shapes.
TEST_F(Commit, ABodyNamesWhatItWasGiven) {
  context.committing = Committing::logged;
  context.strand = 3;
  const auto handles = make_ref<NamedHandles>();
  const std::vector<Attr> attrs = {{"dtype", DType::f32}, {"shape", PartialShape(Shape::of({2}))}, {"shared_name", std::string()}};
  handles->of.push_back({context.ops->find("VarHandleOp"), "outside", context.placer->devices()[0].text, "", attrs});
  context.handles = handles;
  const ValueInfo held{DType::resource, DType::f32, PartialShape(Shape::of({2}))};
  const Value given = graph->add_argument(held).take(), x = placeholder(Shape::of({2}));
  const NodeId write = node("AssignAddVariableOp", {given, x});
  PlanRequest request;
  request.body = true;
  request.feeds = {{given, DType::resource, Shape(), DType::f32, held.shape}, feed(x)};
  request.targets = {write};
  const auto ir = passes("commit", std::move(request));
  ASSERT_EQ(ir->commits.size(), 1u);
  const IrCommit& commit = ir->commits[0];
  ASSERT_EQ(commit.fed.size(), 1u);
  EXPECT_EQ(commit.graph->info(commit.fed[0]).shape, PartialShape::unknown());
  std::string name;
  for (NodeId id = 0; id < commit.graph->node_count(); ++id) {
    const Node& one = commit.graph->node(id);
    if (one.op->name() == "VarHandleOp") name = one.attr<std::string>("shared_name");
  }
  EXPECT_EQ(name, "outside");
  const IrNode* const gate = find(*ir, "_Commit");
  ASSERT_TRUE(gate);
  EXPECT_EQ(gate->node->attr<int64_t>("strand"), 3);
  EXPECT_EQ(gate->node->attr<int64_t>("record"), 0);
}

}  // namespace
}  // namespace dtg
