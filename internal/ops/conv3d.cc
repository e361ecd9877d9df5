// Conv3D and its two backprops. float32 with channels last is a product of matrices: what lies under a block of positions is laid
// out as rows, block by block, so that it stays in the cache. Other types and channels first take the plain loops. Registered once
// by the runtime; kernels run on any thread.
#include <algorithm>
#include <type_traits>

#include "device/cpu/copy.h"
#include "device/cpu/gemm.h"
#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/window3.h"
#include "tensor/buffer.h"

namespace dtg::ops {
namespace {

// ---- shapes ------------------------------------------------------------------------------------------------

Result<PartialShape> convolved_volume(const Node& node, const PartialShape& volume, const PartialShape& filter) {
  DTG_ASSIGN(Window3 w, window3_of(node));
  PartialShape out = PartialShape::of_rank(5);
  if (volume.has_rank()) out.set_dim(0, volume.dim(0));
  if (!filter.has_rank()) return out;
  out.set_dim(w.channel_axis(), filter.dim(4));
  if (!volume.has_rank()) return out;
  const char* name = node.op->name().c_str();
  const int64_t channels = volume.dim(w.channel_axis());
  if (channels >= 0 && filter.dim(3) >= 0 && channels != filter.dim(3)) {
    return invalid_argument("%s: the input has %lld channels, but the filter %lld", name, static_cast<long long>(channels),
                            static_cast<long long>(filter.dim(3)));
  }
  for (int i = 0; i < 3; ++i) {
    if (filter.dim(i) < 0) continue;
    if (filter.dim(i) == 0) return invalid_argument("%s: the filter %s is empty", name, filter.text().c_str());
    w.size[static_cast<size_t>(i)] = filter.dim(i);
    DTG_ASSIGN(const Extent extent, extent_of(node, w, i, volume.dim(w.spatial_axis(i))));
    out.set_dim(w.spatial_axis(i), extent.out);
  }
  return out;
}

Status conv_shape(InferContext& c) {
  for (int i = 0; i < 2; ++i) DTG_TRY(c.require_rank(i, 5));
  DTG_ASSIGN(PartialShape out, convolved_volume(c.node(), c.input(0), c.input(1)));
  c.output(0, out);
  return {};
}

Status check_backprop(InferContext& c, const PartialShape& volume, const PartialShape& filter) {
  DTG_TRY(c.require_rank(2, 5));
  DTG_ASSIGN(const PartialShape want, convolved_volume(c.node(), volume, filter));
  auto merged = PartialShape::merge(want, c.input(2), "output shape");
  if (!merged.ok()) return c.error("out_backprop: %s", merged.status().message().c_str());
  return {};
}

Result<PartialShape> given_sizes(InferContext& c, int input) {
  DTG_ASSIGN(PartialShape sizes, c.shape_from_input(input));
  if (!sizes.has_rank()) return PartialShape::of_rank(5);
  if (sizes.rank() != 5) return c.error("%s must have 5 elements, but has %d", input == 0 ? "input_sizes" : "filter_sizes", sizes.rank());
  return sizes;
}

Status conv_input_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 5));
  DTG_ASSIGN(const PartialShape volume, given_sizes(c, 0));
  DTG_TRY(check_backprop(c, volume, c.input(1)));
  c.output(0, volume);
  return {};
}

Status conv_filter_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 5));
  DTG_ASSIGN(const PartialShape filter, given_sizes(c, 1));
  DTG_TRY(check_backprop(c, c.input(0), filter));
  c.output(0, filter);
  return {};
}

// ---- gradients ---------------------------------------------------------------------------------------------

Value like_this(GradContext& c, std::string_view op, std::initializer_list<Value> inputs) {
  static constexpr std::string_view kNames[] = {"strides", "padding", "data_format", "dilations"};
  const auto attrs = window_attrs(c.node(), kNames);
  return c.b().op(op, std::span(inputs.begin(), inputs.size()), std::span<const Attr>(attrs));
}

// Three ways to use one trilinear form of (input, filter, output): each is the gradient of the others.
Status conv_grad(GradContext& c) {
  const Value x = c.input(0), filter = c.input(1), dy = c.dy();
  c.dx(0, like_this(c, "Conv3DBackpropInputV2", {c.b().shape(x), filter, dy}));
  c.dx(1, like_this(c, "Conv3DBackpropFilterV2", {x, c.b().shape(filter), dy}));
  return {};
}

