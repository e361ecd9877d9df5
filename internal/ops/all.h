// The op families by name. The runtime calls register_all once; there is no other registration.
#pragma once

#include "exec/kernel.h"
#include "graph/op_def.h"

namespace dtg::ops {

// Fills both tables with everything this library knows.
void register_all(OpTable& ops, KernelTable& kernels);

// One function per family file.
void register_graph(OpTable& ops, KernelTable& kernels);        // Placeholder Const Identity NoOp ...
void register_chain(OpTable& ops, KernelTable& kernels);        // _ElementChain
void register_unary(OpTable& ops, KernelTable& kernels);        // Neg Exp Relu ... and their gradients
void register_binary(OpTable& ops, KernelTable& kernels);       // AddV2 Mul Maximum ... AddN
void register_compare(OpTable& ops, KernelTable& kernels);      // Equal Less ... LogicalAnd, SelectV2
void register_cast(OpTable& ops, KernelTable& kernels);         // Cast
void register_reduce(OpTable& ops, KernelTable& kernels);       // Sum Mean Max ArgMax ...
void register_shape(OpTable& ops, KernelTable& kernels);        // Reshape Shape ExpandDims Squeeze ...
void register_array(OpTable& ops, KernelTable& kernels);        // Fill ZerosLike Range Tile Pad BroadcastTo ...
void register_concat(OpTable& ops, KernelTable& kernels);       // ConcatV2 Split Pack Unpack
void register_slice(OpTable& ops, KernelTable& kernels);        // Slice StridedSlice Transpose
void register_gather(OpTable& ops, KernelTable& kernels);       // GatherV2 Where Unique UnsortedSegmentSum
void register_matmul(OpTable& ops, KernelTable& kernels);       // MatMul BatchMatMulV2
void register_bias(OpTable& ops, KernelTable& kernels);         // BiasAdd BiasAddGrad
void register_conv(OpTable& ops, KernelTable& kernels);         // Conv2D and its backprops
void register_pool(OpTable& ops, KernelTable& kernels);         // MaxPool AvgPool and gradients
void register_softmax(OpTable& ops, KernelTable& kernels);      // Softmax LogSoftmax and the losses
void register_random(OpTable& ops, KernelTable& kernels);       // StatelessRandom...V2
void register_variable(OpTable& ops, KernelTable& kernels);     // the resource variable ops, gather, scatter
void register_optimizer(OpTable& ops, KernelTable& kernels);    // ResourceApply...
void register_queue(OpTable& ops, KernelTable& kernels);        // FIFOQueueV2 family
void register_accumulator(OpTable& ops, KernelTable& kernels);  // dense and sparse conditional accumulators
void register_sendrecv(OpTable& ops, KernelTable& kernels);     // _Send _Recv _Join
void register_commit(OpTable& ops, KernelTable& kernels);       // _Commit _Committed

// Second files of the families above, called by them.
void register_pad_tile(OpTable& ops, KernelTable& kernels);   // by register_array: Tile Pad BroadcastTo
void register_transpose(OpTable& ops, KernelTable& kernels);  // by register_slice: Transpose ReverseV2
void register_gather_nd(OpTable& ops, KernelTable& kernels);  // by register_gather: GatherNd ScatterNd
void register_segment(OpTable& ops, KernelTable& kernels);    // by register_gather: UnsortedSegmentSum
void register_unique(OpTable& ops, KernelTable& kernels);     // by register_gather: Unique Where

}  // namespace dtg::ops
