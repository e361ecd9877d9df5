// Outputs that lie over inputs: wherever a kernel says that an output may overwrite an input, the results are the bits of a
// run with separate memory, for every such input.
#include <gtest/gtest.h>

#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using one_op::scalar;
using one_op::values;

Tensor floats(std::initializer_list<int64_t> dims, float low = -2, float high = 2) {
  const Shape shape = one_op::shape(dims);
  return values<float>(dims, one_op::ramp(shape.count(), low, high));
}

template <class T>
Tensor integers(std::initializer_list<int64_t> dims, int low, int high) {
  std::vector<T> data;
  for (float x : one_op::ramp(one_op::shape(dims).count(), static_cast<float>(low), static_cast<float>(high))) {
    data.push_back(static_cast<T>(static_cast<int>(x)));
  }
  return values<T>(dims, data);
}

Tensor choices(std::initializer_list<int64_t> dims) {
  const Tensor bytes = integers<uint8_t>(dims, 0, 2);
  Tensor result = Tensor::allocate(DType::boolean, bytes.shape()).take();
  for (int64_t i = 0; i < bytes.count(); ++i) result.as<bool>()[i] = bytes.as<uint8_t>()[i] != 0;
  return result;
}

struct Case {
  const char* op;
  std::vector<Tensor> inputs;
  std::vector<Attr> attrs = {};
};

std::vector<Case> element_cases() {
  const Tensor x = floats({40, 70}), y = floats({40, 70}, 0.5f, 3);
  return {
      {"Sub", {x, y}},
      {"Sub", {x, floats({70})}},
      {"Sub", {floats({40, 1}), x}},
      {"FloorDiv", {integers<int32_t>({40, 70}, -90, 90), integers<int32_t>({40, 70}, 1, 9)}},
      {"Exp", {x}},
      {"ReluGrad", {x, y}},
      {"LeakyRelu", {x}},
      {"LeakyReluGrad", {y, x}},
      {"Cast", {x}, {{"DstT", DType::i32}}},
      {"Cast", {integers<int64_t>({40, 70}, -9, 9)}, {{"DstT", DType::f64}}},
      {"Cast", {integers<int8_t>({40, 70}, -2, 2)}, {{"DstT", DType::boolean}}},
      {"Equal", {choices({40, 70}), choices({40, 70})}},
      {"Less", {integers<int8_t>({40, 70}, -9, 9), integers<int8_t>({40, 70}, -9, 9)}},
      {"SelectV2", {choices({40, 70}), x, y}},
      {"SelectV2", {choices({40, 1}), x, floats({70})}},
      {"SelectV2", {choices({40, 70}), choices({40, 70}), choices({70})}},
      {"Select", {choices({40}), x, y}},
      {"AddN", {x, y, floats({40, 70}, 5, 6), floats({40, 70}, -9, 9)}},
      {"AddN", {x, y}},
  };
}

std::vector<Case> row_cases() {
  const Tensor x = floats({40, 70});
  return {
      {"BiasAdd", {x, floats({70})}},
      {"BiasAdd", {floats({2, 5, 3, 4}), floats({5})}, {{"data_format", std::string("NCHW")}}},
      {"Softmax", {x}},
      {"SparseSoftmaxCrossEntropyWithLogits", {x, integers<int32_t>({40}, 0, 70)}},
      {"Cumsum", {x, scalar(0)}, {{"exclusive", true}, {"reverse", true}}},
      {"Cumprod", {x, scalar(1)}, {{"exclusive", false}, {"reverse", false}}},
  };
}

void check(OneOp& one, const Case& test) {
  auto plain = one.run(test.op, test.inputs, test.attrs, {});
  ASSERT_TRUE(plain.ok()) << test.op << ": " << plain.status().message();
  for (int over = 0; over < static_cast<int>(test.inputs.size()); ++over) {
    auto result = one.run(test.op, test.inputs, test.attrs, {.threads = 2, .in_place = true, .over = over});
    ASSERT_TRUE(result.ok()) << test.op << ": " << result.status().message();
    for (size_t o = 0; o < plain.value().size(); ++o) {
      EXPECT_TRUE(one_op::bit_equal(plain.value()[o], result.value()[o])) << test.op << ", output " << o << " over input " << over;
    }
  }
}

TEST(InPlace, GivesTheSameBits) {
  OneOp one({ops::register_unary, ops::register_binary, ops::register_compare, ops::register_cast, ops::register_bias,
             ops::register_softmax, ops::register_reduce});
  for (const Case& test : element_cases()) check(one, test);
  for (const Case& test : row_cases()) check(one, test);
}

// One value several times in a list, and the output over it.
TEST(InPlace, AddNReadsAValueThatComesTwice) {
  OneOp one({ops::register_binary});
  for (int64_t count : {5, 3000, 200000}) {
    const Tensor x = floats({count}), y = floats({count}, 3, 4), z = floats({count}, -7, 9);
    const Tensor lists[][5] = {{x, y, x, z, x}, {x, x, x, x, x}, {y, z, x, x, y}, {z, y, y, x, z}};
    for (const auto& list : lists) check(one, {"AddN", {std::begin(list), std::end(list)}});
    check(one, {"AddN", {x, x}});
    check(one, {"AddN", std::vector<Tensor>(20, x)});
  }
}

}  // namespace
}  // namespace dtg