Status conv_input_grad(GradContext& c) {
  const Value filter = c.input(1), out = c.input(2), dy = c.dy();
  c.dx(1, like_this(c, "Conv3DBackpropFilterV2", {dy, c.b().shape(filter), out}));
  c.dx(2, like_this(c, "Conv3D", {dy, filter}));
  return {};
}

Status conv_filter_grad(GradContext& c) {
  const Value x = c.input(0), out = c.input(2), dy = c.dy();
  c.dx(0, like_this(c, "Conv3DBackpropInputV2", {c.b().shape(x), dy, out}));
  c.dx(2, like_this(c, "Conv3D", {x, dy}));
  return {};
}

// ---- positions and taps --------------------------------------------------------------------------------------

struct ConvDims3 {
  Volume volume;  // the window's size is the filter's
  VolumeLayout to;
  int64_t out_channels = 0;
  int64_t taps() const { return volume.window.size[0] * volume.window.size[1] * volume.window.size[2]; }
  int64_t columns() const { return taps() * volume.channels; }
  int64_t positions() const { return volume.out[0] * volume.out[1] * volume.out[2]; }  // of one volume
};

Result<ConvDims3> conv_dims(const Node& node, const Shape& volume, const Shape& filter) {
  ConvDims3 d;
  DTG_ASSIGN(Window3 w, window3_of(node));
  w.size = {filter.dim(0), filter.dim(1), filter.dim(2)};
  DTG_TRY(d.volume.set(node, w, volume));
  d.out_channels = filter.dim(4);
  d.to = {w.first, d.volume.out, d.out_channels};
  return d;
}

// A position of the output.
struct Position {
  int64_t n, z, y, x;
  Position(const ConvDims3& d, int64_t number) {
    const auto& out = d.volume.out;
    x = number % out[2], number /= out[2];
    y = number % out[1], number /= out[1];
    z = number % out[0], n = number / out[0];
  }
};

// fn(tap, offset of the place under it or -1) for every tap of a position, in order.
template <class Fn>
void for_taps(const ConvDims3& d, const Position& p, Fn fn) {
  const Volume& v = d.volume;
  const Window3& w = v.window;
  int64_t tap = 0;
  for (int64_t kz = 0; kz < w.size[0]; ++kz) {
    const int64_t z = p.z * w.stride[0] + kz * w.dilation[0] - v.before[0];
    for (int64_t ky = 0; ky < w.size[1]; ++ky) {
      const int64_t y = p.y * w.stride[1] + ky * w.dilation[1] - v.before[1];
      const bool line = z >= 0 && z < v.in[0] && y >= 0 && y < v.in[1];
      for (int64_t kx = 0; kx < w.size[2]; ++kx, ++tap) {
        const int64_t x = p.x * w.stride[2] + kx * w.dilation[2] - v.before[2];
        fn(tap, line && x >= 0 && x < v.in[2] ? v.from.at(p.n, z, y, x) : -1);
      }
    }
  }
}

// ---- the fast way: rows of what lies under each position ---------------------------------------------------

struct RowPlan {
  ConvDims3 dims;
  int64_t rows = 1, blocks = 0, each = 0;  // positions of a block; blocks of all, or of one volume, of `each` positions
  cpu::GemmPlan full, rest;
  int64_t shards = 1, shard_floats = 0, laid_floats = 0, product_floats = 0;
};

int64_t room(Bytes floats) { return (floats * 4).aligned(kBlockAlign).value() / 4; }

enum class Way : uint8_t { forward, input, filter };

cpu::GemmPlan block_plan(const ConvDims3& d, Way way, int64_t rows) {
  switch (way) {
    case Way::forward: return cpu::gemm_plan(rows, d.out_channels, d.columns(), false, false, false);
    case Way::input: return cpu::gemm_plan(rows, d.columns(), d.out_channels, false, true, false);
    default: return cpu::gemm_plan(d.columns(), d.out_channels, rows, true, false, false);
  }
}

