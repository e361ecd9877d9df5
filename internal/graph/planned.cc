// The ops that TensorFlow has and this library has not, by family. Their names are read by the compiler alone: the library holds a number
// made of each, and the beginnings that whole families have in common.
#include "graph/planned.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

namespace dtg {
namespace {

struct OpFamily {
  std::string_view what;        // follows ": " in the message; "" where nothing is to be said
  std::string_view beginnings;  // of names, with spaces between them; after a '*' what stands anywhere in them. No op that is here has them
  std::string_view names;       // whole ones
};

// tests/graph/tensorflow_ops.txt has all of TensorFlow's names; a test looks each up.
constexpr OpFamily kOpFamilies[] = {
    {"trees and other learners without gradients", "*BoostedTrees Sdca KMC2 Kmeans", "IsotonicRegression NearestNeighbors"},
    {"data sets are no ops here; use dtg/data.h",
     "*Dataset Experimental *Iterator *MultiDeviceIt *MemoryCache *SeedGenerator Optional *StatsAggregator *ompressElement ThreadPool",
     "ComputeBatchSize DummyIterationCounter GetElementAtIndex GetOptions"},
    {"TPUs, and graphs that XLA compiles", "*TPU *Xla Infeed Outfeed Prelinearize CrossReplica *SparseCore *Dedup *Minibatch Risc",
     "AllToAll CollectivePermute ConvertToCooTensor GetTpuTaskId GlobalIterId HostConst TpuHandleToProtoKey "
     "UpdateTaskIdAndGlobalCoreArray WorkerHeartbeat"},
    {"curves are written by event writers (dtg/io.h)", "*Summary", "ImportEvent"},
    {"arithmetic on numbers of 8 bits; QuantizeV2 and Dequantize lead there and back", "Quantized Requantiz UniformQ UniformD UniformR",
     "QuantizeDownAndShrinkRange"},
    {"sparse and ragged tensors", "*Ragged *SparseMatrix *TensorsMap",
     "DenseCountSparseOutput DeserializeManySparse DeserializeSparse SerializeManySparse SerializeSparse SparseAdd SparseAddGrad SparseBincount "
     "SparseConcat SparseCountSparseOutput SparseCross SparseCrossHashed SparseCrossV2 SparseDenseCwiseAdd SparseDenseCwiseDiv "
     "SparseDenseCwiseMul SparseMatMul SparseReduceMax SparseReduceMaxSparse SparseReduceSum SparseReduceSumSparse SparseSlice "
     "SparseSliceGrad SparseSoftmax SparseSparseMaximum SparseSparseMinimum SparseSplit SparseTensorDenseAdd"},
    {"complex numbers and Fourier transforms", "*FFT", "Angle Complex ComplexAbs Imag Real"},
    {"files, which no graph reaches here; use dtg/data.h and dtg/checkpoint.h", "*Reader Save Restore",
     "DistributedSave FileSystemSetConfiguration GenerateVocabRemapping ImmutableConst InitializeTableFromTextFile "
     "InitializeTableFromTextFileV2 LoadAndRemapMatrix MatchingFiles MergeV2Checkpoints ReadFile RecordInput WriteFile"},
    {"records are read by data sets (dtg/data.h)", "Parse",
     "DecodeCSV DecodeCompressed DecodeJSONExample DecodePaddedRaw DecodeProtoV2 EncodeProto SerializeTensor"},
    {"variables by reference, as before TensorFlow 2; use VarHandleOp, AssignVariableOp and Resource...", "Ref Apply SparseApply",
     "Assign AssignAdd AssignSub CountUpTo DestroyTemporaryVariable InplaceAdd InplaceSub InplaceUpdate IsVariableInitialized ScatterAdd "
     "ScatterDiv ScatterMax ScatterMin ScatterMul ScatterNdAdd ScatterNdMax ScatterNdMin ScatterNdSub ScatterNdUpdate ScatterSub "
     "ScatterUpdate StridedSliceAssign TemporaryVariable Variable VariableV2"},
    {"another form is here: its name with V2 or V3 or neither, without Batch or Anonymous", "",
     "AnonymousHashTable AnonymousMutableDenseHashTable AnonymousMutableHashTable AnonymousMutableHashTableOfTensors BatchCholesky "
     "BatchMatrixBandPart BatchMatrixDeterminant BatchMatrixDiag BatchMatrixDiagPart BatchMatrixInverse BatchMatrixSetDiag BatchMatrixSolve "
     "BatchMatrixTriangularSolve BatchSelfAdjointEig BatchSelfAdjointEigV2 BatchSvd CollectiveAllToAllV3 CollectiveBcastRecv "
     "CollectiveBcastSend CollectiveGather CollectiveReduce CollectiveReduceV3 Conv2DBackpropFilterV2 Conv2DBackpropInputV2 "
     "Conv3DBackpropFilter Conv3DBackpropInput FIFOQueue HashTable InitializeTable LookupTableExport LookupTableFind LookupTableImport "
     "LookupTableInsert LookupTableSize MutableDenseHashTable MutableHashTable MutableHashTableOfTensors PaddingFIFOQueue PlaceholderV2 "
     "PriorityQueue QuantizeAndDequantize QueueClose QueueDequeue QueueDequeueMany QueueDequeueUpTo QueueEnqueue QueueEnqueueMany "
     "QueueIsClosed QueueSize RandomShuffleQueue Reverse SegmentMaxV2 SegmentMinV2 SegmentProdV2 SegmentSumV2 SelfAdjointEig "
     "SparseSegmentMeanGradV2 SparseSegmentSqrtNGradV2 SparseSegmentSumGradV2 Stack StackClose StackPop StackPush "
     "StatelessRandomUniformFullInt StringSplit TensorArray TensorArrayClose TensorArrayCloseV2 TensorArrayConcat TensorArrayConcatV2 "
     "TensorArrayGather TensorArrayGatherV2 TensorArrayGrad TensorArrayGradV2 TensorArrayRead TensorArrayReadV2 TensorArrayScatter "
     "TensorArrayScatterV2 TensorArraySize TensorArraySizeV2 TensorArraySplit TensorArraySplitV2 TensorArrayV2 TensorArrayWrite "
     "TensorArrayWriteV2"},
    {"linear algebra", "",
     "BandedTriangularSolve BatchCholeskyGrad BatchMatrixSolveLs CholeskyGrad Eig Lu MatrixExponential MatrixLogarithm MatrixSolveLs "
     "MatrixSquareRoot TridiagonalMatMul TridiagonalSolve"},
    {"images and sound", "*BoundingBox *NonMaxSuppression *ImageProj",
     "AdjustContrast AdjustContrastv2 AdjustHue AdjustSaturation AudioMicrofrontend AudioSpectrogram DecodeAndCropJpeg DecodeBmp DecodeGif "
     "DecodeImage DecodeJpeg DecodeJxl DecodePng DecodeWav DecodeWebP EncodeJpeg EncodeJpegVariableQuality EncodePng EncodeWav "
     "ExtractGlimpse ExtractGlimpseV2 ExtractJpegShape ExtractVolumePatches HSVToRGB Mfcc RGBToHSV RandomCrop ResizeArea "
     "ScaleAndTranslate ScaleAndTranslateGrad"},
    {"random numbers of further distributions", "",
     "NonDeterministicInts ParameterizedTruncatedNormal RandomGamma RandomGammaGrad RandomIndexShuffle RandomPoisson RandomPoissonV2 "
     "SobolSample StatelessParameterizedTruncatedNormal StatelessRandomBinomial StatelessRandomGammaV2 StatelessRandomGammaV3 "
     "StatelessRandomPoisson"},
    {"random numbers whose state is a variable; use Stateless... and RngReadAndSkip", "",
     "RngSkip StatefulRandomBinomial StatefulStandardNormal StatefulStandardNormalV2 StatefulTruncatedNormal StatefulUniform "
     "StatefulUniformFullInt StatefulUniformInt"},
    {"said otherwise here: If, Case, While and PartitionedCall, on the device or task that is meant; gradients are added to the graph", "",
     "ControlTrigger DeviceIndex Enter Exit FakeParam For LoopCond MapDefun Merge NextIteration RemoteCall SymbolicGradient Switch"},
    {"what tasks send each other, a session does by itself; use dtg/group.h besides", "Nccl Rpc",
     "CollectiveAssignGroupV2 CollectiveInitializeCommunicator DeleteRpcFutureResource Recv Send"},
    {"what steps leave for each other; use queues and variables", "OrderedMap Barrier Mutex",
     "Batch BatchFunction ConsumeMutexLock DeleteSessionTensor FakeQueue GetSessionHandle GetSessionHandleV2 GetSessionTensor MapClear "
     "MapIncompleteSize MapPeek MapSize MapStage MapUnstage MapUnstageNoKey Stage StageClear StagePeek StageSize Unbatch UnbatchGrad "
     "Unstage"},
    {"several layers in one op; build it of theirs", "Cudnn CTC",
     "BatchNormWithGlobalNormalization BatchNormWithGlobalNormalizationGrad Conv FractionalAvgPool FractionalAvgPoolGrad FractionalMaxPool "
     "FractionalMaxPoolGrad FusedPadConv2D FusedResizeAndPadConv2D"},
    {"Python inside of graphs, which will never be here", "*PyFunc", ""},
    {"", "Debug DTensor Relayout *TensorMap Unicode",
     "Abort AllCandidateSampler ApproxTopK CalibrationStatisticsSaver CheckPinned CompositeTensorVariantFromComponents "
     "ConstructionFails "
     "CompositeTensorVariantToComponents Copy CopyHost CopyToMesh CopyToMeshGrad CustomAggregator Dawsn DisableCopyOnRead DumpTensor "
     "EditDistance Expint Fact Fingerprint FresnelCos FresnelSin GuaranteeConst KthOrderStatistic MakeUnique MlirPassthroughOp NegTrain "
     "Skipgram Spence StochasticCastToInt StringNGrams SyncDevice TensorArrayPack TensorArrayUnpack TensorListPushBackBatch "
     "ThreadUnsafeUnigramCandidateSampler TileGrad Timestamp ToBool TopKUnique TopKWithUnique UnsortedSegmentJoin WindowOp"},
};

constexpr size_t kOpFamilyCount = std::size(kOpFamilies);
static_assert(kOpFamilyCount <= 32);  // five bits of a number below

// FNV-1a, 27 bits of it: one name in some 400,000 that nobody has thought of would be taken for one of TensorFlow's.
constexpr uint32_t name_number(std::string_view name) {
  uint32_t hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return hash & ~31u;
}

// The next of words with spaces between them, which is taken off; "" after the last.
constexpr std::string_view next_word(std::string_view* words) {
  const size_t end = std::min(words->find(' '), words->size());
  const std::string_view word = words->substr(0, end);
  words->remove_prefix(std::min(end + 1, words->size()));
  return word;
}

consteval size_t listed_names() {
  size_t count = 0;
  for (const OpFamily& family : kOpFamilies) {
    for (std::string_view names = family.names; !next_word(&names).empty();) ++count;
  }
  return count;
}

// The number of every name, and in the lowest five bits that of its family.
consteval std::array<uint32_t, listed_names()> numbers_of_names() {
  std::array<uint32_t, listed_names()> numbers{};
  size_t at = 0;
  for (uint32_t i = 0; i < kOpFamilyCount; ++i) {
    std::string_view names = kOpFamilies[i].names;
    for (std::string_view name = next_word(&names); !name.empty(); name = next_word(&names)) numbers[at++] = name_number(name) | i;
  }
  return numbers;
}

consteval size_t texts_bytes() {
  size_t bytes = 0;
  for (const OpFamily& family : kOpFamilies) bytes += family.what.size() + family.beginnings.size() + 2;
  return bytes;
}

// Of each family what is said of it and its beginnings, each with a NUL. One array, as pointers to texts would be larger than they are.
consteval std::array<char, texts_bytes()> texts_of_families() {
  std::array<char, texts_bytes()> texts{};
  size_t at = 0;
  for (const OpFamily& family : kOpFamilies) {
    at = static_cast<size_t>(std::ranges::copy(family.what, texts.begin() + at).out - texts.begin()) + 1;
    at = static_cast<size_t>(std::ranges::copy(family.beginnings, texts.begin() + at).out - texts.begin()) + 1;
  }
  return texts;
}

constexpr auto kNumbersOfNames = numbers_of_names();
constexpr auto kTextsOfFamilies = texts_of_families();

bool has_beginning(std::string_view op, std::string_view beginnings) {
  for (std::string_view word = next_word(&beginnings); !word.empty(); word = next_word(&beginnings)) {
    if (word[0] == '*' ? op.find(word.substr(1)) != std::string_view::npos : op.starts_with(word)) return true;
  }
  return false;
}

// What is said of an op of TensorFlow's; null where that has no such op, or none that is known here.
const char* said_of(std::string_view op) {
  size_t family = kOpFamilyCount;
  for (const uint32_t each : kNumbersOfNames) {
    if ((each & ~31u) == name_number(op)) family = each & 31u;
  }
  const char* what = kTextsOfFamilies.data();
  for (size_t i = 0; i < kOpFamilyCount; ++i) {
    const std::string_view beginnings(what + std::string_view(what).size() + 1);
    if (i == family || has_beginning(op, beginnings)) return what;
    what = beginnings.data() + beginnings.size() + 1;
  }
  return nullptr;
}

}  // namespace

Status no_such_op(std::string_view op, std::string_view nearest) {
  if (const char* const what = said_of(op)) {
    return unimplemented("TensorFlow's op \"%.*s\" is not in this library%s%s; `dtg ops` lists what is", int(op.size()), op.data(),
                         *what ? ": " : "", what);
  }
  const std::string hint = nearest.empty() ? "`dtg ops` lists what there is" : "did you mean \"" + std::string(nearest) + "\"?";
  return not_found("no op \"%.*s\": %s", int(op.size()), op.data(), hint.c_str());
}

}  // namespace dtg
