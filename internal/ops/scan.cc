// Cumsum and Cumprod: running sums and products along one axis.
#include <algorithm>
#include <type_traits>

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
  for (int64_t j = 0; j < b; ++j) {
    C total = kProduct ? C(1) : C(0);
    for (int64_t k = 0; k < r; ++k) {
      const int64_t i = (args.reverse ? r - 1 - k : k) * b + j;
      const C value = static_cast<C>(in[i]);
      if (args.exclusive) out[i] = T(total);
      total = join<C, kProduct>(total, value);
      if (!args.exclusive) out[i] = T(total);
    }
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
  args.scan = c.node().op->name() == "Cumprod" ? find_scan<true>(dtype) : find_scan<false>(dtype);
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

OpDef&& along_an_axis(OpDef&& def) {
  return std::move(def)
      .input("x: T")
      .input("axis: Tidx")
      .output("out: T")
      .attr("exclusive: bool = false")
      .attr("reverse: bool = false")
      .attr(kNumbers)
      .attr("Tidx: {int32, int64} = int32")
      .shape(scan_shape);
}

}  // namespace

void register_scan(OpTable& ops, KernelTable& kernels) {
  ops.add(along_an_axis(OpDef::make("Cumsum")).gradient(cumsum_grad).doc("The running sum along an axis."));
  ops.add(along_an_axis(OpDef::make("Cumprod")).gradient(cumprod_grad).doc("The running product along an axis."));
  for (const char* name : {"Cumsum", "Cumprod"}) kernels.add({.op = name, .types = {{"T", kReal}}, .prepare = scan_prepare});
}

}  // namespace dtg::ops
