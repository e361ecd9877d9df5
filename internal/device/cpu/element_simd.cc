// Vector block functions for float32, and for float64 where the formula is plain arithmetic: arithmetic, activations, exp and what
// is made of it; element_curves.cc has the rest. Compiled once per instruction set; the table of the best one is chosen at run time.
// Constant data, any thread.
//
// Exp and its relatives: range reduction and series whose truncation error stays below half an ulp, with
// fused multiply-add where the machine has it. A tail goes through the same vector code on a padded copy,
// so that an element's bits do not depend on where it stands.
#include "device/cpu/elementwise.h"
#include "device/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/element_simd.cc"
// AVX2 and AVX-512 are the steps that pay; what machines before AVX2 gain by SSE4 is not worth the library's size.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (DTG_SCALABLE_TARGETS | HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#endif
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "device/cpu/element_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace dtg::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 2^n for whole n in [-126, 127].
template <class D>
HWY_INLINE Vec<D> power_of_two(D d, hn::VFromD<hn::RebindToSigned<D>> n) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
}

// x = n ln 2 + r with |r| <= ln 2 / 2, for |x| small enough that n is exact.
template <class D>
HWY_INLINE Vec<D> reduce(D d, Vec<D> x, Vec<D>& n) {
  n = hn::Round(hn::Mul(x, set(d, 1.4426950408889634)));
  // ln 2 in two parts; n times the first is exact.
  const Vec<D> r = hn::NegMulAdd(n, set(d, 0.693145751953125), x);
  return hn::NegMulAdd(n, set(d, 1.42860682030941723e-6), r);
}

// exp(r) - 1 for |r| <= 0.35: the series up to r^7.
template <class D>
HWY_INLINE Vec<D> expm1_series(D d, Vec<D> r) {
  Vec<D> p = hn::MulAdd(set(d, 1.0 / 5040), r, set(d, 1.0 / 720));
  p = hn::MulAdd(p, r, set(d, 1.0 / 120));
  p = hn::MulAdd(p, r, set(d, 1.0 / 24));
  p = hn::MulAdd(p, r, set(d, 1.0 / 6));
  p = hn::MulAdd(p, r, set(d, 0.5));
  return hn::MulAdd(hn::Mul(p, r), r, r);
}

template <class D>
HWY_INLINE Vec<D> exp_of(D d, Vec<D> x) {
  const hn::RebindToSigned<D> di;
  // Outside, the result is infinite or zero anyway. NaN is put back at the end.
  const Vec<D> safe = hn::Min(hn::Max(x, set(d, -104)), set(d, 89));
  Vec<D> n;
  const Vec<D> r = reduce(d, safe, n);
  const Vec<D> y = hn::Add(expm1_series(d, r), set(d, 1));
  // In two factors, because 2^n alone may be out of range where the result is not.
  const auto whole = hn::ConvertTo(di, n);
  const auto half = hn::ShiftRight<1>(whole);
  const Vec<D> scaled = hn::Mul(hn::Mul(y, power_of_two(d, half)), power_of_two(d, hn::Sub(whole, half)));
  return hn::IfThenElse(hn::IsNaN(x), x, scaled);
}

// exp(x) - 1 for x in [-87, 87], precise near 0 too.
template <class D>
HWY_INLINE Vec<D> expm1_inside(D d, Vec<D> x) {
  const hn::RebindToSigned<D> di;
  Vec<D> n;
  const Vec<D> r = reduce(d, x, n);
  const Vec<D> scale = power_of_two(d, hn::ConvertTo(di, n));
  return hn::MulAdd(scale, expm1_series(d, r), hn::Sub(scale, set(d, 1)));
}

template <class D>
HWY_INLINE Vec<D> expm1_of(D d, Vec<D> x) {
  const Vec<D> inside = expm1_inside(d, hn::Min(hn::Max(x, set(d, -30)), set(d, 87)));
  const Vec<D> y = hn::IfThenElse(hn::Gt(x, set(d, 87)), exp_of(d, x), inside);
  return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::Eq(x, hn::Zero(d))), x, y);
}

