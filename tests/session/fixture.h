// A graph, a runtime and a session for tests, with short ways to feed and fetch. One thread.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "graph/build.h"
#include "graph/gradient.h"
#include "session/async_run.h"
#include "session/session.h"

namespace dtg {

class SessionTest : public ::testing::Test {
 protected:
  void SetUp() override { open({}); }

  void open(Session::Options options, int threads = 2, int64_t memory_limit_bytes = 0) {
    Runtime::Options runtime_options;
    runtime_options.memory_limit_bytes = memory_limit_bytes;
    runtime_options.compute_threads = threads;
    auto made = Runtime::create(runtime_options);
    ASSERT_TRUE(made.ok()) << made.status().message();
    runtime = made.take();
    graph = Graph::create(&runtime->ops()).take();
    build = std::make_unique<Build>(*graph);
    auto connected = Session::connect(runtime, "local", graph, options);
    ASSERT_TRUE(connected.ok()) << connected.status().message();
    session = connected.take();
  }

  static Tensor floats(std::initializer_list<int64_t> dims, std::vector<float> values) {
    return Tensor::of<float>(Shape::of(dims), std::span<const float>(values)).take();
  }
  static Tensor longs(std::vector<int64_t> values) { return Tensor::ints(DType::i64, values).take(); }
  static std::vector<float> values(const Tensor& tensor) { return {tensor.as<float>(), tensor.as<float>() + tensor.count()}; }

  Value placeholder(DType dtype, PartialShape shape = PartialShape::unknown()) {
    return build->op("Placeholder", std::span<const Value>(), std::vector<Attr>{{"dtype", dtype}, {"shape", std::move(shape)}});
  }
  // Handle of a float variable of that shape.
  Value variable(const char* name, const Shape& shape) {
    return build->op("VarHandleOp", std::span<const Value>(),
                     std::vector<Attr>{{"dtype", DType::f32}, {"shape", PartialShape(shape)}, {"shared_name", name}});
  }
  Value read(Value handle) { return build->op("ReadVariableOp", {handle}, {{"dtype", DType::f32}}); }
  NodeId assign(Value handle, Value value) {
    const Value inputs[] = {handle, value};
    return build->node("AssignVariableOp", inputs);
  }

  struct Feed {
    Value value;
    Tensor tensor;
  };
  Status run(std::vector<Feed> feeds, std::vector<Value> fetches, std::vector<Tensor>* out, std::vector<NodeId> targets = {},
             int64_t timeout_ns = 0) {
    EXPECT_TRUE(build->status().ok()) << build->status().message();
    std::vector<Value> keys;
    std::vector<const Tensor*> tensors;
    for (const Feed& feed : feeds) {
      keys.push_back(feed.value);
      tensors.push_back(&feed.tensor);
    }
    out->assign(fetches.size(), Tensor());
    return session->run({keys, tensors, fetches, targets, timeout_ns}, *out);
  }
  Tensor fetch(Value value, std::vector<Feed> feeds = {}) {
    std::vector<Tensor> out;
    const Status status = run(std::move(feeds), {value}, &out);
    EXPECT_TRUE(status.ok()) << status.message();
    return status.ok() ? out[0] : Tensor();
  }
  void run_target(NodeId target) {
    std::vector<Tensor> out;
    const Status status = run({}, {}, &out, {target});
    EXPECT_TRUE(status.ok()) << status.message();
  }

  Ref<Runtime> runtime;
  Ref<Graph> graph;
  std::unique_ptr<Build> build;
  Ref<Session> session;
};

}  // namespace dtg
