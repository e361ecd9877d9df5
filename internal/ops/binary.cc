// Arithmetic of two operands with broadcasting, and AddN. Float and integer types; integers wrap around,
// and a zero divisor or a negative exponent of integers is refused before anything is computed.
#include <algorithm>

#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/element.h"
#include "ops/known.h"
#include "ops/simplify.h"

namespace dtg::ops {
namespace {

constexpr const char* kAny =
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, complex128}";
constexpr const char* kAnyOrString = "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128, string}";
constexpr const char* kFew = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}";
constexpr const char* kFields = "T: {half, float, bfloat16, double, complex64, complex128}";
constexpr const char* kReal = "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}";
constexpr const char* kIntegers = "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}";
constexpr const char* kRemainder = "T: {int32, int64, bfloat16, half, float, double}";
constexpr const char* kFloat = "T: {bfloat16, half, float, double}";
constexpr const char* kPower = "T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}";

// dx = dy, dy' = dy
Status add_grad(GradContext& c) {
  const Value g = c.dy();
  c.dx_unbroadcast(0, g, 1);
  c.dx_unbroadcast(1, g, 0);
  return {};
}
// dx = g, dy = -g
Status sub_grad(GradContext& c) {
  const Value g = c.dy();
  c.dx_unbroadcast(0, g, 1);
  c.dx_unbroadcast(1, c.b().neg(g), 0);
  return {};
}
// dx = g y, dy = x g
Status mul_grad(GradContext& c) {
  Build& b = c.b();
  const Value g = c.dy();
  c.dx_unbroadcast(0, b.mul(g, c.input(1)), 1);
  c.dx_unbroadcast(1, b.mul(c.input(0), g), 0);
  return {};
}
// dx = g / y, dy = g ((-x / y) / y)
Status quotient_grad(GradContext& c, const char* divide) {
  Build& b = c.b();
  const Value x = c.input(0), y = c.input(1), g = c.dy();
  c.dx_unbroadcast(0, b.op(divide, {g, y}), 1);
  c.dx_unbroadcast(1, b.mul(g, b.op(divide, {b.op(divide, {b.neg(x), y}), y})), 0);
  return {};
}
Status div_grad(GradContext& c) { return quotient_grad(c, "RealDiv"); }
Status div_no_nan_grad(GradContext& c) { return quotient_grad(c, "DivNoNan"); }
// x mod y = x - y floor(x / y): dx = g, dy = -g floor(x / y)
Status floor_mod_grad(GradContext& c) {
  Build& b = c.b();
  const Value g = c.dy();
  c.dx_unbroadcast(0, g, 1);
  c.dx_unbroadcast(1, b.mul(g, b.neg(b.op("FloorDiv", {c.input(0), c.input(1)}))), 0);
  return {};
}
// The gradient goes to the operand that was chosen; at a tie to x.
Status choice_grad(GradContext& c, const char* x_chosen) {
  Build& b = c.b();
  const Value g = c.dy(), zeros = b.zeros_like(g);
  const Value mask = b.op(x_chosen, {c.input(0), c.input(1)});
  c.dx_unbroadcast(0, b.op("SelectV2", {mask, g, zeros}), 1);
  c.dx_unbroadcast(1, b.op("SelectV2", {mask, zeros, g}), 0);
  return {};
}
Status maximum_grad(GradContext& c) { return choice_grad(c, "GreaterEqual"); }
Status minimum_grad(GradContext& c) { return choice_grad(c, "LessEqual"); }
// dx = 2 g (x - y), dy = -dx
Status squared_difference_grad(GradContext& c) {
  Build& b = c.b();
  const Value g = c.dy();
  const Value dx = b.mul(b.mul(b.like(g, 2.0), g), b.sub(c.input(0), c.input(1)));
  c.dx_unbroadcast(0, dx, 1);
  c.dx_unbroadcast(1, b.neg(dx), 0);
  return {};
}
// dx = g y x^(y-1), dy = g z log(x), and 0 where x <= 0
Status pow_grad(GradContext& c) {
  Build& b = c.b();
  const Value x = c.input(0), y = c.input(1), g = c.dy();
  c.dx_unbroadcast(0, b.mul(b.mul(g, y), b.op("Pow", {x, b.sub(y, b.like(y, 1.0))})), 1);
  const Value positive = b.op("Greater", {x, b.like(x, 0.0)});
  const Value safe = b.op("SelectV2", {positive, x, b.like(x, 1.0)});
  const Value log = b.op("SelectV2", {positive, b.op("Log", {safe}), b.zeros_like(x)});
  c.dx_unbroadcast(1, b.mul(b.mul(g, c.output(0)), log), 0);
  return {};
}

