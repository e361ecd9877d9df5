// Sessions: variables under concurrency, snapshots, several devices, closing, callables.
#include <atomic>
#include <thread>

#include "fixture.h"

namespace dtg {
namespace {

using Sessions = SessionTest;

TEST_F(Sessions, AReadBeforeAWriteIsASnapshot) {
  const Value w = variable("w", Shape::of({2}));
  run_target(assign(w, build->constant(floats({2}, {1, 2}))));
  const Value before = read(w);
  const Value inputs[] = {w, before};
  const NodeId add = build->node("AssignAddVariableOp", inputs);
  // The read is used again after the write, by control edge.
  const Value operands[] = {before, before};
  const NodeId controls[] = {add};
  const Value late = build->op("Mul", operands, {}, {}, controls);
  std::vector<Tensor> out;
  ASSERT_TRUE(run({}, {late, before}, &out).ok());
  EXPECT_EQ(values(out[0]), (std::vector<float>{1, 4}));
  EXPECT_EQ(values(out[1]), (std::vector<float>{1, 2}));
  EXPECT_EQ(values(fetch(read(w))), (std::vector<float>{2, 4}));
}

TEST_F(Sessions, ConcurrentUpdatesLoseNothing) {
  const Value w = variable("count", Shape());
  run_target(assign(w, build->scalar(DType::f32, 0)));
  const Value inputs[] = {w, build->scalar(DType::f32, 1)};
  const NodeId targets[] = {build->node("AssignAddVariableOp", inputs)};
  const Value fetches[] = {read(w)};
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        Tensor out[1];
        const Status status = session->run({{}, {}, fetches, targets, 0}, out);
        if (!status.ok()) ++failed, ADD_FAILURE() << status.message();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(values(fetch(read(w))), std::vector<float>{3000});
}

TEST_F(Sessions, AnUninitialisedVariableNamesItself) {
  std::vector<Tensor> out;
  const Status status = run({}, {read(variable("ghost", Shape()))}, &out);
  EXPECT_EQ(status.code(), Code::failed_precondition);
  EXPECT_NE(status.message().find("ghost"), std::string::npos) << status.message();
}

// The program of an introduction to in-graph replication: split the input over devices, multiply, concatenate.
TEST_F(Sessions, SplitMatMulConcatOverDevicesWithSoftPlacement) {
  for (bool soft : {true, false}) {
    Session::Options options;
    options.devices.cpu = 3;
    options.soft_placement = soft;
    open(options);
    graph->push_device("/device:CPU:0");
    const Value data = build->constant(floats({4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
    const Value b = build->constant(floats({3, 1}, {1, 1, 2}));
    const Value parts = build->op("Split", {build->integer(0), data}, {{"num_split", 2}});
    ASSERT_TRUE(graph->pop_device().ok());
    std::vector<Value> outputs;
    for (uint32_t i = 0; i < 2; ++i) {
      graph->push_device((soft ? "/device:GPU:" : "/device:CPU:") + std::to_string(soft ? i : i + 1));
      outputs.push_back(build->op("MatMul", {parts.sibling(i), b}));
      ASSERT_TRUE(graph->pop_device().ok());
    }
    graph->push_device("/device:CPU:0");
    outputs.push_back(build->integer(0));
    const Value joined = build->op("ConcatV2", outputs);
    ASSERT_TRUE(graph->pop_device().ok());
    EXPECT_EQ(values(fetch(joined)), (std::vector<float>{9, 21, 33, 45}));
  }
}

TEST_F(Sessions, ValuesCrossDevicesBothWays) {
  Session::Options options;
  options.devices.cpu = 4;
  open(options);
  const Value x = placeholder(DType::f32, PartialShape::vector(4));
  Value y = x;
  for (int i = 0; i < 24; ++i) {
    graph->push_device("/device:CPU:" + std::to_string(i % 4));
    y = build->add(y, i % 3 ? x : build->mul(y, build->scalar(DType::f32, 0.5)));
    ASSERT_TRUE(graph->pop_device().ok());
  }
  const Tensor fed = floats({4}, {1, 2, 3, 4});
  const auto spread = values(fetch(y, {{x, fed}}));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(values(fetch(y, {{x, fed}})), spread);
}

TEST_F(Sessions, ADeviceThatIsAbsentIsNamed) {
  graph->push_device("/device:CPU:7");
  const Value c = build->scalar(DType::f32, 1);
  ASSERT_TRUE(graph->pop_device().ok());
  std::vector<Tensor> out;
  const Status status = run({}, {build->neg(c)}, &out);
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_NE(status.message().find("CPU:7"), std::string::npos) << status.message();
}

TEST_F(Sessions, CallablesFollowShapesAndThreads) {
  const Value x = placeholder(DType::f32, PartialShape::of_rank(1));
  const Value fetches[] = {build->sum(build->op("Square", {x}), build->ints({0}))};
  const Value feeds[] = {x};
  auto callable = session->prepare(feeds, fetches, {}).take();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Tensor fed = Tensor::of<float>(Shape::of({t + 1}), std::vector<float>(static_cast<size_t>(t + 1), 2)).take();
      const Tensor* tensors[] = {&fed};
      for (int i = 0; i < 300; ++i) {
        Tensor out[1];
        if (!callable->run(tensors, out, 0).ok() || out[0].as<float>()[0] != 4.0f * static_cast<float>(t + 1)) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Whether asking for the sum over x of those lengths, one after the other, finds each plan a second time.
class KeptPlans : public SessionTest {
 protected:
  std::vector<bool> found_again(std::vector<int64_t> lengths) {
    const Value x = placeholder(DType::f32, PartialShape::of_rank(1));
    const Value feeds[] = {x}, fetches[] = {build->sum(x, build->ints({0}))};
    std::vector<Ref<PartitionedPlan>> first;  // held, so that no address comes twice
    std::vector<bool> found;
    for (int round = 0; round < 2; ++round) {
      for (size_t i = 0; i < lengths.size(); ++i) {
        const Tensor fed = Tensor::of<float>(Shape::of({lengths[i]}), std::vector<float>(static_cast<size_t>(lengths[i]), 1)).take();
        const Tensor* tensors[] = {&fed};
        Ref<PartitionedPlan> plan = session->plan_for({feeds, tensors, fetches, {}, 0}).take();
        if (round == 0) first.push_back(std::move(plan));
        else found.push_back(plan.get() == first[i].get());
      }
    }
    return found;
  }
};

TEST_F(KeptPlans, AreThereAgain) { EXPECT_EQ(found_again({1, 2, 3}), (std::vector<bool>{true, true, true})); }

TEST_F(KeptPlans, AreBoundedByBytesButForTheNewest) {
  Session::Options options;
  options.plan_bytes = 1;
  open(options);
  EXPECT_EQ(found_again({4}), std::vector<bool>{true});
  EXPECT_EQ(found_again({1, 2}), (std::vector<bool>{false, false}));
}

// What a plan prepares for shapes that it meets in runs counts as well.
TEST_F(KeptPlans, WeighMoreWithTheShapesThatTheyMet) {
  constexpr int kLengths = 16;
  Session::Options options;
  options.fusion = false;
  int64_t fresh = 0, grown = 0, other = 0;
  const auto is_kept = [&](bool grows) {
    open(options);
    const Value x = placeholder(DType::f32, PartialShape::of_rank(1));
    Value y = build->op("Unique", {x}), z = x;
    for (int i = 0; i < 20; ++i) y = build->op("Sin", {y}), z = build->op("Sin", {z});
    const auto plan_for = [&](Value fetch) {
      const Tensor fed = floats({kLengths}, std::vector<float>(kLengths));
      const Tensor* const tensor = &fed;
      return session->plan_for({{&x, 1}, {&tensor, 1}, {&fetch, 1}, {}, 0}).take();
    };
    const Ref<PartitionedPlan> plan = plan_for(y);
    fresh = plan->home().bytes();
    for (int distinct = 1; grows && distinct <= kLengths; ++distinct) {
      std::vector<float> numbers(kLengths);
      for (int i = 0; i < kLengths; ++i) numbers[static_cast<size_t>(i)] = static_cast<float>(i % distinct);
      EXPECT_EQ(fetch(y, {{x, floats({kLengths}, numbers)}}).shape().count(), distinct);
    }
    if (grows) grown = plan->home().bytes();
    other = plan_for(z)->home().bytes();
    return plan_for(y).get() == plan.get();
  };
  EXPECT_TRUE(is_kept(true));
  EXPECT_GT(grown, 2 * fresh);
  options.plan_bytes = other + (fresh + grown) / 2;
  EXPECT_TRUE(is_kept(false));
  EXPECT_FALSE(is_kept(true));
}

TEST_F(Sessions, APlanIsToldInPages) {
  const Value x = placeholder(DType::f32, PartialShape::of_rank(1));
  const Value w = variable("w", Shape::of({3}));
  const Value y = build->add(read(w), x);
  PlanRequest request{{{x, DType::f32, Shape::of({3})}}, {}, {}};
  auto told = session->explain(request, 0);
  ASSERT_TRUE(told.ok()) << told.status().message();
  const PlanPages pages = told.take();
  ASSERT_EQ(pages.size(), 10u);
  EXPECT_EQ(pages.front().name, "prune");
  const std::string program = choose_pages(pages, "program").value();
  for (const char* what : {"feed 0, float32[3]", "variable, pin 0, float32[3]", "fetched 0, float32[3]", "handle", "a frame of"}) {
    EXPECT_NE(program.find(what), std::string::npos) << what << " is not in\n" << program;
  }
  EXPECT_EQ(choose_pages(pages, "").value(), "== order\n" + choose_pages(pages, "order").value() + "== program\n" + program);
  EXPECT_NE(choose_pages(pages, "all").value().find("== fold\n"), std::string::npos);
  const Status wrong = choose_pages(pages, "polish").status();
  EXPECT_EQ(wrong.code(), Code::invalid_argument);
  EXPECT_NE(wrong.message().find("simplify"), std::string::npos) << wrong.message();
  // Nothing was kept: the variable is not there.
  EXPECT_TRUE(session->store().list().empty());
  request.fetches = {y, x};
  EXPECT_EQ(session->explain(request, 0).status().code(), Code::invalid_argument);  // fed and fetched
}

TEST_F(Sessions, CloseCancelsWhatIsUnderWay) {
  const Value handle =
      build->op("FIFOQueueV2", std::span<const Value>(), std::vector<Attr>{{"component_types", std::vector<DType>{DType::f32}}});
  const Value taken = build->op("QueueDequeueV2", {handle}, {{"component_types", std::vector<DType>{DType::f32}}});
  auto events = CompletionQueue::create().take();
  const Value fetches[] = {taken};
  ASSERT_TRUE(session->run_async({{}, {}, fetches, {}, 0}, events, 1).ok());
  EXPECT_TRUE(session->close(2'000'000'000).ok());
  CompletionQueue::Event event;
  ASSERT_EQ(events->next({&event, 1}, system_clock(), Deadline::after(system_clock(), 5'000'000'000)), 1u);
  EXPECT_EQ(event.status.code(), Code::cancelled);
  std::vector<Tensor> out;
  EXPECT_EQ(run({}, {build->scalar(DType::f32, 1)}, &out).code(), Code::failed_precondition);
}

TEST_F(Sessions, ManyFetchesOfOneValue) {
  const Value x = placeholder(DType::f32, PartialShape::vector(2));
  const Value y = build->op("Exp", {build->neg(x)});
  const Value flat = build->op("Reshape", {y, build->ints({2, 1})});
  std::vector<Tensor> out;
  ASSERT_TRUE(run({{x, floats({2}, {0, 0})}}, {y, y, flat, build->add(y, y)}, &out).ok());
  EXPECT_EQ(values(out[0]), (std::vector<float>{1, 1}));
  EXPECT_EQ(values(out[1]), (std::vector<float>{1, 1}));
  EXPECT_EQ(values(out[2]), (std::vector<float>{1, 1}));
  EXPECT_EQ(out[2].shape(), Shape::of({2, 1}));
  EXPECT_EQ(values(out[3]), (std::vector<float>{2, 2}));
}

}  // namespace
}  // namespace dtg
