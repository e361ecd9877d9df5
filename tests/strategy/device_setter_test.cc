// The device setter on graphs: what goes where, what moves the wheel, and models built under it. Real TensorFlow's
// placements are replayed by tests/oracle.
#include "strategy/device_setter.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/build.h"
#include "nn/layers.h"
#include "nn/losses.h"
#include "nn/optimizer.h"
#include "ops/all.h"

namespace dtg {
namespace {

using Choice = DeviceSetter::Choice;

class Setter : public testing::Test {
 protected:
  void SetUp() override {
    ops::register_all(ops_, kernels_);
    graph_ = Graph::create(&ops_).take();
  }

  DeviceSetter::Options options(int tasks, Choice choice = Choice::round_robin) {
    DeviceSetter::Options options;
    for (int i = 0; i < tasks; ++i) options.tasks.push_back(i);
    options.ps_device = DeviceName::parse("/job:ps").take();
    options.worker_device = DeviceName::parse("/job:worker/task:5").take();
    options.choice = choice;
    return options;
  }
  void push(DeviceSetter::Options given) { graph_->push_device_function(make_ref<DeviceSetter>(std::move(given))); }

  std::string device_of(Result<NodeId> node) {
    EXPECT_TRUE(node.ok()) << node.status().message();
    return node.ok() ? std::string(graph_->node(node.value()).device) : "";
  }
  std::string variable(std::vector<int64_t> dims, const char* device = "") {
    const Attr attrs[] = {{"dtype", DType::f32}, {"shape", Shape::make(dims).take()}};
    return device_of(graph_->add({.op = "VarHandleOp", .device = device, .attrs = attrs}));
  }
  std::string other(const char* device = "") { return device_of(graph_->add({.op = "NoOp", .device = device})); }

