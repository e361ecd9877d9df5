// Maximum pooling whose window comes as an input (the V2 ops), and the one that tells where each maximum lies (WithArgmax). The
// loops are those of pool.h. Registered once by the runtime; kernels run on any thread.
#include <algorithm>

#include "base/watched.h"
#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/pool.h"
#include "ops/rows.h"

namespace dtg::ops {
namespace {

// ---- V2: ksize and strides are inputs ------------------------------------------------------------------------

// The window, when both inputs are known already.
Result<Window> known_window(InferContext& c, int sizes, bool* known) {
  for (int i = sizes; i < sizes + 2; ++i) {
    DTG_TRY(c.require_rank(i, 1));
    const int64_t count = c.input(i).has_rank() ? c.input(i).dim(0) : -1;
    if (count >= 0 && count != 4)
      return c.error("input %d must have 4 elements, one per dimension, but has %lld", i, static_cast<long long>(count));
  }
  const KnownIntegers ksize = known_integers(c, sizes), strides = known_integers(c, sizes + 1);
  *known = ksize.known && strides.known;
  if (!*known) return Window{};
  return window_of(c.node(), ksize.span(), strides.span());
}

Status pool_v2_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 4));
  bool known = false;
  DTG_ASSIGN(const Window w, known_window(c, 1, &known));
  PartialShape out = PartialShape::of_rank(4);
  if (c.input(0).has_rank()) out.set_dim(0, c.input(0).dim(0));
  if (known) {
    DTG_ASSIGN(out, pooled_shape(c.node(), w, c.input(0)));
  }
  c.output(0, out);
  return {};
}

// Three images and the window: pooled ones where `pooled` says so, the others of the input's shape.
Status check_three(InferContext& c, const PartialShape& pooled, bool grad_is_pooled) {
  auto merged = PartialShape::merge(pooled, c.input(1), "pooled shape");
  if (!merged.ok()) return c.error("orig_output: %s", merged.status().message().c_str());
  merged = PartialShape::merge(grad_is_pooled ? pooled : c.input(0), c.input(2), "shape");
  if (!merged.ok()) return c.error("grad: %s", merged.status().message().c_str());
  return {};
}

Status grad_v2_shape(InferContext& c, bool back_to_image) {
  for (int i = 0; i < 3; ++i) DTG_TRY(c.require_rank(i, 4));
  bool known = false;
  DTG_ASSIGN(const Window w, known_window(c, 3, &known));
  PartialShape pooled = PartialShape::of_rank(4);
  if (known) {
    DTG_ASSIGN(pooled, pooled_shape(c.node(), w, c.input(0)));
  }
  DTG_TRY(check_three(c, pooled, back_to_image));
  const PartialShape& image = c.input(0);
  c.output(0, back_to_image && image.has_rank() ? image : back_to_image ? PartialShape::of_rank(4) : pooled);
  return {};
}

Status max_grad_v2_shape(InferContext& c) { return grad_v2_shape(c, true); }
Status max_grad_grad_v2_shape(InferContext& c) { return grad_v2_shape(c, false); }

Value like_this(GradContext& c, std::string_view op, std::initializer_list<Value> inputs) {
  static constexpr std::string_view kNames[] = {"padding", "data_format"};
  const auto attrs = window_attrs(c.node(), kNames);
  return c.b().op(op, std::span(inputs.begin(), inputs.size()), std::span<const Attr>(attrs));
}

Status pool_v2_grad(GradContext& c) {
  c.dx(0, like_this(c, "MaxPoolGradV2", {c.input(0), c.output(0), c.dy(), c.input(1), c.input(2)}));
  return {};
}

// Linear in `grad`; the images only decide where.
Status v2_grad_of(GradContext& c, std::string_view op) {
  c.dx(0, c.b().zeros_like(c.input(0)));
  c.dx(1, c.b().zeros_like(c.input(1)));
  c.dx(2, like_this(c, op, {c.input(0), c.input(1), c.dy(), c.input(3), c.input(4)}));
  return {};
}

Status max_grad_v2_grad(GradContext& c) { return v2_grad_of(c, "MaxPoolGradGradV2"); }
Status max_grad_grad_v2_grad(GradContext& c) { return v2_grad_of(c, "MaxPoolGradV2"); }

enum class Way : uint8_t { forward, gradient, second };

struct PoolV2Args {
  Integers ksize, strides;
  Shape image, other, grad;
  OutputSpec out;
};

