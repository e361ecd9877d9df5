// The update rules, once per instruction set. Each rule is a few lines over vectors; the rest of a range that does
// not fill a vector runs through the same lines one element at a time. 16-bit floats go through float in short
// blocks.
#include "device/cpu/update.h"

#include <algorithm>
#include <cmath>

#include "device/cpu/targets.h"

// Between plain x86-64 and AVX2 nothing would be gained: these loops wait for memory.
#define HWY_DISABLED_TARGETS (DTG_SCALABLE_TARGETS | HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/update.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace dtg::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The operands of a rule at one place. `s` are the scalars in the element's own precision.
template <class D>
struct At {
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;
  D d;
  const UpdateMemory& memory;
  const T* s;
  bool option;
  int64_t i;

  HWY_INLINE V old(int k) const { return hn::LoadU(d, static_cast<const T*>(memory.old[k]) + i); }
  HWY_INLINE V grad() const { return hn::LoadU(d, static_cast<const T*>(memory.grad) + i); }
  HWY_INLINE void set(int k, V value) const { hn::StoreU(value, d, static_cast<T*>(memory.data[k]) + i); }
  HWY_INLINE V all(T value) const { return hn::Set(d, value); }
  HWY_INLINE V all(double value) const requires(!std::is_same_v<T, double>) { return hn::Set(d, static_cast<T>(value)); }
  // -1, 0 or 1; NaN counts as 0.
  HWY_INLINE V sign(V x) const {
    const V zero = hn::Zero(d);
    const V below = hn::IfThenElseZero(hn::Lt(x, zero), all(-1.0));
    return hn::IfThenElse(hn::Gt(x, zero), all(1.0), below);
  }
  // Soft threshold, then the ridge: what the proximal rules do to a plain step. Not soft without l1.
  HWY_INLINE V shrink(V step, V threshold, T l1, V divisor) const {
    if (!(l1 > 0)) return hn::Div(step, divisor);
    const V size = hn::Max(hn::Sub(hn::Abs(step), threshold), hn::Zero(d));
    return hn::Div(hn::Mul(sign(step), size), divisor);
  }
};

template <UpdateRule>
struct Rule;

template <>
struct Rule<UpdateRule::add> {
  template <class D>
  static HWY_INLINE void step(const At<D>& at) {
    at.set(0, hn::Add(at.old(0), at.grad()));
  }
};

template <>
struct Rule<UpdateRule::subtract> {
  template <class D>
  static HWY_INLINE void step(const At<D>& at) {
    at.set(0, hn::Sub(at.old(0), at.grad()));
  }
};

template <>
struct Rule<UpdateRule::multiply> {
  template <class D>
  static HWY_INLINE void step(const At<D>& at) {
    at.set(0, hn::Mul(at.old(0), at.grad()));
  }
};

template <>
struct Rule<UpdateRule::gradient_descent> {
  template <class D>
  static HWY_INLINE void step(const At<D>& at) {
    at.set(0, hn::Sub(at.old(0), hn::Mul(at.grad(), at.all(at.s[0]))));
  }
};

template <>
struct Rule<UpdateRule::proximal_gradient_descent> {
  template <class D>
  static HWY_INLINE void step(const At<D>& at) {
    const auto alpha = at.s[0], l1 = at.s[1], l2 = at.s[2];
    const auto plain = hn::Sub(at.old(0), hn::Mul(at.grad(), at.all(alpha)));
    at.set(0, at.shrink(plain, at.all(alpha * l1), l1, at.all(1 + l2 * alpha)));
  }
};

template <>
struct Rule<UpdateRule::momentum> {
  template <class D>
  static HWY_INLINE void step(const At<D>& at) {
    const auto lr = at.all(at.s[0]), momentum = at.all(at.s[1]);
    const auto grad = at.grad();
    const auto accum = hn::Add(hn::Mul(at.old(1), momentum), grad);
    at.set(1, accum);
    const auto delta = at.option ? hn::Add(hn::Mul(grad, lr), hn::Mul(hn::Mul(accum, momentum), lr)) : hn::Mul(accum, lr);
    at.set(0, hn::Sub(at.old(0), delta));
  }
};

