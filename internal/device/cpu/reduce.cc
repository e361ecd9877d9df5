// Planning of reductions, and the last step: dividing for a mean, rounding 16-bit floats, filling in what
// the reduction of nothing is.
#include "device/cpu/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "tensor/buffer.h"

namespace dtg::cpu {
namespace {

constexpr int64_t kTile = kReduceTile;
constexpr int64_t kPieceElements = 16384;  // of a piece of several columns
constexpr int64_t kRunPiece = 32768;       // of a piece of a contiguous run
constexpr int64_t kShardElements = 32768;  // what is worth waking a thread for

bool is_small_float(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }
DType accumulator(DType dtype) { return is_small_float(dtype) ? DType::f32 : dtype; }
int64_t pieces_of(int64_t total, int64_t piece) { return (total + piece - 1) / piece; }

ReducePass plan_pass(int64_t a, int64_t r, int64_t b) {
  ReducePass pass;
  pass.a = a, pass.r = r, pass.b = b;
  pass.tiles = pieces_of(b, kTile);
  const int64_t width = std::min(b, kTile);
  pass.rows = std::min(r, b == 1 ? kRunPiece : std::max<int64_t>(8, kPieceElements / width));
  pass.pieces = pieces_of(r, pass.rows);
  pass.units_per_shard = std::max<int64_t>(1, kShardElements / (pass.rows * width));
  return pass;
}

// What the reduction of no elements is.
template <class T>
T empty_value(Reduction reduction) {
  using Limits = std::numeric_limits<std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>>;
  switch (reduction) {
    case Reduction::mean: return Limits::has_quiet_NaN ? T(Limits::quiet_NaN()) : T(0);
    case Reduction::prod:
    case Reduction::all: return T(1);
    case Reduction::max: return Limits::has_infinity ? T(-Limits::infinity()) : T(Limits::lowest());
    case Reduction::min: return Limits::has_infinity ? T(Limits::infinity()) : T(Limits::max());
    default: return T(0);
  }
}

// Divides for a mean and brings accumulators to the output's type; `from` may be `to`.
template <class Acc, class T>
void finish_as(const ReducePlan& plan, const void* from, void* to) {
  const Acc* in = static_cast<const Acc*>(from);
  T* out = static_cast<T*>(to);
  if (plan.reduction != Reduction::mean) {
    for (int64_t i = 0; i < plan.outputs; ++i) out[i] = T(in[i]);
    return;
  }
  if constexpr (std::is_integral_v<Acc> && sizeof(Acc) < 8) {
    // The count may not fit the type; the quotient does.
    for (int64_t i = 0; i < plan.outputs; ++i) out[i] = static_cast<T>(static_cast<int64_t>(in[i]) / plan.reduced);
  } else {
    const Acc count = static_cast<Acc>(plan.reduced);
    for (int64_t i = 0; i < plan.outputs; ++i) out[i] = T(in[i] / count);
  }
}

template <class T>
void fill_empty(const ReducePlan& plan, void* to) {
  std::fill_n(static_cast<T*>(to), plan.outputs, empty_value<T>(plan.reduction));
}

struct Finish {
  void (*finish)(const ReducePlan&, const void*, void*);
  void (*fill)(const ReducePlan&, void*);
};
template <class Acc, class T>
Finish finisher() {
  return {finish_as<Acc, T>, fill_empty<T>};
}
Finish find_finish(DType dtype) {
  switch (dtype) {
    case DType::f32: return finisher<float, float>();
    case DType::f64: return finisher<double, double>();
    case DType::f16: return finisher<float, Half>();
    case DType::bf16: return finisher<float, BFloat16>();
    case DType::i8: return finisher<int8_t, int8_t>();
    case DType::i16: return finisher<int16_t, int16_t>();
    case DType::i32: return finisher<int32_t, int32_t>();
    case DType::i64: return finisher<int64_t, int64_t>();
    case DType::u16: return finisher<uint16_t, uint16_t>();
    case DType::u32: return finisher<uint32_t, uint32_t>();
    case DType::u64: return finisher<uint64_t, uint64_t>();
    default: return finisher<uint8_t, uint8_t>();  // uint8 and bool
  }
}

// The shape as alternating groups of kept and reduced dimensions.
struct Groups {
  std::array<int64_t, kRankMax> dims{};
  std::array<bool, kRankMax> reduced{};
  size_t count = 0;
};
Groups group(const Shape& in, uint32_t axes) {
  Groups groups;
  for (int d = 0; d < in.rank(); ++d) {
    const bool reduced = (axes >> d & 1u) != 0;
    if (in.dim(d) == 1) continue;
    if (groups.count > 0 && groups.reduced[groups.count - 1] == reduced) {
      groups.dims[groups.count - 1] *= in.dim(d);
    } else {
      groups.dims[groups.count] = in.dim(d);
      groups.reduced[groups.count++] = reduced;
    }
  }
  return groups;
}

}  // namespace

DTypeSet reducible_types(Reduction reduction) {
  return reduction == Reduction::all || reduction == Reduction::any ? DTypeSet{DType::boolean} : kReal;
}

ReducePlan plan_reduce(Reduction reduction, DType dtype, const Shape& in, uint32_t axes) {
  ReducePlan plan;
  plan.reduction = reduction;
  plan.dtype = dtype;
  plan.first = find_pass(reduction, dtype);
  plan.next = find_pass(reduction, accumulator(dtype));
  plan.outputs = 1;
  for (int d = 0; d < in.rank(); ++d) ((axes >> d & 1u) ? plan.reduced : plan.outputs) *= in.dim(d);
  if (in.count() == 0) return plan;
  const Groups groups = group(in, axes);
  const int64_t size = dtype_size(accumulator(dtype));
  int64_t a = in.count(), b = 1;
  Bytes parts, middle;
  for (size_t g = groups.count; g-- > 0;) {
    a /= groups.dims[g];
    if (!groups.reduced[g]) {
      b *= groups.dims[g];
      continue;
    }
    const ReducePass pass = plan_pass(a, groups.dims[g], b);
    plan.passes[static_cast<size_t>(plan.count++)] = pass;
    if (pass.pieces > 1) parts = std::max(parts, Bytes::of(pass.a * pass.b, size) * pass.pieces);
    middle = std::max(middle, Bytes::of(pass.a * pass.b, size));
  }
  // The last pass writes to the output, unless that has another type.
  if (plan.count > 1 || is_small_float(dtype)) plan.middle_bytes = middle.aligned(kBlockAlign).value();
  plan.parts_bytes = parts.value();
  return plan;
}

void run_reduce(const ReducePlan& plan, Pool& pool, const void* in, void* out, void* workspace) {
  if (plan.outputs == 0) return;
  const Finish finish = find_finish(plan.dtype);
  if (plan.reduced == 0) return finish.fill(plan, out);
  if (plan.count == 0) {
    std::copy_n(static_cast<const char*>(in), plan.outputs * dtype_size(plan.dtype), static_cast<char*>(out));
    return;
  }
  char* const middle = static_cast<char*>(workspace);
  char* const parts = middle + 2 * plan.middle_bytes;
  const bool direct = !is_small_float(plan.dtype);
  const void* from = in;
  for (int i = 0; i < plan.count; ++i) {
    const bool last = i + 1 == plan.count;
    void* to = last && direct ? out : middle + (i & 1) * plan.middle_bytes;
    (i == 0 ? plan.first : plan.next)(plan.passes[static_cast<size_t>(i)], pool, from, to, parts);
    from = to;
  }
  if (!direct || plan.reduction == Reduction::mean) finish.finish(plan, from, out);
}

void finish_mean(const ReducePlan& plan, void* out) { find_finish(plan.dtype).finish(plan, out, out); }

}  // namespace dtg::cpu
