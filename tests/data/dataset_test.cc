// Pipelines: order, epochs, batches, prefetching, and that rows of a table and free elements behave alike.
#include "data/dataset.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <chrono>

#include <algorithm>
#include <cmath>
#include <set>

#include "data/order.h"
#include "scratch.h"

namespace dtg {
namespace {

template <class T>
Tensor tensor(std::initializer_list<int64_t> dims, std::vector<T> values) {
  return Tensor::of<T>(Shape::of(dims), std::span<const T>(values)).take();
}

DatasetPtr must(Result<DatasetPtr> made) {
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? made.take() : nullptr;
}

// 0 .. count-1 as int64 scalars: from a table, and as free elements.
DatasetPtr rows(int64_t count) {
  Tensor values = Tensor::allocate(DType::i64, Shape::of({count})).take();
  for (int64_t i = 0; i < count; ++i) values.as<int64_t>()[i] = i;
  return must(make_slices(std::span<const Tensor>(&values, 1)));
}
DatasetPtr numbers(int64_t count) { return must(make_range(0, count, 1)); }

// All values of component 0 until the end; the lengths of the elements in `sizes`.
std::vector<int64_t> drain(Dataset& data, std::vector<int64_t>* sizes = nullptr) {
  std::vector<int64_t> values;
  Element element;
  for (;;) {
    auto more = data.next(element);
    EXPECT_TRUE(more.ok()) << more.status().message();
    if (!more.ok() || !more.value()) break;
    const auto part = element[0].values<int64_t>();
    values.insert(values.end(), part.begin(), part.end());
    if (sizes) sizes->push_back(element[0].count());
  }
  // The end stays the end.
  EXPECT_FALSE(data.next(element).value());
  EXPECT_TRUE(element.empty());
  return values;
}

std::vector<int64_t> iota(int64_t from, int64_t to) {
  std::vector<int64_t> values;
  for (int64_t i = from; i < to; ++i) values.push_back(i);
  return values;
}

TEST(Dataset, SlicesAndRange) {
  auto data = rows(5);
  EXPECT_EQ(data->cardinality(), 5);
  EXPECT_EQ(data->spec()[0].shape.text(), "[]");
  EXPECT_EQ(drain(*data), iota(0, 5));
  ASSERT_TRUE(data->restart().ok());
  EXPECT_EQ(drain(*data), iota(0, 5));

  EXPECT_EQ(drain(*must(make_range(10, 0, -3))), (std::vector<int64_t>{10, 7, 4, 1}));
  EXPECT_EQ(drain(*must(make_range(3, 3, 1))), std::vector<int64_t>{});
  EXPECT_EQ(must(make_range(INT64_MIN, INT64_MAX, INT64_MAX))->cardinality(), 3);
  EXPECT_EQ(make_range(0, 1, 0).status().code(), Code::invalid_argument);
  EXPECT_EQ(make_range(INT64_MIN, INT64_MAX, 1).status().code(), Code::invalid_argument);

  const Tensor uneven[] = {tensor<float>({2}, {1, 2}), tensor<float>({3}, {1, 2, 3})};
  EXPECT_EQ(make_slices(uneven).status().code(), Code::invalid_argument);
  EXPECT_EQ(make_slices(std::span(uneven, 0)).status().code(), Code::invalid_argument);
  const Tensor scalar[] = {tensor<float>({}, {1})};
  EXPECT_EQ(make_slices(scalar).status().code(), Code::invalid_argument);
}

TEST(Dataset, SelectionsOverBothKinds) {
  for (const auto source : {rows, numbers}) {
    EXPECT_EQ(drain(*must(make_shard(source(10), 3, 1))), (std::vector<int64_t>{1, 4, 7}));
    EXPECT_EQ(must(make_shard(source(10), 3, 0))->cardinality(), 4);
    EXPECT_EQ(must(make_shard(source(2), 3, 2))->cardinality(), 0);
    EXPECT_EQ(drain(*must(make_shard(source(2), 3, 2))), std::vector<int64_t>{});
    EXPECT_EQ(drain(*must(make_take(source(10), 3))), iota(0, 3));
    EXPECT_EQ(drain(*must(make_take(source(2), 3))), iota(0, 2));
    EXPECT_EQ(drain(*must(make_skip(source(10), 7))), iota(7, 10));
    EXPECT_EQ(drain(*must(make_skip(source(2), 7))), std::vector<int64_t>{});
    auto twice = must(make_repeat(source(3), 2));
    EXPECT_EQ(twice->cardinality(), 6);
    EXPECT_EQ(drain(*twice), (std::vector<int64_t>{0, 1, 2, 0, 1, 2}));
    ASSERT_TRUE(twice->restart().ok());
    EXPECT_EQ(drain(*twice).size(), 6u);
    EXPECT_EQ(drain(*must(make_repeat(source(3), 0))), std::vector<int64_t>{});
    EXPECT_EQ(drain(*must(make_repeat(source(0), -1))), std::vector<int64_t>{});
    auto forever = must(make_repeat(source(3), -1));
    EXPECT_EQ(forever->cardinality(), Dataset::kInfinite);
    EXPECT_EQ(drain(*must(make_take(std::move(forever), 7))), (std::vector<int64_t>{0, 1, 2, 0, 1, 2, 0}));
  }
  EXPECT_EQ(make_shard(rows(1), 2, 2).status().code(), Code::invalid_argument);
  EXPECT_EQ(make_shard(rows(1), 0, 0).status().code(), Code::invalid_argument);
  EXPECT_EQ(make_take(rows(1), -1).status().code(), Code::invalid_argument);
  EXPECT_EQ(make_skip(rows(1), -1).status().code(), Code::invalid_argument);
}

TEST(Dataset, AutoShardLeavesNobodyEmpty) {
  for (int64_t count : {3, 4, 7}) {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < 3; ++i) {
      DatasetPtr plain = must(make_shard(rows(count), 3, i)), strict = must(make_auto_shard(rows(count), 3, i));
      for (int epoch = 0; epoch < 2; ++epoch) {
        const auto values = drain(*strict);
        EXPECT_EQ(values, drain(*plain)) << count << ", shard " << i;
        if (epoch == 0) all.insert(all.end(), values.begin(), values.end());
        ASSERT_TRUE(strict->restart().ok() && plain->restart().ok());
      }
    }
    std::ranges::sort(all);
    EXPECT_EQ(all, iota(0, count));
  }
  Element element;
  EXPECT_EQ(must(make_auto_shard(numbers(2), 3, 1))->next(element).status().code(), Code::invalid_argument);
  EXPECT_FALSE(must(make_auto_shard(numbers(2), 3, 2))->next(element).value());
  EXPECT_EQ(make_auto_shard(numbers(2), 3, 3).status().code(), Code::invalid_argument);
}

TEST(Dataset, RebatchCutsEachBatch) {
  std::vector<int64_t> sizes;
  DatasetPtr data = must(make_rebatch(must(make_batch(rows(10), 4, false)), 3));
  EXPECT_EQ(data->cardinality(), 9);
  for (int epoch = 0; epoch < 2; ++epoch) {
    sizes.clear();
    EXPECT_EQ(drain(*data, &sizes), iota(0, 10));
    EXPECT_EQ(sizes, (std::vector<int64_t>{2, 2, 0, 2, 2, 0, 1, 1, 0}));
    ASSERT_TRUE(data->restart().ok());
  }
  Element element;
  EXPECT_EQ(must(make_rebatch(numbers(4), 2))->next(element).status().code(), Code::invalid_argument);
  EXPECT_EQ(make_rebatch(numbers(4), 0).status().code(), Code::invalid_argument);
}

TEST(Dataset, BatchSizesAddUp) {
  EXPECT_EQ(batch_sizes(16, 3, 2, 1).take(), (std::vector<int64_t>{3, 3, 2, 2, 3, 3}));
  for (int64_t workers : {1, 2, 5}) {
    for (int64_t replicas : {1, 3}) {
      for (int64_t step = 0; step < workers; ++step) {
        int64_t sum = 0;
        for (int64_t worker = 0; worker < workers; ++worker) {
          const auto sizes = batch_sizes(17, workers, replicas, worker).take();
          for (int64_t i = 0; i < replicas; ++i) sum += sizes[static_cast<size_t>(step * replicas + i)];
        }
        EXPECT_EQ(sum, 17) << workers << " workers, step " << step;
      }
    }
  }
  EXPECT_EQ(batch_sizes(-1, 1, 1, 0).status().code(), Code::invalid_argument);
  EXPECT_EQ(batch_sizes(1, 1, 1, 1).status().code(), Code::invalid_argument);
  EXPECT_EQ(batch_sizes(1, INT64_MAX, INT64_MAX, 0).status().code(), Code::invalid_argument);
}

TEST(Dataset, ShuffleIsSeededAndNewEachEpoch) {
  for (const int64_t buffer : {0, 4, 1000}) {
    auto a = must(make_shuffle(rows(100), buffer, 7));
    auto b = must(make_shuffle(numbers(100), buffer, 7));
    auto other = must(make_shuffle(rows(100), buffer, 8));
    const auto first = drain(*a);
    EXPECT_EQ(first, drain(*b)) << "a table's rows and free elements come in the same order";
    EXPECT_NE(first, drain(*other));
    ASSERT_TRUE(a->restart().ok());
    ASSERT_TRUE(b->restart().ok());
    const auto second = drain(*a);
    EXPECT_NE(first, second);
    EXPECT_EQ(second, drain(*b));
    auto sorted = second;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, iota(0, 100));
    if (buffer != 4) continue;
    // An element cannot come before the buffer has reached it.
    for (size_t i = 0; i < first.size(); ++i) EXPECT_LT(first[i], static_cast<int64_t>(i) + 4);
  }
  auto same = must(make_shuffle(rows(50), 0, 3, false));
  const auto first = drain(*same);
  ASSERT_TRUE(same->restart().ok());
  EXPECT_EQ(first, drain(*same));
  EXPECT_EQ(drain(*must(make_shuffle(rows(5), 1, 9))), iota(0, 5));
  EXPECT_EQ(make_shuffle(rows(5), -1, 9).status().code(), Code::invalid_argument);
  EXPECT_EQ(make_shuffle(must(make_repeat(rows(5), -1)), 0, 9).status().code(), Code::invalid_argument);
}

