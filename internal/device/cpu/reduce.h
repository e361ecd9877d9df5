// Reductions over any set of dimensions. The shape is first brought to groups that are alternately kept and
// reduced; then one pass per reduced group, the innermost first, turns [a, r, b] into [a, b]. A pass cuts
// its work into pieces whose boundaries depend on the shape alone, and joins their results pairwise, so
// that sums are both accurate and the same for any number of threads.
//
// A ReducePlan belongs to a prepared kernel, or lives on the stack of one call; it owns no memory.
#pragma once

#include <array>
#include <cstdint>

#include "base/pool.h"
#include "base/size.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace dtg::cpu {

enum class Reduction : uint8_t { sum, mean, prod, max, min, all, any };

// [a, r, b] -> [a, b].
struct ReducePass {
  int64_t a = 1, r = 1, b = 1;
  int64_t rows = 1;    // of r, in one piece
  int64_t pieces = 1;  // of r
  int64_t tiles = 1;   // of b
  int64_t units_per_shard = 1;
};
using PassFn = void (*)(const ReducePass& pass, Pool& pool, const void* in, void* out, void* scratch);

struct ReducePlan {
  std::array<ReducePass, (kRankMax + 1) / 2> passes;
  int count = 0;           // passes
  PassFn first = nullptr;  // from the input's type to the accumulator's
  PassFn next = nullptr;   // between accumulators
  Reduction reduction = Reduction::sum;
  DType dtype = DType::invalid;
  int64_t outputs = 0;       // elements of the output
  int64_t reduced = 1;       // elements that make one
  int64_t middle_bytes = 0;  // workspace: two areas for what passes hand on, ...
  int64_t parts_bytes = 0;   // ... and one for the results of pieces
  Bytes workspace() const { return Bytes(middle_bytes) * 2 + Bytes(parts_bytes); }
};

// The types that a reduction handles.
DTypeSet reducible_types(Reduction reduction);
// Bit d of `axes` is set where dimension d is reduced. The dtype must be one of reducible_types.
ReducePlan plan_reduce(Reduction reduction, DType dtype, const Shape& in, uint32_t axes);
// `workspace` has plan.workspace(). The output is dense, of the input's type.
void run_reduce(const ReducePlan& plan, Pool& pool, const void* in, void* out, void* workspace);

// A pass of one's own over values that are made tile by tile, with the same bits as run_reduce over the values: `tile` joins a
// dense tile of `rows` rows of `width`; `join` joins one tile's pieces, `parts` being the first, when there are several.
struct TileReduce {
  int64_t size;  // bytes of an element
  void (*tile)(const ReducePass& pass, const void* tile, int64_t rows, int64_t width, void* to);
  void (*join)(const ReducePass& pass, void* parts, int64_t width, void* out);
};
inline constexpr int64_t kReduceTile = 2048;  // columns in a tile
// Null for reductions and types that have no such form: what is accumulated in another type, products, all and any.
const TileReduce* find_tile(Reduction reduction, DType dtype);
// The division that ends a mean.
void finish_mean(const ReducePlan& plan, void* out);

// The function behind a pass; null where there is none. Filled by reduce_passes.cc.
PassFn find_pass(Reduction reduction, DType dtype);

// Vector forms, chosen at run time. `run` reduces n contiguous elements; `rows` reduces `rows` rows of
// `width` that lie `stride` apart; `out` may be the first of them.
template <class T>
struct ReduceSimd {
  T (*run)(const T* in, int64_t n);
  void (*rows)(const T* in, int64_t rows, int64_t width, int64_t stride, T* out);
};
// By Reduction: sum, max and min only.
const ReduceSimd<float>& reduce_simd_f32(Reduction reduction);
const ReduceSimd<double>& reduce_simd_f64(Reduction reduction);

}  // namespace dtg::cpu
