// Vector sums, maxima and minima of float32 and float64. Constant data, any thread.
//
// A run is taken in 64 virtual lanes whatever the width of the registers, and the lanes are joined in a
// fixed order, so that a sum has the same bits on every x86 machine.
#include "device/cpu/reduce.h"
#include "device/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/reduce_simd.cc"
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (DTG_SCALABLE_TARGETS | HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#endif
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace dtg::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kLanes = 64;

struct Sum {
  template <class D, class V>
  static HWY_INLINE V join(D, V a, V b) {
    return hn::Add(a, b);
  }
};
// NaN wins, as in TensorFlow.
struct Max {
  template <class D, class V>
  static HWY_INLINE V join(D, V a, V b) {
    return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::IsNaN(b), b, hn::Max(a, b)));
  }
};
struct Min {
  template <class D, class V>
  static HWY_INLINE V join(D, V a, V b) {
    return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::IsNaN(b), b, hn::Min(a, b)));
  }
};

template <class T, class Op>
T join_one(T a, T b) {
  const hn::CappedTag<T, 1> one;
  return hn::GetLane(Op::join(one, hn::Set(one, a), hn::Set(one, b)));
}

// out[j] = join over the rows. Columns in groups of four registers, so that the sums stay in them.
template <class T, class Op>
void reduce_rows(const T* in, int64_t rows, int64_t width, int64_t stride, T* out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + 4 * lanes <= width; j += 4 * lanes) {
    const T* at = in + j;
    auto s0 = hn::LoadU(d, at), s1 = hn::LoadU(d, at + lanes), s2 = hn::LoadU(d, at + 2 * lanes), s3 = hn::LoadU(d, at + 3 * lanes);
    for (int64_t i = 1; i < rows; ++i) {
      at += stride;
      s0 = Op::join(d, s0, hn::LoadU(d, at));
      s1 = Op::join(d, s1, hn::LoadU(d, at + lanes));
      s2 = Op::join(d, s2, hn::LoadU(d, at + 2 * lanes));
      s3 = Op::join(d, s3, hn::LoadU(d, at + 3 * lanes));
    }
    hn::StoreU(s0, d, out + j);
    hn::StoreU(s1, d, out + j + lanes);
    hn::StoreU(s2, d, out + j + 2 * lanes);
    hn::StoreU(s3, d, out + j + 3 * lanes);
  }
  for (; j + lanes <= width; j += lanes) {
    auto sum = hn::LoadU(d, in + j);
    for (int64_t i = 1; i < rows; ++i) sum = Op::join(d, sum, hn::LoadU(d, in + j + i * stride));
    hn::StoreU(sum, d, out + j);
  }
  for (; j < width; ++j) {
    T sum = in[j];
    for (int64_t i = 1; i < rows; ++i) sum = join_one<T, Op>(sum, in[j + i * stride]);
    out[j] = sum;
  }
}

// n > 0 contiguous elements. Few are joined one by one.
template <class T, class Op>
T reduce_run(const T* in, int64_t n) {
  if (n < kLanes) {
    T part[8] = {};
    const int64_t width = n < 8 ? n : 8;
    for (int64_t j = 0; j < width; ++j) part[j] = in[j];
    for (int64_t i = 8; i < n; ++i) part[i & 7] = join_one<T, Op>(part[i & 7], in[i]);
    for (int64_t j = 1; j < width; ++j) part[0] = join_one<T, Op>(part[0], part[j]);
    return part[0];
  }
  alignas(64) T lanes[kLanes];
  const int64_t rows = n / kLanes;
  reduce_rows<T, Op>(in, rows, kLanes, kLanes, lanes);
  for (int64_t i = rows * kLanes; i < n; ++i) lanes[i % kLanes] = join_one<T, Op>(lanes[i % kLanes], in[i]);
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t j = 0; j < half; ++j) lanes[j] = join_one<T, Op>(lanes[j], lanes[j + half]);
  }
  return lanes[0];
}

template <class T, class Op>
constexpr ReduceSimd<T> kForms{reduce_run<T, Op>, reduce_rows<T, Op>};

const ReduceSimd<float>* forms_f32(Reduction reduction) {
  if (reduction == Reduction::max) return &kForms<float, Max>;
  return reduction == Reduction::min ? &kForms<float, Min> : &kForms<float, Sum>;
}
const ReduceSimd<double>* forms_f64(Reduction reduction) {
  if (reduction == Reduction::max) return &kForms<double, Max>;
  return reduction == Reduction::min ? &kForms<double, Min> : &kForms<double, Sum>;
}

}  // namespace HWY_NAMESPACE
}  // namespace dtg::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dtg::cpu {
HWY_EXPORT(forms_f32);
HWY_EXPORT(forms_f64);
const ReduceSimd<float>& reduce_simd_f32(Reduction reduction) { return *HWY_DYNAMIC_DISPATCH(forms_f32)(reduction); }
const ReduceSimd<double>& reduce_simd_f64(Reduction reduction) { return *HWY_DYNAMIC_DISPATCH(forms_f64)(reduction); }
}  // namespace dtg::cpu
#endif
