// Loops over emulated accelerators: borders between devices inside a body, variables that a body was given, memory that ends in the midst
// of a loop, and a loop that somebody else ends.
#include <thread>

#include "control_fixture.h"
#include "seconds.h"

namespace dtg {
namespace {

Tensor whole(int32_t value) { return Tensor::scalar<int32_t>(value).take(); }

class EmuControl : public ControlTest {
 protected:
  void SetUp() override { connect(2, 0); }
  void connect(int devices, int64_t bytes) {
    Session::Options options;
    options.devices.emu = devices;
    options.devices.emu_memory_bytes = bytes;
    open(options);
  }
  // So many rounds of a body.
  Values rounds(Value count, Values start, const Body& body) {
    start.insert(start.begin(), build->integer(0));
    return loop(
        *graph, start,
        [&](Build& b, const Values& v) {
          return Values{b.op("Less", {v[0], count})};
        },
        [&](Build& b, const Values& v) {
          Values next = body(b, v);
          next.insert(next.begin(), b.add(v[0], b.integer(1)));
          return next;
        });
  }
  template <class Fn>
  static Value on(Build& b, const char* device, Fn&& fn) {
    b.graph().push_device(device);
    const Value made = fn();
    EXPECT_TRUE(b.graph().pop_device().ok());
    return made;
  }
};

// Each device has room for one of the two large values, and not for both: the second is made where it was asked for.
TEST_F(EmuControl, BodiesSpanTheDevicesOfATask) {
  connect(2, 1 << 20);
  graph->push_device("/device:EMU:0");
  const Values out = rounds(build->integer(3), {build->scalar(DType::f32, 1)}, [&](Build& b, const Values& v) {
    const auto large = [&](Value of) { return b.op("BroadcastTo", {of, b.ints({150'000})}); };
    const Value here = large(v[1]), there = on(b, "/device:EMU:1", [&] { return large(b.neg(v[1])); });
    const NodeId both[] = {here.node(), there.node()};
    b.graph().push_controls(both);
    const Value one = b.op("Max", {here, b.integer(0)});
    const Value other = on(b, "/device:EMU:1", [&] { return b.op("Max", {there, b.integer(0)}); });
    EXPECT_TRUE(b.graph().pop_controls().ok());
    return Values{b.op("Sub", {one, other})};
  });
  EXPECT_TRUE(graph->pop_device().ok());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(values(fetch(out[1])), std::vector<float>{8});
}

// A variable lies where it was made, whatever the nodes of a body that use it ask for.
TEST_F(EmuControl, VariablesStayWhereTheyAre) {
  graph->push_device("/device:EMU:1");
  const Value handle = variable("v", Shape());
  EXPECT_TRUE(graph->pop_device().ok());
  run_target(assign(handle, build->scalar(DType::f32, 1)));
  const Values out = rounds(build->integer(4), {}, [&](Build& b, const Values&) {
    on(b, "/device:EMU:0", [&] {
      const Value twice[] = {handle, b.op("ReadVariableOp", {handle}, {{"dtype", DType::f32}})};
      b.node("AssignAddVariableOp", twice);
      return twice[1];
    });
    return Values{};
  });
  run_target(out[0].node());
  EXPECT_EQ(values(fetch(read(handle))), std::vector<float>{16});
}

TEST_F(EmuControl, MemoryThatEndsInTheMidstOfALoop) {
  connect(1, 1 << 20);
  const Value count = placeholder(DType::i32, PartialShape::scalar());
  graph->push_device("/device:EMU:0");
  const Value handle = variable("steps", Shape());
  const NodeId init = assign(handle, build->scalar(DType::f32, 0));
  // Twice as much in each round.
  const Values out = rounds(count, {build->scalar(DType::f32, 1)}, [&](Build& b, const Values& v) {
    const Value one[] = {handle, b.scalar(DType::f32, 1)};
    b.node("AssignAddVariableOp", one);
    const Value rows = b.op("LeftShift", {b.integer(1), b.op("Mul", {v[0], b.integer(2)})});
    const Value large = b.op("Fill", {b.op("Reshape", {rows, b.ints({1})}), b.scalar(DType::f32, 2)}, {}, "filler");
    return Values{b.op("Max", {b.neg(large), b.integer(0)})};
  });
  EXPECT_TRUE(graph->pop_device().ok());
  for (int i = 0; i < 3; ++i) {
    run_target(init);
    std::vector<Tensor> got;
    const Status status = run({{count, whole(40)}}, {out[1]}, &got);
    EXPECT_EQ(status.code(), Code::resource_exhausted) << status.message();
    for (const char* part : {"/device:EMU:0", "filler", "in function \"body\", called by \"While"})
      EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    EXPECT_FALSE(status.origin().node.empty()) << status.message();
    // What was done before stays done, and the next run is right.
    EXPECT_GT(values(fetch(read(handle)))[0], 4);
    EXPECT_EQ(values(fetch(out[1], {{count, whole(4)}})), std::vector<float>{-2});
  }
}

// All that a call is given by handle lies where the call is: whoever gives it variables of two devices is told which.
TEST_F(EmuControl, VariablesOfTwoDevicesInOneCallAreNamed) {
  graph->push_device("/device:EMU:0");
  const Value here = variable("here", Shape());
  EXPECT_TRUE(graph->pop_device().ok());
  graph->push_device("/device:EMU:1");
  const Value there = variable("there", Shape());
  EXPECT_TRUE(graph->pop_device().ok());
  const Values out = made(add_call(*graph, {}, made(function(*graph, {}, [&](Build& b, const Values&) {
    return Values{b.add(b.op("ReadVariableOp", {here}, {{"dtype", DType::f32}}), b.op("ReadVariableOp", {there}, {{"dtype", DType::f32}}))};
  }))));
  std::vector<Tensor> got;
  const Status status = run({}, {out[0]}, &got);
  EXPECT_EQ(status.code(), Code::invalid_argument) << status.message();
  for (const char* part : {"Call", "\"VarHandleOp\"", "\"VarHandleOp_1\"", "EMU:0", "EMU:1"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << part << " is not in: " << status.message();
  }
  EXPECT_EQ(status.origin().phase, "place");
}

// What a body needs is known before it runs; that there is no room for it is told with whose body it is all the same.
TEST_F(EmuControl, MemoryThatABodyOfKnownSizeDoesNotGet) {
  connect(1, 1 << 20);
  const Value count = placeholder(DType::i32, PartialShape::scalar());
  // Nobody asks for a device: the loop, the If in it and what both call go to the accelerator.
  const Values out = rounds(count, {build->scalar(DType::f32, 1)}, [&](Build& b, const Values& v) {
    const Value late[] = {v[0], b.integer(2)};
    return when(
        b.graph(), b.op("Greater", late),
        [&](Build& in, const Values&) {
          // Each has room; all three have not, and none can be let go of before the last is made.
          Values large{in.op("Fill", {in.ints({100'000}), v[1]})};
          for (int i = 0; i < 3; ++i) large.push_back(in.op("Cumsum", {large.back(), in.integer(0)}));
          const Value all = in.op("Max", {in.op("AddN", large), in.integer(0)});
          return Values{all};
        },
        [&](Build& in, const Values&) { return Values{in.op("Identity", {v[1]})}; });
  });
  for (int i = 0; i < 3; ++i) {
    std::vector<Tensor> got;
    const Status status = run({{count, whole(9)}}, {out[1]}, &got);
    EXPECT_EQ(status.code(), Code::resource_exhausted) << status.message();
    for (const char* part : {"/device:EMU:0", "\"yes\", called by \"StatelessIf\"", "\"body\", called by \"StatelessWhile\""}) {
      EXPECT_NE(status.message().find(part), std::string::npos) << part << " is not in: " << status.message();
    }
    EXPECT_FALSE(status.origin().node.empty()) << status.message();
    EXPECT_EQ(values(fetch(out[1], {{count, whole(3)}})), std::vector<float>{1});
  }
}

// Whoever waits for the loop is another thread than who ends it, which takes 50 ms at most. What else a machine does makes one late; none
// of many is in time only where the loop looks too seldom.
TEST_F(EmuControl, ALoopThatNeverEndsIsCancelled) {
  for (const char* device : {"/device:CPU:0", "/device:EMU:0"}) {
    graph->push_device(device);
    const Values out = loop(
        *graph, {build->integer(0)}, [](Build& b, const Values&) { return Values{b.constant(Tensor::scalar<bool>(true).take())}; },
        [](Build& b, const Values& v) { return Values{b.add(v[0], b.integer(1))}; });
    EXPECT_TRUE(graph->pop_device().ok());
    const Clock& clock = runtime->clock();
    int64_t soonest_ns = kSecond;
    for (int attempt = 0; attempt < 50 && soonest_ns > kSecond / 20; ++attempt) {
      const Ref<CompletionQueue> events = CompletionQueue::create().take();
      auto started = session->run_async({{}, {}, {&out[0], 1}, {}, 600 * kSecond}, events, 1);
      ASSERT_TRUE(started.ok()) << started.status().message();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      EXPECT_FALSE(started.value()->finished());
      const int64_t began = clock.monotonic_ns();
      started.value()->cancel();
      CompletionQueue::Event event;
      ASSERT_EQ(events->next({&event, 1}, clock, Deadline::after(clock, 30 * kSecond)), 1u) << device;
      EXPECT_EQ(event.status.code(), Code::cancelled) << event.status.message();
      soonest_ns = std::min(soonest_ns, clock.monotonic_ns() - began);
    }
    EXPECT_LE(soonest_ns, kSecond / 20) << device;
    EXPECT_EQ(values(fetch(build->scalar(DType::f32, 3))), std::vector<float>{3});
  }
}

}  // namespace
}  // namespace dtg
