// Elements in another place along some axes: ReverseSequence turns the beginning of each row around, Roll shifts and lets what
// leaves at one end enter at the other. Only the size of an element matters.
#include <algorithm>

#include "base/watched.h"
#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/integers.h"

namespace dtg::ops {
namespace {

// ---- ReverseSequence ---------------------------------------------------------------------------------------

Status reverse_sequence_shape(InferContext& c) {
  const PartialShape &in = c.input(0), &lengths = c.input(1);
  const int64_t seq = c.integer("seq_dim"), batch = c.integer("batch_dim");
  DTG_TRY(c.require_rank(1, 1));
  if (!in.has_rank()) return {};
  if (seq < 0 || seq >= in.rank() || batch < 0 || batch >= in.rank()) {
    return c.error("seq_dim %lld and batch_dim %lld must be dimensions of shape %s", static_cast<long long>(seq),
                   static_cast<long long>(batch), in.text().c_str());
  }
  if (seq == batch) return c.error("seq_dim and batch_dim are both %lld", static_cast<long long>(seq));
  const int64_t rows = in.dim(static_cast<int>(batch)), count = lengths.has_rank() ? lengths.dim(0) : -1;
  if (rows >= 0 && count >= 0 && rows != count) {
    return c.error("%lld lengths for %lld sequences", static_cast<long long>(count), static_cast<long long>(rows));
  }
  c.output(0, in);
  return {};
}

// The same reversal undoes itself.
Status reverse_sequence_grad(GradContext& c) {
  c.dx(0, c.b().op("ReverseSequence", {c.dy(), c.input(1)},
                   {{"seq_dim", c.attr<int64_t>("seq_dim")}, {"batch_dim", c.attr<int64_t>("batch_dim")}}));
  return {};
}

// The tensor as [outer, a, middle, b, inner] where a and b are the two dimensions, in the order in which they come.
struct ReverseSequenceArgs {
  int64_t outer = 1, a = 1, middle = 1, b = 1;
  int64_t inner = 0;  // bytes
  bool seq_first = false;
  DType dtype = DType::i32;
};

Status reverse_sequence_run(RunContext& c) {
  const auto& g = c.args<ReverseSequenceArgs>();
  const int64_t batches = g.seq_first ? g.b : g.a, steps = g.seq_first ? g.a : g.b;
  for (int64_t i = 0; i < batches; ++i) {
    const int64_t length = integer_at(c.in<char>(1), g.dtype, i);
    if (length < 0 || length > steps) {
      return c.error("length %lld is %lld; it must be in [0, %lld]", static_cast<long long>(i), static_cast<long long>(length),
                     static_cast<long long>(steps));
    }
  }
  const char* const in = c.in<char>(0);
  char* const out = c.out<char>(0);
  c.pool().parallel_for(g.outer * g.a, [&](int64_t shard) {
    Lookout lookout;
    const int64_t o = shard / g.a, i = shard % g.a;
    for (int64_t m = 0; m < g.middle; ++m) {
      for (int64_t j = 0; j < g.b; ++j) {
        const int64_t step = g.seq_first ? i : j, length = integer_at(c.in<char>(1), g.dtype, g.seq_first ? j : i);
        const int64_t from = step < length ? length - 1 - step : step;
        const int64_t x = g.seq_first ? from : i, y = g.seq_first ? j : from;
        cpu::copy_row(out + ((shard * g.middle + m) * g.b + j) * g.inner, in + (((o * g.a + x) * g.middle + m) * g.b + y) * g.inner,
                      g.inner, lookout);
      }
    }
  });
  return {};
}

Status reverse_sequence_prepare(PrepareContext& c) {
  auto* g = c.args<ReverseSequenceArgs>();
  const Shape& in = c.input(0).shape;
  const int seq = static_cast<int>(c.integer("seq_dim")), batch = static_cast<int>(c.integer("batch_dim"));
  const int first = std::min(seq, batch), second = std::max(seq, batch);
  *g = {in.count(0, first),
        in.dim(first),
        in.count(first + 1, second),
        in.dim(second),
        in.count(second + 1, in.rank()) * dtype_size(c.input(0).dtype),
        seq < batch,
        c.input(1).dtype};
  return c.sync(reverse_sequence_run);
}

// ---- Roll --------------------------------------------------------------------------------------------------

Status roll_shape(InferContext& c) {
  DTG_TRY(c.require_rank_at_least(0, 1));
  const PartialShape &shift = c.input(1), &axis = c.input(2);
  for (int i = 1; i < 3; ++i) {
    if (c.input(i).has_rank() && c.input(i).rank() > 1) return c.error("shift and axis must be scalars or vectors");
  }
  auto merged = PartialShape::merge(shift, axis, "shift and axis");
  if (!merged.ok()) return c.error("%s", merged.status().message().c_str());
  c.output(0, c.input(0));
  return {};
}

Status roll_grad(GradContext& c) {
  c.dx(0, c.b().op("Roll", {c.dy(), c.b().neg(c.input(1)), c.input(2)}));
  return {};
}

struct RollArgs {
  Shape in;
  int64_t size = 0;
  Integers shift, axis;
};

// How far each dimension moves, in [0, extent).
Status resolve_shifts(RunContext& c, const RollArgs& a, int64_t* shifts) {
  Integers::Buffer shift_buffer, axis_buffer;
  const auto shift = a.shift.get(c, shift_buffer), axis = a.axis.get(c, axis_buffer);
  std::fill_n(shifts, kRankMax, 0);
  for (size_t i = 0; i < axis.size(); ++i) {
    const auto at = resolve_axis(axis[i], a.in.rank());
    if (!at.ok()) return c.error("%s", at.status().message().c_str());
    const int64_t extent = a.in.dim(at.value());
    if (extent == 0) continue;
    int64_t& total = shifts[at.value()];
    total = (total + shift[i] % extent + extent) % extent;
  }
  return {};
}

// Moves in rows of the last dimension: each goes as two pieces.
Status roll_run(RunContext& c) {
  const auto& a = c.args<RollArgs>();
  int64_t shifts[kRankMax];
  DTG_TRY(resolve_shifts(c, a, shifts));
  if (a.in.count() == 0) return {};
  const int last = a.in.rank() - 1;
  const int64_t extent = a.in.dim(last), row = extent * a.size, split = shifts[last] * a.size, rows = a.in.count() / extent;
  const int64_t shards = std::min(cpu::shards_for_bytes(rows * row), rows);
  c.pool().parallel_for(shards, [&](int64_t s) {
    Lookout lookout;
    for (int64_t r = rows * s / shards; r < rows * (s + 1) / shards; ++r) {
      int64_t to = 0, scale = 1, rest = r;
      for (int d = last - 1; d >= 0; --d) {
        const int64_t dim = a.in.dim(d);
        to += (rest % dim + shifts[d]) % dim * scale;
        rest /= dim;
        scale *= dim;
      }
      cpu::copy_row(c.out<char>(0) + to * row + split, c.in<char>(0) + r * row, row - split, lookout);
      cpu::copy_row(c.out<char>(0) + to * row, c.in<char>(0) + r * row + row - split, split, lookout);
    }
  });
  return {};
}

Status roll_prepare(PrepareContext& c) {
  auto* a = c.args<RollArgs>();
  a->in = c.input(0).shape;
  a->size = dtype_size(c.input(0).dtype);
  DTG_TRY(a->shift.prepare(c, 1));
  DTG_TRY(a->axis.prepare(c, 2));
  if (a->shift.count() != a->axis.count()) return c.error("%d shifts for %d axes", a->shift.count(), a->axis.count());
  return c.sync(roll_run);
}

}  // namespace

void register_sequence(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("ReverseSequence")
              .input("input: T")
              .input("seq_lengths: Tlen", {.rank = 1})
              .output("output: T")
              .attr("seq_dim: int")
              .attr("batch_dim: int = 0")
              .attr("T: type")
              .attr("Tlen: {int32, int64} = int64")
              .shape(reverse_sequence_shape)
              .gradient(reverse_sequence_grad)
              .doc("The first seq_lengths[i] elements of sequence i in reverse order, the rest as they are."));
  kernels.add({.op = "ReverseSequence", .types = {{"T", kPlain}}, .prepare = reverse_sequence_prepare});
  ops.add(OpDef::make("Roll")
              .input("input: T", {.rank_min = 1})
              .input("shift: Tshift", {.rank_max = 1})
              .input("axis: Taxis", {.rank_max = 1})
              .output("output: T")
              .attr("T: type")
              .attr("Tshift: {int32, int64}")
              .attr("Taxis: {int32, int64}")
              .shape(roll_shape)
              .gradient(roll_grad)
              .doc("The input shifted along axes; what leaves at one end enters at the other."));
  kernels.add({.op = "Roll", .types = {{"T", kPlain}}, .prepare = roll_prepare});
}

}  // namespace dtg::ops
