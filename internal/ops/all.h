// The op families by name. The runtime calls register_all once; there is no other registration.
#pragma once

#include "exec/kernel.h"
#include "graph/op_def.h"

namespace dtg::ops {

// Fills both tables with everything this library knows.
[[gnu::cold]] void register_all(OpTable& ops, KernelTable& kernels);

// One function per family file. Cold: they run once, and would be a fortieth of the library if they were made for speed.
[[gnu::cold]] void register_graph(OpTable& ops, KernelTable& kernels);       // Placeholder Const Identity NoOp ...
[[gnu::cold]] void register_loss_check(OpTable& ops, KernelTable& kernels);  // _CheckFinite _LossVerdict _PoisonQueue _CheckToken
[[gnu::cold]] void register_remedy(OpTable& ops, KernelTable& kernels);      // _Remedy
[[gnu::cold]] void register_control(OpTable& ops, KernelTable& kernels);     // If While Case PartitionedCall
[[gnu::cold]] void register_list(OpTable& ops, KernelTable& kernels);        // TensorListReserve ...
[[gnu::cold]] void register_chain(OpTable& ops, KernelTable& kernels);       // _ElementChain
[[gnu::cold]] void register_unary(OpTable& ops, KernelTable& kernels);       // Neg Exp Relu ... and their gradients
[[gnu::cold]] void register_binary(OpTable& ops, KernelTable& kernels);      // AddV2 Mul Maximum ... AddN
[[gnu::cold]] void register_compare(OpTable& ops, KernelTable& kernels);     // Equal Less ... LogicalAnd, SelectV2
[[gnu::cold]] void register_cast(OpTable& ops, KernelTable& kernels);        // Cast
[[gnu::cold]] void register_reduce(OpTable& ops, KernelTable& kernels);      // Sum Mean Max ArgMax ...
[[gnu::cold]] void register_shape(OpTable& ops, KernelTable& kernels);       // Reshape Shape ExpandDims Squeeze ...
[[gnu::cold]] void register_array(OpTable& ops, KernelTable& kernels);       // Fill ZerosLike Range Tile Pad BroadcastTo ...
[[gnu::cold]] void register_concat(OpTable& ops, KernelTable& kernels);      // ConcatV2 Split Pack Unpack
[[gnu::cold]] void register_slice(OpTable& ops, KernelTable& kernels);       // Slice StridedSlice Transpose
[[gnu::cold]] void register_gather(OpTable& ops, KernelTable& kernels);      // GatherV2 Where Unique UnsortedSegmentSum
[[gnu::cold]] void register_matmul(OpTable& ops, KernelTable& kernels);      // MatMul BatchMatMulV2
[[gnu::cold]] void register_bias(OpTable& ops, KernelTable& kernels);        // BiasAdd BiasAddGrad
[[gnu::cold]] void register_conv(OpTable& ops, KernelTable& kernels);        // Conv2D and its backprops
[[gnu::cold]] void register_pool(OpTable& ops, KernelTable& kernels);        // MaxPool AvgPool and gradients
[[gnu::cold]] void register_softmax(OpTable& ops, KernelTable& kernels);     // Softmax LogSoftmax and the losses
[[gnu::cold]] void register_attention(OpTable& ops, KernelTable& kernels);   // DotProductAttention
[[gnu::cold]] void register_norm(OpTable& ops, KernelTable& kernels);        // FusedBatchNorm LRN and gradients
[[gnu::cold]] void register_image(OpTable& ops, KernelTable& kernels);     // resizing, blocks to batch and depth, mirrored borders, patches
[[gnu::cold]] void register_rnn(OpTable& ops, KernelTable& kernels);       // LSTM and GRU cells
[[gnu::cold]] void register_random(OpTable& ops, KernelTable& kernels);    // StatelessRandom...V2
[[gnu::cold]] void register_variable(OpTable& ops, KernelTable& kernels);  // the resource variable ops, gather, scatter
[[gnu::cold]] void register_optimizer(OpTable& ops, KernelTable& kernels);        // ResourceApply...
[[gnu::cold]] void register_queue(OpTable& ops, KernelTable& kernels);            // FIFOQueueV2 family
[[gnu::cold]] void register_accumulator(OpTable& ops, KernelTable& kernels);      // dense and sparse conditional accumulators
[[gnu::cold]] void register_collective(OpTable& ops, KernelTable& kernels);       // CollectiveReduceV2 ... CollectiveBarrier
[[gnu::cold]] void register_sendrecv(OpTable& ops, KernelTable& kernels);         // _Send _Recv _Join
[[gnu::cold]] void register_copy(OpTable& ops, KernelTable& kernels);             // _Copy
[[gnu::cold]] void register_commit(OpTable& ops, KernelTable& kernels);           // _Commit _Committed
[[gnu::cold]] void register_stack(OpTable& ops, KernelTable& kernels);            // StackV2 StackPushV2 StackPopV2 StackCloseV2
[[gnu::cold]] void register_tensor_array(OpTable& ops, KernelTable& kernels);     // TensorArrayV3 TensorArrayWriteV3 ...
[[gnu::cold]] void register_table(OpTable& ops, KernelTable& kernels);            // HashTableV2 MutableHashTableV2 ... LookupTable...
[[gnu::cold]] void register_sparse_layout(OpTable& ops, KernelTable& kernels);    // SparseReorder SparseReshape SparseFillEmptyRows
[[gnu::cold]] void register_sparse_dense(OpTable& ops, KernelTable& kernels);     // SparseToDense SparseTensorDenseMatMul
[[gnu::cold]] void register_sparse_segment(OpTable& ops, KernelTable& kernels);   // SparseSegmentSum and its kin
[[gnu::cold]] void register_strings(OpTable& ops, KernelTable& kernels);          // StringLength StringLower Substr ...
[[gnu::cold]] void register_partition(OpTable& ops, KernelTable& kernels);        // DynamicPartition DynamicStitch
[[gnu::cold]] void register_top_k(OpTable& ops, KernelTable& kernels);            // TopKV2 NthElement InTopKV2
[[gnu::cold]] void register_search(OpTable& ops, KernelTable& kernels);           // LowerBound UpperBound Bucketize
[[gnu::cold]] void register_bincount(OpTable& ops, KernelTable& kernels);         // Bincount DenseBincount HistogramFixedWidth
[[gnu::cold]] void register_special(OpTable& ops, KernelTable& kernels);          // Lgamma Igamma BesselI0e ...
[[gnu::cold]] void register_sequence(OpTable& ops, KernelTable& kernels);         // ReverseSequence Roll
[[gnu::cold]] void register_bits(OpTable& ops, KernelTable& kernels);             // Bitcast Snapshot Empty PopulationCount ...
[[gnu::cold]] void register_checks(OpTable& ops, KernelTable& kernels);           // CheckNumerics Assert
[[gnu::cold]] void register_small_math(OpTable& ops, KernelTable& kernels);       // ClipByValue Cross LinSpace ...
[[gnu::cold]] void register_diag(OpTable& ops, KernelTable& kernels);             // MatrixDiagV3 MatrixBandPart ...
[[gnu::cold]] void register_linalg(OpTable& ops, KernelTable& kernels);           // Cholesky Qr Svd MatrixSolve ...
[[gnu::cold]] void register_einsum(OpTable& ops, KernelTable& kernels);           // Einsum
[[gnu::cold]] void register_quantize(OpTable& ops, KernelTable& kernels);         // QuantizeV2 Dequantize QuantizeAndDequantizeV2 ...
[[gnu::cold]] void register_sets(OpTable& ops, KernelTable& kernels);             // SetSize DenseToDenseSetOperation ...
[[gnu::cold]] void register_print(OpTable& ops, KernelTable& kernels);            // Print PrintV2 StringFormat
[[gnu::cold]] void register_fake_quant(OpTable& ops, KernelTable& kernels);       // FakeQuantWithMinMaxVars ...
[[gnu::cold]] void register_random_stateful(OpTable& ops, KernelTable& kernels);  // RandomUniform RandomShuffle Multinomial ...
[[gnu::cold]] void register_sampler(OpTable& ops, KernelTable& kernels);          // UniformCandidateSampler ...

// Second files of the families above, called by them.
[[gnu::cold]] void register_pad_tile(OpTable& ops, KernelTable& kernels);     // by register_array: Tile Pad BroadcastTo
[[gnu::cold]] void register_transpose(OpTable& ops, KernelTable& kernels);    // by register_slice: Transpose ReverseV2
[[gnu::cold]] void register_gather_nd(OpTable& ops, KernelTable& kernels);    // by register_gather: GatherNd ScatterNd
[[gnu::cold]] void register_segment(OpTable& ops, KernelTable& kernels);      // by register_gather: UnsortedSegmentSum
[[gnu::cold]] void register_unique(OpTable& ops, KernelTable& kernels);       // by register_gather: Unique Where
[[gnu::cold]] void register_conv3d(OpTable& ops, KernelTable& kernels);       // by register_conv: Conv3D and its backprops
[[gnu::cold]] void register_dilation(OpTable& ops, KernelTable& kernels);     // by register_conv: Dilation2D and its backprops
[[gnu::cold]] void register_pool_places(OpTable& ops, KernelTable& kernels);  // by register_pool: MaxPoolWithArgmax and gradients
[[gnu::cold]] void register_pool3d(OpTable& ops, KernelTable& kernels);       // by register_pool: MaxPool3D AvgPool3D and gradients
[[gnu::cold]] void register_batch_norm(OpTable& ops, KernelTable& kernels);   // by register_norm: FusedBatchNorm V1 to V3
[[gnu::cold]] void register_resize(OpTable& ops, KernelTable& kernels);       // by register_image: ResizeBilinear ResizeNearestNeighbor
[[gnu::cold]] void register_bicubic(OpTable& ops, KernelTable& kernels);      // by register_image: ResizeBicubic
[[gnu::cold]] void register_crop(OpTable& ops, KernelTable& kernels);         // by register_image: CropAndResize
[[gnu::cold]] void register_space(OpTable& ops, KernelTable& kernels);       // by register_image: SpaceToDepth SpaceToBatchND DataFormat...
[[gnu::cold]] void register_mirror_pad(OpTable& ops, KernelTable& kernels);  // by register_image: MirrorPad
[[gnu::cold]] void register_patches(OpTable& ops, KernelTable& kernels);     // by register_image: ExtractImagePatches
[[gnu::cold]] void register_lstm(OpTable& ops, KernelTable& kernels);        // by register_rnn: LSTMBlockCell BlockLSTM
[[gnu::cold]] void register_gru(OpTable& ops, KernelTable& kernels);         // by register_rnn: GRUBlockCell
[[gnu::cold]] void register_string_join(OpTable& ops, KernelTable& kernels);     // by register_strings: StringJoin StringSplitV2
[[gnu::cold]] void register_string_numbers(OpTable& ops, KernelTable& kernels);  // by register_strings: AsString StringToNumber
[[gnu::cold]] void register_string_hash(OpTable& ops, KernelTable& kernels);     // by register_strings: StringToHashBucket...
[[gnu::cold]] void register_string_codes(OpTable& ops, KernelTable& kernels);    // by register_strings: base64 DecodeRaw _PackStrings
[[gnu::cold]] void register_string_regex(OpTable& ops, KernelTable& kernels);    // by register_strings: RegexReplace RegexFullMatch
[[gnu::cold]] void register_unique_slices(OpTable& ops, KernelTable& kernels);   // by register_gather: UniqueV2 ListDiff
[[gnu::cold]] void register_tensor_scatter(OpTable& ops, KernelTable& kernels);  // by register_gather: TensorScatterUpdate ...
[[gnu::cold]] void register_strided_assign(OpTable& ops, KernelTable& kernels);  // by register_slice: TensorStridedSliceUpdate ...

}  // namespace dtg::ops
