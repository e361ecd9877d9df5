// FusedBatchNorm V1 to V3 and their gradients: each channel brought to mean 0 and variance 1, then scaled and shifted. What is
// averaged over is cut into blocks that stay in the cache, so that mean and variance cost one pass over memory; blocks are joined
// by Chan's formula, in the order of the shards. Registered once by the runtime; kernels run on any thread.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "device/cpu/norm.h"
#include "device/cpu/rows.h"
#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"

namespace dtg::ops {
namespace {

// ---- shapes ------------------------------------------------------------------------------------------------

int channel_axis(const Node& node, int rank) { return node.attr<std::string>("data_format")[1] == 'C' ? 1 : rank - 1; }

// Images have 4 dimensions, or 5 where the format says so.
int image_rank(const Node& node) { return static_cast<int>(node.attr<std::string>("data_format").size()); }

// The channels on which the image and the vectors among inputs [first, last) agree; -1 where nobody knows.
Result<int64_t> agreed_channels(InferContext& c, int image, int first, int last) {
  const int rank = image_rank(c.node());
  DTG_TRY(c.require_rank(image, rank));
  PartialShape channels = PartialShape::vector(c.input(image).has_rank() ? c.input(image).dim(channel_axis(c.node(), rank)) : -1);
  for (int i = first; i < last; ++i) {
    DTG_TRY(c.require_rank(i, 1));
    auto merged = PartialShape::merge(channels, c.input(i), "number of channels");
    if (!merged.ok()) return c.error("input %d: %s", i, merged.status().message().c_str());
    channels = merged.take();
  }
  return channels.dim(0);
}

PartialShape with_channels(const InferContext& c, PartialShape image, int64_t channels) {
  const int rank = image_rank(c.node());
  if (!image.has_rank()) image = PartialShape::of_rank(rank);
  image.set_dim(channel_axis(c.node(), rank), channels);
  return image;
}

// While training, mean and variance are only looked at where an average is kept.
Status norm_shape(InferContext& c) {
  const bool looked_at = !c.boolean("is_training") || c.attr<double>("exponential_avg_factor") != 1.0;
  for (int i = 3; i < 5; ++i) DTG_TRY(c.require_rank(i, 1));
  DTG_ASSIGN(const int64_t channels, agreed_channels(c, 0, 1, looked_at ? 5 : 3));
  c.output(0, with_channels(c, c.input(0), channels));
  for (int i = 1; i < 5; ++i) c.output(i, PartialShape::vector(channels));
  if (c.num_outputs() > 5) c.output(5, PartialShape::scalar());
  return {};
}

Status norm_grad_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, image_rank(c.node())));
  auto both = PartialShape::merge(c.input(0), c.input(1), "shape");
  if (!both.ok()) return c.error("y_backprop and x: %s", both.status().message().c_str());
  DTG_ASSIGN(const int64_t channels, agreed_channels(c, 1, 2, 5));
  c.output(0, with_channels(c, both.take(), channels));
  for (int i = 1; i < 3; ++i) c.output(i, PartialShape::vector(channels));
  for (int i = 3; i < 5; ++i) c.output(i, PartialShape::vector(0));
  return {};
}

// ---- gradients ---------------------------------------------------------------------------------------------

// What the gradient looks at: the moments of the batch, or those that were given.
Status norm_grad(GradContext& c) {
  const bool training = c.attr<bool>("is_training"), third = c.node().op->name() == "FusedBatchNormV3";
  std::vector<Value> inputs = {c.dy(), c.input(0), c.input(1), training ? c.output(3) : c.input(3), training ? c.output(4) : c.input(4)};
  if (third) inputs.push_back(c.output(5));
  Build& b = c.b();
  if (c.node().op->name() != "FusedBatchNorm" && b.info(c.input(1)).dtype != DType::f32) inputs[2] = b.cast(inputs[2], DType::f32);
  const char* op = third ? "FusedBatchNormGradV3" : c.node().op->name() == "FusedBatchNorm" ? "FusedBatchNormGrad" : "FusedBatchNormGradV2";
  const Attr attrs[] = {
      {"epsilon", c.attr<double>("epsilon")}, {"data_format", c.attr<std::string>("data_format")}, {"is_training", training}};
  const Value dx = b.op(op, inputs, attrs);
  if (!b.ok()) return {};
  for (int i = 0; i < 3; ++i) c.dx(i, dx.sibling(static_cast<uint32_t>(i)));
  return {};
}

