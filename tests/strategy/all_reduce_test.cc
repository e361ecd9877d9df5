// Averaging gradients of copies on several devices of one graph: dense ones to the bit, in as few calls as their sizes allow; rows stay
// rows. Between processes the same is proved by tests/abi/all_reduce.c.
#include "strategy/all_reduce.h"

#include "nn/scope.h"
#include "session/fixture.h"
#include "strategy/workers.h"

namespace dtg {
namespace {

constexpr int kCopies = 3;

class AllReduceTest : public SessionTest {
 protected:
  void SetUp() override {
    Session::Options options;
    options.devices.cpu = kCopies;
    open(options);
  }
  template <class T>
  static T good(Result<T> result) {
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? result.take() : T();
  }
  // One copy: rows of a table by a matrix, and a bias of its own.
  void add_copy(int copy) {
    graph->push_device("/device:CPU:" + std::to_string(copy));
    const NameScope scope(*graph, "copy_" + std::to_string(copy));
    const auto model = make_ref<Model>(graph, 11);
    const NamedVariable table =
        good(model->add_variable({.name = "table", .shape = Shape::of({6, 2}), .initializer = Initializer::uniform(-1, 1)}));
    const NamedVariable weights =
        good(model->add_variable({.name = "weights", .shape = Shape::of({2, 3}), .initializer = Initializer::uniform(-1, 1)}));
    const NamedVariable bias =
        good(model->add_variable({.name = "bias", .shape = Shape::of({3}), .initializer = Initializer::uniform(-1, 1)}));
    const Value ids = build->ints({copy, (copy + 1) % 6, copy});
    const Value rows = build->op("ResourceGather", {table.handle, ids}, {{"dtype", DType::f32}});
    const Value out = build->op("Tanh", {build->add(build->op("MatMul", {rows, weights.read}), bias.read)});
    const Value loss = build->sum(build->mul(out, build->scalar(DType::f32, copy + 0.7)), build->ints({0, 1}));
    ASSERT_TRUE(build->ok()) << build->status().message();
    own.push_back(good(compute_gradients(*model, loss)));
    inits.push_back(good(model->init_target()));
    models.push_back(model);
    ASSERT_TRUE(graph->pop_device().ok());
  }
  void reduce(int copy, const AllReduce& how, int32_t* next) {
    graph->push_device("/device:CPU:" + std::to_string(copy));
    reduced.push_back(own[static_cast<size_t>(copy)]);
    *next = good(all_reduce_gradients(*models[static_cast<size_t>(copy)], &reduced.back(), how));
    ASSERT_TRUE(graph->pop_device().ok());
  }
  int calls(std::string_view op) const {
    int count = 0;
    for (NodeId id = 0; id < graph->node_count(); ++id) count += graph->node(id).op->name() == op ? 1 : 0;
    return count;
  }

