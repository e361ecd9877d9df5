// MaxPool3D, AvgPool3D and their gradients. One plane of output is the unit of what looks into windows, one volume that of what adds
// into them; the end of the run is looked for within both. Registered once by the runtime; kernels run on any thread.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/watched.h"
#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/window3.h"

namespace dtg::ops {
namespace {

// ---- shapes ------------------------------------------------------------------------------------------------

Result<PartialShape> pooled_volume(InferContext& c, const PartialShape& volume) {
  DTG_ASSIGN(const Window3 w, window3_of(c.node()));
  return windowed_shape(c.node(), w, volume, volume.has_rank() ? volume.dim(w.channel_axis()) : -1);
}

Status pool_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 5));
  DTG_ASSIGN(const PartialShape out, pooled_volume(c, c.input(0)));
  c.output(0, out);
  return {};
}

Status agree(InferContext& c, const PartialShape& want, int input, const char* name) {
  DTG_TRY(c.require_rank(input, 5));
  auto merged = PartialShape::merge(want, c.input(input), "shape");
  if (!merged.ok()) return c.error("%s: %s", name, merged.status().message().c_str());
  return {};
}

Status max_grad_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 5));
  DTG_ASSIGN(const PartialShape pooled, pooled_volume(c, c.input(0)));
  DTG_TRY(agree(c, pooled, 1, "orig_output"));
  DTG_TRY(agree(c, pooled, 2, "grad"));
  c.output(0, c.input(0).has_rank() ? c.input(0) : PartialShape::of_rank(5));
  return {};
}

Status max_grad_grad_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 5));
  DTG_ASSIGN(const PartialShape pooled, pooled_volume(c, c.input(0)));
  DTG_TRY(agree(c, pooled, 1, "orig_output"));
  DTG_TRY(agree(c, c.input(0), 2, "grad"));
  c.output(0, pooled);
  return {};
}

Status avg_grad_shape(InferContext& c) {
  DTG_ASSIGN(PartialShape volume, c.shape_from_input(0));
  if (volume.has_rank() && volume.rank() != 5) return c.error("orig_input_shape must have 5 elements, but has %d", volume.rank());
  if (!volume.has_rank()) volume = PartialShape::of_rank(5);
  DTG_ASSIGN(const PartialShape pooled, pooled_volume(c, volume));
  DTG_TRY(agree(c, pooled, 1, "grad"));
  c.output(0, volume);
  return {};
}

// ---- gradients ---------------------------------------------------------------------------------------------

Value like_this(GradContext& c, std::string_view op, std::initializer_list<Value> inputs) {
  static constexpr std::string_view kNames[] = {"ksize", "strides", "padding", "data_format"};
  const auto attrs = window_attrs(c.node(), kNames);
  return c.b().op(op, std::span(inputs.begin(), inputs.size()), std::span<const Attr>(attrs));
}

Status max_grad(GradContext& c) {
  c.dx(0, like_this(c, "MaxPool3DGrad", {c.input(0), c.output(0), c.dy()}));
  return {};
}

// Linear in `grad`; the volumes only decide where.
Status max_grad_of(GradContext& c, std::string_view op) {
  c.dx(0, c.b().zeros_like(c.input(0)));
  c.dx(1, c.b().zeros_like(c.input(1)));
  c.dx(2, like_this(c, op, {c.input(0), c.input(1), c.dy()}));
  return {};
}
Status max_grad_grad(GradContext& c) { return max_grad_of(c, "MaxPool3DGradGrad"); }
Status max_grad_grad_grad(GradContext& c) { return max_grad_of(c, "MaxPool3DGrad"); }

Status avg_grad(GradContext& c) {
  c.dx(0, like_this(c, "AvgPool3DGrad", {c.b().shape(c.input(0)), c.dy()}));
  return {};
}
Status avg_grad_grad(GradContext& c) {
  c.dx(1, like_this(c, "AvgPool3D", {c.dy()}));
  return {};
}

// ---- kernels -----------------------------------------------------------------------------------------------

