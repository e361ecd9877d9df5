// Dilation2D and its two gradients: grey-scale dilation, a convolution with maximum and sum in place of sum and product. Registered
// once by the runtime; kernels run on any thread.
#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "base/watched.h"
#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/rows.h"
#include "ops/window.h"

namespace dtg::ops {
namespace {

// The window but for its size, which is the filter's.
Result<Window> dilation_window(const Node& node) {
  Window w;
  w.padding = node.attr<std::string>("padding") == "SAME" ? Padding::same : Padding::valid;
  const auto take = [&](std::string_view name, std::array<int64_t, 2>& to) -> Status {
    const auto& list = node.attr<std::vector<int64_t>>(name);
    const int length = static_cast<int>(name.size());
    if (list.size() != 4 || list[0] != 1 || list[3] != 1) {
      return invalid_argument("%s: %.*s must have 4 entries, of which those of batch and channels are 1", node.op->name().c_str(), length,
                              name.data());
    }
    to = {list[1], list[2]};
    if (to[0] >= 1 && to[1] >= 1 && to[0] <= INT32_MAX && to[1] <= INT32_MAX) return {};
    return invalid_argument("%s: %.*s are %lld and %lld; they must be at least 1", node.op->name().c_str(), length, name.data(),
                            static_cast<long long>(to[0]), static_cast<long long>(to[1]));
  };
  DTG_TRY(take("strides", w.stride));
  DTG_TRY(take("rates", w.dilation));
  return w;
}

Result<PartialShape> dilated_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 4));
  DTG_TRY(c.require_rank(1, 3));
  DTG_ASSIGN(Window w, dilation_window(c.node()));
  const PartialShape &image = c.input(0), &filter = c.input(1);
  PartialShape out = PartialShape::of_rank(4);
  if (image.has_rank()) out.set_dim(0, image.dim(0)), out.set_dim(3, image.dim(3));
  if (!image.has_rank() || !filter.has_rank()) return out;
  if (image.dim(3) >= 0 && filter.dim(2) >= 0 && image.dim(3) != filter.dim(2)) {
    return c.error("the input has %lld channels, but the filter %lld", static_cast<long long>(image.dim(3)),
                   static_cast<long long>(filter.dim(2)));
  }
  if (image.dim(3) < 0) out.set_dim(3, filter.dim(2));
  for (int i = 0; i < 2; ++i) {
    if (filter.dim(i) < 0) continue;
    if (filter.dim(i) == 0) return c.error("the filter %s is empty", filter.text().c_str());
    w.size[static_cast<size_t>(i)] = filter.dim(i);
    DTG_ASSIGN(const Extent extent, extent_of(c.node(), w, i, image.dim(1 + i)));
    out.set_dim(1 + i, extent.out);
  }
  return out;
}

Status dilation_shape(InferContext& c) {
  DTG_ASSIGN(PartialShape out, dilated_shape(c));
  c.output(0, out);
  return {};
}

Status dilation_grad_shape(InferContext& c, int like) {
  DTG_ASSIGN(const PartialShape want, dilated_shape(c));
  DTG_TRY(c.require_rank(2, 4));
  auto merged = PartialShape::merge(want, c.input(2), "shape");
  if (!merged.ok()) return c.error("out_backprop: %s", merged.status().message().c_str());
  c.output(0, c.input(like).has_rank() ? c.input(like) : PartialShape::of_rank(like == 0 ? 4 : 3));
  return {};
}
Status input_grad_shape(InferContext& c) { return dilation_grad_shape(c, 0); }
Status filter_grad_shape(InferContext& c) { return dilation_grad_shape(c, 1); }

// Of each output, the gradient goes to the first place and filter element whose sum it is.
Status dilation_grad(GradContext& c) {
  static constexpr std::string_view kNames[] = {"strides", "rates", "padding"};
  const auto attrs = window_attrs(c.node(), kNames);
  const Value inputs[] = {c.input(0), c.input(1), c.dy()};
  c.dx(0, c.b().op("Dilation2DBackpropInput", inputs, attrs));
  c.dx(1, c.b().op("Dilation2DBackpropFilter", inputs, attrs));
  return {};
}

struct DilationArgs {
  int64_t batch = 0, height = 0, width = 0, channels = 0, out_height = 0, out_width = 0, top = 0, left = 0, shards = 1;
  Window window;
};

