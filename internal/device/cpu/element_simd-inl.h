// The loops of vector block functions, for the files that Highway compiles once per instruction set: an op is a struct with of(d, a),
// of(d, a, b) or of(d, a, b, c). Included between Highway's own headers and the ops. Pure functions, any thread.

// Read once for each instruction set.
#if defined(DTG_ELEMENT_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef DTG_ELEMENT_SIMD_INL_H_
#undef DTG_ELEMENT_SIMD_INL_H_
#else
#define DTG_ELEMENT_SIMD_INL_H_
#endif

#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace dtg::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using Vec = hn::Vec<D>;
template <class D>
HWY_INLINE Vec<D> set(D d, double value) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(value));
}

#undef DTG_UNARY
#undef DTG_BINARY
// One struct per op: of(d, a) or of(d, a, b).
#define DTG_UNARY(name, expression)              \
  struct name {                                  \
    template <class D>                           \
    static HWY_INLINE Vec<D> of(D d, Vec<D> a) { \
      (void)d;                                   \
      return expression;                         \
    }                                            \
  }
#define DTG_BINARY(name, expression)                       \
  struct name {                                            \
    template <class D>                                     \
    static HWY_INLINE Vec<D> of(D d, Vec<D> a, Vec<D> b) { \
      (void)d;                                             \
      return expression;                                   \
    }                                                      \
  }

// The first n < lanes elements at `from`, zeros behind them. Masks where they cannot touch what lies behind the
// array; elsewhere through a copy.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE Vec<D> load_part(D d, const T* from, int64_t n) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(n)), d, from);
#else
  HWY_ALIGN T part[hn::MaxLanes(d)] = {};
  for (int64_t k = 0; k < n; ++k) part[k] = from[k];
  return hn::Load(d, part);
#endif
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_part(D d, Vec<D> v, T* to, int64_t n) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(n)), d, to);
#else
  HWY_ALIGN T part[hn::MaxLanes(d)];
  hn::Store(v, d, part);
  for (int64_t k = 0; k < n; ++k) to[k] = part[k];
#endif
}

// What is left behind the last whole vector. Scalars by scalar loads and stores: a masked store would stall whoever loads the value
// next.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE Vec<D> load_rest(D d, const T* from, int64_t n) {
  return n == 1 ? hn::Set(d, *from) : load_part(d, from, n);
}
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_rest(D d, Vec<D> v, T* to, int64_t n) {
  if (n == 1) *to = hn::GetLane(v);
  else store_part(d, v, to, n);
}

template <class T, class Op>
void map1(const void* const* in, void* out, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* a = static_cast<const T*>(in[0]);
  T* y = static_cast<T*>(out);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(Op::of(d, hn::LoadU(d, a + i)), d, y + i);
  if (i < n) store_rest(d, Op::of(d, load_rest(d, a + i, n - i)), y + i, n - i);
}

template <class T, class Op>
void map2(const void* const* in, void* out, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  T* y = static_cast<T*>(out);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(Op::of(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  if (i < n) store_rest(d, Op::of(d, load_rest(d, a + i, n - i), load_rest(d, b + i, n - i)), y + i, n - i);
}

template <class T, class Op>
void map3(const void* const* in, void* out, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  const T* c = static_cast<const T*>(in[2]);
  T* y = static_cast<T*>(out);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(Op::of(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i), hn::LoadU(d, c + i)), d, y + i);
  if (i == n) return;
  const int64_t rest = n - i;
  store_rest(d, Op::of(d, load_rest(d, a + i, rest), load_rest(d, b + i, rest), load_rest(d, c + i, rest)), y + i, rest);
}

}  // namespace HWY_NAMESPACE
}  // namespace dtg::cpu
HWY_AFTER_NAMESPACE();

#endif  // once per instruction set
