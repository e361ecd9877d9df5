// Collectives between the devices of one process: values against one thread, any order of arrival, what does not fit, what is missing,
// gradients, and accelerators as members.
#include <random>
#include <thread>

#include "session/fixture.h"
#include "strategy/all_reduce.h"

namespace dtg {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

class CollectiveOps : public SessionTest {
 protected:
  void SetUp() override {}
  void devices(int cpu, int emu = 0) {
    Session::Options options;
    options.devices.cpu = cpu;
    options.devices.emu = emu;
    open(options);
    for (int i = 0; i < emu; ++i) names.push_back("/device:EMU:" + std::to_string(i));
    for (int i = 0; i < cpu && emu == 0; ++i) names.push_back("/device:CPU:" + std::to_string(i));
  }
  int size() const { return static_cast<int>(names.size()); }
  std::vector<Value> keys(int instance, int members = -1) {
    return {build->integer(members < 0 ? size() : members), build->integer(7), build->integer(instance)};
  }
  // A node on the device of that member.
  NodeId node(int member, const char* op, std::vector<Value> inputs, std::vector<Attr> attrs = {}, std::vector<NodeId> controls = {}) {
    const auto made =
        graph->add({.op = op, .device = names[static_cast<size_t>(member)], .inputs = inputs, .controls = controls, .attrs = attrs});
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? made.value() : kNoNode;
  }
  Value call(int member, const char* op, std::vector<Value> inputs, int instance, std::vector<Attr> attrs = {}) {
    for (const Value key : keys(instance)) inputs.push_back(key);
    return graph->value(node(member, op, inputs, std::move(attrs)));
  }
  static std::vector<Attr> merge(const char* op, const char* last = "Id") { return {{"merge_op", op}, {"final_op", last}}; }
  static std::vector<float> numbers(int member, int64_t count) {
    std::mt19937 random(static_cast<uint32_t>(member * 31 + 5));
    std::vector<float> all;
    for (int64_t i = 0; i < count; ++i) all.push_back(static_cast<float>(random()) * 0x1p-30f - 2.0f);
    return all;
  }
  std::vector<Feed> fed(const std::vector<Value>& inputs, const Shape& shape) {
    std::vector<Feed> feeds;
    for (size_t i = 0; i < inputs.size(); ++i) {
      feeds.push_back({inputs[i], Tensor::of<float>(shape, std::span<const float>(numbers(static_cast<int>(i), shape.count()))).take()});
    }
    return feeds;
  }
  std::vector<Value> inputs(const PartialShape& shape = PartialShape::unknown()) {
    std::vector<Value> all;
    for (int i = 0; i < size(); ++i) all.push_back(placeholder(DType::f32, shape));
    return all;
  }
  std::vector<std::string> names;
};

// Left to right over the members.
std::vector<float> folded(int members, int64_t count, std::vector<float> (*of)(int, int64_t), float (*fn)(float, float), float divisor) {
  std::vector<float> sum = of(0, count);
  for (int m = 1; m < members; ++m) {
    const std::vector<float> more = of(m, count);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = fn(sum[i], more[i]);
  }
  for (float& each : sum) each /= divisor;
  return sum;
}

TEST_F(CollectiveOps, ReduceGivesTheSameBitsOnAllDevicesWhoeverIsLast) {
  for (const bool emu : {false, true}) {
    names.clear();
    devices(emu ? 1 : 4, emu ? 3 : 0);
    const std::vector<Value> in = inputs();
    std::vector<Value> out;
    const auto n = static_cast<float>(size());
    for (int m = 0; m < size(); ++m) out.push_back(call(m, "CollectiveReduceV2", {in[static_cast<size_t>(m)]}, 1, merge("Add", "Div")));
    for (int m = 0; m < size(); ++m) out.push_back(call(m, "CollectiveReduceV2", {in[static_cast<size_t>(m)]}, 2, merge("Max")));
    for (int m = 0; m < size(); ++m) out.push_back(call(m, "CollectiveReduceV2", {in[static_cast<size_t>(m)]}, 3, merge("Mul")));
    for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{1000}, int64_t{70'001}}) {
      const auto sum = folded(
          size(), count, numbers, [](float a, float b) { return a + b; }, n);
      const auto most = folded(
          size(), count, numbers, [](float a, float b) { return std::max(a, b); }, 1);
      const auto product = folded(
          size(), count, numbers, [](float a, float b) { return a * b; }, 1);
      for (int turn = 0; turn < 8; ++turn) {
        std::vector<Tensor> got;
        const Status status = run(fed(in, Shape::of({count})), out, &got);
        ASSERT_TRUE(status.ok()) << status.message();
        for (int m = 0; m < size(); ++m) {
          EXPECT_EQ(values(got[static_cast<size_t>(m)]), sum);
          EXPECT_EQ(values(got[static_cast<size_t>(m + size())]), most);
          EXPECT_EQ(values(got[static_cast<size_t>(m + 2 * size())]), product);
        }
      }
    }
  }
}

TEST_F(CollectiveOps, GatherScatterExchangeAndBroadcast) {
  devices(3);
  const std::vector<Value> in = inputs();
  std::vector<Value> out;
  for (int m = 0; m < 3; ++m) {
    const Value x = in[static_cast<size_t>(m)];
    out.push_back(call(m, "CollectiveGatherV2", {x}, 1));
    out.push_back(call(m, "CollectiveReduceScatterV2", {x}, 2, merge("Add")));
    out.push_back(call(m, "CollectiveAllToAllV2", {x}, 3));
    if (m == 1) {
      out.push_back(call(m, "CollectiveBcastSendV2", {x}, 4));
    } else {
      std::vector<Value> receive = keys(4);
      receive.push_back(build->ints({6, 2}));
      out.push_back(graph->value(node(m, "CollectiveBcastRecvV2", receive, {{"T", DType::f32}})));
    }
  }
  std::vector<Tensor> got;
  const Status status = run(fed(in, Shape::of({6, 2})), out, &got);
  ASSERT_TRUE(status.ok()) << status.message();
  std::vector<float> whole;
  for (int m = 0; m < 3; ++m) {
    const std::vector<float> part = numbers(m, 12);
    whole.insert(whole.end(), part.begin(), part.end());
  }
  const auto sum = folded(
      3, 12, numbers, [](float a, float b) { return a + b; }, 1);
  for (int m = 0; m < 3; ++m) {
    const auto* const mine = &got[static_cast<size_t>(4 * m)];
    EXPECT_EQ(values(mine[0]), whole);
    EXPECT_EQ(values(mine[1]), std::vector<float>(sum.begin() + 4 * m, sum.begin() + 4 * m + 4));
    std::vector<float> exchanged;
    for (int from = 0; from < 3; ++from) {
      const std::vector<float> part = numbers(from, 12);
      exchanged.insert(exchanged.end(), part.begin() + 4 * m, part.begin() + 4 * m + 4);
    }
    EXPECT_EQ(values(mine[2]), exchanged);
    EXPECT_EQ(values(mine[3]), numbers(1, 12));
    EXPECT_EQ(mine[3].shape().text(), "[6,2]");
  }
}

// Members bring other numbers of rows; what comes of it is known only then.
TEST_F(CollectiveOps, RowsOfAnyNumberAreGathered) {
  devices(2);
  const std::vector<Value> in = inputs();
  const Value first = call(0, "CollectiveGatherV2", {in[0]}, 1), second = call(1, "CollectiveGatherV2", {in[1]}, 1);
  const Value sum = build->op("AddV2", {first, second});
  std::vector<Tensor> got;
  const Status status = run({{in[0], floats({1, 2}, {1, 2})}, {in[1], floats({3, 2}, {3, 4, 5, 6, 7, 8})}}, {first, sum}, &got);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(values(got[0]), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(values(got[1]), (std::vector<float>{2, 4, 6, 8, 10, 12, 14, 16}));
}

TEST_F(CollectiveOps, WhatDoesNotFitIsNamed) {
  devices(2);
  const std::vector<Value> in = inputs();
  const auto refused = [&](std::vector<Value> fetches, Code code, const char* part, std::vector<Feed> feeds = {}) {
    std::vector<Tensor> got;
    if (feeds.empty()) feeds = fed(in, Shape::of({4}));
    const Status status = run(feeds, fetches, &got, {}, 20 * kSecond);
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  };
  const Value alone = call(0, "CollectiveReduceV2", {in[0]}, 1, merge("Add"));
  refused({alone}, Code::failed_precondition,
          "group_size is 2, but instance 1 is called in this run by /job:localhost/replica:0/task:0/device:CPU:0,");
  const Value twice = call(0, "CollectiveReduceV2", {in[1]}, 1, merge("Add"));
  refused({alone, twice}, Code::failed_precondition, "(2 times)");
  const Value sum = call(0, "CollectiveReduceV2", {in[0]}, 2, merge("Add")), most = call(1, "CollectiveReduceV2", {in[1]}, 2, merge("Max"));
  refused({sum, most}, Code::invalid_argument, "called all_reduce(float32[4], sum), ");
  const Value a = call(0, "CollectiveReduceV2", {in[0]}, 3, merge("Add")), b = call(1, "CollectiveReduceV2", {in[1]}, 3, merge("Add"));
  refused({a, b}, Code::invalid_argument, "float32[5]", {{in[0], floats({4}, {1, 2, 3, 4})}, {in[1], floats({5}, {1, 2, 3, 4, 5})}});
  const Value send = call(0, "CollectiveBcastSendV2", {in[0]}, 4), too = call(1, "CollectiveBcastSendV2", {in[1]}, 4);
  refused({send, too}, Code::invalid_argument, "two senders");
  const Value key = placeholder(DType::i32, PartialShape::scalar());
  std::vector<Value> open = {in[0], build->integer(1), key, build->integer(5)};
  const Value loose = graph->value(node(0, "CollectiveReduceV2", open, merge("Add")));
  refused({loose}, Code::unimplemented, "group_key", {{in[0], floats({1}, {1})}, {key, Tensor::scalar<int32_t>(3).take()}});
  const Value c = call(0, "CollectiveReduceV2", {in[0]}, 6, merge("Max", "Div"));
  const Value d = call(1, "CollectiveReduceV2", {in[1]}, 6, merge("Max", "Div"));
  refused({c, d}, Code::unimplemented, "final_op Div with merge_op Max");
}

// Before they meet, where the plan knows what they call; else as they meet, whoever is first.
TEST_F(CollectiveOps, DevicesAgreeOnTheSize) {
  devices(3);
  const std::vector<Value> in = inputs();
  const Value instance = placeholder(DType::i32, PartialShape::scalar());
  const auto sized = [&](int member, int size, Value key) {
    const Value made[] = {in[static_cast<size_t>(member)], build->integer(size), build->integer(7), key};
    return graph->value(node(member, "CollectiveReduceV2", {std::begin(made), std::end(made)}, merge("Add")));
  };
  const Value known = build->integer(4);
  for (const bool is_known : {true, false}) {
    const Value key = is_known ? known : instance;
    const std::vector<Value> fetches = {sized(0, 3, key), sized(1, 3, key), sized(2, 2, key)};
    std::vector<Feed> feeds = fed(in, Shape::of({4}));
    feeds.push_back({instance, Tensor::scalar<int32_t>(4).take()});
    for (int turn = 0; turn < 10; ++turn) {
      std::vector<Tensor> got;
      const Status status = run(feeds, fetches, &got, {}, 20 * kSecond);
      EXPECT_EQ(status.code(), Code::invalid_argument) << status.message();
      const std::string odd = "\"" + std::string(graph->node(fetches[2].node()).name) + "\"";
      for (const std::string& part : {std::string("group_size is "), odd, std::string("all members say the same")})
        EXPECT_NE(status.message().find(part), std::string::npos) << part << " in: " << status.message();
    }
  }
}

// Each of many instances, whatever the order in which they come; instance keys that only the run knows too.
TEST_F(CollectiveOps, ManyInstancesAtOnce) {
  devices(4);
  const std::vector<Value> in = inputs(PartialShape::vector(-1));
  const Value offset = placeholder(DType::i32, PartialShape::scalar());
  std::vector<Value> out;
  for (int instance = 0; instance < 20; ++instance) {
    const Value open = build->op("AddV2", {offset, build->integer(instance)});
    for (int m = 0; m < 4; ++m) {
      const int turned = (m + instance) % 4;
      const Value x = in[static_cast<size_t>(turned)];
      if (instance < 10) out.push_back(call(turned, "CollectiveReduceV2", {x}, 100 + instance, merge("Add")));
      else out.push_back(graph->value(node(turned, "CollectiveReduceV2", {x, build->integer(4), build->integer(8), open}, merge("Add"))));
    }
  }
  const auto sum = folded(
      4, 100, numbers, [](float a, float b) { return a + b; }, 1);
  for (int turn = 0; turn < 5; ++turn) {
    std::vector<Tensor> got;
    std::vector<Feed> feeds = fed(in, Shape::of({100}));
    feeds.push_back({offset, Tensor::scalar<int32_t>(turn * 50).take()});
    const Status status = run(feeds, out, &got, {}, 20 * kSecond);
    ASSERT_TRUE(status.ok()) << status.message();
    for (const Tensor& each : got) EXPECT_EQ(values(each), sum);
  }
}

// A barrier holds back what comes after it on every device until all have come.
TEST_F(CollectiveOps, BarriersAndRunsAtTheSameTime) {
  devices(2);
  const std::vector<Value> in = inputs(PartialShape::vector(8));
  const NodeId barriers[] = {node(0, "CollectiveBarrier", keys(1), {}, {in[0].node()}),
                             node(1, "CollectiveBarrier", keys(1), {}, {in[1].node()})};
  std::vector<Value> out;
  for (int m = 0; m < 2; ++m) {
    std::vector<Value> operands = {in[static_cast<size_t>(m)]};
    for (const Value key : keys(2)) operands.push_back(key);
    out.push_back(graph->value(node(m, "CollectiveReduceV2", operands, merge("Add"), {barriers[m]})));
  }
  const auto sum = folded(
      2, 8, numbers, [](float a, float b) { return a + b; }, 1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 50; ++turn) {
        std::vector<Tensor> got(2);
        const auto feeds = fed(in, Shape::of({8}));
        const Tensor* const tensors[] = {&feeds[0].tensor, &feeds[1].tensor};
        const Status status = session->run({in, tensors, out, {}, 20 * kSecond}, got);
        EXPECT_TRUE(status.ok()) << status.message();
        if (status.ok()) {
          EXPECT_EQ(values(got[0]), sum);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// d(sum of losses)/dx of a loss that each member computes of what all have, against the same formula without collectives.
TEST_F(CollectiveOps, Gradients) {
  devices(2);
  const std::vector<Value> in = inputs(PartialShape(Shape::of({4, 3})));
  struct Case {
    const char* op;
    std::vector<Attr> attrs;
  };
  int instance = 1;
  for (const Case& each :
       {Case{"CollectiveReduceV2", merge("Add")}, Case{"CollectiveReduceV2", merge("Add", "Div")}, Case{"CollectiveGatherV2", {}},
        Case{"CollectiveReduceScatterV2", merge("Add", "Div")}, Case{"CollectiveAllToAllV2", {}}}) {
    std::vector<Value> grads;
    std::vector<Value> losses;
    for (int m = 0; m < 2; ++m) {
      const Value y = call(m, each.op, {in[static_cast<size_t>(m)]}, instance, each.attrs);
      losses.push_back(build->sum(build->mul(build->op("Square", {y}), build->scalar(DType::f32, m + 1.5)), build->ints({0, 1})));
    }
    for (int m = 0; m < 2; ++m) {
      auto made = add_gradients(*graph, {&losses[static_cast<size_t>(m)], 1}, {&in[static_cast<size_t>(m)], 1}, {});
      ASSERT_TRUE(made.ok()) << made.status().message();
      grads.push_back(densify(*build, made.value()[0]));
    }
    ++instance;
    std::vector<Tensor> got;
    auto feeds = fed(in, Shape::of({4, 3}));
    const Status status = run(feeds, grads, &got);
    ASSERT_TRUE(status.ok()) << each.op << ": " << status.message();
    const Value total = build->add(losses[0], losses[1]);
    constexpr float kStep = 1e-2f;
    for (int m = 0; m < 2; ++m) {
      for (const int64_t at : {0, 5, 11}) {
        float* const x = feeds[static_cast<size_t>(m)].tensor.as<float>() + at;
        const float kept = *x;
        *x = kept + kStep;
        const float more = values(fetch(total, feeds))[0];
        *x = kept - kStep;
        const float less = values(fetch(total, feeds))[0];
        *x = kept;
        EXPECT_NEAR(values(got[static_cast<size_t>(m)])[static_cast<size_t>(at)], (more - less) / (2 * kStep), 0.05)
            << each.op << " member " << m << " element " << at;
      }
    }
  }
  const Value y = call(0, "CollectiveReduceV2", {in[0]}, 50, merge("Max"));
  EXPECT_EQ(add_gradients(*graph, {&y, 1}, {&in[0], 1}, {}).status().code(), Code::unimplemented);
}

// A member that fails ends the others' waiting.
TEST_F(CollectiveOps, AFailureBeforeTheRoundEndsTheRun) {
  devices(2);
  const Value x = placeholder(DType::f32, PartialShape::vector(4));
  const Value checked = build->op("CheckNumerics", {x}, {{"message", "bad"}});
  const Value a = call(0, "CollectiveReduceV2", {checked}, 1, merge("Add")), b = call(1, "CollectiveReduceV2", {x}, 1, merge("Add"));
  std::vector<Tensor> got;
  const Status status = run({{x, floats({4}, {1, 2, NAN, 4})}}, {a, b}, &got, {}, 20 * kSecond);
  EXPECT_EQ(status.code(), Code::invalid_argument) << status.message();
  EXPECT_TRUE(run({{x, floats({4}, {1, 2, 3, 4})}}, {a, b}, &got, {}, 20 * kSecond).ok());
  EXPECT_EQ(values(got[1]), (std::vector<float>{2, 4, 6, 8}));
}

}  // namespace
}  // namespace dtg
