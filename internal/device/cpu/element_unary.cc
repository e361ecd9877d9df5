// Generic one-operand block functions: every type and function that the vector file does not cover.
// Constant data, any thread.
#include "device/cpu/element_loops.h"

namespace dtg::cpu {
namespace {

template <class C>
C sign_of(C a) {
  if (a > C(0)) return C(1);
  if constexpr (!std::is_unsigned_v<C>) {
    if (a < C(0)) return static_cast<C>(-1);
  }
  return a == C(0) ? C(0) : a;  // NaN stays
}

template <class C>
C abs_of(C a) {
  if constexpr (std::is_floating_point_v<C>) return std::fabs(a);
  else if constexpr (std::is_unsigned_v<C>) return a;
  else return a < 0 ? wrap_sub(C(0), a) : a;
}

template <class C>
C sigmoid_of(C a) {
  const C e = std::exp(-std::fabs(a));
  return (a < 0 ? e : C(1)) / (e + C(1));
}

template <class C>
C softplus_of(C a) {
  if (std::isnan(a)) return a;
  return (a > 0 ? a : C(0)) + std::log1p(std::exp(-std::fabs(a)));
}

template <class C>
C truncated_reciprocal(C a) {
  if constexpr (std::is_floating_point_v<C>) return C(1) / a;
  else return a == 0 ? C(0) : static_cast<C>(C(1) / a);
}

DTG_ELEMENT1(Neg, wrap_sub(C(0), a));
DTG_ELEMENT1(NegFloat, -a);
DTG_ELEMENT1(Abs, abs_of(a));
DTG_ELEMENT1(Sign, sign_of(a));
DTG_ELEMENT1(Square, wrap_mul(a, a));
DTG_ELEMENT1(Sqrt, std::sqrt(a));
DTG_ELEMENT1(Rsqrt, C(1) / std::sqrt(a));
DTG_ELEMENT1(Reciprocal, truncated_reciprocal(a));
DTG_ELEMENT1(Relu, a <= C(0) ? C(0) : a);
DTG_ELEMENT1(Relu6, a <= C(0) ? C(0) : (a > C(6) ? C(6) : a));
DTG_ELEMENT1(Exp, std::exp(a));
DTG_ELEMENT1(Expm1, std::expm1(a));
DTG_ELEMENT1(Log, std::log(a));
DTG_ELEMENT1(Log1p, std::log1p(a));
DTG_ELEMENT1(Tanh, std::tanh(a));
DTG_ELEMENT1(Sigmoid, sigmoid_of(a));
DTG_ELEMENT1(Softplus, softplus_of(a));
DTG_ELEMENT1(Softsign, a / (C(1) + std::fabs(a)));
DTG_ELEMENT1(Elu, a < C(0) ? std::expm1(a) : a);
DTG_ELEMENT1(Sin, std::sin(a));
DTG_ELEMENT1(Cos, std::cos(a));
DTG_ELEMENT1(Tan, std::tan(a));
DTG_ELEMENT1(Asin, std::asin(a));
DTG_ELEMENT1(Acos, std::acos(a));
DTG_ELEMENT1(Atan, std::atan(a));
DTG_ELEMENT1(Sinh, std::sinh(a));
DTG_ELEMENT1(Cosh, std::cosh(a));
DTG_ELEMENT1(Asinh, std::asinh(a));
DTG_ELEMENT1(Acosh, std::acosh(a));
DTG_ELEMENT1(Atanh, std::atanh(a));
DTG_ELEMENT1(Selu, static_cast<C>(1.0507009873554805) * (a < C(0) ? static_cast<C>(1.6732632423543772) * std::expm1(a) : a));
DTG_ELEMENT1(Invert, static_cast<C>(~a));
DTG_ELEMENT1(Erf, std::erf(a));
DTG_ELEMENT1(Erfc, std::erfc(a));
DTG_ELEMENT1(Floor, std::floor(a));
DTG_ELEMENT1(Ceil, std::ceil(a));
// Halves go to the even neighbour, as in TensorFlow.
DTG_ELEMENT1(Rint, std::nearbyint(a));
DTG_ELEMENT1(Same, a);
DTG_ELEMENT1(IsNan, std::isnan(a));
DTG_ELEMENT1(IsInf, std::isinf(a));
DTG_ELEMENT1(IsFinite, std::isfinite(a));

// clang-format off
#define DTG_ROW(name, type, op, heavy) {ElementFn::name, dtype_of<type>, 1, loop1<type, op>, heavy}
#define DTG_SMALL(name, op, heavy) DTG_ROW(name, Half, op, heavy), DTG_ROW(name, BFloat16, op, heavy)
#define DTG_NO_F32(name, op) DTG_SMALL(name, op, true), DTG_ROW(name, double, op, true)
#define DTG_FLOATS(name, op, heavy) DTG_SMALL(name, op, heavy), DTG_ROW(name, float, op, heavy), DTG_ROW(name, double, op, heavy)
#define DTG_SIGNED(name, op)                                                \
  DTG_ROW(name, int8_t, op, false), DTG_ROW(name, int16_t, op, false),      \
      DTG_ROW(name, int32_t, op, false), DTG_ROW(name, int64_t, op, false)
#define DTG_UNSIGNED(name, op)                                              \
  DTG_ROW(name, uint8_t, op, false), DTG_ROW(name, uint16_t, op, false),    \
      DTG_ROW(name, uint32_t, op, false), DTG_ROW(name, uint64_t, op, false)
#define DTG_ASK(name, op)                                                                                      \
  {ElementFn::name, DType::f16, 1, ask1<Half, op>, false}, {ElementFn::name, DType::bf16, 1, ask1<BFloat16, op>, false},             \
      {ElementFn::name, DType::f32, 1, ask1<float, op>, false}, {ElementFn::name, DType::f64, 1, ask1<double, op>, false}
constexpr ElementBlock kBlocks[] = {
    DTG_SMALL(neg, NegFloat, false), DTG_SIGNED(neg, Neg),
    DTG_SMALL(abs, Abs, false), DTG_SIGNED(abs, Abs),
    DTG_SMALL(sign, Sign, false), DTG_SIGNED(sign, Sign),
    DTG_SMALL(square, Square, false), DTG_SIGNED(square, Square), DTG_UNSIGNED(square, Square),
    DTG_SMALL(sqrt, Sqrt, false),
    DTG_SMALL(rsqrt, Rsqrt, false),
    DTG_SMALL(reciprocal, Reciprocal, false), DTG_SIGNED(reciprocal, Reciprocal),
    DTG_SMALL(relu, Relu, false), DTG_SIGNED(relu, Relu), DTG_UNSIGNED(relu, Relu),
    DTG_SMALL(relu6, Relu6, false), DTG_SIGNED(relu6, Relu6), DTG_UNSIGNED(relu6, Relu6),
    DTG_NO_F32(exp, Exp),
    DTG_NO_F32(expm1, Expm1),
    DTG_NO_F32(log, Log),
    DTG_NO_F32(log1p, Log1p),
    DTG_NO_F32(tanh, Tanh),
    DTG_NO_F32(sigmoid, Sigmoid),
    DTG_NO_F32(softplus, Softplus),
    DTG_NO_F32(elu, Elu),
    DTG_SMALL(softsign, Softsign, false),
    DTG_FLOATS(sin, Sin, true),
    DTG_FLOATS(cos, Cos, true),
    DTG_FLOATS(tan, Tan, true),
    DTG_NO_F32(asin, Asin),
    DTG_NO_F32(acos, Acos),
    DTG_NO_F32(atan, Atan),
    DTG_FLOATS(sinh, Sinh, true),
    DTG_FLOATS(cosh, Cosh, true),
    DTG_FLOATS(asinh, Asinh, true),
    DTG_FLOATS(acosh, Acosh, true),
    DTG_NO_F32(atanh, Atanh),
    DTG_NO_F32(selu, Selu),
    DTG_SIGNED(invert, Invert), DTG_UNSIGNED(invert, Invert),
    DTG_NO_F32(erf, Erf),
    DTG_NO_F32(erfc, Erfc),
    DTG_SMALL(floor, Floor, false),
    DTG_SMALL(ceil, Ceil, false),
    DTG_SMALL(rint, Rint, false),
    // TensorFlow 2.21 answers 0 for every integer here; what its documentation says is the integer itself.
    DTG_SMALL(round, Rint, false), DTG_SIGNED(round, Same),
    DTG_ASK(is_nan, IsNan),
    DTG_ASK(is_inf, IsInf),
    DTG_ASK(is_finite, IsFinite),
};
// clang-format on

}  // namespace

std::span<const ElementBlock> unary_blocks() { return kBlocks; }

}  // namespace dtg::cpu