struct PoolArgs3 {
  Volume volume;
  VolumeLayout to;
  int64_t shards = 1;
};

// Places of a window between two looks. Smaller windows have none: whoever goes from one to the next looks there.
constexpr int64_t kWindowStretch = 10'000;

// The places of one window that exist.
struct Clip3 {
  std::array<int64_t, 3> begin, end;
  Clip3(const Volume& v, int64_t oz, int64_t oy, int64_t ox) {
    const std::array<int64_t, 3> at = {oz, oy, ox};
    for (size_t i = 0; i < 3; ++i) {
      const int64_t first = at[i] * v.window.stride[i] - v.before[i];
      begin[i] = std::max<int64_t>(first, 0), end[i] = std::min(first + v.window.size[i], v.in[i]);
    }
  }
  int64_t count() const {
    int64_t n = 1;
    for (size_t i = 0; i < 3; ++i) n *= std::max<int64_t>(end[i] - begin[i], 0);
    return n;
  }
  // fn(offset of the channels) for each place; of a large window, `lookout` is told of every stretch of a row, so many steps a place.
  template <class Fn>
  void each(const VolumeLayout& from, int64_t n, int64_t steps, Lookout& lookout, Fn fn) const {
    if (count() > kWindowStretch) return each_of_many(from, n, steps, lookout, fn);
    for (int64_t z = begin[0]; z < end[0]; ++z) {
      for (int64_t y = begin[1]; y < end[1]; ++y) {
        for (int64_t x = begin[2]; x < end[2]; ++x) fn(from.at(n, z, y, x));
      }
    }
  }

 private:
  template <class Fn>
  [[gnu::noinline]] void each_of_many(const VolumeLayout& from, int64_t n, int64_t steps, Lookout& lookout, Fn fn) const {
    for (int64_t z = begin[0]; z < end[0]; ++z) {
      for (int64_t y = begin[1]; y < end[1]; ++y) {
        for (int64_t first = begin[2]; first < end[2]; first += kWindowStretch) {
          const int64_t last = std::min(first + kWindowStretch, end[2]);
          for (int64_t x = first; x < last; ++x) fn(from.at(n, z, y, x));
          lookout.after(steps * (last - first));
        }
      }
    }
  }
};

// fn(n, window, offset of the output's channels, lookout) for the outputs of volumes [begin, end) of planes.
template <class Fn>
void for_planes(const PoolArgs3& a, int64_t begin, int64_t end, Fn fn) {
  const Volume& v = a.volume;
  int64_t window = 1;
  for (size_t i = 0; i < 3; ++i) window = std::min(window * std::min(v.window.size[i], kWindowStretch), kWindowStretch);
  Lookout lookout;
  for (int64_t plane = begin; plane < end; ++plane) {
    const int64_t n = plane / v.out[0], z = plane % v.out[0];
    for (int64_t y = 0; y < v.out[1]; ++y) {
      for (int64_t x = 0; x < v.out[2]; ++x) {
        fn(n, Clip3(v, z, y, x), a.to.at(n, z, y, x), lookout);
        lookout.after((4 + window) * v.channels);
      }
    }
  }
}

// Shards of planes; of whole volumes where windows add into what they share.
template <class Fn>
void for_shards(RunContext& c, const PoolArgs3& a, bool whole, Fn fn) {
  const int64_t units = whole ? a.volume.batch : a.volume.batch * a.volume.out[0], each = whole ? a.volume.out[0] : 1;
  const int64_t shards = std::clamp<int64_t>(units, 1, a.shards);
  c.pool().parallel_for(shards, [&](int64_t shard) { fn(units * shard / shards, units * (shard + 1) / shards, each); });
}

template <class T>
T lowest() {
  if constexpr (std::is_same_v<T, Half>) return Half(-65504.0f);
  if constexpr (std::is_same_v<T, BFloat16>) return BFloat16(-3.3895314e38f);
  if constexpr (std::is_arithmetic_v<T>) return std::numeric_limits<T>::lowest();
}

