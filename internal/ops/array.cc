// Tensors made from a few numbers: Fill, ZerosLike, OnesLike, Range, OneHot. Where a size comes as an input,
// run resolves it again, because the plan may not have known it.
#include <cmath>
#include <type_traits>

#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/pieces.h"

namespace dtg::ops {
namespace {

// Calls fn with a value of the C++ type behind a real dtype; false for any other dtype.
template <class Fn>
bool with_type(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::f32: fn(float{}); return true;
    case DType::f64: fn(double{}); return true;
    case DType::f16: fn(Half{}); return true;
    case DType::bf16: fn(BFloat16{}); return true;
    case DType::i8: fn(int8_t{}); return true;
    case DType::i16: fn(int16_t{}); return true;
    case DType::i32: fn(int32_t{}); return true;
    case DType::i64: fn(int64_t{}); return true;
    case DType::u8: fn(uint8_t{}); return true;
    case DType::u16: fn(uint16_t{}); return true;
    case DType::u32: fn(uint32_t{}); return true;
    case DType::u64: fn(uint64_t{}); return true;
    default: return false;
  }
}

// ---- Fill, ZerosLike, OnesLike -----------------------------------------------------------------------------

Status fill_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 0));
  const KnownIntegers dims = known_integers(c, 0);
  for (int64_t dim : dims.span()) {
    if (dim < 0) return c.error("a dimension is %lld; it must be 0 or more", static_cast<long long>(dim));
  }
  DTG_ASSIGN(PartialShape shape, c.shape_from_input(0));
  c.output(0, shape);
  return {};
}

// All axes of a value, for a sum to a scalar.
Value all_axes(Build& b, Value value) {
  const PartialShape& shape = b.info(value).shape;
  if (!shape.has_rank()) return b.op("Range", {b.integer(0), b.op("Rank", {value}), b.integer(1)});
  int64_t axes[kRankMax];
  for (int i = 0; i < shape.rank(); ++i) axes[i] = i;
  return b.ints(std::span<const int64_t>(axes, static_cast<size_t>(shape.rank())));
}

// d(value) = sum(dy)
Status fill_grad(GradContext& c) {
  const Value dy = c.dy();
  c.dx(1, c.b().sum(dy, all_axes(c.b(), dy)));
  return {};
}

struct FillArgs {
  Integers dims;
  OutputSpec out;
  int64_t size = 0;
};

Status fill_run(RunContext& c) {
  const auto& a = c.args<FillArgs>();
  Integers::Buffer buffer;
  const auto shape = Shape::make(a.dims.get(c, buffer));
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  DTG_ASSIGN(char* out, a.out.memory(c, shape.value()));
  cpu::fill(c.pool(), out, shape.value().count(), a.size, c.in<char>(1));
  return {};
}

Status fill_prepare(PrepareContext& c) {
  auto* a = c.args<FillArgs>();
  DTG_TRY(a->dims.prepare(c, 0));
  a->out.prepare(c, 0);
  a->size = cell_bytes(c.input(1).dtype);
  return c.sync(fill_run);
}

// The bytes of the number one.
struct One {
  int64_t count = 0;
  int64_t size = 0;
  alignas(16) char bytes[16] = {};
};

Status zeros_like_run(RunContext& c) {
  const auto& a = c.args<One>();
  cpu::clear(c.pool(), c.out<char>(0), a.count * a.size);
  return {};
}

Status zeros_like_prepare(PrepareContext& c) {
  auto* a = c.args<One>();
  a->count = c.input(0).shape.count();
  a->size = cell_bytes(c.input(0).dtype);  // a cell of zeros is an empty string
  return c.sync(zeros_like_run);
}

Status ones_like_run(RunContext& c) {
  const auto& a = c.args<One>();
  cpu::fill(c.pool(), c.out<char>(0), a.count, a.size, a.bytes);
  return {};
}

Status ones_like_prepare(PrepareContext& c) {
  auto* a = c.args<One>();
  const DType dtype = c.input(0).dtype;
  a->count = c.input(0).shape.count();
  a->size = dtype_size(dtype);
  const auto put = [a](auto one) { __builtin_memcpy(a->bytes, &one, sizeof one); };
  // A complex one is a real one and nothing after it.
  if (dtype == DType::boolean) put(true);
  else if (dtype == DType::c64) put(1.0f);
  else if (dtype == DType::c128) put(1.0);
  else with_type(dtype, [&](auto zero) { put(static_cast<decltype(zero)>(1.0f)); });
  return c.sync(ones_like_run);
}

// ---- Range -------------------------------------------------------------------------------------------------

