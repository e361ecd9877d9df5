// Shared kernel of the element-wise families. See element.h.
#include "ops/element.h"

#include <algorithm>

namespace dtg::ops {

Status element_run(RunContext& c) {
  const auto& args = c.args<ElementArgs>();
  const void* in[cpu::kElementOperands];
  for (int i = 0; i < args.loop.operands; ++i) in[i] = c.in<void>(i);
  cpu::run_elements(args.loop, c.pool(), in, c.out<void>(0));
  return {};
}

namespace {

// Operands as large as the result, and too few elements for a second thread: the block and nothing around it.
// For scalars and small tensors what lies around costs more than the work.
template <int operands>
Status element_run_alone(RunContext& c) {
  const cpu::ElementLoop& loop = c.args<ElementArgs>().loop;
  const void* in[operands];
  for (int i = 0; i < operands; ++i) in[i] = c.in<void>(i);
  loop.block(in, c.out<void>(0), loop.count);
  return {};
}

SyncFn run_for(const cpu::ElementLoop& loop) {
  bool dense = loop.mode == cpu::ElementLoop::Mode::flat && loop.count > 0 && loop.count <= loop.shard;
  for (int i = 0; i < loop.operands; ++i) dense = dense && loop.in[static_cast<size_t>(i)].dense;
  if (dense && loop.operands == 1) return element_run_alone<1>;
  if (dense && loop.operands == 2) return element_run_alone<2>;
  return element_run;
}

}  // namespace

Status element_prepare(PrepareContext& c) {
  const DType dtype = c.input(c.num_inputs() - 1).dtype;
  const cpu::ElementBlock* block = cpu::find_block(c.node().op->name(), dtype);
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
  cpu::ElementLoop& loop = c.args<ElementArgs>()->loop;
  loop = cpu::plan_elements(block->block, block->heavy, {shapes, operands}, {sizes, operands}, out.shape, dtype_size(out.dtype));
  return c.sync(run_for(loop));
}

void add_element_kernels(KernelTable& kernels, const char* op, PrepareFn prepare, const char* type_attr, bool fuse) {
  DTypeSet types;
  for (uint32_t n = 1; n < 32; ++n) {
    const auto dtype = static_cast<DType>(n);
    const cpu::ElementBlock* block = cpu::find_block(op, dtype);
    if (!block) continue;
    types = types | DTypeSet{dtype};
    const bool plain = dtype == DType::f32 || dtype == DType::f64;
    if (fuse && plain) kernels.add_element({.op = op, .dtype = dtype, .arity = block->arity, .block = block->block});
  }
  KernelRow row;
  row.op = op;
  if (type_attr) row.types = {{type_attr, types}};
  row.prepare = prepare;
  kernels.add(std::move(row));
}

}  // namespace dtg::ops
