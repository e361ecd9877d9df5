// IDX: the format of the MNIST family: a type, dimensions, and big-endian data. Reading trusts nothing.
// Pure functions; any thread except the network loop.
#pragma once

#include <cstdint>
#include <string>

#include "base/budget.h"
#include "base/disk.h"
#include "tensor/tensor.h"

namespace dtg {

inline constexpr int64_t kIdxBytesMax = int64_t{16} << 30;

// The whole file, plain or gzip, as one tensor of uint8, int8, int16, int32, float32 or float64. Its bytes are reserved from `budget`
// (null: none is asked) while it is read.
Result<Tensor> read_idx(Disk& disk, const std::string& path, int64_t bytes_max = kIdxBytesMax, MemoryBudget* budget = nullptr);
// The same over the plain bytes; `path` is for messages.
Result<Tensor> read_idx(FileReader& file, const std::string& path, int64_t bytes_max, MemoryBudget* budget = nullptr);

}  // namespace dtg
