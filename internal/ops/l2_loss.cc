// L2Loss: half the sum of the squares. Squares are made block by block in a buffer and summed with the
// reduction's accuracy: blocks in vector lanes, pieces as a tree.
#include <algorithm>

#include "device/cpu/elementwise.h"
#include "device/cpu/reduce.h"
#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/reduce.h"

namespace dtg::ops {
namespace {

// dx = x dy
Status l2_loss_grad(GradContext& c) {
  c.dx(0, c.b().mul(c.input(0), c.dy()));
  return {};
}

constexpr int64_t kBlock = 1024;
constexpr int64_t kPiece = 16 * kBlock;

struct L2LossArgs {
  cpu::BlockFn widen = nullptr;  // 16-bit floats to float32; null: not needed
  cpu::BlockFn square = nullptr;
  int64_t count = 0, size = 0, pieces = 0;
};

template <class Acc>
Acc piece_sum(const L2LossArgs& args, const cpu::ReduceSimd<Acc>& sum, const char* in, int64_t n) {
  alignas(64) Acc squares[kBlock];
  Acc total = 0;
  for (int64_t from = 0; from < n; from += kBlock) {
    const int64_t part = std::min(kBlock, n - from);
    const void* operand = in + from * args.size;
    if (args.widen) {
      args.widen(&operand, squares, part);
      operand = squares;
    }
    args.square(&operand, squares, part);
    total += sum.run(squares, part);
  }
  return total;
}

template <class Acc, class T>
Status l2_loss_run(RunContext& c) {
  const auto& args = c.args<L2LossArgs>();
  if (args.count == 0) {
    *c.out<T>(0) = T(0.0f);
    return {};
  }
  const cpu::ReduceSimd<Acc>* sum = nullptr;
  if constexpr (std::is_same_v<Acc, float>) sum = &cpu::reduce_simd_f32(cpu::Reduction::sum);
  else sum = &cpu::reduce_simd_f64(cpu::Reduction::sum);
  Acc* parts = c.workspace<Acc>();
  c.pool().parallel_for(args.pieces, [&](int64_t piece) {
    const int64_t from = piece * kPiece;
    parts[piece] = piece_sum<Acc>(args, *sum, c.in<char>(0) + from * args.size, std::min(kPiece, args.count - from));
  });
  for (int64_t step = 1; step < args.pieces; step *= 2) {
    for (int64_t p = 0; p + step < args.pieces; p += 2 * step) parts[p] += parts[p + step];
  }
  *c.out<T>(0) = T(parts[0] / 2);
  return {};
}

Status l2_loss_prepare(PrepareContext& c) {
  auto& args = *c.args<L2LossArgs>();
  const DType dtype = c.input(0).dtype;
  const bool wide = dtype == DType::f64;
  if (dtype == DType::f16 || dtype == DType::bf16) args.widen = cpu::find_cast(dtype, DType::f32, false);
  args.square = cpu::find_block(cpu::ElementFn::square, wide ? DType::f64 : DType::f32)->block;
  args.count = c.input(0).shape.count();
  args.size = dtype_size(dtype);
  args.pieces = (args.count + kPiece - 1) / kPiece;
  c.workspace(Bytes::of(args.pieces, wide ? 8 : 4));
  switch (dtype) {
    case DType::f64: return c.sync(l2_loss_run<double, double>);
    case DType::f16: return c.sync(l2_loss_run<float, Half>);
    case DType::bf16: return c.sync(l2_loss_run<float, BFloat16>);
    default: return c.sync(l2_loss_run<float, float>);
  }
}

}  // namespace

void register_l2_loss(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("L2Loss")
              .input("t: T")
              .output("output: T")
              .attr("T: {half, bfloat16, float, double}")
              .shape(scalar_shape)
              .gradient(l2_loss_grad)
              .doc("Half the sum of the squares of t."));
  kernels.add({.op = "L2Loss", .types = {{"T", kFloating}}, .prepare = l2_loss_prepare});
}

}  // namespace dtg::ops
