// How late a deadline is told inside of the kernels (ops/looks.h) where all of the input is one row, one window or one pixel.
#include <cmath>

#include "ops/looks.h"

namespace dtg {
namespace {

using namespace looks;

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

// ---- images of one row, and windows of one row ----

using List = std::vector<int64_t>;

std::vector<Attr> windows(List size) {
  List ones(size.size(), 1);
  return {{"ksize", std::move(size)}, {"strides", std::move(ones)}, {"padding", "SAME"}};
}
std::vector<Attr> window_of(List size) {
  auto attrs = windows(std::move(size));
  attrs.back().value = "VALID";
  return attrs;
}
const std::vector<Attr> kSteps = {{"strides", List{1, 1, 1, 1}}, {"padding", "SAME"}};

// One image of one row.
Tensor strip(int64_t width, int64_t channels = 1) { return floats({1, 1, width, channels}); }

Tensor doubles(Dims dims) {
  return each<double>(dims, [](int64_t i) { return noise(i) - 0.5; });
}

// Small windows over one long row of output.
std::vector<Case> long_output_rows() {
  const Tensor one = strip(kMany);
  const auto row = [one] { return std::vector<Tensor>{one}; };
  const auto three = [one] { return std::vector<Tensor>{one, one, one}; };
  const List size{1, 1, 3, 1};
  return {
      {"AvgPool", row, windows(size)},
      {"MaxPool", row, windows(size)},
      {"MaxPool",
       [] { return std::vector<Tensor>{strip(kMany, 4)}; },
       {{"ksize", List{1, 1, 1, 2}}, {"strides", List{1, 1, 1, 2}}, {"padding", "SAME"}}},
      {"MaxPoolWithArgmax", row, windows(size)},
      {"MaxPoolGrad", three, windows(size)},
      {"MaxPoolGradGrad", three, windows(size)},
      {"AvgPoolGrad",
       [one] {
         return std::vector<Tensor>{ints({1, 1, kMany, 1}), one};
       },
       windows(size)},
      {"AvgPool3D",
       [] {
         return std::vector<Tensor>{floats({1, 1, 1, kMany, 1})};
       },
       windows({1, 1, 1, 3, 1})},
      {"MaxPool3D",
       [] {
         return std::vector<Tensor>{floats({1, 1, 1, kMany, 1})};
       },
       windows({1, 1, 1, 3, 1})},
  };
}

// One window that shows all of it: a row, or a volume.
std::vector<Case> long_windows() {
  constexpr int64_t kLong = kMany * 4;
  const Tensor all = strip(kLong), all3 = floats({1, 200, 400, 400, 1});
  const auto row = [all] { return std::vector<Tensor>{all}; };
  const auto grads = [all] {
    const Tensor y = floats({1, 1, 1, 1});
    return std::vector<Tensor>{all, y, y};
  };
  const auto volume = [all3] { return std::vector<Tensor>{all3}; };
  const List size{1, 1, kLong, 1}, size3{1, 200, 400, 400, 1};
  return {
      {"AvgPool", row, window_of(size)},
      {"MaxPool", row, window_of(size)},
      {"MaxPoolWithArgmax", row, window_of(size)},
      {"MaxPoolGrad", grads, window_of(size)},
      {"AvgPoolGrad",
       [] {
         return std::vector<Tensor>{ints({1, 1, kLong, 1}), floats({1, 1, 1, 1})};
       },
       window_of(size)},
      {"AvgPool3D", volume, window_of(size3)},
      {"MaxPool3D", volume, window_of(size3)},
      {"MaxPool3DGrad",
       [all3] {
         const Tensor y = floats({1, 1, 1, 1, 1});
         return std::vector<Tensor>{all3, y, y};
       },
       window_of(size3)},
      {"AvgPool3DGrad",
       [] {
         return std::vector<Tensor>{ints({1, 200, 400, 400, 1}), floats({1, 1, 1, 1, 1})};
       },
       window_of(size3)},
      {"MatMul",
       [] {
         return std::vector<Tensor>{doubles({1, kLong}), doubles({kLong, 1})};
       },
       {}},
  };
}

// Filters over one long row.
std::vector<Case> long_filtered_rows() {
  const std::vector<Attr> rates = {{"strides", List{1, 1, 1, 1}}, {"rates", List{1, 1, 1, 1}}, {"padding", "SAME"}};
  const auto dilated = [] { return std::vector<Tensor>{strip(kMany / 4), floats({1, 9, 1}), strip(kMany / 4)}; };
  return {
      {"Dilation2D",
       [] {
         return std::vector<Tensor>{strip(kMany / 4), floats({1, 9, 1})};
       },
       rates},
      {"Dilation2D",  // a filter as long as the row
       [] {
         return std::vector<Tensor>{strip(kMany), floats({1, kMany, 1})};
       },
       {{"strides", List{1, 1, 1, 1}}, {"rates", List{1, 1, 1, 1}}, {"padding", "VALID"}}},
      {"Dilation2DBackpropInput", dilated, rates},
      {"Dilation2DBackpropFilter", dilated, rates},
      {"Conv2D",
       [] {
         return std::vector<Tensor>{strip(kMany * 2), floats({1, 9, 1, 1})};
       },
       kSteps},
      {"Conv2D",
       [] {
         return std::vector<Tensor>{doubles({1, 1, kMany, 1}), doubles({1, 9, 1, 1})};
       },
       kSteps},
      {"Conv2DBackpropInput",
       [] {
         return std::vector<Tensor>{ints({1, 1, kMany, 1}), doubles({1, 9, 1, 1}), doubles({1, 1, kMany, 1})};
       },
       kSteps},
      {"Conv2DBackpropFilter",
       [] {
         return std::vector<Tensor>{strip(kMany), ints({1, 9, 1, 1}), strip(kMany)};
       },
       kSteps},
      {"Conv2DBackpropFilter",
       [] {
         return std::vector<Tensor>{doubles({1, 1, kMany, 1}), ints({1, 1, 1, 1}), doubles({1, 1, kMany, 1})};
       },
       kSteps},
      {"DepthwiseConv2dNative",
       [] {
         return std::vector<Tensor>{strip(kMany, 2), floats({1, 9, 2, 1})};
       },
       kSteps},
      {"DepthwiseConv2dNative",
       [] {
         return std::vector<Tensor>{strip(kMany, 2), floats({1, 3, 2, 2})};
       },
       kSteps},
      {"DepthwiseConv2dNativeBackpropInput",
       [] {
         return std::vector<Tensor>{ints({1, 1, kMany, 2}), floats({1, 9, 2, 1}), strip(kMany, 2)};
       },
       kSteps},
      {"DepthwiseConv2dNativeBackpropInput",
       [] {
         return std::vector<Tensor>{ints({1, 1, kMany, 2}), floats({1, 3, 2, 2}), strip(kMany, 4)};
       },
       kSteps},
      {"DepthwiseConv2dNativeBackpropFilter",
       [] {
         return std::vector<Tensor>{strip(kMany, 2), ints({1, 9, 2, 1}), strip(kMany, 2)};
       },
       kSteps},
  };
}

// Images brought to one long row, and gradients of that.
std::vector<Case> long_sampled_rows() {
  constexpr int64_t kWide = 1 << 20, kOut = kMany / 2;
  const auto size = [] { return std::vector<Tensor>{strip(kWide), ints({1, kOut})}; };
  const auto grads = [] { return std::vector<Tensor>{strip(kOut), strip(kWide)}; };
  const auto whole_box = [] { return one_op::values<float>({1, 4}, {0, 0, 1, 1}); };
  return {
      {"ResizeBilinear", size, {}},
      {"ResizeNearestNeighbor", size, {}},
      {"ResizeBicubic", size, {}},
      {"ResizeBilinearGrad", grads, {}},
      {"ResizeBicubicGrad", grads, {}},
      {"ResizeNearestNeighborGrad",
       [] {
         return std::vector<Tensor>{strip(kOut), ints({1, kWide})};
       },
       {}},
      {"CropAndResize",
       [=] {
         return std::vector<Tensor>{strip(kWide), whole_box(), ints({0}), ints({1, kOut})};
       },
       {}},
      {"CropAndResizeGradImage",
       [=] {
         return std::vector<Tensor>{strip(kOut), whole_box(), ints({0}), ints({1, 1, kWide, 1})};
       },
       {{"T", DType::f32}}},
      {"CropAndResizeGradBoxes",
       [=] {
         return std::vector<Tensor>{strip(kOut), strip(kWide), whole_box(), ints({0})};
       },
       {}},
      {"MirrorPad",
       [] {
         return std::vector<Tensor>{floats({kMany * 2}), one_op::values<int32_t>({1, 2}, {0, static_cast<int32_t>(kMany)})};
       },
       {{"mode", "REFLECT"}}},
      {"MirrorPadGrad",
       [] {
         return std::vector<Tensor>{floats({kMany * 3}), one_op::values<int32_t>({1, 2}, {0, static_cast<int32_t>(kMany)})};
       },
       {{"mode", "REFLECT"}}},
  };
}

// Whole copies.
std::vector<Case> long_copies() {
  constexpr int32_t kLong = kMany * 4;
  const Tensor row = floats({1, kLong});
  return {
      {"DynamicPartition",
       [row] {
         return std::vector<Tensor>{row, ints({0})};
       },
       {{"num_partitions", 1}}},
      {"DynamicStitch",
       [row] {
         return std::vector<Tensor>{ints({0}), row};
       },
       {{"N", 1}}},
      {"ParallelConcat",
       [row] {
         return std::vector<Tensor>{row, row};
       },
       {{"N", 2}, {"shape", PartialShape(one_op::shape({2, kLong}))}}},
      {"Bitcast", [row] { return std::vector<Tensor>{row}; }, {{"type", DType::i32}}},
  };
}

TEST_F(Looks, LongRows) { look(long_rows(), 0.25); }
TEST_F(Looks, LongOutputRows) { look(long_output_rows(), 0.25); }
TEST_F(Looks, LongWindows) { look(long_windows(), 0.25); }
TEST_F(Looks, LongFilteredRows) { look(long_filtered_rows(), 0.25); }
TEST_F(Looks, LongCopies) { look(long_copies(), 0.25); }
TEST_F(Looks, LongSampledRows) { look(long_sampled_rows(), 0.05); }

// Elements of lists, which come out whole.
TEST_F(Looks, LongElements) {
  OneOp one({ops::register_all});
  ResourceStore store;
  one.use_store(&store);
  const Attr element{"element_dtype", DType::f32};
  const Tensor rows = floats({2, kMany * 2});
  for (const bool concat : {false, true}) {
    auto graph = one.graph().take();
    Build b(*graph);
    const Value x = one.input(*graph, rows, OneOp::Known::values).take();
    const Value list = b.op("TensorListFromTensor", {x, b.ints({-1})}, {element});
    Value out = b.op("TensorListStack", {list, b.ints({-1})}, {element});
    if (concat) {
      const Value none = one.input(*graph, longs({0}, {}), OneOp::Known::values).take();
      out = b.op("TensorListConcatV2", {list, b.ints({-1}), none}, {element});
    }
    double longest = 1e9, whole = 0;
    for (int turn = 0; turn < 3 && longest > std::max(5.0, whole * 0.25); ++turn) {
      Watch watch;
      OneOp::Options options;
      options.interrupt = &watch;
      const auto got = one.evaluate(*graph, std::span(&out, 1), options);
      ASSERT_TRUE(got.ok()) << got.status().message();
      whole = watch.whole(), longest = std::min(longest, watch.longest());
    }
    std::printf("%-36s %8.0f ms, at most %6.1f ms without a look\n", concat ? "TensorListConcatV2" : "TensorListStack", whole, longest);
    EXPECT_LE(longest, std::max(5.0, whole * 0.25)) << concat << " of " << whole << " ms";
  }
}

// Stretches of a row come to what the row does: float32, whose kernels are cut, against the plain kernels of float64.
TEST_F(Looks, LongRowsAreWhole) {
  struct Whole {
    const char* op;
    std::vector<List> shapes;  // of the inputs; one of a gradient is told by numbers
    std::vector<Attr> attrs;
  };
  const List tall{1, 1'100, 1'000, 1}, wide{1, 1, 1'500'000, 1}, pair{1, 1, 300'000, 2}, four{1, 1, 300'000, 4};
  const List taps{1, 5, 1, 1}, each_taps{1, 5, 2, 1}, two_taps{1, 5, 2, 2};
  const std::vector<Whole> wholes = {
      {"Conv2DBackpropFilter", {tall, taps, tall}, kSteps},
      {"Conv2DBackpropFilter", {wide, taps, wide}, kSteps},
      {"DepthwiseConv2dNative", {pair, each_taps}, kSteps},
      {"DepthwiseConv2dNative", {pair, two_taps}, kSteps},
      {"DepthwiseConv2dNativeBackpropInput", {pair, each_taps, pair}, kSteps},
      {"DepthwiseConv2dNativeBackpropInput", {pair, two_taps, four}, kSteps},
      {"DepthwiseConv2dNativeBackpropFilter", {pair, each_taps, pair}, kSteps},
      {"AvgPool", {pair}, windows({1, 1, 3, 1})},
      {"MaxPool", {pair}, windows({1, 1, 3, 1})},
  };
  OneOp one({ops::register_all});
  for (const Whole& each : wholes) {
    const bool by_filter = std::string_view(each.op).ends_with("BackpropFilter"),
               by_input = std::string_view(each.op).ends_with("BackpropInput");
    std::vector<Tensor> in32, in64;
    for (size_t i = 0; i < each.shapes.size(); ++i) {
      const List& dims = each.shapes[i];
      if ((by_filter && i == 1) || (by_input && i == 0)) {
        in32.push_back(ints({dims.begin(), dims.end()}));
        in64.push_back(in32.back());
        continue;
      }
      in32.push_back(Tensor::allocate(DType::f32, Shape::make(dims).take()).take());
      in64.push_back(Tensor::allocate(DType::f64, Shape::make(dims).take()).take());
      for (int64_t k = 0; k < in32.back().count(); ++k)
        in64.back().as<double>()[k] = in32.back().as<float>()[k] = static_cast<float>(noise(k));
    }
    const auto got = one.run(each.op, in32, each.attrs, {}), want = one.run(each.op, in64, each.attrs, {});
    ASSERT_TRUE(got.ok() && want.ok()) << each.op << ": " << got.status().message() << want.status().message();
    int64_t off = 0;
    for (int64_t k = 0; k < want.value()[0].count(); ++k) {
      const double value = want.value()[0].as<double>()[k];
      off += std::fabs(got.value()[0].as<float>()[k] - value) > (by_filter ? 1e-2 : 1e-5) * std::max(value, 1e-3) ? 1 : 0;
    }
    EXPECT_EQ(off, 0) << each.op;
  }
}

}  // namespace
}  // namespace dtg
