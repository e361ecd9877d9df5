// Fusion rules: patterns of nodes that one kernel does in one pass. Declared by the op at the end of the pattern; called by the
// planner's fuse pass, one thread. Chains of element-wise ops are found by the pass itself, from the kernel table.
#pragma once

#include "graph/rewriter.h"

namespace dtg::ops {

bool fuse_bias_add(Rewriter& r, uint32_t n);   // BiasAdd(MatMul or Conv2D)
bool fuse_relu(Rewriter& r, uint32_t n);       // Relu(BiasAdd(MatMul or Conv2D))
bool fuse_relu_grad(Rewriter& r, uint32_t n);  // ReluGrad(MaxPoolGrad)
bool fuse_reduction(Rewriter& r, uint32_t n);  // Sum, Mean or Max of a chain

}  // namespace dtg::ops
