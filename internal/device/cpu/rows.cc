// The loops of rows.h with Highway, once per instruction set.
#include "device/cpu/rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/interrupt.h"
#include "device/cpu/targets.h"

#define HWY_DISABLED_TARGETS (DTG_SCALABLE_TARGETS | HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/rows.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#include "hwy/contrib/math/math-inl.h"

#include "device/cpu/element_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace dtg::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Max of Highway drops a NaN on one side; the sum of the row brings it back, because exp(NaN - max) is NaN.
float largest_of(const float* x, int64_t n) {
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  float largest = -std::numeric_limits<float>::infinity();
  int64_t i = 0;
  if (n >= lanes) {
    auto v = hn::Set(d, largest);
    look_in_stretches(0, n / lanes * lanes, 1, lanes, [&](int64_t from, int64_t to) {
      auto most = v;
      for (i = from; i < to; i += lanes) most = hn::Max(most, hn::LoadU(d, x + i));
      v = most;
    });
    largest = hn::GetLane(hn::MaxOfLanes(d, v));
  }
  for (; i < n; ++i) largest = std::max(largest, x[i]);
  return largest;
}

// NaN stays NaN. Highway turns the argument into whole numbers, which neither it nor infinity is.
template <class D>
HWY_INLINE Vec<D> exp_below(D d, Vec<D> x, Vec<D> largest) {
  const Vec<D> below = hn::Sub(x, largest);
  const auto none = hn::IsNaN(below);
  return hn::IfThenElse(none, below, hn::Exp(d, hn::Max(hn::IfThenZeroElse(none, below), set(d, -110))));
}

// The exponentials of a row summed, and written where they are to become a softmax.
template <bool kLog>
RowSum exp_row(const float* x, float* y, int64_t n) {
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float largest = largest_of(x, n);
  const auto shift = hn::Set(d, largest);
  auto sums = hn::Zero(d);
  int64_t i = 0;
  look_in_stretches(0, n / lanes * lanes, 1, lanes, [&](int64_t from, int64_t to) {
    auto sum = sums;
    for (i = from; i < to; i += lanes) {
      const auto e = exp_below(d, hn::LoadU(d, x + i), shift);
      if constexpr (!kLog) hn::StoreU(e, d, y + i);
      sum = hn::Add(sum, e);
    }
    sums = sum;
  });
  if (i < n) {
    const auto e = exp_below(d, load_part(d, x + i, n - i), shift);
    if constexpr (!kLog) store_part(d, e, y + i, n - i);
    sums = hn::Add(sums, hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(n - i)), e));
  }
  return {largest, hn::GetLane(hn::SumOfLanes(d, sums))};
}

void scale_row_(float* y, int64_t n, float factor) {
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto f = hn::Set(d, factor);
  int64_t i = 0;
  look_in_stretches(0, n / lanes * lanes, 1, lanes, [&](int64_t from, int64_t to) {
    for (i = from; i < to; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, y + i), f), d, y + i);
  });
  for (; i < n; ++i) y[i] *= factor;
}

// A row that fits into N vectors is read once and written once. The last vector may be partly filled.
template <int N, bool kLog>
HWY_INLINE RowSum short_row(const float* x, float* y, int64_t n) {
  const hn::CappedTag<float, 16> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t rest = n - (N - 1) * lanes;
  const auto there = hn::FirstN(d, static_cast<size_t>(rest));
  V v[N], most = hn::IfThenElse(there, load_part(d, x + (N - 1) * lanes, rest), hn::Neg(hn::Inf(d)));
  v[N - 1] = most;
  for (int j = 0; j + 1 < N; ++j) most = hn::Max(most, v[j] = hn::LoadU(d, x + j * lanes));
  const V largest = hn::MaxOfLanes(d, most);
  V e[N], sums = e[N - 1] = hn::IfThenElseZero(there, exp_below(d, v[N - 1], largest));
  for (int j = 0; j + 1 < N; ++j) sums = hn::Add(sums, e[j] = exp_below(d, v[j], largest));
  const V total = hn::SumOfLanes(d, sums);
  const RowSum row = {hn::GetLane(largest), hn::GetLane(total)};
  const V last = kLog ? hn::Set(d, std::log(row.sum)) : hn::Div(set(d, 1), total);
  const auto finished = [&](int j) { return kLog ? hn::Sub(hn::Sub(v[j], largest), last) : hn::Mul(e[j], last); };
  for (int j = 0; j + 1 < N; ++j) hn::StoreU(finished(j), d, y + j * lanes);
  store_part(d, finished(N - 1), y + (N - 1) * lanes, rest);
  return row;
}