// dx = g y, dy = x g, and zero wins as in the product itself
Status mul_no_nan_grad(GradContext& c) {
  Build& b = c.b();
  const Value g = c.dy();
  c.dx_unbroadcast(0, b.op("MulNoNan", {g, c.input(1)}), 1);
  c.dx_unbroadcast(1, b.op("MulNoNan", {c.input(0), g}), 0);
  return {};
}
// z = x f(y) with 0 f = 0: dx = g f(y) where x is not 0
Value where_x(GradContext& c, const char* op) {
  Build& b = c.b();
  const Value x = c.input(0);
  const Value used = b.cast(b.op("NotEqual", {x, b.like(x, 0.0)}), b.info(x).dtype);
  return b.mul(b.op(op, {used, c.input(1)}), c.dy());
}
// dy = -g x / y^2
Status xdivy_grad(GradContext& c) {
  Build& b = c.b();
  c.dx_unbroadcast(0, where_x(c, "Xdivy"), 1);
  const Value slope = b.op("Xdivy", {b.neg(c.input(0)), b.op("Square", {c.input(1)})});
  c.dx_unbroadcast(1, b.mul(slope, c.dy()), 0);
  return {};
}
// dy = g x / y
Status xlogy_grad(GradContext& c) {
  Build& b = c.b();
  c.dx_unbroadcast(0, where_x(c, "Xlogy"), 1);
  c.dx_unbroadcast(1, b.mul(b.op("Xdivy", {c.input(0), c.input(1)}), c.dy()), 0);
  return {};
}
// dy = g x / (1 + y)
Status xlog1py_grad(GradContext& c) {
  Build& b = c.b();
  const Value y = c.input(1);
  c.dx_unbroadcast(0, where_x(c, "Xlog1py"), 1);
  c.dx_unbroadcast(1, b.mul(b.op("Xdivy", {c.input(0), b.add(y, b.like(y, 1.0))}), c.dy()), 0);
  return {};
}
// z = the angle of (x1, x0): d0 = g x1 / (x0^2 + x1^2), d1 = -g x0 / (x0^2 + x1^2)
Status atan2_grad(GradContext& c) {
  Build& b = c.b();
  const Value y = c.input(0), x = c.input(1);
  const Value slope = b.div(c.dy(), b.add(b.op("Square", {x}), b.op("Square", {y})));
  c.dx_unbroadcast(0, b.mul(x, slope), 1);
  c.dx_unbroadcast(1, b.mul(b.neg(y), slope), 0);
  return {};
}

// ---- kernels that look at the second operand first --------------------------------------------------------

template <class T>
bool has_zero(const void* data, int64_t n) {
  const T* at = static_cast<const T*>(data);
  return std::find(at, at + n, T(0)) != at + n;
}
template <class T>
bool has_negative(const void* data, int64_t n) {
  const T* at = static_cast<const T*>(data);
  return std::any_of(at, at + n, [](T v) { return v < 0; });
}

using Refused = bool (*)(const void*, int64_t);
Refused zero_finder(DType dtype) {
  switch (dtype) {
    case DType::i8:
    case DType::u8: return has_zero<uint8_t>;
    case DType::i16:
    case DType::u16: return has_zero<uint16_t>;
    case DType::i32:
    case DType::u32: return has_zero<uint32_t>;
    case DType::i64:
    case DType::u64: return has_zero<uint64_t>;
    default: return nullptr;
  }
}
Refused negative_finder(DType dtype) {
  switch (dtype) {
    case DType::i8: return has_negative<int8_t>;
    case DType::i16: return has_negative<int16_t>;
    case DType::i32: return has_negative<int32_t>;
    case DType::i64: return has_negative<int64_t>;
    default: return nullptr;
  }
}

Status checked_run(RunContext& c) {
  const auto& args = c.args<ElementArgs>();
  if (args.loop.count > 0 && args.refused(c.in<void>(1), args.checked)) {
    const std::string& op = c.node().op->name();
    if (op == "Pow") return c.error("integers to negative integer powers are not allowed");
    const Status by_zero = c.error("division by zero: an element of y is 0, and integers have no infinity; choose another divisor there");
    // TensorFlow's code for these two, odd as it is. Whose the fault is must be plain from the words.
    return op.starts_with("Truncate") ? Status(Code::internal, by_zero.message()) : by_zero;
  }
  return element_run(c);
}

Status checked_prepare(PrepareContext& c, Refused refused) {
  if (!refused) return element_prepare(c);
  auto* args = c.args<ElementArgs>();
  DTG_ASSIGN(args->loop, element_loop(c));
  args->refused = refused;
  args->checked = c.input(1).shape.count();
  return c.sync(checked_run);
}
Status divide_prepare(PrepareContext& c) { return checked_prepare(c, zero_finder(c.input(1).dtype)); }
Status pow_prepare(PrepareContext& c) { return checked_prepare(c, negative_finder(c.input(1).dtype)); }

