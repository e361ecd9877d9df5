// The matrix product of doubles: blocks of rows by panels of columns in registers, with Highway. Pure function; any thread.
#pragma once

#include <cstdint>

namespace dtg::cpu {

// c = op(a) op(b), of m x n.
struct DoubleProduct {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  const double* a = nullptr;
  const double* b = nullptr;
  double* c = nullptr;
};

// Rows [row_begin, row_end) of it. Each element is summed in one order, however the rows are cut.
void gemm_f64(const DoubleProduct& product, int64_t row_begin, int64_t row_end);

}  // namespace dtg::cpu