TEST(Dataset, TheOrderIsFixedForGood) {
  // Training runs are repeated from a seed, possibly years later: this order must never change.
  EXPECT_EQ(drain(*must(make_shuffle(rows(10), 0, 42))), (std::vector<int64_t>{6, 4, 7, 0, 2, 1, 8, 9, 5, 3}));
  // Uniform: each number comes first about equally often.
  std::vector<int> firsts(5);
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    Order order(seed, 0);
    ++firsts[order.below(5)];
  }
  for (const int count : firsts) EXPECT_NEAR(count, 1000, 130);
}

TEST(Dataset, BatchesAndRemainders) {
  for (const auto source : {rows, numbers}) {
    std::vector<int64_t> sizes;
    auto kept = must(make_batch(source(10), 4, false));
    EXPECT_EQ(kept->cardinality(), 3);
    EXPECT_EQ(kept->spec()[0].shape.text(), "[?]");
    EXPECT_EQ(drain(*kept, &sizes), iota(0, 10));
    EXPECT_EQ(sizes, (std::vector<int64_t>{4, 4, 2}));
    auto dropped = must(make_batch(source(10), 4, true));
    EXPECT_EQ(dropped->cardinality(), 2);
    EXPECT_EQ(dropped->spec()[0].shape.text(), "[4]");
    EXPECT_EQ(drain(*dropped), iota(0, 8));
    ASSERT_TRUE(dropped->restart().ok());
    EXPECT_EQ(drain(*dropped), iota(0, 8));
    // Batches of batches.
    auto nested = must(make_batch(must(make_batch(source(8), 2, true)), 2, true));
    EXPECT_EQ(nested->spec()[0].shape.text(), "[2,2]");
    EXPECT_EQ(drain(*nested), iota(0, 8));
  }
  EXPECT_EQ(make_batch(rows(1), 0, false).status().code(), Code::invalid_argument);
}