template <class T>
T lowest_sum() {
  if constexpr (std::is_same_v<T, Half>) return Half(-65504.0f);
  if constexpr (std::is_same_v<T, BFloat16>) return BFloat16(-3.3895314e38f);
  if constexpr (std::is_arithmetic_v<T>) return std::numeric_limits<T>::lowest();
}

// The place and the filter element whose sum is largest, as offsets; `at` is -1 where the window shows nothing.
struct Largest {
  int64_t at = -1, filter = -1;
};

template <class T>
T largest_sum(const DilationArgs& a, const T* image, const T* filter, int64_t oy, int64_t ox, int64_t k, Largest* found, Lookout& lookout) {
  constexpr int64_t kStretch = 10'000;  // of a long row of the filter, between which a look may come
  const Window& w = a.window;
  T best = lowest_sum<T>();
  for (int64_t fy = 0; fy < w.size[0]; ++fy) {
    const int64_t y = oy * w.stride[0] - a.top + fy * w.dilation[0];
    if (y < 0 || y >= a.height) continue;
    for (int64_t first = 0; first < w.size[1]; first += kStretch) {
      const int64_t last = std::min(first + kStretch, w.size[1]);
      for (int64_t fx = first; fx < last; ++fx) {
        const int64_t x = ox * w.stride[1] - a.left + fx * w.dilation[1];
        if (x < 0 || x >= a.width) continue;
        const int64_t at = (y * a.width + x) * a.channels + k, element = (fy * w.size[1] + fx) * a.channels + k;
        const T sum = sum_of<T>(image[at], filter[element]);
        if (!(best < sum) && found->at >= 0) continue;
        if (best < sum) best = sum;
        *found = {at, element};
      }
      lookout.after(2 * (last - first));
    }
  }
  return best;
}

// fn(n, oy, ox, offset of the output pixel, lookout)
template <class Fn>
void for_outputs(const DilationArgs& a, int64_t begin_row, int64_t end_row, Fn fn) {
  Lookout lookout;
  for (int64_t row = begin_row; row < end_row; ++row) {
    for (int64_t ox = 0; ox < a.out_width; ++ox) {
      fn(row / a.out_height, row % a.out_height, ox, (row * a.out_width + ox) * a.channels, lookout);
      lookout.after(4 * a.channels);
    }
  }
}

template <class T>
Status dilation_run(RunContext& c) {
  const auto& a = c.args<DilationArgs>();
  const int64_t rows = a.batch * a.out_height;
  c.pool().parallel_for(a.shards, [&](int64_t shard) {
    for_outputs(a, rows * shard / a.shards, rows * (shard + 1) / a.shards,
                [&](int64_t n, int64_t oy, int64_t ox, int64_t to, Lookout& lookout) {
                  const T* image = c.in<T>(0) + n * a.height * a.width * a.channels;
                  for (int64_t k = 0; k < a.channels; ++k) {
                    Largest found;
                    c.out<T>(0)[to + k] = largest_sum(a, image, c.in<T>(1), oy, ox, k, &found, lookout);
                  }
                });
  });
  return {};
}

template <class T>
Status input_grad_run(RunContext& c) {
  const auto& a = c.args<DilationArgs>();
  const int64_t shards = std::clamp<int64_t>(a.batch, 1, a.shards), image_size = a.height * a.width * a.channels;
  c.pool().parallel_for(shards, [&](int64_t shard) {
    const int64_t begin = a.batch * shard / shards, end = a.batch * (shard + 1) / shards;
    watched_fill(c.out<T>(0) + begin * image_size, c.out<T>(0) + end * image_size, T());
    for_outputs(a, begin * a.out_height, end * a.out_height, [&](int64_t n, int64_t oy, int64_t ox, int64_t to, Lookout& lookout) {
      T* dx = c.out<T>(0) + n * image_size;
      for (int64_t k = 0; k < a.channels; ++k) {
        Largest found;
        largest_sum(a, c.in<T>(0) + n * image_size, c.in<T>(1), oy, ox, k, &found, lookout);
        if (found.at >= 0) dx[found.at] = sum_of<T>(dx[found.at], c.in<T>(2)[to + k]);
      }
    });
  });
  return {};
}

