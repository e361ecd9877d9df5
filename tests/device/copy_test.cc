// Strided copies against the plainest loop there is, for every element size, with one thread and with three.
#include "device/cpu/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace dtg::cpu {
namespace {

// Bytes that tell every position apart.
std::vector<char> pattern(int64_t bytes) {
  std::vector<char> data(static_cast<size_t>(bytes));
  uint32_t state = 7;
  for (char& c : data) {
    state = state * 1664525u + 1013904223u;
    c = static_cast<char>(state >> 24);
  }
  return data;
}

struct Nest {
  int64_t size;
  std::vector<int64_t> dims, from, to;
};

void copy_plainly(const Nest& nest, const char* from, char* to, size_t level = 0) {
  if (level == nest.dims.size()) {
    std::copy_n(from, nest.size, to);
    return;
  }
  for (int64_t i = 0; i < nest.dims[level]; ++i) {
    copy_plainly(nest, from + i * nest.from[level], to + i * nest.to[level], level + 1);
  }
}

// The whole destination is compared, so that a write outside shows as well.
void expect_same(const Nest& nest, int64_t from_bytes, int64_t to_bytes, int64_t from_offset = 0) {
  const std::vector<char> from = pattern(from_bytes);
  std::vector<char> want(static_cast<size_t>(to_bytes), 'x');
  copy_plainly(nest, from.data() + from_offset, want.data());
  Walk walk(nest.size);
  for (size_t i = 0; i < nest.dims.size(); ++i) walk.add(nest.dims[i], nest.from[i], nest.to[i]);
  walk.finish();
  for (int threads : {1, 3}) {
    Pool pool({.threads = threads});
    std::vector<char> got(static_cast<size_t>(to_bytes), 'x');
    copy_walk(pool, walk, from.data() + from_offset, got.data());
    EXPECT_TRUE(got == want) << "element size " << nest.size << ", " << threads << " threads";
  }
}

// Row-major strides in bytes.
std::vector<int64_t> strides(const std::vector<int64_t>& dims, int64_t size) {
  std::vector<int64_t> result(dims.size());
  for (size_t i = dims.size(); i-- > 0; size *= dims[i]) result[i] = size;
  return result;
}

int64_t bytes_of(const std::vector<int64_t>& dims, int64_t size) {
  return std::accumulate(dims.begin(), dims.end(), size, std::multiplies<>());
}

Nest permuted(const std::vector<int64_t>& dims, const std::vector<int>& axes, int64_t size) {
  const auto from = strides(dims, size);
  Nest nest{size, {}, {}, {}};
  for (int axis : axes) {
    nest.dims.push_back(dims[static_cast<size_t>(axis)]);
    nest.from.push_back(from[static_cast<size_t>(axis)]);
  }
  nest.to = strides(nest.dims, size);
  return nest;
}

TEST(Copy, EveryPermutationOfFourDimensions) {
  const std::vector<int64_t> dims = {3, 17, 1, 20};
  for (int64_t size : {1, 2, 4, 8, 16, 12}) {
    std::vector<int> axes = {0, 1, 2, 3};
    do {
      expect_same(permuted(dims, axes, size), bytes_of(dims, size), bytes_of(dims, size));
    } while (std::ranges::next_permutation(axes).found);
  }
}

TEST(Copy, LargeTransposesAreCutIntoShards) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{513, 700}, {3, 400, 401}, {70000, 9}, {9, 70000}}) {
    std::vector<int> axes(dims.size());
    std::iota(axes.begin(), axes.end(), 0);
    std::swap(axes[axes.size() - 2], axes[axes.size() - 1]);
    for (int64_t size : {1, 4, 8}) expect_same(permuted(dims, axes, size), bytes_of(dims, size), bytes_of(dims, size));
  }
}

TEST(Copy, LongBlocksFewRowsAndRepeats) {
  expect_same({1, {}, {}, {}}, 1, 1);
  expect_same({4, {300000}, {4}, {4}}, 1200000, 1200000);
  expect_same({4, {2, 200000}, {800000, 4}, {1000000, 4}}, 1600000, 2000000);
  expect_same({4, {5, 100000}, {0, 4}, {400000, 4}}, 400000, 2000000);
  expect_same({4, {100000, 5}, {4, 0}, {20, 4}}, 400000, 2000000);
}

TEST(Copy, StepsAndReverses) {
  expect_same({4, {10}, {12}, {4}}, 120, 40);
  expect_same({4, {10}, {-4}, {4}}, 40, 40, 36);
  expect_same({8, {50000, 3}, {-24, 8}, {24, 8}}, 1200000, 1200000, 1200000 - 24);
}

TEST(Copy, NothingToCopy) {
  expect_same({4, {0, 5}, {20, 4}, {20, 4}}, 40, 40);
  expect_same({4, {5, 0}, {20, 4}, {20, 4}}, 40, 40);
}

TEST(Copy, FillAndClear) {
  for (int threads : {1, 3}) {
    Pool pool({.threads = threads});
    std::vector<uint32_t> values(100001, 7);
    const uint32_t value = 0x01020304;
    fill(pool, values.data(), 100000, 4, &value);
    EXPECT_EQ(std::count(values.begin(), values.end(), value), 100000);
    EXPECT_EQ(values.back(), 7u);
    clear(pool, values.data(), 399999);
    EXPECT_EQ(values[0], 0u);
    EXPECT_EQ(values[99999], 0x01000000u);
  }
}

}  // namespace
}  // namespace dtg::cpu