template <>
struct Rule<UpdateRule::keras_momentum> {
  template <class D>
  static HWY_INLINE void step(const At<D>& at) {
    const auto lr = at.all(at.s[0]), momentum = at.all(at.s[1]);
    const auto step = hn::Mul(at.grad(), lr);
    const auto accum = hn::Sub(hn::Mul(at.old(1), momentum), step);
    at.set(1, accum);
    at.set(0, hn::Add(at.old(0), at.option ? hn::Sub(hn::Mul(accum, momentum), step) : accum));
  }
};

// m and v of the Adam family, stored; `rate` is lr * sqrt(1 - beta2_power) / (1 - beta1_power).
template <class D>
HWY_INLINE void adam_moments(const At<D>& at, hn::Vec<D>* m, hn::Vec<D>* v) {
  const auto grad = at.grad(), m0 = at.old(1), v0 = at.old(2);
  *m = hn::Add(m0, hn::Mul(hn::Sub(grad, m0), at.all(1 - at.s[3])));
  *v = hn::Add(v0, hn::Mul(hn::Sub(hn::Mul(grad, grad), v0), at.all(1 - at.s[4])));
  at.set(1, *m);
  at.set(2, *v);
}
template <class T>
HWY_INLINE T adam_rate(const T* s) {
  return s[2] * std::sqrt(1 - s[1]) / (1 - s[0]);
}

template <>
struct Rule<UpdateRule::adam> {
  template <class D>
  static HWY_INLINE void step(const At<D>& at) {
    const auto rate = at.all(adam_rate(at.s)), beta1 = at.all(at.s[3]), epsilon = at.all(at.s[5]);
    hn::Vec<D> m, v;
    adam_moments(at, &m, &v);
    const auto ahead = at.option ? hn::Add(hn::Mul(at.grad(), at.all(1 - at.s[3])), hn::Mul(beta1, m)) : m;
    at.set(0, hn::Sub(at.old(0), hn::Div(hn::Mul(ahead, rate), hn::Add(hn::Sqrt(v), epsilon))));
  }
};

// Keras decays first and steps then; the step does not look at var, so it is one pass.
template <>
struct Rule<UpdateRule::adam_w> {
  template <class D>
  static HWY_INLINE void step(const At<D>& at) {
    hn::Vec<D> m, v;
    adam_moments(at, &m, &v);
    const auto decayed = hn::Sub(at.old(0), hn::Mul(at.old(0), at.all(at.s[2] * at.s[6])));
    const auto divisor = hn::Add(hn::Sqrt(v), at.all(at.s[5]));
    at.set(0, hn::Sub(decayed, hn::Div(hn::Mul(m, at.all(adam_rate(at.s))), divisor)));
  }
};

template <>
struct Rule<UpdateRule::adam_amsgrad> {
  template <class D>
  static HWY_INLINE void step(const At<D>& at) {
    hn::Vec<D> m, v;
    adam_moments(at, &m, &v);
    const auto vhat = hn::Max(at.old(3), v);
    at.set(3, vhat);
    const auto divisor = hn::Add(hn::Sqrt(vhat), at.all(at.s[5]));
    at.set(0, hn::Sub(at.old(0), hn::Div(hn::Mul(m, at.all(adam_rate(at.s))), divisor)));
  }
};

template <>
struct Rule<UpdateRule::ada_max> {
  template <class D>
  static HWY_INLINE void step(const At<D>& at) {
    const auto rate = at.all(at.s[1] / (1 - at.s[0]));
    const auto grad = at.grad(), m0 = at.old(1);
    const auto m = hn::Add(m0, hn::Mul(hn::Sub(grad, m0), at.all(1 - at.s[2])));
    const auto v = hn::Max(hn::Mul(at.all(at.s[3]), at.old(2)), hn::Abs(grad));
    at.set(1, m);
    at.set(2, v);
    at.set(0, hn::Sub(at.old(0), hn::Mul(rate, hn::Div(m, hn::Add(v, at.all(at.s[4]))))));
  }
};

template <class D>
HWY_INLINE hn::Vec<D> squares(const At<D>& at, bool wanted) {
  const auto before = at.old(1), grad = at.grad();
  const auto sum = wanted ? hn::Add(before, hn::Mul(grad, grad)) : before;
  at.set(1, sum);
  return sum;
}

template <>
struct Rule<UpdateRule::adagrad> {
  template <class D>
  static HWY_INLINE void step(const At<D>& at) {
    const auto sum = squares(at, at.option);
    at.set(0, hn::Sub(at.old(0), hn::Div(hn::Mul(at.grad(), at.all(at.s[0])), hn::Sqrt(sum))));
  }
};

