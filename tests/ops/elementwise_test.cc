// Element-wise ops: broadcasting against a plain reference for many shapes, equal bits however the work is
// cut, special values, refusals, and the accuracy of the vector functions.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "device/cpu/elementwise.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using one_op::as_vector;
using one_op::scalar;
using one_op::values;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

OneOp make_ops() { return OneOp({ops::register_unary, ops::register_binary, ops::register_compare, ops::register_cast}); }

Tensor ramp(const Shape& shape, float low = -2, float high = 2) {
  const auto data = one_op::ramp(shape.count(), low, high);
  return Tensor::of<float>(shape, std::span<const float>(data)).take();
}

Tensor run(OneOp& one, std::string_view op, std::initializer_list<Tensor> inputs, std::initializer_list<Attr> attrs = {},
           OneOp::Options options = {}) {
  auto result = one.run(op, inputs, attrs, options);
  EXPECT_TRUE(result.ok()) << op << ": " << result.status().message();
  return result.ok() ? result.value()[0] : Tensor();
}

// Element `index` of `out` in an operand that broadcasts to it.
int64_t broadcast_index(const Shape& operand, const Shape& out, int64_t index) {
  int64_t at = 0, step = 1;
  for (int d = out.rank() - 1, s = operand.rank() - 1; d >= 0; --d, --s) {
    const int64_t place = index % out.dim(d);
    index /= out.dim(d);
    if (s < 0) continue;
    if (operand.dim(s) != 1) at += place * step;
    step *= operand.dim(s);
  }
  return at;
}

TEST(Elementwise, BroadcastsLikeTheReference) {
  OneOp one = make_ops();
  const std::pair<Shape, Shape> pairs[] = {
      {Shape::of({7}), Shape()},
      {Shape::of({300, 257}), Shape::of({257})},
      {Shape::of({300, 257}), Shape::of({300, 1})},
      {Shape::of({1000, 10}), Shape::of({10})},
      {Shape::of({1000, 10}), Shape::of({1000, 1})},
      {Shape::of({4, 1, 5}), Shape::of({3, 1})},
      {Shape::of({2, 3, 1, 5}), Shape::of({1, 3, 4, 1})},
      {Shape::of({2, 1, 2, 1, 2, 1, 2, 1}), Shape::of({1, 3, 1, 3, 1, 3, 1, 3})},
      {Shape::of({3, 70000}), Shape::of({3, 1})},
      {Shape::of({70000, 3}), Shape::of({1, 3})},
      {Shape::of({1, 1, 600}), Shape::of({5, 4, 1})},
      {Shape::of({0, 3}), Shape::of({1, 3})},
      {Shape::of({1}), Shape::of({1, 1})},
  };
  for (const auto& [left, right] : pairs) {
    const Tensor a = ramp(left), b = ramp(right, 1, 3);
    const Tensor sum = run(one, "Sub", {a, b});
    ASSERT_TRUE(sum.valid());
    for (int64_t i = 0; i < sum.count(); ++i) {
      const float x = a.as<float>()[broadcast_index(left, sum.shape(), i)];
      const float want = x - b.as<float>()[broadcast_index(right, sum.shape(), i)];
      ASSERT_EQ(sum.as<float>()[i], want) << left.text() << " - " << right.text() << " at " << i;
    }
    const Tensor swapped = run(one, "Less", {b, a});
    for (int64_t i = 0; i < swapped.count(); ++i) {
      ASSERT_EQ(swapped.as<bool>()[i],
                b.as<float>()[broadcast_index(right, sum.shape(), i)] < a.as<float>()[broadcast_index(left, sum.shape(), i)]);
    }
    for (const int threads : {2, 3}) {
      EXPECT_TRUE(one_op::bit_equal(sum, run(one, "Sub", {a, b}, {}, {.threads = threads})));
    }
    EXPECT_TRUE(one_op::bit_equal(sum, run(one, "Sub", {a, b}, {}, {.in_place = true})));
  }
}

TEST(Elementwise, PlaceInABlockDoesNotMatter) {
  for (const cpu::ElementBlock& block : cpu::simd_blocks()) {
    if (block.dtype != DType::f32) continue;
    const auto a = one_op::ramp(70, 0.1f, 3), b = one_op::ramp(70, 0.5f, 2);
    std::vector<float> whole(70), single(70);
    const void* in[] = {a.data(), b.data()};
    block.block(in, whole.data(), 70);
    for (size_t i = 0; i < 70; ++i) {
      const void* at[] = {a.data() + i, b.data() + i};
      block.block(at, single.data() + i, 1);
    }
    EXPECT_EQ(std::memcmp(whole.data(), single.data(), 70 * sizeof(float)), 0) << static_cast<int>(block.fn);
  }
}

