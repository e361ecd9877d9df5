// _ElementChain: several element-wise ops in one pass. The planner makes it; nobody names it in a graph.
// The run walks the operands in blocks that stay in the first-level cache and applies one block function
// after the other.
//
// ops: the element-wise ops in order. operands: for each of them its operands, an input number or
// -1 - number of an earlier step. Inputs have the output's shape or one element. The last step is the
// output.
#include <algorithm>

#include "exec/kernel.h"
#include "graph/infer.h"
#include "ops/all.h"

namespace dtg::ops {
namespace {

constexpr int64_t kBlock = 1024;         // elements
constexpr int64_t kShard = 64 * kBlock;  // elements one shard does
constexpr int kSteps = 16;
constexpr int kOperandsMax = 3;

struct ChainStep {
  ElementRow::BlockFn block = nullptr;
  int arity = 0;
  int operands[kOperandsMax] = {};
};

struct ChainArgs {
  ChainStep steps[kSteps];
  int count = 0;
  int inputs = 0;
  bool scalar[16] = {};
  int64_t elements = 0;
  int64_t size = 0;     // bytes of an element
  int64_t buffers = 0;  // blocks of scratch a shard needs
};

Status chain_shape(InferContext& c) {
  PartialShape shape = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    auto both = broadcast_shapes(shape, c.input(i));
    if (!both.ok()) return c.error("%s", both.status().message().c_str());
    shape = both.take();
  }
  c.output(0, shape);
  return {};
}

void fill_block(char* to, const char* value, int64_t size) {
  for (int64_t i = 0; i < kBlock; ++i) std::memcpy(to + i * size, value, static_cast<size_t>(size));
}

// One shard. Scratch: first the scalar inputs spread over a block each, then one block per step.
void run_shard(const RunContext& c, const ChainArgs& a, char* scratch, int64_t from, int64_t to) {
  const int64_t block_bytes = kBlock * a.size;
  char* spread[16] = {};
  char* results = scratch;
  for (int i = 0; i < a.inputs; ++i) {
    if (!a.scalar[i]) continue;
    spread[i] = results;
    fill_block(results, c.in<char>(i), a.size);
    results += block_bytes;
  }
  char* const out = c.out<char>(0);
  for (int64_t at = from; at < to; at += kBlock) {
    const int64_t n = std::min(kBlock, to - at);
    for (int s = 0; s < a.count; ++s) {
      const ChainStep& step = a.steps[s];
      const void* in[kOperandsMax];
      for (int k = 0; k < step.arity; ++k) {
        const int operand = step.operands[k];
        if (operand < 0) in[k] = results + (-1 - operand) * block_bytes;
        else in[k] = spread[operand] ? spread[operand] : c.in<char>(operand) + at * a.size;
      }
      step.block(in, s + 1 == a.count ? out + at * a.size : results + s * block_bytes, n);
    }
  }
}

Status chain_run(RunContext& c) {
  const auto& a = c.args<ChainArgs>();
  const int64_t shards = (a.elements + kShard - 1) / kShard;
  char* const scratch = c.workspace();
  c.pool().parallel_for(shards, [&](int64_t shard) {
    run_shard(c, a, scratch + shard * a.buffers * kBlock * a.size, shard * kShard, std::min(a.elements, (shard + 1) * kShard));
  });
  return {};
}

Status chain_prepare(PrepareContext& c) {
  auto* a = c.args<ChainArgs>();
  const auto& names = c.attr<std::vector<std::string>>("ops");
  const auto& operands = c.attr<std::vector<int64_t>>("operands");
  if (names.size() > kSteps || c.num_inputs() > 16) return c.error("a chain of %zu steps is too long", names.size());
  size_t at = 0;
  for (const std::string& name : names) {
    const ElementRow* row = c.kernels().find_element(name, c.output(0).dtype);
    if (!row || row->arity > kOperandsMax || at + static_cast<size_t>(row->arity) > operands.size())
      return c.error("no element-wise %s", name.c_str());
    ChainStep& step = a->steps[a->count++];
    step.block = row->block;
    step.arity = row->arity;
    for (int k = 0; k < row->arity; ++k) step.operands[k] = static_cast<int>(operands[at++]);
  }
  a->inputs = c.num_inputs();
  a->elements = c.output(0).shape.count();
  a->size = dtype_size(c.output(0).dtype);
  a->buffers = a->count;
  for (int i = 0; i < a->inputs; ++i) {
    a->scalar[i] = c.input(i).shape.count() == 1 && a->elements != 1;
    a->buffers += a->scalar[i] ? 1 : 0;
    if (!a->scalar[i]) c.may_overwrite(i, 0);
  }
  const int64_t shards = (a->elements + kShard - 1) / kShard;
  c.workspace(shards * a->buffers * kBlock * a->size);
  return c.sync(chain_run);
}

}  // namespace

void register_chain(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("_ElementChain")
              .input("inputs: N * T")
              .output("y: T")
              .attr("ops: list(string) >= 1")
              .attr("operands: list(int) >= 1")
              .attr("N: int >= 1")
              .attr("T: type")
              .shape(chain_shape)
              .no_gradient()
              .doc("Element-wise ops in one pass; made by the planner."));
  kernels.add({.op = "_ElementChain", .prepare = chain_prepare});
}

}  // namespace dtg::ops
