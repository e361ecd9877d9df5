// Generic two-operand block functions: arithmetic for the types that the vector file does not cover, and
// what has no vector form. Division of integers expects that the caller refused zero divisors. Constant
// data, any thread.
#include "device/cpu/element_loops.h"

namespace dtg::cpu {
namespace {

template <class C>
C max_of(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
  }
  return a < b ? b : a;
}

template <class C>
C min_of(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
  }
  return b < a ? b : a;
}

// The smallest integer divided by -1 does not fit; it wraps like every other overflow.
template <class C>
C quotient(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) return a / b;
  else if constexpr (std::is_unsigned_v<C>) return b == 0 ? C(0) : static_cast<C>(a / b);
  else return b == 0 ? C(0) : (b == -1 ? wrap_sub(C(0), a) : static_cast<C>(a / b));
}

template <class C>
C floor_div_of(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) {
    return std::floor(a / b);
  } else {
    const C q = quotient(a, b);
    if constexpr (std::is_signed_v<C>) {
      if ((a < 0) != (b < 0) && wrap_mul(q, b) != a) return static_cast<C>(q - 1);
    }
    return q;
  }
}

// The remainder has the divisor's sign.
template <class C>
C floor_mod_of(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) {
    const C r = std::fmod(a, b);
    return r != C(0) && (b < C(0)) != (r < C(0)) ? r + b : r;
  } else if constexpr (std::is_unsigned_v<C>) {
    return b == 0 ? C(0) : static_cast<C>(a % b);
  } else {
    if (b == 0 || b == -1) return C(0);
    const auto r = static_cast<C>(a % b);
    return r != 0 && (b < 0) != (r < 0) ? static_cast<C>(r + b) : r;
  }
}

// The remainder has the dividend's sign.
template <class C>
C remainder_of(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) return std::fmod(a, b);
  else if constexpr (std::is_unsigned_v<C>) return b == 0 ? C(0) : static_cast<C>(a % b);
  else return b == 0 || b == -1 ? C(0) : static_cast<C>(a % b);
}

template <class C>
C pow_of(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) {
    return std::pow(a, b);
  } else {
    C result = 1;
    for (C base = a; b > 0; b = static_cast<C>(b >> 1), base = wrap_mul(base, base)) {
      if (b & 1) result = wrap_mul(result, base);
    }
    return result;
  }
}

template <class C>
C square_of(C a) {
  return wrap_mul(a, a);
}

template <class C>
C sigmoid_of(C a) {
  const C e = std::exp(-std::fabs(a));
  return (a < 0 ? e : C(1)) / (e + C(1));
}

// A count outside [0, bits) shifts as far as it can.
template <class C>
int shift_of(C count) {
  constexpr int kLast = static_cast<int>(sizeof(C) * 8) - 1;
  if (count < C(0)) return 0;
  return count > static_cast<C>(kLast) ? kLast : static_cast<int>(count);
}

// clang-format off
DTG_ELEMENT2(Add, wrap_add(a, b));
DTG_ELEMENT2(Sub, wrap_sub(a, b));
DTG_ELEMENT2(Mul, wrap_mul(a, b));
DTG_ELEMENT2(Div, quotient(a, b));
DTG_ELEMENT2(DivNoNan, b == C(0) ? C(0) : a / b);
// Zero wins over NaN and infinity on one side.
DTG_ELEMENT2(MulNoNan, b == C(0) ? C(0) : a * b);
DTG_ELEMENT2(Xdivy, a == C(0) ? C(0) : a / b);
DTG_ELEMENT2(Xlogy, a == C(0) ? C(0) : a * std::log(b));
DTG_ELEMENT2(Xlog1py, a == C(0) ? C(0) : a * std::log1p(b));
DTG_ELEMENT2(Atan2, std::atan2(a, b));
DTG_ELEMENT2(Remainder, remainder_of(a, b));
DTG_ELEMENT2(BitwiseAnd, static_cast<C>(a & b));
DTG_ELEMENT2(BitwiseOr, static_cast<C>(a | b));
DTG_ELEMENT2(BitwiseXor, static_cast<C>(a ^ b));
DTG_ELEMENT2(FloorDiv, floor_div_of(a, b));
DTG_ELEMENT2(FloorMod, floor_mod_of(a, b));
DTG_ELEMENT2(Maximum, max_of(a, b));
DTG_ELEMENT2(Minimum, min_of(a, b));
DTG_ELEMENT2(SquaredDifference, square_of(wrap_sub(a, b)));
DTG_ELEMENT2(Pow, pow_of(a, b));
// (dy, x or y) here, (y, dy) in the rest: TensorFlow's order.
DTG_ELEMENT2(ReluGrad, wrap_mul(a, b > C(0) ? C(1) : C(0)));
DTG_ELEMENT2(Relu6Grad, wrap_mul(a, b > C(0) && b < C(6) ? C(1) : C(0)));
DTG_ELEMENT2(SoftplusGrad, a * sigmoid_of(b));
DTG_ELEMENT2(SoftsignGrad, a / square_of(C(1) + std::fabs(b)));
DTG_ELEMENT2(SeluGrad, b < C(0) ? a * (b + static_cast<C>(1.7580993408473766)) : a * static_cast<C>(1.0507009873554805));
DTG_ELEMENT2(EluGrad, b < C(0) ? (b + C(1)) * a : a);
DTG_ELEMENT2(TanhGrad, b * (C(1) - a * a));
DTG_ELEMENT2(SigmoidGrad, b * (C(1) - a) * a);
DTG_ELEMENT2(SqrtGrad, C(0.5) * b / a);
DTG_ELEMENT2(RsqrtGrad, C(-0.5) * (b * a) * (a * a));
DTG_ELEMENT2(LeftShift, static_cast<C>(static_cast<Wrapping<C>>(a) << shift_of(b)));
DTG_ELEMENT2(RightShift, static_cast<C>(a >> shift_of(b)));
DTG_ELEMENT2(NextAfter, std::nextafter(a, b));
DTG_ELEMENT2(ReciprocalGrad, -(a * a) * b);

