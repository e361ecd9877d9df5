// MirrorPad and its gradient: borders filled with what lies inside, mirrored at the edge (SYMMETRIC) or at the last element
// (REFLECT). Padding is strided copies, one dimension after the other, from the innermost out. Registered once by the runtime;
// kernels run on any thread.
#include <algorithm>

#include "base/watched.h"
#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/rows.h"

namespace dtg::ops {
namespace {

// 1 where the mirror is the last element itself, which is not repeated.
int64_t skipped(const Node& node) { return node.attr<std::string>("mode") == "REFLECT" ? 1 : 0; }

// Checks the paddings of an inner shape (before padding); no node name.
Status check_edges(std::span<const int64_t> paddings, int axis, int64_t inner, int64_t skip) {
  const int64_t before = paddings[static_cast<size_t>(2 * axis)], after = paddings[static_cast<size_t>(2 * axis + 1)];
  if (before < 0 || after < 0) {
    return invalid_argument("paddings of dimension %d are %lld and %lld; they must not be negative", axis, static_cast<long long>(before),
                            static_cast<long long>(after));
  }
  if (inner >= 0 && (before > inner - skip || after > inner - skip) && before + after > 0) {
    return invalid_argument("paddings of dimension %d are %lld and %lld; a mirror of its %lld elements gives at most %lld", axis,
                            static_cast<long long>(before), static_cast<long long>(after), static_cast<long long>(inner),
                            static_cast<long long>(std::max<int64_t>(inner - skip, 0)));
  }
  return {};
}

// The other shape: of MirrorPad's output from its input, or the other way round.
Result<PartialShape> mirrored_shape(const PartialShape& in, std::span<const int64_t> paddings, int64_t skip, bool grows) {
  if (paddings.size() != 2 * static_cast<size_t>(in.rank())) {
    return invalid_argument("paddings must have shape [%d,2] for an input of shape %s", in.rank(), in.text().c_str());
  }
  PartialShape out = in;
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t dim = in.dim(i), before = paddings[static_cast<size_t>(2 * i)], after = paddings[static_cast<size_t>(2 * i + 1)];
    if (before > INT64_MAX / 4 || after > INT64_MAX / 4) return invalid_argument("paddings of dimension %d are too large", i);
    DTG_TRY(check_edges(paddings, i, -1, skip));
    if (dim < 0) continue;
    const int64_t inner = grows ? dim : dim - before - after;
    if (inner < 0) return invalid_argument("dimension %d of %s is smaller than its paddings", i, in.text().c_str());
    DTG_TRY(check_edges(paddings, i, inner, skip));
    out.set_dim(i, grows ? dim + before + after : inner);
  }
  return out;
}

Status mirror_shape(InferContext& c, bool grows) {
  DTG_TRY(c.require_rank(1, 2));
  const PartialShape &in = c.input(0), &paddings = c.input(1);
  if (paddings.has_rank() && paddings.dim(1) >= 0 && paddings.dim(1) != 2) {
    return c.error("paddings must have 2 columns, but have shape %s", paddings.text().c_str());
  }
  const int64_t rank = paddings.has_rank() ? paddings.dim(0) : -1;
  if (in.has_rank() && rank >= 0 && rank != in.rank()) {
    return c.error("paddings must have shape [%d,2], but have %s", in.rank(), paddings.text().c_str());
  }
  const KnownIntegers known = known_integers(c, 1);
  if (!in.has_rank() || !known.known) {
    if (in.has_rank()) c.output(0, PartialShape::of_rank(in.rank()));
    return {};
  }
  auto out = mirrored_shape(in, known.span(), skipped(c.node()), grows);
  if (!out.ok()) return c.error("%s", out.status().message().c_str());
  c.output(0, out.take());
  return {};
}

Status pad_shape(InferContext& c) { return mirror_shape(c, true); }
Status pad_grad_shape(InferContext& c) { return mirror_shape(c, false); }

// The two are each other's gradient: one is linear, the other its transpose.
Status mirror_grad(GradContext& c) {
  const char* other = c.node().op->name() == "MirrorPad" ? "MirrorPadGrad" : "MirrorPad";
  c.dx(0, c.b().op(other, {c.dy(), c.input(1)}, {{"mode", c.attr<std::string>("mode")}}));
  return {};
}

struct MirrorArgs {
  Shape in;
  int64_t size = 0, skip = 0;
  Integers paddings;
  OutputSpec out;
};

int64_t stride_of(const Shape& shape, int i, int64_t size) { return shape.count(i + 1, shape.rank()) * size; }

// Fills one edge of dimension `axis` from inside. Inner dimensions are complete already, outer ones not begun.
void copy_edge(RunContext& c, const MirrorArgs& a, const Shape& whole, std::span<const int64_t> paddings, int axis, bool after, char* out) {
  const auto before_of = [&](int i) { return paddings[static_cast<size_t>(2 * i)]; };
  const int64_t count = paddings[static_cast<size_t>(2 * axis + (after ? 1 : 0))], step = stride_of(whole, axis, a.size);
  if (count == 0) return;
  const int64_t first = before_of(axis), last = first + a.in.dim(axis) - 1;
  cpu::Walk walk(a.size);
  int64_t from = 0, to = 0;
  for (int i = 0; i < whole.rank(); ++i) {
    const int64_t own = stride_of(whole, i, a.size);
    if (i < axis) {
      from += before_of(i) * own, to += before_of(i) * own;
      walk.add(a.in.dim(i), own, own);
    } else if (i > axis) {
      walk.add(whole.dim(i), own, own);
    } else {
      from += (after ? last - a.skip : first + a.skip + count - 1) * step;
      to += (after ? last + 1 : first - count) * step;
      walk.add(count, -step, step);
    }
  }
  walk.finish();
  cpu::copy_walk(c.pool(), walk, out + from, out + to);
}

Status pad_run(RunContext& c) {
  const auto& a = c.args<MirrorArgs>();
  Integers::Buffer buffer;
  const auto paddings = a.paddings.get(c, buffer);
  const auto partial = mirrored_shape(a.in, paddings, a.skip, true);
  if (!partial.ok()) return c.error("%s", partial.status().message().c_str());
  const auto whole = partial.value().to_shape();
  if (!whole.ok()) return c.error("%s", whole.status().message().c_str());
  DTG_ASSIGN(char* out, a.out.memory(c, whole.value()));
  if (whole.value().count() == 0) return {};
  cpu::Walk walk(a.size);
  int64_t to = 0;
  for (int i = 0; i < a.in.rank(); ++i) {
    const int64_t step = stride_of(whole.value(), i, a.size);
    to += paddings[static_cast<size_t>(2 * i)] * step;
    walk.add(a.in.dim(i), stride_of(a.in, i, a.size), step);
  }
  walk.finish();
  cpu::copy_walk(c.pool(), walk, c.in<char>(0), out + to);
  for (int axis = a.in.rank(); axis-- > 0;) {
    for (const bool after : {false, true}) copy_edge(c, a, whole.value(), paddings, axis, after, out);
  }
  return {};
}

Status pad_prepare(PrepareContext& c) {
  auto& a = *c.args<MirrorArgs>();
  a.in = c.input(0).shape;
  a.size = dtype_size(c.input(0).dtype);
  a.skip = skipped(c.node());
  a.out.prepare(c, 0);
  DTG_TRY(a.paddings.prepare(c, 1));
  return c.sync(pad_run);
}

// ---- MirrorPadGrad -----------------------------------------------------------------------------------------

// The places of the padded tensor that show element `at` of dimension `axis`: itself and what mirrors it.
struct Places {
  int64_t at[3];
  int count;
};

Places places_of(std::span<const int64_t> paddings, int axis, int64_t inner, int64_t skip, int64_t at) {
  const int64_t before = paddings[static_cast<size_t>(2 * axis)], after = paddings[static_cast<size_t>(2 * axis + 1)];
  Places places{{before + at}, 1};
  if (at >= skip && at - skip < before) places.at[places.count++] = before - 1 - (at - skip);
  const int64_t from_end = inner - 1 - at;
  if (from_end >= skip && from_end - skip < after) places.at[places.count++] = before + inner + (from_end - skip);
  return places;
}

// One row along the last dimension: the sum over all rows of dy that show it.
template <class T>
void gather_row(const MirrorArgs& a, const Shape& inner, std::span<const int64_t> paddings, int64_t row, const T* dy, T* out) {
  const int last = a.in.rank() - 1;
  Places places[kRankMax];
  for (int i = last; i-- > 0; row /= inner.dim(i)) places[i] = places_of(paddings, i, inner.dim(i), a.skip, row % inner.dim(i));
  int pick[kRankMax] = {};
  watched_fill(out, out + inner.dim(last), T());
  for (;;) {
    int64_t from = 0;
    for (int i = 0; i < last; ++i) from += places[i].at[pick[i]] * stride_of(a.in, i, 1);
    look_in_stretches(0, inner.dim(last), 4, 1, [&](int64_t first, int64_t end) {
      for (int64_t k = first; k < end; ++k) {
        const Places along = places_of(paddings, last, inner.dim(last), a.skip, k);
        for (int p = 0; p < along.count; ++p) out[k] = sum_of<T>(out[k], dy[from + along.at[p]]);
      }
    });
    int i = last - 1;
    while (i >= 0 && ++pick[i] == places[i].count) pick[i--] = 0;
    if (i < 0) return;
  }
}

template <class T>
Status pad_grad_run(RunContext& c) {
  const auto& a = c.args<MirrorArgs>();
  Integers::Buffer buffer;
  const auto paddings = a.paddings.get(c, buffer);
  const auto partial = mirrored_shape(a.in, paddings, a.skip, false);
  if (!partial.ok()) return c.error("%s", partial.status().message().c_str());
  const auto inner = partial.value().to_shape();
  if (!inner.ok()) return c.error("%s", inner.status().message().c_str());
  DTG_ASSIGN(char* memory, a.out.memory(c, inner.value()));
  T* out = reinterpret_cast<T*>(memory);
  const T* dy = c.in<T>(0);
  if (a.in.rank() == 0) {
    out[0] = dy[0];
    return {};
  }
  if (inner.value().count() == 0) return {};
  const int64_t columns = inner.value().dim(a.in.rank() - 1), rows = inner.value().count() / columns;
  const int64_t shards = std::clamp<int64_t>(inner.value().count() / 8192, 1, std::min<int64_t>(rows, 16));
  c.pool().parallel_for(shards, [&](int64_t shard) {
    for (const int64_t row : watched(rows * shard / shards, rows * (shard + 1) / shards, 4 * columns)) {
      gather_row(a, inner.value(), paddings, row, dy, out + row * columns);
    }
  });
  return {};
}

template <class T>
Status pad_grad_prepare(PrepareContext& c) {
  DTG_TRY(pad_prepare(c));
  return c.sync(pad_grad_run<T>);
}

template <class T>
void add_grad(KernelTable& kernels) {
  kernels.add({.op = "MirrorPadGrad", .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = pad_grad_prepare<T>});
}

OpDef&& mirror_def(OpDef&& def) {
  return std::move(def)
      .input("input: T")
      .input("paddings: Tpaddings", {.rank = 2})
      .output("output: T")
      .attr("T: type")
      .attr("Tpaddings: {int32, int64} = int32")
      .attr("mode: {'REFLECT','SYMMETRIC'}")
      .gradient(mirror_grad);
}

}  // namespace

void register_mirror_pad(OpTable& ops, KernelTable& kernels) {
  ops.add(mirror_def(OpDef::make("MirrorPad")).shape(pad_shape).doc("The input with borders that mirror what lies inside."));
  ops.add(mirror_def(OpDef::make("MirrorPadGrad")).shape(pad_grad_shape).doc("Gradient of MirrorPad: borders added to what they mirror."));
  kernels.add({.op = "MirrorPad", .types = {{"T", kPlain}}, .prepare = pad_prepare});
  add_grad<float>(kernels);
  add_grad<double>(kernels);
  add_grad<Half>(kernels);
  add_grad<BFloat16>(kernels);
  add_grad<int8_t>(kernels);
  add_grad<int16_t>(kernels);
  add_grad<int32_t>(kernels);
  add_grad<int64_t>(kernels);
  add_grad<uint8_t>(kernels);
  add_grad<uint16_t>(kernels);
}

}  // namespace dtg::ops
