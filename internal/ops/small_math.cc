// Maths with a shape of its own: ClipByValue, Cross, ApproximateEqual, LinSpace, UnravelIndex, Conj.
#include <algorithm>
#include <cmath>
#include <complex>

#include "base/watched.h"
#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/element.h"
#include "ops/integers.h"
#include "ops/pieces.h"
#include "ops/type_lists.h"

namespace dtg::ops {
namespace {

// ---- ClipByValue -------------------------------------------------------------------------------------------

// Each bound is a scalar or as large as the value.
Status clip_shape(InferContext& c) {
  PartialShape out = c.input(0);
  for (int i = 1; i < 3; ++i) {
    // Without a rank it could be a scalar.
    if (!c.input(i).has_rank() || c.input(i).rank() == 0) continue;
    auto merged = PartialShape::merge(out, c.input(i), "the value and a bound");
    if (!merged.ok()) return c.error("%s", merged.status().message().c_str());
    out = merged.take();
  }
  c.output(0, out);
  return {};
}

// dy goes to the value where it lies within the bounds, and to the bound that took its place elsewhere
Status clip_grad(GradContext& c) {
  Build& b = c.b();
  const Value x = c.input(0), dy = c.dy(), zeros = b.zeros_like(dy);
  const Value below = b.op("Less", {x, c.input(1)}), above = b.op("Greater", {x, c.input(2)});
  c.dx(0, b.op("SelectV2", {b.op("LogicalOr", {below, above}), zeros, dy}));
  c.dx_unbroadcast(1, b.op("SelectV2", {below, dy, zeros}), 0);
  c.dx_unbroadcast(2, b.op("SelectV2", {above, dy, zeros}), 0);
  return {};
}

// ---- Cross -------------------------------------------------------------------------------------------------

Status cross_shape(InferContext& c) {
  auto both = PartialShape::merge(c.input(0), c.input(1), "a and b");
  if (!both.ok()) return c.error("%s", both.status().message().c_str());
  const PartialShape shape = both.take();
  DTG_TRY(c.require_rank_at_least(0, 1));
  if (shape.has_rank()) {
    const int64_t last = shape.dim(shape.rank() - 1);
    if (last >= 0 && last != 3) return c.error("the last dimension must be 3, but the shape is %s", shape.text().c_str());
  }
  c.output(0, shape);
  return {};
}

// d(a) = b x dy, d(b) = dy x a
Status cross_grad(GradContext& c) {
  Build& b = c.b();
  c.dx(0, b.op("Cross", {c.input(1), c.dy()}));
  c.dx(1, b.op("Cross", {c.dy(), c.input(0)}));
  return {};
}

struct CountedArgs {
  int64_t count = 0;
  double tolerance = 0;
};

// a b - c d, integers wrapping around.
template <class T>
T cross_of(T a, T b, T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b) - static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
  } else if constexpr (std::is_floating_point_v<T>) {
    return a * b - x * y;
  } else {
    return T(float(a) * float(b) - float(x) * float(y));
  }
}

template <class T>
Status cross_run(RunContext& c) {
  in_pieces(c.pool(), c.args<CountedArgs>().count, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      const T *u = c.in<T>(0) + 3 * i, *v = c.in<T>(1) + 3 * i;
      T* const w = c.out<T>(0) + 3 * i;
      w[0] = cross_of(u[1], v[2], u[2], v[1]);
      w[1] = cross_of(u[2], v[0], u[0], v[2]);
      w[2] = cross_of(u[0], v[1], u[1], v[0]);
    }
  });
  return {};
}

template <class T>
Status cross_prepare(PrepareContext& c) {
  c.args<CountedArgs>()->count = c.input(0).shape.count() / 3;
  return c.sync(cross_run<T>);
}

// ---- ApproximateEqual --------------------------------------------------------------------------------------

Status same_shape(InferContext& c) {
  auto both = PartialShape::merge(c.input(0), c.input(1), "x and y");
  if (!both.ok()) return c.error("%s", both.status().message().c_str());
  c.output(0, both.take());
  return {};
}

