// The arithmetic of TensorFlow's partitioners (python/ops/partitioned_variables.py, python/distribute/sharded_variable.py).
#include "strategy/partitioner.h"

#include <algorithm>

namespace dtg {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// The product, or INT64_MAX where that is too small: more than any limit that it is held against.
int64_t times(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

}  // namespace

Result<int64_t> Partitioner::shards(DType dtype, std::span<const int64_t> dims) const {
  if (axis < 0 || axis >= static_cast<int64_t>(dims.size()))
    return invalid_argument("partition a variable of %zu dimensions along axis %lld: there is none; a scalar is never cut", dims.size(),
                            static_cast<long long>(axis));
  if (std::ranges::any_of(dims, [](int64_t dim) { return dim < 0; }))
    return invalid_argument("partition a variable: its shape must be known");
  const int64_t rows = dims[static_cast<size_t>(axis)];
  if (kind == Kind::fixed_shards) {
    if (num_shards <= 0)
      return invalid_argument("partition a variable: num_shards is %lld, and must be positive", static_cast<long long>(num_shards));
    return std::min(num_shards, rows);
  }
  if (shard_bytes <= 0 || bytes_per_string <= 0 || max_shards < 0 || (kind == Kind::min_size && max_shards == 0))
    return invalid_argument("partition a variable: shard_bytes, max_shards and bytes_per_string must be positive");
  int64_t row_bytes = dtype == DType::string ? bytes_per_string : static_cast<int64_t>(dtype_size(dtype));
  for (size_t i = 0; i < dims.size(); ++i) {
    if (static_cast<int64_t>(i) != axis) row_bytes = times(row_bytes, dims[i]);
  }
  if (kind == Kind::min_size) return std::max<int64_t>(1, std::min({rows, max_shards, ceil_div(times(row_bytes, rows), shard_bytes)}));
  if (rows == 0 || row_bytes == 0) return invalid_argument("partition a variable by the size of its shards: it has no elements");
  const int64_t count = ceil_div(rows, std::max<int64_t>(1, shard_bytes / row_bytes));
  return max_shards ? std::min(count, max_shards) : count;
}

Result<ShardRows> shard_rows(int64_t rows, int64_t shards, int64_t shard) {
  if (rows < 0 || shards <= 0 || shard < 0 || shard >= shards) {
    return invalid_argument("rows of shard %lld of %lld of %lld rows: there is none", static_cast<long long>(shard),
                            static_cast<long long>(shards), static_cast<long long>(rows));
  }
  const int64_t each = rows / shards, extra = rows % shards;
  return ShardRows{shard * each + std::min(shard, extra), each + (shard < extra ? 1 : 0)};
}

}  // namespace dtg
