// The probes of the road between processes: a variable that lives in another process, a task that dies or stops in
// the middle of a run, and a step that is aborted while its data is in flight.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "graph/build.h"
#include "process.h"
#include "scratch.h"
#include "seconds.h"
#include "session/async_run.h"

namespace dtg {
namespace {

class Probe : public ::testing::Test {
 protected:
  Probe() {
    ::chmod(scratch_.path().c_str(), 0700);
    runtime_ = Runtime::create({.compute_threads = 2}).take();
    graph_ = Graph::create(&runtime_->ops()).take();
    build_ = std::make_unique<Build>(*graph_);
  }
  ~Probe() override { session_ = nullptr; }

  std::string path(int task) const { return scratch_ / ("ps" + std::to_string(task)); }
  std::string cluster(int count) const {
    std::string text = "ps=unix:" + path(0);
    for (int i = 1; i < count; ++i) text += ",unix:" + path(i);
    return text;
  }
  std::unique_ptr<ServerProcess> serve(int task = 0, int count = 1) { return std::make_unique<ServerProcess>(cluster(count), "ps", task); }
  Status connect(int64_t timeout_ns = 20 * kSecond) {
    Session::Options options;
    options.connect_timeout_ns = timeout_ns;
    auto session = Session::connect(runtime_, "unix:" + path(0), graph_, options);
    if (session.ok()) session_ = session.take();
    return session.status();
  }

  static Tensor floats(const Shape& shape, std::vector<float> values) {
    return Tensor::of<float>(shape, std::span<const float>(values)).take();
  }
  static std::vector<float> values(const Tensor& tensor) { return {tensor.as<float>(), tensor.as<float>() + tensor.count()}; }
  Value placeholder(const Shape& shape) { return build_->op("Placeholder", {}, {{"dtype", DType::f32}, {"shape", shape}}); }
  Value variable(const char* name, const Shape& shape, int task = 0) {
    graph_->push_device("/job:ps/task:" + std::to_string(task));
    const Value handle = build_->op("VarHandleOp", {}, {{"dtype", DType::f32}, {"shape", shape}, {"shared_name", name}});
    EXPECT_TRUE(graph_->pop_device().ok());
    return handle;
  }
  Value read(Value handle) { return build_->op("ReadVariableOp", {handle}, {{"dtype", DType::f32}}); }
  NodeId on(const char* op, std::vector<Value> inputs) { return build_->node(op, inputs); }
  Value empty_queue() {
    return build_->op("FIFOQueueV2", {},
                      {{"component_types", std::vector<DType>{DType::f32}}, {"shapes", std::vector<PartialShape>{PartialShape::scalar()}}});
  }

