// Gemm: f32 matrix product C[m,n] = op(A) * op(B) (+ bias, relu), row-major, cut into shards whose bounds
// depend on the sizes alone. A is read where it lies; panels of B are packed into the shard's workspace
// when they are used often enough or lie across (transposed). All decisions are taken in gemm_plan, so
// that gemm_run allocates nothing. Also the plain product for every other element type.
//
// A plan is immutable and may be run by many threads at once, each with its own workspace.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "base/interrupt.h"
#include "base/pool.h"
#include "base/size.h"
#include "device/cpu/gemm_f64.h"
#include "device/cpu/tile.h"

namespace dtg::cpu {

struct GemmPlan {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  // The transposed product is computed, C^T = op(B)^T op(A)^T, and turned over when stored: m and n, a and b
  // have changed places in this plan, and a and b do in the run.
  bool swapped = false;
  bool pack_b = false;     // full panels too; a part of one is always packed
  int64_t k_block = 0;     // steps per pass over a panel
  int64_t row_groups = 1;  // shards = row_groups * column_groups
  int64_t column_groups = 1;
  int64_t panels = 0;                                 // of 2 * lanes columns; the last may be narrower
  int64_t panel_group = 1;                            // panels packed at a time
  bool share_packed = false;                          // all of B is packed before the shards start
  int64_t shared_workspace = 0, shard_workspace = 0;  // bytes
  const TileSet* tiles = nullptr;
  int64_t shards() const { return row_groups * column_groups; }
  Bytes workspace() const { return Bytes(shared_workspace) + Bytes(shard_workspace) * shards(); }
};

// `parallel` false: one shard, for callers who cut the work themselves (batches).
GemmPlan gemm_plan(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b, bool parallel = true);

// bias: n values or null.
void gemm_run(const GemmPlan& plan, Pool& pool, const float* a, const float* b, const float* bias, bool relu, float* c, void* workspace);
// All of it on the calling thread.
void gemm_run_alone(const GemmPlan& plan, const float* a, const float* b, const float* bias, bool relu, float* c, void* workspace);

// Rows cut into blocks of at most `most`, as even as they come: block i is [start(i), start(i + 1)).
struct EvenBlocks {
  int64_t total, count;
  EvenBlocks(int64_t total_rows, int64_t most) : total(total_rows), count((total_rows + most - 1) / most) {}
  int64_t start(int64_t i) const { return total / count * i + std::min(i, total % count); }
};

// The same product for any element type, summed in Acc and rounded once: the oracle of the fast one, and
// the kernel of the types that have none. Rows [row_begin, row_end).
template <class T, class Acc>
void plain_gemm(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b, const T* a, const T* b, T* c, int64_t row_begin,
                int64_t row_end) {
  constexpr int64_t kColumns = 128, kStretch = 1024;  // sums held, and what is added to them between two looks
  Acc sum[kColumns];
  Lookout lookout;
  for (int64_t i = row_begin; i < row_end; ++i) {
    for (int64_t from = 0; from < n; from += kColumns) {
      const int64_t columns = std::min(kColumns, n - from);
      std::fill(sum, sum + columns, Acc());
      for (int64_t first = 0; first < k; first += kStretch) {
        const int64_t last = std::min(k, first + kStretch);
        for (int64_t p = first; p < last; ++p) {
          const Acc av = static_cast<Acc>(transpose_a ? a[p * m + i] : a[i * k + p]);
          const T* row = transpose_b ? b + from * k + p : b + p * n + from;
          const int64_t step = transpose_b ? k : 1;
          for (int64_t j = 0; j < columns; ++j) sum[j] += av * static_cast<Acc>(row[j * step]);
        }
        lookout.after((last - first) * columns);
      }
      for (int64_t j = 0; j < columns; ++j) c[i * n + from + j] = static_cast<T>(sum[j]);
    }
  }
}

// Rows [row_begin, row_end) of the product of any type: the fast one where there is one that takes rows.
template <class T, class Acc>
void rows_gemm(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b, const T* a, const T* b, T* c, int64_t row_begin,
               int64_t row_end) {
  if constexpr (std::is_same_v<T, double>) {
    gemm_f64({m, n, k, transpose_a, transpose_b, a, b, c}, row_begin, row_end);
  } else {
    plain_gemm<T, Acc>(m, n, k, transpose_a, transpose_b, a, b, c, row_begin, row_end);
  }
}

}  // namespace dtg::cpu
