// Vector block functions that choose, round and clip, and the curves that have no series in element_simd.cc: inverse trigonometric
// functions from Highway's math library, the error functions from polynomials of our own. Compiled once per instruction set; the
// table of the best one is chosen at run time. Constant data, any thread.
#include "device/cpu/elementwise.h"
#include "device/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/element_curves.cc"
// Not SSE4: what machines before AVX2 gain by it is not worth the library's size.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (DTG_SCALABLE_TARGETS | HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#endif
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

#include "device/cpu/element_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace dtg::cpu {
namespace HWY_NAMESPACE {

// first + t (second + t (...)).
template <class D>
HWY_INLINE Vec<D> polynomial(D d, Vec<D>, double last) {
  return set(d, last);
}
template <class D, class... Rest>
HWY_INLINE Vec<D> polynomial(D d, Vec<D> t, double first, Rest... rest) {
  return hn::MulAdd(polynomial(d, t, rest...), t, set(d, first));
}

// For |x| <= 1: erf(x) / x in x^2, within 2^-29 of it before rounding.
template <class D>
HWY_INLINE Vec<D> erf_inside(D d, Vec<D> x) {
  return hn::Mul(x, polynomial(d, hn::Mul(x, x), 1.1283791065216064, -0.3761262595653534, 0.1128358542919159, -0.026853812858462334,
                               0.005188327748328447, -0.0008010193705558777, 7.853861461626366e-05));
}

// For x in [0.5, 10.2]: exp(x^2) erfc(x) in (x - 3) / (x + 3), within 2^-27.
template <class D>
HWY_INLINE Vec<D> scaled_erfc(D d, Vec<D> x) {
  return polynomial(d, hn::Div(hn::Sub(x, set(d, 3)), hn::Add(x, set(d, 3))), 0.17900115251541138, -0.32623356580734253,
                    0.24560368061065674, -0.15011556446552277, 0.07166827470064163, -0.024397466331720352, 0.004251839127391577,
                    0.0007313411333598197, -0.0005436239298433065, 5.549347406486049e-06);
}

// The square is taken in two parts, because the exponential makes its rounding large: that of x without its lower half is exact.
template <class D>
HWY_INLINE Vec<D> bell(D d, Vec<D> x) {
  const hn::RebindToUnsigned<D> bits;
  const Vec<D> high = hn::BitCast(d, hn::And(hn::BitCast(bits, x), hn::Set(bits, 0xfffff000u)));
  const Vec<D> rest = hn::Mul(hn::Sub(high, x), hn::Add(high, x));
  return hn::Mul(hn::Exp(d, hn::Neg(hn::Mul(high, high))), hn::Exp(d, rest));
}

// Where the formula holds; NaN too becomes a number.
template <class D>
HWY_INLINE Vec<D> held_outside(D d, Vec<D> size) {
  return hn::Min(hn::Max(hn::IfThenZeroElse(hn::IsNaN(size), size), set(d, 0.5)), set(d, 10.2));
}

// The end of its digits is not seen in 1 - erfc, so one exponential is enough.
template <class D>
HWY_INLINE Vec<D> erf_of(D d, Vec<D> x) {
  const Vec<D> size = hn::Abs(x), held = held_outside(d, size);
  const Vec<D> rest = hn::Mul(hn::Exp(d, hn::Neg(hn::Mul(held, held))), scaled_erfc(d, held));
  const Vec<D> y = hn::IfThenElse(hn::Lt(size, set(d, 1)), erf_inside(d, x), hn::CopySign(hn::Sub(set(d, 1), rest), x));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

template <class D>
HWY_INLINE Vec<D> erfc_of(D d, Vec<D> x) {
  const Vec<D> size = hn::Abs(x), held = held_outside(d, size);
  const Vec<D> rest = hn::Mul(bell(d, held), scaled_erfc(d, held));
  const Vec<D> far = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Sub(set(d, 2), rest), rest);
  const Vec<D> y = hn::IfThenElse(hn::Lt(size, set(d, 0.5)), hn::Sub(set(d, 1), erf_inside(d, x)), far);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenZeroElse(hn::Gt(x, set(d, 10.2)), y));
}

// Outside of [-1, 1] there is none.
template <class D>
HWY_INLINE Vec<D> in_unit(D d, Vec<D> x, Vec<D> y) {
  return hn::IfThenElse(hn::Le(hn::Abs(x), set(d, 1)), y, hn::NaN(d));
}

template <class D>
HWY_INLINE Vec<D> atan_of(D d, Vec<D> x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Atan(d, x));
}

// Near zero Highway's takes the logarithm of what has lost its digits; the series is exact there.
template <class D>
HWY_INLINE Vec<D> atanh_of(D d, Vec<D> x) {
  const Vec<D> size = hn::Abs(x), square = hn::Mul(x, x);
  const Vec<D> near = hn::MulAdd(hn::Mul(square, x), hn::MulAdd(square, set(d, 0.2), set(d, 1.0 / 3)), x);
  const Vec<D> far = hn::IfThenElse(hn::Eq(size, set(d, 1)), hn::CopySign(hn::Inf(d), x), hn::Atanh(d, x));
  return in_unit(d, x, hn::IfThenElse(hn::Lt(size, set(d, 0.05)), near, far));
}