// The input's gradient goes volume by volume, since positions share places.
Status set_rows(PrepareContext& c, RowPlan& p, Way way) {
  const ConvDims3& d = p.dims;
  p.each = way == Way::input ? d.positions() : d.volume.batch * d.positions();
  p.rows = std::clamp<int64_t>(131072 / std::max<int64_t>(d.columns(), 1), 32, 1024);
  p.rows = std::max<int64_t>(std::min(p.rows, p.each), 1);
  p.blocks = (p.each + p.rows - 1) / p.rows;
  p.full = block_plan(d, way, p.rows);
  p.rest = block_plan(d, way, std::max<int64_t>(p.each - (p.blocks - 1) * p.rows, 0));
  const double flops =
      2.0 * static_cast<double>(d.volume.batch * d.positions()) * static_cast<double>(d.columns()) * static_cast<double>(d.out_channels);
  const int64_t units = way == Way::input ? d.volume.batch : p.blocks;
  p.shards = std::clamp<int64_t>(static_cast<int64_t>(std::min(flops / 8e6, 64.0)), 1, std::clamp<int64_t>(units, 1, 16));
  p.laid_floats = room(Bytes::of(p.rows, d.columns()));
  p.product_floats = way == Way::filter ? room(Bytes::of(d.columns(), d.out_channels)) : 0;
  const Bytes gemm = std::max(p.full.workspace(), p.rest.workspace());
  const Bytes shard = (Bytes(p.laid_floats) + Bytes(p.product_floats) * 2) * 4 + gemm.aligned(kBlockAlign);
  p.shard_floats = shard.value() / 4;
  c.workspace(shard.is_overflow() ? shard : shard * p.shards);
  return {};
}

// Positions [first, first + rows) laid out.
void lay_rows(const ConvDims3& d, const float* x, int64_t first, int64_t rows, float* to) {
  const int64_t bytes = d.volume.channels * 4;
  for (int64_t i = 0; i < rows; ++i) {
    for_taps(d, Position(d, first + i), [&](int64_t, int64_t at) {
      if (at < 0) std::fill(to, to + d.volume.channels, 0.0f);
      else cpu::copy_row(reinterpret_cast<char*>(to), reinterpret_cast<const char*>(x + at), bytes);
      to += d.volume.channels;
    });
  }
}

struct ShardMemory {
  float *laid, *product, *sum, *gemm;
  ShardMemory(const RowPlan& p, float* workspace, int64_t shard)
      : laid(workspace + shard * p.shard_floats),
        product(laid + p.laid_floats),
        sum(product + p.product_floats),
        gemm(sum + p.product_floats) {}
};

int64_t rows_of(const RowPlan& p, int64_t block) { return std::min(p.rows, p.each - block * p.rows); }

void multiply(const RowPlan& p, int64_t rows, const float* a, const float* b, float* c, const ShardMemory& m) {
  cpu::gemm_run_alone(rows == p.rows ? p.full : p.rest, a, b, nullptr, false, c, m.gemm);
}

Status forward_rows_run(RunContext& c) {
  const auto& p = c.args<RowPlan>();
  c.pool().parallel_for(p.shards, [&](int64_t shard) {
    const ShardMemory m(p, c.workspace<float>(), shard);
    for (int64_t block = p.blocks * shard / p.shards; block < p.blocks * (shard + 1) / p.shards; ++block) {
      const int64_t rows = rows_of(p, block);
      lay_rows(p.dims, c.in<float>(0), block * p.rows, rows, m.laid);
      multiply(p, rows, m.laid, c.in<float>(1), c.out<float>(0) + block * p.rows * p.dims.out_channels, m);
    }
  });
  return {};
}

// The gradient of what was laid out, added back to where it came from.
void add_rows_back(const ConvDims3& d, const float* laid, int64_t first, int64_t rows, float* dx) {
  for (int64_t i = 0; i < rows; ++i) {
    for_taps(d, Position(d, first + i), [&](int64_t, int64_t at) {
      if (at >= 0) {
        for (int64_t k = 0; k < d.volume.channels; ++k) dx[at + k] += laid[k];
      }
      laid += d.volume.channels;
    });
  }
}

Status input_rows_run(RunContext& c) {
  const auto& p = c.args<RowPlan>();
  const int64_t batch = p.dims.volume.batch, volume = p.dims.volume.from.volume;
  c.pool().parallel_for(p.shards, [&](int64_t shard) {
    const ShardMemory m(p, c.workspace<float>(), shard);
    for (int64_t n = batch * shard / p.shards; n < batch * (shard + 1) / p.shards; ++n) {
      std::fill(c.out<float>(0) + n * volume, c.out<float>(0) + (n + 1) * volume, 0.0f);
      for (int64_t block = 0; block < p.blocks; ++block) {
        const int64_t rows = rows_of(p, block), first = n * p.each + block * p.rows;
        multiply(p, rows, c.in<float>(2) + first * p.dims.out_channels, c.in<float>(1), m.laid, m);
        add_rows_back(p.dims, m.laid, first, rows, c.out<float>(0));
      }
    }
  });
  return {};
}