template <bool kLog>
RowSum long_row(const float* x, float* y, int64_t n) {
  const RowSum row = exp_row<kLog>(x, y, n);
  if constexpr (kLog) {
    const float log_sum = std::log(row.sum);
    look_in_stretches(0, n, 1, 1, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) y[i] = x[i] - row.largest - log_sum;
    });
  } else {
    scale_row_(y, n, 1.0f / row.sum);
  }
  return row;
}

template <bool kLog>
HWY_NOINLINE RowSum soft_row(const float* x, float* y, int64_t n) {
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (n <= lanes) return short_row<1, kLog>(x, y, n);
  if (n <= 2 * lanes) return short_row<2, kLog>(x, y, n);
  if (n <= 4 * lanes) return n <= 3 * lanes ? short_row<3, kLog>(x, y, n) : short_row<4, kLog>(x, y, n);
  return long_row<kLog>(x, y, n);
}

RowSum softmax_row_(const float* x, float* y, int64_t n) { return soft_row<false>(x, y, n); }
RowSum log_softmax_row_(const float* x, float* y, int64_t n) { return soft_row<true>(x, y, n); }
void softmax_rows_(const float* x, float* y, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) soft_row<false>(x + r * n, y + r * n, n);
}
void log_softmax_rows_(const float* x, float* y, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) soft_row<true>(x + r * n, y + r * n, n);
}

void add_to_rows_(const float* x, const float* bias, float* y, int64_t rows, int64_t columns) {
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    int64_t i = 0;
    for (; i + lanes <= columns; i += lanes) hn::StoreU(hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, bias + i)), d, y + i);
    for (; i < columns; ++i) y[i] = x[i] + bias[i];
  }
}

// N vectors of columns at a time, and two sums for each: one chain of additions would wait for itself.
template <int N, class D>
HWY_INLINE void sum_columns(D d, const float* x, int64_t rows, int64_t stride, float* sum) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> even[N], odd[N];
  for (int j = 0; j < N; ++j) even[j] = odd[j] = hn::Zero(d);
  int64_t r = 0;
  for (; r + 2 <= rows; r += 2, x += 2 * stride) {
    for (int j = 0; j < N; ++j) {
      even[j] = hn::Add(even[j], hn::LoadU(d, x + j * lanes));
      odd[j] = hn::Add(odd[j], hn::LoadU(d, x + stride + j * lanes));
    }
  }
  if (r < rows) {
    for (int j = 0; j < N; ++j) even[j] = hn::Add(even[j], hn::LoadU(d, x + j * lanes));
  }
  for (int j = 0; j < N; ++j) hn::StoreU(hn::Add(even[j], odd[j]), d, sum + j * lanes);
}

void sum_rows_(const float* x, int64_t rows, int64_t columns, float* sum) {
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 4 * lanes <= columns; i += 4 * lanes) sum_columns<4>(d, x + i, rows, columns, sum + i);
  for (; i + 2 * lanes <= columns; i += 2 * lanes) sum_columns<2>(d, x + i, rows, columns, sum + i);
  for (; i + lanes <= columns; i += lanes) sum_columns<1>(d, x + i, rows, columns, sum + i);
  for (; i < columns; ++i) sum_columns<1>(hn::CappedTag<float, 1>(), x + i, rows, columns, sum + i);
}

template <class D>
HWY_INLINE void largest_at(D d, const float* const* x, int64_t count, int64_t i, bool more, float* y) {
  auto best = more ? hn::LoadU(d, y + i) : hn::Set(d, std::numeric_limits<float>::lowest());
  for (int64_t p = 0; p < count; ++p) {
    const auto v = hn::LoadU(d, x[p] + i);
    best = hn::IfThenElse(hn::Gt(v, best), v, best);
  }
  hn::StoreU(best, d, y + i);
}