// What the window of this step makes of the images.
Result<PoolArgs> args_now(RunContext& c, const PoolV2Args& a, Shape* pooled) {
  Integers::Buffer size_buffer, stride_buffer;
  DTG_ASSIGN(const Window w, window_of(c.node(), a.ksize.get(c, size_buffer), a.strides.get(c, stride_buffer)));
  PoolArgs args;
  DTG_TRY(set_pool(c.node(), w, args, a.image));
  DTG_ASSIGN(const PartialShape shape, pooled_shape(c.node(), w, a.image));
  DTG_ASSIGN(*pooled, shape.to_shape());
  return args;
}

// What comes before the loops, once for all types: the window, whether the images fit it, and the output's memory.
Result<char*> begin_v2(RunContext& c, const PoolV2Args& a, Way way, PoolArgs* args) {
  Shape pooled;
  DTG_ASSIGN(*args, args_now(c, a, &pooled));
  if (way != Way::forward && (!(a.other == pooled) || !(a.grad == (way == Way::gradient ? pooled : a.image)))) {
    return c.error("images of shape %s pool to %s, but orig_output is %s and grad %s", a.image.text().c_str(), pooled.text().c_str(),
                   a.other.text().c_str(), a.grad.text().c_str());
  }
  return a.out.memory(c, way == Way::gradient ? a.image : pooled);
}

template <class T, Way kWay>
Status v2_run(RunContext& c) {
  PoolArgs args;
  DTG_ASSIGN(char* memory, begin_v2(c, c.args<PoolV2Args>(), kWay, &args));
  T* out = reinterpret_cast<T*>(memory);
  if constexpr (kWay == Way::forward) (args.group > 1 ? max_channels<T> : max_rows<T>)(c.pool(), args, c.in<T>(0), out);
  if constexpr (kWay == Way::gradient) max_grad_images(c.pool(), args, c.in<T>(0), c.in<T>(2), out);
  if constexpr (kWay == Way::second) max_grad_grad_rows(c.pool(), args, c.in<T>(0), c.in<T>(2), out);
  return {};
}

Status prepare_v2(PrepareContext& c, Way way, SyncFn run) {
  auto& a = *c.args<PoolV2Args>();
  const int sizes = way == Way::forward ? 1 : 3;
  a.image = c.input(0).shape;
  if (way != Way::forward) a.other = c.input(1).shape, a.grad = c.input(2).shape;
  for (int i = sizes; i < sizes + 2; ++i) {
    if (c.input(i).shape.count() != 4)
      return c.error("input %d must have 4 elements, but has shape %s", i, c.input(i).shape.text().c_str());
  }
  DTG_TRY(a.ksize.prepare(c, sizes));
  DTG_TRY(a.strides.prepare(c, sizes + 1));
  a.out.prepare(c, 0);
  return c.sync(run);
}
template <class T, Way kWay>
Status v2_prepare(PrepareContext& c) {
  return prepare_v2(c, kWay, v2_run<T, kWay>);
}

// ---- WithArgmax ----------------------------------------------------------------------------------------------

Status argmax_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 4));
  DTG_ASSIGN(const Window w, window_of(c.node()));
  DTG_TRY(require_spatial(c.node(), w));
  DTG_ASSIGN(const PartialShape out, pooled_shape(c.node(), w, c.input(0)));
  c.output(0, out);
  c.output(1, out);
  return {};
}

// input, grad, argmax: the places are pooled, and of grad and output one is.
Status places_shape(InferContext& c, bool back_to_image) {
  for (int i = 0; i < 3; ++i) DTG_TRY(c.require_rank(i, 4));
  DTG_ASSIGN(const Window w, window_of(c.node()));
  DTG_TRY(require_spatial(c.node(), w));
  DTG_ASSIGN(const PartialShape pooled, pooled_shape(c.node(), w, c.input(0)));
  auto merged = PartialShape::merge(pooled, c.input(2), "pooled shape");
  if (!merged.ok()) return c.error("argmax: %s", merged.status().message().c_str());
  merged = PartialShape::merge(back_to_image ? pooled : c.input(0), c.input(1), "shape");
  if (!merged.ok()) return c.error("grad: %s", merged.status().message().c_str());
  c.output(0, !back_to_image ? pooled : c.input(0).has_rank() ? c.input(0) : PartialShape::of_rank(4));
  return {};
}

Status argmax_grad_shape(InferContext& c) { return places_shape(c, true); }
Status argmax_grad_grad_shape(InferContext& c) { return places_shape(c, false); }

Value with_places(GradContext& c, std::string_view op, std::initializer_list<Value> inputs) {
  static constexpr std::string_view kNames[] = {"ksize", "strides", "padding", "include_batch_in_index"};
  const auto attrs = window_attrs(c.node(), kNames);
  return c.b().op(op, std::span(inputs.begin(), inputs.size()), std::span<const Attr>(attrs));
}

