// ArgMax and ArgMin: where along one axis the extreme stands; the first place at a tie. NaN is never the
// extreme, so a row of nothing but NaN answers 0.
#include <algorithm>
#include <limits>

#include "base/watched.h"
#include "graph/infer.h"
#include "ops/reduce.h"

namespace dtg::ops {
namespace {

int64_t axis_value(const void* data, DType dtype) {
  if (dtype == DType::i16) return *static_cast<const int16_t*>(data);
  if (dtype == DType::i32) return *static_cast<const int32_t*>(data);
  return *static_cast<const int64_t*>(data);
}

PartialShape without_axis(const PartialShape& in, int axis) {
  PartialShape out = PartialShape::of_rank(in.rank() - 1);
  for (int d = 0, o = 0; d < in.rank(); ++d) {
    if (d != axis) out.set_dim(o++, in.dim(d));
  }
  return out;
}

Status argmax_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 0));
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return {};
  if (in.rank() == 0) return c.error("a scalar has no axis to search");
  const Tensor dimension = c.constant(1);
  if (dimension.valid()) {
    const auto axis = read_axis(axis_value(dimension.data(), dimension.dtype()), in.rank());
    if (!axis.ok()) return c.error("%s", axis.status().message().c_str());
    c.output(0, without_axis(in, axis.value()));
  } else {
    c.output(0, PartialShape::of_rank(in.rank() - 1));
  }
  return {};
}

// [a, r, b] -> [a, b]
struct Extent {
  int64_t a = 1, r = 1, b = 1;
};
// Row a of the outermost dimension; `out` is of the type of indices that the node has.
using SearchFn = void (*)(const Extent& extent, int64_t a, const void* in, void* out, DType index);

constexpr int64_t kColumns = 64;  // searched side by side
constexpr int64_t kShardElements = 16384;

template <class T>
using Ordered = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float,
                                   std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>;

template <class C, bool kMax>
constexpr C worst() {
  using Limits = std::numeric_limits<C>;
  if constexpr (Limits::has_infinity) return kMax ? -Limits::infinity() : Limits::infinity();
  else return kMax ? Limits::lowest() : Limits::max();
}

// In the type that the node has for them, of which there are too many for a search each.
void write_places(const int64_t* places, int64_t count, void* out, int64_t at, DType index) {
  const auto write = [&](auto* to) {
    for (int64_t j = 0; j < count; ++j) to[at + j] = static_cast<std::remove_pointer_t<decltype(to)>>(places[j]);
  };
  switch (index) {
    case DType::i16: return write(static_cast<int16_t*>(out));
    case DType::u16: return write(static_cast<uint16_t*>(out));
    case DType::i32: return write(static_cast<int32_t*>(out));
    default: return write(static_cast<int64_t*>(out));
  }
}

// One row that lies in one piece: the extreme first, of sixteen places side by side, then the first place that has it.
template <class T, bool kMax>
int64_t search_row(const T* in, int64_t n) {
  using C = Ordered<T>;
  constexpr int64_t kSide = 16;
  const auto better = [](C a, C b) { return kMax ? (a > b ? a : b) : (a < b ? a : b); };
  C best[kSide];
  std::fill_n(best, kSide, worst<C, kMax>());
  const int64_t whole = n / kSide * kSide;
  look_in_stretches(0, whole, 1, kSide, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i += kSide) {
      for (int64_t j = 0; j < kSide; ++j) best[j] = better(static_cast<C>(in[i + j]), best[j]);
    }
  });
  C most = worst<C, kMax>();
  for (const C value : best) most = better(value, most);
  for (int64_t i = whole; i < n; ++i) most = better(static_cast<C>(in[i]), most);
  if (most == worst<C, kMax>()) return 0;
  int64_t at = whole;
  look_in_stretches(0, whole, 1, kSide, [&](int64_t from, int64_t to) {
    for (; at == whole && from < to; from += kSide) {
      int found = 0;
      for (int64_t j = 0; j < kSide; ++j) found |= static_cast<C>(in[from + j]) == most;
      if (found) at = from;
    }
  });
  while (static_cast<C>(in[at]) != most) ++at;
  return at;
}

template <class T, bool kMax>
void search(const Extent& extent, int64_t a, const void* in_data, void* out, DType index) {
  using C = Ordered<T>;
  const T* in = static_cast<const T*>(in_data) + a * extent.r * extent.b;
  if (extent.b == 1) {
    const int64_t place = search_row<T, kMax>(in, extent.r);
    return write_places(&place, 1, out, a, index);
  }
  for (int64_t from = 0; from < extent.b; from += kColumns) {
    const int64_t width = std::min(kColumns, extent.b - from);
    C best[kColumns];
    int64_t place[kColumns];
    std::fill_n(best, width, worst<C, kMax>());
    std::fill_n(place, width, int64_t{0});
    for (const int64_t i : watched(extent.r, 4 + width)) {
      const T* row = in + i * extent.b + from;
      for (int64_t j = 0; j < width; ++j) {
        const C value = static_cast<C>(row[j]);
        const bool better = kMax ? value > best[j] : value < best[j];
        best[j] = better ? value : best[j];
        place[j] = better ? i : place[j];
      }
    }
    write_places(place, width, out, a * extent.b + from, index);
  }
}