// How many values lie in [start, limit) in steps of delta.
template <class T>
Result<int64_t> range_count(T start, T limit, T delta) {
  if (delta == T(0)) return invalid_argument("the step must not be 0");
  if (delta > T(0) ? limit < start : limit > start) {
    return invalid_argument("no way from start to limit with a step of that sign");
  }
  if constexpr (std::is_integral_v<T>) {
    const auto wide = [](T v) { return static_cast<uint64_t>(static_cast<int64_t>(v)); };
    const uint64_t distance = delta > T(0) ? wide(limit) - wide(start) : wide(start) - wide(limit);
    const uint64_t step = delta > T(0) ? wide(delta) : uint64_t{0} - wide(delta);
    const uint64_t count = distance / step + (distance % step != 0);
    if (count >> 62) return invalid_argument("the range has too many values");
    return static_cast<int64_t>(count);
  } else {
    const T count = std::ceil(std::abs((limit - start) / delta));
    if (!(count < T(0x1p62))) return invalid_argument("the range has too many values, or is not a number");
    return static_cast<int64_t>(count);
  }
}

// 16-bit floats count as floats.
template <class T>
using RangeType = std::conditional_t<std::is_arithmetic_v<T>, T, float>;

template <class T>
RangeType<T> scalar_at(const void* data) {
  T value;
  __builtin_memcpy(&value, data, sizeof value);
  return static_cast<RangeType<T>>(value);
}

Result<int64_t> range_count_of(DType dtype, const void* start, const void* limit, const void* delta) {
  Result<int64_t> count = invalid_argument("no range of %s", dtype_name(dtype));
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    count = range_count<RangeType<T>>(scalar_at<T>(start), scalar_at<T>(limit), scalar_at<T>(delta));
  });
  return count;
}

Status range_shape(InferContext& c) {
  for (int i = 0; i < 3; ++i) DTG_TRY(c.require_rank(i, 0));
  c.output(0, PartialShape::vector(-1));
  const Tensor start = c.constant(0), limit = c.constant(1), delta = c.constant(2);
  if (!start.valid() || !limit.valid() || !delta.valid()) return {};
  const auto count = range_count_of(c.input_dtype(0), start.data(), limit.data(), delta.data());
  if (!count.ok()) return c.error("%s", count.status().message().c_str());
  c.output(0, PartialShape::vector(count.value()));
  return {};
}

struct RangeArgs {
  DType dtype = DType::invalid;
  OutputSpec out;
};

template <class T>
void write_range(char* out, int64_t from, int64_t to, const void* start, const void* delta) {
  const auto first = scalar_at<T>(start), step = scalar_at<T>(delta);
  for (int64_t i = from; i < to; ++i) {
    T value;
    if constexpr (std::is_integral_v<T>) {
      // Through unsigned numbers: wrapping around is defined there.
      value = static_cast<T>(static_cast<uint64_t>(first) + static_cast<uint64_t>(i) * static_cast<uint64_t>(step));
    } else {
      value = static_cast<T>(first + static_cast<RangeType<T>>(i) * step);
    }
    __builtin_memcpy(out + i * static_cast<int64_t>(sizeof value), &value, sizeof value);
  }
}

Status range_run(RunContext& c) {
  const auto& a = c.args<RangeArgs>();
  const auto count = range_count_of(a.dtype, c.in<char>(0), c.in<char>(1), c.in<char>(2));
  if (!count.ok()) return c.error("%s", count.status().message().c_str());
  DTG_ASSIGN(char* out, a.out.memory(c, Shape::of({count.value()})));
  with_type(a.dtype, [&](auto zero) {
    in_pieces(c.pool(), count.value(),
              [&](int64_t from, int64_t to) { write_range<decltype(zero)>(out, from, to, c.in<char>(0), c.in<char>(2)); });
  });
  return {};
}

Status range_prepare(PrepareContext& c) {
  auto* a = c.args<RangeArgs>();
  a->dtype = c.input(0).dtype;
  a->out.prepare(c, 0);
  return c.sync(range_run);
}

// ---- OneHot ------------------------------------------------------------------------------------------------

Status one_hot_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 0));
  const PartialShape& indices = c.input(0);
  const int64_t axis = c.integer("axis");
  if (axis < -1) return c.error("axis %lld; it must be -1 or more", static_cast<long long>(axis));
  const KnownIntegers depth = known_integers(c, 1);
  if (depth.known && depth.values[0] < 0) return c.error("depth %lld; it must be 0 or more", static_cast<long long>(depth.values[0]));
  if (!indices.has_rank() || axis > indices.rank()) return {};
  const int at = axis < 0 ? indices.rank() : static_cast<int>(axis);
  PartialShape out = PartialShape::of_rank(0);
  for (int i = 0; i <= indices.rank(); ++i) {
    if (i == at) DTG_TRY(in_op(c.node(), out.append(depth.known ? depth.values[0] : -1)));
    if (i < indices.rank()) DTG_TRY(in_op(c.node(), out.append(indices.dim(i))));
  }
  c.output(0, out);
  return {};
}