// The three gradients again, as a formula of elementary ops that can be differentiated:
// dx = scale r (dy - mean(dy) - xc r^2 mean(dy xc)), dscale = sum(dy xc) r, doffset = sum(dy), with xc = x - mean and
// r = 1 / sqrt(variance + epsilon); without training, mean and variance are given and dx = scale r dy.
struct Formula {
  Value dx, dscale, doffset;
};

Formula gradient_formula(GradContext& c, Value dy, Value x, Value scale) {
  Build& b = c.b();
  const int rank = image_rank(c.node()), axis = channel_axis(c.node(), rank);
  const bool training = c.attr<bool>("is_training");
  std::vector<int64_t> over, line(static_cast<size_t>(rank), 1);
  for (int i = 0; i < rank; ++i) {
    if (i != axis) over.push_back(i);
  }
  line[static_cast<size_t>(axis)] = -1;
  const Value axes = b.ints(over), spread = b.ints(line);
  const auto wide = [&](Value v) { return b.reshape(v, spread); };
  const auto mean_of = [&](Value v) { return b.op("Mean", {v, axes}, {{"keep_dims", true}}); };
  dy = b.cast(dy, DType::f32);
  x = b.cast(x, DType::f32);
  const Value center = training ? mean_of(x) : wide(b.cast(c.input(3), DType::f32));
  const Value xc = b.sub(x, center);
  const Value variance = training ? mean_of(b.op("Square", {xc})) : wide(b.cast(c.input(4), DType::f32));
  const Value r = b.op("Rsqrt", {b.add(variance, b.scalar(DType::f32, c.attr<double>("epsilon")))});
  const Value product = b.mul(dy, xc), factor = b.mul(wide(scale), r);
  Formula f;
  if (training) {
    const Value slope = b.mul(b.op("Square", {r}), mean_of(product));
    f.dx = b.mul(factor, b.sub(b.sub(dy, mean_of(dy)), b.mul(xc, slope)));
  } else {
    f.dx = b.mul(factor, dy);
  }
  f.dscale = b.sum(b.mul(product, r), axes);
  f.doffset = b.sum(dy, axes);
  return f;
}

Status norm_grad_grad(GradContext& c) {
  Build& b = c.b();
  // By each input while the others stand: in the graph the output's gradient comes from x, too, by way of the output.
  const Value xs[] = {b.op("Identity", {c.input(0)}), b.op("Identity", {c.input(1)}), b.op("Identity", {c.input(2)})};
  const Formula f = gradient_formula(c, xs[0], xs[1], b.cast(xs[2], DType::f32));
  DTG_TRY(b.status());
  const Value all[] = {f.dx, f.dscale, f.doffset};
  std::vector<Value> ys, weights;
  for (int i = 0; i < 3; ++i) {
    if (!c.has_dy(i)) continue;
    ys.push_back(all[i]);
    weights.push_back(b.cast(c.dy(i), DType::f32));
  }
  if (ys.empty()) return {};
  DTG_TRY(b.status());
  DTG_ASSIGN(const std::vector<Gradient> found, add_gradients(b.graph(), ys, xs, weights));
  for (size_t i = 0; i < 3; ++i) {
    if (found[i].any()) c.dx(static_cast<int>(i), densify(b, found[i]));
  }
  return {};
}

// ---- blocks ------------------------------------------------------------------------------------------------

constexpr int64_t kLine = 64;           // narrow channels are handled so many floats at a time
constexpr int64_t kBlockFloats = 8192;  // 32 KiB: both passes of the moments find them in the first cache

// The images as stretches of memory in which channels repeat with a period: one stretch with all channels (channels last), or one
// of period 1 for each image and channel.
struct NormArgs {
  int64_t images = 0, plane = 0, channels = 0, stretch = 0;
  bool first = false;                        // channels first
  int64_t period = 1, width = 1, block = 1;  // width: a multiple of the period; block: of the width
  int64_t blocks = 0, shards = 1;
  bool training = true;
  float epsilon = 0, factor = 1;
  int64_t scratch = 0;                              // floats of one shard
  int64_t count() const { return images * plane; }  // values of a channel
};

