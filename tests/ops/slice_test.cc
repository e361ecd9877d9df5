// Slices, strided slices and transposes. Random strided slices are held against a model that lists indices the
// way the language they come from does, and the gradient kernel against the slice kernel.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using one_op::as_vector;
using one_op::values;

// The indices that begin:end:step takes of a dimension, one by one.
std::vector<int64_t> taken(int64_t dim, int64_t begin, int64_t end, int64_t step, bool begin_open, bool end_open) {
  std::vector<int64_t> result;
  if (begin < 0) begin += dim;
  if (end < 0) end += dim;
  if (step > 0) {
    for (int64_t i = begin_open ? 0 : std::max<int64_t>(begin, 0); i < (end_open ? dim : std::min(end, dim)); i += step)
      result.push_back(i);
  } else {
    for (int64_t i = begin_open ? dim - 1 : std::min(begin, dim - 1); i > (end_open ? -1 : std::max<int64_t>(end, -1)); i += step) {
      result.push_back(i);
    }
  }
  return result;
}

struct RandomSlice {
  Tensor x, begin, end, strides;
  int64_t begin_mask, end_mask;
  std::vector<int32_t> want;
  int64_t rows = 0, columns = 0;

  explicit RandomSlice(std::mt19937& random) {
    const auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
    const int64_t dims[] = {pick(0, 5), pick(1, 6)};
    std::vector<int32_t> data(static_cast<size_t>(dims[0] * dims[1]));
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<int32_t>(i + 1);
    x = values<int32_t>({dims[0], dims[1]}, data);
    std::vector<int32_t> b, e, s;
    begin_mask = pick(0, 3);
    end_mask = pick(0, 3);
    std::vector<int64_t> indices[2];
    for (int d = 0; d < 2; ++d) {
      b.push_back(static_cast<int32_t>(pick(-8, 8)));
      e.push_back(static_cast<int32_t>(pick(-8, 8)));
      s.push_back(static_cast<int32_t>(pick(0, 1) ? pick(1, 3) : pick(-3, -1)));
      const auto at = static_cast<size_t>(d);
      indices[d] = taken(dims[d], b[at], e[at], s[at], begin_mask >> d & 1, end_mask >> d & 1);
    }
    begin = values<int32_t>({2}, b);
    end = values<int32_t>({2}, e);
    strides = values<int32_t>({2}, s);
    for (int64_t i : indices[0]) {
      for (int64_t j : indices[1]) want.push_back(data[static_cast<size_t>(i * dims[1] + j)]);
    }
    rows = static_cast<int64_t>(indices[0].size());
    columns = static_cast<int64_t>(indices[1].size());
  }
};

TEST(StridedSlice, MatchesTheModel) {
  OneOp one({ops::register_slice});
  std::mt19937 random(5);
  for (int round = 0; round < 400; ++round) {
    const RandomSlice c(random);
    const auto known = static_cast<OneOp::Known>(round % 3);
    const std::initializer_list<Attr> masks = {{"begin_mask", c.begin_mask}, {"end_mask", c.end_mask}};
    auto out = one.run("StridedSlice", {c.x, c.begin, c.end, c.strides}, masks, {.known = known});
    ASSERT_TRUE(out.ok()) << out.status().message();
    ASSERT_EQ(out.value()[0].shape(), one_op::shape({c.rows, c.columns}));
    ASSERT_EQ(as_vector<int32_t>(out.value()[0]), c.want);
    // Scattering the slice back leaves just those elements.
    const Tensor whole = Tensor::ints(DType::i32, c.x.shape().dims()).take();
    auto back = one.run("StridedSliceGrad", {whole, c.begin, c.end, c.strides, out.value()[0]}, masks, {.known = known});
    ASSERT_TRUE(back.ok()) << back.status().message();
    const auto got = as_vector<int32_t>(back.value()[0]);
    for (size_t i = 0; i < got.size(); ++i) {
      const auto value = static_cast<int32_t>(i + 1);
      ASSERT_EQ(got[i], std::ranges::count(c.want, value) ? value : 0);
    }
  }
}