struct OneHotArgs {
  Shape indices;
  DType index_dtype = DType::i64;
  int axis = 0;
  int64_t prefix = 0, suffix = 0, size = 0;
  Integers depth;
  OutputSpec out;
};

Status one_hot_run(RunContext& c) {
  const auto& a = c.args<OneHotArgs>();
  Integers::Buffer buffer;
  const int64_t depth = a.depth.get(c, buffer)[0];
  if (depth < 0) return c.error("depth %lld; it must be 0 or more", static_cast<long long>(depth));
  int64_t dims[kRankMax + 1];
  for (int i = 0; i <= a.indices.rank(); ++i) dims[i] = i == a.axis ? depth : a.indices.dim(i < a.axis ? i : i - 1);
  const auto shape = Shape::make({dims, static_cast<size_t>(a.indices.rank() + 1)});
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  DTG_ASSIGN(char* out, a.out.memory(c, shape.value()));
  cpu::fill(c.pool(), out, shape.value().count(), a.size, c.in<char>(3));
  for (int64_t i = 0; i < a.prefix; ++i) {
    for (int64_t j = 0; j < a.suffix; ++j) {
      const int64_t index = integer_at(c.in<char>(0), a.index_dtype, i * a.suffix + j);
      // An index outside has no hot place.
      if (index < 0 || index >= depth) continue;
      cpu::copy_row(out + ((i * depth + index) * a.suffix + j) * a.size, c.in<char>(2), a.size);
    }
  }
  return {};
}

Status one_hot_prepare(PrepareContext& c) {
  auto* a = c.args<OneHotArgs>();
  a->indices = c.input(0).shape;
  a->index_dtype = c.input(0).dtype;
  const int64_t axis = c.integer("axis");
  if (axis < -1 || axis > a->indices.rank()) {
    return c.error("axis %lld is not in [-1, %d]", static_cast<long long>(axis), a->indices.rank());
  }
  for (int i = 2; i < 4; ++i) {
    if (c.input(i).shape.rank() != 0) return c.error("input %d must be a scalar, but has shape %s", i, c.input(i).shape.text().c_str());
  }
  a->axis = axis < 0 ? a->indices.rank() : static_cast<int>(axis);
  a->prefix = a->indices.count(0, a->axis);
  a->suffix = a->indices.count(a->axis, a->indices.rank());
  a->size = dtype_size(c.input(2).dtype);
  DTG_TRY(a->depth.prepare(c, 1));
  a->out.prepare(c, 0);
  return c.sync(one_hot_run);
}

}  // namespace

void register_array(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("Fill")
              .input("dims: index_type")
              .input("value: T", {.rank = 0})
              .output("output: T")
              .attr("T: type")
              .attr("index_type: {int32, int64} = int32")
              .shape(fill_shape)
              .gradient(fill_grad)
              .doc("A tensor of shape dims with the value everywhere."));
  kernels.add({.op = "Fill", .types = {{"T", kMovable}}, .prepare = fill_prepare});
  ops.add(OpDef::make("ZerosLike")
              .input("x: T")
              .output("y: T")
              .attr("T: type")
              .shape(unchanged_shape)
              .no_gradient()
              .doc("Zeros in the shape of x."));
  kernels.add({.op = "ZerosLike", .types = {{"T", kMovable}}, .prepare = zeros_like_prepare});
  ops.add(OpDef::make("OnesLike")
              .input("x: T")
              .output("y: T")
              .attr("T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, "
                    "complex64, complex128, bool}")
              .shape(unchanged_shape)
              .no_gradient()
              .doc("Ones in the shape of x."));
  kernels.add({.op = "OnesLike", .types = {{"T", kPlain}}, .prepare = ones_like_prepare});
  ops.add(OpDef::make("Range")
              .input("start: Tidx", {.rank = 0})
              .input("limit: Tidx", {.rank = 0})
              .input("delta: Tidx", {.rank = 0})
              .output("output: Tidx")
              .attr("Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32} = int32")
              .shape(range_shape)
              .no_gradient()
              .doc("start, start + delta, ... up to but without limit."));
  kernels.add({.op = "Range", .types = {{"Tidx", kReal}}, .prepare = range_prepare});
  ops.add(OpDef::make("OneHot")
              .input("indices: TI")
              .input("depth: int32", {.rank = 0})
              .input("on_value: T")
              .input("off_value: T")
              .output("output: T")
              .attr("axis: int = -1")
              .attr("T: type")
              .attr("TI: {uint8, int8, int32, int64} = int64")
              .shape(one_hot_shape)
              .no_gradient()
              .doc("on_value at each index along a new axis of length depth, off_value elsewhere."));
  kernels.add({.op = "OneHot", .types = {{"T", kPlain}}, .prepare = one_hot_prepare});
  register_pad_tile(ops, kernels);
}

}  // namespace dtg::ops
