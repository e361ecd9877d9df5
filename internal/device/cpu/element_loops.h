// The generic inner loops: one template per number of operands, applied to small functors. 16-bit floats
// are computed as float and rounded once; integers wrap around. Included by the element_*.cc files only.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "device/cpu/elementwise.h"

namespace dtg::cpu {

template <class T>
inline constexpr bool kIsSmallFloat = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
// The type that arithmetic happens in.
template <class T>
using Computed = std::conditional_t<kIsSmallFloat<T>, float, T>;

// Unsigned, and at least as wide as int, so that overflow wraps instead of being undefined.
template <class T>
using Wrapping = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

template <class C>
C wrap_add(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) return a + b;
  else return static_cast<C>(static_cast<Wrapping<C>>(a) + static_cast<Wrapping<C>>(b));
}
template <class C>
C wrap_sub(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) return a - b;
  else return static_cast<C>(static_cast<Wrapping<C>>(a) - static_cast<Wrapping<C>>(b));
}
template <class C>
C wrap_mul(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) return a * b;
  else return static_cast<C>(static_cast<Wrapping<C>>(a) * static_cast<Wrapping<C>>(b));
}

template <class T, class Op>
void loop1(const void* const* in, void* out, int64_t n) {
  const T* a = static_cast<const T*>(in[0]);
  T* y = static_cast<T*>(out);
  using C = Computed<T>;
  for (int64_t i = 0; i < n; ++i) y[i] = T(Op::template of<C>(static_cast<C>(a[i])));
}

template <class T, class Op>
void loop2(const void* const* in, void* out, int64_t n) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  T* y = static_cast<T*>(out);
  using C = Computed<T>;
  for (int64_t i = 0; i < n; ++i) y[i] = T(Op::template of<C>(static_cast<C>(a[i]), static_cast<C>(b[i])));
}

// The answer is a bool. Reads before it writes at each place, but the operands are wider than the answer,
// so they must not be the same memory unless they are bool themselves.
template <class T, class Op>
void ask1(const void* const* in, void* out, int64_t n) {
  const T* a = static_cast<const T*>(in[0]);
  bool* y = static_cast<bool*>(out);
  using C = Computed<T>;
  for (int64_t i = 0; i < n; ++i) y[i] = Op::template of<C>(static_cast<C>(a[i]));
}

template <class T, class Op>
void ask2(const void* const* in, void* out, int64_t n) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  bool* y = static_cast<bool*>(out);
  using C = Computed<T>;
  for (int64_t i = 0; i < n; ++i) y[i] = Op::template of<C>(static_cast<C>(a[i]), static_cast<C>(b[i]));
}

// A functor whose expression works for every computed type C.
#define DTG_ELEMENT1(name, expression) \
  struct name {                        \
    template <class C>                 \
    static auto of(C a) {              \
      return expression;               \
    }                                  \
  }
#define DTG_ELEMENT2(name, expression) \
  struct name {                        \
    template <class C>                 \
    static auto of(C a, C b) {         \
      return expression;               \
    }                                  \
  }

}  // namespace dtg::cpu
