// Cumsum, Cumprod and CumulativeLogsumexp: running sums and products along one axis, and the logarithm of running sums of
// exponentials.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/watched.h"
#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/reduce.h"

namespace dtg::ops {
namespace {

Status scan_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 0));
  const Tensor axis = c.constant(1);
  if (axis.valid() && c.input(0).has_rank()) {
    const auto known = read_axis(axis.int_at(0), c.input(0).rank());
    if (!known.ok()) return c.error("%s", known.status().message().c_str());
  }
  return c.same_as_input(0);
}

// What stands for the logarithm of nothing in the gradient: the lowest number that is finite.
double lowest_of(DType dtype) {
  if (dtype == DType::f64) return std::numeric_limits<double>::lowest();
  if (dtype == DType::f16) return -65504.0;
  return dtype == DType::bf16 ? -3.3895313892515355e38 : static_cast<double>(std::numeric_limits<float>::lowest());
}

// The same sum from the other end.
Status cumsum_grad(GradContext& c) {
  const bool exclusive = c.attr<bool>("exclusive"), reverse = c.attr<bool>("reverse");
  c.dx(0, c.b().op("Cumsum", {c.dy(), c.input(1)}, {{"exclusive", exclusive}, {"reverse", !reverse}}));
  return {};
}

// dx = (sum from the other end of y dy) / x, and 0 where x is 0, as TensorFlow has it
Status cumprod_grad(GradContext& c) {
  Build& b = c.b();
  const bool exclusive = c.attr<bool>("exclusive"), reverse = c.attr<bool>("reverse");
  const Value product = b.op("Cumprod", {c.input(0), c.input(1)}, {{"exclusive", exclusive}, {"reverse", reverse}});
  const Value sums = b.op("Cumsum", {b.mul(product, c.dy()), c.input(1)}, {{"exclusive", exclusive}, {"reverse", !reverse}});
  c.dx(0, b.op("DivNoNan", {sums, c.input(0)}));
  return {};
}

// dx = exp(x) times the sum from the other end of dy exp(-y), in logarithms and separately for the positive and the negative dy
Status logsumexp_grad(GradContext& c) {
  Build& b = c.b();
  const bool exclusive = c.attr<bool>("exclusive"), reverse = c.attr<bool>("reverse");
  const Value x = c.input(0), y = c.output(0), dy = c.dy(), zero = b.like(dy, 0.0), one = b.like(dy, 1.0);
  const DType dtype = b.info(dy).dtype;
  const Value nothing = b.scalar(dtype, lowest_of(dtype));
  const auto part = [&](Value g) {
    const Value positive = b.op("Greater", {g, zero});
    const Value log = b.op("SelectV2", {positive, b.op("Log", {b.op("SelectV2", {positive, g, one})}), nothing});
    const Value sums = b.op("CumulativeLogsumexp", {b.sub(log, y), c.input(1)}, {{"exclusive", exclusive}, {"reverse", !reverse}});
    return b.op("Exp", {b.add(sums, x)});
  };
  c.dx(0, b.sub(part(dy), part(b.neg(dy))));
  return {};
}

struct ScanArgs;
// The columns [from, to) of row a.
using ScanFn = void (*)(const ScanArgs& args, int64_t r, int64_t b, int64_t a, const void* in, void* out);
struct ScanArgs {
  ScanFn scan = nullptr;
  Shape shape;
  DType axis_dtype = DType::invalid;
  bool exclusive = false, reverse = false;
};

constexpr int64_t kShardElements = 16384;

template <class T>
using Total = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

template <class C, bool kProduct>
C join(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) {
    return kProduct ? a * b : a + b;
  } else {
    using U = std::conditional_t<(sizeof(C) < 4), uint32_t, std::make_unsigned_t<C>>;
    const U left = static_cast<U>(a), right = static_cast<U>(b);
    return static_cast<C>(kProduct ? left * right : left + right);
  }
}