// log(1 + f) + k ln 2, with 1 + f in [0.7, 1.42].
template <class D>
HWY_INLINE Vec<D> log_parts(D d, Vec<D> f, Vec<D> k) {
  const Vec<D> s = hn::Div(f, hn::Add(f, set(d, 2)));
  const Vec<D> z = hn::Mul(s, s);
  Vec<D> p = hn::MulAdd(set(d, 2.0 / 11), z, set(d, 2.0 / 9));
  p = hn::MulAdd(p, z, set(d, 2.0 / 7));
  p = hn::MulAdd(p, z, set(d, 2.0 / 5));
  p = hn::Mul(hn::MulAdd(p, z, set(d, 2.0 / 3)), z);
  const Vec<D> square = hn::Mul(hn::Mul(f, f), set(d, 0.5));
  const Vec<D> low = hn::MulAdd(s, hn::Add(square, p), hn::Mul(k, set(d, 1.42860682030941723e-6)));
  return hn::MulAdd(k, set(d, 0.693145751953125), hn::Sub(f, hn::Sub(square, low)));
}

// x = (1 + f) 2^k for positive normal x.
template <class D>
HWY_INLINE Vec<D> split(D d, Vec<D> x, Vec<D>& k) {
  const hn::RebindToSigned<D> di;
  // Counting from sqrt(1/2) makes the mantissa fall into [0.707, 1.414).
  const auto bits = hn::Sub(hn::BitCast(di, x), hn::Set(di, 0x3f3504f3));
  const auto exponent = hn::ShiftRight<23>(bits);
  k = hn::ConvertTo(d, exponent);
  const auto mantissa = hn::Sub(hn::BitCast(di, x), hn::ShiftLeft<23>(exponent));
  return hn::Sub(hn::BitCast(d, mantissa), set(d, 1));
}

// What the logarithm is where the formula does not hold; `at` is the argument, of log itself.
template <class D>
HWY_INLINE Vec<D> log_edges(D d, Vec<D> at, Vec<D> y) {
  const Vec<D> inf = hn::Inf(d);
  y = hn::IfThenElse(hn::Eq(at, inf), inf, y);
  y = hn::IfThenElse(hn::Eq(at, hn::Zero(d)), hn::Neg(inf), y);
  return hn::IfThenElse(hn::Ge(at, hn::Zero(d)), y, hn::NaN(d));
}

template <class D>
HWY_INLINE Vec<D> log_of(D d, Vec<D> x) {
  const auto tiny = hn::Lt(x, set(d, 0x1p-126));
  Vec<D> k;
  const Vec<D> f = split(d, hn::IfThenElse(tiny, hn::Mul(x, set(d, 0x1p25)), x), k);
  k = hn::Sub(k, hn::IfThenElseZero(tiny, set(d, 25)));
  return log_edges(d, x, log_parts(d, f, k));
}

template <class D>
HWY_INLINE Vec<D> log1p_of(D d, Vec<D> x) {
  const Vec<D> u = hn::Add(x, set(d, 1));
  Vec<D> k;
  const Vec<D> f = split(d, u, k);
  // What the rounding of 1 + x lost, relative to it; exact near 0, where k is 0 and f is u - 1.
  const Vec<D> lost = hn::Div(hn::Sub(x, hn::Sub(u, set(d, 1))), u);
  const Vec<D> y = hn::Add(log_parts(d, f, k), hn::IfThenElseZero(hn::Lt(u, set(d, 0x1p24)), lost));
  const Vec<D> small = hn::IfThenElse(hn::Lt(hn::Abs(x), set(d, 0x1p-25)), x, log_edges(d, u, y));
  return hn::IfThenElse(hn::IsNaN(x), x, small);
}

template <class D>
HWY_INLINE Vec<D> tanh_of(D d, Vec<D> x) {
  // Beyond 9.1 it is 1 to the last bit.
  const Vec<D> size = hn::Min(hn::Abs(x), set(d, 9.1));
  const Vec<D> e = expm1_inside(d, hn::Add(size, size));
  const Vec<D> y = hn::CopySign(hn::Div(e, hn::Add(e, set(d, 2))), x);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

template <class D>
HWY_INLINE Vec<D> sigmoid_of(D d, Vec<D> x) {
  const Vec<D> e = exp_of(d, hn::Neg(hn::Abs(x)));
  const Vec<D> top = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, set(d, 1));
  return hn::Div(top, hn::Add(e, set(d, 1)));
}

