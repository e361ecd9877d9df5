// BiasAdd and BiasAddGrad: a vector added along the channels, and the sum back. Channels are last (NHWC) or
// second (NCHW). Registered once by the runtime; kernels run on any thread.
#include <algorithm>
#include <type_traits>

#include "device/cpu/rows.h"
#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/fuse.h"

namespace dtg::ops {
namespace {

constexpr const char* kNumberTypes =
    "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, "
    "uint16, complex128, half, uint32, uint64}";

bool channels_second(const Node& node) {
  const AttrValue* format = node.find_attr("data_format");
  return format && *format->get<std::string>() == "NCHW";
}

int channel_axis(const Node& node, int rank) { return channels_second(node) ? 1 : rank - 1; }

// ---- BiasAdd, BiasAddV1 ------------------------------------------------------------------------------------

Status bias_add_shape(InferContext& c) {
  DTG_TRY(c.require_rank_at_least(0, 2));
  DTG_TRY(c.require_rank(1, 1));
  if (!c.input(0).has_rank()) return {};
  PartialShape out = c.input(0);
  const int axis = channel_axis(c.node(), out.rank());
  const int64_t channels = out.dim(axis), given = c.input(1).has_rank() ? c.input(1).dim(0) : -1;
  if (channels >= 0 && given >= 0 && channels != given) {
    return c.error("the bias has %lld elements, but dimension %d of %s has %lld", static_cast<long long>(given), axis, out.text().c_str(),
                   static_cast<long long>(channels));
  }
  if (channels < 0) out.set_dim(axis, given);
  c.output(0, out);
  return {};
}

// dvalue = dy, dbias = sum of dy over everything but the channels.
Status bias_add_grad(GradContext& c) {
  const AttrValue* format = c.node().find_attr("data_format");
  const std::string word = format ? *format->get<std::string>() : "NHWC";
  c.dx(0, c.dy());
  c.dx(1, c.b().op("BiasAddGrad", {c.dy()}, {{"data_format", word}}));
  return {};
}

// [outer, channels, inner]: inner is 1 when channels come last.
struct BiasArgs {
  int64_t outer = 0, channels = 0, inner = 1;
  int64_t shards = 1;
};

constexpr int64_t kShardElements = 32768;

void set_layout(BiasArgs& args, const Node& node, const Shape& shape) {
  const int axis = channel_axis(node, shape.rank());
  args.outer = shape.count(0, axis);
  args.channels = shape.dim(axis);
  args.inner = shape.count(axis + 1, shape.rank());
}

template <class T>
using WideOf = std::conditional_t<
    std::is_same_v<T, double>, double,
    std::conditional_t<std::is_integral_v<T>, std::make_unsigned_t<std::conditional_t<std::is_integral_v<T>, T, int>>, float>>;

template <class T>
T plus(T a, T b) {
  return static_cast<T>(static_cast<WideOf<T>>(a) + static_cast<WideOf<T>>(b));
}

template <class T>
void add_rows(const T* x, const T* bias, T* y, int64_t rows, int64_t channels) {
  if constexpr (std::is_same_v<T, float>) return cpu::add_to_rows(x, bias, y, rows, channels);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < channels; ++i) y[r * channels + i] = plus(x[r * channels + i], bias[i]);
  }
}

template <class T>
Status bias_add_run(RunContext& c) {
  const auto& a = c.args<BiasArgs>();
  const T* x = c.in<T>(0);
  const T* bias = c.in<T>(1);
  T* y = c.out<T>(0);
  c.pool().parallel_for(a.shards, [&](int64_t shard) {
    const int64_t from = a.outer * shard / a.shards, to = a.outer * (shard + 1) / a.shards;
    const int64_t row = a.channels * a.inner;
    if (a.inner == 1) return add_rows(x + from * row, bias, y + from * row, to - from, a.channels);
    for (int64_t i = from * a.channels; i < to * a.channels; ++i) {
      const T value = bias[i % a.channels];
      for (int64_t k = 0; k < a.inner; ++k) y[i * a.inner + k] = plus(x[i * a.inner + k], value);
    }
  });
  return {};
}

template <class T>
Status bias_add_prepare(PrepareContext& c) {
  auto& args = *c.args<BiasArgs>();
  const Shape& shape = c.input(0).shape;
  set_layout(args, c.node(), shape);
  args.shards = std::clamp<int64_t>(shape.count() / kShardElements, 1, std::clamp<int64_t>(args.outer, 1, 16));
  c.may_overwrite(0, 0);
  return c.sync(bias_add_run<T>);
}

// ---- BiasAddGrad -------------------------------------------------------------------------------------------

Status bias_grad_shape(InferContext& c) {
  DTG_TRY(c.require_rank_at_least(0, 2));
  const PartialShape& x = c.input(0);
  c.output(0, PartialShape::vector(x.has_rank() ? x.dim(channel_axis(c.node(), x.rank())) : -1));
  return {};
}

// The gradient of a sum is its broadcast: zeros like the input, plus the vector.
Status bias_grad_grad(GradContext& c) {
  Build& b = c.b();
  const std::string format = c.attr<std::string>("data_format");
  c.dx(0, b.op("BiasAdd", {b.zeros_like(c.input(0)), c.dy()}, {{"data_format", format}}));
  return {};
}