template <>
struct Rule<UpdateRule::adagrad_v2> {
  template <class D>
  static HWY_INLINE void step(const At<D>& at) {
    const auto divisor = hn::Add(hn::Sqrt(squares(at, at.option)), at.all(at.s[1]));
    at.set(0, hn::Sub(at.old(0), hn::Div(hn::Mul(at.grad(), at.all(at.s[0])), divisor)));
  }
};

template <>
struct Rule<UpdateRule::adagrad_da> {
  template <class D>
  static HWY_INLINE void step(const At<D>& at) {
    const auto lr = at.s[0], l1 = at.s[1], l2 = at.s[2], steps = at.s[3];
    const auto grad = at.grad();
    const auto sum = hn::Add(at.old(1), grad);
    const auto of_squares = hn::Add(at.old(2), hn::Mul(grad, grad));
    at.set(1, sum);
    at.set(2, of_squares);
    const auto divisor = hn::Add(at.all(l2 * steps * lr), hn::Sqrt(of_squares));
    auto size = sum;
    if (l1 > 0) size = hn::Mul(at.sign(sum), hn::Max(hn::Sub(hn::Abs(sum), at.all(l1 * steps)), hn::Zero(at.d)));
    at.set(0, hn::Div(hn::Mul(at.all(-lr), size), divisor));
  }
};

template <>
struct Rule<UpdateRule::proximal_adagrad> {
  template <class D>
  static HWY_INLINE void step(const At<D>& at) {
    const auto l1 = at.s[1], l2 = at.s[2];
    const auto rate = hn::Div(at.all(at.s[0]), hn::Sqrt(squares(at, true)));
    const auto plain = hn::Sub(at.old(0), hn::Mul(at.grad(), rate));
    const auto divisor = hn::Add(at.all(1.0), hn::Mul(at.all(l2), rate));
    at.set(0, at.shrink(plain, hn::Mul(rate, at.all(l1)), l1, divisor));
  }
};

template <>
struct Rule<UpdateRule::adadelta> {
  template <class D>
  static HWY_INLINE void step(const At<D>& at) {
    const auto lr = at.all(at.s[0]), rho = at.all(at.s[1]), rest = at.all(1 - at.s[1]), epsilon = at.all(at.s[2]);
    const auto grad = at.grad();
    const auto accum = hn::Add(hn::Mul(at.old(1), rho), hn::Mul(hn::Mul(grad, grad), rest));
    const auto before = at.old(2);
    const auto scale = hn::Div(hn::Sqrt(hn::Add(before, epsilon)), hn::Sqrt(hn::Add(accum, epsilon)));
    const auto change = hn::Mul(scale, grad);
    at.set(1, accum);
    at.set(0, hn::Sub(at.old(0), hn::Mul(change, lr)));
    at.set(2, hn::Add(hn::Mul(before, rho), hn::Mul(hn::Mul(change, change), rest)));
  }
};

// var -= mom, with mom = momentum * mom + lr * grad / sqrt(mean).
template <class D>
HWY_INLINE void rms_step(const At<D>& at, int mom, hn::Vec<D> mean) {
  const auto push = hn::Div(hn::Mul(at.grad(), at.all(at.s[0])), hn::Sqrt(mean));
  const auto speed = hn::Add(hn::Mul(at.old(mom), at.all(at.s[2])), push);
  at.set(mom, speed);
  at.set(0, hn::Sub(at.old(0), speed));
}

template <>
struct Rule<UpdateRule::rms_prop> {
  template <class D>
  static HWY_INLINE void step(const At<D>& at) {
    const auto grad = at.grad(), before = at.old(1);
    const auto ms = hn::Add(before, hn::Mul(hn::Sub(hn::Mul(grad, grad), before), at.all(1 - at.s[1])));
    at.set(1, ms);
    rms_step(at, 2, hn::Add(ms, at.all(at.s[3])));
  }
};

