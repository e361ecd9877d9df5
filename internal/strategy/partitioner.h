// Partitioners: into how many shards a variable is cut, and which rows each has. Pure functions, any thread.
#pragma once

#include <span>

#include "base/status.h"
#include "tensor/dtype.h"

namespace dtg {

struct Partitioner {
  enum class Kind : uint8_t { fixed_shards, min_size, max_size };
  Kind kind = Kind::fixed_shards;
  int64_t axis = 0;
  int64_t num_shards = 0;   // fixed_shards
  int64_t shard_bytes = 0;  // min_size, max_size
  int64_t max_shards = 0;   // min_size; max_size: 0 is any number
  int64_t bytes_per_string = 16;

  // Along its axis.
  Result<int64_t> shards(DType dtype, std::span<const int64_t> dims) const;
};

// Of rows that are cut into so many shards, the first ones a row longer.
struct ShardRows {
  int64_t first = 0;
  int64_t count = 0;
};
Result<ShardRows> shard_rows(int64_t rows, int64_t shards, int64_t shard);

}  // namespace dtg
