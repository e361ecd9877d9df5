// Queue and the attempts behind it: order, partial batches, closing, and an abort that withdraws who waits.
#include "exec/queue.h"

#include <gtest/gtest.h>

#include <thread>

namespace dtg {
namespace {

using Verb = Queue::Verb;

struct Outcome {
  int calls = 0;
  Status status;
  Tuple tuple;
  bool waits() const { return calls == 0; }
  int value(int64_t i = 0) const { return static_cast<int>(tuple[0].int_at(i)); }
};

class Recorded final : public Queue::Operation {
 public:
  Recorded(Verb verb, Outcome& outcome) : Operation(verb), outcome_(outcome) {}

 private:
  void finished(Status status) override {
    ++outcome_.calls;
    outcome_.status = std::move(status);
    outcome_.tuple = std::move(tuple);
  }
  Outcome& outcome_;
};

Ref<Queue> queue_of(int64_t capacity) { return make_ref<Queue>("q", Queue::Spec{{DType::i32}, {Shape()}, capacity}); }

Outcome& put(Queue& queue, Outcome& outcome, int value, Step* step = nullptr) {
  auto* const op = new Recorded(Verb::enqueue, outcome);
  op->tuple.push_back(Tensor::scalar<int32_t>(value).take());
  queue.start(op, step);
  return outcome;
}
Outcome& put_many(Queue& queue, Outcome& outcome, std::vector<int32_t> values) {
  auto* const op = new Recorded(Verb::enqueue_many, outcome);
  const Shape shape = Shape::of({static_cast<int64_t>(values.size())});
  op->tuple.push_back(Tensor::of<int32_t>(shape, std::span<const int32_t>(values)).take());
  queue.start(op, nullptr);
  return outcome;
}
Outcome& take(Queue& queue, Outcome& outcome, Verb verb = Verb::dequeue, int64_t count = 1, Step* step = nullptr) {
  auto* const op = new Recorded(verb, outcome);
  op->count = count;
  queue.start(op, step);
  return outcome;
}

TEST(Queue, ServesWaitersInTheirOrder) {
  auto queue = queue_of(2);
  Outcome first, second, in[5];
  EXPECT_TRUE(take(*queue, first).waits());
  EXPECT_TRUE(take(*queue, second).waits());
  for (int i = 0; i < 5; ++i) put(*queue, in[i], i);
  EXPECT_EQ(first.value(), 0);
  EXPECT_EQ(second.value(), 1);
  EXPECT_EQ(queue->size(), 2);
  EXPECT_TRUE(in[4].waits());
  Outcome third;
  EXPECT_EQ(take(*queue, third).value(), 2);
  EXPECT_EQ(in[4].calls, 1);
}

TEST(Queue, ABatchCollectsWhileItWaits) {
  auto queue = queue_of(-1);
  Outcome batch, single, in;
  take(*queue, batch, Verb::dequeue_many, 3);
  put_many(*queue, in, {1, 2});
  EXPECT_EQ(queue->size(), 0);
  EXPECT_TRUE(take(*queue, single).waits());
  Outcome more;
  put_many(*queue, more, {3, 4});
  ASSERT_EQ(batch.calls, 1);
  EXPECT_EQ(batch.tuple[0].shape(), Shape::of({3}));
  EXPECT_EQ(batch.value(2), 3);
  EXPECT_EQ(single.value(), 4);
}

TEST(Queue, ClosingLetsTheRestBeTaken) {
  auto queue = queue_of(1);
  Outcome in[2], closing, late, first, second, rest;
  put(*queue, in[0], 1);
  put(*queue, in[1], 2);
  queue->start(new Recorded(Verb::close, closing), nullptr);
  EXPECT_TRUE(closing.waits());  // behind the enqueue
  EXPECT_FALSE(queue->closed());
  EXPECT_EQ(take(*queue, first).value(), 1);
  EXPECT_EQ(closing.calls, 1);
  EXPECT_EQ(put(*queue, late, 3).status.code(), Code::cancelled);
  EXPECT_EQ(take(*queue, rest, Verb::dequeue_up_to, 9).tuple[0].count(), 1);
  EXPECT_EQ(take(*queue, second).status.code(), Code::out_of_range);
  Outcome again;
  queue->start(new Recorded(Verb::close, again), nullptr);
  EXPECT_EQ(again.status.code(), Code::cancelled);
}

TEST(Queue, AnAbortWithdrawsOnlyItsOwn) {
  auto queue = queue_of(-1);
  Step mine(1, Deadline::never()), other(2, Deadline::never());
  Outcome batch, single, in[2];
  take(*queue, batch, Verb::dequeue_many, 3, &mine);
  put(*queue, in[0], 1);
  take(*queue, single, Verb::dequeue, 1, &other);
  EXPECT_TRUE(single.waits());
  mine.abort(deadline_exceeded("too late"));
  EXPECT_EQ(batch.calls, 1);
  EXPECT_EQ(batch.status.code(), Code::deadline_exceeded);
  EXPECT_EQ(single.value(), 1);  // what the batch had collected is not lost
  Outcome refused;
  EXPECT_EQ(take(*queue, refused, Verb::dequeue, 1, &mine).status.code(), Code::deadline_exceeded);
}

TEST(Queue, DestroyFailsWhoWaits) {
  auto queue = queue_of(1);
  Outcome waiting;
  take(*queue, waiting);
  queue->destroy(aborted("reset"));
  EXPECT_EQ(waiting.status.code(), Code::aborted);
}

TEST(Queue, OtherOrders) {
  Queue::Spec spec{{DType::i64}, {Shape()}, -1};
  spec.order = Queue::Order::priority;
  auto by_priority = make_ref<Queue>("p", spec);
  spec.order = Queue::Order::shuffled;
  spec.reserve = 1;
  auto shuffled = make_ref<Queue>("s", spec);
  Outcome in;
  for (auto& queue : {by_priority, shuffled}) {
    auto* const op = new Recorded(Verb::enqueue_many, in);
    op->tuple.push_back(Tensor::of<int64_t>(Shape::of({3}), std::vector<int64_t>{5, 3, 4}).take());
    queue->start(op, nullptr);
  }
  Outcome batch;
  take(*by_priority, batch, Verb::dequeue_many, 3);
  EXPECT_EQ(batch.value(0), 3);
  EXPECT_EQ(batch.value(2), 5);
  Outcome drawn[3];
  EXPECT_EQ(take(*shuffled, drawn[0]).calls, 1);
  EXPECT_EQ(take(*shuffled, drawn[1]).calls, 1);
  EXPECT_TRUE(take(*shuffled, drawn[2]).waits());
  Outcome closing;
  shuffled->start(new Recorded(Verb::close, closing), nullptr);
  ASSERT_EQ(drawn[2].calls, 1);
  EXPECT_EQ(drawn[0].value() + drawn[1].value() + drawn[2].value(), 12);
}

TEST(Queue, BatchesPadWithZeros) {
  const auto open = PartialShape::make(std::vector<int64_t>{-1, 2}).take();
  Queue::Spec spec{{DType::i32}, {open}, -1};
  spec.padding = true;
  auto queue = make_ref<Queue>("q", spec);
  Outcome in[2], batch;
  for (int64_t rows = 1; rows <= 2; ++rows) {
    auto* const op = new Recorded(Verb::enqueue, in[rows - 1]);
    const std::vector<int32_t> values(static_cast<size_t>(rows * 2), static_cast<int32_t>(rows));
    op->tuple.push_back(Tensor::of<int32_t>(Shape::of({rows, 2}), std::span<const int32_t>(values)).take());
    queue->start(op, nullptr);
  }
  take(*queue, batch, Verb::dequeue_many, 2);
  ASSERT_EQ(batch.calls, 1);
  EXPECT_EQ(batch.tuple[0].shape(), Shape::of({2, 2, 2}));
  const auto got = batch.tuple[0].values<int32_t>();
  EXPECT_EQ(std::vector<int32_t>(got.begin(), got.end()), (std::vector<int32_t>{1, 1, 0, 0, 2, 2, 2, 2}));
}

TEST(Queue, RefusesWhatDoesNotFit) {
  auto queue = queue_of(1);
  const DType f32 = DType::f32, i32 = DType::i32;
  const Shape scalar, pair = Shape::of({2});
  EXPECT_EQ(queue->check_tuple({&f32, 1}, {&scalar, 1}, false).code(), Code::invalid_argument);
  EXPECT_EQ(queue->check_tuple({&i32, 1}, {&pair, 1}, false).code(), Code::invalid_argument);
  EXPECT_TRUE(queue->check_tuple({&i32, 1}, {&pair, 1}, true).ok());
  EXPECT_EQ(queue->check_tuple({&i32, 1}, {&scalar, 1}, true).code(), Code::invalid_argument);
  EXPECT_EQ(queue->check_count(-1).code(), Code::invalid_argument);
}

// Threads put, take and abort at once: every operation ends once and no element is lost or doubled.
TEST(Queue, EveryOperationEndsOnce) {
  auto queue = queue_of(4);
  constexpr int kRounds = 2000;
  std::vector<Outcome> in(kRounds), out(kRounds);
  std::vector<std::unique_ptr<Step>> steps;
  for (int i = 0; i < kRounds; ++i) steps.push_back(std::make_unique<Step>(i, Deadline::never()));
  std::thread taker([&] {
    for (int i = 0; i < kRounds; ++i) {
      take(*queue, out[static_cast<size_t>(i)], Verb::dequeue, 1, steps[static_cast<size_t>(i)].get());
    }
  });
  std::thread aborter([&] {
    for (int i = 0; i < kRounds; i += 3) steps[static_cast<size_t>(i)]->abort(cancelled("race"));
  });
  for (int i = 0; i < kRounds; ++i) put(*queue, in[static_cast<size_t>(i)], i);
  taker.join();
  aborter.join();
  queue->destroy(cancelled("over"));
  int last = -1, taken = 0;
  for (const Outcome& outcome : out) {
    EXPECT_EQ(outcome.calls, 1);
    if (!outcome.status.ok()) continue;
    EXPECT_GT(outcome.value(), last);
    last = outcome.value();
    ++taken;
  }
  for (const Outcome& outcome : in) EXPECT_EQ(outcome.calls, 1);
  EXPECT_GE(taken, kRounds - (kRounds + 2) / 3);
}

}  // namespace
}  // namespace dtg