template <>
struct Rule<UpdateRule::centered_rms_prop> {
  template <class D>
  static HWY_INLINE void step(const At<D>& at) {
    const auto rest = at.all(1 - at.s[1]);
    const auto grad = at.grad(), mg0 = at.old(1), ms0 = at.old(2);
    const auto ms = hn::Add(ms0, hn::Mul(hn::Sub(hn::Mul(grad, grad), ms0), rest));
    const auto mg = hn::Add(mg0, hn::Mul(hn::Sub(grad, mg0), rest));
    at.set(1, mg);
    at.set(2, ms);
    rms_step(at, 3, hn::Add(hn::Sub(ms, hn::Mul(mg, mg)), at.all(at.s[3])));
  }
};

// m = beta * m + (1 - beta) * grad, stored; the answer is whether grad and m agree: -1, 0 or 1.
template <class D>
HWY_INLINE hn::Vec<D> agreement(const At<D>& at) {
  const auto grad = at.grad();
  const auto m = hn::Add(hn::Mul(at.old(1), at.all(at.s[3])), hn::Mul(grad, at.all(1 - at.s[3])));
  at.set(1, m);
  return hn::Mul(at.sign(grad), at.sign(m));
}

template <>
struct Rule<UpdateRule::add_sign> {
  template <class D>
  static HWY_INLINE void step(const At<D>& at) {
    const auto scale = hn::Add(at.all(at.s[1]), hn::Mul(at.all(at.s[2]), agreement(at)));
    at.set(0, hn::Sub(at.old(0), hn::Mul(hn::Mul(at.all(at.s[0]), scale), at.grad())));
  }
};

template <>
struct Rule<UpdateRule::power_sign> {
  template <class D>
  static HWY_INLINE void step(const At<D>& at) {
    // exp() of a sign takes three values; s[4] and s[5] are exp(x) and exp(-x), see own_scalars.
    const auto agrees = agreement(at);
    const auto zero = hn::Zero(at.d);
    const auto other = hn::IfThenElse(hn::Lt(agrees, zero), at.all(at.s[5]), at.all(1.0));
    const auto scale = hn::IfThenElse(hn::Gt(agrees, zero), at.all(at.s[4]), other);
    at.set(0, hn::Sub(at.old(0), hn::Mul(hn::Mul(at.all(at.s[0]), scale), at.grad())));
  }
};

template <>
struct Rule<UpdateRule::ftrl> {
  // One element at a time: the power is the C library's, and the rule is seldom used on much.
  template <class D>
  static HWY_INLINE void step(const At<D>& at) {
    using T = hn::TFromD<D>;
    const T lr = at.s[0], l1 = at.s[1], l2 = at.s[2], shrinkage = at.s[3], power = at.s[4];
    const auto root = [&](T x) { return power == T(-0.5) ? std::sqrt(x) : std::pow(x, -power); };
    const auto* const olds = at.memory.old;
    auto* const data = at.memory.data;
    const int64_t end = at.i + static_cast<int64_t>(hn::Lanes(at.d));
    for (int64_t i = at.i; i < end; ++i) {
      const T grad = static_cast<const T*>(at.memory.grad)[i];
      const T var = static_cast<const T*>(olds[0])[i], accum0 = static_cast<const T*>(olds[1])[i];
      const T accum = accum0 + grad * grad;
      const T shrunk = grad + 2 * shrinkage * var;
      const T change = root(accum) - root(accum0);
      const T pull = at.option ? shrunk * lr : shrunk, pulled = at.option ? change * var : change / lr * var;
      const T linear0 = static_cast<const T*>(olds[2])[i];
      // TensorFlow's two orders. Where the learning rate is small the terms are large, and the order shows.
      const T linear = at.s[5] > 0 ? linear0 + pull - pulled : linear0 + (pull - pulled);
      const T limit = at.option ? l1 * lr : l1;
      const T divisor = at.option ? root(accum) + 2 * l2 * lr : root(accum) / lr + 2 * l2;
      const T sign = linear > 0 ? T(1) : linear < 0 ? T(-1) : T(0);
      static_cast<T*>(data[0])[i] = std::abs(linear) > limit ? (limit * sign - linear) / divisor : T(0);
      static_cast<T*>(data[1])[i] = accum;
      static_cast<T*>(data[2])[i] = linear;
    }
  }
};

template <>
struct Rule<UpdateRule::average> {
  template <class D>
  static HWY_INLINE void step(const At<D>& at) {
    const auto var = at.old(0);
    const auto mean = hn::Add(hn::Mul(at.all(at.s[0]), at.old(1)), hn::Mul(at.all(1 - at.s[0]), var));
    at.set(1, mean);
    at.set(0, at.s[1] > 0 ? mean : var);
  }
};