template <class T>
using WideOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
Status max_run(RunContext& c) {
  const auto& a = c.args<PoolArgs3>();
  const T* x = c.in<T>(0);
  for_shards(c, a, false, [&](int64_t begin, int64_t end, int64_t) {
    for_planes(a, begin, end, [&](int64_t n, const Clip3& clip, int64_t to, Lookout& lookout) {
      T* y = c.out<T>(0) + to;
      for (int64_t k = 0; k < a.volume.channels; ++k) y[k * a.to.channel] = lowest<T>();
      clip.each(a.volume.from, n, a.volume.channels, lookout, [&](int64_t at) {
        for (int64_t k = 0; k < a.volume.channels; ++k) {
          const T value = x[at + k * a.volume.from.channel];
          if (y[k * a.to.channel] < value) y[k * a.to.channel] = value;
        }
      });
    });
  });
  return {};
}

// As TensorFlow's: whatever equals the maximum, to 1e-5, takes the gradient.
template <class T>
Status max_grad_run(RunContext& c) {
  const auto& a = c.args<PoolArgs3>();
  using Wide = WideOf<T>;
  const T *x = c.in<T>(0), *y = c.in<T>(1), *dy = c.in<T>(2);
  T* dx = c.out<T>(0);
  for_shards(c, a, true, [&](int64_t begin, int64_t end, int64_t planes) {
    watched_fill(dx + begin * a.volume.from.volume, dx + end * a.volume.from.volume, T());
    for_planes(a, begin * planes, end * planes, [&](int64_t n, const Clip3& clip, int64_t to, Lookout& lookout) {
      clip.each(a.volume.from, n, a.volume.channels, lookout, [&](int64_t at) {
        for (int64_t k = 0; k < a.volume.channels; ++k) {
          const int64_t own = at + k * a.volume.from.channel, pooled = to + k * a.to.channel;
          const Wide off = static_cast<Wide>(x[own]) - static_cast<Wide>(y[pooled]);
          if (std::fabs(off) < Wide(1e-5)) dx[own] = static_cast<T>(static_cast<Wide>(dx[own]) + static_cast<Wide>(dy[pooled]));
        }
      });
    });
  });
  return {};
}

template <class T>
Status max_grad_grad_run(RunContext& c) {
  const auto& a = c.args<PoolArgs3>();
  const T *x = c.in<T>(0), *y = c.in<T>(1), *g = c.in<T>(2);
  for_shards(c, a, false, [&](int64_t begin, int64_t end, int64_t) {
    for_planes(a, begin, end, [&](int64_t n, const Clip3& clip, int64_t to, Lookout& lookout) {
      for (int64_t k = 0; k < a.volume.channels; ++k) {
        int64_t found = -1;
        clip.each(a.volume.from, n, 1, lookout, [&](int64_t at) {
          const int64_t own = at + k * a.volume.from.channel;
          if (found < 0 && x[own] == y[to + k * a.to.channel]) found = own;
        });
        c.out<T>(0)[to + k * a.to.channel] = found < 0 ? T() : g[found];
      }
    });
  });
  return {};
}

constexpr int64_t kColumns = 64;  // sums held at a time

// Windows of more places are added up in double: one float after the other would swallow what is small beside their sum.
constexpr int64_t kFloatMost = 512;

// The mean of a window, added up in Sum.
template <class Sum, class T>
void average(const PoolArgs3& a, const T* x, const Clip3& clip, int64_t n, T* to, Lookout& lookout) {
  const Sum share = Sum(1) / static_cast<Sum>(clip.count());
  for (int64_t first = 0; first < a.volume.channels; first += kColumns) {
    const int64_t count = std::min(kColumns, a.volume.channels - first);
    Sum sum[kColumns] = {};
    clip.each(a.volume.from, n, count, lookout, [&](int64_t at) {
      for (int64_t k = 0; k < count; ++k) sum[k] += static_cast<Sum>(x[at + (first + k) * a.volume.from.channel]);
    });
    for (int64_t k = 0; k < count; ++k) to[(first + k) * a.to.channel] = static_cast<T>(static_cast<WideOf<T>>(sum[k] * share));
  }
}

