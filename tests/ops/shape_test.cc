// Reshaping and shapes as values: what is known when, and what is refused.
#include <gtest/gtest.h>

#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using one_op::as_vector;
using one_op::scalar;
using one_op::values;

class ShapeOps : public testing::TestWithParam<OneOp::Known> {
 protected:
  std::vector<Tensor> run(std::string_view op, std::initializer_list<Tensor> inputs, std::initializer_list<Attr> attrs = {}) {
    auto result = one_.run(op, inputs, attrs, {.known = GetParam()});
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? result.take() : std::vector<Tensor>(3);
  }
  Code code(std::string_view op, std::initializer_list<Tensor> inputs, std::initializer_list<Attr> attrs = {}) {
    return one_.run(op, inputs, attrs, {.known = GetParam()}).status().code();
  }
  OneOp one_{ops::register_shape};
};

INSTANTIATE_TEST_SUITE_P(Known, ShapeOps, testing::Values(OneOp::Known::values, OneOp::Known::shapes, OneOp::Known::nothing));

TEST_P(ShapeOps, ReshapeInfersOneDimension) {
  const Tensor x = values<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run("Reshape", {x, values<int32_t>({2}, {-1, 2})})[0].text(), "float32[3,2]");
  EXPECT_EQ(run("Reshape", {x, values<int64_t>({3}, {3, -1, 2})})[0].text(), "float32[3,1,2]");
  EXPECT_EQ(run("Reshape", {scalar(7.0f), values<int32_t>({2}, {1, 1})})[0].text(), "float32[1,1]");
  EXPECT_EQ(run("Reshape", {values<float>({1}, {7}), values<int32_t>({0}, {})})[0].text(), "float32[]");
  EXPECT_EQ(run("Reshape", {values<float>({0, 3}, {}), values<int32_t>({2}, {-1, 3})})[0].text(), "float32[0,3]");
  EXPECT_EQ(as_vector<float>(run("Reshape", {x, values<int32_t>({1}, {6})})[0]), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST_P(ShapeOps, ReshapeRefuses) {
  const Tensor x = values<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(code("Reshape", {x, values<int32_t>({2}, {-1, 4})}), Code::invalid_argument);
  EXPECT_EQ(code("Reshape", {x, values<int32_t>({2}, {-1, -1})}), Code::invalid_argument);
  EXPECT_EQ(code("Reshape", {x, values<int32_t>({2}, {-2, -3})}), Code::invalid_argument);
  EXPECT_EQ(code("Reshape", {x, values<int64_t>({2}, {int64_t{1} << 62, 8})}), Code::invalid_argument);
  EXPECT_EQ(code("Reshape", {values<float>({0, 3}, {}), values<int32_t>({2}, {-1, 0})}), Code::invalid_argument);
  EXPECT_EQ(code("Reshape", {scalar(7.0f), values<int32_t>({9}, {1, 1, 1, 1, 1, 1, 1, 1, 1})}), Code::invalid_argument);
}

TEST_P(ShapeOps, ExpandAndSqueeze) {
  const Tensor x = values<int8_t>({2, 1}, {1, 2});
  EXPECT_EQ(run("ExpandDims", {x, scalar<int32_t>(-1)})[0].text(), "int8[2,1,1]");
  EXPECT_EQ(run("ExpandDims", {x, values<int64_t>({1}, {0})})[0].text(), "int8[1,2,1]");
  EXPECT_EQ(code("ExpandDims", {x, values<int32_t>({2}, {0, 0})}), Code::invalid_argument);
  EXPECT_EQ(run("Squeeze", {x})[0].text(), "int8[2]");
  EXPECT_EQ(run("Squeeze", {x}, {{"squeeze_dims", std::vector<int64_t>{-1}}})[0].text(), "int8[2]");
  EXPECT_EQ(code("Squeeze", {x}, {{"squeeze_dims", std::vector<int64_t>{0}}}), Code::invalid_argument);
}

TEST_P(ShapeOps, BroadcastAxes) {
  const auto axes = run("BroadcastGradientArgs", {values<int32_t>({3}, {2, 1, 3}), values<int32_t>({2}, {4, 1})});
  EXPECT_EQ(as_vector<int32_t>(axes[0]), (std::vector<int32_t>{1}));
  EXPECT_EQ(as_vector<int32_t>(axes[1]), (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(code("BroadcastGradientArgs", {values<int32_t>({1}, {2}), values<int32_t>({1}, {3})}), Code::invalid_argument);
}

TEST(Shape, KnowsWhenTheRankIsMissing) {
  OneOp one({ops::register_shape});
  auto graph = one.graph().take();
  Build b(*graph);
  const Value x = one.input(*graph, values<float>({2, 3}, {1, 2, 3, 4, 5, 6}), OneOp::Known::nothing).take();
  EXPECT_EQ(b.info(b.shape(x)).shape.text(), "[?]");
  EXPECT_EQ(b.info(b.reshape(x, b.ints({-1, 3}))).shape.text(), "[?,3]");
  EXPECT_EQ(b.info(b.op("Squeeze", {x})).shape.text(), "<unknown>");
  EXPECT_TRUE(b.ok());
}

}  // namespace
}  // namespace dtg