template <class T, bool kProduct>
void scan(const ScanArgs& args, int64_t r, int64_t b, int64_t a, const void* in_data, void* out_data) {
  using C = Total<T>;
  const T* in = static_cast<const T*>(in_data) + a * r * b;
  T* out = static_cast<T*>(out_data) + a * r * b;
  for (const int64_t j : watched(b, std::min<int64_t>(r, 20'000) * 4)) {
    C total = kProduct ? C(1) : C(0);
    for (const int64_t k : watched(r, b > 8 ? 8 : 2)) {
      const int64_t i = (args.reverse ? r - 1 - k : k) * b + j;
      const C value = static_cast<C>(in[i]);
      if (args.exclusive) out[i] = T(total);
      total = join<C, kProduct>(total, value);
      if (!args.exclusive) out[i] = T(total);
    }
  }
}

template <class T>
void scan_logs(const ScanArgs& args, int64_t r, int64_t b, int64_t a, const void* in_data, void* out_data) {
  using C = Total<T>;
  const T* in = static_cast<const T*>(in_data) + a * r * b;
  T* out = static_cast<T*>(out_data) + a * r * b;
  for (const int64_t j : watched(b, std::min<int64_t>(r, 20'000) * 4)) {
    C total = -std::numeric_limits<C>::infinity();
    for (const int64_t k : watched(r, 30)) {
      const int64_t i = (args.reverse ? r - 1 - k : k) * b + j;
      const C value = static_cast<C>(in[i]);
      if (args.exclusive) out[i] = T(total);
      const C high = std::max(total, value), low = std::min(total, value);
      // Infinite ones have no difference to take.
      if (std::isnan(value) || std::isnan(total)) total = std::numeric_limits<C>::quiet_NaN();
      else total = std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
      if (!args.exclusive) out[i] = T(total);
    }
  }
}

ScanFn find_log_scan(DType dtype) {
  switch (dtype) {
    case DType::f16: return scan_logs<Half>;
    case DType::bf16: return scan_logs<BFloat16>;
    case DType::f64: return scan_logs<double>;
    default: return scan_logs<float>;
  }
}

template <bool kProduct>
ScanFn find_scan(DType dtype) {
  switch (dtype) {
    case DType::f32: return scan<float, kProduct>;
    case DType::f64: return scan<double, kProduct>;
    case DType::f16: return scan<Half, kProduct>;
    case DType::bf16: return scan<BFloat16, kProduct>;
    case DType::i8: return scan<int8_t, kProduct>;
    case DType::i16: return scan<int16_t, kProduct>;
    case DType::i32: return scan<int32_t, kProduct>;
    case DType::i64: return scan<int64_t, kProduct>;
    case DType::u8: return scan<uint8_t, kProduct>;
    case DType::u16: return scan<uint16_t, kProduct>;
    case DType::u32: return scan<uint32_t, kProduct>;
    default: return scan<uint64_t, kProduct>;
  }
}

Status scan_run(RunContext& c) {
  const auto& args = c.args<ScanArgs>();
  const int64_t given = args.axis_dtype == DType::i32 ? *c.in<int32_t>(1) : *c.in<int64_t>(1);
  const auto axis = read_axis(given, args.shape.rank());
  if (!axis.ok()) return c.error("%s", axis.status().message().c_str());
  const int64_t a = args.shape.count(0, axis.value()), r = args.shape.dim(axis.value());
  const int64_t b = args.shape.count(axis.value() + 1, args.shape.rank());
  const int64_t together = std::max<int64_t>(1, kShardElements / std::max<int64_t>(1, r * b));
  c.pool().parallel_for((a + together - 1) / together, [&](int64_t shard) {
    const int64_t end = std::min(a, (shard + 1) * together);
    for (int64_t row = shard * together; row < end; ++row) args.scan(args, r, b, row, c.in<void>(0), c.out<void>(0));
  });
  return {};
}

Status scan_prepare(PrepareContext& c) {
  auto& args = *c.args<ScanArgs>();
  const DType dtype = c.input(0).dtype;
  const std::string& op = c.node().op->name();
  args.scan = op == "Cumprod" ? find_scan<true>(dtype) : op == "Cumsum" ? find_scan<false>(dtype) : find_log_scan(dtype);
  args.shape = c.input(0).shape;
  args.axis_dtype = c.input(1).dtype;
  args.exclusive = c.boolean("exclusive");
  args.reverse = c.boolean("reverse");
  c.may_overwrite(0, 0);
  return c.sync(scan_run);
}

constexpr const char* kNumbers =
    "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, "
    "complex128, half, uint32, uint64}";

OpDef&& along_an_axis(OpDef&& def, const char* types = kNumbers) {
  return std::move(def)
      .input("x: T")
      .input("axis: Tidx")
      .output("out: T")
      .attr("exclusive: bool = false")
      .attr("reverse: bool = false")
      .attr(types)
      .attr("Tidx: {int32, int64} = int32")
      .shape(scan_shape);
}

}  // namespace

void register_scan(OpTable& ops, KernelTable& kernels) {
  ops.add(along_an_axis(OpDef::make("Cumsum")).gradient(cumsum_grad).doc("The running sum along an axis."));
  ops.add(along_an_axis(OpDef::make("Cumprod")).gradient(cumprod_grad).doc("The running product along an axis."));
  ops.add(along_an_axis(OpDef::make("CumulativeLogsumexp"), "T: {bfloat16, half, float, double}")
              .gradient(logsumexp_grad)
              .doc("The logarithm of the running sum of exponentials along an axis."));
  kernels.add({.op = "CumulativeLogsumexp", .types = {{"T", kFloating}}, .prepare = scan_prepare});
  for (const char* name : {"Cumsum", "Cumprod"}) kernels.add({.op = name, .types = {{"T", kReal}}, .prepare = scan_prepare});
}

}  // namespace dtg::ops
