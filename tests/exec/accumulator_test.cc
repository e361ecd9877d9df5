// Accumulators: stale gradients, takes that wait, means over all and means per row.
#include "exec/accumulator.h"

#include <gtest/gtest.h>

namespace dtg {
namespace {

struct Outcome {
  int calls = 0;
  Status status;
  int64_t count = 0;
  Tensor sum;
  std::vector<Accumulator::Take::Row> rows;
};

class Recorded final : public Accumulator::Take {
 public:
  Recorded(int64_t wanted, Outcome& outcome) : outcome_(outcome) { count = wanted; }

 private:
  void finished(Status status) override {
    ++outcome_.calls;
    outcome_.status = std::move(status);
    outcome_.count = count;
    outcome_.sum = sum;
    outcome_.rows = rows;
  }
  Outcome& outcome_;
};

TEST(DenseAccumulator, TakesAllThatAreThere) {
  auto accumulator = make_ref<DenseAccumulator>("a", Accumulator::Spec{DType::f32, Shape::of({2})});
  const float a[] = {1, 2}, b[] = {3, 4};
  Outcome first;
  accumulator->start(new Recorded(2, first), nullptr);
  EXPECT_TRUE(accumulator->apply(0, Shape::of({2}), a).ok());
  EXPECT_EQ(first.calls, 0);
  EXPECT_EQ(accumulator->count(), 1);
  EXPECT_TRUE(accumulator->apply(5, Shape::of({2}), b).ok());
  ASSERT_EQ(first.calls, 1);
  EXPECT_EQ(first.count, 2);
  EXPECT_EQ(first.sum.as<float>()[1], 6);
  EXPECT_EQ(accumulator->count(), 0);
  EXPECT_EQ(accumulator->global_step(), 1);
  // Behind the step: dropped, whatever its shape.
  EXPECT_TRUE(accumulator->apply(0, Shape::of({3}), a).ok());
  EXPECT_EQ(accumulator->count(), 0);
  EXPECT_EQ(accumulator->apply(1, Shape::of({3}), a).code(), Code::invalid_argument);
}

TEST(DenseAccumulator, TakesAreServedInOrderAndCancelled) {
  auto accumulator = make_ref<DenseAccumulator>("a", Accumulator::Spec{DType::f32, Shape(), Accumulator::Reduction::sum});
  const float one = 1;
  Step step(1, Deadline::never());
  Outcome first, second, none;
  accumulator->start(new Recorded(2, first), &step);
  accumulator->start(new Recorded(1, second), nullptr);
  EXPECT_TRUE(accumulator->apply(0, Shape(), &one).ok());
  EXPECT_EQ(second.calls, 0);  // behind the first
  step.abort(cancelled("enough"));
  EXPECT_EQ(first.status.code(), Code::cancelled);
  EXPECT_EQ(second.calls, 1);
  EXPECT_TRUE(second.status.ok());
  accumulator->start(new Recorded(0, none), nullptr);
  EXPECT_EQ(none.status.code(), Code::invalid_argument);
}

TEST(SparseAccumulator, AMeanCountsPerRow) {
  auto accumulator = make_ref<SparseAccumulator>("a", Accumulator::Spec{DType::f32, Shape::of({5, 1})});
  const int64_t first_rows[] = {4, 1}, second_rows[] = {1, 1, 0}, bad[] = {5};
  const float first[] = {8, 2}, second[] = {3, 4, 5};
  EXPECT_TRUE(accumulator->apply(0, first_rows, Shape::of({2, 1}), first, {}).ok());
  EXPECT_EQ(accumulator->apply(0, bad, Shape::of({1, 1}), first, {}).code(), Code::invalid_argument);
  EXPECT_EQ(accumulator->apply(0, first_rows, Shape::of({2, 2}), first, {}).code(), Code::invalid_argument);
  EXPECT_TRUE(accumulator->apply(0, second_rows, Shape::of({3, 1}), second, {}).ok());
  Outcome outcome;
  auto* const take = new Recorded(2, outcome);
  accumulator->start(take, nullptr);
  ASSERT_EQ(outcome.rows.size(), 3u);
  EXPECT_EQ(outcome.rows[0].index, 0);
  EXPECT_EQ(outcome.rows[1].index, 1);
  EXPECT_EQ(outcome.rows[2].index, 4);
  Accumulator::Take* copy = new Recorded(1, outcome);
  copy->sum = outcome.sum;
  copy->rows = outcome.rows;
  const Tensor values = accumulator->values_of(*copy).take();
  EXPECT_EQ(values.as<float>()[0], 5);
  EXPECT_EQ(values.as<float>()[1], 4.5f);  // (2 + 3 + 4) / 2 gradients
  EXPECT_EQ(values.as<float>()[2], 8);
  EXPECT_EQ(accumulator->dense_shape_of(*copy), (std::vector<int64_t>{5, 1}));
  delete copy;
}

}  // namespace
}  // namespace dtg