TEST(Dataset, HeldBatchesKeepTheirValuesAndFreeOnesAreRecycled) {
  auto data = must(make_batch(rows(100), 10, true));
  Element held, element;
  ASSERT_TRUE(data->next(held).value());
  std::set<const void*> places;
  while (data->next(element).value()) places.insert(element[0].data());
  EXPECT_EQ(places.size(), 1u) << "one buffer serves a reader who holds one batch at a time";
  EXPECT_EQ(places.count(held[0].data()), 0u);
  EXPECT_EQ(held[0].int_at(9), 9);
}

TEST(Dataset, ScaleAndCast) {
  const Tensor columns[] = {tensor<uint8_t>({3, 2}, {0, 255, 51, 1, 128, 254}), tensor<uint8_t>({3}, {7, 8, 9})};
  auto data = must(make_slices(columns));
  data = must(make_scale(std::move(data), 0, 255));
  data = must(make_cast(std::move(data), 1, DType::i64));
  EXPECT_EQ(data->spec()[0].dtype, DType::f32);
  EXPECT_EQ(data->spec()[1].dtype, DType::i64);
  EXPECT_EQ(make_scale(must(make_slices(columns)), 2, 255).status().code(), Code::invalid_argument);
  EXPECT_EQ(make_scale(must(make_slices(columns)), 0, 0).status().code(), Code::invalid_argument);
  EXPECT_EQ(make_cast(must(make_slices(columns)), 0, DType::string).status().code(), Code::unimplemented);
  Element element;
  ASSERT_TRUE(data->next(element).value());
  EXPECT_EQ(element[0].as<float>()[1], 1.0f);
  EXPECT_EQ(element[1].int_at(0), 7);
  data = must(make_batch(std::move(data), 2, false));
  ASSERT_TRUE(data->next(element).value());
  EXPECT_EQ(element[0].text(), "float32[2,2]");
  EXPECT_EQ(element[0].as<float>()[0], 51 / 255.0f);
  EXPECT_EQ(element[0].as<float>()[3], 254 / 255.0f);
  EXPECT_EQ(element[1].int_at(1), 9);

  // After a batch the conversion meets tensors instead of rows.
  auto later = must(make_cast(must(make_batch(must(make_slices(columns)), 3, true)), 1, DType::f32));
  ASSERT_TRUE(later->next(element).value());
  EXPECT_EQ(element[1].as<float>()[2], 9.0f);
  const Tensor reals[] = {tensor<double>({4}, {2147483647, -2147483648.0, -2.9, 0.5})};
  auto whole = must(make_batch(must(make_cast(must(make_slices(reals)), 0, DType::i32)), 4, true));
  ASSERT_TRUE(whole->next(element).value());
  EXPECT_EQ(std::vector<int32_t>(element[0].as<int32_t>(), element[0].as<int32_t>() + 4),
            (std::vector<int32_t>{INT32_MAX, INT32_MIN, -2, 0}));
}

