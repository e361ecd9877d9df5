// The inner loops of depthwise.h with Highway, once per instruction set.
#include "device/cpu/depthwise.h"

#include "device/cpu/targets.h"

#define HWY_DISABLED_TARGETS (DTG_SCALABLE_TARGETS | HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/depthwise_simd.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace dtg::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// N pixels of the strip from pixel p at channel i: each vector of the filter is loaded once for all of them.
template <int N, class D>
HWY_INLINE void pixels_at(D d, const Strip& s, const float* const* x, const float* const* filter, bool add, float* y, int64_t i,
                          int64_t p) {
  hn::Vec<D> sum[N];
  float* to = y + p * s.y_step + i;
  for (int k = 0; k < N; ++k) sum[k] = add ? hn::LoadU(d, to + k * s.y_step) : hn::Zero(d);
  for (int64_t t = 0; t < s.taps; ++t) {
    const auto f = hn::LoadU(d, filter[t] + i);
    const float* from = x[t] + p * s.x_step + i;
    for (int k = 0; k < N; ++k) sum[k] = hn::MulAdd(hn::LoadU(d, from + k * s.x_step), f, sum[k]);
  }
  for (int k = 0; k < N; ++k) hn::StoreU(sum[k], d, to + k * s.y_step);
}

template <int N>
HWY_INLINE void pixels(const Strip& s, const float* const* x, const float* const* filter, bool add, float* y, int64_t p) {
  const hn::CappedTag<float, 16> d;
  const hn::CappedTag<float, 4> quarter;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d)), few = static_cast<int64_t>(hn::Lanes(quarter));
  int64_t i = 0;
  for (; i + lanes <= s.n; i += lanes) pixels_at<N>(d, s, x, filter, add, y, i, p);
  for (; i + few <= s.n; i += few) pixels_at<N>(quarter, s, x, filter, add, y, i, p);
  for (; i < s.n; ++i) pixels_at<N>(hn::CappedTag<float, 1>(), s, x, filter, add, y, i, p);
}

void depthwise_strip_(const Strip& s, const float* const* x, const float* const* filter, bool add, float* y) {
  int64_t p = 0;
  for (; p + 4 <= s.pixels; p += 4) pixels<4>(s, x, filter, add, y, p);
  for (; p < s.pixels; ++p) pixels<1>(s, x, filter, add, y, p);
}

// N taps at channel i, over `count` pixels from p on: dy is loaded once for all of them.
template <int N, class D>
HWY_INLINE void taps_at(D d, const Strip& s, const float* const* x, const float* dy, float* const* df, int64_t i, int64_t p,
                        int64_t count) {
  hn::Vec<D> sum[N];
  for (int t = 0; t < N; ++t) sum[t] = hn::LoadU(d, df[t] + i);
  for (int64_t k = p; k < p + count; ++k) {
    const auto g = hn::LoadU(d, dy + k * s.y_step + i);
    for (int t = 0; t < N; ++t) sum[t] = hn::MulAdd(hn::LoadU(d, x[t] + k * s.x_step + i), g, sum[t]);
  }
  for (int t = 0; t < N; ++t) hn::StoreU(sum[t], d, df[t] + i);
}

template <int N>
HWY_INLINE void taps(const Strip& s, const float* const* x, const float* dy, float* const* df, int64_t p, int64_t count) {
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= s.n; i += lanes) taps_at<N>(d, s, x, dy, df, i, p, count);
  for (; i < s.n; ++i) taps_at<N>(hn::CappedTag<float, 1>(), s, x, dy, df, i, p, count);
}

// A few pixels at a time, so that their lines are still there when the next tap and the next channels come.
void depthwise_strip_filter_(const Strip& s, const float* const* x, const float* dy, float* const* df) {
  constexpr int64_t kPixels = 16;
  for (int64_t p = 0; p < s.pixels; p += kPixels) {
    const int64_t count = s.pixels - p < kPixels ? s.pixels - p : kPixels;
    int64_t t = 0;
    for (; t + 9 <= s.taps; t += 9) taps<9>(s, x + t, dy, df + t, p, count);
    for (; t + 3 <= s.taps; t += 3) taps<3>(s, x + t, dy, df + t, p, count);
    for (; t < s.taps; ++t) taps<1>(s, x + t, dy, df + t, p, count);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace dtg::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dtg::cpu {

HWY_EXPORT(depthwise_strip_);
HWY_EXPORT(depthwise_strip_filter_);

void depthwise_strip(const Strip& strip, const float* const* x, const float* const* filter, bool add, float* y) {
  HWY_DYNAMIC_DISPATCH(depthwise_strip_)(strip, x, filter, add, y);
}
void depthwise_strip_filter(const Strip& strip, const float* const* x, const float* dy, float* const* df) {
  HWY_DYNAMIC_DISPATCH(depthwise_strip_filter_)(strip, x, dy, df);
}

}  // namespace dtg::cpu
#endif
