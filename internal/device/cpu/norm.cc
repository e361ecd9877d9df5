// The loops of norm.h with Highway, once per instruction set.
#include "device/cpu/norm.h"

#include "device/cpu/targets.h"

#define HWY_DISABLED_TARGETS (DTG_SCALABLE_TARGETS | HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/norm.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace dtg::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// N vectors of columns at a time, and two sums for each: one chain of additions would wait for itself.
template <int N, class D>
HWY_INLINE void squares_columns(D d, const float* x, int64_t rows, int64_t stride, const float* center, float* sum) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> even[N], odd[N], mean[N];
  for (int j = 0; j < N; ++j) {
    even[j] = odd[j] = hn::Zero(d);
    mean[j] = hn::LoadU(d, center + j * lanes);
  }
  int64_t r = 0;
  for (; r + 2 <= rows; r += 2, x += 2 * stride) {
    for (int j = 0; j < N; ++j) {
      const auto a = hn::Sub(hn::LoadU(d, x + j * lanes), mean[j]), b = hn::Sub(hn::LoadU(d, x + stride + j * lanes), mean[j]);
      even[j] = hn::MulAdd(a, a, even[j]);
      odd[j] = hn::MulAdd(b, b, odd[j]);
    }
  }
  for (int j = 0; j < N; ++j) {
    if (r < rows) {
      const auto a = hn::Sub(hn::LoadU(d, x + j * lanes), mean[j]);
      even[j] = hn::MulAdd(a, a, even[j]);
    }
    hn::StoreU(hn::Add(even[j], odd[j]), d, sum + j * lanes);
  }
}

void squares_about_(const float* x, int64_t rows, int64_t columns, const float* center, float* sum) {
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 4 * lanes <= columns; i += 4 * lanes) squares_columns<4>(d, x + i, rows, columns, center + i, sum + i);
  for (; i + lanes <= columns; i += lanes) squares_columns<1>(d, x + i, rows, columns, center + i, sum + i);
  for (; i < columns; ++i) squares_columns<1>(hn::CappedTag<float, 1>(), x + i, rows, columns, center + i, sum + i);
}

template <class D>
HWY_INLINE void shift_scale_at(D d, const float* x, const float* center, const float* factor, const float* offset, float* y, int64_t i) {
  const auto centered = hn::Sub(hn::LoadU(d, x + i), hn::LoadU(d, center + i));
  hn::StoreU(hn::MulAdd(centered, hn::LoadU(d, factor + i), hn::LoadU(d, offset + i)), d, y + i);
}

void shift_scale_rows_(const float* x, int64_t rows, int64_t columns, const float* center, const float* factor, const float* offset,
                       float* y) {
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    int64_t i = 0;
    for (; i + lanes <= columns; i += lanes) shift_scale_at(d, x, center, factor, offset, y, i);
    for (; i < columns; ++i) shift_scale_at(hn::CappedTag<float, 1>(), x, center, factor, offset, y, i);
  }
}

template <int N, class D>
HWY_INLINE void gradient_columns(D d, const float* dy, const float* x, int64_t rows, int64_t stride, const float* center, float* dy_sum,
                                 float* product_sum) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> sums[N], products[N], mean[N];
  for (int j = 0; j < N; ++j) {
    sums[j] = products[j] = hn::Zero(d);
    mean[j] = hn::LoadU(d, center + j * lanes);
  }
  for (int64_t r = 0; r < rows; ++r, dy += stride, x += stride) {
    for (int j = 0; j < N; ++j) {
      const auto g = hn::LoadU(d, dy + j * lanes);
      sums[j] = hn::Add(sums[j], g);
      products[j] = hn::MulAdd(g, hn::Sub(hn::LoadU(d, x + j * lanes), mean[j]), products[j]);
    }
  }
  for (int j = 0; j < N; ++j) {
    hn::StoreU(sums[j], d, dy_sum + j * lanes);
    hn::StoreU(products[j], d, product_sum + j * lanes);
  }
}

void gradient_sums_(const float* dy, const float* x, int64_t rows, int64_t columns, const float* center, float* dy_sum,
                    float* product_sum) {
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 4 * lanes <= columns; i += 4 * lanes) {
    gradient_columns<4>(d, dy + i, x + i, rows, columns, center + i, dy_sum + i, product_sum + i);
  }
  for (; i + lanes <= columns; i += lanes) gradient_columns<1>(d, dy + i, x + i, rows, columns, center + i, dy_sum + i, product_sum + i);
  for (; i < columns; ++i) {
    gradient_columns<1>(hn::CappedTag<float, 1>(), dy + i, x + i, rows, columns, center + i, dy_sum + i, product_sum + i);
  }
}

template <class D>
HWY_INLINE void gradient_at(D d, const float* dy, const float* x, const NormGradient& p, float* dx, int64_t i) {
  const auto centered = hn::Sub(hn::LoadU(d, x + i), hn::LoadU(d, p.center + i));
  const auto g = hn::Sub(hn::LoadU(d, dy + i), hn::LoadU(d, p.dy_mean + i));
  hn::StoreU(hn::Mul(hn::NegMulAdd(centered, hn::LoadU(d, p.slope + i), g), hn::LoadU(d, p.factor + i)), d, dx + i);
}

void norm_gradient_rows_(const float* dy, const float* x, int64_t rows, int64_t columns, const NormGradient& p, float* dx) {
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < rows; ++r, dy += columns, x += columns, dx += columns) {
    int64_t i = 0;
    for (; i + lanes <= columns; i += lanes) gradient_at(d, dy, x, p, dx, i);
    for (; i < columns; ++i) gradient_at(hn::CappedTag<float, 1>(), dy, x, p, dx, i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace dtg::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dtg::cpu {

HWY_EXPORT(squares_about_);
HWY_EXPORT(shift_scale_rows_);
HWY_EXPORT(gradient_sums_);
HWY_EXPORT(norm_gradient_rows_);

void squares_about(const float* x, int64_t rows, int64_t columns, const float* center, float* sum) {
  HWY_DYNAMIC_DISPATCH(squares_about_)(x, rows, columns, center, sum);
}
void shift_scale_rows(const float* x, int64_t rows, int64_t columns, const float* center, const float* factor, const float* offset,
                      float* y) {
  HWY_DYNAMIC_DISPATCH(shift_scale_rows_)(x, rows, columns, center, factor, offset, y);
}
void gradient_sums(const float* dy, const float* x, int64_t rows, int64_t columns, const float* center, float* dy_sum, float* product_sum) {
  HWY_DYNAMIC_DISPATCH(gradient_sums_)(dy, x, rows, columns, center, dy_sum, product_sum);
}
void norm_gradient_rows(const float* dy, const float* x, int64_t rows, int64_t columns, const NormGradient& p, float* dx) {
  HWY_DYNAMIC_DISPATCH(norm_gradient_rows_)(dy, x, rows, columns, p, dx);
}

}  // namespace dtg::cpu
#endif