// log(1 + exp(x)) without overflow.
template <class D>
HWY_INLINE Vec<D> softplus_of(D d, Vec<D> x) {
  const Vec<D> rest = log1p_of(d, exp_of(d, hn::Neg(hn::Abs(x))));
  const Vec<D> y = hn::Add(hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x), rest);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

template <class D>
HWY_INLINE Vec<D> elu_of(D d, Vec<D> x) {
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), expm1_of(d, x), x);
}

template <class D>
HWY_INLINE Vec<D> selu_of(D d, Vec<D> x) {
  const Vec<D> below = hn::Mul(expm1_of(d, x), set(d, 1.6732632423543772));
  return hn::Mul(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), below, x), set(d, 1.0507009873554805));
}

template <class D>
HWY_INLINE Vec<D> max_of(Vec<D> a, Vec<D> b) {
  return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::IsNaN(b), b, hn::Max(a, b)));
}
template <class D>
HWY_INLINE Vec<D> min_of(Vec<D> a, Vec<D> b) {
  return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::IsNaN(b), b, hn::Min(a, b)));
}

// dy / (1 + |x|)^2.
template <class D>
HWY_INLINE Vec<D> softsign_slope(D d, Vec<D> dy, Vec<D> x) {
  const Vec<D> root = hn::Add(hn::Abs(x), set(d, 1));
  return hn::Div(dy, hn::Mul(root, root));
}

DTG_UNARY(Neg, hn::Neg(a));
DTG_UNARY(Abs, hn::Abs(a));
DTG_UNARY(Square, hn::Mul(a, a));
DTG_UNARY(Sqrt, hn::Sqrt(a));
DTG_UNARY(Rsqrt, hn::Div(set(d, 1), hn::Sqrt(a)));
DTG_UNARY(Reciprocal, hn::Div(set(d, 1), a));
// NaN passes, as in TensorFlow: it is not below zero.
DTG_UNARY(Relu, hn::IfThenZeroElse(hn::Le(a, hn::Zero(d)), a));
// One select each: branches are guessed wrong on data that is not sorted.
DTG_UNARY(Relu6, hn::IfThenElse(hn::Gt(a, set(d, 6)), set(d, 6), hn::IfThenZeroElse(hn::Le(a, hn::Zero(d)), a)));
DTG_UNARY(Softsign, hn::Div(a, hn::Add(hn::Abs(a), set(d, 1))));
DTG_UNARY(Exp, exp_of(d, a));
DTG_UNARY(Expm1, expm1_of(d, a));
DTG_UNARY(Log, log_of(d, a));
DTG_UNARY(Log1p, log1p_of(d, a));
DTG_UNARY(Tanh, tanh_of(d, a));
DTG_UNARY(Sigmoid, sigmoid_of(d, a));
DTG_UNARY(Softplus, softplus_of(d, a));
DTG_UNARY(Elu, elu_of(d, a));
DTG_UNARY(Selu, selu_of(d, a));
DTG_BINARY(Add, hn::Add(a, b));
DTG_BINARY(Sub, hn::Sub(a, b));
DTG_BINARY(Mul, hn::Mul(a, b));
DTG_BINARY(Div, hn::Div(a, b));
DTG_BINARY(Maximum, max_of<D>(a, b));
DTG_BINARY(Minimum, min_of<D>(a, b));
DTG_BINARY(SquaredDifference, hn::Mul(hn::Sub(a, b), hn::Sub(a, b)));
// (dy, y) below, (y, dy) in the rest: TensorFlow's order. A product, so that an infinite gradient is not hidden.
DTG_BINARY(ReluGrad, hn::Mul(a, hn::IfThenElseZero(hn::Gt(b, hn::Zero(d)), set(d, 1))));
DTG_BINARY(Relu6Grad, hn::Mul(a, hn::IfThenElseZero(hn::And(hn::Gt(b, hn::Zero(d)), hn::Lt(b, set(d, 6))), set(d, 1))));
DTG_BINARY(SoftplusGrad, hn::Mul(a, sigmoid_of(d, b)));
DTG_BINARY(EluGrad, hn::IfThenElse(hn::Lt(b, hn::Zero(d)), hn::Mul(hn::Add(b, set(d, 1)), a), a));
DTG_BINARY(SeluGrad,
           hn::Mul(a, hn::IfThenElse(hn::Lt(b, hn::Zero(d)), hn::Add(b, set(d, 1.7580993408473766)), set(d, 1.0507009873554805))));
