// Equal seeds give bit-equal losses: from run to run and for 1, 2 and 3 compute threads, for each optimizer, for
// dense layers and for convolutions. Sizes are chosen so that the work is really cut into shards.
#include <cstring>

#include "nn/layers.h"
#include "nn/losses.h"
#include "nn/optimizer.h"
#include "nn/small_model.h"

namespace dtg {
namespace {

constexpr int64_t kBatch = 32;
constexpr int kSteps = 5;

enum class Net { dense, convolution };

Value logits_of(SmallModel& small, Net net, Value pixels) {
  Value x = pixels;
  if (net == Net::convolution) {
    Build build(small.graph());
    x = build.reshape(pixels, build.ints({-1, 16, 16, 1}));
    x = good(conv2d(small.model(), x, {.filters = 8, .padding = Padding::same, .activation = Activation::relu}));
    x = good(max_pool2d(small.model(), x, {}));
    x = good(conv2d(small.model(), x, {.filters = 16, .padding = Padding::valid, .activation = Activation::tanh}));
    x = good(flatten(small.model(), x));
  }
  x = good(dense(small.model(), x, {.units = 96, .activation = Activation::relu}));
  return good(dense(small.model(), x, {.units = 10}));
}

// Pictures and labels that differ from step to step, the same for everybody.
void fill(int step, Tensor& pixels, Tensor& labels) {
  uint32_t state = 12345u + static_cast<uint32_t>(step);
  auto* values = const_cast<float*>(pixels.as<float>());
  for (int64_t i = 0; i < pixels.count(); ++i) {
    state = state * 1664525u + 1013904223u;
    values[i] = static_cast<float>(state >> 8) / static_cast<float>(1u << 24) - 0.5f;
  }
  auto* numbers = const_cast<int64_t*>(labels.as<int64_t>());
  for (int64_t i = 0; i < labels.count(); ++i) numbers[i] = (i + step) % 10;
}

std::vector<float> losses_of(Net net, Optimizer::Kind kind, int threads, uint64_t seed = 7) {
  SmallModel small(seed, threads);
  const Value pixels = small.placeholder("pixels", DType::f32, {kBatch, 256});
  const Value labels = small.placeholder("labels", DType::i64, {kBatch});
  const Value loss = good(sparse_softmax_cross_entropy(small.graph(), labels, logits_of(small, net, pixels)));
  auto training = minimize(small.model(), loss, {.kind = kind, .learning_rate = {}, .rate = 0.01, .momentum = 0.9});
  EXPECT_TRUE(training.ok()) << training.status().message();
  if (!training.ok()) return {};
  small.init();
  const Value feeds[] = {pixels, labels};
  const NodeId targets[] = {training.value().train};
  auto step = small.session().prepare(feeds, {&loss, 1}, targets);
  EXPECT_TRUE(step.ok()) << step.status().message();
  Tensor batch[] = {good(Tensor::allocate(DType::f32, Shape::of({kBatch, 256}))), good(Tensor::allocate(DType::i64, Shape::of({kBatch})))};
  std::vector<float> losses;
  for (int i = 0; i < kSteps; ++i) {
    fill(i, batch[0], batch[1]);
    const Tensor* fed[] = {&batch[0], &batch[1]};
    Tensor result;
    const Status status = step.value()->run(fed, {&result, 1}, 0);
    EXPECT_TRUE(status.ok()) << status.message();
    if (!status.ok()) return {};
    losses.push_back(result.values<float>()[0]);
  }
  return losses;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == kSteps && b.size() == kSteps && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class Determinism : public testing::TestWithParam<Optimizer::Kind> {};

TEST_P(Determinism, EqualSeedsGiveEqualBitsOnAnyNumberOfThreads) {
  for (const Net net : {Net::dense, Net::convolution}) {
    const std::vector<float> first = losses_of(net, GetParam(), 1);
    for (const int threads : {1, 2, 3}) {
      for (int again = 0; again < 2; ++again) {
        EXPECT_TRUE(same_bits(first, losses_of(net, GetParam(), threads)))
            << threads << " threads, " << (net == Net::dense ? "dense" : "convolution");
      }
    }
  }
}

TEST(Seeds, AnotherSeedGivesOtherLosses) {
  EXPECT_FALSE(same_bits(losses_of(Net::dense, Optimizer::Kind::sgd, 1), losses_of(Net::dense, Optimizer::Kind::sgd, 1, 8)));
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Determinism, testing::Values(Optimizer::Kind::sgd, Optimizer::Kind::momentum, Optimizer::Kind::adam));

}  // namespace
}  // namespace dtg