Status argmax_grad(GradContext& c) {
  c.dx(0, with_places(c, "MaxPoolGradWithArgmax", {c.input(0), c.dy(), c.output(1)}));
  return {};
}
Status argmax_grad_grad(GradContext& c) {
  c.dx(0, c.b().zeros_like(c.input(0)));
  c.dx(1, with_places(c, "MaxPoolGradGradWithArgmax", {c.input(0), c.dy(), c.input(2)}));
  return {};
}
Status argmax_grad_grad_grad(GradContext& c) {
  c.dx(0, c.b().zeros_like(c.input(0)));
  c.dx(1, with_places(c, "MaxPoolGradWithArgmax", {c.input(0), c.dy(), c.input(2)}));
  return {};
}

struct PlaceArgs {
  PoolArgs pool;
  bool batch_in_index = false;
  int64_t image = 0, pooled = 0;  // elements of one image
};

template <class T, class Index>
Status argmax_run(RunContext& c) {
  const auto& a = c.args<PlaceArgs>();
  const PoolArgs& p = a.pool;
  const PixelLayout in = p.in(), out = p.out();
  const T* x = c.in<T>(0);
  for_output_rows(c.pool(), p, [&](int64_t n, int64_t oy, int64_t first, int64_t last) {
    Lookout lookout;
    for (int64_t ox = first; ox < last; ++ox) {
      const Clip clip(p, oy, ox);
      const int64_t to = out.at(n, oy, ox);
      for (int64_t k = 0; k < p.channels; ++k) {
        const int64_t at = first_largest(clip, in, n, k, x, lookout);
        c.out<T>(0)[to + k] = at < 0 ? lowest<T>() : x[at];
        c.out<Index>(1)[to + k] = static_cast<Index>(at < 0 ? 0 : a.batch_in_index ? at : at - n * a.image);
      }
    }
  });
  return {};
}

// Every place must lie in the image (in the batch, where places count through it).
template <class Index>
Status check_places(RunContext& c, const PlaceArgs& a, const Index* places) {
  const int64_t limit = a.batch_in_index ? a.image * a.pool.batch : a.image;
  for (const int64_t i : watched(a.pooled * a.pool.batch, 1)) {
    if (places[i] >= 0 && static_cast<int64_t>(places[i]) < limit) continue;
    return c.error("argmax holds %lld, which is not in [0, %lld)", static_cast<long long>(places[i]), static_cast<long long>(limit));
  }
  return {};
}

template <class T, class Index>
Status place_run(RunContext& c) {
  const auto& a = c.args<PlaceArgs>();
  const Index* places = c.in<Index>(2);
  DTG_TRY(check_places(c, a, places));
  T* out = c.out<T>(0);
  watched_fill(out, out + a.image * a.pool.batch, T());
  // With places that count through the batch, one image may add to another.
  const int64_t shards = a.batch_in_index ? 1 : std::clamp<int64_t>(a.pool.batch, 1, a.pool.shards);
  c.pool().parallel_for(shards, [&](int64_t shard) {
    for (const int64_t n : watched(a.pool.batch * shard / shards, a.pool.batch * (shard + 1) / shards, 4 * a.pooled)) {
      T* image = a.batch_in_index ? out : out + n * a.image;
      for (const int64_t i : watched(n * a.pooled, (n + 1) * a.pooled, 4)) image[places[i]] = sum_of<T>(image[places[i]], c.in<T>(1)[i]);
    }
  });
  return {};
}

template <class T, class Index>
Status take_run(RunContext& c) {
  const auto& a = c.args<PlaceArgs>();
  const Index* places = c.in<Index>(2);
  DTG_TRY(check_places(c, a, places));
  c.pool().parallel_for(a.pool.shards, [&](int64_t shard) {
    const int64_t count = a.pooled * a.pool.batch;
    for (const int64_t i : watched(count * shard / a.pool.shards, count * (shard + 1) / a.pool.shards, 4)) {
      const int64_t image = a.batch_in_index ? 0 : i / a.pooled * a.image;
      c.out<T>(0)[i] = c.in<T>(1)[image + static_cast<int64_t>(places[i])];
    }
  });
  return {};
}

Status prepare_places(PrepareContext& c, SyncFn ints_run, SyncFn longs_run) {
  auto& a = *c.args<PlaceArgs>();
  DTG_ASSIGN(const Window w, window_of(c.node()));
  DTG_TRY(set_pool(c.node(), w, a.pool, c.input(0).shape));
  a.batch_in_index = c.boolean("include_batch_in_index");
  a.image = c.input(0).shape.count(1, 4);
  a.pooled = a.pool.out_height * a.pool.out_width * a.pool.channels;
  const bool longs = c.attr<DType>("Targmax") == DType::i64;
  if (!longs && (a.batch_in_index ? c.input(0).shape.count() : a.image) > INT32_MAX) {
    return c.error("the places of an image of %lld elements do not fit into 32 bits; Targmax must be int64",
                   static_cast<long long>(a.image));
  }
  return c.sync(longs ? longs_run : ints_run);
}