template <UpdateRule kRule, class T>
HWY_NOINLINE void run_rule(const T* s, bool option, const UpdateMemory& memory, int64_t from, int64_t to) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = from;
  for (; i + lanes <= to; i += lanes) Rule<kRule>::step(At<decltype(d)>{d, memory, s, option, i});
  for (; i < to; ++i) Rule<kRule>::step(At<decltype(one)>{one, memory, s, option, i});
}

// The scalars in the element's precision, because that is what the formulas are defined in.
template <class T>
void own_scalars(const UpdateLoop& loop, T* s) {
  for (int k = 0; k < kUpdateScalars; ++k) s[k] = static_cast<T>(loop.scalar[k]);
  if (loop.rule != UpdateRule::power_sign) return;
  s[4] = std::exp(s[1] * s[2]);
  s[5] = std::exp(-(s[1] * s[2]));
}

template <class T>
void run(const UpdateLoop& loop, const UpdateMemory& memory, int64_t from, int64_t to) {
  T s[kUpdateScalars];
  own_scalars(loop, s);
#define DTG_RULE(name) \
  case UpdateRule::name: return run_rule<UpdateRule::name, T>(s, loop.option, memory, from, to)
  switch (loop.rule) {
    DTG_RULE(add);
    DTG_RULE(subtract);
    DTG_RULE(multiply);
    DTG_RULE(gradient_descent);
    DTG_RULE(proximal_gradient_descent);
    DTG_RULE(momentum);
    DTG_RULE(keras_momentum);
    DTG_RULE(adam);
    DTG_RULE(adam_w);
    DTG_RULE(adam_amsgrad);
    DTG_RULE(ada_max);
    DTG_RULE(adagrad);
    DTG_RULE(adagrad_v2);
    DTG_RULE(adagrad_da);
    DTG_RULE(proximal_adagrad);
    DTG_RULE(adadelta);
    DTG_RULE(rms_prop);
    DTG_RULE(centered_rms_prop);
    DTG_RULE(add_sign);
    DTG_RULE(power_sign);
    DTG_RULE(ftrl);
    DTG_RULE(average);
  }
#undef DTG_RULE
}

void update_floats(const UpdateLoop& loop, const UpdateMemory& memory, int64_t from, int64_t to) { run<float>(loop, memory, from, to); }
void update_doubles(const UpdateLoop& loop, const UpdateMemory& memory, int64_t from, int64_t to) { run<double>(loop, memory, from, to); }

}  // namespace HWY_NAMESPACE
}  // namespace dtg::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dtg::cpu {
HWY_EXPORT(update_floats);
HWY_EXPORT(update_doubles);

namespace {

template <class Half>
void update_halves(const UpdateLoop& loop, const UpdateMemory& memory, int64_t from, int64_t to) {
  constexpr int64_t kBlock = 256;
  float values[kUpdateVariables][kBlock], grad[kBlock];
  UpdateMemory block;
  for (int k = 0; k < loop.variables; ++k) block.old[k] = block.data[k] = values[k];
  block.grad = grad;
  for (; from < to; from += kBlock) {
    const int64_t n = std::min(kBlock, to - from);
    for (int k = 0; k < loop.variables; ++k) std::copy_n(static_cast<const Half*>(memory.old[k]) + from, n, values[k]);
    if (memory.grad) std::copy_n(static_cast<const Half*>(memory.grad) + from, n, grad);
    HWY_DYNAMIC_DISPATCH(update_floats)(loop, block, 0, n);
    for (int k = 0; k < loop.variables; ++k) {
      for (int64_t i = 0; i < n; ++i) static_cast<Half*>(memory.data[k])[from + i] = Half(values[k][i]);
    }
  }
}

}  // namespace

void update_elements(const UpdateLoop& loop, const UpdateMemory& memory, int64_t from, int64_t to) {
  switch (loop.dtype) {
    case DType::f64: return HWY_DYNAMIC_DISPATCH(update_doubles)(loop, memory, from, to);
    case DType::f16: return update_halves<Half>(loop, memory, from, to);
    case DType::bf16: return update_halves<BFloat16>(loop, memory, from, to);
    default: return HWY_DYNAMIC_DISPATCH(update_floats)(loop, memory, from, to);
  }
}

}  // namespace dtg::cpu
#endif
