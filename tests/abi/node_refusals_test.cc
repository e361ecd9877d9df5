// Nodes that are refused: whatever was wrong, the error tells the node, that it was being built, and where the program asked for it.
// Attributes and devices that cannot be right are refused here and not when a run is planned.
#include <functional>

#include "world.h"

namespace outside {
namespace {

class NodeRefusals : public World {
 protected:
  void SetUp() override {
    World::SetUp();
    const int64_t dims[] = {-1, 4}, two[] = {1, 2};
    OK(dtg_placeholder(h.graph, "images", DTG_F32, dims, 2, &x));
    OK(dtg_const_i64s(h.graph, two, 2, &indices));
    inputs[0] = inputs[1] = x;
    attr.name = "transpose_b";
    attr.kind = DTG_ATTR_BOOL;
    attr.i = 1;
    spec.type = "MatMul";
    spec.name = "scores";
    spec.inputs = inputs;
    spec.num_inputs = 2;
    spec.attrs = &attr;
    spec.num_attrs = 1;
    spec.location = "train.c:42";
  }

  // The message; `node` is who the error must name.
  std::string error_of(dtg_code code, const std::string& node, size_t num_outs = 1) {
    dtg_value outs[8];
    dtg_error* const error = dtg_graph_add_op(h.graph, &spec, outs, num_outs);
    EXPECT_EQ(dtg_error_node(error), node);
    EXPECT_STREQ(dtg_error_phase(error), "build");
    const std::string message = refused(error, code, node);
    EXPECT_EQ(message.rfind("add \"" + node + "\" at train.c:42: ", 0), 0u) << message;
    return message;
  }
  static void expect_says(const std::string& message, const char* part) { EXPECT_NE(message.find(part), std::string::npos) << message; }