TEST(StridedSlice, MasksChangeTheRank) {
  OneOp one({ops::register_slice});
  const Tensor x = values<float>({2, 3, 4}, one_op::ramp(24, 0, 1));
  const Tensor zeros = values<int32_t>({3}, {0, 0, 0}), ones = values<int32_t>({3}, {1, 1, 1});
  const auto text = [&](std::initializer_list<Attr> masks) {
    auto out = one.run("StridedSlice", {x, zeros, ones, ones}, masks);
    return out.ok() ? out.value()[0].text() : out.status().message();
  };
  EXPECT_EQ(text({{"shrink_axis_mask", 1}, {"ellipsis_mask", 2}}), "float32[3,1]");
  EXPECT_EQ(text({{"new_axis_mask", 1}, {"ellipsis_mask", 2}, {"shrink_axis_mask", 4}}), "float32[1,2,3]");
  EXPECT_EQ(text({{"new_axis_mask", 7}}), "float32[1,1,1,2,3,4]");
  EXPECT_EQ(text({{"new_axis_mask", 1}, {"shrink_axis_mask", 1}}), "float32[1,1,1,4]") << "a new axis wins over an index";
}

TEST(StridedSlice, HostileEntriesAreErrorsOrEmpty) {
  OneOp one({ops::register_slice});
  const Tensor x = values<float>({4}, {1, 2, 3, 4});
  const auto at = [](int64_t value) { return values<int64_t>({1}, {value}); };
  for (auto known : {OneOp::Known::values, OneOp::Known::shapes, OneOp::Known::nothing}) {
    const auto run = [&](int64_t begin, int64_t end, int64_t step, int64_t shrink) {
      return one.run("StridedSlice", {x, at(begin), at(end), at(step)}, {{"shrink_axis_mask", shrink}}, {.known = known});
    };
    EXPECT_EQ(run(INT64_MIN, INT64_MAX, INT64_MAX, 0).take()[0].count(), 1);
    EXPECT_EQ(run(INT64_MAX, INT64_MIN, INT64_MIN, 0).take()[0].count(), 1);
    EXPECT_EQ(run(INT64_MIN, INT64_MAX, -1, 0).take()[0].count(), 0);
    EXPECT_EQ(run(0, 4, 0, 0).status().code(), Code::invalid_argument);
    EXPECT_EQ(run(INT64_MIN, 0, 1, 1).status().code(), Code::invalid_argument);
    EXPECT_EQ(run(4, 0, 1, 1).status().code(), Code::invalid_argument);
  }
}

TEST(Slice, BoundsAreChecked) {
  OneOp one({ops::register_slice});
  const Tensor x = values<float>({4}, {1, 2, 3, 4});
  const auto at = [](int64_t value) { return values<int64_t>({1}, {value}); };
  for (auto known : {OneOp::Known::values, OneOp::Known::shapes, OneOp::Known::nothing}) {
    const auto run = [&](int64_t begin, int64_t size) { return one.run("Slice", {x, at(begin), at(size)}, {}, {.known = known}); };
    EXPECT_EQ(as_vector<float>(run(1, -1).take()[0]), (std::vector<float>{2, 3, 4}));
    EXPECT_EQ(run(4, 0).take()[0].count(), 0);
    for (auto [begin, size] :
         {std::pair<int64_t, int64_t>{5, 0}, {5, -1}, {-1, 1}, {2, 3}, {1, INT64_MAX}, {INT64_MAX, 1}, {INT64_MIN, -1}}) {
      EXPECT_EQ(run(begin, size).status().code(), Code::invalid_argument) << begin << " " << size;
    }
  }
}

TEST(Transpose, SameBitsForAnyNumberOfThreads) {
  OneOp one({ops::register_slice});
  const Tensor x = values<float>({300, 7, 200}, one_op::ramp(420000, -1, 1));
  const Tensor perm = values<int32_t>({3}, {2, 0, 1});
  const Tensor one_thread = one.run("Transpose", {x, perm}, {}, {.threads = 1}).take()[0];
  const Tensor three = one.run("Transpose", {x, perm}, {}, {.threads = 3}).take()[0];
  EXPECT_TRUE(one_op::bit_equal(one_thread, three));
  EXPECT_EQ(one_thread.text(), "float32[200,300,7]");
  EXPECT_EQ(one_thread.as<float>()[(5 * 300 + 4) * 7 + 3], x.as<float>()[(4 * 7 + 3) * 200 + 5]);
  EXPECT_EQ(one.run("Transpose", {x, values<int32_t>({3}, {2, 0, -1})}).status().code(), Code::invalid_argument);
}

TEST(InvertPermutation, RefusesWhatIsNone) {
  OneOp one({ops::register_slice});
  EXPECT_EQ(as_vector<int64_t>(one.run("InvertPermutation", {values<int64_t>({3}, {2, 0, 1})}).take()[0]), (std::vector<int64_t>{1, 2, 0}));
  EXPECT_EQ(one.run("InvertPermutation", {values<int64_t>({2}, {1, 1})}).status().code(), Code::invalid_argument);
  EXPECT_EQ(one.run("InvertPermutation", {values<int64_t>({1}, {INT64_MIN})}).status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace dtg
