// A worker's steps, for tests that disturb them: read 800 KB from the parameter server, push as much back. The value stays
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
    status = graph->pop_device();
    step = build.node("AssignAddVariableOp", std::vector<Value>{w, build.mul(value, build.scalar(DType::f32, 0))});
    if (status.ok()) status = build.status();
  }

  Status run(Session& session, NodeId target, int64_t timeout_ns) const {
    std::vector<Tensor> none;
    return session.run({{}, {}, {}, {&target, 1}, timeout_ns}, none);
  }
};

}  // namespace dtg
