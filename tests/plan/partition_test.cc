// Cutting a run by task: what travels, what does not, and in which order.
#include "plan/partition.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "exec/resource.h"
#include "graph/build.h"
#include "ops/all.h"

namespace dtg {
namespace {

class PartitionTest : public ::testing::Test {
 protected:
  PartitionTest() : pool_({.threads = 1}) {
    ops::register_all(ops_, kernels_);
    graph_ = Graph::create(&ops_).take();
    build_ = std::make_unique<Build>(*graph_);
    std::vector<Device> devices;
    for (int task = 0; task < 2; ++task) {
      Device device;
      device.text = "/job:ps/replica:0/task:" + std::to_string(task) + "/device:CPU:0";
      device.name = DeviceName::parse(device.text).take();
      device.type = "CPU";
      devices.push_back(device);
    }
    placer_ = std::make_unique<Placer>(std::move(devices), &kernels_, false);
    context_.kernels = &kernels_;
    context_.ops = &ops_;
    context_.pool = &pool_;
    context_.store = &store_;
    context_.placer = placer_.get();
    context_.clock = &system_clock();
    map_.tasks = {"/job:ps/replica:0/task:0", "/job:ps/replica:0/task:1", "/job:session/replica:0/task:0"};
    map_.task_of_device = {0, 1};
    map_.home = 2;
  }

  void on(int task) { graph_->push_device("/job:ps/task:" + std::to_string(task)); }
  void off() { EXPECT_TRUE(graph_->pop_device().ok()); }
  Value placeholder(PartialShape shape) { return build_->op("Placeholder", {}, {{"dtype", DType::f32}, {"shape", std::move(shape)}}, "x"); }
  Partition cut(PlanRequest request) {
    EXPECT_TRUE(build_->ok()) << build_->status().message();
    auto parts = partition(context_, *graph_, request, map_);
    EXPECT_TRUE(parts.ok()) << parts.status().message();
    return parts.ok() ? parts.take() : Partition();
  }
  static int count(const Part& part, std::string_view op) {
    int found = 0;
    for (NodeId id = 0; id < part.graph->node_count(); ++id) found += part.graph->node(id).op->name() == op;
    return found;
  }
  static const Node& first(const Part& part, std::string_view op) {
    for (NodeId id = 0; id < part.graph->node_count(); ++id) {
      if (part.graph->node(id).op->name() == op) return part.graph->node(id);
    }
    ADD_FAILURE() << "no " << op;
    return part.graph->node(0);
  }

