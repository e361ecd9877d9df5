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
DTG_ELEMENT2(ReciprocalGrad, -(a * a) * b);

#define DTG_ROW(name, type, op, heavy) {name, dtype_of<type>, 2, loop2<type, op>, heavy}
#define DTG_SMALL(name, op) DTG_ROW(name, Half, op, false), DTG_ROW(name, BFloat16, op, false)
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
    DTG_SMALL("AddV2", Add), DTG_INTEGERS("AddV2", Add),
    DTG_SMALL("Add", Add), DTG_INTEGERS("Add", Add),
    DTG_SMALL("Sub", Sub), DTG_INTEGERS("Sub", Sub),
    DTG_SMALL("Mul", Mul), DTG_INTEGERS("Mul", Mul),
    DTG_SMALL("RealDiv", Div),
    DTG_SMALL("Div", Div), DTG_INTEGERS("Div", Div),
    DTG_FLOATS("DivNoNan", DivNoNan, false),
    DTG_FLOATS("MulNoNan", MulNoNan, false),
    DTG_FLOATS("Xdivy", Xdivy, false),
    DTG_FLOATS("Xlogy", Xlogy, true),
    DTG_FLOATS("Xlog1py", Xlog1py, true),
    DTG_FLOATS("Atan2", Atan2, true),
    DTG_INTEGERS("TruncateDiv", Div),
    DTG_FLOATS("TruncateMod", Remainder, true), DTG_SIGNED("TruncateMod", Remainder),
    DTG_FLOATS("Mod", Remainder, true), DTG_SIGNED("Mod", Remainder),
    DTG_INTEGERS("BitwiseAnd", BitwiseAnd), DTG_INTEGERS("BitwiseOr", BitwiseOr), DTG_INTEGERS("BitwiseXor", BitwiseXor),
    DTG_FLOATS("FloorDiv", FloorDiv, false), DTG_INTEGERS("FloorDiv", FloorDiv),
    DTG_FLOATS("FloorMod", FloorMod, true), DTG_INTEGERS("FloorMod", FloorMod),
    DTG_SMALL("Maximum", Maximum), DTG_INTEGERS("Maximum", Maximum),
    DTG_SMALL("Minimum", Minimum), DTG_INTEGERS("Minimum", Minimum),
    DTG_SMALL("SquaredDifference", SquaredDifference),
    DTG_ROW("SquaredDifference", int32_t, SquaredDifference, false),
    DTG_ROW("SquaredDifference", int64_t, SquaredDifference, false),
    DTG_FLOATS("Pow", Pow, true), DTG_SIGNED("Pow", Pow),
    DTG_SMALL("ReluGrad", ReluGrad), DTG_INTEGERS("ReluGrad", ReluGrad),
    DTG_FLOATS("Relu6Grad", Relu6Grad, false), DTG_INTEGERS("Relu6Grad", Relu6Grad),
    DTG_SMALL("SoftplusGrad", SoftplusGrad), DTG_ROW("SoftplusGrad", double, SoftplusGrad, true),
    DTG_FLOATS("SoftsignGrad", SoftsignGrad, false),
    DTG_FLOATS("SeluGrad", SeluGrad, false),
    DTG_SMALL("EluGrad", EluGrad),
    DTG_SMALL("TanhGrad", TanhGrad),
    DTG_SMALL("SigmoidGrad", SigmoidGrad),
    DTG_SMALL("SqrtGrad", SqrtGrad),
    DTG_SMALL("RsqrtGrad", RsqrtGrad),
    DTG_SMALL("ReciprocalGrad", ReciprocalGrad),
    DTG_SMALL("InvGrad", ReciprocalGrad),
};
// clang-format on

}  // namespace

std::span<const ElementBlock> binary_blocks() { return kBlocks; }

}  // namespace dtg::cpu