// What no whole number is becomes none: a label that is missing would be class 0.
TEST(Dataset, ACastLosesNoValue) {
  for (const double value : {1e30, -1e30, 2147483648.0, double{NAN}}) {
    const Tensor reals[] = {tensor<double>({2}, {1, value})};
    const Status status = make_cast(must(make_slices(reals)), 0, DType::i32).status();
    EXPECT_EQ(status.code(), Code::invalid_argument) << value;
    EXPECT_NE(status.message().find("value 1 is "), std::string::npos) << status.message();
    // Where elements are no rows of a table it is the element that is refused.
    auto later = must(make_cast(must(make_batch(must(make_slices(reals)), 2, true)), 0, DType::i32));
    Element element;
    EXPECT_EQ(later->next(element).status().code(), Code::invalid_argument) << value;
  }
}

TEST(Dataset, EveryByteIsScaledAsByDivision) {
  std::vector<uint8_t> bytes(256);
  for (size_t i = 0; i < 256; ++i) bytes[i] = static_cast<uint8_t>(i);
  for (const float divisor : {255.0f, 1.0f, 16.0f, 127.5f, 0.3f, -3.0f, 1e-30f}) {
    const ByteScale scale(divisor);
    std::vector<float> results(256);
    scale.apply(bytes.data(), results.data(), 256);
    for (size_t i = 0; i < 256; ++i) EXPECT_EQ(results[i], static_cast<float>(i) / divisor) << i << " by " << divisor;
  }
}

