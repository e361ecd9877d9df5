// Emulated accelerators in sessions: values, variables, memory that runs out, errors that come late, runs at the same time.
#include <gtest/gtest.h>

#include <thread>

#include "graph/build.h"
#include "seconds.h"
#include "session/async_run.h"
#include "session/session.h"

namespace dtg {
namespace {

class EmuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    runtime = Runtime::create({.compute_threads = 2}).take();
    graph = Graph::create(&runtime->ops()).take();
  }
  void connect(Session::Options options = {}) {
    if (options.devices.emu == 0) options.devices.emu = 2;
    session = Session::connect(runtime, "local", graph, options).take();
  }
  Value add(const char* op, std::vector<Value> inputs, std::vector<Attr> attrs = {}, const char* device = "", const char* name = "",
            std::vector<NodeId> controls = {}) {
    auto made = graph->add({.op = op, .name = name, .device = device, .inputs = inputs, .controls = controls, .attrs = attrs});
    EXPECT_TRUE(made.ok()) << made.status().message();
    return graph->value(made.value());
  }
  Value number(float value, const char* device = "") {
    return add("Const", {}, {{"value", AttrValue(Tensor::scalar(value).take())}, {"dtype", AttrValue(DType::f32)}}, device);
  }
  Value placeholder(const PartialShape& shape, DType dtype = DType::f32) {
    return add("Placeholder", {}, {{"dtype", AttrValue(dtype)}, {"shape", AttrValue(shape)}});
  }
  Value variable(const char* name, const PartialShape& shape, const char* device) {
    return add("VarHandleOp", {},
               {{"dtype", AttrValue(DType::f32)}, {"shape", AttrValue(shape)}, {"shared_name", AttrValue(std::string(name))}}, device);
  }
  Value read(Value handle) { return add("ReadVariableOp", {handle}, {{"dtype", AttrValue(DType::f32)}}); }
  Value write(const char* op, Value handle, Value value, std::vector<NodeId> controls = {}) {
    return add(op, {handle, value}, {{"dtype", AttrValue(DType::f32)}}, "", "", std::move(controls));
  }
  Status run(std::vector<Value> feeds, std::vector<Tensor> fed, std::vector<Value> fetches, std::vector<NodeId> targets,
             std::vector<Tensor>* out) {
    std::vector<const Tensor*> pointers;
    for (const Tensor& tensor : fed) pointers.push_back(&tensor);
    out->assign(fetches.size(), Tensor());
    return session->run({feeds, pointers, fetches, targets, 20 * kSecond}, *out);
  }
  static float scalar(const Tensor& tensor) { return *static_cast<const float*>(tensor.data()); }

  Ref<Runtime> runtime;
  Ref<Graph> graph;
  Ref<Session> session;
  std::vector<Tensor> got;
};

TEST_F(EmuTest, ValuesCrossBetweenAllDevices) {
  connect();
  const Value x = placeholder(PartialShape::vector(3));
  const Value a = add("Square", {x}, {}, "/device:EMU:0");
  const Value b = add("Exp", {a}, {}, "/device:EMU:1");
  const Value c = add("Log", {b}, {}, "/device:CPU:0");
  const Value d = add("Neg", {c}, {}, "/device:EMU:0");
  const std::vector<float> numbers = {1, 2, 1.5f};
  for (int i = 0; i < 50; ++i) {
    const Status status = run({x}, {Tensor::of<float>(Shape::of({3}), numbers).take()}, {d, c}, {}, &got);
    ASSERT_TRUE(status.ok()) << status.message();
    const auto* at = static_cast<const float*>(got[0].data());
    for (int k = 0; k < 3; ++k) EXPECT_NEAR(at[k], -numbers[static_cast<size_t>(k)] * numbers[static_cast<size_t>(k)], 1e-5);
  }
}

TEST_F(EmuTest, VariablesStayWhereTheyWereMade) {
  connect();
  const Value v = variable("v", PartialShape::scalar(), "/device:EMU:1");
  const Value init = write("AssignVariableOp", v, number(2));
  const Value more = write("AssignAddVariableOp", v, number(0.5f, "/device:CPU:0"));
  const Value now = read(v);
  const Value half = add("Mul", {now, number(0.5f)}, {}, "/device:EMU:0");
  ASSERT_TRUE(run({}, {}, {}, {init.node()}, &got).ok());
  for (int i = 1; i <= 20; ++i) {
    ASSERT_TRUE(run({}, {}, {}, {more.node()}, &got).ok());
    ASSERT_TRUE(run({}, {}, {half, now}, {}, &got).ok());
    EXPECT_EQ(scalar(got[0]), 0.5f * (2 + 0.5f * static_cast<float>(i)));
    EXPECT_EQ(scalar(got[1]), 2 + 0.5f * static_cast<float>(i));
  }
}

// What is not asked for elsewhere goes to the first accelerator, and what its kernels cannot do stays on the host.
TEST_F(EmuTest, PlacementPrefersAccelerators) {
  connect();
  const Value x = placeholder(PartialShape::vector(2));
  const Value y = add("Neg", {x}, {}, "", "y");
  PlanRequest request;
  const Value texts = add("AsString", {y}, {}, "", "texts");
  got.clear();
  ASSERT_TRUE(run({x}, {Tensor::of<float>(Shape::of({2}), std::vector<float>{1, 2}).take()}, {texts}, {}, &got).ok());
  const Value there = add("Neg", {y}, {}, "/device:EMU:2", "there");
  const Status missing = run({x}, {Tensor::of<float>(Shape::of({2}), std::vector<float>{1, 2}).take()}, {there}, {}, &got);
  EXPECT_EQ(missing.code(), Code::invalid_argument);
  EXPECT_NE(missing.message().find("/device:EMU:1"), std::string::npos) << missing.message();
}