  dtg_value x{}, indices{};
  dtg_value inputs[2];
  dtg_attr attr = DTG_ATTR_INIT;
  dtg_op_spec spec = DTG_OP_SPEC_INIT;
};

// A message ends with a NUL, so that one inside a name is told as what it is.
TEST_F(NodeRefusals, ANameWithANulIsReadable) {
  spec.name = "a\0b";
  spec.name_len = 3;
  const std::string message = error_of(DTG_INVALID_ARGUMENT, "a\\0b");
  expect_says(message, "name is \"a\\0b\", with a NUL inside");
}

TEST_F(NodeRefusals, TellTheInputThatIsWrong) {
  inputs[1] = indices;
  expect_says(error_of(DTG_INVALID_ARGUMENT, "scores"), "input b must be float32");
  inputs[1] = dtg_value{};
  expect_says(error_of(DTG_INVALID_ARGUMENT, "scores"), "MatMul: input 1: the value is invalid (0)");
  inputs[1] = dtg_value{999};
  expect_says(error_of(DTG_INVALID_ARGUMENT, "scores"), "MatMul: input 1: the value is of another graph");
  inputs[1] = x;
  const dtg_value others[] = {x, {77}};
  spec.controls = others;
  spec.num_controls = 2;
  expect_says(error_of(DTG_INVALID_ARGUMENT, "scores"), "MatMul: controls 1: the value is of another graph");
  spec.num_controls = 0;
  spec.colocate = others;
  spec.num_colocate = 2;
  expect_says(error_of(DTG_INVALID_ARGUMENT, "scores"), "MatMul: colocate 1: the value is of another graph");
  spec.inputs = nullptr;
  expect_says(error_of(DTG_INVALID_ARGUMENT, "scores"), "inputs is NULL");
}

TEST_F(NodeRefusals, TellTheAttributeThatIsWrong) {
  attr.kind = 99;
  expect_says(error_of(DTG_INVALID_ARGUMENT, "scores"), "MatMul: attribute \"transpose_b\": 99 is not a kind");
  attr.kind = DTG_ATTR_TYPE;
  attr.i = 99;
  expect_says(error_of(DTG_INVALID_ARGUMENT, "scores"), "99 is not an element type");
  attr.kind = DTG_ATTR_BOOL;
  attr.i = 7;
  expect_says(error_of(DTG_INVALID_ARGUMENT, "scores"), "a BOOL is 0 or 1, but 7 was given");
  const int64_t truths[] = {1, -1};
  attr.kind = DTG_ATTR_LIST_BOOL;
  attr.ints = truths;
  attr.count = 2;
  expect_says(error_of(DTG_INVALID_ARGUMENT, "scores"), "a BOOL is 0 or 1, but -1 was given");
  attr.name = nullptr;
  expect_says(error_of(DTG_INVALID_ARGUMENT, "scores"), "the name of an attribute is NULL");
}

TEST_F(NodeRefusals, TellTheNodeWhoseNameOrOpIsWrong) {
  dtg_value made{};
  OK(dtg_graph_add_op(h.graph, &spec, &made, 1));
  expect_says(error_of(DTG_INVALID_ARGUMENT, "scores"), "exists already");
  spec.name = "a b";
  expect_says(error_of(DTG_INVALID_ARGUMENT, "a b"), "character 1 is not allowed");
  spec.name = nullptr;
  spec.type = "MatMull";
  expect_says(error_of(DTG_NOT_FOUND, "MatMull"), "did you mean \"MatMul\"?");
  spec.type = "_Private";
  expect_says(error_of(DTG_NOT_FOUND, "_Private"), "names that begin with _ are private");
  spec.type = nullptr;
  spec.name = "mine";
  expect_says(error_of(DTG_INVALID_ARGUMENT, "mine"), "type is NULL");
  spec.type = "MatMul";
  spec.name = "wide";
  expect_says(error_of(DTG_INVALID_ARGUMENT, "wide", 5), "MatMul has 1 outputs, room for 5 was given; the node was added");
  OK(dtg_graph_find(h.graph, "wide", DTG_STRLEN, &made));
}

TEST_F(NodeRefusals, TellTheDeviceThatCannotBe) {
  for (const char* device : {"/job:", "CPU:-1", "/device:CPU:-1", "/task:-1", "/job:a b/task:0", "gpu:x"}) {
    spec.device = device;
    expect_says(error_of(DTG_INVALID_ARGUMENT, "scores"), device);
    dtg_strategy_options options = DTG_STRATEGY_OPTIONS_INIT;
    options.kind = DTG_STRATEGY_ONE_DEVICE;
    options.devices = &device;
    options.num_devices = 1;
    dtg_strategy* strategy = nullptr;
    refused(dtg_strategy_create(h.model, &options, &strategy), DTG_INVALID_ARGUMENT, device);
  }
}

TEST_F(NodeRefusals, NamesAreFullAndStayFree) {
  dtg_value made{};
  OK(dtg_graph_push_name_scope(h.graph, "layer", DTG_STRLEN));
  attr.kind = 99;
  error_of(DTG_INVALID_ARGUMENT, "layer/scores");
  spec.name = nullptr;
  error_of(DTG_INVALID_ARGUMENT, "layer/MatMul");
  spec.type = "MatMull";
  error_of(DTG_INVALID_ARGUMENT, "layer/MatMull");
  attr.kind = DTG_ATTR_BOOL;
  error_of(DTG_NOT_FOUND, "layer/MatMull");
  spec.type = "MatMul";
  const char* name = nullptr;
  for (const char* want : {"layer/MatMul", "layer/MatMul_1"}) {
    OK(dtg_graph_add_op(h.graph, &spec, &made, 1));
    OK(dtg_value_name(h.graph, made, &name, nullptr));
    EXPECT_STREQ(name, want);
    attr.kind = 99;
    error_of(DTG_INVALID_ARGUMENT, name == std::string("layer/MatMul") ? "layer/MatMul_1" : "layer/MatMul_2");
    attr.kind = DTG_ATTR_BOOL;
  }
  OK(dtg_graph_pop_name_scope(h.graph));
}

}  // namespace
}  // namespace outside