  std::vector<Ref<Model>> models;
  std::vector<NodeId> inits;
  std::vector<std::vector<VariableGradient>> own, reduced;
};

TEST_F(AllReduceTest, MeansOfDenseGradientsAndRows) {
  for (int copy = 0; copy < kCopies; ++copy) add_copy(copy);
  for (const NodeId init : inits) run_target(init);
  int32_t first = 1;
  for (const int64_t pack_bytes : {int64_t{1} << 20, int64_t{24}, int64_t{1}}) {
    AllReduce how;
    how.group_key = 4;
    how.group_size = kCopies;
    how.first_instance = first;
    how.pack_bytes = pack_bytes;
    const int before = calls("CollectiveReduceV2"), gathers = calls("CollectiveGatherV2");
    reduced.clear();
    for (int copy = 0; copy < kCopies; ++copy) reduce(copy, how, &first);
    EXPECT_EQ(calls("CollectiveReduceV2") - before, kCopies * (pack_bytes > 100 ? 1 : 2)) << pack_bytes;
    EXPECT_EQ(calls("CollectiveGatherV2") - gathers, kCopies * 2);
    std::vector<Value> fetches;
    for (size_t copy = 0; copy < kCopies; ++copy) {
      for (size_t v = 0; v < 3; ++v) {
        EXPECT_EQ(reduced[copy][v].gradient.is_rows(), v == 0);
        fetches.push_back(densify(*build, own[copy][v].gradient));
        fetches.push_back(densify(*build, reduced[copy][v].gradient));
      }
    }
    std::vector<Tensor> got;
    const Status status = run({}, fetches, &got);
    ASSERT_TRUE(status.ok()) << status.message();
    for (size_t v = 0; v < 3; ++v) {
      std::vector<float> mean = values(got[2 * v]);
      for (size_t copy = 1; copy < kCopies; ++copy) {
        const std::vector<float> more = values(got[2 * (3 * copy + v)]);
        for (size_t i = 0; i < mean.size(); ++i) mean[i] += more[i];
      }
      for (float& each : mean) each /= kCopies;
      for (size_t copy = 0; copy < kCopies; ++copy) {
        const std::vector<float> have = values(got[2 * (3 * copy + v) + 1]);
        ASSERT_EQ(have.size(), mean.size());
        for (size_t i = 0; i < mean.size(); ++i) {
          if (v > 0) EXPECT_EQ(have[i], mean[i]) << "variable " << v << " copy " << copy << " element " << i;
          else EXPECT_NEAR(have[i], mean[i], 1e-6) << "copy " << copy << " element " << i;
        }
      }
    }
  }
}

// A member may be lost between two calls: then the gradient of no variable is there, or one would have made the step and others not.
TEST_F(AllReduceTest, AGradientIsThereWhenAllCallsHaveEnded) {
  add_copy(0);
  AllReduce how;
  how.group_size = 2;
  how.pack_bytes = 1;
  int32_t next = 1;
  reduce(0, how, &next);
  for (const VariableGradient& each : reduced[0]) {
    const Value gradient = each.gradient.is_rows() ? each.gradient.values : each.gradient.dense;
    std::vector<bool> seen(graph->node_count());
    std::vector<NodeId> open = {gradient.node()};
    int waited = 0;
    while (!open.empty()) {
      const Node& node = graph->node(open.back());
      open.pop_back();
      if (seen[node.id]) continue;
      seen[node.id] = true;
      waited += node.op->name().starts_with("Collective") ? 1 : 0;
      for (const Value input : node.inputs) open.push_back(input.node());
      open.insert(open.end(), node.controls.begin(), node.controls.end());
    }
    EXPECT_EQ(waited, 4) << each.variable.name;
  }
}

// Both copies were built as rank 0, as workers are whose ranks have changed since: the first one that runs is the root all the same.
TEST_F(AllReduceTest, RanksAreThoseOfTheRun) {
  std::vector<Ref<Model>> members;
  std::vector<NamedVariable> held;
  std::vector<NodeId> levels;
  std::vector<Value> firsts;
  for (int copy = 0; copy < 2; ++copy) {
    graph->push_device("/device:CPU:" + std::to_string(copy));
    const NameScope scope(*graph, "member_" + std::to_string(copy));
    members.push_back(make_ref<Model>(graph, 11));
    held.push_back(good(members[static_cast<size_t>(copy)]->add_variable(
        {.name = "v", .shape = Shape::of({2}), .initializer = Initializer::constant(copy + 1)})));
    Workers workers;
    workers.how.group_key = 9;
    workers.how.group_size = 2;
    levels.push_back(good(level(*members.back(), workers, {})));
    int32_t instance = 7;
    firsts.push_back(WorkerCalls(*build, workers, &instance, "test").from_first(build->scalar(DType::f32, copy + 3)));
    EXPECT_TRUE(graph->pop_device().ok());
  }
  ASSERT_TRUE(build->ok()) << build->status().message();
  const auto run_of = [&](std::vector<Value> fetches, std::vector<NodeId> targets) {
    std::vector<Tensor> fetched;
    const Status status = run({}, fetches, &fetched, targets);
    EXPECT_TRUE(status.ok()) << status.message();
    fetched.resize(fetches.size());
    return fetched;
  };
  run_of({}, {good(members[0]->init_target()), good(members[1]->init_target())});
  run_of({}, levels);
  for (const NamedVariable& variable : held) EXPECT_EQ(values(run_of({variable.read}, {})[0]), (std::vector<float>{1, 1}));
  for (const Tensor& first : run_of(firsts, {})) EXPECT_EQ(values(first), std::vector<float>{3});
}

// The same tensors, but a mean here and a sum there, or other gradients: nobody adds them up.
TEST_F(AllReduceTest, MembersThatMeanOtherThingsAreTold) {
  const auto sums_of = [&](std::string_view first, std::string_view second) {
    std::vector<Value> sums;
    for (int copy = 0; copy < 2; ++copy) {
      graph->push_device("/device:CPU:" + std::to_string(copy));
      Workers workers;
      workers.how.group_key = 9;
      workers.how.group_size = 2;
      int32_t instance = 7;
      sums.push_back(
          WorkerCalls(*build, workers, &instance, copy == 0 ? first : second).reduce(build->scalar(DType::f32, copy + 3), "Add"));
      EXPECT_TRUE(graph->pop_device().ok());
    }
    EXPECT_TRUE(build->ok()) << build->status().message();
    std::vector<Tensor> fetched;
    return run({}, sums, &fetched, {});
  };
  EXPECT_TRUE(sums_of("sum", "sum").ok());
  const Status odd = sums_of("sum", "mean");
  EXPECT_EQ(odd.code(), Code::invalid_argument);
  EXPECT_NE(odd.message().find("for the sum"), std::string::npos) << odd.message();
  EXPECT_NE(odd.message().find("for the mean"), std::string::npos) << odd.message();
  // What is cut off from a long text counts as well.
  const std::string letters(1000, 'x');
  EXPECT_TRUE(sums_of(letters + "1", letters + "1").ok());
  EXPECT_EQ(sums_of(letters + "1", letters + "2").code(), Code::invalid_argument);
}

TEST_F(AllReduceTest, WhatMakesNoSenseIsRefused) {
  add_copy(0);
  AllReduce how;
  how.group_size = 0;
  EXPECT_EQ(all_reduce_gradients(*models[0], &own[0], how).status().code(), Code::invalid_argument);
  how = AllReduce();
  how.pack_bytes = 0;
  EXPECT_EQ(all_reduce_gradients(*models[0], &own[0], how).status().code(), Code::invalid_argument);
  how = AllReduce();
  how.first_instance = 0;
  EXPECT_EQ(all_reduce_gradients(*models[0], &own[0], how).status().code(), Code::invalid_argument);
  how = AllReduce();
  how.timeout_seconds = -1;
  EXPECT_EQ(all_reduce_gradients(*models[0], &own[0], how).status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace dtg