struct BinaryOp {
  const char* name;
  const char* types;
  GradFn gradient;  // null: none flows
  PrepareFn prepare;
  const char* doc;
};
constexpr BinaryOp kBinary[] = {
    {"AddV2", kAny, add_grad, element_prepare, "x + y, with broadcasting."},
    {"Add", kAnyOrString, add_grad, element_prepare, "x + y, with broadcasting."},
    {"Sub", kAny, sub_grad, element_prepare, "x - y, with broadcasting."},
    {"Mul", kAny, mul_grad, element_prepare, "x y, element by element, with broadcasting."},
    {"RealDiv", kAny, div_grad, element_prepare, "x / y of floating-point numbers, with broadcasting."},
    {"Div", kAny, div_grad, divide_prepare, "x / y, with broadcasting; the quotient of integers is cut towards zero."},
    {"DivNoNan", kFields, div_no_nan_grad, element_prepare, "x / y, or 0 where y is 0; with broadcasting."},
    {"FloorDiv", kAny, nullptr, divide_prepare, "floor(x / y), with broadcasting."},
    {"FloorMod", kReal, floor_mod_grad, divide_prepare, "x - y floor(x / y), with broadcasting; it has the sign of y."},
    {"Maximum", kReal, maximum_grad, element_prepare, "The larger of x and y, with broadcasting; NaN if either is."},
    {"Minimum", kReal, minimum_grad, element_prepare, "The smaller of x and y, with broadcasting; NaN if either is."},
    {"SquaredDifference", kFew, squared_difference_grad, element_prepare, "(x - y)^2, with broadcasting."},
    {"MulNoNan", kFields, mul_no_nan_grad, element_prepare, "x y, or 0 where y is 0 even if x is not finite; with broadcasting."},
    {"Xdivy", kFields, xdivy_grad, element_prepare, "x / y, or 0 where x is 0; with broadcasting."},
    {"Xlogy", kFields, xlogy_grad, element_prepare, "x log(y), or 0 where x is 0; with broadcasting."},
    {"Xlog1py", kFields, xlog1py_grad, element_prepare, "x log(1 + y), or 0 where x is 0; with broadcasting."},
    {"TruncateDiv", kAny, nullptr, divide_prepare, "x / y of integers, cut towards zero, with broadcasting."},
    {"TruncateMod", kRemainder, nullptr, divide_prepare, "The remainder of TruncateDiv, with broadcasting; it has the sign of x."},
    {"Mod", kRemainder, nullptr, divide_prepare, "The remainder of x / y cut towards zero, with broadcasting."},
    {"BitwiseAnd", kIntegers, nullptr, element_prepare, "The bits set in both, with broadcasting."},
    {"BitwiseOr", kIntegers, nullptr, element_prepare, "The bits set in one or both, with broadcasting."},
    {"BitwiseXor", kIntegers, nullptr, element_prepare, "The bits set in just one, with broadcasting."},
    {"Pow", kPower, pow_grad, pow_prepare, "x to the power of y, with broadcasting."},
    {"LeftShift", kIntegers, nullptr, element_prepare, "The bits of x moved y places up, with broadcasting."},
    {"RightShift", kIntegers, nullptr, element_prepare, "The bits of x moved y places down, the sign kept, with broadcasting."},
};

// Next to nothing moves: dx1 = g, dx2 = 0
Status next_after_grad(GradContext& c) {
  Build& b = c.b();
  const Value g = c.dy();
  c.dx_unbroadcast(0, b.mul(b.op("OnesLike", {g}), g), 1);
  c.dx_unbroadcast(1, b.zeros_like(g), 0);
  return {};
}

// ---- AddN, AccumulateNV2 ------------------------------------------------------------------------------------------------

Status add_n_shape(InferContext& c) {
  if (is_holder(c.input_dtype(0))) {
    // Lists: what their elements are like, as far as the first says it.
    c.output_held(0, c.held_dtype(0), c.num_inputs() == 1 ? c.input(0) : PartialShape::unknown());
    return {};
  }
  PartialShape sum = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    auto both = PartialShape::merge(sum, c.input(i), "the inputs");
    if (!both.ok()) return c.error("%s", both.status().message().c_str());
    sum = both.take();
  }
  c.output(0, sum);
  return {};
}

// The attribute is the shape of the sum, so it must be complete.
Status accumulate_n_shape(InferContext& c) {
  const auto& shape = c.attr<PartialShape>("shape");
  DTG_TRY(add_n_shape(c));
  auto both = PartialShape::merge(shape, c.input(0), "the attribute shape and the inputs");
  if (!both.ok()) return c.error("%s", both.status().message().c_str());
  if (!shape.complete()) return c.error("the attribute shape must be known, but is %s", shape.text().c_str());
  c.output(0, shape);
  return {};
}

