// How late a deadline may be told inside of a kernel: each op of a table runs once on an input that takes it a while, under an interrupt
// that is never due but measures how much the thread computed from one look to the next. The longest such stretch is what a deadline in
// the midst of the kernel would come late by. Time of the thread, not of the clock, so that a loaded machine does not matter.
#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>
#include <functional>

#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

double thread_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

class Watch final : public Interrupt {
 public:
  bool is_due() override {
    const double now = thread_ms();
    if (begun_ < 0) begun_ = now;
    else longest_ = std::max(longest_, now - last_);
    last_ = now;
    return false;
  }
  double longest() const { return longest_; }
  double whole() const { return last_ - begun_; }

 private:
  double begun_ = -1, last_ = 0, longest_ = 0;
};

using Dims = std::initializer_list<int64_t>;

// ---- what is fed ----

template <class T>
Tensor each(Dims dims, const std::function<double(int64_t)>& value) {
  const Shape shape = one_op::shape(dims);
  Tensor tensor = Tensor::allocate(dtype_of<T>, shape).take();
  for (int64_t i = 0; i < shape.count(); ++i) tensor.as<T>()[i] = static_cast<T>(value(i));
  return tensor;
}

// A number in [0, 1) that looks like any other.
double noise(int64_t i) {
  uint64_t x = static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15u + 0x632BE59BD9B4E019u;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9u;
  x ^= x >> 32;
  return static_cast<double>(x >> 11) * 0x1p-53;
}

Tensor floats(Dims dims) {
  return each<float>(dims, [](int64_t i) { return noise(i) - 0.5; });
}
Tensor whole(Dims dims, double below) {
  return each<int32_t>(dims, [below](int64_t i) { return noise(i) * below; });
}
Tensor rising(int64_t count, double below) {
  return each<int32_t>({count}, [&](int64_t i) { return static_cast<double>(i) / static_cast<double>(count) * below; });
}
Tensor dominant(int64_t n) {
  return each<float>({n, n}, [n](int64_t i) { return i / n == i % n ? static_cast<double>(n) : noise(std::min(i, i % n * n + i / n)); });
}
Tensor number(int32_t value) { return one_op::scalar<int32_t>(value); }
Tensor longs(Dims dims, const std::vector<int64_t>& values) { return one_op::values<int64_t>(dims, values); }
Tensor ints(const std::vector<int32_t>& values) { return one_op::values<int32_t>({static_cast<int64_t>(values.size())}, values); }

// ---- the table ----

struct Case {
  const char* op;
  std::function<std::vector<Tensor>()> inputs;
  std::vector<Attr> attrs;
};

constexpr int64_t kMany = 8'000'000;

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

// All of it in one row, one window or one pixel, where between rows there is nothing to look at.
std::vector<Case> long_rows() {
  constexpr int64_t kLong = kMany * 4;
  const Tensor row = floats({1, kLong}), flat = floats({kLong});
  const auto one_row = [row] { return std::vector<Tensor>{row}; };
  const std::vector<Attr> window = {
      {"ksize", std::vector<int64_t>{1, 4000, 8000, 1}}, {"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", "VALID"}};
  const auto image = [] { return std::vector<Tensor>{floats({1, 4000, 8000, 1})}; };
  return {
      {"Softmax", one_row, {}},
      {"LogSoftmax", one_row, {}},
      {"SoftmaxCrossEntropyWithLogits",
       [row] {
         return std::vector<Tensor>{row, row};
       },
       {}},
      {"SparseSoftmaxCrossEntropyWithLogits",
       [row] {
         return std::vector<Tensor>{row, ints({3})};
       },
       {}},
      {"Multinomial",
       [row] {
         return std::vector<Tensor>{row, number(10)};
       },
       {}},
      {"InTopKV2",
       [row] {
         return std::vector<Tensor>{row, ints({3}), number(5)};
       },
       {}},
      {"LRN",
       [] {
         return std::vector<Tensor>{floats({1, 1, 1, kLong / 2})};
       },
       {}},
      {"GatherV2",
       [row] {
         return std::vector<Tensor>{row, ints({0, 0, 0}), number(0)};
       },
       {}},
      {"ReverseSequence",
       [row] {
         return std::vector<Tensor>{row, ints({kLong})};
       },
       {{"seq_dim", 1}}},
      {"Roll",
       [flat] {
         return std::vector<Tensor>{flat, number(12345), number(0)};
       },
       {}},
      {"TensorScatterUpdate",
       [row] {
         return std::vector<Tensor>{row, one_op::values<int32_t>({1, 1}, {0}), row};
       },
       {}},
      {"MatrixSetDiag",
       [] {
         return std::vector<Tensor>{floats({2, kLong / 2}), floats({2})};
       },
       {}},
      {"AvgPool", image, window},
      {"MaxPool", image, window},
  };
}

class Looks : public testing::Test {
 protected:
  // A stretch that long is felt. Builds that are not optimised are judged by the share of the whole.
#ifdef NDEBUG
  static double allowed_ms(double) { return 50; }
#else
  static double allowed_ms(double whole) { return std::max(50.0, whole / 8); }
#endif

  // `share`: of the whole a stretch may be no more than that, if it is to be judged by that.
  void look(const std::vector<Case>& cases, double share = 0) {
    OneOp one({ops::register_all});
    ResourceStore store;
    one.use_store(&store);
    for (const Case& each : cases) {
      const std::vector<Tensor> inputs = each.inputs();
      double longest = 0, whole = 0;
      const auto allowed = [&] { return share > 0 ? std::max(5.0, whole * share) : allowed_ms(whole); };
      // What a stretch takes is the least that it ever took: pages that the system has to find, and neighbours, only add to it.
      for (int turn = 0; turn < 3 && (turn == 0 || longest > allowed()); ++turn) {
        Watch watch;
        OneOp::Options options;
        options.known = OneOp::Known::values;
        options.interrupt = &watch;
        const auto out = one.run(each.op, inputs, each.attrs, options);
        ASSERT_TRUE(out.ok()) << each.op << ": " << out.status().message();
        whole = watch.whole();
        longest = turn == 0 ? watch.longest() : std::min(longest, watch.longest());
      }
      std::printf("%-36s %8.0f ms, at most %6.1f ms without a look\n", each.op, whole, longest);
      EXPECT_LE(longest, allowed()) << each.op << " of " << whole << " ms";
    }
  }
};

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
TEST_F(Looks, LongRows) { look(long_rows(), 0.25); }

}  // namespace
}  // namespace dtg
