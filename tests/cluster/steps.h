// A worker's steps, for tests that disturb them: 800 KB come from the parameter server, and as much goes there. The value stays
// what it is, so that any number of workers and any number of steps leave it right.
#pragma once

#include <array>

#include "graph/build.h"
#include "session/session.h"

namespace dtg {

struct Steps {
  static constexpr int32_t kCount = 200'000;
  Ref<Graph> graph;
  Value value;        // the variable, read
  Value more;         // fed
  Tensor zeros;       // to it
  NodeId assign = 0;  // all ones
  NodeId step = 0;
  Status status;

  explicit Steps(Runtime& runtime) : graph(Graph::create(&runtime.ops()).take()) {
    Build build(*graph);
    graph->push_device("/job:ps/task:0");
    const Value w = build.op("VarHandleOp", {}, {{"dtype", DType::f32}, {"shape", Shape::of({kCount})}, {"shared_name", std::string("w")}});
    const std::array<int32_t, 1> dims = {kCount};
    const Value shape = build.constant(Tensor::of<int32_t>(Shape::of({1}), std::span<const int32_t>(dims)).take());
    assign = build.node("AssignVariableOp", std::vector<Value>{w, build.op("Fill", {shape, build.scalar(DType::f32, 1)}, {})});
    value = build.op("ReadVariableOp", {w}, {{"dtype", DType::f32}});
    more = build.op("Placeholder", {}, {{"dtype", DType::f32}, {"shape", PartialShape(Shape::of({kCount}))}});
    step = build.node("AssignAddVariableOp", std::vector<Value>{w, more});
    zeros = Tensor::of<float>(Shape::of({kCount}), std::vector<float>(kCount)).take();
    status = graph->pop_device();
    if (status.ok()) status = build.status();
  }

  Status run(Session& session, NodeId target, int64_t timeout_ns) const {
    std::vector<Tensor> read(target == step ? 1 : 0);
    const Tensor* const fed = &zeros;
    const std::span<const Tensor* const> feeds(&fed, read.size());
    return session.run({{&more, read.size()}, feeds, {&value, read.size()}, {&target, 1}, timeout_ns}, read);
  }
};

}  // namespace dtg
