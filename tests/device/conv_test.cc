// The fast convolutions against the plain loops, over shapes drawn from a seeded generator: strides,
// dilations, paddings that cut into the image, both layouts; and the same bits for any number of threads.
#include "device/cpu/conv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "device/cpu/conv_plain.h"
#include "tensor/buffer.h"

namespace dtg::cpu {
namespace {

class Draw {
 public:
  int64_t operator()(int64_t low, int64_t high) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return low + static_cast<int64_t>((state_ >> 33) % static_cast<uint64_t>(high - low + 1));
  }
  std::vector<float> numbers(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>((*this)(-1000, 1000)) / 1000.0f;
    return values;
  }

 private:
  uint64_t state_ = 7;
};

int64_t out_size(int64_t in, int64_t pad, int64_t filter, int64_t stride, int64_t dilation) {
  const int64_t room = in + pad - ((filter - 1) * dilation + 1);
  return room < 0 ? 0 : room / stride + 1;
}

ConvDims draw_dims(Draw& draw) {
  ConvDims d;
  d.batch = draw(1, 4), d.height = draw(1, 17), d.width = draw(1, 17), d.channels = draw(1, 20);
  d.filter_height = draw(1, 5), d.filter_width = draw(1, 5), d.out_channels = draw(1, 40);
  d.stride_y = draw(1, 3), d.stride_x = draw(1, 3), d.dilation_y = draw(1, 2), d.dilation_x = draw(1, 2);
  d.top = draw(0, 3), d.left = draw(0, 3);
  d.nchw = draw(0, 2) == 0;
  d.out_height = out_size(d.height, d.top + draw(0, 3), d.filter_height, d.stride_y, d.dilation_y);
  d.out_width = out_size(d.width, d.left + draw(0, 3), d.filter_width, d.stride_x, d.dilation_x);
  return d;
}

struct Results {
  std::vector<float> y, dx, df;
};

struct Inputs {
  std::vector<float> x, filter, dy;
  Inputs(const ConvDims& d, Draw& draw)
      : x(draw.numbers(d.batch * d.height * d.width * d.channels)),
        filter(draw.numbers(d.filter_height * d.filter_width * d.channels * d.out_channels)),
        dy(draw.numbers(d.batch * d.out_height * d.out_width * d.out_channels)) {}
};

Results run_fast(const ConvDims& d, const Inputs& in, Pool& pool) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Results r{std::vector<float>(in.dy.size(), nan), std::vector<float>(in.x.size(), nan), std::vector<float>(in.filter.size(), nan)};
  const SweepPlan forward = conv_forward_plan(d), back = conv_input_plan(d);
  const FilterPlan weights = conv_filter_plan(d);
  const int64_t bytes = std::max({forward.workspace(), back.workspace(), weights.workspace()}).value() + 64;
  void* workspace = allocate_block(bytes);
  conv_sweep(forward, pool, in.x.data(), in.filter.data(), nullptr, false, r.y.data(), workspace);
  conv_sweep(back, pool, in.dy.data(), in.filter.data(), nullptr, false, r.dx.data(), workspace);
  conv_filter(weights, pool, in.x.data(), in.dy.data(), r.df.data(), workspace);
  release_block(workspace, bytes);
  return r;
}

Results run_plain(const ConvDims& d, const Inputs& in) {
  Results r{std::vector<float>(in.dy.size()), std::vector<float>(in.x.size()), std::vector<float>(in.filter.size())};
  for (int64_t u = 0; u < plain_forward_units(d); ++u) {
    plain_conv_forward<float, double>(d, in.x.data(), in.filter.data(), r.y.data(), u);
  }
  for (int64_t u = 0; u < plain_input_units(d); ++u) {
    plain_conv_input<float, double>(d, in.dy.data(), in.filter.data(), r.dx.data(), u);
  }
  for (int64_t u = 0; u < plain_filter_units(d); ++u) {
    plain_conv_filter<float, double>(d, in.x.data(), in.dy.data(), r.df.data(), u);
  }
  return r;
}

std::string describe(const ConvDims& d) {
  std::string text;
  for (int64_t v : {d.batch, d.height, d.width, d.channels, d.filter_height, d.filter_width, d.out_channels, d.out_height, d.out_width,
                    d.stride_y, d.stride_x, d.dilation_y, d.dilation_x, d.top, d.left, int64_t{d.nchw}}) {
    text += std::to_string(v) + " ";
  }
  return text;
}

void expect_near(const std::vector<float>& got, const std::vector<float>& want, const char* what, const ConvDims& d) {
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], 2e-4) << what << " at " << i << " of " << describe(d);
  }
}

TEST(Conv, AgreesWithThePlainLoops) {
  Draw draw;
  Pool pool({.threads = 2});
  for (int i = 0; i < 150; ++i) {
    const ConvDims d = draw_dims(draw);
    const Inputs in(d, draw);
    const Results fast = run_fast(d, in, pool), plain = run_plain(d, in);
    expect_near(fast.y, plain.y, "forward", d);
    expect_near(fast.dx, plain.dx, "gradient of the input", d);
    expect_near(fast.df, plain.df, "gradient of the filter", d);
  }
}

// Enough work for several shards: by images, by parts of one image, by parts of the filter.
TEST(Conv, ThreadsDoNotChangeABit) {
  Draw draw;
  Pool one({.threads = 1}), three({.threads = 3});
  for (int64_t batch : {1, 16}) {
    ConvDims d;
    d.batch = batch, d.height = d.width = d.out_height = d.out_width = batch == 1 ? 40 : 20;
    d.channels = 24, d.out_channels = 100, d.filter_height = d.filter_width = 3, d.top = d.left = 1;
    EXPECT_GT(conv_forward_plan(d).shards, 1);
    EXPECT_GT(conv_filter_plan(d).shards, 1);
    const Inputs in(d, draw);
    const Results a = run_fast(d, in, one), b = run_fast(d, in, three);
    EXPECT_EQ(a.y, b.y);
    EXPECT_EQ(a.dx, b.dx);
    EXPECT_EQ(a.df, b.df);
    expect_near(a.df, run_plain(d, in).df, "gradient of the filter", d);
  }
}

}  // namespace
}  // namespace dtg::cpu
