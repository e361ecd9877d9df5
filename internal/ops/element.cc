// Shared kernel of the element-wise families. See element.h.
#include "ops/element.h"

#include <algorithm>
#include <string_view>

namespace dtg::ops {

Status element_run(RunContext& c) {
  const auto& args = c.args<ElementArgs>();
  const void* in[cpu::kElementOperands];
  for (int i = 0; i < args.loop.operands; ++i) in[i] = c.in<void>(i);
  cpu::run_elements(args.loop, c.pool(), in, c.out<void>(0));
  return {};
}

namespace {

using Fn = cpu::ElementFn;

// Which function an op maps its operands by. Ops of equal meaning share one.
struct Meaning {
  std::string_view op;
  Fn fn;
};
// clang-format off
constexpr Meaning kMeanings[] = {
    {"Abs", Fn::abs}, {"Acos", Fn::acos}, {"Acosh", Fn::acosh}, {"Add", Fn::add}, {"AddV2", Fn::add}, {"Asin", Fn::asin},
    {"Asinh", Fn::asinh}, {"Atan", Fn::atan}, {"Atan2", Fn::atan2}, {"Atanh", Fn::atanh}, {"BesselI0", Fn::bessel_i0},
    {"BesselI0e", Fn::bessel_i0e}, {"BesselI1", Fn::bessel_i1}, {"BesselI1e", Fn::bessel_i1e}, {"BesselJ0", Fn::bessel_j0},
    {"BesselJ1", Fn::bessel_j1}, {"BesselK0", Fn::bessel_k0}, {"BesselK0e", Fn::bessel_k0e}, {"BesselK1", Fn::bessel_k1},
    {"BesselK1e", Fn::bessel_k1e}, {"BesselY0", Fn::bessel_y0}, {"BesselY1", Fn::bessel_y1}, {"Betainc", Fn::betainc},
    {"BitwiseAnd", Fn::bitwise_and}, {"BitwiseOr", Fn::bitwise_or}, {"BitwiseXor", Fn::bitwise_xor}, {"Ceil", Fn::ceil},
    {"ClipByValue", Fn::clip}, {"Cos", Fn::cos}, {"Cosh", Fn::cosh}, {"Digamma", Fn::digamma}, {"Div", Fn::div},
    {"DivNoNan", Fn::div_no_nan}, {"Elu", Fn::elu}, {"EluGrad", Fn::elu_grad}, {"Equal", Fn::equal}, {"Erf", Fn::erf},
    {"Erfc", Fn::erfc}, {"Erfinv", Fn::erfinv}, {"Exp", Fn::exp}, {"Expm1", Fn::expm1}, {"Floor", Fn::floor},
    {"FloorDiv", Fn::floor_div}, {"FloorMod", Fn::floor_mod}, {"Greater", Fn::greater}, {"GreaterEqual", Fn::greater_equal},
    {"Igamma", Fn::igamma}, {"IgammaGradA", Fn::igamma_grad_a}, {"Igammac", Fn::igammac}, {"Inv", Fn::reciprocal},
    {"InvGrad", Fn::reciprocal_grad}, {"Invert", Fn::invert}, {"IsFinite", Fn::is_finite}, {"IsInf", Fn::is_inf},
    {"IsNan", Fn::is_nan}, {"LeftShift", Fn::left_shift}, {"Less", Fn::less}, {"LessEqual", Fn::less_equal},
    {"Lgamma", Fn::lgamma}, {"Log", Fn::log}, {"Log1p", Fn::log1p}, {"LogicalAnd", Fn::logical_and},
    {"LogicalNot", Fn::logical_not}, {"LogicalOr", Fn::logical_or}, {"Maximum", Fn::maximum}, {"Minimum", Fn::minimum},
    {"Mod", Fn::remainder}, {"Mul", Fn::mul}, {"MulNoNan", Fn::mul_no_nan}, {"Ndtri", Fn::ndtri}, {"Neg", Fn::neg},
    {"NextAfter", Fn::next_after}, {"NotEqual", Fn::not_equal}, {"Polygamma", Fn::polygamma}, {"Pow", Fn::pow},
    {"RealDiv", Fn::real_div}, {"Reciprocal", Fn::reciprocal}, {"ReciprocalGrad", Fn::reciprocal_grad}, {"Relu", Fn::relu},
    {"Relu6", Fn::relu6}, {"Relu6Grad", Fn::relu6_grad}, {"ReluGrad", Fn::relu_grad}, {"RightShift", Fn::right_shift},
    {"Rint", Fn::rint}, {"Round", Fn::round}, {"Rsqrt", Fn::rsqrt}, {"RsqrtGrad", Fn::rsqrt_grad}, {"Select", Fn::select},
    {"SelectV2", Fn::select}, {"Selu", Fn::selu}, {"SeluGrad", Fn::selu_grad}, {"Sigmoid", Fn::sigmoid},
    {"SigmoidGrad", Fn::sigmoid_grad}, {"Sign", Fn::sign}, {"Sin", Fn::sin}, {"Sinh", Fn::sinh}, {"Softplus", Fn::softplus},
    {"SoftplusGrad", Fn::softplus_grad}, {"Softsign", Fn::softsign}, {"SoftsignGrad", Fn::softsign_grad}, {"Sqrt", Fn::sqrt},
    {"SqrtGrad", Fn::sqrt_grad}, {"Square", Fn::square}, {"SquaredDifference", Fn::squared_difference}, {"Sub", Fn::sub},
    {"Tan", Fn::tan}, {"Tanh", Fn::tanh}, {"TanhGrad", Fn::tanh_grad}, {"TruncateDiv", Fn::truncate_div},
    {"TruncateMod", Fn::remainder}, {"Xdivy", Fn::xdivy}, {"Xlog1py", Fn::xlog1py}, {"Xlogy", Fn::xlogy}, {"Zeta", Fn::zeta},
};
// clang-format on
static_assert(std::ranges::is_sorted(kMeanings, {}, &Meaning::op));

const cpu::ElementBlock* block_of(std::string_view op, DType dtype) {
  const auto* const row = std::ranges::lower_bound(kMeanings, op, {}, &Meaning::op);
  return row != std::end(kMeanings) && row->op == op ? cpu::find_block(row->fn, dtype) : nullptr;
}

// Operands as large as the result, and too few elements for a second thread: the block and nothing around it.
// For scalars and small tensors what lies around, in time and in memory, is more than the work.
struct AloneArgs {
  cpu::BlockFn block = nullptr;
  int64_t count = 0;
};

template <int operands>
Status element_run_alone(RunContext& c) {
  const auto& args = c.args<AloneArgs>();
  const void* in[operands];
  for (int i = 0; i < operands; ++i) in[i] = c.in<void>(i);
  args.block(in, c.out<void>(0), args.count);
  return {};
}

bool stands_alone(const cpu::ElementLoop& loop) {
  bool dense = loop.mode == cpu::ElementLoop::Mode::flat && loop.count > 0 && loop.count <= loop.shard && loop.operands <= 2;
  for (int i = 0; i < loop.operands; ++i) dense = dense && loop.in[static_cast<size_t>(i)].dense;
  return dense;
}

}  // namespace

Status element_prepare(PrepareContext& c) {
  DTG_ASSIGN(const cpu::ElementLoop loop, element_loop(c));
  if (!stands_alone(loop)) {
    c.args<ElementArgs>()->loop = loop;
    return c.sync(element_run);
  }
  *c.args<AloneArgs>() = {loop.block, loop.count};
  return c.sync(loop.operands == 1 ? element_run_alone<1> : element_run_alone<2>);
}

Result<cpu::ElementLoop> element_loop(PrepareContext& c) {
  const DType dtype = c.input(c.num_inputs() - 1).dtype;
  const cpu::ElementBlock* block = block_of(c.node().op->name(), dtype);
  if (!block) return c.error("no loop for %s", dtype_name(dtype));
  Shape shapes[cpu::kElementOperands];
  int64_t sizes[cpu::kElementOperands];
  const auto operands = static_cast<size_t>(c.num_inputs());
  const auto& out = c.output(0);
  for (size_t i = 0; i < operands; ++i) {
    const auto& in = c.input(static_cast<int>(i));
    shapes[i] = in.shape;
    sizes[i] = dtype_size(in.dtype);
    if (in.shape == out.shape && sizes[i] == dtype_size(out.dtype)) c.may_overwrite(static_cast<int>(i), 0);
  }
  return cpu::plan_elements(block->block, block->heavy, {shapes, operands}, {sizes, operands}, out.shape, dtype_size(out.dtype));
}

static void add_element_row(KernelTable& kernels, const char* op, const cpu::ElementBlock& block, DType dtype, Fusing fusing) {
  if (fusing == Fusing::none || (fusing == Fusing::floats && !dtype_is_floating(dtype))) return;
  ElementRow row;
  row.op = op;
  row.arity = block.arity;
  row.block = block.block;
  for (int k = 0; k < block.arity; ++k) row.in[k] = fusing == Fusing::chooses && k == 0 ? DType::boolean : dtype;
  row.out = fusing == Fusing::asks ? DType::boolean : dtype;
  kernels.add_element(row);
}

void add_element_kernels(KernelTable& kernels, const char* op, PrepareFn prepare, const char* type_attr, Fusing fusing) {
  DTypeSet types;
  for (uint32_t n = 1; n < 32; ++n) {
    const auto dtype = static_cast<DType>(n);
    const cpu::ElementBlock* block = block_of(op, dtype);
    if (!block) continue;
    types = types | DTypeSet{dtype};
    add_element_row(kernels, op, *block, dtype, fusing);
  }
  KernelRow row;
  row.op = op;
  if (type_attr) row.types = {{type_attr, types}};
  row.prepare = prepare;
  kernels.add(std::move(row));
}

}  // namespace dtg::ops
