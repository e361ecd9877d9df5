// One Run for all who ask: tensors that share memory, timeouts that never end, the end of a session, and a runtime that is handed
// its whole world and has no thread.
#include <ctime>
#include <filesystem>
#include <thread>

#include "fixture.h"
#include "scratch.h"
#include "seconds.h"

namespace dtg {
namespace {

size_t threads() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

class RunTest : public SessionTest {
 protected:
  Status call(const std::vector<Value>& feeds, const std::vector<const Tensor*>& fed, const std::vector<Value>& fetches,
              std::vector<Tensor>& fetched) {
    EXPECT_TRUE(build->ok()) << build->status().message();
    return session->run({feeds, fed, fetches, {}, 20 * kSecond}, fetched);
  }
  Value blocked() {
    queue = build->op("FIFOQueueV2", {},
                      {{"component_types", std::vector<DType>{DType::f32}}, {"shapes", std::vector<PartialShape>{PartialShape::scalar()}}});
    return build->op("QueueDequeueV2", {queue}, {{"component_types", std::vector<DType>{DType::f32}}});
  }
  NodeId enqueue(float value) {
    const Value inputs[] = {queue, build->scalar(DType::f32, value)};
    return build->node("QueueEnqueueV2", inputs);
  }
  Value queue;
};

// Sixty products, each of a quarter of a billion additions: the run is late long before the last.
TEST_F(RunTest, AFewLargeKernelsKeepTheDeadline) {
  const Value x = placeholder(DType::f32, PartialShape(Shape::of({512, 512})));
  Value y = x;
  for (int i = 0; i < 60; ++i) y = build->op("MatMul", {y, x});
  ASSERT_TRUE(build->ok()) << build->status().message();
  const Tensor feed = floats({512, 512}, std::vector<float>(512 * 512, 0.001f));
  const Tensor* const fed[] = {&feed};
  RunArgs args{{&x, 1}, fed, {&y, 1}, {}, 20 * kSecond};
  ASSERT_TRUE(session->plan_for(args).ok());  // that it is late for its plan is another matter
  args.timeout_ns = kSecond / 200;
  Tensor out[1];
  EXPECT_EQ(session->run(args, out).code(), Code::deadline_exceeded);
}

// While its only thread is held, nothing of an asynchronous run goes on.
struct HeldPool final : Pool::Task {
  explicit HeldPool(Pool& pool) { pool.submit(this); }
  ~HeldPool() override { let_go(); }
  void run() override {
    go.wait(false);
    left = true;
    left.notify_all();
  }
  void let_go() {
    go = true;
    go.notify_all();
    left.wait(false);
  }
  std::atomic<bool> go{false}, left{false};
};

TEST_F(RunTest, OneThatIsStoppedBeforeItWaitsForAFrameEndsAtOnce) {
  const Value x = placeholder(DType::f32, PartialShape::scalar());
  const Value fetches[] = {build->op("Square", {x})};
  const Tensor one = floats({}, {1});
  const Tensor* const fed[] = {&one};
  const RunArgs args{{&x, 1}, fed, fetches, {}, 20 * kSecond};
  auto events = CompletionQueue::create().take();
  HeldPool held(runtime->pool());
  // As many as the plan has frames, and then some.
  for (int i = 0; i < 64; ++i) ASSERT_TRUE(session->run_async(args, events, 1).ok());
  const auto late = make_ref<AsyncRun>(session, std::vector<Tensor>{one}, Deadline::after(runtime->clock(), 20 * kSecond), events, 2);
  late->cancel();
  late->start(session->plan_for(args).take());
  EXPECT_TRUE(late->finished());
  held.let_go();
  CompletionQueue::Event event;
  for (int i = 0; i < 65; ++i) {
    ASSERT_EQ(events->next({&event, 1}, runtime->clock(), Deadline::after(runtime->clock(), 20 * kSecond)), 1u);
    EXPECT_EQ(event.status.code(), event.tag == 2 ? Code::cancelled : Code::ok) << event.status.message();
  }
}

// Cancelled runs end on the pool. While it does not come to that, a host that goes on fills no memory with them.
TEST_F(RunTest, WhoCancelsFasterThanRunsCanEndWaits) {
  const Value fetches[] = {blocked()};
  auto events = CompletionQueue::create().take();
  const auto start_and_cancel = [&](int64_t timeout_ns) {
    auto run = session->run_async({{}, {}, fetches, {}, timeout_ns}, events, 1);
    if (run.ok()) run.value()->cancel();
    return run.status();
  };
  HeldPool held(runtime->pool());
  int begun = 0;
  Status status;
  for (; begun < 5000 && (status = start_and_cancel(kSecond)).ok(); ++begun) {
  }
  EXPECT_EQ(begun, 1024);
  EXPECT_EQ(status.code(), Code::deadline_exceeded) << status.message();
  held.let_go();
  for (; begun < 5000 && (status = start_and_cancel(20 * kSecond)).ok(); ++begun) {
  }
  EXPECT_EQ(begun, 5000) << status.message();
  CompletionQueue::Event event;
  for (; begun > 0 && events->next({&event, 1}, runtime->clock(), Deadline::after(runtime->clock(), 20 * kSecond)) == 1; --begun) {
    EXPECT_EQ(event.status.code(), Code::cancelled) << event.status.message();
  }
  EXPECT_EQ(begun, 0);
}

TEST_F(RunTest, AFetchIntoTheTensorThatIsFedSpoilsNoOther) {
  const Value x = placeholder(DType::f32, Shape::of({2, 2}));
  const Value product = build->op("MatMul", {x, x});
  const Value sum = build->add(x, build->scalar(DType::f32, 1));
  const Value twice = build->add(x, x);
  const Value same = build->op("Identity", {x});
  Tensor shared = floats({2, 2}, {1, 2, 3, 4});
  // What may lie in the fed memory itself comes after what is written over it.
  std::vector<Tensor> fetched = {shared, Tensor(), Tensor(), Tensor()};
  const Status status = call({x}, {&shared}, {product, sum, twice, same}, fetched);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(values(shared), (std::vector<float>{7, 10, 15, 22}));
  EXPECT_EQ(values(fetched[1]), (std::vector<float>{2, 3, 4, 5}));
  EXPECT_EQ(values(fetched[2]), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(values(fetched[3]), (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(RunTest, FedTensorsChangePlaces) {
  const Value a = placeholder(DType::f32, Shape::of({2})), b = placeholder(DType::f32, Shape::of({2}));
  Tensor first = floats({2}, {1, 2}), second = floats({2}, {3, 4});
  std::vector<Tensor> fetched = {second, first};
  const Status status = call({a, b}, {&first, &second}, {build->op("Identity", {a}), build->op("Identity", {b})}, fetched);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(values(first), (std::vector<float>{3, 4}));
  EXPECT_EQ(values(second), (std::vector<float>{1, 2}));
}

TEST_F(RunTest, APieceOfAFedTensorIsEnough) {
  const Value x = placeholder(DType::f32, Shape::of({4}));
  const Value half = build->op("Slice", {x, build->constant(longs({1})), build->constant(longs({2}))});
  const Value sum = build->add(half, half);
  const Value last = build->op("Slice", {x, build->constant(longs({2})), build->constant(longs({2}))});
  Tensor whole = floats({4}, {1, 2, 3, 4});
  std::vector<Tensor> fetched = {Tensor::wrap(whole.buffer(), 8, DType::f32, Shape::of({2})).take(), Tensor()};
  const Status status = call({x}, {&whole}, {sum, last}, fetched);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(values(whole), (std::vector<float>{1, 2, 4, 6}));
  EXPECT_EQ(values(fetched[1]), (std::vector<float>{3, 4}));
}

TEST_F(RunTest, TwoFetchesMayNotShareMemory) {
  const Value x = placeholder(DType::f32, Shape::of({2}));
  const Value sum = build->add(x, x), product = build->mul(x, x);
  Tensor in = floats({2}, {1, 2}), block = floats({4}, {0, 0, 0, 0});
  const auto piece = [&](int64_t at) { return Tensor::wrap(block.buffer(), at * 4, DType::f32, Shape::of({2})).take(); };
  for (int64_t other : {1, 0}) {
    std::vector<Tensor> fetched = {piece(1), piece(other)};
    const Status status = call({x}, {&in}, {sum, product}, fetched);
    EXPECT_EQ(status.code(), Code::invalid_argument) << status.message();
    EXPECT_NE(status.message().find(graph->value_name(sum)), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(graph->value_name(product)), std::string::npos) << status.message();
  }
  std::vector<Tensor> apart = {piece(2), piece(0)};
  ASSERT_TRUE(call({x}, {&in}, {sum, product}, apart).ok());
  EXPECT_EQ(values(block), (std::vector<float>{1, 4, 2, 4}));
}

// A run that may wait for ever, or for centuries, waits, and takes no CPU for it.
TEST_F(RunTest, TimeoutsBeyondAllClocks) {
  const Value taken = blocked();
  const NodeId feed = enqueue(5);
  fetch(build->scalar(DType::f32, 0));  // threads have started
  for (int64_t timeout_ns : {INT64_MAX, INT64_MAX - 1, INT64_MAX / 2}) {
    auto events = CompletionQueue::create().take();
    const Value fetches[] = {taken};
    auto run = session->run_async({{}, {}, fetches, {}, timeout_ns}, events, 1);
    ASSERT_TRUE(run.ok()) << run.status().message();
    std::thread waiting([&] {
      std::vector<Tensor> out(1);
      const Status status = session->run({{}, {}, fetches, {}, timeout_ns}, out);
      EXPECT_TRUE(status.ok()) << status.message();
    });
    CompletionQueue::Event event;
    EXPECT_EQ(events->next({&event, 1}, system_clock(), Deadline::after(system_clock(), kSecond / 10)), 0u);
    const std::clock_t before = std::clock();
    EXPECT_EQ(events->next({&event, 1}, system_clock(), Deadline::after(system_clock(), kSecond / 2)), 0u);
    EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 5) << timeout_ns;
    run_target(feed);
    run_target(feed);
    waiting.join();
    ASSERT_EQ(events->next({&event, 1}, system_clock(), Deadline::after(system_clock(), 20 * kSecond)), 1u);
    EXPECT_TRUE(event.status.ok()) << event.status.message();
  }
}

// All but a few wait for a frame. The close ends them, however many they are, and has told of all when it returns.
TEST_F(RunTest, CloseEndsThousandsThatWait) {
  const Value x = placeholder(DType::f32, Shape::of({400, 400})), product = build->op("MatMul", {x, x});
  ASSERT_TRUE(build->ok());
  const std::vector<float> ones(400 * 400, 1.0f);
  const Tensor fed = Tensor::of<float>(Shape::of({400, 400}), ones).take();
  const Tensor* const feed = &fed;
  const NodeId target = product.node();
  auto events = CompletionQueue::create().take();
  constexpr uint64_t kRuns = 70'000;
  for (uint64_t i = 0; i < kRuns; ++i)
    ASSERT_TRUE(session->run_async({{&x, 1}, {&feed, 1}, {}, {&target, 1}, 600 * kSecond}, events, i).ok());
  ASSERT_TRUE(session->close(60 * kSecond).ok());
  uint64_t told = 0;
  CompletionQueue::Event event;
  for (; events->next({&event, 1}, system_clock(), Deadline::after(system_clock(), told < kRuns ? kSecond : 0)) == 1; ++told) {
    if (!event.status.ok()) {
      ASSERT_EQ(event.status.code(), Code::cancelled) << event.status.message();
    }
  }
  EXPECT_EQ(told, kRuns);
  // What comes now is told why at once.
  EXPECT_EQ(session->run_async({{&x, 1}, {&feed, 1}, {}, {&target, 1}, 0}, events, 1).status().code(), Code::failed_precondition);
  EXPECT_EQ(session->reset({}).code(), Code::failed_precondition);
}

TEST_F(RunTest, CloseWaitsForTheLastRunAndIsWokenByIt) {
  const Value taken = blocked();
  std::vector<std::thread> callers;
  std::atomic<int> cancelled{0};
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] {
      std::vector<Tensor> out(1);
      const Value fetches[] = {taken};
      const Status status = session->run({{}, {}, fetches, {}, 20 * kSecond}, out);
      cancelled += status.code() == Code::cancelled || status.code() == Code::failed_precondition;
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(session->close(20 * kSecond).ok());
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(cancelled, 3);
  EXPECT_TRUE(session->close(kSecond).ok());
}

// Clock, network and threads are the caller's: nothing happens but in turn(), and time is what the clock says.
TEST(HandedIn, ARuntimeWithoutAThread) {
  SteppedClock clock;
  clock.now_ns = kSecond;
  Runtime::Options options;
  options.clock = &clock;
  options.own_threads = false;
  options.network = [](const Clock&) -> Result<std::unique_ptr<Network>> { return unavailable("this world has no network"); };
  const size_t before = threads();
  const Ref<Runtime> runtime = Runtime::create(options).take();
  const Ref<Graph> graph = Graph::create(&runtime->ops()).take();
  Build build(*graph);
  const Value queue =
      build.op("FIFOQueueV2", {},
               {{"component_types", std::vector<DType>{DType::f32}}, {"shapes", std::vector<PartialShape>{PartialShape::scalar()}}});
  const Value fetches[] = {build.op("QueueDequeueV2", {queue}, {{"component_types", std::vector<DType>{DType::f32}}})};
  const Value inputs[] = {queue, build.scalar(DType::f32, 4)};
  const NodeId enqueue = build.node("QueueEnqueueV2", inputs);
  ASSERT_TRUE(build.ok()) << build.status().message();
  EXPECT_EQ(Session::connect(runtime, "unix:/nowhere", graph, {}).status().code(), Code::unavailable);
  const Ref<Session> session = Session::connect(runtime, "local", graph, {}).take();
  auto events = CompletionQueue::create().take();
  const auto ended = [&](uint64_t tag, Code code) {
    CompletionQueue::Event event;
    while (runtime->turn()) {
    }
    if (events->next({&event, 1}, clock, Deadline{clock.now_ns}) != 1) return false;
    EXPECT_EQ(event.tag, tag);
    EXPECT_EQ(event.status.code(), code) << event.status.message();
    return true;
  };
  auto late = session->run_async({{}, {}, fetches, {}, 10 * kSecond}, events, 1);
  ASSERT_TRUE(late.ok()) << late.status().message();
  EXPECT_FALSE(ended(1, Code::ok));
  clock.now_ns += 9 * kSecond;
  EXPECT_FALSE(ended(1, Code::ok));
  clock.now_ns += kSecond;
  EXPECT_TRUE(ended(1, Code::deadline_exceeded));
  auto served = session->run_async({{}, {}, fetches, {}, 10 * kSecond}, events, 2);
  EXPECT_FALSE(ended(2, Code::ok));
  // One who waits runs on its own thread.
  std::vector<Tensor> none;
  ASSERT_TRUE(session->run({{}, {}, {}, {&enqueue, 1}, kSecond}, none).ok());
  EXPECT_TRUE(ended(2, Code::ok));
  EXPECT_EQ(*served.value()->take(0).take().as<float>(), 4);
  EXPECT_EQ(threads(), before);
}

}  // namespace
}  // namespace dtg
