// Loops of batch normalization over rows of floats with Highway: sums about a centre, rows shifted and scaled, and the two halves of
// the gradient. A column is one channel; narrow ones come several rows to a line (ops/batch_norm.cc). Pure functions; any thread.
#pragma once

#include <cstdint>

namespace dtg::cpu {

// sum[i] = sum over the rows of (x[r, i] - center[i])^2, in a fixed order.
void squares_about(const float* x, int64_t rows, int64_t columns, const float* center, float* sum);
// y[r, i] = (x[r, i] - center[i]) * factor[i] + offset[i]; y may be x.
void shift_scale_rows(const float* x, int64_t rows, int64_t columns, const float* center, const float* factor, const float* offset,
                      float* y);
// dy_sum[i] = sum of dy[r, i], product_sum[i] = sum of dy[r, i] * (x[r, i] - center[i]), in a fixed order.
void gradient_sums(const float* dy, const float* x, int64_t rows, int64_t columns, const float* center, float* dy_sum, float* product_sum);
// dx[r, i] = (dy[r, i] - dy_mean[i] - (x[r, i] - center[i]) * slope[i]) * factor[i]; dx may be dy or x.
struct NormGradient {
  const float* center;
  const float* dy_mean;
  const float* slope;
  const float* factor;
};
void norm_gradient_rows(const float* dy, const float* x, int64_t rows, int64_t columns, const NormGradient& p, float* dx);

}  // namespace dtg::cpu