template <class T>
Status avg_run(RunContext& c) {
  const auto& a = c.args<PoolArgs3>();
  const T* x = c.in<T>(0);
  for_shards(c, a, false, [&](int64_t begin, int64_t end, int64_t) {
    for_planes(a, begin, end, [&](int64_t n, const Clip3& clip, int64_t to, Lookout& lookout) {
      if (clip.count() > kFloatMost) average<double>(a, x, clip, n, c.out<T>(0) + to, lookout);
      else average<WideOf<T>>(a, x, clip, n, c.out<T>(0) + to, lookout);
    });
  });
  return {};
}

// One volume after the other, each window's share added to all of its places.
template <class T>
void avg_grad_volumes(const PoolArgs3& a, const T* dy, T* dx, int64_t begin, int64_t end) {
  using Wide = WideOf<T>;
  watched_fill(dx + begin * a.volume.from.volume, dx + end * a.volume.from.volume, T());
  for_planes(a, begin * a.volume.out[0], end * a.volume.out[0], [&](int64_t n, const Clip3& clip, int64_t to, Lookout& lookout) {
    const Wide share = Wide(1) / static_cast<Wide>(clip.count());
    clip.each(a.volume.from, n, a.volume.channels, lookout, [&](int64_t at) {
      for (int64_t k = 0; k < a.volume.channels; ++k) {
        T& place = dx[at + k * a.volume.from.channel];
        place = static_cast<T>(static_cast<Wide>(place) + static_cast<Wide>(dy[to + k * a.to.channel]) * share);
      }
    });
  });
}

Status set_pool3(const Node& node, PoolArgs3& a, const Shape& volume) {
  DTG_ASSIGN(const Window3 w, window3_of(node));
  DTG_TRY(a.volume.set(node, w, volume));
  a.to = {w.first, a.volume.out, a.volume.channels};
  const double work = static_cast<double>(a.volume.batch * a.to.volume) * static_cast<double>(w.size[0]) * static_cast<double>(w.size[1]) *
                      static_cast<double>(w.size[2]);
  a.shards = static_cast<int64_t>(std::clamp(work / 65536, 1.0, 16.0));
  return {};
}

template <SyncFn kRun>
Status volume_prepare(PrepareContext& c) {
  DTG_TRY(set_pool3(c.node(), *c.args<PoolArgs3>(), c.input(0).shape));
  return c.sync(kRun);
}

struct AvgGradArgs {
  Integers sizes;
  OutputSpec out;
  Shape grad;
};

template <class T>
Status avg_grad_run(RunContext& c) {
  const auto& late = c.args<AvgGradArgs>();
  Integers::Buffer buffer;
  const auto shape = Shape::make(late.sizes.get(c, buffer));
  if (!shape.ok()) return c.error("orig_input_shape: %s", shape.status().message().c_str());
  PoolArgs3 a;
  DTG_TRY(set_pool3(c.node(), a, shape.value()));
  const Window3& w = a.volume.window;
  bool fits = late.grad.dim(0) == a.volume.batch && late.grad.dim(w.channel_axis()) == a.volume.channels;
  for (int i = 0; i < 3; ++i) fits &= late.grad.dim(w.spatial_axis(i)) == a.volume.out[static_cast<size_t>(i)];
  if (!fits) return c.error("a volume of shape %s does not pool to grad, %s", shape.value().text().c_str(), late.grad.text().c_str());
  DTG_ASSIGN(char* memory, late.out.memory(c, shape.value()));
  T* dx = reinterpret_cast<T*>(memory);
  for_shards(c, a, true, [&](int64_t begin, int64_t end, int64_t) { avg_grad_volumes(a, c.in<T>(1), dx, begin, end); });
  return {};
}

template <class T>
Status avg_grad_prepare(PrepareContext& c) {
  auto& a = *c.args<AvgGradArgs>();
  if (c.input(0).shape.count() != 5)
    return c.error("orig_input_shape must have 5 elements, but has shape %s", c.input(0).shape.text().c_str());
  DTG_TRY(a.sizes.prepare(c, 0));
  a.out.prepare(c, 0);
  a.grad = c.input(1).shape;
  return c.sync(avg_grad_run<T>);
}