#define DTG_ROW(name, type, op, heavy) {ElementFn::name, dtype_of<type>, 2, loop2<type, op>, heavy}
#define DTG_SMALL(name, op) DTG_ROW(name, Half, op, false), DTG_ROW(name, BFloat16, op, false)
#define DTG_NO_F32(name, op) DTG_SMALL(name, op), DTG_ROW(name, double, op, true)
#define DTG_FLOATS(name, op, heavy)                                         \
  DTG_ROW(name, Half, op, heavy), DTG_ROW(name, BFloat16, op, heavy),       \
      DTG_ROW(name, float, op, heavy), DTG_ROW(name, double, op, heavy)
#define DTG_SIGNED(name, op)                                                \
  DTG_ROW(name, int8_t, op, false), DTG_ROW(name, int16_t, op, false),      \
      DTG_ROW(name, int32_t, op, false), DTG_ROW(name, int64_t, op, false)
#define DTG_INTEGERS(name, op)                                              \
  DTG_SIGNED(name, op), DTG_ROW(name, uint8_t, op, false), DTG_ROW(name, uint16_t, op, false), \
      DTG_ROW(name, uint32_t, op, false), DTG_ROW(name, uint64_t, op, false)
constexpr ElementBlock kBlocks[] = {
    DTG_SMALL(add, Add), DTG_INTEGERS(add, Add),
    DTG_SMALL(sub, Sub), DTG_INTEGERS(sub, Sub),
    DTG_SMALL(mul, Mul), DTG_INTEGERS(mul, Mul),
    DTG_SMALL(real_div, Div),
    DTG_SMALL(div, Div), DTG_INTEGERS(div, Div),
    DTG_SMALL(div_no_nan, DivNoNan),
    DTG_SMALL(mul_no_nan, MulNoNan),
    DTG_SMALL(xdivy, Xdivy),
    DTG_NO_F32(xlogy, Xlogy),
    DTG_NO_F32(xlog1py, Xlog1py),
    DTG_NO_F32(atan2, Atan2),
    DTG_INTEGERS(truncate_div, Div),
    DTG_FLOATS(remainder, Remainder, true), DTG_SIGNED(remainder, Remainder),
    DTG_INTEGERS(bitwise_and, BitwiseAnd), DTG_INTEGERS(bitwise_or, BitwiseOr), DTG_INTEGERS(bitwise_xor, BitwiseXor),
    DTG_SMALL(floor_div, FloorDiv), DTG_INTEGERS(floor_div, FloorDiv),
    DTG_FLOATS(floor_mod, FloorMod, true), DTG_INTEGERS(floor_mod, FloorMod),
    DTG_SMALL(maximum, Maximum), DTG_INTEGERS(maximum, Maximum),
    DTG_SMALL(minimum, Minimum), DTG_INTEGERS(minimum, Minimum),
    DTG_SMALL(squared_difference, SquaredDifference),
    DTG_ROW(squared_difference, int32_t, SquaredDifference, false),
    DTG_ROW(squared_difference, int64_t, SquaredDifference, false),
    DTG_FLOATS(pow, Pow, true), DTG_SIGNED(pow, Pow),
    DTG_SMALL(relu_grad, ReluGrad), DTG_INTEGERS(relu_grad, ReluGrad),
    DTG_SMALL(relu6_grad, Relu6Grad), DTG_INTEGERS(relu6_grad, Relu6Grad),
    DTG_SMALL(softplus_grad, SoftplusGrad), DTG_ROW(softplus_grad, double, SoftplusGrad, true),
    DTG_SMALL(softsign_grad, SoftsignGrad),
    DTG_SMALL(selu_grad, SeluGrad),
    DTG_SMALL(elu_grad, EluGrad),
    DTG_SMALL(tanh_grad, TanhGrad),
    DTG_SMALL(sigmoid_grad, SigmoidGrad),
    DTG_SMALL(sqrt_grad, SqrtGrad),
    DTG_SMALL(rsqrt_grad, RsqrtGrad),
    DTG_SMALL(reciprocal_grad, ReciprocalGrad),
    DTG_INTEGERS(left_shift, LeftShift), DTG_INTEGERS(right_shift, RightShift),
    DTG_ROW(next_after, float, NextAfter, false), DTG_ROW(next_after, double, NextAfter, false),
};
// clang-format on

}  // namespace

std::span<const ElementBlock> binary_blocks() { return kBlocks; }

}  // namespace dtg::cpu
