// Several block functions after one another over blocks that stay in the first-level cache. A ChainLoop walks the elements of
// one shape, its iteration space, in the order they have in memory; inputs that are smaller are broadcast to it by NumPy's
// rules. What a block function cannot read where it lies (a column, a row that ends inside the block) is staged: spread or
// repeated into scratch, so that all block functions see dense operands. Results of steps live in registers, blocks of scratch
// that are given to another step when their last reader has run.
//
// A ChainLoop belongs to a plan and is read-only while it runs. A ChainLane is one thread's walk: it owns its scratch for as
// long as it lives and remembers what it has staged, which the next block often needs again.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/size.h"
#include "device/cpu/elementwise.h"

namespace dtg::cpu {

inline constexpr int kChainSteps = 64;
inline constexpr int kChainInputs = 32;
inline constexpr int64_t kChainBlock = 1024;  // elements

struct ChainInput {
  enum class Kind : uint8_t {
    dense,   // as large as the iteration space
    scalar,  // one element
    spread,  // anything between
  };
  Kind kind = Kind::dense;
  int64_t size = 0;                         // bytes of an element
  int64_t stage = -1;                       // block of scratch, or -1
  bool rows_alike = false;                  // every row sees the same elements
  std::array<int64_t, kRankMax> strides{};  // in elements, over the collapsed dimensions; 0 = broadcast
};

struct ChainStep {
  BlockFn block = nullptr;
  int arity = 0;
  // An input, or -1 - a register.
  std::array<int, kElementOperands> operands{};
  int out = -1;  // a register; the last step writes to where the caller says
};

struct ChainLoop {
  // As many as there are, in memory of the plan: thousands of short chains must not cost as much as thousands of long ones.
  std::span<ChainInput> inputs;
  std::span<ChainStep> steps;
  int input_count = 0, step_count = 0;
  int rank = 0;
  std::array<int64_t, kRankMax> dims{};  // collapsed
  int64_t inner = 1;                     // elements of a row, the innermost of them
  int64_t count = 0;                     // elements
  int64_t blocks = 0;                    // of scratch, of block_bytes each
  int64_t block_bytes = 0;
  Bytes lane_bytes() const { return Bytes::of(blocks, block_bytes); }
};

// Inputs and iteration space; `shapes` broadcast to `space`.
void plan_chain_inputs(ChainLoop& loop, std::span<const Shape> shapes, std::span<const int64_t> sizes, const Shape& space);
// Registers and scratch, once inputs and steps are known. Of the steps block, arity and operands are given, an operand as an
// input or -1 - an earlier step; `sizes` are the bytes of a step's elements.
void plan_chain_registers(ChainLoop& loop, std::span<const int64_t> sizes);

class ChainLane {
 public:
  // `scratch`: loop.lane_bytes() of memory aligned to 64. `in`: where the inputs are.
  ChainLane(const ChainLoop& loop, const void* const* in, char* scratch);
  // Elements [from, from + n) of the result to `to`, which may lie exactly over those of a dense input of the same size.
  void compute(int64_t from, int64_t n, char* to, int64_t to_size);

 private:
  int64_t block_at(int64_t from, int64_t n) const;
  const char* operand(int input, int64_t from, int64_t n);
  const char* staged(int input, int64_t from, int64_t n);
  int64_t row_offset(const ChainInput& input, int64_t row) const;
  template <class W>
  void gather(const ChainInput& input, const W* base, W* to, int64_t from, int64_t n) const;
  char* block(int64_t number) const { return scratch_ + number * loop_.block_bytes; }

  const ChainLoop& loop_;
  const void* const* const in_;
  char* const scratch_;
  // Of each staged input: which row offset and place in the row its block begins with, and how many elements it has.
  struct Stage {
    int64_t offset = -1, phase = 0, count = 0;
  };
  std::array<Stage, kChainInputs> stages_;
};

}  // namespace dtg::cpu