// One shard's part of the workspace.
struct Scratch {
  float *line, *part, *other, *block_mean, *block_squares, *mean, *squares, *x, *dy;
  Scratch(const NormArgs& a, float* base, int64_t shard) {
    float* at = base + 4 * a.width + shard * a.scratch;
    const auto take = [&at](int64_t floats) {
      float* part_at = at;
      at += floats;
      return part_at;
    };
    line = take(a.width), part = take(a.width), other = take(a.width);
    block_mean = take(a.period), block_squares = take(a.period), mean = take(a.period), squares = take(a.period);
    x = take(a.block), dy = take(a.block);
  }
};

// 16-bit floats are widened block by block.
template <class T>
const float* widened(const T* x, int64_t n, float* buffer) {
  if constexpr (std::is_same_v<T, float>) {
    return x;
  } else {
    for (int64_t i = 0; i < n; ++i) buffer[i] = static_cast<float>(x[i]);
    return buffer;
  }
}

// Sums of a line to those of the channels, and back.
void fold(const NormArgs& a, const float* line, float* channels) {
  std::copy(line, line + a.period, channels);
  for (int64_t k = a.period; k < a.width; k += a.period) {
    for (int64_t i = 0; i < a.period; ++i) channels[i] += line[k + i];
  }
}

void spread(const NormArgs& a, const float* channels, float* line) {
  for (int64_t k = 0; k < a.width; k += a.period) std::copy(channels, channels + a.period, line + k);
}

// Mean and sum of squares about it, of a block whose columns are the channels.
void block_moments(const NormArgs& a, const float* x, int64_t n, const Scratch& s) {
  const int64_t rows = n / a.width, full = rows * a.width;
  cpu::sum_rows(x, rows, a.width, s.part);
  fold(a, s.part, s.block_mean);
  for (int64_t i = full; i < n; ++i) s.block_mean[(i - full) % a.period] += x[i];
  const float inverse = 1.0f / static_cast<float>(n / a.period);
  for (int64_t i = 0; i < a.period; ++i) s.block_mean[i] *= inverse;
  spread(a, s.block_mean, s.line);
  cpu::squares_about(x, rows, a.width, s.line, s.part);
  fold(a, s.part, s.block_squares);
  for (int64_t i = full; i < n; ++i) {
    const int64_t k = (i - full) % a.period;
    const float off = x[i] - s.block_mean[k];
    s.block_squares[k] += off * off;
  }
}

// Joins the moments of `more` values to those of `count`.
void join(int64_t channels, float* mean, float* squares, int64_t count, const float* other_mean, const float* other_squares, int64_t more) {
  const float share = static_cast<float>(more) / static_cast<float>(count + more), weight = share * static_cast<float>(count);
  for (int64_t i = 0; i < channels; ++i) {
    const float off = other_mean[i] - mean[i];
    mean[i] += off * share;
    squares[i] += other_squares[i] + off * off * weight;
  }
}

// A stretch, block by block: fn(first element, elements).
template <class Fn>
void for_blocks(const NormArgs& a, int64_t first_block, int64_t last_block, Fn fn) {
  for (int64_t block = first_block; block < last_block; ++block) fn(block * a.block, std::min(a.block, a.stretch - block * a.block));
}

// The moments of some blocks of a stretch, joined to what s.mean and s.squares hold of `count` values; the new count.
template <class T>
int64_t stretch_moments(const NormArgs& a, const T* x, int64_t first_block, int64_t last_block, int64_t count, const Scratch& s) {
  for_blocks(a, first_block, last_block, [&](int64_t at, int64_t n) {
    block_moments(a, widened(x + at, n, s.x), n, s);
    join(a.period, s.mean, s.squares, count, s.block_mean, s.block_squares, n / a.period);
    count += n / a.period;
  });
  return count;
}

// Lines of the parameters: center, factor, offset (or slope), mean of dy.
template <class T>
void stretch_scaled(const NormArgs& a, const T* x, T* y, int64_t first_block, int64_t last_block, const float* lines, const Scratch& s) {
  for_blocks(a, first_block, last_block, [&](int64_t at, int64_t n) {
    const float* from = widened(x + at, n, s.x);
    float* to = s.dy;
    if constexpr (std::is_same_v<T, float>) to = y + at;
    const int64_t rows = n / a.width, full = rows * a.width;
    cpu::shift_scale_rows(from, rows, a.width, lines, lines + a.width, lines + 2 * a.width, to);
    if (full < n) cpu::shift_scale_rows(from + full, 1, n - full, lines, lines + a.width, lines + 2 * a.width, to + full);
    if constexpr (!std::is_same_v<T, float>) {
      for (int64_t i = 0; i < n; ++i) y[at + i] = static_cast<T>(to[i]);
    }
  });
}

