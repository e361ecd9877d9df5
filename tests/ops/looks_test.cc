// How late a deadline is told inside of the kernels that compute, order, move, draw and spread (ops/looks.h), and that one left at any look
// has freed what it made.
#include "ops/looks.h"

namespace dtg {
namespace {

using namespace looks;

std::vector<Case> decompositions() {
  const auto matrix = [] { return std::vector<Tensor>{dominant(1200)}; };
  return {
      {"Cholesky", matrix, {}},
      {"MatrixInverse", matrix, {}},
      {"MatrixDeterminant", matrix, {}},
      {"LogMatrixDeterminant", matrix, {}},
      {"MatrixSolve",
       [] {
         return std::vector<Tensor>{dominant(1000), floats({1000, 1000})};
       },
       {}},
      {"MatrixTriangularSolve",
       [] {
         return std::vector<Tensor>{dominant(1500), floats({1500, 1500})};
       },
       {}},
      {"SelfAdjointEigV2", [] { return std::vector<Tensor>{dominant(500)}; }, {}},
      {"Qr",
       [] {
         return std::vector<Tensor>{floats({700, 700})};
       },
       {}},
      {"Svd",
       [] {
         return std::vector<Tensor>{floats({250, 250})};
       },
       {}},
  };
}

std::vector<Case> orders() {
  return {
      {"TopKV2",
       [] {
         return std::vector<Tensor>{floats({kMany / 4}), number(kMany / 4)};
       },
       {}},
      {"TopKV2",
       [] {
         return std::vector<Tensor>{floats({64, 100'000}), number(1000)};
       },
       {}},
      {"NthElement",
       [] {
         return std::vector<Tensor>{floats({kMany * 2}), number(kMany)};
       },
       {}},
      {"InTopKV2",
       [] {
         return std::vector<Tensor>{floats({200, 100'000}), whole({200}, 100'000), number(5)};
       },
       {}},
      {"Unique", [] { return std::vector<Tensor>{whole({kMany / 2}, 2e9)}; }, {}},
      {"UniqueWithCounts", [] { return std::vector<Tensor>{whole({kMany / 2}, 2e9)}; }, {}},
      {"UniqueV2",
       [] {
         return std::vector<Tensor>{whole({kMany / 8, 2}, 1e5), ints({0})};
       },
       {}},
      {"Where", [] { return std::vector<Tensor>{floats({kMany * 2})}; }, {}},
      {"ListDiff",
       [] {
         return std::vector<Tensor>{whole({kMany / 8}, 2e9), whole({kMany / 8}, 2e9)};
       },
       {}},
      {"LowerBound",
       [] {
         return std::vector<Tensor>{each<float>({1, kMany}, [](int64_t i) { return i; }), floats({1, kMany / 2})};
       },
       {}},
      {"Bucketize",
       [] { return std::vector<Tensor>{floats({kMany})}; },
       {{"boundaries", AttrValue::Variant(std::vector<double>{-0.4, -0.2, 0, 0.2, 0.4})}}},
      {"InvertPermutation", [] { return std::vector<Tensor>{each<int32_t>({kMany}, [](int64_t i) { return i * 7 % kMany; })}; }, {}},
  };
}

std::vector<Case> moves() {
  return {
      {"GatherV2",
       [] {
         return std::vector<Tensor>{floats({kMany}), whole({kMany}, kMany), number(0)};
       },
       {}},
      {"GatherNd",
       [] {
         return std::vector<Tensor>{floats({kMany}), whole({kMany, 1}, kMany)};
       },
       {}},
      {"ScatterNd",
       [] {
         return std::vector<Tensor>{whole({kMany, 1}, kMany), floats({kMany}), ints({kMany})};
       },
       {}},
      {"TensorScatterAdd",
       [] {
         return std::vector<Tensor>{floats({kMany}), whole({kMany, 1}, kMany), floats({kMany})};
       },
       {}},
      {"DynamicPartition",
       [] {
         return std::vector<Tensor>{floats({kMany}), whole({kMany}, 4)};
       },
       {{"num_partitions", 4}}},
      {"UnsortedSegmentSum",
       [] {
         return std::vector<Tensor>{floats({kMany}), whole({kMany}, 1e6), number(1'000'000)};
       },
       {}},
      {"UnsortedSegmentMax",
       [] {
         return std::vector<Tensor>{floats({kMany}), whole({kMany}, 1e6), number(1'000'000)};
       },
       {}},
      {"SegmentSum",
       [] {
         return std::vector<Tensor>{floats({kMany}), rising(kMany, 1e6)};
       },
       {}},
      {"SparseSegmentSum",
       [] {
         return std::vector<Tensor>{floats({kMany / 16, 16}), whole({kMany / 8}, kMany / 16), rising(kMany / 8, 1e5)};
       },
       {}},
      {"Bincount",
       [] {
         return std::vector<Tensor>{whole({kMany}, 1e6), number(1'000'000), floats({0})};
       },
       {}},
      {"HistogramFixedWidth",
       [] {
         return std::vector<Tensor>{floats({kMany}), one_op::values<float>({2}, {-1, 1}), number(100)};
       },
       {}},
      {"Transpose",
       [] {
         return std::vector<Tensor>{floats({4096, 4096}), ints({1, 0})};
       },
       {}},
      {"ReverseV2",
       [] {
         return std::vector<Tensor>{floats({kMany}), ints({0})};
       },
       {}},
      {"ReverseSequence",
       [] {
         return std::vector<Tensor>{floats({2000, 8000}), rising(2000, 8000)};
       },
       {{"seq_dim", 1}}},
      {"Roll",
       [] {
         return std::vector<Tensor>{floats({kMany * 2}), number(12345), number(0)};
       },
       {}},
      {"Tile",
       [] {
         return std::vector<Tensor>{floats({1000, 3}), ints({10, 1000})};
       },
       {}},
      {"PadV2",
       [] {
         return std::vector<Tensor>{floats({kMany, 2}), one_op::values<int32_t>({2, 2}, {1, 1, 1, 1}), one_op::scalar<float>(0)};
       },
       {}},
      {"MirrorPad",
       [] {
         return std::vector<Tensor>{floats({4000, 4000}), one_op::values<int32_t>({2, 2}, {9, 9, 9, 9})};
       },
       {{"mode", "REFLECT"}}},
      {"BroadcastTo",
       [] {
         return std::vector<Tensor>{floats({4000, 1}), ints({4000, 5000})};
       },
       {}},
      {"StridedSlice",
       [] {
         return std::vector<Tensor>{floats({kMany * 4}), ints({0}), ints({kMany * 4}), ints({2})};
       },
       {}},
      {"ConcatV2",
       [] {
         return std::vector<Tensor>{floats({kMany, 1}), floats({kMany, 1}), number(1)};
       },
       {{"N", 2}}},
      {"OneHot",
       [] {
         return std::vector<Tensor>{whole({200'000}, 100), number(100), one_op::scalar<float>(1), one_op::scalar<float>(0)};
       },
       {}},
      {"MatrixBandPart",
       [] {
         return std::vector<Tensor>{floats({4000, 4000}), number(3), number(3)};
       },
       {}},
      {"SpaceToDepth",
       [] {
         return std::vector<Tensor>{floats({4, 1024, 1024, 4})};
       },
       {{"block_size", 2}}},
      {"ExtractImagePatches",
       [] {
         return std::vector<Tensor>{floats({4, 512, 512, 4})};
       },
       {{"ksizes", std::vector<int64_t>{1, 3, 3, 1}},
        {"strides", std::vector<int64_t>{1, 1, 1, 1}},
        {"rates", std::vector<int64_t>{1, 1, 1, 1}},
        {"padding", "SAME"}}},
  };
}

std::vector<Case> draws() {
  const std::vector<Attr> sampler = {{"num_true", 1}, {"num_sampled", 200'000}, {"unique", true}, {"range_max", 250'000}};
  const auto trues = [] { return std::vector<Tensor>{longs({1, 1}, {3})}; };
  return {
      {"RandomUniform", [] { return std::vector<Tensor>{ints({kMany * 4})}; }, {{"dtype", DType::f32}}},
      {"RandomUniformInt",
       [] {
         return std::vector<Tensor>{ints({kMany * 4}), number(0), number(1000)};
       },
       {}},
      {"RandomShuffle", [] { return std::vector<Tensor>{floats({kMany})}; }, {}},
      {"StatelessShuffle",
       [] {
         return std::vector<Tensor>{floats({kMany}), one_op::values<uint64_t>({1}, {1}), one_op::values<uint64_t>({2}, {1, 2}), number(1)};
       },
       {}},
      {"Multinomial",
       [] {
         return std::vector<Tensor>{floats({100, 10'000}), number(10'000)};
       },
       {}},
      {"UniformCandidateSampler", trues, sampler},
      {"LogUniformCandidateSampler", trues, sampler},
  };
}

// Those that make much of little.
std::vector<Case> spreads() {
  const auto scalar = [](float value) { return one_op::scalar<float>(value); };
  return {
      {"Range",
       [] {
         return std::vector<Tensor>{number(0), number(kMany * 10), number(1)};
       },
       {}},
      {"LinSpace",
       [scalar] {
         return std::vector<Tensor>{scalar(0), scalar(1), number(kMany * 10)};
       },
       {}},
      {"Fill",
       [scalar] {
         return std::vector<Tensor>{ints({kMany * 10}), scalar(1)};
       },
       {}},
      {"Cross",
       [] {
         return std::vector<Tensor>{floats({kMany * 2, 3}), floats({kMany * 2, 3})};
       },
       {}},
      {"ApproximateEqual",
       [] {
         return std::vector<Tensor>{floats({kMany * 4}), floats({kMany * 4})};
       },
       {}},
      {"UnravelIndex",
       [] {
         return std::vector<Tensor>{whole({kMany}, 1e6), ints({1000, 1000})};
       },
       {}},
  };
}

std::vector<Case> numbers() {
  return {
      {"Cumsum",
       [] {
         return std::vector<Tensor>{floats({kMany * 2}), number(0)};
       },
       {}},
      {"Cumprod",
       [] {
         return std::vector<Tensor>{floats({4000, 4000}), number(0)};
       },
       {}},
      {"CumulativeLogsumexp",
       [] {
         return std::vector<Tensor>{floats({kMany}), number(0)};
       },
       {}},
      {"Sum",
       [] {
         return std::vector<Tensor>{floats({4000, 5000}), ints({0})};
       },
       {}},
      {"Max",
       [] {
         return std::vector<Tensor>{floats({4000, 5000}), ints({0, 1})};
       },
       {}},
      {"ArgMax",
       [] {
         return std::vector<Tensor>{floats({4000, 5000}), number(0)};
       },
       {}},
      {"Softmax",
       [] {
         return std::vector<Tensor>{floats({100, 100'000})};
       },
       {}},
      {"SoftmaxCrossEntropyWithLogits",
       [] {
         return std::vector<Tensor>{floats({100, 100'000}), floats({100, 100'000})};
       },
       {}},
      {"SparseSoftmaxCrossEntropyWithLogits",
       [] {
         return std::vector<Tensor>{floats({100, 100'000}), whole({100}, 1000)};
       },
       {}},
      {"Pow",
       [] {
         return std::vector<Tensor>{floats({kMany}), floats({kMany})};
       },
       {}},
      {"Lgamma", [] { return std::vector<Tensor>{floats({kMany})}; }, {}},
      {"Igamma",
       [] {
         return std::vector<Tensor>{each<float>({1'000'000}, noise), each<float>({1'000'000}, noise)};
       },
       {}},
      {"Betainc",
       [] {
         return std::vector<Tensor>{each<float>({500'000}, noise), each<float>({500'000}, noise), each<float>({500'000}, noise)};
       },
       {}},
      {"Zeta",
       [] {
         return std::vector<Tensor>{each<float>({500'000}, [](int64_t i) { return 1.5 + noise(i); }), each<float>({500'000}, noise)};
       },
       {}},
      {"Tanh", [] { return std::vector<Tensor>{floats({kMany * 2})}; }, {}},
      {"Cast", [] { return std::vector<Tensor>{floats({kMany * 2})}; }, {{"DstT", DType::f64}}},
      {"AddN",
       [] {
         return std::vector<Tensor>{floats({kMany}), floats({kMany}), floats({kMany})};
       },
       {}},
      {"FakeQuantWithMinMaxArgs", [] { return std::vector<Tensor>{floats({kMany * 2})}; }, {}},
      {"LRN",
       [] {
         return std::vector<Tensor>{floats({8, 128, 128, 32})};
       },
       {}},
      {"FusedBatchNormV3",
       [] {
         return std::vector<Tensor>{floats({16, 128, 128, 32}), floats({32}), floats({32}), floats({0}), floats({0})};
       },
       {}},
      {"MaxPool",
       [] {
         return std::vector<Tensor>{floats({8, 256, 256, 16})};
       },
       {{"ksize", std::vector<int64_t>{1, 5, 5, 1}}, {"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", "SAME"}}},
      {"ResizeBicubic",
       [] {
         return std::vector<Tensor>{floats({1, 64, 64, 16}), ints({1024, 1024})};
       },
       {}},
      {"ResizeBilinear",
       [] {
         return std::vector<Tensor>{floats({1, 64, 64, 16}), ints({1024, 1024})};
       },
       {}},
      {"Dilation2D",
       [] {
         return std::vector<Tensor>{floats({4, 128, 128, 16}), floats({5, 5, 16})};
       },
       {{"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"rates", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", "SAME"}}},
      {"StatelessRandomNormal",
       [] {
         return std::vector<Tensor>{ints({kMany * 2}), longs({2}, {1, 2})};
       },
       {}},
      {"StatelessTruncatedNormal",
       [] {
         return std::vector<Tensor>{ints({kMany * 2}), longs({2}, {1, 2})};
       },
       {}},
      {"StatelessMultinomial",
       [] {
         return std::vector<Tensor>{floats({100, 10'000}), number(1000), longs({2}, {1, 2})};
       },
       {}},
      {"Einsum",
       [] {
         return std::vector<Tensor>{floats({60, 200, 60}), floats({60, 200, 60})};
       },
       {{"equation", "abc,cbd->adb"}}},
      {"SparseTensorDenseMatMul",
       [] {
         constexpr int64_t kPlaces = 100'000;
         return std::vector<Tensor>{
             each<int64_t>({kPlaces, 2}, [](int64_t i) { return i % 2 ? noise(i) * 1000 : static_cast<double>(i / 200); }),
             floats({kPlaces}), longs({2}, {1000, 1000}), floats({1000, 1000})};
       },
       {}},
  };
}

// Left at any look, a kernel has freed what it made: nothing but the exception comes out, and the same op runs again.
TEST_F(Looks, MayLeave) {
  class Due final : public Interrupt {
   public:
    explicit Due(int after) : left_(after) {}
    bool is_due() override { return --left_ < 0; }

   private:
    int left_;
  };
  const auto small = [] { return std::vector<Tensor>{dominant(200)}; };
  OneOp one({ops::register_all});
  const auto leave = [&](const char* op, const std::vector<Tensor>& inputs, int after) {
    Due due(after);
    OneOp::Options options;
    options.interrupt = &due;
    try {
      EXPECT_TRUE(one.run(op, inputs, {}, options).ok()) << op;  // it has fewer looks than that
    } catch (const Interrupted&) {
    }
  };
  // Eigen asserts in a destructor, too, once per rotation of these: wherever a look may come.
  const std::vector<Tensor> rotated{dominant(48)};
  for (int after = 0; after < 400; ++after) {
    for (const char* op : {"Svd", "Qr", "SelfAdjointEigV2"}) leave(op, rotated, after % 100);
  }
  for (const char* op : {"Cholesky", "MatrixInverse", "MatrixDeterminant", "SelfAdjointEigV2", "Qr", "Svd"}) {
    const std::vector<Tensor> inputs = small();
    for (const int after : {1, 2, 3, 5, 9, 17, 40}) leave(op, inputs, after);
    const auto out = one.run(op, inputs, {}, {});
    EXPECT_TRUE(out.ok()) << op;
  }
}

TEST_F(Looks, Decompositions) { look(decompositions()); }
TEST_F(Looks, Orders) { look(orders()); }
TEST_F(Looks, Moves) { look(moves()); }
TEST_F(Looks, Numbers) { look(numbers()); }
TEST_F(Looks, Draws) { look(draws()); }
TEST_F(Looks, Spreads) { look(spreads()); }

}  // namespace
}  // namespace dtg