template <class T>
Status approximate_run(RunContext& c) {
  const auto& a = c.args<CountedArgs>();
  for (const int64_t i : watched(a.count, 1)) {
    const T x = c.in<T>(0)[i], y = c.in<T>(1)[i];
    if constexpr (std::is_integral_v<T>) {
      // TensorFlow compares the difference in the type itself.
      const T difference = x > y ? static_cast<T>(static_cast<uint64_t>(x) - static_cast<uint64_t>(y))
                                 : static_cast<T>(static_cast<uint64_t>(y) - static_cast<uint64_t>(x));
      c.out<bool>(0)[i] = static_cast<double>(difference) < a.tolerance;
    } else {
      using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
      c.out<bool>(0)[i] = std::fabs(static_cast<C>(x) - static_cast<C>(y)) < static_cast<C>(a.tolerance);
    }
  }
  return {};
}

template <class T>
Status approximate_prepare(PrepareContext& c) {
  *c.args<CountedArgs>() = {c.input(0).shape.count(), static_cast<double>(static_cast<float>(c.attr<double>("tolerance")))};
  return c.sync(approximate_run<T>);
}

template <class... T>
void add_real_kernels(KernelTable& kernels) {
  (kernels.add({.op = "Cross", .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = cross_prepare<T>}), ...);
  (kernels.add({.op = "ApproximateEqual", .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = approximate_prepare<T>}), ...);
}

// ---- LinSpace ----------------------------------------------------------------------------------------------

Status lin_space_shape(InferContext& c) {
  for (int i = 0; i < 3; ++i) DTG_TRY(c.require_rank(i, 0));
  const KnownIntegers num = known_integers(c, 2);
  if (num.known && num.values[0] <= 0) return c.error("num is %lld; it must be positive", static_cast<long long>(num.values[0]));
  c.output(0, PartialShape::vector(num.known ? num.values[0] : -1));
  return {};
}

struct LinSpaceArgs {
  Integers num;
  OutputSpec out;
};

template <class T>
Status lin_space_run(RunContext& c) {
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const auto& a = c.args<LinSpaceArgs>();
  Integers::Buffer buffer;
  const int64_t num = a.num.get(c, buffer)[0];
  if (num <= 0) return c.error("num is %lld; it must be positive", static_cast<long long>(num));
  DTG_ASSIGN(char* memory, a.out.memory(c, Shape::of({num})));
  T* const out = reinterpret_cast<T*>(memory);
  const C start = static_cast<C>(*c.in<T>(0)), stop = static_cast<C>(*c.in<T>(1));
  const C step = num > 1 ? (stop - start) / static_cast<C>(num - 1) : C(0);
  in_pieces(c.pool(), num, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) out[i] = T(start + step * static_cast<C>(i));
  });
  if (num > 1) out[num - 1] = T(stop);
  return {};
}

template <class T>
Status lin_space_prepare(PrepareContext& c) {
  auto* a = c.args<LinSpaceArgs>();
  DTG_TRY(a->num.prepare(c, 2));
  a->out.prepare(c, 0);
  return c.sync(lin_space_run<T>);
}

template <class... T>
void add_lin_space_kernels(KernelTable& kernels) {
  (kernels.add({.op = "LinSpace", .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = lin_space_prepare<T>}), ...);
}

// ---- UnravelIndex ------------------------------------------------------------------------------------------

Status unravel_shape(InferContext& c) {
  const PartialShape &indices = c.input(0), &dims = c.input(1);
  DTG_TRY(c.require_rank(1, 1));
  if (!indices.has_rank()) return {};
  if (indices.rank() > 1) return c.error("the indices must be a scalar or a vector, but have shape %s", indices.text().c_str());
  PartialShape out = PartialShape::vector(dims.dim(0));
  if (indices.rank() == 1) DTG_TRY(out.append(indices.dim(0)));
  c.output(0, out);
  return {};
}

struct UnravelArgs {
  int64_t count = 0;
  Integers dims;
  DType dtype = DType::i32;
};