// Sums of dy and of dy (x - center), added to s.mean and s.squares.
template <class T>
void stretch_sums(const NormArgs& a, const T* dy, const T* x, int64_t first_block, int64_t last_block, const float* center,
                  const Scratch& s) {
  for_blocks(a, first_block, last_block, [&](int64_t at, int64_t n) {
    const float *g = widened(dy + at, n, s.dy), *values = widened(x + at, n, s.x);
    const int64_t rows = n / a.width, full = rows * a.width;
    cpu::gradient_sums(g, values, rows, a.width, center, s.part, s.other);
    fold(a, s.part, s.block_mean);
    fold(a, s.other, s.block_squares);
    for (int64_t i = full; i < n; ++i) {
      s.block_mean[(i - full) % a.period] += g[i];
      s.block_squares[(i - full) % a.period] += g[i] * (values[i] - center[i - full]);
    }
    for (int64_t i = 0; i < a.period; ++i) s.mean[i] += s.block_mean[i], s.squares[i] += s.block_squares[i];
  });
}

template <class T>
void stretch_gradient(const NormArgs& a, const T* dy, const T* x, T* dx, int64_t first_block, int64_t last_block, const float* lines,
                      const Scratch& s) {
  const cpu::NormGradient p{lines, lines + 3 * a.width, lines + 2 * a.width, lines + a.width};
  for_blocks(a, first_block, last_block, [&](int64_t at, int64_t n) {
    const float *g = widened(dy + at, n, s.dy), *values = widened(x + at, n, s.x);
    float* to = s.dy;
    if constexpr (std::is_same_v<T, float>) to = dx + at;
    const int64_t rows = n / a.width, full = rows * a.width;
    cpu::norm_gradient_rows(g, values, rows, a.width, p, to);
    if (full < n) cpu::norm_gradient_rows(g + full, values + full, 1, n - full, p, to + full);
    if constexpr (!std::is_same_v<T, float>) {
      for (int64_t i = 0; i < n; ++i) dx[at + i] = static_cast<T>(to[i]);
    }
  });
}

// ---- kernels -----------------------------------------------------------------------------------------------

void clear(const NormArgs& a, const Scratch& s) {
  std::fill(s.mean, s.mean + a.period, 0.0f);
  std::fill(s.squares, s.squares + a.period, 0.0f);
}

template <class Fn>
void for_shards(RunContext& c, const NormArgs& a, int64_t units, Fn fn) {
  c.pool().parallel_for(a.shards, [&](int64_t shard) {
    fn(Scratch(a, c.workspace<float>(), shard), units * shard / a.shards, units * (shard + 1) / a.shards);
  });
}

// What came of one channel, once its batch is known: the outputs beside y.
struct Moments {
  float mean, variance;
};

Moments finish_channel(RunContext& c, const NormArgs& a, int64_t i, float mean, float squares) {
  const auto count = static_cast<float>(a.count());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Moments batch{a.count() ? mean : nan, a.count() ? squares / count : nan};
  const float unbiased = batch.variance * count / std::max(count - 1.0f, 1.0f);
  const bool averaging = a.factor != 1.0f;
  c.out<float>(1)[i] = averaging ? (1.0f - a.factor) * c.in<float>(3)[i] + a.factor * batch.mean : batch.mean;
  c.out<float>(2)[i] = averaging ? (1.0f - a.factor) * c.in<float>(4)[i] + a.factor * unbiased : unbiased;
  c.out<float>(3)[i] = batch.mean;
  c.out<float>(4)[i] = batch.variance;
  return batch;
}

// Moments of channel i: of the batch (joined by the caller), or given.
Moments channel_moments(RunContext& c, const NormArgs& a, int64_t i, const float* mean, const float* squares) {
  if (a.training) return finish_channel(c, a, i, *mean, *squares);
  const Moments given{c.in<float>(3)[i], c.in<float>(4)[i]};
  for (int k = 0; k < 2; ++k) c.out<float>(1 + 2 * k)[i] = given.mean, c.out<float>(2 + 2 * k)[i] = given.variance;
  return given;
}

