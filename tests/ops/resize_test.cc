// Images in other sizes and other orders: resizing, cropping, blocks, mirrored borders, patches, pooling with windows as inputs. What
// undoes what, sizes that only the step knows, and what is refused.
#include <gtest/gtest.h>

#include "ops/all.h"
#include "ops/one_op.h"

namespace dtg {
namespace {

using one_op::as_vector;
using one_op::ramp;
using one_op::scalar;
using one_op::values;
using List = std::vector<int64_t>;

class ResizeTest : public ::testing::Test {
 protected:
  Tensor image(std::initializer_list<int64_t> dims) { return values<float>(dims, ramp(one_op::shape(dims).count(), -1.0f, 1.0f)); }
  // Every way to know the inputs gives the same; the first output.
  Tensor same(std::string_view op, std::initializer_list<Tensor> in, std::initializer_list<Attr> attrs) {
    Tensor first;
    for (const auto known : {OneOp::Known::values, OneOp::Known::shapes, OneOp::Known::nothing}) {
      auto out = one_.run(op, in, attrs, {.known = known, .threads = 2});
      EXPECT_TRUE(out.ok()) << op << ": " << out.status().message();
      if (!out.ok()) return first;
      if (!first.valid()) first = out.value()[0];
      EXPECT_TRUE(one_op::bit_equal(first, out.value()[0])) << op;
    }
    return first;
  }
  // The code of every way, which must be one.
  Code refused(std::string_view op, std::initializer_list<Tensor> in, std::initializer_list<Attr> attrs = {}) {
    const Code early = one_.run(op, in, attrs, {}).status().code();
    EXPECT_EQ(one_.run(op, in, attrs, {.known = OneOp::Known::nothing}).status().code(), early) << op;
    return early;
  }
  OneOp one_{ops::register_image, ops::register_pool};
};

TEST_F(ResizeTest, SamplesWhereTheFlagsSay) {
  const Tensor row = values<float>({1, 1, 4, 1}, {0, 10, 20, 30}), wide = values<int32_t>({2}, {1, 8}), one = values<int32_t>({2}, {1, 1});
  EXPECT_EQ(as_vector<float>(same("ResizeBilinear", {row, wide}, {})), (std::vector<float>{0, 5, 10, 15, 20, 25, 30, 30}));
  EXPECT_EQ(as_vector<float>(same("ResizeBilinear", {row, wide}, {{"half_pixel_centers", true}})),
            (std::vector<float>{0, 2.5f, 7.5f, 12.5f, 17.5f, 22.5f, 27.5f, 30}));
  EXPECT_EQ(as_vector<float>(same("ResizeBilinear", {row, values<int32_t>({2}, {1, 7})}, {{"align_corners", true}})),
            (std::vector<float>{0, 5, 10, 15, 20, 25, 30}));
  EXPECT_EQ(as_vector<float>(same("ResizeNearestNeighbor", {row, wide}, {})), (std::vector<float>{0, 0, 10, 10, 20, 20, 30, 30}));
  EXPECT_EQ(as_vector<float>(same("ResizeNearestNeighbor", {row, one}, {{"half_pixel_centers", true}})), (std::vector<float>{20}));
  EXPECT_EQ(as_vector<float>(same("ResizeBilinear", {row, one}, {{"align_corners", true}})), (std::vector<float>{0}));
}

// Cubic weights add up to one, and keep the pixels where sizes are the same.
TEST_F(ResizeTest, CubicKeepsWhatIsConstant) {
  const Tensor flat = values<float>({1, 3, 3, 2}, std::vector<float>(18, 1.75f)), x = image({2, 5, 4, 3});
  for (const char* flag : {"align_corners", "half_pixel_centers"}) {
    for (float value : as_vector<float>(same("ResizeBicubic", {flat, values<int32_t>({2}, {7, 2})}, {{flag, true}})))
      EXPECT_NEAR(value, 1.75f, 1e-6);
    EXPECT_EQ(as_vector<float>(same("ResizeBicubic", {x, values<int32_t>({2}, {5, 4})}, {{flag, true}})), as_vector<float>(x));
  }
}

TEST_F(ResizeTest, RefusesSizesAndFlags) {
  const Tensor x = image({1, 3, 3, 1}), two = values<int32_t>({2}, {2, 2});
  for (const char* op : {"ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"}) {
    EXPECT_EQ(refused(op, {x, two}, {{"align_corners", true}, {"half_pixel_centers", true}}), Code::invalid_argument);
    EXPECT_EQ(refused(op, {x, values<int32_t>({2}, {0, 2})}), Code::invalid_argument);
    EXPECT_EQ(refused(op, {x, values<int32_t>({2}, {2, -1})}), Code::invalid_argument);
    EXPECT_EQ(refused(op, {x, values<int32_t>({3}, {2, 2, 2})}), Code::invalid_argument);
    EXPECT_EQ(refused(op, {image({3, 3, 1}), two}), Code::invalid_argument);
    EXPECT_EQ(refused(op, {values<float>({1, 0, 3, 1}, {}), two}), Code::invalid_argument);
  }
  EXPECT_EQ(refused("ResizeBilinear", {x, values<int32_t>({2}, {2000000000, 2000000000})}), Code::resource_exhausted);
}

TEST_F(ResizeTest, CropsBoxes) {
  const Tensor x = values<float>({1, 2, 2, 1}, {1, 2, 3, 4}), size = values<int32_t>({2}, {2, 2}), first = values<int32_t>({1}, {0});
  const Tensor all = values<float>({1, 4}, {0, 0, 1, 1}), turned = values<float>({1, 4}, {1, 1, 0, 0}),
               off = values<float>({1, 4}, {0, 0, 1, 3});
  EXPECT_EQ(as_vector<float>(same("CropAndResize", {x, all, first, size}, {})), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(as_vector<float>(same("CropAndResize", {x, turned, first, size}, {})), (std::vector<float>{4, 3, 2, 1}));
  EXPECT_EQ(as_vector<float>(same("CropAndResize", {x, off, first, size}, {{"extrapolation_value", -7.0}})),
            (std::vector<float>{1, -7, 3, -7}));
  EXPECT_EQ(as_vector<float>(same("CropAndResize", {x, all, first, values<int32_t>({2}, {1, 1})}, {})), (std::vector<float>{2.5f}));
  EXPECT_EQ(refused("CropAndResize", {x, all, values<int32_t>({1}, {1}), size}), Code::out_of_range);
  EXPECT_EQ(refused("CropAndResize", {x, all, values<int32_t>({2}, {0, 0}), size}), Code::invalid_argument);
  EXPECT_EQ(refused("CropAndResize", {x, all, first, values<int32_t>({2}, {0, 1})}), Code::invalid_argument);
}

TEST_F(ResizeTest, BlocksGoThereAndBack) {
  for (const char* format : {"NHWC", "NCHW"}) {
    const Tensor x = image({2, 6, 6, 6});
    const std::initializer_list<Attr> attrs = {{"block_size", int64_t{3}}, {"data_format", format}};
    const Tensor deep = same("SpaceToDepth", {x}, attrs);
    EXPECT_TRUE(one_op::bit_equal(same("DepthToSpace", {deep}, attrs), x)) << format;
  }
  const Tensor x = image({2, 5, 3, 4}), block = values<int32_t>({2}, {2, 3}), edges = values<int32_t>({2, 2}, {1, 2, 0, 3});
  const Tensor batch = same("SpaceToBatchND", {x, block, edges}, {});
  EXPECT_EQ(batch.shape().text(), "[12,4,2,4]");
  EXPECT_TRUE(one_op::bit_equal(same("BatchToSpaceND", {batch, block, edges}, {}), x));
  const Tensor four = values<int32_t>({2, 2}, {1, 0, 0, 1}), small = image({1, 3, 3, 2});
  const Tensor moved = same("SpaceToBatch", {small, four}, {{"block_size", int64_t{2}}});
  EXPECT_TRUE(one_op::bit_equal(same("BatchToSpace", {moved, four}, {{"block_size", int64_t{2}}}), small));
  const Tensor square = values<int32_t>({2}, {2, 2});
  EXPECT_TRUE(one_op::bit_equal(moved, same("SpaceToBatchND", {small, square, four}, {})));
  EXPECT_EQ(refused("SpaceToBatchND", {x, block, values<int32_t>({2, 2}, {0, 0, 0, 0})}), Code::invalid_argument);
  EXPECT_EQ(refused("SpaceToBatchND", {x, values<int32_t>({2}, {0, 3}), edges}), Code::invalid_argument);
  EXPECT_EQ(refused("SpaceToBatchND", {x, block, values<int32_t>({2, 2}, {-1, 2, 0, 3})}), Code::invalid_argument);
  EXPECT_EQ(refused("BatchToSpaceND", {batch, block, values<int32_t>({2, 2}, {5, 4, 0, 0})}), Code::invalid_argument);
  EXPECT_EQ(refused("BatchToSpaceND", {image({5, 2, 2, 1}), square, four}), Code::invalid_argument);
}

TEST_F(ResizeTest, MirrorsAtTheEdgeOrTheLastElement) {
  const Tensor x = values<int32_t>({3}, {1, 2, 3}), edges = values<int64_t>({1, 2}, {2, 1});
  EXPECT_EQ(as_vector<int32_t>(same("MirrorPad", {x, edges}, {{"mode", "REFLECT"}})), (std::vector<int32_t>{3, 2, 1, 2, 3, 2}));
  EXPECT_EQ(as_vector<int32_t>(same("MirrorPad", {x, edges}, {{"mode", "SYMMETRIC"}})), (std::vector<int32_t>{2, 1, 1, 2, 3, 3}));
  const Tensor padded = values<int32_t>({6}, {1, 10, 100, 1000, 10000, 100000});
  EXPECT_EQ(as_vector<int32_t>(same("MirrorPadGrad", {padded, edges}, {{"mode", "REFLECT"}})), (std::vector<int32_t>{100, 101010, 10001}));
  EXPECT_EQ(as_vector<int32_t>(same("MirrorPadGrad", {padded, edges}, {{"mode", "SYMMETRIC"}})), (std::vector<int32_t>{110, 1001, 110000}));
  EXPECT_EQ(refused("MirrorPad", {x, values<int32_t>({1, 2}, {3, 0})}, {{"mode", "REFLECT"}}), Code::invalid_argument);
  EXPECT_EQ(refused("MirrorPad", {x, values<int32_t>({1, 2}, {4, 0})}, {{"mode", "SYMMETRIC"}}), Code::invalid_argument);
  EXPECT_EQ(refused("MirrorPad", {x, values<int32_t>({1, 2}, {-1, 0})}, {{"mode", "SYMMETRIC"}}), Code::invalid_argument);
  EXPECT_EQ(refused("MirrorPad", {x, values<int32_t>({2, 2}, {0, 0, 0, 0})}, {{"mode", "SYMMETRIC"}}), Code::invalid_argument);
  EXPECT_EQ(refused("MirrorPadGrad", {x, values<int32_t>({1, 2}, {2, 2})}, {{"mode", "SYMMETRIC"}}), Code::invalid_argument);
}

TEST_F(ResizeTest, PatchesShowWhatLiesUnderTheWindow) {
  const Tensor x = values<uint8_t>({1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Tensor out = same("ExtractImagePatches", {x},
                          {{"ksizes", List{1, 2, 2, 1}}, {"strides", List{1, 2, 1, 1}}, {"rates", List{1, 1, 2, 1}}, {"padding", "VALID"}});
  EXPECT_EQ(out.shape().text(), "[1,1,1,4]");
  EXPECT_EQ(as_vector<uint8_t>(out), (std::vector<uint8_t>{1, 3, 4, 6}));
}

TEST_F(ResizeTest, FormatsAreTranslated) {
  EXPECT_EQ(as_vector<int32_t>(same("DataFormatDimMap", {values<int32_t>({4}, {0, 1, 3, -2})}, {})), (std::vector<int32_t>{0, 2, 1, 3}));
  EXPECT_EQ(as_vector<int64_t>(same("DataFormatVecPermute", {values<int64_t>({4}, {10, 20, 30, 40})}, {})),
            (std::vector<int64_t>{10, 40, 20, 30}));
  EXPECT_EQ(as_vector<int32_t>(
                same("DataFormatVecPermute", {values<int32_t>({2, 2}, {1, 2, 3, 4})}, {{"src_format", "HWNC"}, {"dst_format", "NCWH"}})),
            (std::vector<int32_t>{3, 4, 1, 2}));
  EXPECT_EQ(refused("DataFormatDimMap", {values<int32_t>({1}, {4})}), Code::invalid_argument);
  EXPECT_EQ(refused("DataFormatVecPermute", {values<int32_t>({3}, {1, 2, 3})}), Code::invalid_argument);
  EXPECT_EQ(refused("DataFormatDimMap", {values<int32_t>({1}, {0})}, {{"dst_format", "NCHX"}}), Code::invalid_argument);
}

// A window that comes as an input does what the attribute does.
TEST_F(ResizeTest, WindowsAsInputs) {
  const Tensor x = image({2, 7, 6, 5}), size = values<int32_t>({4}, {1, 3, 2, 1}), stride = values<int32_t>({4}, {1, 2, 2, 1});
  const std::initializer_list<Attr> with = {{"ksize", List{1, 3, 2, 1}}, {"strides", List{1, 2, 2, 1}}, {"padding", "SAME"}};
  const std::initializer_list<Attr> bare = {{"padding", "SAME"}};
  const Tensor y = same("MaxPool", {x}, with);
  EXPECT_TRUE(one_op::bit_equal(same("MaxPoolV2", {x, size, stride}, bare), y));
  EXPECT_TRUE(one_op::bit_equal(same("MaxPoolWithArgmax", {x}, with), y));
  const Tensor dy = image({2, 4, 3, 5});
  EXPECT_TRUE(one_op::bit_equal(same("MaxPoolGradV2", {x, y, dy, size, stride}, bare), same("MaxPoolGrad", {x, y, dy}, with)));
  EXPECT_TRUE(one_op::bit_equal(same("MaxPoolGradGradV2", {x, y, x, size, stride}, bare), same("MaxPoolGradGrad", {x, y, x}, with)));
  EXPECT_EQ(refused("MaxPoolV2", {x, values<int32_t>({4}, {1, 0, 2, 1}), stride}, bare), Code::invalid_argument);
  EXPECT_EQ(refused("MaxPoolV2", {x, values<int32_t>({3}, {1, 3, 2}), stride}, bare), Code::invalid_argument);
  EXPECT_EQ(refused("MaxPoolGradV2", {x, y, image({2, 4, 4, 5}), size, stride}, bare), Code::invalid_argument);
}

}  // namespace
}  // namespace dtg
