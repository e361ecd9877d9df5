// Values that no memory holds, from outside: an error with the node's name and the bytes, and a process that goes on.
#include "world.h"

namespace outside {
namespace {

using Sizes = World;

TEST_F(Sizes, WhatNoMemoryHoldsIsRefusedByName) {
  // 2^64 bytes, which wrap around to none; 2^62; and 2^60, which do not wrap.
  for (const int64_t rows : {int64_t{1} << 31, int64_t{1} << 30, int64_t{1} << 29}) {
    const std::string name = "huge" + std::to_string(rows);
    const int64_t dims[] = {rows, rows}, begin[] = {0, 0}, size[] = {1, 1};
    dtg_value x{}, inputs[2]{}, huge{}, corner[3]{};
    OK(dtg_placeholder(h.graph, ("x" + name).c_str(), DTG_F32, nullptr, 0, &x));
    inputs[0] = x;
    OK(dtg_const_i64s(h.graph, dims, 2, &inputs[1]));
    dtg_op_spec spec = DTG_OP_SPEC_INIT;
    spec.type = "BroadcastTo";
    spec.name = name.c_str();
    spec.inputs = inputs;
    spec.num_inputs = 2;
    OK(dtg_graph_add_op(h.graph, &spec, &huge, 1));
    corner[0] = huge;
    OK(dtg_const_i64s(h.graph, begin, 2, &corner[1]));
    OK(dtg_const_i64s(h.graph, size, 2, &corner[2]));
    dtg_value part{};
    OK(dtg_addn(h.graph, "Slice", corner, 3, &part));
    dtg_tensor* fed = nullptr;
    OK(dtg_tensor_allocate(DTG_F32, nullptr, 0, &fed));
    *static_cast<float*>(dtg_tensor_mutable_data(fed)) = 1;
    float out = 0;
    dtg_error* const error = dtg_step_f32(h.session, &x, &fed, 1, part, dtg_value{}, &out);
    ASSERT_NE(error, nullptr);
    EXPECT_EQ(std::string(dtg_error_node(error)), name);
    const std::string message = refused(error, DTG_RESOURCE_EXHAUSTED, name);
    EXPECT_NE(message.find(name), std::string::npos) << message;
    EXPECT_NE(message.find("bytes"), std::string::npos) << message;
    dtg_tensor_release(fed);
  }
}

}  // namespace
}  // namespace outside