TEST_F(EmuTest, SoftPlacementStaysOnTheTask) {
  Session::Options options;
  options.soft_placement = true;
  connect(options);
  const Value x = placeholder(PartialShape::vector(2));
  const Value y = add("Neg", {x}, {}, "/device:GPU:7");
  ASSERT_TRUE(run({x}, {Tensor::of<float>(Shape::of({2}), std::vector<float>{1, 2}).take()}, {y}, {}, &got).ok());
  EXPECT_EQ(static_cast<const float*>(got[0].data())[1], -2);
}

TEST_F(EmuTest, LateErrorsNameTheirNode) {
  connect();
  const Value x = placeholder(PartialShape::vector(2), DType::i32);
  const Value bad = add("FloorDiv", {x, x}, {}, "/device:EMU:0", "divides");
  const Value after = add("Neg", {bad}, {}, "/device:EMU:1");
  const Tensor zeros = Tensor::of<int32_t>(Shape::of({2}), std::vector<int32_t>{1, 0}).take();
  const Tensor ones = Tensor::of<int32_t>(Shape::of({2}), std::vector<int32_t>{1, 3}).take();
  for (int i = 0; i < 20; ++i) {
    const Status status = run({x}, {zeros}, {after}, {}, &got);
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_EQ(status.origin().node, "divides") << status.message();
    ASSERT_TRUE(run({x}, {ones}, {after}, {}, &got).ok());
    EXPECT_EQ(static_cast<const int32_t*>(got[0].data())[1], -1);
  }
}

// In the midst of a step: the error says who asked for how much of which device, what was done before stays done, and the next run is
// right.
TEST_F(EmuTest, MemoryThatRunsOut) {
  Session::Options options;
  options.devices.emu = 1;
  options.devices.emu_memory_bytes = 1 << 20;
  connect(options);
  const Value count = placeholder(PartialShape::scalar(), DType::i32);
  const Value v = variable("v", PartialShape::unknown(), "/device:EMU:0");
  const Value fill = add("Fill",
                         {add("Reshape", {count, add("Const", {},
                                                     {{"value", AttrValue(Tensor::ints(DType::i32, std::vector<int64_t>{1}).take())},
                                                      {"dtype", AttrValue(DType::i32)}})}),
                          number(3)},
                         {}, "/device:EMU:0", "filler");
  const Value set = write("AssignVariableOp", v, fill);
  const Value sum = add(
      "Sum",
      {read(v), add("Const", {},
                    {{"value", AttrValue(Tensor::ints(DType::i32, std::vector<int64_t>{0}).take())}, {"dtype", AttrValue(DType::i32)}})});
  const auto of = [](int32_t n) { return Tensor::scalar<int32_t>(n).take(); };
  ASSERT_TRUE(run({count}, {of(1000)}, {}, {set.node()}, &got).ok());
  for (int i = 0; i < 3; ++i) {
    const Status status = run({count}, {of(200'000)}, {}, {set.node()}, &got);
    EXPECT_EQ(status.code(), Code::resource_exhausted) << status.message();
    EXPECT_NE(status.message().find("/device:EMU:0"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("800000"), std::string::npos) << status.message();
    EXPECT_FALSE(status.origin().node.empty()) << status.message();
    ASSERT_TRUE(run({}, {}, {sum}, {}, &got).ok());
    EXPECT_EQ(scalar(got[0]), 3000);
    ASSERT_TRUE(run({count}, {of(1000)}, {}, {set.node()}, &got).ok());
  }
}

TEST_F(EmuTest, ManyRunsAtTheSameTime) {
  connect();
  const Value x = placeholder(PartialShape::vector(64));
  Value at = x;
  for (int i = 0; i < 12; ++i)
    at = add("AddV2", {at, at}, {}, i % 3 == 0 ? "/device:EMU:0" : i % 3 == 1 ? "/device:EMU:1" : "/device:CPU:0");
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::vector<float> numbers(64, static_cast<float>(t + 1));
      const Tensor fed = Tensor::of<float>(Shape::of({64}), numbers).take();
      for (int i = 0; i < 100; ++i) {
        const Tensor* const pointer = &fed;
        std::vector<Tensor> out(1);
        const std::vector<Value> feeds = {x}, fetches = {at};
        const Status status = session->run({feeds, {&pointer, 1}, fetches, {}, 20 * kSecond}, out);
        if (!status.ok() || static_cast<const float*>(out[0].data())[63] != 4096.0f * static_cast<float>(t + 1)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST_F(EmuTest, OptionsThatCannotBe) {
  Session::Options options;
  options.devices.emu = -1;
  EXPECT_EQ(Session::connect(runtime, "local", graph, options).status().code(), Code::invalid_argument);
  options.devices.emu = 300;
  EXPECT_EQ(Session::connect(runtime, "local", graph, options).status().code(), Code::invalid_argument);
  options.devices.emu = 1;
  options.devices.emu_memory_bytes = -5;
  EXPECT_EQ(Session::connect(runtime, "local", graph, options).status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace dtg