Status filter_rows_run(RunContext& c) {
  const auto& p = c.args<RowPlan>();
  const int64_t count = p.dims.columns() * p.dims.out_channels;
  c.pool().parallel_for(p.shards, [&](int64_t shard) {
    const ShardMemory m(p, c.workspace<float>(), shard);
    std::fill(m.sum, m.sum + count, 0.0f);
    for (int64_t block = p.blocks * shard / p.shards; block < p.blocks * (shard + 1) / p.shards; ++block) {
      const int64_t rows = rows_of(p, block);
      lay_rows(p.dims, c.in<float>(0), block * p.rows, rows, m.laid);
      multiply(p, rows, m.laid, c.in<float>(2) + block * p.rows * p.dims.out_channels, m.product, m);
      for (int64_t i = 0; i < count; ++i) m.sum[i] += m.product[i];
    }
  });
  float* df = c.out<float>(0);
  std::fill(df, df + count, 0.0f);
  for (int64_t shard = 0; shard < p.shards; ++shard) {
    const float* sum = ShardMemory(p, c.workspace<float>(), shard).sum;
    for (int64_t i = 0; i < count; ++i) df[i] += sum[i];
  }
  return {};
}

// ---- plain loops ---------------------------------------------------------------------------------------------

constexpr int64_t kColumns = 64;  // sums held at a time

template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class Fn>
void for_units(Pool& pool, const ConvDims3& d, int64_t units, Fn fn) {
  const double steps = static_cast<double>(d.volume.batch * d.positions()) * static_cast<double>(d.columns() * d.out_channels);
  const int64_t shards = std::clamp<int64_t>(static_cast<int64_t>(std::min(steps / 131072, 64.0)), 1, std::clamp<int64_t>(units, 1, 16));
  const auto each = static_cast<int64_t>(std::min(steps, 1e18)) / std::max<int64_t>(units, 1);
  pool.parallel_for(shards, [&](int64_t shard) { look_between(units * shard / shards, units * (shard + 1) / shards, each, fn); });
}

// Position by position.
template <class T>
void forward_plain(Pool& pool, const ConvDims3& d, const T* x, const T* filter, T* y) {
  for_units(pool, d, d.volume.batch * d.positions(), [&](int64_t unit) {
    const Position p(d, unit);
    T* to = y + d.to.at(p.n, p.z, p.y, p.x);
    for (int64_t first = 0; first < d.out_channels; first += kColumns) {
      const int64_t count = std::min(kColumns, d.out_channels - first);
      SumOf<T> sum[kColumns] = {};
      for_taps(d, p, [&](int64_t tap, int64_t at) {
        for (int64_t k = 0; at >= 0 && k < d.volume.channels; ++k) {
          const auto value = static_cast<SumOf<T>>(x[at + k * d.volume.from.channel]);
          const T* row = filter + (tap * d.volume.channels + k) * d.out_channels + first;
          for (int64_t j = 0; j < count; ++j) sum[j] += value * static_cast<SumOf<T>>(row[j]);
        }
      });
      for (int64_t j = 0; j < count; ++j) to[(first + j) * d.to.channel] = static_cast<T>(sum[j]);
    }
  });
}

// Where along one axis a tap of the output lies that sees place `at`; -1: nowhere.
int64_t seen_from(const Volume& v, size_t axis, int64_t at, int64_t tap) {
  const int64_t place = at + v.before[axis] - tap * v.window.dilation[axis], stride = v.window.stride[axis];
  return place < 0 || place % stride != 0 || place / stride >= v.out[axis] ? -1 : place / stride;
}

