// Random ops: the known stream, the same bits for any number of threads, and what is refused.
#include <gtest/gtest.h>

#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using one_op::as_vector;
using one_op::scalar;
using one_op::values;

std::vector<Tensor> keyed(std::vector<int32_t> shape, int32_t algorithm = 1) {
  return {values<int32_t>({static_cast<int64_t>(shape.size())}, shape), values<uint64_t>({1}, {uint64_t{42}}),
          values<uint64_t>({2}, {uint64_t{7}, uint64_t{9}}), scalar<int32_t>(algorithm)};
}

TEST(Random, PhiloxGivesItsKnownBlock) {
  OneOp one({ops::register_random});
  // The published test vector of Philox 4x32-10 for key and counter zero.
  const auto bits = one.run("StatelessRandomUniformFullIntV2",
                            {values<int32_t>({1}, {4}), values<uint64_t>({1}, {uint64_t{0}}),
                             values<uint64_t>({2}, {uint64_t{0}, uint64_t{0}}), scalar<int32_t>(1)},
                            {{"dtype", DType::u32}});
  ASSERT_TRUE(bits.ok()) << bits.status().message();
  EXPECT_EQ(as_vector<uint32_t>(bits.value()[0]), (std::vector<uint32_t>{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
}

TEST(Random, BitsDoNotDependOnThreads) {
  for (const char* op : {"StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2"}) {
    for (const DType dtype : {DType::f32, DType::f64, DType::f16}) {
      OneOp one({ops::register_random});
      const Attr attrs[] = {{"dtype", dtype}};
      const auto inputs = keyed({40'003});
      const auto a = one.run(op, inputs, attrs, {.threads = 1});
      const auto b = one.run(op, inputs, attrs, {.known = OneOp::Known::shapes, .threads = 3});
      ASSERT_TRUE(a.ok() && b.ok()) << op << a.status().message() << b.status().message();
      EXPECT_TRUE(one_op::bit_equal(a.value()[0], b.value()[0])) << op << dtype_name(dtype);
    }
  }
}

TEST(Random, TruncatedNormalsAreWithinTwo) {
  OneOp one({ops::register_random});
  const auto made = one.run("StatelessTruncatedNormalV2", keyed({10'000}), {}, OneOp::Options());
  ASSERT_TRUE(made.ok());
  double sum = 0;
  for (const float value : as_vector<float>(made.value()[0])) {
    EXPECT_LT(std::abs(value), 2.0f);
    sum += value;
  }
  EXPECT_LT(std::abs(sum / 10'000), 0.05);
}

TEST(Random, RefusesOtherGenerators) {
  OneOp one({ops::register_random});
  EXPECT_EQ(one.run("StatelessRandomUniformV2", keyed({2}, 77), {}, OneOp::Options()).status().code(), Code::invalid_argument);
  EXPECT_EQ(one.run("StatelessRandomUniformV2", keyed({2}, 2), {}, OneOp::Options()).status().code(), Code::unimplemented);
  EXPECT_EQ(one.run("StatelessRandomUniformV2", keyed({-2}), {}, OneOp::Options()).status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace dtg