// ---- definitions -------------------------------------------------------------------------------------------

OpDef&& windows(OpDef&& def) {
  return std::move(def)
      .attr("ksize: list(int) >= 5")
      .attr("strides: list(int) >= 5")
      .attr("padding: {'SAME','VALID'}")
      .attr("data_format: {'NDHWC','NCDHW'} = 'NDHWC'");
}

template <class T>
void add_max(KernelTable& kernels) {
  const KernelRow::TypeClause type{"T", DTypeSet{dtype_of<T>}};
  kernels.add({.op = "MaxPool3DGradGrad", .types = {type}, .prepare = volume_prepare<max_grad_grad_run<T>>});
  if constexpr (!std::is_same_v<T, double>) {
    const KernelRow::TypeClause input{"TInput", DTypeSet{dtype_of<T>}};
    kernels.add({.op = "MaxPool3D", .types = {type}, .prepare = volume_prepare<max_run<T>>});
    kernels.add({.op = "MaxPool3DGrad", .types = {type, input}, .prepare = volume_prepare<max_grad_run<T>>});
  }
}

template <class T>
void add_avg(KernelTable& kernels) {
  const KernelRow::TypeClause type{"T", DTypeSet{dtype_of<T>}};
  kernels.add({.op = "AvgPool3D", .types = {type}, .prepare = volume_prepare<avg_run<T>>});
  kernels.add({.op = "AvgPool3DGrad", .types = {type}, .prepare = avg_grad_prepare<T>});
}

void register_max3(OpTable& ops) {
  ops.add(windows(OpDef::make("MaxPool3D").input("input: T", {.rank = 5}).output("output: T"))
              .attr("T: {half, bfloat16, float}")
              .shape(pool_shape)
              .gradient(max_grad)
              .doc("The largest value of each window of a volume."));
  ops.add(windows(OpDef::make("MaxPool3DGrad")
                      .input("orig_input: TInput", {.rank = 5})
                      .input("orig_output: TInput", {.rank = 5})
                      .input("grad: T", {.rank = 5})
                      .output("output: T"))
              .attr("T: {half, bfloat16, float} = float")
              .attr("TInput: {half, bfloat16, float} = float")
              .shape(max_grad_shape)
              .gradient(max_grad_grad)
              .doc("Gradient of MaxPool3D: each window's gradient where its maximum is."));
  ops.add(windows(OpDef::make("MaxPool3DGradGrad")
                      .input("orig_input: T", {.rank = 5})
                      .input("orig_output: T", {.rank = 5})
                      .input("grad: T", {.rank = 5})
                      .output("output: T"))
              .attr("T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}")
              .shape(max_grad_grad_shape)
              .gradient(max_grad_grad_grad)
              .doc("Gradient of MaxPool3DGrad: of each window, the value at the first place that holds its maximum."));
}

}  // namespace

void register_pool3d(OpTable& ops, KernelTable& kernels) {
  register_max3(ops);
  ops.add(windows(OpDef::make("AvgPool3D").input("input: T", {.rank = 5}).output("output: T"))
              .attr("T: {half, bfloat16, float, double}")
              .shape(pool_shape)
              .gradient(avg_grad)
              .doc("The average of each window of a volume; padding does not count."));
  ops.add(
      windows(OpDef::make("AvgPool3DGrad").input("orig_input_shape: int32", {.rank = 1}).input("grad: T", {.rank = 5}).output("output: T"))
          .attr("T: {half, bfloat16, float, double}")
          .shape(avg_grad_shape)
          .gradient(avg_grad_grad)
          .doc("Gradient of AvgPool3D: each window's gradient shared out equally."));
  add_max<float>(kernels);
  add_max<double>(kernels);
  add_max<Half>(kernels);
  add_max<BFloat16>(kernels);
  add_avg<float>(kernels);
  add_avg<double>(kernels);
  add_avg<Half>(kernels);
  add_avg<BFloat16>(kernels);
}

}  // namespace dtg::ops