// Place by place and channel by channel.
template <class T>
void input_plain(Pool& pool, const ConvDims3& d, const T* dy, const T* filter, T* dx) {
  const Volume& v = d.volume;
  const auto& size = v.window.size;
  for_units(pool, d, v.batch * v.in[0] * v.in[1] * v.in[2], [&](int64_t unit) {
    const int64_t x = unit % v.in[2], y = unit / v.in[2] % v.in[1], z = unit / v.in[2] / v.in[1] % v.in[0],
                  n = unit / (v.in[0] * v.in[1] * v.in[2]);
    for (int64_t k = 0; k < v.channels; ++k) {
      SumOf<T> sum(0);
      for (int64_t tap = 0; tap < d.taps(); ++tap) {
        const int64_t oz = seen_from(v, 0, z, tap / size[2] / size[1]), oy = seen_from(v, 1, y, tap / size[2] % size[1]);
        const int64_t ox = seen_from(v, 2, x, tap % size[2]);
        if (oz < 0 || oy < 0 || ox < 0) continue;
        const T* from = dy + d.to.at(n, oz, oy, ox);
        const T* row = filter + (tap * v.channels + k) * d.out_channels;
        for (int64_t j = 0; j < d.out_channels; ++j) sum += static_cast<SumOf<T>>(from[j * d.to.channel]) * static_cast<SumOf<T>>(row[j]);
      }
      dx[v.from.at(n, z, y, x) + k * v.from.channel] = static_cast<T>(sum);
    }
  });
}

// Row by row of the filter: one tap, one input channel.
template <class T>
void filter_plain(Pool& pool, const ConvDims3& d, const T* x, const T* dy, T* df) {
  const Volume& v = d.volume;
  const auto& w = v.window;
  for_units(pool, d, d.columns(), [&](int64_t unit) {
    const int64_t k = unit % v.channels, tap = unit / v.channels;
    const int64_t kx = tap % w.size[2], ky = tap / w.size[2] % w.size[1], kz = tap / w.size[2] / w.size[1];
    for (int64_t first = 0; first < d.out_channels; first += kColumns) {
      const int64_t count = std::min(kColumns, d.out_channels - first);
      SumOf<T> sum[kColumns] = {};
      for (int64_t at = 0; at < v.batch * d.positions(); ++at) {
        const Position p(d, at);
        const int64_t z = p.z * w.stride[0] + kz * w.dilation[0] - v.before[0], y = p.y * w.stride[1] + ky * w.dilation[1] - v.before[1];
        const int64_t column = p.x * w.stride[2] + kx * w.dilation[2] - v.before[2];
        if (z < 0 || z >= v.in[0] || y < 0 || y >= v.in[1] || column < 0 || column >= v.in[2]) continue;
        const auto value = static_cast<SumOf<T>>(x[v.from.at(p.n, z, y, column) + k * v.from.channel]);
        const T* from = dy + d.to.at(p.n, p.z, p.y, p.x) + first * d.to.channel;
        for (int64_t j = 0; j < count; ++j) sum[j] += value * static_cast<SumOf<T>>(from[j * d.to.channel]);
      }
      for (int64_t j = 0; j < count; ++j) df[unit * d.out_channels + first + j] = static_cast<T>(sum[j]);
    }
  });
}

// ---- kernels -----------------------------------------------------------------------------------------------

// The sizes may come with the step: then the other two shapes are kept, and the rest is worked out in run.
struct PlainArgs {
  Integers sizes;
  OutputSpec out;
  Shape other, grad;
};

template <class T>
Status forward_plain_run(RunContext& c) {
  forward_plain(c.pool(), c.args<ConvDims3>(), c.in<T>(0), c.in<T>(1), c.out<T>(0));
  return {};
}

template <class T, Way kWay>
Status backprop_plain_run(RunContext& c) {
  const auto& a = c.args<PlainArgs>();
  Integers::Buffer buffer;
  const auto given = Shape::make(a.sizes.get(c, buffer));
  if (!given.ok() || given.value().rank() != 5) return c.error("the sizes must be 5 numbers that are not negative");
  const Shape &volume = kWay == Way::input ? given.value() : a.other, &filter = kWay == Way::input ? a.other : given.value();
  DTG_ASSIGN(const PartialShape want, convolved_volume(c.node(), volume, filter));
  if (!want.admits(a.grad)) {
    return c.error("input %s and filter %s give output %s, but out_backprop is %s", volume.text().c_str(), filter.text().c_str(),
                   want.text().c_str(), a.grad.text().c_str());
  }
  DTG_ASSIGN(const ConvDims3 d, conv_dims(c.node(), volume, filter));
  DTG_ASSIGN(char* memory, a.out.memory(c, given.value()));
  T* out = reinterpret_cast<T*>(memory);
  if constexpr (kWay == Way::input) input_plain(c.pool(), d, c.in<T>(2), c.in<T>(1), out);
  else filter_plain(c.pool(), d, c.in<T>(0), c.in<T>(2), out);
  return {};
}