TEST(Elementwise, SelectsByBroadcastAndByRow) {
  OneOp one = make_ops();
  const Tensor condition = values<bool>({2}, {true, false});
  const Tensor a = values<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6}), b = values<int32_t>({2, 3}, {-1, -2, -3, -4, -5, -6});
  EXPECT_EQ(as_vector<int32_t>(run(one, "Select", {condition, a, b})), (std::vector<int32_t>{1, 2, 3, -4, -5, -6}));
  EXPECT_FALSE(one.run("SelectV2", {condition, a, b}).ok());
  const Tensor column = values<bool>({2, 1}, {true, false});
  EXPECT_EQ(as_vector<int32_t>(run(one, "SelectV2", {column, a, scalar(0)})), (std::vector<int32_t>{1, 2, 3, 0, 0, 0}));
}

TEST(Elementwise, NanAndInfinityPass) {
  OneOp one = make_ops();
  const Tensor x = values<float>({4}, {kNan, 1, -1, kInf}), y = values<float>({4}, {1, kNan, -kInf, 2});
  for (const char* op : {"Maximum", "Minimum"}) {
    const auto z = as_vector<float>(run(one, op, {x, y}));
    EXPECT_TRUE(std::isnan(z[0]) && std::isnan(z[1])) << op;
    EXPECT_FALSE(std::isnan(z[2]) || std::isnan(z[3])) << op;
  }
  for (const char* op : {"Relu", "Exp", "Tanh", "Sigmoid", "Log", "Softplus", "Elu", "Sqrt", "Expm1", "Log1p"}) {
    EXPECT_TRUE(std::isnan(as_vector<float>(run(one, op, {x}))[0])) << op;
  }
  const Tensor edges = values<float>({4}, {-kInf, kInf, 100, -110});
  EXPECT_EQ(as_vector<float>(run(one, "Exp", {edges})), (std::vector<float>{0, kInf, kInf, 0}));
  EXPECT_EQ(as_vector<float>(run(one, "Tanh", {edges})), (std::vector<float>{-1, 1, 1, -1}));
  const auto log = as_vector<float>(run(one, "Log", {values<float>({3}, {0, kInf, 0x1p-149f})}));
  EXPECT_EQ(log[0], -kInf);
  EXPECT_EQ(log[1], kInf);
  EXPECT_FLOAT_EQ(log[2], -149 * 0.69314718056f);
}

TEST(Elementwise, IntegersWrapAndDivideLikeTensorFlow) {
  OneOp one = make_ops();
  const int32_t low = std::numeric_limits<int32_t>::min();
  EXPECT_EQ(as_vector<int32_t>(run(one, "Neg", {scalar(low)})), std::vector<int32_t>{low});
  EXPECT_EQ(as_vector<int32_t>(run(one, "Div", {scalar(low), scalar(-1)})), std::vector<int32_t>{low});
  EXPECT_EQ(as_vector<uint8_t>(run(one, "AddV2", {scalar<uint8_t>(250), scalar<uint8_t>(10)})), std::vector<uint8_t>{4});
  const Tensor x = values<int32_t>({4}, {7, -7, 7, -7}), y = values<int32_t>({4}, {2, 2, -2, -2});
  EXPECT_EQ(as_vector<int32_t>(run(one, "Div", {x, y})), (std::vector<int32_t>{3, -3, -3, 3}));
  EXPECT_EQ(as_vector<int32_t>(run(one, "FloorDiv", {x, y})), (std::vector<int32_t>{3, -4, -4, 3}));
  EXPECT_EQ(as_vector<int32_t>(run(one, "FloorMod", {x, y})), (std::vector<int32_t>{1, 1, -1, -1}));
  EXPECT_EQ(as_vector<int32_t>(run(one, "Pow", {values<int32_t>({2}, {-3, 2}), values<int32_t>({2}, {3, 31})})),
            (std::vector<int32_t>{-27, low}));
}

TEST(Elementwise, RefusesWhatHasNoAnswer) {
  OneOp one = make_ops();
  const Tensor x = values<int32_t>({2}, {1, 2}), zero = values<int32_t>({2}, {1, 0}), negative = scalar(-1);
  for (const char* op : {"Div", "FloorDiv", "FloorMod"}) {
    const auto result = one.run(op, {x, zero});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), Code::invalid_argument);
    EXPECT_EQ(result.status().origin().phase, "run");
  }
  EXPECT_EQ(one.run("Pow", {x, negative}).status().code(), Code::invalid_argument);
  // Nothing is divided, so nothing is wrong.
  EXPECT_TRUE(one.run("Div", {values<int32_t>({0}, std::vector<int32_t>{}), scalar(0)}).ok());
  const Tensor two = values<float>({2}, {1, 2}), three = values<float>({3}, {1, 2, 3});
  for (const auto known : {OneOp::Known::values, OneOp::Known::nothing}) {
    EXPECT_EQ(one.run("AddV2", {two, three}, {}, {.known = known}).status().code(), Code::invalid_argument);
    EXPECT_EQ(one.run("AddN", {two, three}, {}, {.known = known}).status().code(), Code::invalid_argument);
    EXPECT_EQ(one.run("ReluGrad", {two, three}, {}, {.known = known}).status().code(), Code::invalid_argument);
    const auto answer = one.run("NotEqual", {two, three}, {{"incompatible_shape_error", false}}, {.known = known});
    ASSERT_TRUE(answer.ok());
    EXPECT_TRUE(answer.value()[0].shape().is_scalar() && *answer.value()[0].as<bool>());
  }
  EXPECT_FALSE(one.run("AddV2", {two, x}).ok());
}