float inverse_deviation(const NormArgs& a, float variance) { return 1.0f / std::sqrt(variance + a.epsilon); }

// Channels [0, period) starting at `first`: their parameters, repeated along the lines.
void forward_lines(RunContext& c, const NormArgs& a, int64_t first, const float* mean, const float* squares, float* lines) {
  for (int64_t i = 0; i < a.period; ++i) {
    const Moments m = channel_moments(c, a, first + i, mean + i, squares + i);
    lines[i] = m.mean;
    lines[a.width + i] = c.in<float>(1)[first + i] * inverse_deviation(a, m.variance);
    lines[2 * a.width + i] = c.in<float>(2)[first + i];
  }
  for (int line = 0; line < 3; ++line) spread(a, lines + line * a.width, lines + line * a.width);
}

// Joins what the shards found into the first one's.
void join_shards(RunContext& c, const NormArgs& a) {
  const Scratch all(a, c.workspace<float>(), 0);
  int64_t count = 0;
  for (int64_t shard = 0; shard < a.shards; ++shard) {
    const Scratch s(a, c.workspace<float>(), shard);
    const int64_t from = a.blocks * shard / a.shards * a.block, to = std::min(a.blocks * (shard + 1) / a.shards * a.block, a.stretch);
    const int64_t more = (to - from) / a.period;
    if (shard > 0 && more > 0) join(a.period, all.mean, all.squares, count, s.mean, s.squares, more);
    count += more;
  }
}

template <class T>
Status forward_last_run(RunContext& c) {
  const auto& a = c.args<NormArgs>();
  const T* x = c.in<T>(0);
  float* lines = c.workspace<float>();
  const Scratch all(a, lines, 0);
  if (a.training) {
    for_shards(c, a, a.blocks, [&](const Scratch& s, int64_t from, int64_t to) {
      clear(a, s);
      stretch_moments(a, x, from, to, 0, s);
    });
    join_shards(c, a);
  }
  forward_lines(c, a, 0, all.mean, all.squares, lines);
  for_shards(c, a, a.blocks, [&](const Scratch& s, int64_t from, int64_t to) { stretch_scaled(a, x, c.out<T>(0), from, to, lines, s); });
  if (c.node().outputs.size() > 5) *c.out<float>(5) = 0;
  return {};
}

template <class T>
Status forward_first_run(RunContext& c) {
  const auto& a = c.args<NormArgs>();
  const T* x = c.in<T>(0);
  for_shards(c, a, a.channels, [&](const Scratch& s, int64_t from, int64_t to) {
    float lines[3 * kLine];
    for (int64_t channel = from; channel < to; ++channel) {
      clear(a, s);
      int64_t count = 0;
      for (int64_t n = 0; n < a.images && a.training; ++n) {
        count = stretch_moments(a, x + (n * a.channels + channel) * a.plane, 0, a.blocks, count, s);
      }
      forward_lines(c, a, channel, s.mean, s.squares, lines);
      for (int64_t n = 0; n < a.images; ++n) {
        const int64_t at = (n * a.channels + channel) * a.plane;
        stretch_scaled(a, x + at, c.out<T>(0) + at, 0, a.blocks, lines, s);
      }
    }
  });
  if (c.node().outputs.size() > 5) *c.out<float>(5) = 0;
  return {};
}

// The parameters of the gradient, and its outputs for scale and offset; without training nothing flows through the moments.
void gradient_lines(RunContext& c, const NormArgs& a, int64_t first, const float* dy_sum, const float* products, float* lines) {
  const float share = a.training && a.count() ? 1.0f / static_cast<float>(a.count()) : 0.0f;
  for (int64_t i = 0; i < a.period; ++i) {
    const float r = inverse_deviation(a, c.in<float>(4)[first + i]);
    c.out<float>(1)[first + i] = a.count() ? products[i] * r : 0.0f;  // of nothing the variance is none
    c.out<float>(2)[first + i] = dy_sum[i];
    lines[a.width + i] = c.in<float>(2)[first + i] * r;
    lines[2 * a.width + i] = r * r * products[i] * share;
    lines[3 * a.width + i] = dy_sum[i] * share;
  }
  for (int line = 1; line < 4; ++line) spread(a, lines + line * a.width, lines + line * a.width);
}

