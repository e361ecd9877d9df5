// ExtractImagePatches: what lies under each position of a window, laid out along the channels. Registered once by the runtime;
// kernels run on any thread.
#include <algorithm>
#include <array>

#include "base/watched.h"
#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/window.h"

namespace dtg::ops {
namespace {

// The window under the names that this op has for it.
Result<Window> patch_window(const Node& node) {
  Window w;
  w.padding = node.attr<std::string>("padding") == "SAME" ? Padding::same : Padding::valid;
  const auto take = [&](std::string_view name, std::array<int64_t, 2>& to) -> Status {
    const auto& list = node.attr<std::vector<int64_t>>(name);
    const int length = static_cast<int>(name.size());
    if (list.size() != 4) {
      return invalid_argument("%s: %.*s must have 4 entries, one per dimension, but has %zu", node.op->name().c_str(), length, name.data(),
                              list.size());
    }
    for (size_t i = 0; i < 4; ++i) {
      if (list[i] >= 1 && list[i] <= INT32_MAX) continue;
      return invalid_argument("%s: %.*s[%zu] is %lld; it must be at least 1", node.op->name().c_str(), length, name.data(), i,
                              static_cast<long long>(list[i]));
    }
    if (list[0] != 1 || list[3] != 1) {
      return unimplemented("%s: %.*s of the batch and channel dimensions must be 1", node.op->name().c_str(), length, name.data());
    }
    to = {list[1], list[2]};
    return {};
  };
  DTG_TRY(take("ksizes", w.size));
  DTG_TRY(take("strides", w.stride));
  DTG_TRY(take("rates", w.dilation));
  return w;
}

Status patches_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 4));
  DTG_ASSIGN(const Window w, patch_window(c.node()));
  PartialShape out = c.input(0).has_rank() ? c.input(0) : PartialShape::of_rank(4);
  for (int i = 0; i < 2; ++i) {
    DTG_ASSIGN(const Extent extent, extent_of(c.node(), w, i, out.dim(1 + i)));
    out.set_dim(1 + i, extent.out);
  }
  if (out.dim(3) >= 0) {
    const Bytes channels = Bytes(out.dim(3)) * w.size[0] * w.size[1];
    if (channels.is_overflow()) return c.error("patches of %s have too many elements", c.input(0).text().c_str());
    out.set_dim(3, channels.value());
  }
  c.output(0, out);
  return {};
}

// Every element of a patch adds to the pixel it came from. That is the input's gradient of a convolution in groups of one channel
// whose filter shows, for each of the window's places, that place alone.
Status patches_grad(GradContext& c) {
  Build& b = c.b();
  DTG_ASSIGN(const Window w, patch_window(c.node()));
  const int64_t taps = w.size[0] * w.size[1];
  const Value image = b.shape(c.input(0)), grad = b.shape(c.dy()), one = b.ints({1});
  const auto part = [&](Value shape, int64_t from, int64_t to) { return b.op("StridedSlice", {shape, b.ints({from}), b.ints({to}), one}); };
  const auto joined = [&](std::initializer_list<Value> parts) {
    std::vector<Value> inputs(parts);
    inputs.push_back(b.integer(0));
    return b.op("ConcatV2", inputs);
  };
  const Value channels = part(image, 3, 4), zero = b.like(c.dy(), 0), unit = b.like(c.dy(), 1);
  const Value numbers = b.op("Range", {b.integer(0), b.integer(taps), b.integer(1)});
  const Value places = b.reshape(b.op("OneHot", {numbers, b.integer(taps), unit, zero}), b.ints({w.size[0], w.size[1], 1, 1, taps}));
  const Value spread = b.op("BroadcastTo", {places, joined({b.ints({w.size[0], w.size[1], 1}), channels, b.ints({taps})})});
  const Value all = b.mul(channels, b.ints({taps}));
  const Value filter = b.reshape(spread, joined({b.ints({w.size[0], w.size[1], 1}), all}));
  // From [place, channel] to [channel, place].
  const Value split = b.reshape(c.dy(), joined({part(grad, 0, 3), b.ints({taps}), channels}));
  const Value turned = b.reshape(b.op("Transpose", {split, b.ints({0, 1, 2, 4, 3})}), grad);
  c.dx(0, b.op("Conv2DBackpropInput", {image, filter, turned},
               {{"strides", c.attr<std::vector<int64_t>>("strides")},
                {"padding", c.attr<std::string>("padding")},
                {"dilations", c.attr<std::vector<int64_t>>("rates")}}));
  return {};
}

