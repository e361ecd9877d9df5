// Graphs that were made to take a planner's time: each is planned or refused within the time of its run, a cancellation ends it as well,
// and the next run is right. Times are the caller's, with room for a machine that is busy.
#include <chrono>
#include <thread>

#include "control_fixture.h"
#include "sanitized.h"
#include "seconds.h"

namespace dtg {
namespace {

constexpr double kRoom = DTG_SANITIZED ? 20 : 1;  // times as long

class Hostile : public ControlTest {
 protected:
  static double seconds_of(const std::function<void()>& fn) {
    const auto begin = std::chrono::steady_clock::now();
    fn();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  // With hardly any time it ends soon, in one of the ways it may; with time enough it ends well or names what is too large. And then the
  // session still works.
  void expect_bounded(const char* what, Value fetched, const std::vector<Feed>& feeds, Code well) {
    SCOPED_TRACE(what);
    std::vector<Tensor> out;
    Status status;
    const double hurried = seconds_of([&] { status = run(feeds, {fetched}, &out, {}, 2 * kMillisecond); });
    EXPECT_TRUE(status.ok() || status.code() == Code::deadline_exceeded || status.code() == well) << status.message();
    EXPECT_LT(hurried, 1.0 * kRoom) << status.message();
    status = run(feeds, {fetched}, &out, {}, 600 * kSecond);
    EXPECT_EQ(status.code(), well) << status.message();
    EXPECT_EQ(*fetch(build->add(build->scalar(DType::f32, 1), build->scalar(DType::f32, 2))).as<float>(), 3);
  }

  static Value left_factor(Build& b, Value of) {
    const Attr attrs[] = {{"compute_uv", true}, {"full_matrices", false}};
    return b.graph().value(b.node("Svd", {&of, 1}, attrs), 1);
  }
  // Factors of factors of a constant: nothing in it is fed, so the planner computes it, and that takes seconds.
  static Value long_computation(Build& b) {
    Tensor seed = Tensor::allocate(DType::f32, Shape::of({112, 112})).take();
    for (int64_t i = 0; i < seed.count(); ++i) seed.as<float>()[i] = static_cast<float>(i * 7919 % 1009) / 1009.0f;
    Value u = b.constant(std::move(seed));
    for (int i = 0; i < 4000; ++i) u = left_factor(b, u);
    return b.op("Sum", {u, b.ints({0, 1})});
  }
};

TEST_F(Hostile, GraphsArePlannedOrRefusedInTime) {
  const Value x = placeholder(DType::f32, PartialShape::scalar());
  const std::vector<Feed> fed = {{x, Tensor::scalar<float>(0.5f).take()}};
  Value chain = x, doubling = x, ladder = placeholder(DType::f32, Shape::of({4, 6}));
  const std::vector<Feed> fed_ladder = {{ladder, floats({4, 6}, std::vector<float>(24, 1))}};
  for (int i = 0; i < 100'000; ++i) chain = build->op("Sin", {chain});
  for (int i = 0; i < 50'000; ++i) doubling = build->op("Maximum", {doubling, doubling});
  for (int i = 0; i < 50'000; ++i) ladder = build->reshape(ladder, i % 2 ? build->ints({4, 6}) : build->ints({-1, 4}));
  std::vector<Value> many;
  for (int i = 0; i < 10'000; ++i) many.push_back(build->neg(x));
  const Value wide = build->op("AddN", many);
  const Value huge = build->op("Fill", {build->ints({int64_t{1} << 31, int64_t{1} << 31}, DType::i64), x});
  const Value huge_sum = build->op("Sum", {huge, build->ints({0, 1})});
  ASSERT_TRUE(build->ok()) << build->status().message();
  expect_bounded("a chain of 100,000", chain, fed, Code::ok);
  expect_bounded("50,000 levels that read twice", doubling, fed, Code::ok);
  expect_bounded("a ladder of reshapes", ladder, fed_ladder, Code::ok);
  expect_bounded("a sum of 10,000", wide, fed, Code::ok);
  expect_bounded("2^62 elements", huge_sum, fed, Code::resource_exhausted);
}

// Whenever it is that the time is over, that is what is told.
TEST_F(Hostile, ADeadlineIsNoCancellation) {
  const Value x = placeholder(DType::f32, PartialShape::scalar());
  const std::vector<Feed> fed = {{x, Tensor::scalar<float>(0.5f).take()}};
  for (int i = 0; i < 3000; ++i) {
    std::vector<Tensor> out;
    const Status status = run(fed, {build->neg(build->op("Sin", {x}))}, &out, {}, 1 + i % 300 * 200);
    EXPECT_TRUE(status.ok() || status.code() == Code::deadline_exceeded) << status.message();
  }
}

TEST_F(Hostile, WhatThePlannerComputesEndsWithTheRun) {
  const Value slow = long_computation(*build);
  std::vector<Tensor> out;
  Status status;
  const double late = seconds_of([&] { status = run({}, {slow}, &out, {}, 50 * kMillisecond); });
  EXPECT_EQ(status.code(), Code::deadline_exceeded) << status.message();
  EXPECT_LT(late, 2.0 * kRoom);
  EXPECT_EQ(*fetch(build->scalar(DType::f32, 1)).as<float>(), 1);
}

TEST_F(Hostile, ACancellationEndsPlanning) {
  const Value slow = long_computation(*build);
  const Ref<Cancellation> cancellation = make_ref<Cancellation>();
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    cancellation->cancel();
  });
  std::vector<Tensor> out(1);
  Status status;
  const Value fetches[] = {slow};
  const double late = seconds_of([&] { status = session->run({{}, {}, fetches, {}, 600 * kSecond, cancellation.get()}, out); });
  other.join();
  EXPECT_EQ(status.code(), Code::cancelled) << status.message();
  EXPECT_LT(late, 3.0 * kRoom);
}

// Loops in loops whose variables give each other shapes that are not known, one more a round: each loop is looked at a few times, and not
// as often as there are variables in all loops around it.
TEST_F(Hostile, LoopsInLoopsThatOpenTheirShapesOneByOne) {
  constexpr size_t kVariables = 48;
  const std::function<Value(Build&, int)> nest = [&](Build& outer, int depth) {
    const Value one = outer.op("ExpandDims", {outer.scalar(DType::f32, 1), outer.integer(0)});
    const Values start(kVariables, one), like(kVariables, outer.op("Unique", {one}));
    const Closure condition = made(function(outer.graph(), like, [](Build& b, const Values& v) {
      return Values{b.op("Less", {b.op("Size", {v[0]}), b.integer(2)})};
    }));
    const Closure body = made(function(outer.graph(), like, [&](Build& b, const Values& v) {
      const Value more = depth > 1 ? nest(b, depth - 1) : v[0];
      Values given = {b.op("ConcatV2", {v[0], more, b.integer(0)})};
      for (size_t i = 1; i < kVariables; ++i) given.push_back(b.neg(v[i - 1]));
      return given;
    }));
    return made(add_while(outer.graph(), start, condition, body)).back();
  };
  Value last;
  EXPECT_LT(seconds_of([&] { last = nest(*build, 5); }), 4.0 * kRoom);
  expect_bounded("five loops", build->op("Sum", {last, build->integer(0)}), {}, Code::ok);
}

// Shapes that data decides, one after the other: each is prepared for by itself, and costs no more where there are many.
TEST_F(Hostile, ShapesThatDataDecidesOneByOne) {
  const auto chain = [&](int length) {
    Value x = build->op("RandomUniform", {build->ints({3})}, {{"dtype", DType::f32}});
    for (int i = 0; i < length; ++i)
      x = build->op("GatherNd", {x, build->op("Where", {build->op("Greater", {x, build->scalar(DType::f32, -9)})})});
    return x;
  };
  const int length = DTG_SANITIZED ? 2'000 : 16'000;
  expect_bounded("a chain of thousands", chain(length), {}, Code::ok);
  const Value more = chain(2 * length);
  std::vector<Tensor> out;
  EXPECT_LT(seconds_of([&] { EXPECT_TRUE(run({}, {more}, &out, {}, 600 * kSecond).ok()); }), 10.0 * kRoom);
}

// The thread of the pool is with a loop that does not end, and gives way to others.
TEST_F(Hostile, ALoopThatLastsGivesWay) {
  open({}, 1);
  const Values endless = loop(
      *graph, {build->integer(0)}, [](Build& b, const Values&) { return Values{b.constant(Tensor::scalar(true).take())}; },
      [](Build& b, const Values& v) { return Values{b.add(v[0], b.integer(1))}; });
  const Value fetches[] = {endless[0]},
              soon[] = {build->op("Sin", {build->op("RandomUniform", {build->ints({3})}, {{"dtype", DType::f32}})})};
  const Ref<CompletionQueue> events = CompletionQueue::create().take(), end = CompletionQueue::create().take();
  const auto next = [&](CompletionQueue& queue) {
    CompletionQueue::Event event;
    const size_t count = queue.next({&event, 1}, runtime->clock(), Deadline::after(runtime->clock(), 60 * kSecond));
    return count == 1 ? event.status : deadline_exceeded("nothing ended");
  };
  auto lasting = session->run_async({{}, {}, fetches, {}, 600 * kSecond}, end, 1);
  ASSERT_TRUE(lasting.ok()) << lasting.status().message();
  for (int i = 0; i < 20; ++i) {
    auto other = session->run_async({{}, {}, soon, {}, 600 * kSecond}, events, 2);
    ASSERT_TRUE(other.ok()) << other.status().message();
    const Status status = next(*events);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  EXPECT_FALSE(lasting.value()->finished());
  lasting.value()->cancel();
  EXPECT_EQ(next(*end).code(), Code::cancelled);
}

TEST_F(Hostile, SoDoesThatOfABodyWhichIsPlannedInTheRun) {
  const Value condition = placeholder(DType::boolean, PartialShape::scalar());
  const Values either = when(
      *graph, condition, [](Build& b, const Values&) { return Values{long_computation(b)}; },
      [](Build& b, const Values&) { return Values{b.scalar(DType::f32, 5)}; });
  std::vector<Tensor> out;
  Status status;
  const double late = seconds_of([&] {
    status = run({{condition, Tensor::scalar(true).take()}}, {either[0]}, &out, {}, 200 * kMillisecond);
  });
  EXPECT_EQ(status.code(), Code::deadline_exceeded) << status.message();
  EXPECT_LT(late, 3.0 * kRoom);
  EXPECT_EQ(*fetch(either[0], {{condition, Tensor::scalar(false).take()}}).as<float>(), 5);
}

// One run plans a branch, which takes long, and another one needs it too, whose time is over before.
TEST_F(Hostile, WhoWaitsForABodyOfAnotherRunEndsByItself) {
  const Value condition = placeholder(DType::boolean, PartialShape::scalar());
  const Values either = when(
      *graph, condition, [](Build& b, const Values&) { return Values{long_computation(b)}; },
      [](Build& b, const Values&) { return Values{b.scalar(DType::f32, 5)}; });
  EXPECT_EQ(*fetch(either[0], {{condition, Tensor::scalar(false).take()}}).as<float>(), 5);
  const Value feeds[] = {condition}, fetches[] = {either[0]};
  const Tensor yes = Tensor::scalar(true).take();
  const Tensor* const fed[] = {&yes};
  const Ref<CompletionQueue> end = CompletionQueue::create().take();
  auto planning = session->run_async({feeds, fed, fetches, {}, 600 * kSecond}, end, 1);
  ASSERT_TRUE(planning.ok()) << planning.status().message();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  std::vector<Tensor> out;
  Status status;
  const double late = seconds_of([&] { status = run({{condition, yes}}, {either[0]}, &out, {}, 100 * kMillisecond); });
  EXPECT_EQ(status.code(), Code::deadline_exceeded) << status.message();
  EXPECT_LT(late, 3.0 * kRoom);
  EXPECT_FALSE(planning.value()->finished());
  planning.value()->cancel();
  CompletionQueue::Event event;
  ASSERT_EQ(end->next({&event, 1}, runtime->clock(), Deadline::after(runtime->clock(), 60 * kSecond)), 1u);
  EXPECT_EQ(event.status.code(), Code::cancelled) << event.status.message();
}

}  // namespace
}  // namespace dtg
