// What the element-wise families share: one prepare and one run for every op that has block functions, and
// the kernel rows made from the tables of those functions. Prepared loops are read-only.
#pragma once

#include "device/cpu/elementwise.h"
#include "exec/kernel.h"

namespace dtg::ops {

// Plans the loop for the node's op, by the type of its last input; the output may lie over an input of the
// same size. The output's shape must be what the inputs broadcast to.
Status element_prepare(PrepareContext& c);
Status element_run(RunContext& c);
// For those who do more than that in their own run: the loop alone.
Result<cpu::ElementLoop> element_loop(PrepareContext& c);
struct ElementArgs {
  cpu::ElementLoop loop;
  // For ops that look at their input 1 before they run: its elements, and whether one is not allowed.
  int64_t checked = 0;
  bool (*refused)(const void* data, int64_t n) = nullptr;
};

// How an op takes part in fused chains: what its result is, from operands of a type T.
enum class Fusing : uint8_t {
  none,     // it does not
  keeps,    // T
  floats,   // T, and only where that is a floating-point type: of integers it refuses some values
  asks,     // bool
  chooses,  // T, of a bool and two T
};

// Kernel rows for `op` from the block tables: its attribute T (`type_attr` null: none) may be any type that
// has a block. With them the rows for fusion.
void add_element_kernels(KernelTable& kernels, const char* op, PrepareFn prepare = element_prepare, const char* type_attr = "T",
                         Fusing fusing = Fusing::keeps);

}  // namespace dtg::ops