Status add_n_grad(GradContext& c) {
  const Value g = c.dy();
  for (int i = 0; i < c.num_inputs(); ++i) c.dx(i, g);
  return {};
}

constexpr int64_t kAddBlock = 1024;  // elements summed while they are in the first-level cache
constexpr int64_t kAddShard = 64 * kAddBlock;

struct AddNArgs {
  cpu::BlockFn add = nullptr;
  int inputs = 0;
  int64_t count = 0;
  int64_t size = 0;
};

// Left to right, as many inputs as there are, block by block. The sum of a block grows in a buffer and goes out with the
// last addition: the output may lie over an input, and that input may be in the list more than once.
Status add_n_run(RunContext& c) {
  const auto& args = c.args<AddNArgs>();
  const auto sum_block = [&](int64_t from, int64_t n) {
    alignas(64) char sum[kAddBlock * 8];
    const auto input = [&](int i) { return c.in<char>(i) + from * args.size; };
    char* const out = c.out<char>(0) + from * args.size;
    const void* operands[2] = {input(0), input(1)};
    args.add(operands, args.inputs == 2 ? out : sum, n);
    for (int i = 2; i < args.inputs; ++i) {
      operands[0] = sum;
      operands[1] = input(i);
      args.add(operands, i + 1 == args.inputs ? out : sum, n);
    }
  };
  c.pool().parallel_for((args.count + kAddShard - 1) / kAddShard, [&](int64_t shard) {
    const int64_t end = std::min(args.count, (shard + 1) * kAddShard);
    for (int64_t from = shard * kAddShard; from < end; from += kAddBlock) sum_block(from, std::min(kAddBlock, end - from));
  });
  return {};
}

Status add_n_prepare(PrepareContext& c) {
  if (c.num_inputs() == 1) {
    c.alias(0, 0);
    return {};
  }
  const cpu::ElementBlock* add = cpu::find_block(cpu::ElementFn::add, c.input(0).dtype);
  if (!add) return c.error("no loop for %s", dtype_name(c.input(0).dtype));
  auto* args = c.args<AddNArgs>();
  *args = {add->block, c.num_inputs(), c.input(0).shape.count(), dtype_size(c.input(0).dtype)};
  for (int i = 0; i < c.num_inputs(); ++i) c.may_overwrite(i, 0);
  return c.sync(add_n_run);
}

}  // namespace

void register_binary(OpTable& ops, KernelTable& kernels) {
  for (const BinaryOp& row : kBinary) {
    OpDef def = OpDef::make(row.name).input("x: T").input("y: T").output("z: T").attr(row.types).shape(broadcast_shape).doc(row.doc);
    if (const ValueFn value = arithmetic_value(row.name)) std::move(def).value(value);
    if (const RewriteFn rule = simplify_binary(row.name)) std::move(def).simplify(rule);
    ops.add(row.gradient ? std::move(def).gradient(row.gradient) : std::move(def).no_gradient());
    add_element_kernels(kernels, row.name, row.prepare, "T", row.prepare == element_prepare ? Fusing::keeps : Fusing::floats);
  }
  ops.add(OpDef::make("Atan2")
              .input("y: T")
              .input("x: T")
              .output("z: T")
              .attr(kFloat)
              .shape(broadcast_shape)
              .gradient(atan2_grad)
              .doc("The angle of the point (x, y), with broadcasting."));
  add_element_kernels(kernels, "Atan2");
  ops.add(OpDef::make("NextAfter")
              .input("x1: T")
              .input("x2: T")
              .output("output: T")
              .attr("T: {double, float} = float")
              .shape(broadcast_shape)
              .gradient(next_after_grad)
              .doc("The number next to x1 on the way to x2, with broadcasting."));
  add_element_kernels(kernels, "NextAfter");
  ops.add(OpDef::make("AddN")
              .input("inputs: N * T")
              .output("sum: T")
              .attr("N: int >= 1")
              .attr("T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
                    "quint16, uint16, complex128, half, uint32, uint64, variant}")
              .shape(add_n_shape)
              .forwards()
              .gradient(add_n_grad)
              .doc("The sum of all inputs, which have one shape."));
  kernels.add({.op = "AddN", .types = {{"T", dtg::kReal}}, .prepare = add_n_prepare});
  ops.add(OpDef::make("AccumulateNV2")
              .input("inputs: N * T")
              .output("sum: T")
              .attr("N: int >= 1")
              .attr("T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
                    "quint16, uint16, complex128, half, uint32, uint64}")
              .attr("shape: shape")
              .shape(accumulate_n_shape)
              .forwards()
              .gradient(add_n_grad)
              .doc("The sum of all inputs, which have the shape of the attribute; always in their order."));
  kernels.add({.op = "AccumulateNV2", .types = {{"T", dtg::kReal}}, .prepare = add_n_prepare});
}

}  // namespace dtg::ops