  OpTable ops_;
  KernelTable kernels_;
  Ref<Graph> graph_;
};

TEST_F(Setter, TakesTurns) {
  push(options(3));
  EXPECT_EQ(variable({2}), "/job:ps/task:0");
  EXPECT_EQ(other(), "/job:worker/task:5");
  EXPECT_EQ(variable({2}), "/job:ps/task:1");
  EXPECT_EQ(variable({2}, "/device:CPU:1"), "/job:ps/task:2/device:CPU:1");
  EXPECT_EQ(variable({2}), "/job:ps/task:0");
  EXPECT_EQ(other("/task:1/cpu:0"), "/job:worker/task:1/device:CPU:0");
}

TEST_F(Setter, OnlyWhoIsAskedForATaskMovesTheWheel) {
  push(options(3));
  EXPECT_EQ(variable({2}, "/job:ps/task:2"), "/job:ps/task:2");
  EXPECT_EQ(variable({2}, "/job:worker/task:1"), "/job:worker/task:1");
  EXPECT_EQ(variable({2}), "/job:ps/task:1");
  // A node that is refused does not count.
  EXPECT_FALSE(graph_->add({.op = "VarHandleOp"}).ok());
  EXPECT_EQ(variable({2}), "/job:ps/task:2");
}

TEST_F(Setter, GoesByBytes) {
  push(options(3, Choice::greedy_bytes));
  EXPECT_EQ(variable({100}), "/job:ps/task:0");
  EXPECT_EQ(variable({10}), "/job:ps/task:1");
  EXPECT_EQ(variable({20}), "/job:ps/task:2");
  EXPECT_EQ(variable({11}), "/job:ps/task:1");
  EXPECT_EQ(variable({1}), "/job:ps/task:2");
  EXPECT_EQ(variable({}), "/job:ps/task:1");
  // More than can be counted in 64 bits stays the most.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(variable({int64_t{1} << 61}).substr(0, 14), "/job:ps/task:" + std::to_string(2 - i));
  const Attr open[] = {{"dtype", DType::f32}, {"shape", PartialShape::vector(-1)}};
  const auto refused = graph_->add({.op = "VarHandleOp", .attrs = open});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::invalid_argument);
  EXPECT_NE(refused.status().message().find("VarHandleOp"), std::string::npos);
}

TEST_F(Setter, TheScopesAroundAndInside) {
  graph_->push_device("/job:elsewhere/device:CPU:3");
  push(options(2));
  graph_->push_device("/device:CPU:1");
  EXPECT_EQ(variable({2}), "/job:ps/task:0/device:CPU:1");
  graph_->push_device("/task:1");
  EXPECT_EQ(variable({2}), "/job:ps/task:1/device:CPU:1");
  EXPECT_TRUE(graph_->pop_device().ok());
  EXPECT_TRUE(graph_->pop_device().ok());
  EXPECT_EQ(variable({2}), "/job:ps/task:0/device:CPU:3");
  graph_->push_device("");  // leaves all of them
  EXPECT_EQ(variable({2}), "");
  graph_->push_device("/task:7");
  EXPECT_EQ(variable({2}), "/task:7");
  EXPECT_TRUE(graph_->pop_device().ok());
  EXPECT_TRUE(graph_->pop_device().ok());
  EXPECT_EQ(other(), "/job:worker/task:5/device:CPU:3");
  EXPECT_TRUE(graph_->pop_device().ok());  // the setter
  EXPECT_EQ(variable({2}), "/job:elsewhere/device:CPU:3");
}

TEST_F(Setter, KeepsWhatIsExplicitWhenAsked) {
  auto keeping = options(2);
  keeping.keep_explicit = true;
  push(keeping);
  EXPECT_EQ(variable({2}, "/device:CPU:1"), "/device:CPU:1");
  EXPECT_EQ(variable({2}), "/job:ps/task:0");
  EXPECT_EQ(other("/task:1"), "/task:1");
}

TEST_F(Setter, WithoutTasksNothingIsSet) {
  push(options(0));
  EXPECT_EQ(variable({2}), "");
  EXPECT_EQ(other("/task:1"), "/task:1");
}

TEST_F(Setter, OpsOfTheHostsChoice) {
  auto chosen = options(2);
  chosen.ps_ops = {"NoOp"};
  push(chosen);
  EXPECT_EQ(other(), "/job:ps/task:0");
  EXPECT_EQ(variable({2}), "/job:worker/task:5");
}

TEST_F(Setter, SparseJobsKeepTheirNumbers) {
  auto sparse = options(0);
  sparse.tasks = {3, 8};
  push(sparse);
  EXPECT_EQ(variable({2}), "/job:ps/task:3");
  EXPECT_EQ(variable({2}), "/job:ps/task:8");
  EXPECT_EQ(variable({2}), "/job:ps/task:3");
}

// What takes a variable stands with it; the rest of the training, gradients included, stands with the worker.
TEST_F(Setter, WholeModels) {
  push(options(2));
  const Ref<Model> model = make_ref<Model>(graph_, uint64_t{1});
  Build build(*graph_);
  const auto fed = [&](int64_t width) {
    return build.op("Placeholder", {}, {{"dtype", DType::f32}, {"shape", Shape::make(std::vector<int64_t>{4, width}).take()}});
  };
  const Value x = fed(3), labels = fed(2);
  const Value y = dense(*model, x, {.units = 2}).take();
  const Value loss = mean_squared_error(*graph_, labels, y).take();
  ASSERT_TRUE(minimize(*model, loss, {.kind = Optimizer::Kind::adam, .learning_rate = {}}).ok());

  const auto device = [&](const char* name) { return std::string(graph_->node(graph_->find(name)).device); };
  EXPECT_EQ(device("dense/kernel"), "/job:ps/task:0");
  EXPECT_EQ(device("dense/bias"), "/job:ps/task:1");
  EXPECT_EQ(device("dense/kernel/Adam"), "/job:ps/task:0");
  EXPECT_EQ(device("dense/bias/Adam_1"), "/job:ps/task:1");
  EXPECT_EQ(device("beta1_power"), "/job:ps/task:0");
  EXPECT_EQ(model->find("global_step")->dtype, DType::i64);
  EXPECT_EQ(device("global_step").substr(0, 13), "/job:ps/task:");
  int holders = 0, products = 0;
  for (NodeId id = 0; id < graph_->node_count(); ++id) {
    const Node& node = graph_->node(id);
    for (Value input : node.inputs) {
      if (graph_->info(input).dtype != DType::resource) continue;
      ++holders;
      EXPECT_EQ(node.device, graph_->node(input.node()).device) << node.name;
    }
    if (node.op->name() != "MatMul") continue;
    ++products;
    EXPECT_EQ(node.device, "/job:worker/task:5") << node.name;
  }
  EXPECT_GT(holders, 15);
  EXPECT_EQ(products, 3);  // forward and both gradients
}

}  // namespace
}  // namespace dtg