Status unravel_run(RunContext& c) {
  const auto& a = c.args<UnravelArgs>();
  Integers::Buffer buffer;
  const auto dims = a.dims.get(c, buffer);
  int64_t whole = 1;
  for (int64_t dim : dims) {
    if (dim <= 0 || __builtin_mul_overflow(whole, dim, &whole)) return c.error("dimensions must be positive and small enough to multiply");
  }
  for (const int64_t i : watched(a.count, 20)) {
    int64_t index = integer_at(c.in<char>(0), a.dtype, i);
    if (index < 0 || index >= whole) {
      return c.error("index %lld is %lld, not in [0, %lld)", static_cast<long long>(i), static_cast<long long>(index),
                     static_cast<long long>(whole));
    }
    for (size_t d = dims.size(); d-- > 0; index /= dims[d]) {
      const int64_t at = static_cast<int64_t>(d) * a.count + i;
      if (a.dtype == DType::i32) c.out<int32_t>(0)[at] = static_cast<int32_t>(index % dims[d]);
      else c.out<int64_t>(0)[at] = index % dims[d];
    }
  }
  return {};
}

Status unravel_prepare(PrepareContext& c) {
  auto* a = c.args<UnravelArgs>();
  a->count = c.input(0).shape.count();
  a->dtype = c.input(0).dtype;
  DTG_TRY(a->dims.prepare(c, 1));
  return c.sync(unravel_run);
}

// ---- Conj --------------------------------------------------------------------------------------------------

Status conj_grad(GradContext& c) {
  c.dx(0, c.b().op("Conj", {c.dy()}));
  return {};
}

template <class T>
Status conj_run(RunContext& c) {
  const int64_t count = c.args<CountedArgs>().count;
  for (int64_t i = 0; i < count; ++i) c.out<std::complex<T>>(0)[i] = std::conj(c.in<std::complex<T>>(0)[i]);
  return {};
}

Status conj_prepare(PrepareContext& c) {
  c.args<CountedArgs>()->count = c.input(0).shape.count();
  c.may_overwrite(0, 0);
  return c.sync(c.input(0).dtype == DType::c64 ? conj_run<float> : conj_run<double>);
}

void register_pairs(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("Cross")
              .input("a: T", {.rank_min = 1})
              .input("b: T", {.rank_min = 1})
              .output("product: T")
              .attr(kAttrReals)
              .shape(cross_shape)
              .gradient(cross_grad)
              .doc("The cross products of vectors of three elements."));
  ops.add(OpDef::make("ApproximateEqual")
              .input("x: T")
              .input("y: T")
              .output("z: bool")
              .attr(kAttrNumbers)
              .attr("tolerance: float = 1e-5")
              .shape(same_shape)
              .no_gradient()
              .doc("Is the distance of x and y below the tolerance?"));
  add_real_kernels<float, double, int32_t, int64_t, uint8_t, int8_t, int16_t, uint16_t, uint32_t, uint64_t, Half, BFloat16>(kernels);
}

}  // namespace

void register_small_math(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("ClipByValue")
              .input("t: T")
              .input("clip_value_min: T")
              .input("clip_value_max: T")
              .output("output: T")
              .attr(kAttrNumbers)
              .shape(clip_shape)
              .gradient(clip_grad)
              .doc("Each element, or the bound that it crosses."));
  add_element_kernels(kernels, "ClipByValue", element_prepare, "T", Fusing::none);
  register_pairs(ops, kernels);
  ops.add(OpDef::make("LinSpace")
              .input("start: T", {.rank = 0})
              .input("stop: T", {.rank = 0})
              .input("num: Tidx", {.rank = 0})
              .output("output: T")
              .attr(kAttrFloats)
              .attr("Tidx: {int32, int64} = int32")
              .shape(lin_space_shape)
              .no_gradient()
              .doc("num values from start to stop, all the same distance apart."));
  add_lin_space_kernels<float, double, Half, BFloat16>(kernels);
  ops.add(OpDef::make("UnravelIndex")
              .input("indices: Tidx", {.rank_max = 1})
              .input("dims: Tidx", {.rank = 1})
              .output("output: Tidx")
              .attr("Tidx: {int32, int64} = int32")
              .shape(unravel_shape)
              .no_gradient()
              .doc("The coordinates of flat indices in a tensor of shape dims, a column for each."));
  kernels.add({.op = "UnravelIndex", .prepare = unravel_prepare});
  ops.add(OpDef::make("Conj")
              .input("input: T")
              .output("output: T")
              .attr("T: {complex64, complex128, variant} = complex64")
              .shape(unchanged_shape)
              .gradient(conj_grad)
              .doc("The complex conjugate."));
  kernels.add({.op = "Conj", .types = {{"T", kComplex}}, .prepare = conj_prepare});
}

}  // namespace dtg::ops
