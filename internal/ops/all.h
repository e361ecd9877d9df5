// The op families by name. The runtime calls register_all once; there is no other registration.
#pragma once

#include "exec/kernel.h"
#include "graph/op_def.h"

namespace dtg::ops {

// Fills both tables with everything this library knows.
void register_all(OpTable& ops, KernelTable& kernels);

// One function per family file.
void register_graph(OpTable& ops, KernelTable& kernels);            // Placeholder Const Identity NoOp ...
void register_loss_check(OpTable& ops, KernelTable& kernels);       // _CheckFinite _LossVerdict _PoisonQueue _CheckToken
void register_control(OpTable& ops, KernelTable& kernels);          // If While Case PartitionedCall
void register_list(OpTable& ops, KernelTable& kernels);             // TensorListReserve ...
void register_chain(OpTable& ops, KernelTable& kernels);            // _ElementChain
void register_unary(OpTable& ops, KernelTable& kernels);            // Neg Exp Relu ... and their gradients
void register_binary(OpTable& ops, KernelTable& kernels);           // AddV2 Mul Maximum ... AddN
void register_compare(OpTable& ops, KernelTable& kernels);          // Equal Less ... LogicalAnd, SelectV2
void register_cast(OpTable& ops, KernelTable& kernels);             // Cast
void register_reduce(OpTable& ops, KernelTable& kernels);           // Sum Mean Max ArgMax ...
void register_shape(OpTable& ops, KernelTable& kernels);            // Reshape Shape ExpandDims Squeeze ...
void register_array(OpTable& ops, KernelTable& kernels);            // Fill ZerosLike Range Tile Pad BroadcastTo ...
void register_concat(OpTable& ops, KernelTable& kernels);           // ConcatV2 Split Pack Unpack
void register_slice(OpTable& ops, KernelTable& kernels);            // Slice StridedSlice Transpose
void register_gather(OpTable& ops, KernelTable& kernels);           // GatherV2 Where Unique UnsortedSegmentSum
void register_matmul(OpTable& ops, KernelTable& kernels);           // MatMul BatchMatMulV2
void register_bias(OpTable& ops, KernelTable& kernels);             // BiasAdd BiasAddGrad
void register_conv(OpTable& ops, KernelTable& kernels);             // Conv2D and its backprops
void register_pool(OpTable& ops, KernelTable& kernels);             // MaxPool AvgPool and gradients
void register_softmax(OpTable& ops, KernelTable& kernels);          // Softmax LogSoftmax and the losses
void register_norm(OpTable& ops, KernelTable& kernels);             // FusedBatchNorm LRN and gradients
void register_image(OpTable& ops, KernelTable& kernels);            // resizing, blocks to batch and depth, mirrored borders, patches
void register_rnn(OpTable& ops, KernelTable& kernels);              // LSTM and GRU cells
void register_random(OpTable& ops, KernelTable& kernels);           // StatelessRandom...V2
void register_variable(OpTable& ops, KernelTable& kernels);         // the resource variable ops, gather, scatter
void register_optimizer(OpTable& ops, KernelTable& kernels);        // ResourceApply...
void register_queue(OpTable& ops, KernelTable& kernels);            // FIFOQueueV2 family
void register_accumulator(OpTable& ops, KernelTable& kernels);      // dense and sparse conditional accumulators
void register_collective(OpTable& ops, KernelTable& kernels);       // CollectiveReduceV2 ... CollectiveBarrier
void register_sendrecv(OpTable& ops, KernelTable& kernels);         // _Send _Recv _Join
void register_copy(OpTable& ops, KernelTable& kernels);             // _Copy
void register_commit(OpTable& ops, KernelTable& kernels);           // _Commit _Committed
void register_stack(OpTable& ops, KernelTable& kernels);            // StackV2 StackPushV2 StackPopV2 StackCloseV2
void register_tensor_array(OpTable& ops, KernelTable& kernels);     // TensorArrayV3 TensorArrayWriteV3 ...
void register_table(OpTable& ops, KernelTable& kernels);            // HashTableV2 MutableHashTableV2 ... LookupTable...
void register_sparse_layout(OpTable& ops, KernelTable& kernels);    // SparseReorder SparseReshape SparseFillEmptyRows
void register_sparse_dense(OpTable& ops, KernelTable& kernels);     // SparseToDense SparseTensorDenseMatMul
void register_sparse_segment(OpTable& ops, KernelTable& kernels);   // SparseSegmentSum and its kin
void register_strings(OpTable& ops, KernelTable& kernels);          // StringLength StringLower Substr ...
void register_partition(OpTable& ops, KernelTable& kernels);        // DynamicPartition DynamicStitch
void register_top_k(OpTable& ops, KernelTable& kernels);            // TopKV2 NthElement InTopKV2
void register_search(OpTable& ops, KernelTable& kernels);           // LowerBound UpperBound Bucketize
void register_bincount(OpTable& ops, KernelTable& kernels);         // Bincount DenseBincount HistogramFixedWidth
void register_special(OpTable& ops, KernelTable& kernels);          // Lgamma Igamma BesselI0e ...
void register_sequence(OpTable& ops, KernelTable& kernels);         // ReverseSequence Roll
void register_bits(OpTable& ops, KernelTable& kernels);             // Bitcast Snapshot Empty PopulationCount ...
void register_checks(OpTable& ops, KernelTable& kernels);           // CheckNumerics Assert
void register_small_math(OpTable& ops, KernelTable& kernels);       // ClipByValue Cross LinSpace ...
void register_diag(OpTable& ops, KernelTable& kernels);             // MatrixDiagV3 MatrixBandPart ...
void register_linalg(OpTable& ops, KernelTable& kernels);           // Cholesky Qr Svd MatrixSolve ...
void register_einsum(OpTable& ops, KernelTable& kernels);           // Einsum
void register_fake_quant(OpTable& ops, KernelTable& kernels);       // FakeQuantWithMinMaxVars ...
void register_random_stateful(OpTable& ops, KernelTable& kernels);  // RandomUniform RandomShuffle Multinomial ...
void register_sampler(OpTable& ops, KernelTable& kernels);          // UniformCandidateSampler ...

// Second files of the families above, called by them.
void register_pad_tile(OpTable& ops, KernelTable& kernels);        // by register_array: Tile Pad BroadcastTo
void register_transpose(OpTable& ops, KernelTable& kernels);       // by register_slice: Transpose ReverseV2
void register_gather_nd(OpTable& ops, KernelTable& kernels);       // by register_gather: GatherNd ScatterNd
void register_segment(OpTable& ops, KernelTable& kernels);         // by register_gather: UnsortedSegmentSum
void register_unique(OpTable& ops, KernelTable& kernels);          // by register_gather: Unique Where
void register_conv3d(OpTable& ops, KernelTable& kernels);          // by register_conv: Conv3D and its backprops
void register_dilation(OpTable& ops, KernelTable& kernels);        // by register_conv: Dilation2D and its backprops
void register_pool_places(OpTable& ops, KernelTable& kernels);     // by register_pool: MaxPoolWithArgmax and gradients
void register_pool3d(OpTable& ops, KernelTable& kernels);          // by register_pool: MaxPool3D AvgPool3D and gradients
void register_batch_norm(OpTable& ops, KernelTable& kernels);      // by register_norm: FusedBatchNorm V1 to V3
void register_resize(OpTable& ops, KernelTable& kernels);          // by register_image: ResizeBilinear ResizeNearestNeighbor
void register_bicubic(OpTable& ops, KernelTable& kernels);         // by register_image: ResizeBicubic
void register_crop(OpTable& ops, KernelTable& kernels);            // by register_image: CropAndResize
void register_space(OpTable& ops, KernelTable& kernels);           // by register_image: SpaceToDepth SpaceToBatchND DataFormat...
void register_mirror_pad(OpTable& ops, KernelTable& kernels);      // by register_image: MirrorPad
void register_patches(OpTable& ops, KernelTable& kernels);         // by register_image: ExtractImagePatches
void register_lstm(OpTable& ops, KernelTable& kernels);            // by register_rnn: LSTMBlockCell BlockLSTM
void register_gru(OpTable& ops, KernelTable& kernels);             // by register_rnn: GRUBlockCell
void register_string_join(OpTable& ops, KernelTable& kernels);     // by register_strings: StringJoin StringSplitV2
void register_string_numbers(OpTable& ops, KernelTable& kernels);  // by register_strings: AsString StringToNumber
void register_string_hash(OpTable& ops, KernelTable& kernels);     // by register_strings: StringToHashBucket...
void register_string_codes(OpTable& ops, KernelTable& kernels);    // by register_strings: base64 DecodeRaw _PackStrings
void register_unique_slices(OpTable& ops, KernelTable& kernels);   // by register_gather: UniqueV2 ListDiff
void register_tensor_scatter(OpTable& ops, KernelTable& kernels);  // by register_gather: TensorScatterUpdate ...
void register_strided_assign(OpTable& ops, KernelTable& kernels);  // by register_slice: TensorStridedSliceUpdate ...

}  // namespace dtg::ops
