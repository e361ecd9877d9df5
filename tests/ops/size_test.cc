// Sizes that cannot be counted: prepare must refuse a workspace whose size does not fit 63 bits, never ask for what is left of it
// when it wraps around.
#include <gtest/gtest.h>

#include "device/cpu/conv.h"
#include "device/cpu/gemm.h"
#include "device/cpu/reduce.h"
#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

// Prepares one node for inputs of these shapes, which no memory holds.
class Dry : public PrepareContext {
 public:
  Dry(const Node& node, std::span<const ValueInfo> inputs) {
    node_ = &node;
    arena_ = &arena_own_;
    for (const ValueInfo& info : inputs) inputs_.push_back({info.dtype, info.shape.to_shape().take(), DType::invalid, false});
    for (const ValueInfo& info : node.outputs) outputs_.push_back({info.dtype, info.shape.to_shape().take(), DType::invalid, false});
  }
  Tensor constant(int i) const override { return i == 1 ? axes_ : Tensor(); }
  void axes(Tensor axes) { axes_ = std::move(axes); }

 private:
  Arena arena_own_;
  Tensor axes_;
};

// The status of preparing `op` for floats of these shapes; `axes` replaces its second input.
Status prepare(const char* op, std::vector<Shape> shapes, std::vector<Attr> attrs = {}, Tensor axes = {}) {
  OneOp one({ops::register_reduce, ops::register_matmul, ops::register_conv, ops::register_bias});
  auto graph = one.graph().take();
  Build build(*graph);
  std::vector<Value> inputs;
  std::vector<ValueInfo> infos;
  for (const Shape& shape : shapes) {
    inputs.push_back(build.op("TestFeed", {}, {{"dtype", DType::f32}, {"shape", PartialShape(shape)}}));
    infos.push_back({DType::f32, DType::invalid, shape});
  }
  if (axes.valid()) {
    inputs.push_back(build.op("Const", {}, {{"value", axes}, {"dtype", axes.dtype()}}));
    infos.push_back({axes.dtype(), DType::invalid, axes.shape()});
  }
  auto added = graph->add({.op = op, .inputs = inputs, .attrs = attrs});
  if (!added.ok()) return added.status();
  const Node& node = graph->node(added.value());
  Dry dry(node, infos);
  dry.axes(axes);
  return one.kernels().find(node, "CPU")->prepare(dry);
}

TEST(Sizes, AWorkspaceThatCannotBeCountedIsRefused) {
  constexpr int64_t k31 = int64_t{1} << 31, k30 = int64_t{1} << 30;
  const Tensor outer = one_op::values<int32_t>({2}, {0, 2});
  const Status sum = prepare("Sum", {Shape::of({2, int64_t{1} << 60, 2})}, {}, outer);
  EXPECT_EQ(sum.code(), Code::resource_exhausted) << sum.message();
  EXPECT_NE(sum.message().find("Sum"), std::string::npos) << sum.message();
  EXPECT_NE(sum.message().find("[2,1152921504606846976,2]"), std::string::npos) << sum.message();
  const Status two = prepare("Max", {Shape::of({2, int64_t{1} << 57, 2})}, {}, outer);
  EXPECT_TRUE(two.ok()) << two.message();
  EXPECT_EQ(prepare("Max", {Shape::of({2, int64_t{1} << 59, 2})}, {}, outer).code(), Code::resource_exhausted);
  // Large, but countable: the planner's part.
  EXPECT_TRUE(prepare("MatMul", {Shape::of({k31, k30}), Shape::of({k30, k31})}).ok());
  const Status conv = prepare("Conv2D", {Shape::of({1, k30, k30, 4}), Shape::of({3, 3, 4, 1})},
                              {{"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", std::string("SAME")}});
  EXPECT_EQ(conv.code(), Code::resource_exhausted) << conv.message();
}

TEST(Sizes, PlansCountWithoutWrapping) {
  EXPECT_TRUE(cpu::plan_reduce(cpu::Reduction::sum, DType::f64, Shape::of({2, int64_t{1} << 58, 2}), 5).workspace().is_overflow());
  EXPECT_FALSE(cpu::plan_reduce(cpu::Reduction::sum, DType::f32, Shape::of({1 << 20, 1 << 20}), 1).workspace().is_overflow());
  cpu::ConvDims dims;
  dims.batch = 1, dims.channels = 1 << 20, dims.out_channels = 1;
  dims.height = dims.width = dims.out_height = dims.out_width = int64_t{1} << 20;
  dims.filter_height = dims.filter_width = 3, dims.top = dims.left = 1;
  EXPECT_TRUE(cpu::conv_forward_plan(dims).workspace().is_overflow());
  dims.filter_height = dims.filter_width = dims.out_height = dims.out_width = int64_t{1} << 12;
  dims.dilation_x = dims.dilation_y = (int64_t{1} << 31) - 1;
  EXPECT_TRUE(cpu::conv_forward_plan(dims).workspace().is_overflow());
  EXPECT_TRUE(cpu::conv_input_plan(dims).workspace().is_overflow());
  EXPECT_TRUE(cpu::conv_filter_plan(dims).workspace().is_overflow());
}

}  // namespace
}  // namespace dtg
