// What the planner must know of _ElementChain to emit one: how long a chain may be, how many inputs it may have, and which
// reductions may close it. Pure functions; any thread.
#pragma once

#include <string_view>

#include "device/cpu/chain.h"
#include "tensor/dtype.h"

namespace dtg::ops {

inline constexpr int kChainStepsMax = cpu::kChainSteps;
inline constexpr int kChainInputsMax = cpu::kChainInputs;

// May a chain over `space` that ends in `dtype` be closed by `reduction` ("Sum", "Mean" or "Max") over the dimensions whose bits
// are set in `axes`? Then the result has the bits of that op on the chain's values. What is reduced must be neighbouring
// dimensions (those of size 1 aside), and there must be something to reduce.
bool chain_can_reduce(std::string_view reduction, DType dtype, const Shape& space, uint32_t axes);

}  // namespace dtg::ops