// All images add to one filter, in their order.
template <class T>
Status filter_grad_run(RunContext& c) {
  const auto& a = c.args<DilationArgs>();
  T* df = c.out<T>(0);
  watched_fill(df, df + a.window.size[0] * a.window.size[1] * a.channels, T());
  for_outputs(a, 0, a.batch * a.out_height, [&](int64_t n, int64_t oy, int64_t ox, int64_t to, Lookout& lookout) {
    for (int64_t k = 0; k < a.channels; ++k) {
      Largest found;
      largest_sum(a, c.in<T>(0) + n * a.height * a.width * a.channels, c.in<T>(1), oy, ox, k, &found, lookout);
      if (found.filter >= 0) df[found.filter] = sum_of<T>(df[found.filter], c.in<T>(2)[to + k]);
    }
  });
  return {};
}

// Once for all types, as each would be a copy of it.
Status prepare_dilation(PrepareContext& c, SyncFn run) {
  auto& a = *c.args<DilationArgs>();
  DTG_ASSIGN(a.window, dilation_window(c.node()));
  const Shape &image = c.input(0).shape, &filter = c.input(1).shape;
  a.batch = image.dim(0), a.height = image.dim(1), a.width = image.dim(2), a.channels = image.dim(3);
  a.window.size = {filter.dim(0), filter.dim(1)};
  DTG_ASSIGN(const Extent y, extent_of(c.node(), a.window, 0, a.height));
  DTG_ASSIGN(const Extent x, extent_of(c.node(), a.window, 1, a.width));
  a.out_height = y.out, a.out_width = x.out, a.top = y.before, a.left = x.before;
  const double work = static_cast<double>(a.batch * a.out_height * a.out_width * a.channels) * static_cast<double>(filter.count(0, 2));
  a.shards = std::clamp<int64_t>(static_cast<int64_t>(std::min(work / 65536, 16.0)), 1, std::clamp<int64_t>(a.batch * a.out_height, 1, 16));
  return c.sync(run);
}

template <SyncFn kRun>
Status dilation_prepare(PrepareContext& c) {
  return prepare_dilation(c, kRun);
}

template <class T>
void add_kernels(KernelTable& kernels) {
  const KernelRow::TypeClause type{"T", DTypeSet{dtype_of<T>}};
  kernels.add({.op = "Dilation2D", .types = {type}, .prepare = dilation_prepare<dilation_run<T>>});
  kernels.add({.op = "Dilation2DBackpropInput", .types = {type}, .prepare = dilation_prepare<input_grad_run<T>>});
  kernels.add({.op = "Dilation2DBackpropFilter", .types = {type}, .prepare = dilation_prepare<filter_grad_run<T>>});
}

OpDef&& dilation_def(OpDef&& def) {
  return std::move(def)
      .attr("T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}")
      .attr("strides: list(int) >= 4")
      .attr("rates: list(int) >= 4")
      .attr("padding: {'SAME','VALID'}");
}

}  // namespace

void register_dilation(OpTable& ops, KernelTable& kernels) {
  ops.add(dilation_def(OpDef::make("Dilation2D").input("input: T", {.rank = 4}).input("filter: T", {.rank = 3}).output("output: T"))
              .shape(dilation_shape)
              .gradient(dilation_grad)
              .doc("The largest sum of input and filter under each position of the filter."));
  for (const bool input : {true, false}) {
    ops.add(dilation_def(OpDef::make(input ? "Dilation2DBackpropInput" : "Dilation2DBackpropFilter")
                             .input("input: T", {.rank = 4})
                             .input("filter: T", {.rank = 3})
                             .input("out_backprop: T", {.rank = 4})
                             .output(input ? "in_backprop: T" : "filter_backprop: T"))
                .shape(input ? input_grad_shape : filter_grad_shape)
                .gradient(nullptr)
                .doc(input ? "Gradient of Dilation2D with respect to its input." : "Gradient of Dilation2D with respect to its filter."));
  }
  add_kernels<float>(kernels);
  add_kernels<double>(kernels);
  add_kernels<Half>(kernels);
  add_kernels<BFloat16>(kernels);
  add_kernels<int8_t>(kernels);
  add_kernels<int16_t>(kernels);
  add_kernels<int32_t>(kernels);
  add_kernels<int64_t>(kernels);
  add_kernels<uint8_t>(kernels);
  add_kernels<uint16_t>(kernels);
}

}  // namespace dtg::ops
