// A real problem end to end: the 8x8 digits, a small convolutional network, momentum. It must learn, and it must
// learn the same to the last bit whenever and on however many threads it runs.
#include <cstdlib>
#include <cstring>

#include "data/csv.h"
#include "nn/layers.h"
#include "nn/losses.h"
#include "nn/optimizer.h"
#include "small_model.h"

namespace dtg {
namespace {

constexpr int64_t kTrain = 1500;

struct Digits {
  Element train, test;  // {features [n, 64], labels [n]}
};

Result<Digits> read_digits() {
  const char* source = std::getenv("DTG_SOURCE_DIR");
  const std::string path = std::string(source ? source : ".") + "/tests/data/digits.csv.gz";
  CsvOptions options;
  options.header = CsvHeader::no;
  options.label = "c64";
  Digits digits;
  for (const bool test : {false, true}) {
    DTG_ASSIGN(DatasetPtr data, make_csv(system_disk(), path, options));
    DTG_ASSIGN(data, make_scale(std::move(data), 0, 16));
    // The file goes from writer to writer: without mixing, the test would be on people never seen.
    DTG_ASSIGN(data, make_shuffle(std::move(data), 0, 7, false));
    DTG_ASSIGN(data, test ? make_skip(std::move(data), kTrain) : make_take(std::move(data), kTrain));
    DTG_ASSIGN(data, make_batch(std::move(data), 2000, false));
    DTG_ASSIGN([[maybe_unused]] const bool more, data->next(test ? digits.test : digits.train));
  }
  return digits;
}

struct Outcome {
  std::vector<float> losses;
  double accuracy = 0;
};

void train(const Digits& digits, int threads, int epochs, uint64_t seed, Outcome& outcome) {
  SmallModel small(seed, threads);
  const Value pixels = small.placeholder("pixels", DType::f32, {-1, 64});
  const Value labels = small.placeholder("labels", DType::i64, {-1});
  Build build(small.graph());
  Value x = build.reshape(pixels, build.ints({-1, 8, 8, 1}));
  x = good(conv2d(small.model(), x, {.filters = 16, .padding = Padding::same, .activation = Activation::relu}));
  x = good(max_pool2d(small.model(), x, {}));
  x = good(flatten(small.model(), x));
  const Value logits = good(dense(small.model(), x, {.units = 10}));
  const Value loss = good(sparse_softmax_cross_entropy(small.graph(), labels, logits));
  auto training = minimize(small.model(), loss, {.kind = Optimizer::Kind::momentum, .learning_rate = {}, .rate = 0.05, .momentum = 0.9});
  ASSERT_TRUE(training.ok()) << training.status().message();
  const Value right = good(accuracy(small.graph(), labels, logits));
  small.init();

  DatasetPtr batches = good(make_slices(digits.train));
  batches = good(make_shuffle(std::move(batches), 0, seed));
  batches = good(make_batch(std::move(batches), 50, true));
  const Value feeds[] = {pixels, labels};
  const NodeId targets[] = {training.value().train};
  auto step = small.session().prepare(feeds, {&loss, 1}, targets);
  ASSERT_TRUE(step.ok()) << step.status().message();
  for (int epoch = 0; epoch < epochs; ++epoch) {
    Element batch;
    while (batches->next(batch).value()) {
      const Tensor* fed[] = {&batch[0], &batch[1]};
      Tensor result;
      const Status status = step.value()->run(fed, {&result, 1}, 0);
      ASSERT_TRUE(status.ok()) << status.message();
      outcome.losses.push_back(result.values<float>()[0]);
    }
    ASSERT_TRUE(batches->restart().ok());
  }
  outcome.accuracy = static_cast<double>(small.fetch(right, {pixels, labels}, digits.test).values<float>()[0]);
}

TEST(Digits, AreLearntInSeconds) {
  auto digits = read_digits();
  ASSERT_TRUE(digits.ok()) << digits.status().message();
  ASSERT_EQ(digits.value().test[0].shape().text(), "[297,64]");
  Outcome outcome;
  train(digits.value(), 2, 20, 1, outcome);
  EXPECT_GT(outcome.accuracy, 0.95);
}

TEST(Digits, TheSameBitsEveryTimeAndOnAnyNumberOfThreads) {
  auto digits = read_digits();
  ASSERT_TRUE(digits.ok()) << digits.status().message();
  Outcome first, again, alone;
  train(digits.value(), 2, 2, 5, first);
  train(digits.value(), 2, 2, 5, again);
  train(digits.value(), 1, 2, 5, alone);
  ASSERT_EQ(first.losses.size(), 60u);
  EXPECT_EQ(std::memcmp(first.losses.data(), again.losses.data(), 60 * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(first.losses.data(), alone.losses.data(), 60 * sizeof(float)), 0);
  EXPECT_EQ(first.accuracy, alone.accuracy);
}

}  // namespace
}  // namespace dtg