  Status run(std::vector<std::pair<Value, Tensor>> feeds, std::vector<Value> fetches, std::vector<NodeId> targets, std::vector<Tensor>* out,
             int64_t timeout_ns = 20 * kSecond) {
    EXPECT_TRUE(build_->ok()) << build_->status().message();
    std::vector<Value> keys;
    std::vector<const Tensor*> tensors;
    for (const auto& [value, tensor] : feeds) {
      keys.push_back(value);
      tensors.push_back(&tensor);
    }
    out->assign(fetches.size(), Tensor());
    return session_->run({keys, tensors, fetches, targets, timeout_ns}, *out);
  }
  void expect_run(std::vector<std::pair<Value, Tensor>> feeds, std::vector<NodeId> targets) {
    std::vector<Tensor> out;
    const Status status = run(std::move(feeds), {}, std::move(targets), &out);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  std::vector<float> fetch(Value value, std::vector<std::pair<Value, Tensor>> feeds = {}) {
    std::vector<Tensor> out;
    const Status status = run(std::move(feeds), {value}, {}, &out);
    EXPECT_TRUE(status.ok()) << status.message();
    return status.ok() ? values(out[0]) : std::vector<float>();
  }

  Scratch scratch_;
  Ref<Runtime> runtime_;
  Ref<Graph> graph_;
  std::unique_ptr<Build> build_;
  Ref<Session> session_;
};

TEST_F(Probe, VariableInASecondProcess) {
  const auto ps = serve();
  ASSERT_TRUE(connect().ok());
  ASSERT_EQ(session_->devices().size(), 1u);
  EXPECT_EQ(session_->devices()[0].text, "/job:ps/replica:0/task:0/device:CPU:0");
  const Shape shape = Shape::of({2, 3});
  const Value w = variable("w", shape), x = placeholder(shape);
  const NodeId assign = on("AssignVariableOp", {w, x});
  const NodeId add = on("AssignAddVariableOp", {w, x});
  const NodeId descend = on("ResourceApplyGradientDescent", {w, build_->scalar(DType::f32, 0.5), x});
  const Value now = read(w);
  expect_run({{x, floats(shape, {1, 2, 3, 4, 5, 6})}}, {assign});
  EXPECT_EQ(fetch(now), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  expect_run({{x, floats(shape, {1, 1, 1, 1, 1, 1})}}, {add});
  EXPECT_EQ(fetch(now), (std::vector<float>{2, 3, 4, 5, 6, 7}));
  for (int i = 0; i < 100; ++i) expect_run({{x, floats(shape, {2, 0, 0, 0, 0, 0})}}, {descend});
  EXPECT_EQ(fetch(now), (std::vector<float>{-98, 3, 4, 5, 6, 7}));
  // Variables outlive sessions, and all sessions see them.
  const Ref<Session> first = session_;
  ASSERT_TRUE(connect().ok());
  EXPECT_EQ(fetch(build_->add(now, now)), (std::vector<float>{-196, 6, 8, 10, 12, 14}));
  ASSERT_TRUE(first->close(kSecond).ok());
  EXPECT_EQ(fetch(now), (std::vector<float>{-98, 3, 4, 5, 6, 7}));
  session_ = nullptr;
  EXPECT_EQ(ps->end(), 0);
}

TEST_F(Probe, ShapesThatDependOnDataTravel) {
  const auto ps = serve();
  ASSERT_TRUE(connect().ok());
  const Value x = build_->op("Placeholder", {}, {{"dtype", DType::boolean}, {"shape", PartialShape::of_rank(1)}});
  const Value where = build_->op("Where", {x});
  for (const std::vector<uint8_t>& flags : {std::vector<uint8_t>{1, 0, 1, 1}, {0, 0, 0, 0}, {0, 1, 0, 0}}) {
    Tensor fed = Tensor::allocate(DType::boolean, Shape::of({4})).take();
    std::copy(flags.begin(), flags.end(), fed.as<uint8_t>());
    std::vector<int64_t> want;
    for (int64_t i = 0; i < 4; ++i) {
      if (flags[static_cast<size_t>(i)]) want.push_back(i);
    }
    std::vector<Tensor> out;
    const Status status = run({{x, fed}}, {where}, {}, &out);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(out[0].shape(), Shape::of({static_cast<int64_t>(want.size()), 1}));
    EXPECT_EQ((std::vector<int64_t>(out[0].as<int64_t>(), out[0].as<int64_t>() + out[0].count())), want);
  }
}

TEST_F(Probe, TwoTasks) {
  const auto first = serve(0, 2), second = serve(1, 2);
  ASSERT_TRUE(connect().ok());
  ASSERT_EQ(session_->devices().size(), 2u);
  const Shape shape = Shape::of({2});
  const Value a = variable("a", shape, 0), b = variable("b", shape, 1), x = placeholder(shape);
  expect_run({{x, floats(shape, {1, 2})}}, {on("AssignVariableOp", {a, x}), on("AssignVariableOp", {b, x})});
  expect_run({{x, floats(shape, {10, 20})}}, {on("AssignAddVariableOp", {b, x})});
  std::vector<Tensor> out;
  ASSERT_TRUE(run({}, {read(a), read(b)}, {}, &out).ok());
  EXPECT_EQ(values(out[0]), (std::vector<float>{1, 2}));
  EXPECT_EQ(values(out[1]), (std::vector<float>{11, 22}));
}

TEST_F(Probe, ErrorsOfTheOtherTaskNameItAndTheNode) {
  const auto ps = serve();
  ASSERT_TRUE(connect().ok());
  std::vector<Tensor> out;
  const Status status = run({}, {read(variable("nothing", Shape::of({2})))}, {}, &out);
  EXPECT_EQ(status.code(), Code::failed_precondition) << status.message();
  EXPECT_NE(status.message().find("nothing"), std::string::npos) << status.message();
  EXPECT_EQ(status.origin().task, "/job:ps/replica:0/task:0");
  EXPECT_EQ(status.origin().node, "ReadVariableOp");
}

TEST_F(Probe, MissingTaskIsNamed) {
  const Status status = connect(kSecond / 5);
  EXPECT_EQ(status.code(), Code::unavailable);
  EXPECT_NE(status.message().find(path(0)), std::string::npos) << status.message();
  const auto ps = serve(0, 2);
  const Status second = connect(kSecond);
  EXPECT_EQ(second.code(), Code::unavailable);
  EXPECT_NE(second.message().find("/job:ps/replica:0/task:1 at unix:" + path(1)), std::string::npos) << second.message();
}

TEST_F(Probe, KilledInTheMiddleOfARun) {
  auto ps = serve();
  ASSERT_TRUE(connect().ok());
  const Value w = variable("w", Shape::of({2})), x = placeholder(Shape::of({2}));
  const NodeId assign = on("AssignVariableOp", {w, x});
  const Value taken = build_->op("QueueDequeueV2", {empty_queue()}, {{"component_types", std::vector<DType>{DType::f32}}});
  const Value now = read(w);
  expect_run({{x, floats(Shape::of({2}), {1, 2})}}, {assign});
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ps->kill();
  });
  const int64_t began = system_clock().monotonic_ns();
  std::vector<Tensor> out;
  const Status killed = run({}, {taken}, {}, &out);
  killer.join();
  EXPECT_EQ(killed.code(), Code::unavailable) << killed.message();
  EXPECT_NE(killed.message().find("/job:ps/replica:0/task:0 at unix:" + path(0)), std::string::npos) << killed.message();
  EXPECT_LT(system_clock().monotonic_ns() - began, 4 * kSecond);
  // Nobody there: refused within the deadline.
  const Status gone = run({}, {now}, {}, &out, kSecond / 2);
  EXPECT_EQ(gone.code(), Code::unavailable) << gone.message();
  // Another process at the same place: the loss is said once, and then it is a task like any other.
  ps = serve();
  const Status lost = run({}, {now}, {}, &out);
  EXPECT_EQ(lost.code(), Code::aborted) << lost.message();
  EXPECT_EQ(run({}, {now}, {}, &out).code(), Code::failed_precondition);
  expect_run({{x, floats(Shape::of({2}), {3, 4})}}, {assign});
  EXPECT_EQ(fetch(now), (std::vector<float>{3, 4}));
}

TEST_F(Probe, StoppedTaskHangsNobody) {
  const auto ps = serve();
  ASSERT_TRUE(connect().ok());
  const Value w = variable("w", Shape::of({2})), x = placeholder(Shape::of({2}));
  const NodeId assign = on("AssignVariableOp", {w, x});
  const Value now = read(w);
  expect_run({{x, floats(Shape::of({2}), {1, 2})}}, {assign});
  EXPECT_EQ(fetch(now), (std::vector<float>{1, 2}));
  ps->stop();
  const int64_t began = system_clock().monotonic_ns();
  std::vector<Tensor> out;
  EXPECT_EQ(run({}, {now}, {}, &out, kSecond / 2).code(), Code::deadline_exceeded);
  EXPECT_LT(system_clock().monotonic_ns() - began, 3 * kSecond);
  ps->signal(SIGCONT);
  EXPECT_EQ(fetch(now), (std::vector<float>{1, 2}));
}

// A value of many chunks, given up at every stage of its way there and back. The step after is right each time.
TEST_F(Probe, AbortedWhileItsDataIsInFlight) {
  const auto ps = serve();
  ASSERT_TRUE(connect().ok());
  const Shape shape = Shape::of({8 << 20});
  const Value x = placeholder(shape), scale = placeholder(Shape());
  const Value y = build_->mul(x, scale);
  const Value small = build_->op("Slice", {y, build_->ints({0}), build_->ints({4})});
  std::vector<float> numbers(8 << 20);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const Tensor fed = floats(shape, numbers);
  auto events = CompletionQueue::create().take();
  int cancelled_runs = 0;
  for (int round = 0; round < 12; ++round) {
    const Tensor by = floats(Shape(), {static_cast<float>(round + 1)});
    const Value keys[] = {x, scale}, fetches[] = {y};
    const Tensor* const tensors[] = {&fed, &by};
    auto started = session_->run_async({keys, tensors, fetches, {}, 20 * kSecond}, events, 1);
    ASSERT_TRUE(started.ok()) << started.status().message();
    std::this_thread::sleep_for(std::chrono::milliseconds(round * 4));
    started.value()->cancel();
    CompletionQueue::Event event;
    ASSERT_EQ(events->next({&event, 1}, system_clock(), Deadline::after(system_clock(), 5 * kSecond)), 1u);
    cancelled_runs += event.status.code() == Code::cancelled;
    EXPECT_EQ(fetch(small, {{x, fed}, {scale, by}}),
              (std::vector<float>{0, by.as<float>()[0], 2 * by.as<float>()[0], 3 * by.as<float>()[0]}));
  }
  EXPECT_GT(cancelled_runs, 0);
  std::vector<Tensor> out;
  ASSERT_TRUE(run({{x, fed}, {scale, floats(Shape(), {1})}}, {y}, {}, &out).ok());
  EXPECT_EQ(values(out[0]), numbers);
}

}  // namespace
}  // namespace dtg