template <class T>
Status backward_last_run(RunContext& c) {
  const auto& a = c.args<NormArgs>();
  const T *dy = c.in<T>(0), *x = c.in<T>(1);
  float* lines = c.workspace<float>();
  const Scratch all(a, lines, 0);
  spread(a, c.in<float>(3), lines);
  for_shards(c, a, a.blocks, [&](const Scratch& s, int64_t from, int64_t to) {
    clear(a, s);
    stretch_sums(a, dy, x, from, to, lines, s);
  });
  for (int64_t shard = 1; shard < a.shards; ++shard) {
    const Scratch s(a, lines, shard);
    for (int64_t i = 0; i < a.period; ++i) all.mean[i] += s.mean[i], all.squares[i] += s.squares[i];
  }
  gradient_lines(c, a, 0, all.mean, all.squares, lines);
  for_shards(c, a, a.blocks,
             [&](const Scratch& s, int64_t from, int64_t to) { stretch_gradient(a, dy, x, c.out<T>(0), from, to, lines, s); });
  return {};
}

template <class T>
Status backward_first_run(RunContext& c) {
  const auto& a = c.args<NormArgs>();
  const T *dy = c.in<T>(0), *x = c.in<T>(1);
  for_shards(c, a, a.channels, [&](const Scratch& s, int64_t from, int64_t to) {
    float lines[4 * kLine];
    for (int64_t channel = from; channel < to; ++channel) {
      clear(a, s);
      spread(a, c.in<float>(3) + channel, lines);
      for (int64_t n = 0; n < a.images; ++n) {
        const int64_t at = (n * a.channels + channel) * a.plane;
        stretch_sums(a, dy + at, x + at, 0, a.blocks, lines, s);
      }
      gradient_lines(c, a, channel, s.mean, s.squares, lines);
      for (int64_t n = 0; n < a.images; ++n) {
        const int64_t at = (n * a.channels + channel) * a.plane;
        stretch_gradient(a, dy + at, x + at, c.out<T>(0) + at, 0, a.blocks, lines, s);
      }
    }
  });
  return {};
}

Status set_norm(PrepareContext& c, const Shape& image) {
  auto& a = *c.args<NormArgs>();
  const int rank = image.rank(), axis = channel_axis(c.node(), rank);
  a.images = image.dim(0);
  a.channels = image.dim(axis);
  a.first = axis == 1;
  a.plane = a.first ? image.count(2, rank) : image.count(1, rank - 1);
  a.training = c.boolean("is_training");
  a.epsilon = static_cast<float>(c.attr<double>("epsilon"));
  a.period = a.first ? 1 : std::max<int64_t>(a.channels, 1);
  a.width = a.period * (kLine >= 2 * a.period ? kLine / a.period : 1);
  a.stretch = a.first ? a.plane : image.count();
  a.block = a.width * std::clamp<int64_t>(kBlockFloats / a.width, 1, std::max<int64_t>(a.stretch / a.width + 1, 1));
  a.blocks = (a.stretch + a.block - 1) / a.block;
  const int64_t units = a.first ? a.channels : a.blocks;
  a.shards = std::clamp<int64_t>(image.count() / 32768, 1, std::clamp<int64_t>(units, 1, 16));
  const bool widens = c.input(0).dtype != DType::f32;
  a.scratch = 3 * a.width + 4 * a.period + (widens ? 2 * a.block : 0);
  c.workspace((Bytes(4 * a.width) + Bytes(a.scratch) * a.shards) * 4);
  return {};
}

template <class T>
Status norm_prepare(PrepareContext& c) {
  auto& a = *c.args<NormArgs>();
  DTG_TRY(set_norm(c, c.input(0).shape));
  a.factor = static_cast<float>(c.attr<double>("exponential_avg_factor"));
  return c.sync(a.first ? forward_first_run<T> : forward_last_run<T>);
}

template <class T>
Status norm_grad_prepare(PrepareContext& c) {
  DTG_TRY(set_norm(c, c.input(1).shape));
  return c.sync(c.args<NormArgs>()->first ? backward_first_run<T> : backward_last_run<T>);
}

// ---- definitions -------------------------------------------------------------------------------------------

