// Rows: what gathers, scatters and segment sums share. An index picks a row of a tensor; every index is checked
// before the first row moves, so a bad one costs an error and never a wild access. Pure functions, any thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/interrupt.h"
#include "device/cpu/copy.h"
#include "tensor/dtype.h"

namespace dtg::ops {

// Calls fn with the indices as a pointer of their own type.
template <class Fn>
auto with_indices(DType dtype, const void* data, Fn&& fn) {
  if (dtype == DType::i16) return fn(static_cast<const int16_t*>(data));
  if (dtype == DType::i32) return fn(static_cast<const int32_t*>(data));
  return fn(static_cast<const int64_t*>(data));
}

// a + b, with integers that wrap around, 16-bit floats that round after each step, and bools that join.
template <class T>
T sum_of(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a || b;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else if constexpr (std::is_floating_point_v<T>) {
    return a + b;
  } else {
    return T(float(a) + float(b));
  }
}

// a b, in the same way.
template <class T>
T product_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else if constexpr (std::is_floating_point_v<T>) {
    return a * b;
  } else {
    return T(float(a) * float(b));
  }
}

// out[target(i)] = fold(out[target(i)], rows[i]) for i = 0, 1, ...; a negative target drops the row. Large rows are cut into columns
// that run side by side, so the order of the sums is the order of the rows whatever the number of threads.
template <class T, class Target, class Fold>
void fold_rows(Pool& pool, T* out, const T* rows, int64_t count, int64_t columns, Target&& target, Fold&& fold) {
  constexpr int64_t kColumns = 64;  // fewer are not worth a shard
  const int64_t wanted = cpu::shards_for_bytes(count * columns * static_cast<int64_t>(sizeof(T)));
  const int64_t shards = std::clamp<int64_t>(columns / kColumns, 1, wanted);
  pool.parallel_for(shards, [&](int64_t shard) {
    const auto fold_columns = [&](int64_t begin, int64_t end) {
      // In blocks, so that the loop over rows has nothing else to do.
      const int64_t block = std::max<int64_t>(1, 100'000 / (8 + end - begin));
      for (int64_t first = 0; first < count; first += block) {
        Interrupt::look();
        for (int64_t i = first; i < std::min(count, first + block); ++i) {
          const int64_t to = target(i);
          if (to < 0) continue;
          T* sum = out + to * columns;
          const T* row = rows + i * columns;
          for (int64_t k = begin; k < end; ++k) sum[k] = fold(sum[k], row[k]);
        }
      }
    };
    look_in_stretches(columns * shard / shards, columns * (shard + 1) / shards, 1, 1, fold_columns);
  });
}

// out[target(i)] += rows[i], in that way.
template <class T, class Target>
void add_rows(Pool& pool, T* out, const T* rows, int64_t count, int64_t columns, Target&& target) {
  fold_rows(pool, out, rows, count, columns, target, [](T a, T b) { return sum_of<T>(a, b); });
}

}  // namespace dtg::ops
