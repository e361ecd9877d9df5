// Loops over rows of floats with Highway: the exponentials of softmax, a bias added to every row, rows summed.
// Pure functions; any thread.
#pragma once

#include <cstdint>

namespace dtg::cpu {

// What a row comes down to: its largest element, and the sum of exp(x - largest), added in a fixed order. A NaN makes the sum NaN.
struct RowSum {
  float largest, sum;
};
// y = exp(x - largest) / sum, and x - largest - log(sum), of one row; y may be x.
RowSum softmax_row(const float* x, float* y, int64_t n);
RowSum log_softmax_row(const float* x, float* y, int64_t n);
// The same of many rows, one behind the other: short ones cost less than a call each.
void softmax_rows(const float* x, float* y, int64_t rows, int64_t n);
void log_softmax_rows(const float* x, float* y, int64_t rows, int64_t n);
// y *= factor.
void scale_row(float* y, int64_t n, float factor);
// y[r, i] = x[r, i] + bias[i]; y may be x.
void add_to_rows(const float* x, const float* bias, float* y, int64_t rows, int64_t columns);
// sum[i] = x[0, i] + x[1, i] + ..., in a fixed order.
void sum_rows(const float* x, int64_t rows, int64_t columns, float* sum);

// One pooling window over n channels: `x` points at the channels of each of its `count` pixels.
// y[i] = the largest of x[...][i] and, when `more`, of y[i]; NaN is passed over.
void largest_pixel(const float* const* x, int64_t count, int64_t n, bool more, float* y);
// dx[p][i] (+)= dy[i] for the first pixel p with the largest x[p][i], and 0 for the others; `add`: added to what is there,
// `positive`: 0 also where that largest is not above zero.
struct PixelGradient {
  bool add = false, positive = false;
};
void largest_pixel_gradient(const float* const* x, float* const* dx, int64_t count, int64_t n, const float* dy, PixelGradient how);

}  // namespace dtg::cpu