constexpr const char* kFormat = "data_format: {'NHWC','NCHW'} = 'NHWC'";
constexpr const char* kFormat3 = "data_format: {'NHWC','NCHW','NDHWC','NCDHW'} = 'NHWC'";

void register_forward(OpTable& ops, int version) {
  const char* names[] = {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"};
  const bool one = version == 1;
  OpDef def = OpDef::make(names[version - 1]).input("x: T");
  for (const char* name : {"scale", "offset", "mean", "variance"})
    std::move(def).input((std::string(name) + (one ? ": T" : ": U")).c_str());
  std::move(def).output("y: T");
  for (const char* name : {"batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"}) {
    std::move(def).output((std::string(name) + (one ? ": T" : ": U")).c_str());
  }
  if (version == 3) std::move(def).output("reserve_space_3: U");
  std::move(def).attr(one ? "T: {float}" : "T: {half, bfloat16, float}");
  if (!one) std::move(def).attr(version == 2 ? "U: {float}" : "U: {bfloat16, float}");
  ops.add(std::move(def)
              .attr("epsilon: float = 0.0001")
              .attr("exponential_avg_factor: float = 1.0")
              .attr(version == 3 ? kFormat3 : kFormat)
              .attr("is_training: bool = true")
              .shape(norm_shape)
              .gradient(norm_grad)
              .doc("Each channel brought to mean 0 and variance 1 (those of the batch, or given ones), scaled and shifted."));
}

void register_backward(OpTable& ops, int version) {
  const char* names[] = {"FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"};
  const bool one = version == 1;
  OpDef def = OpDef::make(names[version - 1]).input("y_backprop: T").input("x: T").input(one ? "scale: T" : "scale: float");
  std::move(def).input(one ? "reserve_space_1: T" : "reserve_space_1: U").input(one ? "reserve_space_2: T" : "reserve_space_2: U");
  if (version == 3) std::move(def).input("reserve_space_3: U");
  std::move(def).output("x_backprop: T").output(one ? "scale_backprop: T" : "scale_backprop: U");
  std::move(def).output(one ? "offset_backprop: T" : "offset_backprop: U");
  if (version == 3) std::move(def).output("reserve_space_4: U").output("reserve_space_5: U");
  if (version == 2) std::move(def).output("reserve_space_3: U").output("reserve_space_4: U");
  if (version == 1) std::move(def).output("reserve_space_3: T").output("reserve_space_4: T");
  std::move(def).attr(one ? "T: {float}" : "T: {half, bfloat16, float}");
  if (!one) std::move(def).attr(version == 2 ? "U: {float}" : "U: {bfloat16, float}");
  ops.add(std::move(def)
              .attr("epsilon: float = 0.0001")
              .attr(version == 3 ? kFormat3 : kFormat)
              .attr("is_training: bool = true")
              .shape(norm_grad_shape)
              .gradient(norm_grad_grad)
              .doc("Gradients of FusedBatchNorm by x, scale and offset, from the mean and variance that it used."));
}

template <class T>
void add_kernels(KernelTable& kernels, const char* forward, const char* backward) {
  std::vector<KernelRow::TypeClause> types = {{"T", DTypeSet{dtype_of<T>}}};
  if (std::string_view(forward) != "FusedBatchNorm") types.push_back({"U", DTypeSet{DType::f32}});
  kernels.add({.op = forward, .types = types, .prepare = norm_prepare<T>});
  kernels.add({.op = backward, .types = types, .prepare = norm_grad_prepare<T>});
}

}  // namespace

void register_batch_norm(OpTable& ops, KernelTable& kernels) {
  for (int version = 1; version <= 3; ++version) register_forward(ops, version);
  for (int version = 1; version <= 3; ++version) register_backward(ops, version);
  add_kernels<float>(kernels, "FusedBatchNorm", "FusedBatchNormGrad");
  for (const char* version : {"V2", "V3"}) {
    const char* forward = version[1] == '2' ? "FusedBatchNormV2" : "FusedBatchNormV3";
    const char* backward = version[1] == '2' ? "FusedBatchNormGradV2" : "FusedBatchNormGradV3";
    add_kernels<float>(kernels, forward, backward);
    add_kernels<Half>(kernels, forward, backward);
    add_kernels<BFloat16>(kernels, forward, backward);
  }
}

}  // namespace dtg::ops