TEST(Dataset, PrefetchChangesNothing) {
  auto data = must(make_prefetch(must(make_batch(must(make_shuffle(rows(1000), 0, 5)), 7, false)), 3));
  auto plain = must(make_batch(must(make_shuffle(rows(1000), 0, 5)), 7, false));
  for (int epoch = 0; epoch < 3; ++epoch) {
    EXPECT_EQ(drain(*data), drain(*plain)) << epoch;
    ASSERT_TRUE(data->restart().ok());
    ASSERT_TRUE(plain->restart().ok());
  }
  // Given up in the middle: restart, then destruction.
  Element element;
  ASSERT_TRUE(data->next(element).value());
  ASSERT_TRUE(data->restart().ok());
  ASSERT_TRUE(data->next(element).value());
  data.reset();
  must(make_prefetch(rows(3), 2)).reset();
  EXPECT_EQ(make_prefetch(rows(3), 0).status().code(), Code::invalid_argument);
}

// A source that fails at its third element, and tells which signals its thread blocks.
class Failing final : public Dataset {
 public:
  explicit Failing(bool* blocked) : blocked_(blocked) { spec_.push_back({DType::i64, PartialShape::scalar()}); }
  Status restart() override {
    at_ = 0;
    return {};
  }
  int64_t cardinality() const override { return kUnknown; }
  Result<bool> pull(Item& item) override {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    *blocked_ = sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGPROF) == 1;
    if (++at_ == 3) return data_loss("read: broken");
    item.row = -1;
    item.tensors = {Tensor::scalar<int64_t>(at_).take()};
    return true;
  }

 private:
  bool* const blocked_;
  int at_ = 0;
};

TEST(Dataset, PrefetchHandsOnFailuresAndBlocksSignals) {
  bool blocked = false;
  auto data = must(make_prefetch(DatasetPtr(new Failing(&blocked)), 8));
  Element element;
  EXPECT_TRUE(data->next(element).value());
  EXPECT_TRUE(data->next(element).value());
  EXPECT_EQ(data->next(element).status().code(), Code::data_loss);
  EXPECT_EQ(data->next(element).status().code(), Code::data_loss);
  EXPECT_TRUE(blocked);
  ASSERT_TRUE(data->restart().ok());
  EXPECT_TRUE(data->next(element).value());
}

TEST(Dataset, AForkedChildIsToldAndDoesNotHang) {
  auto data = must(make_prefetch(rows(100000), 2));
  Element element;
  ASSERT_TRUE(data->next(element).value());
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const bool told = data->next(element).status().code() == Code::failed_precondition;
    data.reset();
    _exit(told ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(data->next(element).value());
}

TEST(Dataset, UnlikeElementsDoNotBatch) {
  class Growing final : public Dataset {
   public:
    Growing() { spec_.push_back({DType::f32, PartialShape::of_rank(1)}); }
    Status restart() override { return {}; }
    int64_t cardinality() const override { return kUnknown; }
    Result<bool> pull(Item& item) override {
      item.row = -1;
      DTG_ASSIGN(Tensor made, Tensor::allocate(DType::f32, Shape::of({++size_})));
      item.tensors = {made};
      return true;
    }

   private:
    int64_t size_ = 0;
  };
  auto data = must(make_batch(DatasetPtr(new Growing), 2, false));
  EXPECT_EQ(data->spec()[0].shape.text(), "[?,?]");
  Element element;
  const Status status = data->next(element).status();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_NE(status.message().find("float32[2]"), std::string::npos) << status.message();
}

TEST(Batch, MayBeLargerThanTheData) {
  for (const bool table : {true, false}) {
    auto data = make_range(0, 10, 1).take();
    if (!table) data = make_prefetch(std::move(data), 2).take();
    data = make_batch(std::move(data), int64_t{1} << 40, false).take();
    Element batch;
    ASSERT_TRUE(data->next(batch).value());
    EXPECT_EQ(batch[0].count(), 10);
    EXPECT_FALSE(data->next(batch).value());
  }
}

TEST(Prefetch, WhoGivesItUpDoesNotWait) {
  auto data = make_repeat(make_range(0, 1, 1).take(), -1).take();
  data = make_shard(std::move(data), int64_t{1} << 31, 0).take();  // seconds between two elements
  data = make_prefetch(std::move(data), 1).take();
  Element element;
  ASSERT_TRUE(data->next(element).value());
  const auto before = std::chrono::steady_clock::now();
  data = nullptr;
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(1));
}

}  // namespace
}  // namespace dtg