  OpTable ops_;
  KernelTable kernels_;
  Pool pool_;
  ResourceStore store_;
  Ref<Graph> graph_;
  std::unique_ptr<Build> build_;
  std::unique_ptr<Placer> placer_;
  PlanContext context_;
  TaskMap map_;
};

TEST_F(PartitionTest, OneEdgePerValueAndTask) {
  on(0);
  const Value x = placeholder(PartialShape::of_rank(1));
  const Value a = build_->add(x, x), b = build_->mul(a, x), c = build_->sub(a, b);
  off();
  const Partition parts = cut({{{x, DType::f32, Shape::of({5})}}, {b, c, c}, {}});
  ASSERT_EQ(parts.others.size(), 1u);
  EXPECT_EQ(parts.edges.size(), 3u);  // x there, b and c back
  EXPECT_EQ(count(parts.home, "_Send"), 1);
  EXPECT_EQ(count(parts.home, "_Recv"), 2);
  EXPECT_EQ(count(parts.home, "_Join"), 1);
  EXPECT_EQ(count(parts.others[0], "_Recv"), 1);
  EXPECT_EQ(parts.home.request.fetches.size(), 3u);
  // Shapes of the feed reach the far end.
  EXPECT_EQ(first(parts.others[0], "_Recv").attr<PartialShape>("shape"), PartialShape(Shape::of({5})));
  EXPECT_EQ(parts.others[0].request.targets.size(), 2u);
  EXPECT_EQ(first(parts.others[0], "Mul").name, graph_->node(b.node()).name);
}

TEST_F(PartitionTest, KnownValuesDoNotTravel) {
  on(0);
  const Value size = build_->shape(build_->scalar(DType::f32, 1));
  off();
  on(1);
  const Value x = placeholder(PartialShape::of_rank(1));
  const Value y = build_->reshape(build_->mul(x, build_->scalar(DType::f32, 2)), build_->ints({2, 2}));
  off();
  const Partition parts = cut({{{x, DType::f32, Shape::of({4})}}, {y, size}, {}});
  ASSERT_EQ(parts.others.size(), 1u);
  EXPECT_EQ(parts.others[0].task, 1u);
  EXPECT_EQ(parts.edges.size(), 2u);
}

TEST_F(PartitionTest, OrderTravelsAsATinyValue) {
  on(0);
  const Value w = build_->op("VarHandleOp", {}, {{"dtype", DType::f32}, {"shape", Shape()}}, "w");
  const Value inputs[] = {w, build_->scalar(DType::f32, 1)};
  const NodeId assign = build_->node("AssignVariableOp", inputs);
  off();
  on(1);
  const NodeId after[] = {assign};
  const NodeId last = build_->node("NoOp", {}, {}, "last", after);
  off();
  const Partition direct = cut({{}, {}, {last}});
  ASSERT_EQ(direct.others.size(), 2u);
  ASSERT_EQ(direct.edges.size(), 1u);
  EXPECT_EQ(direct.edges[0].from, 0u);
  EXPECT_EQ(direct.edges[0].to, 1u);
  EXPECT_EQ(first(direct.others[0], "_Send").attr<std::string>("peer"), map_.tasks[1]);
  EXPECT_EQ(first(direct.others[1], "_Recv").attr<std::string>("peer"), map_.tasks[0]);
  EXPECT_EQ(direct.home.request.targets.size(), 2u);  // two joins
  // Where they cannot meet, by way of home, which passes it on after it came.
  map_.apart.insert({0, 1});
  const Partition parts = cut({{}, {}, {last}});
  ASSERT_EQ(parts.others.size(), 2u);
  ASSERT_EQ(parts.edges.size(), 2u);
  EXPECT_EQ(parts.edges[0].from, 0u);
  EXPECT_EQ(parts.edges[0].to, map_.home);
  EXPECT_EQ(parts.edges[1].from, map_.home);
  EXPECT_EQ(parts.edges[1].to, 1u);
  EXPECT_EQ(first(parts.others[0], "_Send").controls.size(), 1u);
  EXPECT_EQ(first(parts.home, "_Send").controls.size(), 1u);
  EXPECT_EQ(first(parts.others[1], "NoOp").controls.size(), 1u);
  EXPECT_EQ(parts.home.request.targets.size(), 3u);  // two joins and the sending
}

// A read that comes after a write by way of another task stands after it in its part, by whose order the task goes.
TEST_F(PartitionTest, AReadStandsBehindTheWriteBeforeItOnItsTask) {
  on(0);
  const Value w = build_->op("VarHandleOp", {}, {{"dtype", DType::f32}, {"shape", Shape()}}, "w");
  const Value inputs[] = {w, build_->scalar(DType::f32, 1)};
  const NodeId write = build_->node("AssignAddVariableOp", inputs);
  off();
  on(1);
  const NodeId after_write[] = {write};
  const NodeId between = build_->node("NoOp", {}, {}, "between", after_write);
  off();
  on(0);
  const NodeId after_between[] = {between};
  const Attr dtype[] = {{"dtype", DType::f32}};
  const Value handle[] = {w};
  const NodeId read = build_->node("ReadVariableOp", handle, dtype, "late", after_between);
  off();
  const Partition parts = cut({{}, {graph_->value(read)}, {}});
  ASSERT_EQ(parts.others.size(), 2u);
  const Part& ps = parts.others[0];
  EXPECT_LT(first(ps, "AssignAddVariableOp").id, first(ps, "_Send").id);
  EXPECT_LT(first(ps, "_Send").id, first(ps, "_Recv").id);
  EXPECT_LT(first(ps, "_Recv").id, first(ps, "ReadVariableOp").id);
}

TEST_F(PartitionTest, HandlesCannotTravel) {
  on(0);
  const Value w = build_->op("VarHandleOp", {}, {{"dtype", DType::f32}, {"shape", Shape()}}, "w");
  off();
  on(1);
  const Value read = build_->op("ReadVariableOp", {w}, {{"dtype", DType::f32}});
  off();
  auto parts = partition(context_, *graph_, {{}, {read}, {}}, map_);
  EXPECT_EQ(parts.status().code(), Code::invalid_argument) << parts.status().message();
}

}  // namespace
}  // namespace dtg