DTG_BINARY(SoftsignGrad, softsign_slope(d, a, b));
DTG_BINARY(TanhGrad, hn::Mul(b, hn::Sub(set(d, 1), hn::Mul(a, a))));
DTG_BINARY(SigmoidGrad, hn::Mul(hn::Mul(b, hn::Sub(set(d, 1), a)), a));
DTG_BINARY(SqrtGrad, hn::Div(hn::Mul(set(d, 0.5), b), a));
DTG_BINARY(RsqrtGrad, hn::Mul(hn::Mul(set(d, -0.5), hn::Mul(b, a)), hn::Mul(a, a)));
DTG_BINARY(ReciprocalGrad, hn::Mul(hn::Neg(hn::Mul(a, a)), b));
// Zero in front wins over what the logarithm is, NaN too.
DTG_BINARY(Xlogy, hn::IfThenZeroElse(hn::Eq(a, hn::Zero(d)), hn::Mul(a, log_of(d, b))));
DTG_BINARY(Xlog1py, hn::IfThenZeroElse(hn::Eq(a, hn::Zero(d)), hn::Mul(a, log1p_of(d, b))));
// clang-format off
#define DTG_ONE(name, op) {ElementFn::name, DType::f32, 1, map1<float, op>, false}, {ElementFn::name, DType::f64, 1, map1<double, op>, false}
#define DTG_TWO(name, op) {ElementFn::name, DType::f32, 2, map2<float, op>, false}, {ElementFn::name, DType::f64, 2, map2<double, op>, false}
#define DTG_HEAVY(name, op) {ElementFn::name, DType::f32, 1, map1<float, op>, true}
// clang-format on
constexpr ElementBlock kBlocks[] = {
    DTG_ONE(neg, Neg),
    DTG_ONE(abs, Abs),
    DTG_ONE(square, Square),
    DTG_ONE(sqrt, Sqrt),
    DTG_ONE(rsqrt, Rsqrt),
    DTG_ONE(reciprocal, Reciprocal),
    DTG_ONE(relu, Relu),
    DTG_ONE(relu6, Relu6),
    DTG_ONE(softsign, Softsign),
    DTG_HEAVY(exp, Exp),
    DTG_HEAVY(expm1, Expm1),
    DTG_HEAVY(log, Log),
    DTG_HEAVY(log1p, Log1p),
    DTG_HEAVY(tanh, Tanh),
    DTG_HEAVY(sigmoid, Sigmoid),
    DTG_HEAVY(softplus, Softplus),
    DTG_HEAVY(elu, Elu),
    DTG_HEAVY(selu, Selu),
    DTG_TWO(add, Add),
    DTG_TWO(sub, Sub),
    DTG_TWO(mul, Mul),
    DTG_TWO(real_div, Div),
    DTG_TWO(div, Div),
    DTG_TWO(maximum, Maximum),
    DTG_TWO(minimum, Minimum),
    DTG_TWO(squared_difference, SquaredDifference),
    DTG_TWO(relu_grad, ReluGrad),
    DTG_TWO(relu6_grad, Relu6Grad),
    DTG_TWO(selu_grad, SeluGrad),
    DTG_TWO(softsign_grad, SoftsignGrad),
    {ElementFn::softplus_grad, DType::f32, 2, map2<float, SoftplusGrad>, true},
    DTG_TWO(elu_grad, EluGrad),
    DTG_TWO(tanh_grad, TanhGrad),
    DTG_TWO(sigmoid_grad, SigmoidGrad),
    DTG_TWO(sqrt_grad, SqrtGrad),
    DTG_TWO(rsqrt_grad, RsqrtGrad),
    DTG_TWO(reciprocal_grad, ReciprocalGrad),
    {ElementFn::xlogy, DType::f32, 2, map2<float, Xlogy>, true},
    {ElementFn::xlog1py, DType::f32, 2, map2<float, Xlog1py>, true},
};
#undef DTG_ONE
#undef DTG_TWO
#undef DTG_HEAVY

std::span<const ElementBlock> blocks() { return kBlocks; }

}  // namespace HWY_NAMESPACE
}  // namespace dtg::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dtg::cpu {
HWY_EXPORT(blocks);
std::span<const ElementBlock> simd_blocks() { return HWY_DYNAMIC_DISPATCH(blocks)(); }
}  // namespace dtg::cpu
#endif