template <SyncFn kInt, SyncFn kLong>
Status places_prepare(PrepareContext& c) {
  return prepare_places(c, kInt, kLong);
}

// ---- definitions ---------------------------------------------------------------------------------------------

constexpr const char* kReal = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64} = float";

template <class T>
void add_kernels(KernelTable& kernels) {
  const KernelRow::TypeClause type{"T", DTypeSet{dtype_of<T>}};
  kernels.add({.op = "MaxPoolV2", .types = {type}, .prepare = v2_prepare<T, Way::forward>});
  kernels.add({.op = "MaxPoolGradV2", .types = {type}, .prepare = v2_prepare<T, Way::gradient>});
  kernels.add({.op = "MaxPoolGradGradV2", .types = {type}, .prepare = v2_prepare<T, Way::second>});
  kernels.add({.op = "MaxPoolWithArgmax", .types = {type}, .prepare = places_prepare<argmax_run<T, int32_t>, argmax_run<T, int64_t>>});
  kernels.add({.op = "MaxPoolGradWithArgmax", .types = {type}, .prepare = places_prepare<place_run<T, int32_t>, place_run<T, int64_t>>});
  kernels.add({.op = "MaxPoolGradGradWithArgmax", .types = {type}, .prepare = places_prepare<take_run<T, int32_t>, take_run<T, int64_t>>});
}

void register_v2(OpTable& ops) {
  constexpr const char* kAny = "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = float";
  ops.add(OpDef::make("MaxPoolV2")
              .input("input: T", {.rank = 4})
              .input("ksize: int32", {.rank = 1})
              .input("strides: int32", {.rank = 1})
              .output("output: T")
              .attr(kAny)
              .attr("padding: {'SAME','VALID'}")
              .attr("data_format: {'NHWC','NCHW','NCHW_VECT_C'} = 'NHWC'")
              .shape(pool_v2_shape)
              .gradient(pool_v2_grad)
              .doc("The largest value of each window; the window's size and strides are inputs."));
  for (const bool second : {false, true}) {
    ops.add(OpDef::make(second ? "MaxPoolGradGradV2" : "MaxPoolGradV2")
                .input("orig_input: T", {.rank = 4})
                .input("orig_output: T", {.rank = 4})
                .input("grad: T", {.rank = 4})
                .input("ksize: int32", {.rank = 1})
                .input("strides: int32", {.rank = 1})
                .output("output: T")
                .attr("padding: {'SAME','VALID'}")
                .attr("data_format: {'NHWC','NCHW'} = 'NHWC'")
                .attr(kReal)
                .shape(second ? max_grad_grad_v2_shape : max_grad_v2_shape)
                .gradient(second ? max_grad_grad_v2_grad : max_grad_v2_grad)
                .doc(second ? "MaxPoolGradGrad whose window is an input." : "MaxPoolGrad whose window is an input."));
  }
}

OpDef&& places_def(OpDef&& def) {
  return std::move(def)
      .attr("ksize: list(int) >= 4")
      .attr("strides: list(int) >= 4")
      .attr("padding: {'SAME','VALID'}")
      .attr("include_batch_in_index: bool = false");
}

void register_argmax(OpTable& ops) {
  ops.add(places_def(OpDef::make("MaxPoolWithArgmax").input("input: T", {.rank = 4}).output("output: T").output("argmax: Targmax"))
              .attr("Targmax: {int32, int64} = int64")
              .attr(kReal)
              .shape(argmax_shape)
              .gradient(argmax_grad)
              .doc("The largest value of each window, and where in its image (or in the batch) it lies."));
  for (const bool second : {false, true}) {
    ops.add(places_def(OpDef::make(second ? "MaxPoolGradGradWithArgmax" : "MaxPoolGradWithArgmax")
                           .input("input: T", {.rank = 4})
                           .input("grad: T", {.rank = 4})
                           .input("argmax: Targmax", {.rank = 4})
                           .output("output: T"))
                .attr("Targmax: {int32, int64}")
                .attr(kReal)
                .shape(second ? argmax_grad_grad_shape : argmax_grad_shape)
                .gradient(second ? argmax_grad_grad_grad : argmax_grad_grad)
                .doc(second ? "Gradient of MaxPoolGradWithArgmax: what lies at each place."
                            : "Gradient of MaxPoolWithArgmax: each window's gradient at the place of its maximum."));
  }
}

}  // namespace

void register_pool_places(OpTable& ops, KernelTable& kernels) {
  register_v2(ops);
  register_argmax(ops);
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
