// Block functions from Eigen's special functions: gamma and beta functions, inverse error functions, Bessel functions, and the
// clipping to bounds. Each element is a function of its operands alone; nothing is allocated. Constant data, any thread.
#include <cmath>
#include <limits>

#define EIGEN_MPL2_ONLY
#include <Eigen/Core>
#include <unsupported/Eigen/SpecialFunctions>

#include "device/cpu/element_loops.h"

namespace dtg::cpu {
namespace {

// The quantile of the standard normal distribution; its ends are infinite and outside of [0, 1] there is none.
template <class C>
C normal_quantile(C p) {
  if (p == C(0)) return -std::numeric_limits<C>::infinity();
  if (p == C(1)) return std::numeric_limits<C>::infinity();
  if (!(p > C(0) && p < C(1))) return std::numeric_limits<C>::quiet_NaN();
  // In double: single precision loses half its digits near the middle.
  return static_cast<C>(Eigen::numext::ndtri(static_cast<double>(p)));
}

template <class C>
C inverse_erf(C x) {
  if (x == C(0)) return x;
  if (x == C(-1) || x == C(1)) return x * std::numeric_limits<C>::infinity();
  if (!(x > C(-1) && x < C(1))) return std::numeric_limits<C>::quiet_NaN();
  return static_cast<C>(Eigen::numext::ndtri(static_cast<double>(x) * 0.5 + 0.5) * M_SQRT1_2);
}

// Eigen asks whether the order of a pole is even by a cast to long, which has no room for the largest orders. Those are even.
template <class C>
bool pole_of_large_order(C order, C at) {
  return order >= C(1LL << 53) && at <= C(0) && at == std::floor(at);
}

template <class C>
C hurwitz_zeta(C x, C q) {
  if (pole_of_large_order(x, q)) return std::numeric_limits<C>::infinity();
  const C sum = C(Eigen::numext::zeta(x, q));
  // Of powers beyond all bounds only the first counts; Eigen takes 0 times infinity there.
  return std::isnan(sum) && x > 1 && q > 0 ? std::pow(q, -x) : sum;
}

template <class C>
C derivative_of_digamma(C n, C x) {
  return pole_of_large_order(n, x) ? std::numeric_limits<C>::infinity() : C(Eigen::numext::polygamma(n, x));
}

// Bounds one after the other, the lower one last: it wins where they cross.
template <class C>
C clipped(C a, C low, C high) {
  const C below = high < a ? high : a;
  return below < low ? low : below;
}

template <class T, class Op>
void loop3(const void* const* in, void* out, int64_t n) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  const T* d = static_cast<const T*>(in[2]);
  T* y = static_cast<T*>(out);
  using C = Computed<T>;
  for (int64_t i = 0; i < n; ++i) y[i] = T(Op::template of<C>(static_cast<C>(a[i]), static_cast<C>(b[i]), static_cast<C>(d[i])));
}

namespace fn = Eigen::numext;
// clang-format off
DTG_ELEMENT1(Lgamma, C(fn::lgamma(a)));
DTG_ELEMENT1(Digamma, C(fn::digamma(a)));
DTG_ELEMENT1(Erfinv, inverse_erf(a));
DTG_ELEMENT1(Ndtri, normal_quantile(a));
DTG_ELEMENT1(BesselI0, C(fn::bessel_i0(a)));
DTG_ELEMENT1(BesselI0e, C(fn::bessel_i0e(a)));
DTG_ELEMENT1(BesselI1, C(fn::bessel_i1(a)));
DTG_ELEMENT1(BesselI1e, C(fn::bessel_i1e(a)));
DTG_ELEMENT1(BesselJ0, C(fn::bessel_j0(a)));
DTG_ELEMENT1(BesselJ1, C(fn::bessel_j1(a)));
DTG_ELEMENT1(BesselK0, C(fn::bessel_k0(a)));
DTG_ELEMENT1(BesselK0e, C(fn::bessel_k0e(a)));
DTG_ELEMENT1(BesselK1, C(fn::bessel_k1(a)));
DTG_ELEMENT1(BesselK1e, C(fn::bessel_k1e(a)));
DTG_ELEMENT1(BesselY0, C(fn::bessel_y0(a)));
DTG_ELEMENT1(BesselY1, C(fn::bessel_y1(a)));
DTG_ELEMENT2(Igamma, C(fn::igamma(a, b)));
DTG_ELEMENT2(Igammac, C(fn::igammac(a, b)));
DTG_ELEMENT2(IgammaGradA, C(fn::igamma_der_a(a, b)));
DTG_ELEMENT2(Zeta, hurwitz_zeta(a, b));
DTG_ELEMENT2(Polygamma, derivative_of_digamma(a, b));
struct Betainc {
  template <class C>
  static C of(C a, C b, C x) { return C(fn::betainc(a, b, x)); }
};
struct Clip {
  template <class C>
  static C of(C a, C low, C high) { return clipped(a, low, high); }
};

#define DTG_FLOATS1(name, op)                                                                                        \
  {ElementFn::name, DType::f16, 1, loop1<Half, op>, true}, {ElementFn::name, DType::bf16, 1, loop1<BFloat16, op>, true}, \
      {ElementFn::name, DType::f32, 1, loop1<float, op>, true}, {ElementFn::name, DType::f64, 1, loop1<double, op>, true}
#define DTG_TWO2(name, op) \
  {ElementFn::name, DType::f32, 2, loop2<float, op>, true}, {ElementFn::name, DType::f64, 2, loop2<double, op>, true}
#define DTG_FLOATS2(name, op)                                                                                        \
  {ElementFn::name, DType::f16, 2, loop2<Half, op>, true}, {ElementFn::name, DType::bf16, 2, loop2<BFloat16, op>, true}, DTG_TWO2(name, op)
#define DTG_CLIP(type) {ElementFn::clip, dtype_of<type>, 3, loop3<type, Clip>, false}
constexpr ElementBlock kBlocks[] = {
    DTG_FLOATS1(lgamma, Lgamma), DTG_FLOATS1(digamma, Digamma), DTG_FLOATS1(erfinv, Erfinv), DTG_FLOATS1(ndtri, Ndtri),
    DTG_FLOATS1(bessel_i0, BesselI0), DTG_FLOATS1(bessel_i0e, BesselI0e), DTG_FLOATS1(bessel_i1, BesselI1),
    DTG_FLOATS1(bessel_i1e, BesselI1e), DTG_FLOATS1(bessel_j0, BesselJ0), DTG_FLOATS1(bessel_j1, BesselJ1),
    DTG_FLOATS1(bessel_k0, BesselK0), DTG_FLOATS1(bessel_k0e, BesselK0e), DTG_FLOATS1(bessel_k1, BesselK1),
    DTG_FLOATS1(bessel_k1e, BesselK1e), DTG_FLOATS1(bessel_y0, BesselY0), DTG_FLOATS1(bessel_y1, BesselY1),
    DTG_FLOATS2(igamma, Igamma), DTG_FLOATS2(igammac, Igammac), DTG_TWO2(igamma_grad_a, IgammaGradA),
    DTG_TWO2(zeta, Zeta), DTG_TWO2(polygamma, Polygamma),
    {ElementFn::betainc, DType::f32, 3, loop3<float, Betainc>, true}, {ElementFn::betainc, DType::f64, 3, loop3<double, Betainc>, true},
    DTG_CLIP(Half), DTG_CLIP(BFloat16), DTG_CLIP(int8_t), DTG_CLIP(int16_t), DTG_CLIP(int32_t),
    DTG_CLIP(int64_t), DTG_CLIP(uint8_t), DTG_CLIP(uint16_t), DTG_CLIP(uint32_t), DTG_CLIP(uint64_t),
};
// clang-format on

}  // namespace

std::span<const ElementBlock> special_blocks() { return kBlocks; }

}  // namespace dtg::cpu