TEST(Elementwise, AddsManyInOrder) {
  OneOp one = make_ops();
  const Shape shape = Shape::of({100003});
  const Tensor a = ramp(shape), b = ramp(shape, 0, 1), c = ramp(shape, 1e6f, 2e6f);
  const Tensor sum = run(one, "AddN", {a, b, c});
  for (int64_t i = 0; i < sum.count(); ++i) ASSERT_EQ(sum.as<float>()[i], a.as<float>()[i] + b.as<float>()[i] + c.as<float>()[i]);
  EXPECT_TRUE(one_op::bit_equal(sum, run(one, "AddN", {a, b, c}, {}, {.threads = 3})));
  EXPECT_TRUE(one_op::bit_equal(sum, run(one, "AddN", {a, b, c}, {}, {.in_place = true})));
}

TEST(Elementwise, CastsAtTheEdges) {
  OneOp one = make_ops();
  const auto cast = [&](const Tensor& x, DType to, bool truncate = false) {
    return run(one, "Cast", {x}, {{"SrcT", x.dtype()}, {"DstT", to}, {"Truncate", truncate}});
  };
  const Tensor x = values<float>({5}, {-1.9f, 3e9f, kNan, 300, 1e20f});
  const int32_t low = std::numeric_limits<int32_t>::min();
  EXPECT_EQ(as_vector<int32_t>(cast(x, DType::i32)), (std::vector<int32_t>{-1, low, low, 300, low}));
  EXPECT_EQ(as_vector<bool>(cast(x, DType::boolean)), (std::vector<bool>{true, true, true, true, true}));
  EXPECT_EQ(as_vector<uint8_t>(cast(values<int32_t>({2}, {-1, 257}), DType::u8)), (std::vector<uint8_t>{255, 1}));
  EXPECT_EQ(as_vector<uint64_t>(cast(values<double>({1}, {1.8e19}), DType::u64))[0], 18000000000000000000u);
  const Tensor third = scalar(1.99999f);
  EXPECT_EQ(float(*cast(third, DType::bf16).as<BFloat16>()), 2.0f);
  EXPECT_EQ(float(*cast(third, DType::bf16, true).as<BFloat16>()), 1.9921875f);
}

TEST(Elementwise, VectorFunctionsAreAccurate) {
  struct Case {
    cpu::ElementFn fn;
    double (*reference)(double);
    float low, high;
  };
  using Fn = cpu::ElementFn;
  const Case cases[] = {
      {Fn::exp, std::exp, -87, 88},
      {Fn::expm1, std::expm1, -20, 80},
      {Fn::expm1, std::expm1, -0.01f, 0.01f},
      {Fn::log, std::log, 1e-30f, 1e30f},
      {Fn::log, std::log, 0.5f, 2},
      {Fn::log1p, std::log1p, -0.9f, 10},
      {Fn::tanh, std::tanh, -10, 10},
      {Fn::tanh, std::tanh, -0.01f, 0.01f},
      {Fn::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -80, 80},
      {Fn::softplus, [](double x) { return std::log1p(std::exp(x)); }, -80, 80},
  };
  for (const Case& test : cases) {
    const auto x = one_op::ramp(100000, test.low, test.high);
    std::vector<float> y(x.size());
    const void* in[] = {x.data()};
    cpu::find_block(test.fn, DType::f32)->block(in, y.data(), static_cast<int64_t>(x.size()));
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = test.reference(x[i]);
      const float size = std::fabs(static_cast<float>(want));
      const double ulp = std::nextafter(size, kInf) - size;
      worst = std::max(worst, std::fabs(y[i] - want) / ulp);
    }
    EXPECT_LE(worst, 2.5) << static_cast<int>(test.fn) << " in [" << test.low << ", " << test.high << "]";
  }
}

TEST(Elementwise, EveryDefinitionIsSound) {
  OneOp one = make_ops();
  EXPECT_TRUE(one.ops().status().ok()) << one.ops().status().message();
  EXPECT_NE(one.kernels().find_element("Tanh", DType::f32), nullptr);
  EXPECT_EQ(one.kernels().find_element("Less", DType::f32), nullptr);
}

}  // namespace
}  // namespace dtg