// Sums of a stretch of rows. The order of additions depends on the shapes alone.
template <class T, class Wide>
void sum_rows(const T* x, int64_t rows, int64_t channels, Wide* sum) {
  if constexpr (std::is_same_v<T, float>) return cpu::sum_rows(x, rows, channels, sum);
  std::fill(sum, sum + channels, Wide(0));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < channels; ++i) sum[i] = static_cast<Wide>(sum[i] + static_cast<Wide>(x[r * channels + i]));
  }
}

constexpr int64_t kBlock = 512;

// Floats in double, which takes no longer, as each addition waits for the one before; a long sum of them would swallow what is small beside
// it.
template <class Wide, class T>
Wide sum_line(const T* x, int64_t count) {
  using Sum = std::conditional_t<std::is_floating_point_v<Wide>, double, Wide>;
  Sum sum(0);
  for (int64_t k = 0; k < count; ++k) sum = static_cast<Sum>(sum + static_cast<Sum>(static_cast<Wide>(x[k])));
  return static_cast<Wide>(sum);
}

template <class T, class Wide>
void sum_planes(const T* x, int64_t outer, int64_t channels, int64_t inner, Wide* sum) {
  std::fill(sum, sum + channels, Wide(0));
  for (int64_t i = 0; i < outer * channels; ++i)
    sum[i % channels] = static_cast<Wide>(sum[i % channels] + sum_line<Wide>(x + i * inner, inner));
}

// `outer` rows of channels, or as many sets of planes, in blocks for the same reason. `block` is room for one more sum.
template <class T, class Wide>
void sum_blocks(const T* x, int64_t outer, int64_t channels, int64_t inner, Wide* sum, Wide* block) {
  const auto add_up = [&](int64_t from, Wide* to) {
    const int64_t count = std::min(outer - from, kBlock);
    if (inner == 1) sum_rows(x + from * channels, count, channels, to);
    else sum_planes(x + from * channels * inner, count, channels, inner, to);
  };
  add_up(0, sum);
  for (int64_t from = kBlock; from < outer; from += kBlock) {
    add_up(from, block);
    for (int64_t i = 0; i < channels; ++i) sum[i] = static_cast<Wide>(sum[i] + block[i]);
  }
}

// Every shard sums its rows into the workspace; the sums are added in the order of the shards.
template <class T>
Status bias_grad_run(RunContext& c) {
  using Wide = WideOf<T>;
  const auto& a = c.args<BiasArgs>();
  const T* x = c.in<T>(0);
  T* y = c.out<T>(0);
  Wide* sums = c.workspace<Wide>();
  c.pool().parallel_for(a.shards, [&](int64_t shard) {
    const int64_t from = a.outer * shard / a.shards, to = a.outer * (shard + 1) / a.shards;
    const T* at = x + from * a.channels * a.inner;
    Wide* sum = sums + shard * a.channels;
    sum_blocks(at, to - from, a.channels, a.inner, sum, sums + (a.shards + shard) * a.channels);
  });
  for (int64_t i = 0; i < a.channels; ++i) {
    Wide total = sums[i];
    for (int64_t s = 1; s < a.shards; ++s) total = static_cast<Wide>(total + sums[s * a.channels + i]);
    y[i] = static_cast<T>(total);
  }
  return {};
}

template <class T>
Status bias_grad_prepare(PrepareContext& c) {
  auto& args = *c.args<BiasArgs>();
  const Shape& shape = c.input(0).shape;
  set_layout(args, c.node(), shape);
  args.shards = std::clamp<int64_t>(shape.count() / kShardElements, 1, std::clamp<int64_t>(args.outer, 1, 16));
  c.workspace(std::max(Bytes::of(args.channels, sizeof(WideOf<T>)) * (2 * args.shards), Bytes(sizeof(WideOf<T>))));
  return c.sync(bias_grad_run<T>);
}

template <class T>
void add_kernels(KernelTable& kernels) {
  const KernelRow::TypeClause type{"T", DTypeSet{dtype_of<T>}};
  kernels.add({.op = "BiasAdd", .types = {type}, .prepare = bias_add_prepare<T>});
  kernels.add({.op = "BiasAddV1", .types = {type}, .prepare = bias_add_prepare<T>});
  kernels.add({.op = "BiasAddGrad", .types = {type}, .prepare = bias_grad_prepare<T>});
}

}  // namespace

void register_bias(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("BiasAdd")
              .input("value: T", {.rank_min = 2})
              .input("bias: T", {.rank = 1})
              .output("output: T")
              .attr(kNumberTypes)
              .attr("data_format: {'NHWC','NCHW'} = 'NHWC'")
              .shape(bias_add_shape)
              .fuse(fuse_bias_add)
              .gradient(bias_add_grad)
              .doc("Adds one bias per channel."));
  ops.add(OpDef::make("BiasAddV1")
              .input("value: T", {.rank_min = 2})
              .input("bias: T", {.rank = 1})
              .output("output: T")
              .attr(kNumberTypes)
              .shape(bias_add_shape)
              .gradient(bias_add_grad)
              .doc("Adds one bias per channel, channels last."));
  ops.add(OpDef::make("BiasAddGrad")
              .input("out_backprop: T", {.rank_min = 2})
              .output("output: T")
              .attr(kNumberTypes)
              .attr("data_format: {'NHWC','NCHW'} = 'NHWC'")
              .shape(bias_grad_shape)
              .gradient(bias_grad_grad)
              .doc("Sums over everything but the channels."));
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
  add_kernels<uint32_t>(kernels);
  add_kernels<uint64_t>(kernels);
}

}  // namespace dtg::ops
