// The probes that the skeleton must carry: waiting without a thread, two runs of one plan, shapes that depend
// on data, feeds and fetches inside fused chains, a growing graph, and a step right after an aborted one.
#include <atomic>
#include <thread>

#include "fixture.h"

namespace dtg {
namespace {

using Probes = SessionTest;

Value queue(Build& b) {
  return b.op("FIFOQueueV2", std::span<const Value>(),
              std::vector<Attr>{{"component_types", std::vector<DType>{DType::f32}},
                                {"shapes", std::vector<PartialShape>{PartialShape::scalar()}},
                                {"capacity", 8}});
}
Value dequeue(Build& b, Value handle) { return b.op("QueueDequeueV2", {handle}, {{"component_types", std::vector<DType>{DType::f32}}}); }

TEST_F(Probes, BlockedDequeueHoldsNoThreadAndIsCancelled) {
  const Value handle = queue(*build);
  const Value taken = dequeue(*build, handle);
  const Value doubled = build->add(taken, taken);
  auto events = CompletionQueue::create().take();
  // Many more blocked runs than threads.
  std::vector<Ref<AsyncRun>> runs;
  const Value fetches[] = {doubled};
  for (uint64_t i = 0; i < 32; ++i) {
    auto started = session->run_async({{}, {}, fetches, {}, 0}, events, i);
    ASSERT_TRUE(started.ok()) << started.status().message();
    runs.push_back(started.take());
  }
  // The pool still works for others.
  const Value constant = build->scalar(DType::f32, 3);
  EXPECT_EQ(values(fetch(build->mul(constant, constant))), std::vector<float>{9});
  // One of them is served, the others are cancelled.
  const Value element = build->scalar(DType::f32, 21);
  const Value inputs[] = {handle, element};
  run_target(build->node("QueueEnqueueV2", inputs));
  CompletionQueue::Event event;
  ASSERT_EQ(events->next({&event, 1}, system_clock(), Deadline::after(system_clock(), 5'000'000'000)), 1u);
  ASSERT_TRUE(event.status.ok()) << event.status.message();
  EXPECT_EQ(values(runs[event.tag]->take(0).take()), std::vector<float>{42});
  for (auto& pending : runs) pending->cancel();
  for (int i = 0; i < 31; ++i) {
    ASSERT_EQ(events->next({&event, 1}, system_clock(), Deadline::after(system_clock(), 5'000'000'000)), 1u) << i;
    EXPECT_EQ(event.status.code(), Code::cancelled);
  }
  // And the next step is right.
  run_target(build->node("QueueEnqueueV2", inputs));
  EXPECT_EQ(values(fetch(doubled)), std::vector<float>{42});
}

TEST_F(Probes, DeadlineEndsABlockedRun) {
  const Value taken = dequeue(*build, queue(*build));
  std::vector<Tensor> out;
  EXPECT_EQ(run({}, {taken}, &out, {}, 20'000'000).code(), Code::deadline_exceeded);
  auto events = CompletionQueue::create().take();
  const Value fetches[] = {taken};
  auto started = session->run_async({{}, {}, fetches, {}, 20'000'000}, events, 7);
  CompletionQueue::Event event;
  ASSERT_EQ(events->next({&event, 1}, system_clock(), Deadline::after(system_clock(), 5'000'000'000)), 1u);
  EXPECT_EQ(event.status.code(), Code::deadline_exceeded);
}

TEST_F(Probes, TwoRunsOfOnePlanAtTheSameTime) {
  const Value x = placeholder(DType::f32, PartialShape::of_rank(2));
  Value y = x;
  for (int i = 0; i < 6; ++i) y = build->op("Tanh", {build->op("MatMul", {y, x})});
  const Tensor a = floats({2, 2}, {0.1f, 0.2f, -0.3f, 0.4f}), b = floats({2, 2}, {-0.5f, 0.6f, 0.7f, 0.8f});
  const auto want_a = values(fetch(y, {{x, a}})), want_b = values(fetch(y, {{x, b}}));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const Tensor& fed = t % 2 ? a : b;
      for (int i = 0; i < 300; ++i) {
        const Value keys[] = {x}, fetches[] = {y};
        const Tensor* tensors[] = {&fed};
        Tensor out[1];
        if (!session->run({keys, tensors, fetches, {}, 0}, out).ok() || values(out[0]) != (t % 2 ? want_a : want_b)) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Probes, ShapesThatDependOnDataFeedOtherOps) {
  const Value x = placeholder(DType::f32, PartialShape::of_rank(1));
  const Value zero = build->scalar(DType::f32, 0);
  const Value where = build->op("Where", {build->op("Greater", {x, zero})}, {{"T", DType::boolean}});
  const Value rows = build->op("Squeeze", {where}, {{"squeeze_dims", std::vector<int64_t>{1}}});
  const Value positive = build->op("GatherV2", {x, rows, build->integer(0)});
  const Value scaled = build->mul(positive, build->scalar(DType::f32, 2));
  const Value total = build->sum(scaled, build->ints({0}));
  for (int round = 0; round < 2; ++round) {
    std::vector<Tensor> out;
    Status status = run({{x, floats({4}, {1, -2, 3, -4})}}, {scaled, total}, &out);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(values(out[0]), (std::vector<float>{2, 6}));
    EXPECT_EQ(values(out[1]), std::vector<float>{8});
    status = run({{x, floats({3}, {5, 6, 7})}}, {scaled, total}, &out);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(values(out[0]), (std::vector<float>{10, 12, 14}));
    EXPECT_EQ(values(out[1]), std::vector<float>{36});
    status = run({{x, floats({2}, {-5, -6})}}, {scaled, total}, &out);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(out[0].count(), 0);
    EXPECT_EQ(values(out[1]), std::vector<float>{0});
  }
}

TEST_F(Probes, AFedShapeDecidesAShape) {
  const Value shape = placeholder(DType::i64, PartialShape::vector(2));
  const Value x = build->constant(floats({6}, {1, 2, 3, 4, 5, 6}));
  const Value y = build->neg(build->op("Reshape", {x, shape}));
  EXPECT_EQ(fetch(y, {{shape, longs({2, 3})}}).shape(), Shape::of({2, 3}));
  EXPECT_EQ(fetch(y, {{shape, longs({3, -1})}}).shape(), Shape::of({3, 2}));
  EXPECT_EQ(values(fetch(y, {{shape, longs({2, 3})}})), (std::vector<float>{-1, -2, -3, -4, -5, -6}));
  std::vector<Tensor> out;
  EXPECT_EQ(run({{shape, longs({4, 4})}}, {y}, &out).code(), Code::invalid_argument);
}

TEST_F(Probes, FeedAndFetchInsideAFusedChain) {
  const Value x = placeholder(DType::f32, PartialShape::vector(3));
  const Value a = build->mul(x, build->scalar(DType::f32, 2));
  const Value b = build->add(a, build->scalar(DType::f32, 1));
  const Value c = build->op("Relu", {b});
  const Value d = build->neg(c);
  const Tensor fed = floats({3}, {1, -2, 3});
  EXPECT_EQ(values(fetch(d, {{x, fed}})), (std::vector<float>{-3, -0.0f, -7}));
  std::vector<Tensor> out;
  ASSERT_TRUE(run({{x, fed}}, {b, d}, &out).ok());
  EXPECT_EQ(values(out[0]), (std::vector<float>{3, -3, 7}));
  EXPECT_EQ(values(out[1]), (std::vector<float>{-3, -0.0f, -7}));
  EXPECT_EQ(values(fetch(d, {{b, floats({3}, {5, 6, -7})}})), (std::vector<float>{-5, -6, -0.0f}));
}

TEST_F(Probes, TheGraphGrowsDuringRuns) {
  const Value x = placeholder(DType::f32, PartialShape::vector(64));
  Value y = x;
  for (int i = 0; i < 50; ++i) y = build->op("Tanh", {y});
  const Tensor fed = Tensor::of<float>(Shape::of({64}), std::vector<float>(64, 0.5f)).take();
  std::atomic<bool> stop{false};
  std::atomic<int> failed{0}, done{0};
  std::thread runner([&] {
    while (!stop) {
      const Value keys[] = {x}, fetches[] = {y};
      const Tensor* tensors[] = {&fed};
      Tensor out[1];
      failed += !session->run({keys, tensors, fetches, {}, 0}, out).ok();
      ++done;
    }
  });
  Value grown = y;
  for (int i = 0; i < 3000 || done < 10; ++i) grown = build->op("Neg", {grown});
  ASSERT_TRUE(build->ok()) << build->status().message();
  EXPECT_EQ(fetch(grown, {{x, fed}}).count(), 64);
  stop = true;
  runner.join();
  EXPECT_EQ(failed, 0);
}

TEST_F(Probes, AStepRightAfterAnAbortedOne) {
  const Value handle = queue(*build);
  const Value w = variable("w", Shape());
  run_target(assign(w, build->scalar(DType::f32, 1)));
  const Value taken = dequeue(*build, handle);
  const Value inputs[] = {w, taken};
  const NodeId add = build->node("AssignAddVariableOp", inputs);
  std::vector<Tensor> out;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run({}, {}, &out, {add}, 10'000'000).code(), Code::deadline_exceeded);
  const Value element = build->scalar(DType::f32, 5);
  const Value enqueue_inputs[] = {handle, element};
  run_target(build->node("QueueEnqueueV2", enqueue_inputs));
  run_target(add);
  EXPECT_EQ(values(fetch(read(w))), std::vector<float>{6});
}

}  // namespace
}  // namespace dtg