template <bool kMax>
SearchFn find_search(DType dtype) {
  switch (dtype) {
    case DType::f32: return search<float, kMax>;
    case DType::f64: return search<double, kMax>;
    case DType::f16: return search<Half, kMax>;
    case DType::bf16: return search<BFloat16, kMax>;
    case DType::i8: return search<int8_t, kMax>;
    case DType::i16: return search<int16_t, kMax>;
    case DType::i32: return search<int32_t, kMax>;
    case DType::i64: return search<int64_t, kMax>;
    case DType::u8: return search<uint8_t, kMax>;
    case DType::u16: return search<uint16_t, kMax>;
    case DType::u32: return search<uint32_t, kMax>;
    case DType::u64: return search<uint64_t, kMax>;
    default: return search<bool, kMax>;
  }
}

struct ArgmaxArgs {
  SearchFn search = nullptr;
  Shape in;
  Extent extent;  // when the axis is known
  DType axis_dtype = DType::invalid, index = DType::invalid;
  bool late = false, lease = false;  // the axis is read in run; the output's shape depends on it
};

Result<Extent> make_extent(const Shape& in, int64_t given) {
  DTG_ASSIGN(const int axis, read_axis(given, in.rank()));
  if (in.dim(axis) == 0) return invalid_argument("axis %d of shape %s has no elements to search", axis, in.text().c_str());
  return Extent{in.count(0, axis), in.dim(axis), in.count(axis + 1, in.rank())};
}

Status argmax_run(RunContext& c) {
  const auto& args = c.args<ArgmaxArgs>();
  Extent extent = args.extent;
  void* out = c.out<void>(0);
  if (args.late) {
    const int64_t given = axis_value(c.in<void>(1), args.axis_dtype);
    const auto late = make_extent(args.in, given);
    if (!late.ok()) return c.error("%s", late.status().message().c_str());
    extent = late.value();
    if (args.lease) {
      const int axis = static_cast<int>(given < 0 ? given + args.in.rank() : given);
      DTG_ASSIGN(const Shape shape, without_axis(args.in, axis).to_shape());
      DTG_ASSIGN(out, c.lease_output(0, args.index, shape));
    }
  }
  const int64_t together = std::max<int64_t>(1, kShardElements / std::max<int64_t>(1, extent.r * extent.b));
  c.pool().parallel_for((extent.a + together - 1) / together, [&](int64_t shard) {
    const int64_t end = std::min(extent.a, (shard + 1) * together);
    for (int64_t a = shard * together; a < end; ++a) args.search(extent, a, c.in<void>(0), out, args.index);
  });
  return {};
}

Status argmax_prepare(PrepareContext& c, bool maximum) {
  auto& args = *c.args<ArgmaxArgs>();
  args.in = c.input(0).shape;
  args.index = c.output(0).dtype;
  args.search = maximum ? find_search<true>(c.input(0).dtype) : find_search<false>(c.input(0).dtype);
  args.axis_dtype = c.input(1).dtype;
  args.lease = c.output(0).dynamic;
  const Tensor dimension = c.constant(1);
  args.late = !dimension.valid();
  if (!args.late) {
    auto extent = make_extent(args.in, axis_value(dimension.data(), dimension.dtype()));
    if (!extent.ok()) return c.error("%s", extent.status().message().c_str());
    args.extent = extent.take();
  }
  return c.sync(argmax_run);
}
Status max_prepare(PrepareContext& c) { return argmax_prepare(c, true); }
Status min_prepare(PrepareContext& c) { return argmax_prepare(c, false); }

constexpr const char* kSearchable =
    "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, "
    "complex128, half, uint32, uint64, bool}";

}  // namespace

void register_argmax(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("ArgMax")
              .input("input: T")
              .input("dimension: Tidx")
              .output("output: output_type")
              .attr(kSearchable)
              .attr("Tidx: {int16, int32, int64} = int32")
              .attr("output_type: {int16, uint16, int32, int64} = int64")
              .shape(argmax_shape)
              .no_gradient()
              .doc("Where along an axis the largest stands; the first of equals."));
  ops.add(OpDef::make("ArgMin")
              .input("input: T")
              .input("dimension: Tidx")
              .output("output: output_type")
              .attr(kSearchable)
              .attr("Tidx: {int32, int64} = int32")
              .attr("output_type: {int32, int64} = int64")
              .shape(argmax_shape)
              .no_gradient()
              .doc("Where along an axis the smallest stands; the first of equals."));
  const DTypeSet types = kReal | DTypeSet{DType::boolean};
  kernels.add({.op = "ArgMax", .types = {{"T", types}}, .prepare = max_prepare});
  kernels.add({.op = "ArgMin", .types = {{"T", types}}, .prepare = min_prepare});
}

}  // namespace dtg::ops