template <class T>
bool is_fast(const Node& node) {
  return std::is_same_v<T, float> && node.attr<std::string>("data_format") == "NDHWC";
}

template <class T>
Status forward_prepare(PrepareContext& c) {
  DTG_ASSIGN(const ConvDims3 dims, conv_dims(c.node(), c.input(0).shape, c.input(1).shape));
  if (is_fast<T>(c.node()) && dims.columns() > 0) {
    c.args<RowPlan>()->dims = dims;
    DTG_TRY(set_rows(c, *c.args<RowPlan>(), Way::forward));
    return c.sync(forward_rows_run);
  }
  *c.args<ConvDims3>() = dims;
  return c.sync(forward_plain_run<T>);
}

template <class T, Way kWay>
Status backprop_prepare(PrepareContext& c) {
  constexpr int kSizes = kWay == Way::input ? 0 : 1;
  if (is_fast<T>(c.node()) && !c.output(0).dynamic) {
    const Shape& volume = kWay == Way::input ? c.output(0).shape : c.input(0).shape;
    const Shape& filter = kWay == Way::input ? c.input(1).shape : c.output(0).shape;
    DTG_ASSIGN(const ConvDims3 dims, conv_dims(c.node(), volume, filter));
    if (dims.columns() > 0 && dims.out_channels > 0) {
      c.args<RowPlan>()->dims = dims;
      DTG_TRY(set_rows(c, *c.args<RowPlan>(), kWay));
      return c.sync(kWay == Way::input ? input_rows_run : filter_rows_run);
    }
  }
  auto& a = *c.args<PlainArgs>();
  if (c.input(kSizes).shape.count() != 5)
    return c.error("the sizes must have 5 elements, but have shape %s", c.input(kSizes).shape.text().c_str());
  DTG_TRY(a.sizes.prepare(c, kSizes));
  a.out.prepare(c, 0);
  a.other = c.input(1 - kSizes).shape;
  a.grad = c.input(2).shape;
  return c.sync(backprop_plain_run<T, kWay>);
}

template <class T>
void add_kernels(KernelTable& kernels) {
  const KernelRow::TypeClause type{"T", DTypeSet{dtype_of<T>}};
  kernels.add({.op = "Conv3D", .types = {type}, .prepare = forward_prepare<T>});
  kernels.add({.op = "Conv3DBackpropInputV2", .types = {type}, .prepare = backprop_prepare<T, Way::input>});
  kernels.add({.op = "Conv3DBackpropFilterV2", .types = {type}, .prepare = backprop_prepare<T, Way::filter>});
}

OpDef&& volume_def(OpDef&& def) {
  return std::move(def)
      .attr("T: {half, bfloat16, float, double}")
      .attr("strides: list(int) >= 5")
      .attr("padding: {'SAME','VALID'}")
      .attr("data_format: {'NDHWC','NCDHW'} = 'NDHWC'")
      .attr("dilations: list(int) = [1, 1, 1, 1, 1]");
}

}  // namespace

void register_conv3d(OpTable& ops, KernelTable& kernels) {
  ops.add(volume_def(OpDef::make("Conv3D").input("input: T", {.rank = 5}).input("filter: T", {.rank = 5}).output("output: T"))
              .shape(conv_shape)
              .gradient(conv_grad)
              .doc("Three-dimensional convolution (cross-correlation)."));
  ops.add(volume_def(OpDef::make("Conv3DBackpropInputV2")
                         .input("input_sizes: Tshape", {.rank = 1})
                         .input("filter: T", {.rank = 5})
                         .input("out_backprop: T", {.rank = 5})
                         .output("output: T"))
              .attr("Tshape: {int32, int64} = int32")
              .shape(conv_input_shape)
              .gradient(conv_input_grad)
              .doc("Gradient of Conv3D with respect to its input."));
  ops.add(volume_def(OpDef::make("Conv3DBackpropFilterV2")
                         .input("input: T", {.rank = 5})
                         .input("filter_sizes: int32", {.rank = 1})
                         .input("out_backprop: T", {.rank = 5})
                         .output("output: T"))
              .shape(conv_filter_shape)
              .gradient(conv_filter_grad)
              .doc("Gradient of Conv3D with respect to its filter."));
  add_kernels<float>(kernels);
  add_kernels<double>(kernels);
  add_kernels<Half>(kernels);
  add_kernels<BFloat16>(kernels);
}

}  // namespace dtg::ops