struct PatchArgs {
  int64_t batch = 0, height = 0, width = 0, pixel = 0;  // bytes of a pixel
  int64_t out_height = 0, out_width = 0, top = 0, left = 0, shards = 1;
  Window window;
};

void patch_row(const PatchArgs& a, const char* x, char* out, int64_t n, int64_t oy) {
  const Window& w = a.window;
  for (int64_t ox = 0; ox < a.out_width; ++ox) {
    for (int64_t ky = 0; ky < w.size[0]; ++ky) {
      const int64_t y = oy * w.stride[0] + ky * w.dilation[0] - a.top;
      for (int64_t kx = 0; kx < w.size[1]; ++kx, out += a.pixel) {
        const int64_t at = ox * w.stride[1] + kx * w.dilation[1] - a.left;
        if (y < 0 || y >= a.height || at < 0 || at >= a.width) std::fill(out, out + a.pixel, char{0});
        else cpu::copy_row(out, x + ((n * a.height + y) * a.width + at) * a.pixel, a.pixel);
      }
    }
  }
}

Status patches_run(RunContext& c) {
  const auto& a = c.args<PatchArgs>();
  const int64_t rows = a.batch * a.out_height, row_bytes = a.out_width * a.window.size[0] * a.window.size[1] * a.pixel;
  c.pool().parallel_for(a.shards, [&](int64_t shard) {
    for (const int64_t row : watched(rows * shard / a.shards, rows * (shard + 1) / a.shards, row_bytes / 4)) {
      patch_row(a, c.in<char>(0), c.out<char>(0) + row * row_bytes, row / a.out_height, row % a.out_height);
    }
  });
  return {};
}

Status patches_prepare(PrepareContext& c) {
  auto& a = *c.args<PatchArgs>();
  DTG_ASSIGN(a.window, patch_window(c.node()));
  const Shape& image = c.input(0).shape;
  a.batch = image.dim(0), a.height = image.dim(1), a.width = image.dim(2);
  a.pixel = image.dim(3) * dtype_size(c.input(0).dtype);
  DTG_ASSIGN(const Extent y, extent_of(c.node(), a.window, 0, a.height));
  DTG_ASSIGN(const Extent x, extent_of(c.node(), a.window, 1, a.width));
  a.out_height = y.out, a.out_width = x.out, a.top = y.before, a.left = x.before;
  a.shards = std::clamp<int64_t>(c.output(0).bytes() / 65536, 1, std::clamp<int64_t>(a.batch * a.out_height, 1, 16));
  return c.sync(patches_run);
}

}  // namespace

void register_patches(OpTable& ops, KernelTable& kernels) {
  ops.add(
      OpDef::make("ExtractImagePatches")
          .input("images: T", {.rank = 4})
          .output("patches: T")
          .attr("ksizes: list(int) >= 4")
          .attr("strides: list(int) >= 4")
          .attr("rates: list(int) >= 4")
          .attr("T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128, bool}")
          .attr("padding: {'SAME','VALID'}")
          .shape(patches_shape)
          .gradient(patches_grad)
          .doc("What lies under each position of a window, laid out along the channels."));
  kernels.add({.op = "ExtractImagePatches", .types = {{"T", kPlain}}, .prepare = patches_prepare});
}

}  // namespace dtg::ops