void largest_pixel_(const float* const* x, int64_t count, int64_t n, bool more, float* y) {
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) largest_at(d, x, count, i, more, y);
  for (; i < n; ++i) largest_at(hn::CappedTag<float, 1>(), x, count, i, more, y);
}

// The position is kept as a float beside the value: both live in the same kind of vector.
template <class D>
HWY_INLINE void gradient_at(D d, const float* const* x, float* const* dx, int64_t count, int64_t i, const float* dy, PixelGradient how) {
  auto best = hn::LoadU(d, x[0] + i);
  auto place = hn::Zero(d);
  for (int64_t p = 1; p < count; ++p) {
    const auto v = hn::LoadU(d, x[p] + i);
    const auto better = hn::Gt(v, best);
    best = hn::IfThenElse(better, v, best);
    place = hn::IfThenElse(better, hn::Set(d, static_cast<float>(p)), place);
  }
  auto g = hn::LoadU(d, dy + i);
  if (how.positive) g = hn::IfThenElseZero(hn::Gt(best, hn::Zero(d)), g);
  for (int64_t p = 0; p < count; ++p) {
    const auto mine = hn::IfThenElseZero(hn::Eq(place, hn::Set(d, static_cast<float>(p))), g);
    hn::StoreU(how.add ? hn::Add(hn::LoadU(d, dx[p] + i), mine) : mine, d, dx[p] + i);
  }
}

void largest_pixel_gradient_(const float* const* x, float* const* dx, int64_t count, int64_t n, const float* dy, PixelGradient how) {
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) gradient_at(d, x, dx, count, i, dy, how);
  for (; i < n; ++i) gradient_at(hn::CappedTag<float, 1>(), x, dx, count, i, dy, how);
}

}  // namespace HWY_NAMESPACE
}  // namespace dtg::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dtg::cpu {

HWY_EXPORT(softmax_row_);
HWY_EXPORT(log_softmax_row_);
HWY_EXPORT(softmax_rows_);
HWY_EXPORT(log_softmax_rows_);
HWY_EXPORT(scale_row_);
HWY_EXPORT(add_to_rows_);
HWY_EXPORT(sum_rows_);
HWY_EXPORT(largest_pixel_);
HWY_EXPORT(largest_pixel_gradient_);

RowSum softmax_row(const float* x, float* y, int64_t n) { return HWY_DYNAMIC_DISPATCH(softmax_row_)(x, y, n); }
RowSum log_softmax_row(const float* x, float* y, int64_t n) { return HWY_DYNAMIC_DISPATCH(log_softmax_row_)(x, y, n); }
void softmax_rows(const float* x, float* y, int64_t rows, int64_t n) { HWY_DYNAMIC_DISPATCH(softmax_rows_)(x, y, rows, n); }
void log_softmax_rows(const float* x, float* y, int64_t rows, int64_t n) { HWY_DYNAMIC_DISPATCH(log_softmax_rows_)(x, y, rows, n); }
void scale_row(float* y, int64_t n, float factor) { HWY_DYNAMIC_DISPATCH(scale_row_)(y, n, factor); }
void add_to_rows(const float* x, const float* bias, float* y, int64_t rows, int64_t columns) {
  HWY_DYNAMIC_DISPATCH(add_to_rows_)(x, bias, y, rows, columns);
}
void sum_rows(const float* x, int64_t rows, int64_t columns, float* sum) { HWY_DYNAMIC_DISPATCH(sum_rows_)(x, rows, columns, sum); }
void largest_pixel(const float* const* x, int64_t count, int64_t n, bool more, float* y) {
  HWY_DYNAMIC_DISPATCH(largest_pixel_)(x, count, n, more, y);
}
void largest_pixel_gradient(const float* const* x, float* const* dx, int64_t count, int64_t n, const float* dy, PixelGradient how) {
  HWY_DYNAMIC_DISPATCH(largest_pixel_gradient_)(x, dx, count, n, dy, how);
}

}  // namespace dtg::cpu
#endif
