// _ElementChain: several element-wise ops in one pass, and a reduction that may close it. The planner makes it; nobody names it
// in a graph. Its results have the bits of the ops run one after the other.
//
//   ops       the element-wise ops in the order they run; the last one's result is the chain's
//   types     the type of each one's result
//   operands  for each of them its operands in order, an input's number or -1 - number of an earlier op
//   reduce    closes the chain over `axes` (non-negative, of the shape the inputs broadcast to), with or without keep_dims
//
// Inputs have types and shapes of their own and broadcast by NumPy's rules.
#include "ops/chain.h"

#include <algorithm>
#include <memory>

#include "device/cpu/reduce.h"
#include "exec/kernel.h"
#include "graph/infer.h"
#include "ops/all.h"

namespace dtg::ops {
namespace {

constexpr int64_t kLaneElements = 65536;  // what is worth waking a thread for
constexpr int64_t kLanesMax = 64;

struct ChainArgs {
  cpu::ChainLoop loop;
  int64_t out_size = 0;
  int64_t lanes = 1;       // parts of the work, each with scratch of its own
  int64_t lane_bytes = 0;  // scratch of a lane
  // Where a reduction closes the chain.
  const cpu::TileReduce* tiles = nullptr;
  cpu::ReducePlan reduction;
  int64_t tile_bytes = 0;  // at the end of a lane's scratch
  int64_t together = 1;    // units computed at a time, where one is short
};

// ---- shape -------------------------------------------------------------------------------------------------

Result<uint32_t> axes_mask(const Node& node, int rank) {
  uint32_t mask = 0;
  for (int64_t axis : node.attr<std::vector<int64_t>>("axes")) {
    if (axis < 0 || axis >= rank) return invalid_argument("axis %lld of a chain of rank %d", static_cast<long long>(axis), rank);
    mask |= 1u << axis;
  }
  return mask;
}

Status chain_shape(InferContext& c) {
  PartialShape shape = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    auto both = broadcast_shapes(shape, c.input(i));
    if (!both.ok()) return c.error("%s", both.status().message().c_str());
    shape = both.take();
  }
  if (c.attr<std::string>("reduce").empty()) {
    c.output(0, shape);
    return {};
  }
  if (!shape.has_rank()) return {};
  const auto mask = axes_mask(c.node(), shape.rank());
  if (!mask.ok()) return c.error("%s", mask.status().message().c_str());
  PartialShape out = PartialShape::scalar();
  for (int d = 0; d < shape.rank(); ++d) {
    const bool reduced = (mask.value() >> d & 1u) != 0;
    if (!reduced) DTG_TRY(out.append(shape.dim(d)));
    else if (c.attr<bool>("keep_dims")) DTG_TRY(out.append(1));
  }
  c.output(0, out);
  return {};
}

// ---- run ---------------------------------------------------------------------------------------------------

// Calls fn(lane, from, to) for every lane, with its share of `count` units of work.
template <class Fn>
void for_lanes(const RunContext& c, const ChainArgs& a, int64_t count, Fn fn) {
  const void* in[cpu::kChainInputs];
  for (int i = 0; i < a.loop.input_count; ++i) in[i] = c.in<void>(i);
  char* const scratch = c.workspace();
  c.pool().parallel_for(a.lanes, [&](int64_t lane) {
    char* const own = scratch ? scratch + lane * a.lane_bytes : nullptr;
    cpu::ChainLane walk(a.loop, in, own);
    fn(walk, own, count / a.lanes * lane + std::min(count % a.lanes, lane),
       count / a.lanes * (lane + 1) + std::min(count % a.lanes, lane + 1));
  });
}

Status chain_run(RunContext& c) {
  const auto& a = c.args<ChainArgs>();
  // Lanes begin where blocks begin.
  const int64_t blocks = (a.loop.count + cpu::kChainBlock - 1) / cpu::kChainBlock;
  char* const out = c.out<char>(0);
  for_lanes(c, a, blocks, [&](cpu::ChainLane& walk, char*, int64_t from, int64_t to) {
    const int64_t begin = from * cpu::kChainBlock, end = std::min(a.loop.count, to * cpu::kChainBlock);
    walk.compute(begin, end - begin, out + begin * a.out_size, a.out_size);
  });
  return {};
}

// Units [from, to) of the pass, as run_reduce cuts it, each from a tile that is computed first.
void reduce_units(const ChainArgs& a, cpu::ChainLane& walk, char* tile, int64_t from, int64_t to, char* parts) {
  const cpu::ReducePass& pass = a.reduction.passes[0];
  const int64_t size = a.tiles->size;
  for (int64_t u = from; u < to;) {
    const int64_t column = u % pass.tiles * cpu::kReduceTile, piece = u / pass.tiles % pass.pieces, row = u / pass.tiles / pass.pieces;
    const int64_t first = piece * pass.rows, rows = std::min(pass.rows, pass.r - first);
    const int64_t width = std::min(cpu::kReduceTile, pass.b - column), begin = (row * pass.r + first) * pass.b + column;
    char* const result = parts + ((row * pass.pieces + piece) * pass.b + column) * size;
    if (pass.tiles > 1) {
      for (int64_t i = 0; i < rows; ++i) walk.compute(begin + i * pass.b, width, tile + i * width * size, size);
      a.tiles->tile(pass, tile, rows, width, result);
      ++u;
      continue;
    }
    const int64_t units = std::min(a.together, to - u), elements = rows * width;
    walk.compute(begin, units * elements, tile, size);
    for (int64_t k = 0; k < units; ++k) a.tiles->tile(pass, tile + k * elements * size, rows, width, result + k * width * size);
    u += units;
  }
}

Status reduced_run(RunContext& c) {
  const auto& a = c.args<ChainArgs>();
  const cpu::ReducePass& pass = a.reduction.passes[0];
  char* const out = c.out<char>(0);
  char* const parts = pass.pieces > 1 ? c.workspace() + a.lanes * a.lane_bytes : out;
  for_lanes(c, a, pass.a * pass.pieces * pass.tiles, [&](cpu::ChainLane& walk, char* own, int64_t from, int64_t to) {
    reduce_units(a, walk, own + a.lane_bytes - a.tile_bytes, from, to, parts);
  });
  if (pass.pieces > 1) {
    c.pool().parallel_for(pass.a * pass.tiles, [&](int64_t i) {
      const int64_t column = i % pass.tiles * cpu::kReduceTile, row = i / pass.tiles;
      a.tiles->join(pass, parts + (row * pass.pieces * pass.b + column) * a.tiles->size, std::min(cpu::kReduceTile, pass.b - column),
                    out + (row * pass.b + column) * a.tiles->size);
    });
  }
  if (a.reduction.reduction == cpu::Reduction::mean) cpu::finish_mean(a.reduction, out);
  return {};
}

// ---- prepare -----------------------------------------------------------------------------------------------

Result<Shape> iteration_space(PrepareContext& c) {
  PartialShape space = c.input(0).shape;
  for (int i = 1; i < c.num_inputs(); ++i) {
    DTG_ASSIGN(space, broadcast_shapes(space, c.input(i).shape));
  }
  return space.to_shape();
}

template <class T>
std::span<T> fresh(Arena& arena, size_t count) {
  T* const at = static_cast<T*>(arena.allocate(count * sizeof(T), alignof(T)));
  std::uninitialized_value_construct_n(at, count);
  return {at, count};
}

// The steps from the attributes; `sizes` become the bytes of their elements.
Status read_steps(PrepareContext& c, cpu::ChainLoop& loop, std::vector<int64_t>& sizes) {
  const auto& names = c.attr<std::vector<std::string>>("ops");
  const auto& types = c.attr<std::vector<DType>>("types");
  const auto& operands = c.attr<std::vector<int64_t>>("operands");
  if (names.size() > static_cast<size_t>(kChainStepsMax)) return c.error("%zu ops are too many; at most %d", names.size(), kChainStepsMax);
  loop.steps = fresh<cpu::ChainStep>(c.arena(), names.size());
  sizes.reserve(names.size());
  if (types.size() != names.size()) return c.error("%zu ops, but %zu types", names.size(), types.size());
  size_t at = 0;
  for (size_t s = 0; s < names.size(); ++s) {
    // How many operands an op has depends on the op alone.
    const int arity = c.kernels().element_arity(names[s]);
    if (arity <= 0 || arity > cpu::kElementOperands || at + static_cast<size_t>(arity) > operands.size())
      return c.error("op %zu: no element-wise %s with the operands left", s, names[s].c_str());
    cpu::ChainStep& step = loop.steps[s];
    step.arity = arity;
    DType in[cpu::kElementOperands] = {};
    for (size_t k = 0; k < static_cast<size_t>(arity); ++k, ++at) {
      const int64_t operand = operands[at];
      if (operand >= c.num_inputs() || operand < -static_cast<int64_t>(s))
        return c.error("operand %zu of op %zu: there is no %lld", k, s, static_cast<long long>(operand));
      step.operands[k] = static_cast<int>(operand);
      in[k] = operand >= 0 ? c.input(step.operands[k]).dtype : types[static_cast<size_t>(-1 - operand)];
    }
    const ElementRow* row = c.kernels().find_element(names[s], {in, static_cast<size_t>(arity)}, types[s]);
    if (!row) return c.error("op %zu: no element-wise %s from %s to %s", s, names[s].c_str(), dtype_name(in[0]), dtype_name(types[s]));
    step.block = row->block;
    sizes.push_back(dtype_size(types[s]));
  }
  loop.step_count = static_cast<int>(names.size());
  if (at != operands.size()) return c.error("%zu operands, but the ops take %zu", operands.size(), at);
  if (types.back() != c.output(0).dtype)
    return c.error("the chain ends in %s, the output is %s", dtype_name(types.back()), dtype_name(c.output(0).dtype));
  return {};
}

cpu::Reduction reduction_of(std::string_view word) {
  return word == "Max" ? cpu::Reduction::max : word == "Mean" ? cpu::Reduction::mean : cpu::Reduction::sum;
}

int64_t lanes_for(int64_t elements, int64_t units) {
  return std::clamp<int64_t>(elements / kLaneElements, 1, std::clamp<int64_t>(units, 1, kLanesMax));
}

Status reduced_prepare(PrepareContext& c, ChainArgs& a, const Shape& space) {
  const std::string& word = c.attr<std::string>("reduce");
  const DType dtype = c.output(0).dtype;
  DTG_ASSIGN(const uint32_t axes, axes_mask(c.node(), space.rank()));
  if (!chain_can_reduce(word, dtype, space, axes))
    return c.error("%s of %s over axes %#x of %s cannot close a chain", word.c_str(), dtype_name(dtype), axes, space.text().c_str());
  a.reduction = cpu::plan_reduce(reduction_of(word), dtype, space, axes);
  a.tiles = cpu::find_tile(a.reduction.reduction, dtype);
  const cpu::ReducePass& pass = a.reduction.passes[0];
  const int64_t unit = pass.rows * std::min(pass.b, cpu::kReduceTile);
  if (pass.pieces == 1 && pass.tiles == 1) a.together = std::max<int64_t>(1, cpu::kChainBlock / unit);
  a.tile_bytes = Bytes::of(unit * a.together, a.out_size).aligned(64).value();
  a.lanes = lanes_for(a.loop.count, pass.a * pass.pieces * pass.tiles);
  const Bytes lane = a.loop.lane_bytes() + Bytes(a.tile_bytes);
  a.lane_bytes = lane.value();
  c.workspace(lane * a.lanes + Bytes(a.reduction.parts_bytes));
  return c.sync(reduced_run);
}

Status chain_prepare(PrepareContext& c) {
  auto& a = *c.args<ChainArgs>();
  if (c.num_inputs() > kChainInputsMax) return c.error("%d inputs are too many; at most %d", c.num_inputs(), kChainInputsMax);
  DTG_ASSIGN(const Shape space, iteration_space(c));
  std::vector<Shape> shapes;
  std::vector<int64_t> input_sizes, step_sizes;
  a.loop.inputs = fresh<cpu::ChainInput>(c.arena(), static_cast<size_t>(c.num_inputs()));
  shapes.reserve(static_cast<size_t>(c.num_inputs()));
  input_sizes.reserve(static_cast<size_t>(c.num_inputs()));
  for (int i = 0; i < c.num_inputs(); ++i) {
    shapes.push_back(c.input(i).shape);
    input_sizes.push_back(dtype_size(c.input(i).dtype));
  }
  cpu::plan_chain_inputs(a.loop, shapes, input_sizes, space);
  DTG_TRY(read_steps(c, a.loop, step_sizes));
  cpu::plan_chain_registers(a.loop, step_sizes);
  a.out_size = dtype_size(c.output(0).dtype);
  if (!c.attr<std::string>("reduce").empty()) return reduced_prepare(c, a, space);
  // A block is written when all that reads it has run.
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.input(i).shape == space && input_sizes[static_cast<size_t>(i)] == a.out_size) c.may_overwrite(i, 0);
  }
  a.lanes = lanes_for(a.loop.count, kLanesMax);
  a.lane_bytes = a.loop.lane_bytes().value();
  c.workspace(a.loop.lane_bytes() * a.lanes);
  return c.sync(chain_run);
}

}  // namespace

bool chain_can_reduce(std::string_view reduction, DType dtype, const Shape& space, uint32_t axes) {
  if (reduction != "Sum" && reduction != "Mean" && reduction != "Max") return false;
  if (space.count() == 0 || !cpu::find_tile(reduction_of(reduction), dtype)) return false;
  return cpu::plan_reduce(reduction_of(reduction), dtype, space, axes).count == 1;
}

void register_chain(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("_ElementChain")
              .input("inputs: Tin")
              .output("y: T")
              .attr("ops: list(string) >= 1")
              .attr("types: list(type) >= 1")
              .attr("operands: list(int) >= 1")
              .attr("reduce: {'', 'Sum', 'Mean', 'Max'} = ''")
              .attr("axes: list(int) = []")
              .attr("keep_dims: bool = false")
              .attr("Tin: list(type) >= 1")
              .attr("T: type")
              .role(Role::chain)
              .shape(chain_shape)
              .no_gradient()
              .doc("Element-wise ops in one pass; made by the planner."));
  kernels.add({.op = "_ElementChain", .prepare = chain_prepare});
}

}  // namespace dtg::ops