// Half the circle from the quotient of the smaller and the larger; the rest by where the point lies.
template <class D>
HWY_INLINE Vec<D> atan2_of(D d, Vec<D> y, Vec<D> x) {
  const Vec<D> high = hn::Abs(y), wide = hn::Abs(x);
  const auto steep = hn::Gt(high, wide);
  const Vec<D> least = hn::IfThenElse(steep, wide, high), most = hn::IfThenElse(steep, high, wide);
  // Of two zeros it is 0, of two infinities 1.
  const Vec<D> slope = hn::IfThenElse(hn::Eq(least, most), hn::IfThenZeroElse(hn::Eq(most, hn::Zero(d)), set(d, 1)), hn::Div(least, most));
  Vec<D> angle = hn::Atan(d, slope);
  angle = hn::IfThenElse(steep, hn::Sub(set(d, 1.5707963267948966), angle), angle);
  angle = hn::IfThenElse(hn::Lt(hn::CopySign(set(d, 1), x), hn::Zero(d)), hn::Sub(set(d, 3.141592653589793), angle), angle);
  const auto none = hn::Or(hn::IsNaN(x), hn::IsNaN(y));
  return hn::IfThenElse(none, hn::NaN(d), hn::CopySign(angle, y));
}

template <class D>
HWY_INLINE Vec<D> sign_of(D d, Vec<D> x) {
  const Vec<D> there = hn::IfThenElse(hn::Gt(x, hn::Zero(d)), set(d, 1), hn::IfThenElse(hn::Lt(x, hn::Zero(d)), set(d, -1), hn::Zero(d)));
  return hn::IfThenElse(hn::IsNaN(x), x, there);
}

// Bounds one after the other, the lower one last: it wins where they cross. NaN passes.
struct Clip {
  template <class D>
  static HWY_INLINE Vec<D> of(D, Vec<D> x, Vec<D> low, Vec<D> high) {
    const Vec<D> below = hn::IfThenElse(hn::Lt(high, x), high, x);
    return hn::IfThenElse(hn::Lt(below, low), low, below);
  }
};

DTG_UNARY(Sign, sign_of(d, a));
DTG_UNARY(Floor, hn::Floor(a));
DTG_UNARY(Ceil, hn::Ceil(a));
// Halves go to the even neighbour, as in TensorFlow.
DTG_UNARY(Rint, hn::Round(a));
DTG_UNARY(Erf, erf_of(d, a));
DTG_UNARY(Erfc, erfc_of(d, a));
DTG_UNARY(Asin, in_unit(d, a, hn::Asin(d, a)));
DTG_UNARY(Acos, in_unit(d, a, hn::Acos(d, a)));
DTG_UNARY(Atan, atan_of(d, a));
DTG_UNARY(Atanh, atanh_of(d, a));
DTG_BINARY(Atan2, atan2_of(d, a, b));
DTG_BINARY(FloorDiv, hn::Floor(hn::Div(a, b)));
// Zero wins over NaN and infinity on one side.
DTG_BINARY(DivNoNan, hn::IfThenZeroElse(hn::Eq(b, hn::Zero(d)), hn::Div(a, b)));
DTG_BINARY(MulNoNan, hn::IfThenZeroElse(hn::Eq(b, hn::Zero(d)), hn::Mul(a, b)));
DTG_BINARY(Xdivy, hn::IfThenZeroElse(hn::Eq(a, hn::Zero(d)), hn::Div(a, b)));

// clang-format off
#define DTG_BOTH(name, arity, map, op) \
  {ElementFn::name, DType::f32, arity, map<float, op>, false}, {ElementFn::name, DType::f64, arity, map<double, op>, false}
#define DTG_HEAVY(name, arity, map, op) {ElementFn::name, DType::f32, arity, map<float, op>, true}
constexpr ElementBlock kBlocks[] = {
    DTG_BOTH(sign, 1, map1, Sign), DTG_BOTH(floor, 1, map1, Floor), DTG_BOTH(ceil, 1, map1, Ceil), DTG_BOTH(rint, 1, map1, Rint),
    DTG_BOTH(round, 1, map1, Rint), DTG_BOTH(floor_div, 2, map2, FloorDiv), DTG_BOTH(div_no_nan, 2, map2, DivNoNan),
    DTG_BOTH(mul_no_nan, 2, map2, MulNoNan), DTG_BOTH(xdivy, 2, map2, Xdivy), DTG_BOTH(clip, 3, map3, Clip),
    DTG_HEAVY(erf, 1, map1, Erf), DTG_HEAVY(erfc, 1, map1, Erfc), DTG_HEAVY(asin, 1, map1, Asin), DTG_HEAVY(acos, 1, map1, Acos),
    DTG_HEAVY(atan, 1, map1, Atan), DTG_HEAVY(atanh, 1, map1, Atanh), DTG_HEAVY(atan2, 2, map2, Atan2),
};
// clang-format on

std::span<const ElementBlock> curves() { return kBlocks; }

}  // namespace HWY_NAMESPACE
}  // namespace dtg::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dtg::cpu {
HWY_EXPORT(curves);
std::span<const ElementBlock> curve_blocks() { return HWY_DYNAMIC_DISPATCH(curves)(); }
}  // namespace dtg::cpu
#endif
